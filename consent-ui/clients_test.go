package consentui

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/net/html"

	"switchboard/auth/accounts"
	"switchboard/auth/oauth"
	"switchboard/internal/scope"
	"switchboard/internal/trial"
)

// someApps are one of each kind.
func someApps() []oauth.Client {
	return []oauth.Client{
		{ID: "cli_1", Name: "Booking", Made: true, Method: "client_secret_basic", Redirects: []string{"https://booking.example/cb"}, CreatedAt: agreed},
		{ID: "https://claude.example/client.json", Name: "Claude", Host: "claude.example", Method: "none", Redirects: []string{"http://localhost/callback"}, Connections: 2, CreatedAt: agreed, UsedAt: agreed},
		{ID: "cli_2", Name: "<b>Claude</b>\u202e", Method: "none", Redirects: []string{"evil://claude.example"}, CreatedAt: agreed, BlockedAt: agreed},
	}
}

func TestAnAdministratorRegistersAnAppAndSeesItsSecretOnce(t *testing.T) {
	w := newWorld()
	b := newBrowser(t, serveWorld(t, w).URL)
	b.signIn(amira)
	action, form := b.get("/clients").formWith("create", "client")
	form.Set("name", " Booking ")
	form.Set("redirects", "https://booking.example/cb\r\n\r\n http://localhost/cb ")
	form.Set("method", "client_secret_post")
	p := b.post(action, form)
	byID := func(p *page, id string) string {
		for _, n := range p.all("code", func(n *html.Node) bool { return trial.Attr(n, "id") == id }) {
			return textOf(n)
		}
		return ""
	}
	if p.status != http.StatusOK || byID(p, "client-secret") != "sb_cs_shown_once" || byID(p, "client-id") != "cli_new" || !strings.HasSuffix(byID(p, "discovery"), "/.well-known/oauth-authorization-server") {
		t.Fatalf("status %d: %q %q %q", p.status, byID(p, "client-secret"), byID(p, "client-id"), byID(p, "discovery"))
	}
	want := []oauth.Client{{ID: "cli_new", Name: "Booking", Redirects: []string{"https://booking.example/cb", "http://localhost/cb"}, Method: "client_secret_post", Made: true}}
	if diff := cmp.Diff(want, w.apps); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if strings.Contains(b.get("/clients").body, "sb_cs_") {
		t.Error("the secret is shown a second time")
	}
	action, form = b.get("/clients?rotate=cli_new").formWith("rotate", "cli_new")
	if form.Get("leaked") != "no" || form.Get("mark") != w.apps[0].Mark {
		t.Errorf("before the person chooses, the old secret is %q", form.Get("leaked"))
	}
	if p := b.post(action, form); byID(p, "client-secret") != "sb_cs_rotated" || !strings.Contains(p.body, "works until") || w.apps[0].OldUntil.IsZero() {
		t.Errorf("rotating: %d %+v", p.status, w.apps[0])
	}
	if p := b.post(action, form); p.status != http.StatusConflict || strings.Contains(p.body, "sb_cs_") || !strings.Contains(p.body, "newer secret") {
		t.Errorf("the same form again: %d", p.status)
	}
	_, form = b.get("/clients?rotate=cli_new").formWith("rotate", "cli_new")
	form.Set("leaked", "yes")
	if p := b.post(action, form); byID(p, "client-secret") != "sb_cs_rotated" || strings.Contains(p.body, "works until") || !w.apps[0].OldUntil.IsZero() {
		t.Errorf("rotating a leaked one: %d %+v", p.status, w.apps[0])
	}
}

func TestAnAppThatIsRefusedMarksTheFieldAndKeepsWhatWasTyped(t *testing.T) {
	for field, change := range map[string]func(url.Values){"name": func(f url.Values) { f.Set("name", "") }, "redirects": func(f url.Values) { f.Set("redirects", " ") }} {
		w := newWorld()
		b := newBrowser(t, serveWorld(t, w).URL)
		b.signIn(amira)
		action, form := b.get("/clients").formWith("create", "client")
		form.Set("name", "Booking")
		form.Set("redirects", "https://booking.example/cb")
		form.Set("method", "private_key_jwt")
		form.Set("jwks_uri", "https://booking.example/keys")
		change(form)
		p := b.post(action, form)
		if diff := cmp.Diff([]string{field + "-error"}, p.marked()); diff != "" || p.status != http.StatusUnprocessableEntity || len(w.apps) != 0 {
			t.Errorf("%s: status %d (-want +got):\n%s", field, p.status, diff)
		}
		if _, kept := p.formWith("create", "client"); kept.Get("method") != "private_key_jwt" || kept.Get("jwks_uri") != "https://booking.example/keys" {
			t.Errorf("%s: %v", field, kept)
		}
	}
}

