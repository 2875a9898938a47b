//go:build interop

package e2e

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"switchboard/internal/store"
)

// everyCallRefreshes makes access tokens so short that x/oauth2, which gives up a token ten seconds before its end,
// takes every one of them for ended. So its refreshes need no waiting.
const everyCallRefreshes = "SWITCHBOARD_ACCESS_TTL=9s"

// patience is how long anything at all may take.
const patience = time.Minute

// bench is a server with one client at it, and the person whom the client asks.
type bench struct {
	t    *testing.T
	s    *server
	row  *row
	db   *store.Store
	home string // a folder for what the client keeps
	cimd string // the client's metadata document, when it has one

	person *script
	asks   chan ask
	asked  int // how often the person was
}

// ask is an authorization URL that a client wants opened.
type ask struct {
	url  string
	back chan<- string // gets the address that the person is sent back to
}

func newBench(t *testing.T, dialect string, r *row) *bench {
	t.Helper()
	env := append([]string{"SWITCHBOARD_RATE_PER_MINUTE=0"}, r.client.env...)
	b := &bench{t: t, row: r, home: t.TempDir(), asks: make(chan ask)}
	if r.client.document {
		v := newVendor(t)
		b.cimd = v.publish("/client.json", "Documented", redirect)
		env = append(env, v.trusted(t)...)
	}
	b.s = start(t, dialect, env...)
	b.db = b.s.database(t)
	b.s.user(t, owner, orgName, "owner", "--name", "Amira Nasser")
	b.person = newScript(t, b.s, owner)
	return b
}

func (b *bench) yes(step string)     { b.t.Helper(); b.row.set(b.t, step, "yes") }
func (b *bench) no(step, why string) { b.t.Helper(); b.row.set(b.t, step, "no: "+why) }

// during does something while the person, who has this goroutine, answers what the client asks.
func (b *bench) during(what string, f func() error) error {
	b.t.Helper()
	done := make(chan error, 1)
	go func() { done <- f() }()
	deadline := time.After(patience)
	for {
		select {
		case a := <-b.asks:
			a.back <- b.goTo(a.url)
		case err := <-done:
			return err
		case <-deadline:
			b.t.Fatalf("%s takes too long; the server says: %s", what, b.s.logs)
		}
	}
}

// must is during for what has to succeed.
func (b *bench) must(what string, f func() error) {
	b.t.Helper()
	if err := b.during(what, f); err != nil {
		b.t.Fatalf("%s: %v", what, err)
	}
}

// open is for clients: it has the person go to an authorization URL and returns where they are sent back to. Without
// a person, which is when nobody is in during, it waits for as long as anything may take.
func (b *bench) open(rawURL string) (string, error) {
	back := make(chan string, 1)
	select {
	case b.asks <- ask{rawURL, back}:
	case <-time.After(patience):
		return "", errors.New("nobody is there to sign in")
	}
	select {
	case location := <-back:
		return location, nil
	case <-time.After(patience):
		return "", errors.New("the person did not come back")
	}
}

// goTo is the person: they sign in where they are asked to. The first time they let the app read and no more, from
// then on they allow what it asks for.
func (b *bench) goTo(rawURL string) string {
	b.t.Helper()
	b.asked++
	asks, err := url.Parse(rawURL)
	if err != nil {
		b.t.Fatal(err)
	}
	if q := asks.Query(); q.Get("resource") != b.s.url+"/mcp" || q.Get("code_challenge_method") != "S256" || q.Get("client_id") == "" || b.cimd != "" && q.Get("client_id") != b.cimd {
		b.t.Fatalf("the client asks with %s", rawURL)
	}
	page := b.person.consent(attempt{url: rawURL})
	f := formWith(b.t, page, "decision")
	f.values.Set("decision", "approve")
	if b.asked == 1 && strings.Contains(page.body, `value="approve_read"`) {
		f.values.Set("decision", "approve_read")
	}
	got := b.person.post(f.action, f.values)
	location := got.header.Get("Location")
	if got.status != http.StatusSeeOther || !strings.HasPrefix(location, asks.Query().Get("redirect_uri")) {
		b.t.Fatalf("consent answered %d to %q: %.500s", got.status, location, got.body)
	}
	return location
}

// deliver takes the person back to a client that listens by itself. It may print its URL before it listens.
func (b *bench) deliver(location string) error {
	deadline := time.Now().Add(patience)
	for {
		resp, err := http.Get(location)
		if err == nil {
			resp.Body.Close()
			return nil
		}
		if time.Now().After(deadline) {
			return err
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// revokeAll is an administrator at the page of connections.
func (b *bench) revokeAll() {
	b.t.Helper()
	for range 10 {
		page := b.person.get(b.s.url + "/connections")
		if !strings.Contains(page.body, `name="revoke"`) {
			return
		}
		f := formWith(b.t, page, "revoke")
		f.values.Set("revoke", f.fields["revoke"])
		if a := b.person.post(f.action, f.values); a.status != http.StatusSeeOther {
			b.t.Fatalf("revoking: %d %.500s", a.status, a.body)
		}
	}
	b.t.Fatal("there is no end to the connections")
}

// endAccessTokens lets the time of every access token run out, without waiting for it.
func (b *bench) endAccessTokens() {
	b.t.Helper()
	if _, err := b.db.Exec(b.everywhere(), `UPDATE generations SET access_expires_at = ?`, store.Now()); err != nil {
		b.t.Fatal(err)
	}
}

func (b *bench) write(path, content string) {
	b.t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		b.t.Fatal(err)
	}
}

// count asks the database for a number.
func (b *bench) count(query string) int {
	b.t.Helper()
	var n int
	if err := b.db.QueryRow(b.everywhere(), query, nil, &n); err != nil {
		b.t.Fatal(err)
	}
	return n
}

func (b *bench) everywhere() context.Context {
	return store.AllOrgs(b.t.Context(), "the test looks at everything")
}

// refreshes is how many refreshes there were: a grant has one generation for its code and one for each refresh.
func (b *bench) refreshes() int {
	b.t.Helper()
	return b.count(`SELECT (SELECT count(*) FROM generations) - (SELECT count(DISTINCT grant_id) FROM generations)`)
}
