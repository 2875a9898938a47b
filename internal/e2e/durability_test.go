//go:build e2e

package e2e

import (
	"bytes"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"switchboard/internal/store"
)

func TestSecretsAreNowhereInClear(t *testing.T) {
	onBoth(t, func(t *testing.T, s *server) {
		const phone, notes, pass = "+14155550187", "peanut allergy of the canary", "canary password of the person"
		link := readSetupLink(t, s)
		if out, err := s.command(t, pass+"\n", "user", "create", "--email", "canary@harborstreet.example", "--org", orgName, "--role", "owner", "--password-stdin"); err != nil {
			t.Fatal(out)
		}
		s.user(t, owner, orgName, "owner")
		p := newScript(t, s, owner)
		client := s.register(t, "Canary", redirect)
		a := s.attempt(client, "")
		used := p.decide(p.consent(a), a, "approve", nil).Get("code")
		first := readTokens(t, s.exchange(t, a, used))
		unusedAttempt := s.attempt(client, "")
		unused := p.decide(p.consent(unusedAttempt), unusedAttempt, "approve", nil).Get("code")
		second := readTokens(t, s.refresh(t, client, first.refresh))
		key := s.key(t, orgName, "contacts:read contacts:write")
		if _, out := s.tool(t, second.access, "upsert_contact", map[string]any{"phone": phone, "notes": notes}); code(out) != "<nil>" {
			t.Fatalf("%v", out)
		}
		s.tool(t, key, "get_contact", map[string]any{"phone": phone})
		s.tool(t, key, "list_contacts", map[string]any{"search": phone[:6]})
		s.tool(t, key, "upsert_contact", map[string]any{"phone": phone, "notes": 7}) // refused, and logged without what it said
		s.tool(t, key, "list_contacts", map[string]any{"limit": phone})
		s.call(t, second.access, "tools/call", map[string]any{"name": phone})
		do(t, http.DefaultClient, formPost(t, s.url+"/sign-in", url.Values{"email": {owner}, "password": {pass}}))
		for _, path := range []string{"/mcp?access_token=" + second.access, "/setup?link=" + link, "/consent/" + used} {
			p.get(s.url + path)
		}

		canaries := map[string]string{
			"the code that was used": used, "the code that was not": unused, "an access token": second.access, "the first access token": first.access,
			"a refresh token": second.refresh, "the first refresh token": first.refresh, "an API key": key, "a password": pass, "the other password": password, "the set-up link": link,
		}
		stored := storedBytes(t, s)
		for what, secret := range canaries {
			_, bare, _ := strings.Cut(strings.TrimPrefix(secret, "sb_"), "_")
			for _, form := range []string{secret, bare} {
				if form != "" && strings.Contains(s.logs.String(), form) {
					t.Errorf("%s is in the log", what)
				}
				if form != "" && bytes.Contains(stored, []byte(form)) {
					t.Errorf("%s is in the database", what)
				}
			}
		}
		if !bytes.Contains(stored, []byte(notes)) {
			t.Error("the contact's notes are not in what was searched: the search is broken")
		}
		for what, text := range map[string]string{"a phone number": phone[1:], "a contact's notes": notes, "the start of a phone number": phone[:6]} {
			if strings.Contains(s.logs.String(), text) {
				t.Errorf("%s is in the log", what)
			}
		}
	})
}

func readSetupLink(t *testing.T, s *server) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(s.dir, "data", "setup-link"))
	if err != nil {
		t.Fatal(err)
	}
	_, link, _ := strings.Cut(strings.TrimSpace(string(b)), "link=")
	return link
}

