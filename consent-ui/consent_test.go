package consentui

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/net/html"

	"switchboard/auth/accounts"
	"switchboard/auth/oauth"
	"switchboard/internal/scope"
	"switchboard/internal/trial"
)

// ask begins a request for scopes and opens the page about it.
func ask(b *browser, scopes string) (at string, p *page) {
	at = b.get("/oauth/authorize?scope=" + url.QueryEscape(scopes)).header.Get("Location")
	return at, b.get(at)
}

// boxes are the values of the checkboxes, those that are ticked first.
func boxes(p *page) (ticked, unticked []string) {
	for _, box := range p.all("input", func(n *html.Node) bool { return trial.Attr(n, "name") == "scope" }) {
		if trial.HasAttr(box, "checked") {
			ticked = append(ticked, trial.Attr(box, "value"))
		} else {
			unticked = append(unticked, trial.Attr(box, "value"))
		}
	}
	return ticked, unticked
}

func TestTheBoxesCarryWhatWasAskedForAndTheRoleAllows(t *testing.T) {
	both := []accounts.Membership{{Organization: clinic, Role: scope.Owner}, {Organization: dental, Role: scope.Viewer}}
	tests := []struct {
		name             string
		members          []accounts.Membership
		held             scope.Set
		asked            string
		ticked, unticked []string
	}{
		{
			name: "an owner, all groups, by consequence", asked: "calls:read calls:write contacts:read contacts:write numbers:read numbers:write org:read usage:read webhooks:read webhooks:write",
			ticked:   []string{"calls:read calls:write", "numbers:read numbers:write", "contacts:read contacts:write", "usage:read", "org:read"},
			unticked: []string{"webhooks:read webhooks:write"},
		},
		{name: "half of a group", asked: "contacts:write", ticked: []string{"contacts:write"}},
		{
			name: "a viewer", members: []accounts.Membership{{Organization: clinic, Role: scope.Viewer}},
			asked: "contacts:read contacts:write org:read org:write", ticked: []string{"contacts:read", "org:read"},
		},
		{
			name: "a member who may not change the organization", members: []accounts.Membership{{Organization: clinic, Role: scope.Member}},
			asked: "contacts:read contacts:write org:read org:write", ticked: []string{"contacts:read contacts:write", "org:read"},
		},
		{name: "different roles: what any of them allows", members: both, asked: "contacts:read contacts:write", ticked: []string{"contacts:read contacts:write"}},
		{name: "only what is off by default", asked: "webhooks:read", ticked: []string{"webhooks:read"}},
		{
			name: "a step-up: what is new first, what is held after it", held: scope.Of("contacts:read", "org:read"),
			asked: "contacts:read contacts:write org:read webhooks:write", ticked: []string{"contacts:write", "webhooks:write", "contacts:read", "org:read"},
		},
		{name: "again with nothing new", held: scope.Of("contacts:read", "org:read"), asked: "contacts:read", ticked: []string{"contacts:read"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld()
			if tt.members != nil {
				w.members[amira.ID] = tt.members
			}
			w.held[amira.ID+clinic.ID] = tt.held
			b := newBrowser(t, serveWorld(t, w).URL)
			b.signIn(amira)
			_, p := ask(b, tt.asked)
			ticked, unticked := boxes(p)
			if diff := cmp.Diff(tt.ticked, ticked); diff != "" {
				t.Errorf("ticked (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tt.unticked, unticked); diff != "" {
				t.Errorf("unticked (-want +got):\n%s", diff)
			}
		})
	}
}

func TestTheAnswerCarriesWhatIsTicked(t *testing.T) {
	w := newWorld()
	b := newBrowser(t, serveWorld(t, w).URL)
	b.signIn(amira)
	for _, tt := range []struct {
		decision string
		want     oauth.Decision
	}{
		{"approve", oauth.Decision{Approve: true, PersonID: amira.ID, OrgID: clinic.ID, Scopes: scope.Of("contacts:read", "contacts:write", "org:read")}},
		{"approve_read", oauth.Decision{Approve: true, ReadOnly: true, PersonID: amira.ID, OrgID: clinic.ID, Scopes: scope.Of("contacts:read", "contacts:write", "org:read")}},
		{"deny", oauth.Decision{PersonID: amira.ID, OrgID: clinic.ID, Scopes: scope.Of("contacts:read", "contacts:write", "org:read")}},
	} {
		at, p := ask(b, "contacts:read contacts:write org:read")
		action, form := p.formWith("decision", tt.decision)
		if got := b.post(action, form); action != at || got.status != http.StatusSeeOther || got.header.Get("Location") != w.location {
			t.Fatalf("%s: status %d to %q", tt.decision, got.status, got.header.Get("Location"))
		}
		if diff := cmp.Diff(tt.want, w.decisions[len(w.decisions)-1]); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.decision, diff)
		}
	}
}

