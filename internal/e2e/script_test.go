//go:build e2e

package e2e

import (
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
)

func TestAPlainScriptConnectsStepsUpRefreshesAndIsRevoked(t *testing.T) {
	onBoth(t, func(t *testing.T, s *server) {
		s.user(t, owner, orgName, "owner", "--name", "Amira Nasser")
		p := newScript(t, s, owner)
		client := s.register(t, "Plain script", "http://127.0.0.1/callback")

		first := p.connect(client, "org:read")
		if first.scope != "org:read" {
			t.Fatalf("granted %q", first.scope)
		}
		if a, out := s.tool(t, first.access, "get_started", map[string]any{}); a.status != http.StatusOK || out["organization"] == nil {
			t.Fatalf("get_started: %d %s", a.status, a.body)
		}

		denied, _ := s.tool(t, first.access, "list_contacts", map[string]any{})
		header := denied.header.Get("WWW-Authenticate")
		challenge := regexp.MustCompile(`^Bearer error="insufficient_scope", scope="([^"]*)", resource_metadata="([^"]*)", error_description="[^"]+"$`).FindStringSubmatch(header)
		if denied.status != http.StatusForbidden || challenge == nil || challenge[1] != "contacts:read org:read" {
			t.Fatalf("%d %s", denied.status, header)
		}
		if a := p.get(challenge[2]); a.status != http.StatusOK || a.json(t)["resource"] != s.url+"/mcp" {
			t.Fatalf("the metadata of the challenge: %d %s", a.status, a.body)
		}
		second := p.connect(client, challenge[1])
		if a, out := s.tool(t, second.access, "list_contacts", map[string]any{}); a.status != http.StatusOK || code(out) != "<nil>" {
			t.Fatalf("after the step-up: %d %s", a.status, a.body)
		}
		if a, _ := s.tool(t, first.access, "get_started", map[string]any{}); a.status != http.StatusOK {
			t.Fatalf("the first token died in the step-up: %d", a.status)
		}

		next := refreshTogether(t, s, client, second.refresh, 20)
		third := readTokens(t, s.refresh(t, client, next.refresh))

		page := p.get(s.url + "/connections")
		f := formWith(t, page, "revoke")
		f.values.Set("revoke", f.fields["revoke"])
		if a := p.post(f.action, f.values); a.status != http.StatusSeeOther {
			t.Fatalf("revoking: %d %.500s", a.status, a.body)
		}
		for _, token := range []string{first.access, third.access} {
			a := s.call(t, token, "tools/list", map[string]any{})
			if a.status != http.StatusUnauthorized || !strings.Contains(a.header.Get("WWW-Authenticate"), `error="invalid_token"`) {
				t.Fatalf("after revoking: %d %s", a.status, a.header.Get("WWW-Authenticate"))
			}
		}
		if a := s.refresh(t, client, third.refresh); a.status != http.StatusBadRequest || a.json(t)["error"] != "invalid_grant" {
			t.Fatalf("refresh after revoking: %d %s", a.status, a.body)
		}
	})
}

// Clients ask for exactly the scopes that a challenge names and then have no others. One that named only what is missing
// would send them from one permission to the other and back for ever.
func TestSteppingUpToEveryToolAsksOnceForEachPermissionAndLosesNothing(t *testing.T) {
	onBoth(t, func(t *testing.T, s *server) {
		s.user(t, owner, orgName, "owner")
		p := newScript(t, s, owner)
		client := s.register(t, "Climber", redirect)
		now := p.connect(client, "org:read")
		listed := s.call(t, now.access, "tools/list", map[string]any{})
		names := regexp.MustCompile(`"name":"([a-z_]+)"`).FindAllStringSubmatch(listed.body, -1)
		asked := 0
		for _, name := range names {
			a, _ := s.tool(t, now.access, name[1], map[string]any{})
			if a.status == http.StatusForbidden {
				challenge := regexp.MustCompile(`scope="([^"]*)"`).FindStringSubmatch(a.header.Get("WWW-Authenticate"))
				asked++
				if now = p.connect(client, challenge[1]); now.scope != challenge[1] {
					t.Errorf("%s: asked for %q, got %q", name[1], challenge[1], now.scope)
				}
				a, _ = s.tool(t, now.access, name[1], map[string]any{})
			}
			if a.status != http.StatusOK || a.header.Get("WWW-Authenticate") != "" {
				t.Errorf("%s: %d %s", name[1], a.status, a.header.Get("WWW-Authenticate"))
			}
		}
		for _, name := range names {
			if a, _ := s.tool(t, now.access, name[1], map[string]any{}); a.status != http.StatusOK {
				t.Errorf("%s afterwards: %d %s", name[1], a.status, a.header.Get("WWW-Authenticate"))
			}
		}
		if permissions := len(strings.Fields(now.scope)); asked != permissions-1 || asked < 2 {
			t.Errorf("%d challenges on the way to %q", asked, now.scope)
		}
	}, "SWITCHBOARD_RATE_PER_MINUTE=0")
}