// storedBytes is all that the database keeps: the files of SQLite with the WAL, or a dump.
func storedBytes(t *testing.T, s *server) []byte {
	t.Helper()
	for _, v := range s.env {
		if dsn, ok := strings.CutPrefix(v, "SWITCHBOARD_DATABASE="); ok {
			return dump(t, dsn)
		}
	}
	var all []byte
	err := filepath.WalkDir(filepath.Join(s.dir, "data"), func(path string, d fs.DirEntry, err error) error {
		if err != nil || !strings.Contains(d.Name(), ".db") {
			return err
		}
		b, err := os.ReadFile(path)
		all = append(all, b...)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func dump(t *testing.T, dsn string) []byte {
	t.Helper()
	program := "pg_dump"
	if found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/pg_dump"); len(found) > 0 {
		program = found[len(found)-1]
	}
	out, err := exec.CommandContext(t.Context(), program, "--dbname", dsn).CombinedOutput()
	if err != nil {
		t.Fatalf("pg_dump: %v: %.500s", err, out)
	}
	return out
}

func TestWhatWasAcknowledgedSurvivesAKill(t *testing.T) {
	onBoth(t, func(t *testing.T, s *server) {
		s.user(t, owner, orgName, "owner")
		client := s.register(t, "Survivor", redirect)
		got := newScript(t, s, owner).connect(client, "")
		if _, out := s.tool(t, got.access, "upsert_contact", map[string]any{"phone": "+14155550123", "name": "Sara"}); code(out) != "<nil>" {
			t.Fatalf("%v", out)
		}
		next := readTokens(t, s.refresh(t, client, got.refresh))
		s.kill()
		s.launch(t)
		if _, out := s.tool(t, next.access, "get_contact", map[string]any{"phone": "+14155550123"}); out["name"] != "Sara" {
			t.Errorf("the contact is gone: %v", out)
		}
		if again := readTokens(t, s.refresh(t, client, got.refresh)); again.refresh != next.refresh {
			t.Error("a repeated refresh after the crash got another token")
		}
		readTokens(t, s.refresh(t, client, next.refresh))
	})
}

func TestAClientThatHangsUpLeavesNoCallInDoubt(t *testing.T) {
	onBoth(t, func(t *testing.T, s *server) {
		s.user(t, owner, orgName, "owner")
		key := s.key(t, orgName, "contacts:read contacts:write")
		host := strings.TrimPrefix(s.url, "http://")
		for i := range 300 {
			body := message("2026-07-28", "tools/call", map[string]any{"name": "upsert_contact", "arguments": map[string]any{"phone": fmt.Sprintf("+1415555%04d", i)}})
			conn, err := net.Dial("tcp", host)
			if err != nil {
				t.Fatal(err)
			}
			fmt.Fprintf(conn, "POST /mcp HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\nAuthorization: Bearer %s\r\n"+
				"MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\nMcp-Name: upsert_contact\r\nContent-Length: %d\r\n\r\n%s", host, key, len(body), body)
			time.Sleep(time.Duration(i%16) * 500 * time.Microsecond)
			_ = conn.(*net.TCPConn).SetLinger(0)
			_ = conn.Close()
		}
		s.stop(t) // waits for what is under way
		s.launch(t)
		db := s.database(t)
		ctx := store.AllOrgs(t.Context(), "the test looks at everything")
		for what, query := range map[string]string{
			"calls without an end":             `SELECT count(*) FROM tool_calls WHERE status = 'started'`,
			"calls that ended well and badly":  `SELECT count(*) FROM audit a JOIN audit b ON a.call_id = b.call_id WHERE a.outcome = 'ok' AND b.outcome = 'failed'`,
			"calls without both records":       `SELECT count(*) FROM tool_calls c WHERE (SELECT count(*) FROM audit a WHERE a.call_id = c.id) <> 2`,
			"contacts without a finished call": `SELECT abs((SELECT count(*) FROM contacts) - (SELECT count(*) FROM tool_calls WHERE status = 'done'))`,
		} {
			var n int
			if err := db.QueryRow(ctx, query, nil, &n); err != nil || n != 0 {
				t.Errorf("%d %s %v", n, what, err)
			}
		}
	}, "SWITCHBOARD_RATE_PER_MINUTE=0")
}
