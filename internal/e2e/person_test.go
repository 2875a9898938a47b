//go:build e2e

package e2e

import (
	"context"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/modelcontextprotocol/go-sdk/auth"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/modelcontextprotocol/go-sdk/oauthex"
)

func TestAPersonSetsUpConnectsAnAppAndRevokesIt(t *testing.T) {
	onBoth(t, func(t *testing.T, s *server) {
		b := newBrowser(t)
		setUp(t, s, b)
		app := newApp(t, s, b)
		session := app.connect(t)

		result := app.call(t, session, "get_started", map[string]any{})
		if result.IsError {
			t.Fatalf("get_started: %v", result.Content)
		}
		// The app was given org:read alone; this one needs another sign-in.
		app.consents = nil
		if result := app.call(t, session, "list_contacts", map[string]any{}); result.IsError {
			t.Fatalf("list_contacts after the step-up: %v", result.Content)
		}
		if app.consents == nil {
			t.Fatal("no step-up was asked for")
		}
		// Access tokens live for three seconds here, so this call needs a refresh, which nobody sees.
		asked := len(app.consents)
		time.Sleep(3500 * time.Millisecond)
		if result := app.call(t, session, "list_contacts", map[string]any{}); result.IsError || len(app.consents) != asked {
			t.Fatalf("after the access token ended: %v, asked %d times", result, len(app.consents)-asked)
		}

		b.open(s.url + "/connections")
		b.shoot("connections")
		app.refuse = true
		for strings.Contains(b.eval(`document.querySelectorAll('[name="revoke"]').length > 0`), "true") {
			revoke(b)
		}
		b.shoot("connections-none")
		ctx, cancel := context.WithTimeout(t.Context(), 15*time.Second)
		defer cancel()
		if _, err := session.CallTool(ctx, &sdk.CallToolParams{Name: "get_started"}); err == nil {
			t.Fatal("the app still works after it was revoked")
		}
		if app.asked == 0 {
			t.Fatal("the app was not told to sign in again")
		}
		b.open(s.url + "/audit")
		b.shoot("audit")
		if broken := b.broken(); len(broken) > 0 {
			t.Errorf("pages broke their own policy: %v", broken)
		}
	}, "SWITCHBOARD_ACCESS_TTL=3s")
}

// revoke presses Revoke on the first connection and answers the question.
func revoke(b *browser) {
	b.t.Helper()
	before := b.eval(`document.querySelectorAll('[name="revoke"]').length`)
	b.do("revoking", evaluate(`document.querySelector('a[data-dialog]').click()`), chromedp.WaitVisible(chromedp.CSS("dialog[open]")))
	b.shoot("connections-revoke")
	b.do("revoking", evaluate(`document.querySelector('[name="revoke"]').click()`))
	for range 100 {
		if b.eval(`document.readyState == "complete" && document.querySelectorAll('[name="revoke"]').length != `+before) == "true" {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	b.t.Fatalf("revoking changed nothing: %s", b.text())
}

// setUp follows the set-up link, which is in a file since the server has no terminal.
func setUp(t *testing.T, s *server, b *browser) {
	t.Helper()
	path := filepath.Join(s.dir, "data", "setup-link")
	link, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if info, _ := os.Stat(path); info.Mode().Perm() != 0o600 {
		t.Errorf("the set-up link has mode %v", info.Mode())
	}
	b.open(s.url)
	b.shoot("sign-in-before-set-up")
	b.open(strings.TrimSpace(string(link)))
	b.shoot("setup")
	b.fill("org", orgName)
	b.choose("country", "US")
	b.choose("timezone", "America/Los_Angeles")
	b.choose("locale", "en")
	b.fill("name", "Amira Nasser")
	b.fill("email", owner)
	b.fill("password", "short")
	b.do("sending a password that is too short", evaluate(`document.querySelector('form').noValidate = true`))
	b.click(`form button:not([name])`)
	b.wait(`[aria-invalid="true"]`)
	b.shoot("setup-mistake")
	b.fill("password", password)
	b.click(`form button:not([name])`)
	b.wait(`a[href*="/audit"]`)
	if resp, err := http.Get(strings.TrimSpace(string(link))); err != nil || resp.StatusCode == http.StatusOK {
		t.Errorf("the set-up link still works: %v", resp.Status)
	}
}

// app is the go-sdk's client with a browser for its person.
type app struct {
	s        *server
	b        *browser
	handler  auth.OAuthHandler
	redirect string
	results  chan url.Values

	mu       sync.Mutex
	consents []string // authorization URLs that were answered
	asked    int
	refuse   bool // answer no more
}

func newApp(t *testing.T, s *server, b *browser) *app {
	t.Helper()
	a := &app{s: s, b: b, results: make(chan url.Values, 1)}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	a.redirect = "http://" + l.Addr().String() + "/callback"
	back := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/callback" {
			_, _ = w.Write([]byte("<p id=done>Back in the app.</p>"))
			a.results <- r.URL.Query()
		}
	})}
	go func() { _ = back.Serve(l) }()
	t.Cleanup(func() { _ = back.Close() })
	first := true
	a.handler, err = auth.NewAuthorizationCodeHandler(&auth.AuthorizationCodeHandlerConfig{
		RedirectURL: a.redirect,
		DynamicClientRegistrationConfig: &auth.DynamicClientRegistrationConfig{Metadata: &oauthex.ClientRegistrationMetadata{
			ClientName: "Harbor Assistant", RedirectURIs: []string{a.redirect}, GrantTypes: []string{"authorization_code", "refresh_token"},
		}},
		AuthorizationCodeFetcher: a.fetch,
		ScopeFilter: func(discovered []string) []string {
			if first { // ask for little at first, so that there is something to step up to
				first = false
				return []string{"org:read"}
			}
			return discovered
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// fetch is the person at the browser.
func (a *app) fetch(ctx context.Context, args *auth.AuthorizationArgs) (*auth.AuthorizationResult, error) {
	a.mu.Lock()
	a.asked++
	refuse := a.refuse
	a.mu.Unlock()
	if refuse {
		return nil, context.Canceled
	}
	a.b.open(args.URL)
	a.b.wait(`[name="decision"][value="approve"]`)
	a.b.shoot("consent")
	a.b.click(`[name="decision"][value="approve"]`)
	select {
	case q := <-a.results:
		a.mu.Lock()
		a.consents = append(a.consents, args.URL)
		a.mu.Unlock()
		return &auth.AuthorizationResult{Code: q.Get("code"), State: q.Get("state"), Iss: q.Get("iss")}, nil
	case <-time.After(20 * time.Second):
		a.b.t.Errorf("the app got no code: %s", a.b.text())
		return nil, context.DeadlineExceeded
	}
}

func (a *app) connect(t *testing.T) *sdk.ClientSession {
	t.Helper()
	client := sdk.NewClient(&sdk.Implementation{Name: "e2e", Version: "1"}, nil)
	session, err := client.Connect(t.Context(), &sdk.StreamableClientTransport{Endpoint: a.s.url + "/mcp", OAuthHandler: a.handler, DisableStandaloneSSE: true}, nil)
	if err != nil {
		t.Fatalf("connecting: %v", err)
	}
	t.Cleanup(func() { _ = session.Close() })
	return session
}

func (a *app) call(t *testing.T, session *sdk.ClientSession, tool string, arguments any) *sdk.CallToolResult {
	t.Helper()
	result, err := session.CallTool(t.Context(), &sdk.CallToolParams{Name: tool, Arguments: arguments})
	if err != nil {
		t.Fatalf("%s: %v", tool, err)
	}
	return result
}