// refreshTogether refreshes one token n times at once; everybody gets the same pair.
func refreshTogether(t *testing.T, s *server, client, token string, n int) tokens {
	t.Helper()
	got := make([]answer, n)
	var wg sync.WaitGroup
	for i := range got {
		wg.Go(func() { got[i] = s.refresh(t, client, token) })
	}
	wg.Wait()
	first := readTokens(t, got[0])
	for _, a := range got {
		if other := readTokens(t, a); other != first {
			t.Fatal("two parallel refreshes got different tokens")
		}
	}
	return first
}

func TestAnOldRefreshTokenRevokesTheConnection(t *testing.T) {
	onBoth(t, func(t *testing.T, s *server) {
		s.user(t, owner, orgName, "owner")
		p := newScript(t, s, owner)
		client := s.register(t, "Robbed", "http://127.0.0.1/callback")
		first := p.connect(client, "")
		second := readTokens(t, s.refresh(t, client, first.refresh))
		third := readTokens(t, s.refresh(t, client, second.refresh))
		if a := s.refresh(t, client, first.refresh); a.json(t)["error"] != "invalid_grant" {
			t.Fatalf("reuse: %d %s", a.status, a.body)
		}
		if a := s.call(t, third.access, "tools/list", nil); a.status != http.StatusUnauthorized {
			t.Fatalf("the thief's token lives: %d", a.status)
		}
		log := p.get(s.url + "/audit")
		if !strings.Contains(log.body, `data-action="refresh_reuse"`) || !strings.Contains(log.body, `data-action="consent"`) || !strings.Contains(log.body, `data-action="sign_in"`) {
			t.Fatal("the audit log does not show sign_in, consent and refresh_reuse")
		}
	})
}

func TestReuseAfterTheWindowRevokesTheConnection(t *testing.T) {
	onBoth(t, func(t *testing.T, s *server) {
		s.user(t, owner, orgName, "owner")
		client := s.register(t, "Late", "http://127.0.0.1/callback")
		first := newScript(t, s, owner).connect(client, "")
		second := readTokens(t, s.refresh(t, client, first.refresh))
		if a := s.refresh(t, client, first.refresh); a.json(t)["error"] != "invalid_grant" {
			t.Fatalf("with a window of nothing a repeat is reuse: %d %s", a.status, a.body)
		}
		if a := s.call(t, second.access, "tools/list", nil); a.status != http.StatusUnauthorized {
			t.Fatalf("the connection lives: %d", a.status)
		}
	}, "SWITCHBOARD_REFRESH_GRACE=0s")
}

func TestAKeyWorksOnEveryRevisionAndIsDeadOnceRevoked(t *testing.T) {
	onBoth(t, func(t *testing.T, s *server) {
		s.user(t, owner, orgName, "owner")
		key := s.key(t, orgName, "org:read", "--expires", "90d")
		for _, revision := range revisions {
			for method, want := range map[string]string{"tools/list": `"get_organization"`, "tools/call": `homeCountry`} {
				params, name := map[string]any{}, ""
				if method == "tools/call" {
					params, name = map[string]any{"name": "get_organization", "arguments": map[string]any{}}, "get_organization"
				}
				if a := s.speak(t, key, revision, method, name, params); a.status != http.StatusOK || !strings.Contains(a.body, want) {
					t.Errorf("%s %s: %d %.300s", revision, method, a.status, a.body)
				}
			}
			a := s.speak(t, key, revision, "tools/call", "list_contacts", map[string]any{"name": "list_contacts", "arguments": map[string]any{}})
			if a.status != http.StatusForbidden {
				t.Errorf("%s: a tool outside the key's scopes answered %d", revision, a.status)
			}
			if revision != "2026-07-28" {
				a := s.speak(t, key, revision, "initialize", "", map[string]any{"protocolVersion": revision, "capabilities": map[string]any{}, "clientInfo": map[string]any{"name": "e2e", "version": "1"}})
				if a.status != http.StatusOK || !strings.Contains(a.body, `"protocolVersion":"`+revision+`"`) {
					t.Errorf("%s initialize: %d %.300s", revision, a.status, a.body)
				}
			} else if a := s.speak(t, key, revision, "server/discover", "", map[string]any{}); a.status != http.StatusOK {
				t.Errorf("discover: %d %.300s", a.status, a.body)
			}
		}
		p := newScript(t, s, owner)
		p.signIn(p.get(s.url + "/sign-in"))
		f := formWith(t, p.get(s.url+"/keys"), "revoke")
		f.values.Set("revoke", f.fields["revoke"])
		if a := p.post(f.action, f.values); a.status != http.StatusSeeOther {
			t.Fatalf("revoking the key: %d", a.status)
		}
		for _, revision := range revisions {
			if a := s.speak(t, key, revision, "tools/list", "", map[string]any{}); a.status != http.StatusUnauthorized {
				t.Errorf("%s: a revoked key answered %d", revision, a.status)
			}
		}
	})
}