func TestAnAnswerThatIsNoneShowsThePageAgain(t *testing.T) {
	w := newWorld()
	b := newBrowser(t, serveWorld(t, w).URL)
	b.signIn(amira)
	at, p := ask(b, "contacts:read")
	for _, change := range []func(url.Values){
		func(f url.Values) { f.Set("decision", "maybe") },
		func(f url.Values) { f.Del("decision") },
		func(f url.Values) { f.Set("decision", "approve"); f.Set("org", "org_of_somebody_else") },
	} {
		form := p.form(at)
		change(form)
		if got := b.post(at, form); got.status != http.StatusUnprocessableEntity || len(w.decisions) > 0 {
			t.Errorf("status %d with %d decisions", got.status, len(w.decisions))
		}
	}
}

func TestReadingOnlyIsOfferedWhereItIsAMiddleWay(t *testing.T) {
	for asked, want := range map[string]int{"contacts:read contacts:write": 1, "contacts:read org:read": 0, "contacts:write": 0} {
		b := newBrowser(t, serveWorld(t, newWorld()).URL)
		b.signIn(amira)
		_, p := ask(b, asked)
		if got := len(p.all("button", func(n *html.Node) bool { return trial.Attr(n, "value") == "approve_read" })); got != want {
			t.Errorf("%s: %d buttons, want %d", asked, got, want)
		}
	}
}

func TestARoleThatAllowsNothingLeavesOneAnswer(t *testing.T) {
	w := newWorld()
	w.members[amira.ID] = []accounts.Membership{{Organization: clinic, Role: scope.Viewer}}
	b := newBrowser(t, serveWorld(t, w).URL)
	b.signIn(amira)
	_, p := ask(b, "org:write")
	buttons := p.all("button", func(n *html.Node) bool { return trial.Attr(n, "name") == "decision" })
	if len(buttons) != 1 || trial.Attr(buttons[0], "value") != "deny" {
		t.Errorf("%d answers, want only deny", len(buttons))
	}
}

func TestTheNameOfAnAppIsInert(t *testing.T) {
	w := newWorld()
	b := newBrowser(t, serveWorld(t, w).URL)
	at := b.get("/oauth/authorize?client_name=" + url.QueryEscape("<b>Claude</b>\u202e edoC\u2066\u200f\x00\n by Anthropic, verified and trusted by everyone in the world")).header.Get("Location")
	for _, path := range []string{"/sign-in?next=" + strings.TrimPrefix(at, "/consent/"), at} {
		if path == at {
			b.signIn(amira)
		}
		p := b.get(path)
		if len(p.all("b", func(n *html.Node) bool { return textOf(n) == "Claude" })) > 0 {
			t.Errorf("%s: the name became markup", path)
		}
		title := p.all("title", nil)[0]
		named := append(p.all("bdi", nil), title)
		for _, n := range named {
			if strings.ContainsAny(textOf(n), "\u202e\u2066\u200f\x00") && n != title || strings.Contains(textOf(n), "world") {
				t.Errorf("%s: the name was not cut to what is harmless: %q", path, textOf(n))
			}
		}
	}
}