func TestAnAdministratorBlocksAnAppAndLetsItAskAgain(t *testing.T) {
	w := newWorld()
	w.apps = someApps()
	b := newBrowser(t, serveWorld(t, w).URL)
	b.signIn(amira)
	list := b.get("/clients")
	for _, want := range []string{"Published by", "claude.example", "Registered here by an administrator.", "nobody has checked its name", "&lt;b&gt;Claude&lt;/b&gt;", "1 of them is blocked"} {
		if !strings.Contains(list.body, want) {
			t.Errorf("the list lacks %q", want)
		}
	}
	const id = "https://claude.example/client.json"
	question := b.get("/clients?block=" + url.QueryEscape(id))
	if !strings.Contains(question.body, "2 connections end") {
		t.Error("the question does not say what ends")
	}
	action, form := question.formWith("block", id)
	if got := b.post(action, form); got.status != http.StatusSeeOther || w.apps[1].BlockedAt.IsZero() {
		t.Errorf("blocking: %d %+v", got.status, w.apps[1])
	}
	action, form = b.get("/clients").formWith("unblock", id)
	if got := b.post(action, form); got.status != http.StatusSeeOther || !w.apps[1].BlockedAt.IsZero() {
		t.Errorf("unblocking: %d %+v", got.status, w.apps[1])
	}
	form.Del("unblock")
	form.Set("block", "cli_nobody")
	if got := b.post(action, form); got.status != http.StatusNotFound || !strings.Contains(got.body, "Nothing was changed") {
		t.Errorf("an app that is gone: %d", got.status)
	}
}

func TestTheListOfAppsSaysWhenEachCameAndWasUsedLast(t *testing.T) {
	w := newWorld()
	w.apps = someApps()
	w.apps[1].UsedAt = agreed.AddDate(0, 0, 3)
	b := newBrowser(t, serveWorld(t, w).URL)
	b.signIn(amira)
	got := map[string][]string{}
	for _, row := range b.get("/clients").all("tr", nil)[1:] {
		said := []string{}
		for _, n := range descendants(row, "time", nil) {
			said = append(said, trial.Attr(n, "datetime"))
		}
		if strings.Contains(textOf(row), "Not yet") {
			said = append(said, "never used")
		}
		got[textOf(descendants(row, "bdi", nil)[0])] = said
	}
	const came, used = "2026-11-14T09:12:00Z", "2026-11-17T09:12:00Z"
	want := map[string][]string{"Booking": {came, "never used"}, "Claude": {came, used}, "<b>Claude</b>": {came, "never used"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestAppsAreForAdministrators(t *testing.T) {
	w := newWorld()
	b := newBrowser(t, serveWorld(t, w).URL)
	b.signIn(jonas) // a member
	if got := b.get("/clients"); got.status != http.StatusForbidden || strings.Contains(b.get("/connections").body, `href="/clients"`) {
		t.Errorf("a member gets %d", got.status)
	}
}

// pendingAs has the next request be what change makes of it.
func pendingAs(t *testing.T, person accounts.Person, change func(*oauth.Pending)) (*browser, string, *page, *world) {
	t.Helper()
	w := newWorld()
	b := newBrowser(t, serveWorld(t, w).URL)
	b.signIn(person)
	at, _ := ask(b, "contacts:read")
	id := strings.TrimPrefix(at, "/consent/")
	p := w.pending[id]
	change(&p)
	w.pending[id] = p
	return b, at, b.get(at), w
}

func TestTheConsentPageTellsWhatIsKnownOfAnApp(t *testing.T) {
	_, _, p, _ := pendingAs(t, amira, func(p *oauth.Pending) { p.ClientHost = "claude.example:8443" })
	if text := textOf(p.root); !strings.Contains(text, "claude.example:8443 publishes it, which is checked. It calls itself Claude Code.") {
		t.Error("a document's host is not told")
	}
	_, _, p, _ = pendingAs(t, amira, func(p *oauth.Pending) { p.OnlyOrg = clinic.ID })
	if text := textOf(p.root); !strings.Contains(text, "An administrator of Harbor Street Clinic registered it as Claude Code.") {
		t.Error("whose app it is is not told")
	}
	_, _, p, _ = pendingAs(t, amira, func(p *oauth.Pending) { p.OnlyOrg = dental.ID })
	if p.status != http.StatusForbidden || !strings.Contains(p.body, "for another organization") {
		t.Errorf("an app of another organization: %d", p.status)
	}
	_, _, p, _ = pendingAs(t, amira, func(p *oauth.Pending) { p.BlockedIn = []string{clinic.ID} })
	if len(p.all("button", func(n *html.Node) bool { return trial.Attr(n, "value") == "approve" })) != 0 || !strings.Contains(p.body, "blocked") {
		t.Error("a blocked app can be allowed")
	}
	w := newWorld()
	w.members[amira.ID] = append(w.members[amira.ID], accounts.Membership{Organization: dental, Role: scope.Viewer})
	b := newBrowser(t, serveWorld(t, w).URL)
	b.signIn(amira)
	at, _ := ask(b, "contacts:read")
	pending := w.pending[strings.TrimPrefix(at, "/consent/")]
	pending.BlockedIn = []string{clinic.ID}
	w.pending[pending.ID] = pending
	if got := b.get(at).form(at).Get("org"); got != dental.ID {
		t.Errorf("picked is %q, where the app is blocked", got)
	}
}

func TestABadDocumentIsToldToItsMaker(t *testing.T) {
	for reason, want := range map[string]string{"document_invalid": "Its client_id is not", "document_unreachable": "could not fetch it", "document_refused": "does not accept apps"} {
		w := newWorld()
		w.begin = &oauth.PageError{Status: 400, Reason: reason, Detail: map[bool]string{true: "Its client_id is not <here>."}[reason == "document_invalid"]}
		b := newBrowser(t, serveWorld(t, w).URL)
		for _, path := range []string{"/oauth/authorize", "/authorize"} {
			if p := b.get(path); p.status != 400 || !strings.Contains(p.body, want) || strings.Contains(p.body, "<here>") {
				t.Errorf("%s at %s: %d", reason, path, p.status)
			}
		}
	}
}