func TestRolesDifferAndOrganizationsDoNotMeet(t *testing.T) {
	onBoth(t, func(t *testing.T, s *server) {
		s.user(t, owner, orgName, "owner")
		for _, role := range []string{"viewer", "member", "admin"} {
			s.user(t, role+"@harborstreet.example", orgName, role)
		}
		s.user(t, "other@elsewhere.example", "Elsewhere", "owner", "--country", "AE", "--timezone", "Asia/Dubai", "--language", "ar")
		all := "org:read org:write contacts:read contacts:write"
		may := map[string][]string{ // role: what the consent screen may hand on
			"viewer": {"contacts:read", "org:read"},
			"member": {"contacts:read", "contacts:write", "org:read"},
			"admin":  {"contacts:read", "contacts:write", "org:read", "org:write"},
		}
		for role, want := range may {
			got := newScript(t, s, role+"@harborstreet.example").connect(s.register(t, "For a "+role, redirect), all)
			if !slices.Equal(strings.Fields(got.scope), want) {
				t.Errorf("a %s could hand on %q", role, got.scope)
			}
		}

		// A role that shrinks takes effect on keys and connections that exist.
		key := s.key(t, orgName, all, "--as", "admin@harborstreet.example")
		if _, out := s.tool(t, key, "update_outbound_settings", map[string]any{"timezone": "Europe/Berlin"}); code(out) != "<nil>" {
			t.Fatalf("an admin's key: %v", out)
		}
		s.user(t, "admin@harborstreet.example", orgName, "viewer")
		for _, tool := range []string{"update_outbound_settings", "upsert_contact"} {
			a, out := s.tool(t, key, tool, map[string]any{"phone": "+14155550123"})
			if a.status != http.StatusOK || code(out) != "forbidden" {
				t.Errorf("%s for a viewer: %d %v", tool, a.status, out)
			}
		}

		mine := s.key(t, orgName, all)
		_, made := s.tool(t, mine, "upsert_contact", map[string]any{"phone": "+14155550123", "name": "Sara"})
		contact := made["contact"].(map[string]any)
		theirs := s.key(t, "Elsewhere", all)
		for _, tool := range []string{"get_contact", "set_do_not_call"} {
			if _, out := s.tool(t, theirs, tool, map[string]any{"contactId": contact["id"]}); code(out) != "not_found" {
				t.Errorf("%s reached another organization's contact: %v", tool, out)
			}
		}
	})
}

func TestSmuggledMessagesNeverRunATool(t *testing.T) {
	onBoth(t, func(t *testing.T, s *server) {
		s.user(t, owner, orgName, "owner")
		low, high := s.key(t, orgName, "org:read"), s.key(t, orgName, "contacts:read")
		args := `"arguments":{"phone":"+14155550123"}`
		for name, body := range map[string]string{
			"a second name in capitals": `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"get_started","Name":"upsert_contact",` + args + `}}`,
			"a first name in capitals":  `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"Name":"get_started","name":"upsert_contact",` + args + `}}`,
			"a second method":           `{"jsonrpc":"2.0","id":1,"method":"tools/list","METHOD":"tools/call","params":{"name":"upsert_contact",` + args + `}}`,
			"a duplicate name":          `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"get_started","name":"upsert_contact",` + args + `}}`,
			"a duplicate the other way": `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"upsert_contact","name":"get_started",` + args + `}}`,
			"a batch":                   `[{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"upsert_contact",` + args + `}}]`,
			"a batch after white space": " \r\n\t[{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":\"upsert_contact\"," + args + "}}]",
			"two documents":             `{"jsonrpc":"2.0","id":1,"method":"tools/list"}{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"upsert_contact",` + args + `}}`,
		} {
			for _, revision := range append([]string{""}, revisions...) {
				if a := s.raw(t, low, body, revision); a.status >= 500 {
					t.Errorf("%s (%s): %d", name, revision, a.status)
				}
			}
		}
		if _, out := s.tool(t, high, "list_contacts", map[string]any{}); len(out["contacts"].([]any)) != 0 {
			t.Fatalf("a contact was made: %v", out)
		}
	}, "SWITCHBOARD_RATE_PER_MINUTE=0")
}