func TestInertNamesStayReadable(t *testing.T) {
	for in, want := range map[string]string{
		"Claude Code": "Claude Code", "  VS\tCode \n": "VS Code", "كلود": "كلود", "\u202e\u200b": "", "Z\u0301\u0302\u0303\u0304algo": "Z\u0301\u0302algo",
		strings.Repeat("x", 60): strings.Repeat("x", longestName) + "…", "bad \xff byte": "bad byte",
	} {
		if got := inert(in); got != want {
			t.Errorf("inert(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestWhereTheAnswerGoesIsSaidLast(t *testing.T) {
	for _, tt := range []struct {
		pending oauth.Pending
		want    string
	}{
		{oauth.Pending{RedirectURI: "https://claude.ai/api/mcp/auth_callback", RedirectHost: "claude.ai"}, "claude.ai"},
		{oauth.Pending{RedirectURI: "http://127.0.0.1:4711/", RedirectHost: "127.0.0.1:4711", Loopback: true}, "127.0.0.1:4711"},
		{oauth.Pending{RedirectURI: "cursor://anysphere.cursor-mcp/oauth/callback", RedirectHost: "cursor:", PrivateScheme: "cursor"}, "cursor:"},
		{oauth.Pending{RedirectURI: "com.example.app:/cb", RedirectHost: "com.example.app:", PrivateScheme: "com.example.app"}, "com.example.app:"},
		{oauth.Pending{RedirectURI: "https://clаude.ai/cb", RedirectHost: "clаude.ai"}, "cl\uFFFDude.ai"}, // a Cyrillic а
	} {
		w := newWorld()
		b := newBrowser(t, serveWorld(t, w).URL)
		b.signIn(amira)
		at, _ := ask(b, "contacts:read")
		id := strings.TrimPrefix(at, "/consent/")
		tt.pending.Requested = scope.Of("contacts:read")
		w.pending[id] = tt.pending
		p := b.get(at)
		hosts := descendants(p.all("aside", nil)[0], "span", func(n *html.Node) bool { return trial.Attr(n, "class") == "host" })
		if last := textOf(hosts[len(hosts)-1]); last != tt.want {
			t.Errorf("%s: the last host is %q, want %q", tt.pending.RedirectURI, last, tt.want)
		}
	}
}

// Whoever listens on this machine may be another program than the one that is meant, also when a website vouches for it.
func TestAnAppOnThisMachineIsWarnedOf(t *testing.T) {
	const warning = "Any program on that computer can pass itself off as this one"
	for _, tt := range []struct {
		pending oauth.Pending
		want    bool
	}{
		{oauth.Pending{RedirectURI: "http://127.0.0.1:4711/", RedirectHost: "127.0.0.1:4711", Loopback: true}, true},
		{oauth.Pending{RedirectURI: "http://localhost:4711/", RedirectHost: "localhost:4711", Loopback: true, ClientHost: "claude.ai"}, true},
		{oauth.Pending{RedirectURI: "https://claude.ai/cb", RedirectHost: "claude.ai", ClientHost: "claude.ai"}, false},
	} {
		_, _, p, _ := pendingAs(t, amira, func(p *oauth.Pending) {
			tt.pending.Requested = p.Requested
			*p = tt.pending
		})
		if got := strings.Contains(textOf(p.root), warning); got != tt.want || !strings.Contains(textOf(p.root), tt.pending.RedirectHost) {
			t.Errorf("%+v: warned %t", tt.pending, got)
		}
	}
}

func TestTheConsentPageSaysHowLongItLasts(t *testing.T) {
	_, _, p, _ := pendingAs(t, amira, func(*oauth.Pending) {})
	slip := textOf(p.all("aside", nil)[0])
	for _, want := range []string{"The moment you revoke it", "By itself after 30 days without use"} {
		if !strings.Contains(slip, want) {
			t.Errorf("%q is not in %q", want, slip)
		}
	}
}

func TestAnAppThatIsAnsweredOrUnknownIsOver(t *testing.T) {
	w := newWorld()
	srv := serveWorld(t, w)
	b, other := newBrowser(t, srv.URL), newBrowser(t, srv.URL)
	b.signIn(amira)
	other.signIn(amira)
	at, _ := ask(b, "contacts:read")
	if got := other.get(at); got.status != http.StatusGone {
		t.Errorf("another browser sees status %d", got.status)
	}
	id := strings.TrimPrefix(at, "/consent/")
	answered := w.pending[id]
	answered.Decision = "approved"
	w.pending[id] = answered
	if got := b.get(at); got.status != http.StatusGone {
		t.Errorf("an answered request has status %d", got.status)
	}
}

func TestTheAuthorizeEndpointPassesErrorsOn(t *testing.T) {
	for _, tt := range []struct {
		name     string
		err      error
		status   int
		location string
		retry    string
	}{
		{"to the client, once somebody signed in", &oauth.RedirectError{Location: "cursor://x/cb?error=invalid_scope&state=%2B"}, http.StatusSeeOther, "/consent/waits", ""},
		{"to the person", &oauth.PageError{Status: http.StatusBadRequest, Reason: "bad_redirect"}, http.StatusBadRequest, "", ""},
		{"to the person, about an unknown app", &oauth.PageError{Status: http.StatusBadRequest, Reason: "unknown_client"}, http.StatusBadRequest, "", ""},
		{"later", &oauth.PageError{Status: http.StatusServiceUnavailable, Reason: "unavailable", RetryAfter: 2500 * time.Millisecond}, http.StatusServiceUnavailable, "", "3"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld()
			w.begin = tt.err
			got := newBrowser(t, serveWorld(t, w).URL).get("/oauth/authorize")
			if got.status != tt.status || got.header.Get("Location") != tt.location || got.header.Get("Retry-After") != tt.retry {
				t.Errorf("status %d, Location %q, Retry-After %q", got.status, got.header.Get("Location"), got.header.Get("Retry-After"))
			}
			if again := "emove this server in the app and add it again"; tt.status == http.StatusBadRequest && !strings.Contains(textOf(got.root), again) {
				t.Error("the page does not say how to go on")
			}
		})
	}
}

// Anybody can register an app with an address of theirs. A link to us must not lead there by itself.
func TestNobodyIsSentToAnAppWithAnErrorBeforeTheySignIn(t *testing.T) {
	w := newWorld()
	w.begin = &oauth.RedirectError{Location: "https://anybody.example/cb?error=invalid_scope&state=%2B", Mistake: "invalid_scope: None of the scopes exists here."}
	b := newBrowser(t, serveWorld(t, w).URL)
	for at, want := range map[string]string{"/oauth/authorize": "/consent/waits", "/consent/waits": "/sign-in?next=waits", "/sign-in?next=waits": ""} {
		if got := b.get(at).header.Get("Location"); got != want {
			t.Errorf("before the sign-in %s leads to %q, want %q", at, got, want)
		}
	}
	if page := b.get("/sign-in?next=waits"); !strings.Contains(textOf(page.root), "invalid_scope: None of the scopes exists here.") || !strings.Contains(textOf(page.root), "anybody.example") {
		t.Errorf("the sign-in page does not say what is wrong: %s", textOf(page.root))
	}
	b.signIn(amira)
	for _, at := range []string{"/consent/waits", "/oauth/authorize"} {
		if got := b.get(at); got.status != http.StatusSeeOther || got.header.Get("Location") != w.begin.(*oauth.RedirectError).Location {
			t.Errorf("after it %s answers %d and leads to %q", at, got.status, got.header.Get("Location"))
		}
	}
}

func TestAnAuthorizationRequestByPostGoesOnByGet(t *testing.T) {
	b := newBrowser(t, serveWorld(t, newWorld()).URL)
	b.header.Set("Origin", "https://app.example")
	got := b.post("/oauth/authorize?scope=a&state=x", url.Values{"state": {"a b", "c"}, "client_id": {"cli_1"}})
	if want := "/oauth/authorize?client_id=cli_1&state=a+b&state=c"; got.status != http.StatusSeeOther || got.header.Get("Location") != want {
		t.Errorf("status %d to %q, want %q", got.status, got.header.Get("Location"), want)
	}
	if got = b.post("/oauth/authorize", url.Values{"state": {strings.Repeat("a", maxForm)}}); got.status != http.StatusBadRequest {
		t.Errorf("a form that is too large answered %d", got.status)
	}
}
