package consentui

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/net/html"

	"switchboard/auth"
	"switchboard/auth/accounts"
	"switchboard/internal/audit"
	"switchboard/internal/caller"
	"switchboard/internal/scope"
	"switchboard/internal/trial"
)

func TestEveryPageCarriesTheHeaders(t *testing.T) {
	w := newWorld()
	w.setupLink = "link"
	srv := serveWorld(t, w)
	b := newBrowser(t, srv.URL)
	b.signIn(amira)
	at, _ := ask(b, "contacts:read")
	const strict = "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self' data:; frame-ancestors 'none'; base-uri 'none'"
	for path, policy := range map[string]string{
		"/connections": strict + "; form-action 'self'", "/connect": strict + "; form-action 'self'", "/keys": strict + "; form-action 'self'", "/audit": strict + "; form-action 'self'", "/clients": strict + "; form-action 'self'", "/authorize": strict + "; form-action 'self'",
		"/setup?link=link": strict + "; form-action 'self'", "/setup?link=other": strict + "; form-action 'self'", "/nowhere": strict + "; form-action 'self'",
		"/": strict + "; form-action 'self'", "/sign-in": strict + "; form-action 'self'", "/oauth/authorize": strict + "; form-action 'self'",
		at: strict, "/consent/unknown": strict,
	} {
		got := b.get(path).header
		want := http.Header{
			"Content-Security-Policy": {policy}, "Cache-Control": {"no-store"}, "Referrer-Policy": {"no-referrer"},
			"X-Content-Type-Options": {"nosniff"}, "X-Frame-Options": {"DENY"},
		}
		for name := range want {
			if diff := cmp.Diff(want[name], got[name]); diff != "" {
				t.Errorf("%s: %s (-want +got):\n%s", path, name, diff)
			}
		}
	}
}

func TestNoPageNeedsWhatThePolicyForbids(t *testing.T) {
	w := newWorld()
	w.connections, w.keys = []auth.Connection{connected("con_1", "Claude", amira, "contacts:read")}, []auth.Key{{ID: "key_1", Name: "Build"}}
	w.entries = []audit.Entry{entry("aud_1", "sign_in", audit.OK, caller.Browser, "")}
	w.apps = someApps()
	b := newBrowser(t, serveWorld(t, w).URL)
	b.signIn(amira)
	at, _ := ask(b, "contacts:read contacts:write")
	for _, path := range []string{"/connections", "/connect", "/connect?app=codex", "/keys", "/clients", "/clients?rotate=cli_1", "/audit", at, "/nowhere"} {
		p := b.get(path)
		for n := range p.root.Descendants() {
			for _, a := range n.Attr {
				if a.Key == "style" || strings.HasPrefix(a.Key, "on") {
					t.Errorf("%s: <%s %s=%q>", path, n.Data, a.Key, a.Val)
				}
			}
			if n.Type == html.ElementNode && (n.Data == "style" || n.Data == "script" && trial.Attr(n, "src") == "") {
				t.Errorf("%s: an inline <%s>", path, n.Data)
			}
		}
		if len(p.all("h1", nil)) != 1 || len(p.all("main", nil)) != 1 {
			t.Errorf("%s: a page has one h1 and one main", path)
		}
	}
}

func TestEveryFieldHasALabelAndEveryIDIsThereOnce(t *testing.T) {
	w := newWorld()
	w.setupLink = "link"
	w.connections = []auth.Connection{connected("con_1", "Claude", amira, "contacts:read"), connected("con_2", "Cursor", jonas, "org:read")}
	w.held[amira.ID+clinic.ID] = scope.Of("contacts:read", "contacts:write")
	w.apps = someApps()
	b := newBrowser(t, serveWorld(t, w).URL)
	setup, signIn := b.get("/setup?link=link"), b.get("/sign-in")
	b.signIn(amira)
	_, stepUp := ask(b, "contacts:read contacts:write org:read org:write calls:write")
	for _, p := range []*page{setup, signIn, stepUp, b.get("/connections"), b.get("/connect"), b.get("/connect?app=vscode"), b.get("/keys"), b.get("/clients"), b.get("/clients?block=cli_1"), b.get("/clients?rotate=cli_1"), b.get("/audit")} {
		title := textOf(p.all("title", nil)[0])
		labels, ids := map[string]bool{}, map[string]int{}
		for _, l := range p.all("label", nil) {
			labels[trial.Attr(l, "for")] = true
		}
		for n := range p.root.Descendants() {
			if id := trial.Attr(n, "id"); id != "" {
				ids[id]++
			}
		}
		for n := range p.root.Descendants() {
			field := n.Type == html.ElementNode && (n.Data == "input" && trial.Attr(n, "type") != "hidden" || n.Data == "select")
			if field && !labels[trial.Attr(n, "id")] && n.Parent.Data != "label" {
				t.Errorf("%s: %s %s has no label", title, n.Data, trial.Attr(n, "name"))
			}
			for _, ref := range []string{"for", "aria-labelledby", "aria-describedby", "commandfor", "popovertarget", "data-copy", "data-dialog"} {
				if id := trial.Attr(n, ref); id != "" && ids[id] != 1 {
					t.Errorf("%s: %s=%q points at %d elements", title, ref, id, ids[id])
				}
			}
		}
	}
}

func TestNobodyIsSentAwayFromHere(t *testing.T) {
	for next, want := range map[string]string{
		"": "/connections", "keys": "/keys", "connect": "/connect", "audit": "/audit", "req_1": "/consent/req_1", "https://evil.example": "/connections",
		"//evil.example": "/connections", "/\\evil.example": "/connections", "../evil": "/connections", "a\r\nb": "/connections",
	} {
		b := newBrowser(t, serveWorld(t, newWorld()).URL)
		form := b.get("/sign-in?next=" + url.QueryEscape(next)).form("/sign-in")
		form.Set("next", next)
		form.Set("email", amira.Email)
		form.Set("password", passphrase)
		// 303 and never 307, with which a browser would post the password on (RFC 9700 §4.12).
		if got := b.post("/sign-in", form); got.status != http.StatusSeeOther || got.header.Get("Location") != want {
			t.Errorf("next=%q leads with %d to %q, want %q", next, got.status, got.header.Get("Location"), want)
		}
	}
}

func TestPagesAskForTheSignInAndComeBack(t *testing.T) {
	b := newBrowser(t, serveWorld(t, newWorld()).URL)
	for path, want := range map[string]string{
		"/": "/sign-in", "/connections": "/sign-in?next=connections", "/keys": "/sign-in?next=keys", "/clients?block=x": "/sign-in?next=clients", "/connect?app=cursor": "/sign-in?next=connect", "/audit?who=x": "/sign-in?next=audit", "/consent/req_9": "/sign-in?next=req_9",
	} {
		if got := b.get(path); got.status != http.StatusSeeOther || got.header.Get("Location") != want {
			t.Errorf("%s leads to %q, want %q", path, got.header.Get("Location"), want)
		}
	}
}

func TestTheSignInSaysWhenNothingIsSetUp(t *testing.T) {
	for link, want := range map[string]bool{"": false, "link": true} {
		w := newWorld()
		w.setupLink = link
		if page := newBrowser(t, serveWorld(t, w).URL).get("/sign-in").body; strings.Contains(page, "not set up yet") != want {
			t.Errorf("set-up link %q: %v", link, !want)
		}
	}
}

func TestTheSignInNamesTheAppThatWaits(t *testing.T) {
	b := newBrowser(t, serveWorld(t, newWorld()).URL)
	at := b.get("/oauth/authorize").header.Get("Location")
	p := b.get(b.get(at).header.Get("Location"))
	if h := textOf(p.all("h1", nil)[0]); h != "Sign in to answer Claude Code" || !strings.Contains(p.body, "localhost:53682") {
		t.Errorf("the page says %q", h)
	}
	if p = b.get("/sign-in?next=req_unknown"); p.status != http.StatusOK || textOf(p.all("h1", nil)[0]) != "Sign in to Switchboard" {
		t.Errorf("for an unknown request the page has status %d", p.status)
	}
}

func TestASignInThatFailsSaysTheSameForEveryReason(t *testing.T) {
	w := newWorld()
	b := newBrowser(t, serveWorld(t, w).URL)
	texts := []string{}
	for _, email := range []string{amira.Email, "nobody@example.com"} {
		form := b.get("/sign-in").form("/sign-in")
		form.Set("email", email)
		form.Set("password", "wrong")
		p := b.post("/sign-in", form)
		if p.status != http.StatusUnprocessableEntity || p.form("/sign-in").Get("email") != email {
			t.Errorf("status %d, or the address was not kept", p.status)
		}
		texts = append(texts, strings.ReplaceAll(textOf(p.all("main", nil)[0]), email, ""))
	}
	if texts[0] != texts[1] {
		t.Error("the answers differ for a known and an unknown address")
	}
	w.throttled = 61 * time.Second
	form := b.get("/sign-in").form("/sign-in")
	if p := b.post("/sign-in", form); p.status != http.StatusTooManyRequests || p.header.Get("Retry-After") != "61" || !strings.Contains(p.body, "1:01") {
		t.Errorf("a pause answers %d with Retry-After %q", p.status, p.header.Get("Retry-After"))
	}
}

func TestSetUpKeepsWhatWasTypedButThePassword(t *testing.T) {
	w := newWorld()
	w.setupLink, w.setupWrong = "link", &accounts.Invalid{Field: "password", Reason: "too_short"}
	b := newBrowser(t, serveWorld(t, w).URL)
	form := b.get("/setup?link=link").form("/setup")
	typed := url.Values{"org": {"Harbor"}, "country": {"JO"}, "timezone": {"Asia/Amman"}, "locale": {"ar"}, "name": {"Amira"}, "email": {"a@b.example"}, "password": {"short"}}
	for k, v := range typed {
		form[k] = v
	}
	p := b.post("/setup", form)
	if p.status != http.StatusUnprocessableEntity {
		t.Fatalf("status %d", p.status)
	}
	kept := p.form("/setup")
	for k, v := range typed {
		if want := map[bool]string{true: "", false: v[0]}[k == "password"]; kept.Get(k) != want {
			t.Errorf("%s is %q, want %q", k, kept.Get(k), want)
		}
	}
	if marked := p.all("input", func(n *html.Node) bool { return trial.Attr(n, "aria-invalid") == "true" }); len(marked) != 1 || trial.Attr(marked[0], "name") != "password" {
		t.Errorf("%d fields are marked", len(marked))
	}
	w.setupWrong = nil
	if p = b.post("/setup", form); p.status != http.StatusSeeOther || p.header.Get("Location") != "/connections" || b.get("/connections").status != http.StatusOK {
		t.Errorf("the owner is not signed in: status %d to %q", p.status, p.header.Get("Location"))
	}
	want := []accounts.Setup{{Organization: "Harbor", Country: "JO", Timezone: "Asia/Amman", Locale: "ar", Name: "Amira", Email: "a@b.example", Password: "short"}}
	if diff := cmp.Diff(want, w.setups); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if p = b.get("/setup?link=link"); p.status != http.StatusGone {
		t.Errorf("the used link has status %d", p.status)
	}
}

func TestTheLinkOfASetUpIsThatOfTheForm(t *testing.T) {
	w := newWorld()
	w.setupLink = "link"
	b := newBrowser(t, serveWorld(t, w).URL)
	form := b.get("/setup?link=link").form("/setup")
	form.Del("link")
	if p := b.post("/setup?link=link", form); p.status != http.StatusGone || len(w.setups) != 0 {
		t.Errorf("a form without a link answered %d and set up %d organizations", p.status, len(w.setups))
	}
}

func TestSetUpSaysWhereTheDataIs(t *testing.T) {
	w := newWorld()
	w.setupLink = "link"
	for place, want := range map[string]string{
		"data/switchboard.db": "Nothing here costs money. Switchboard keeps its data in the file data/switchboard.db.", "": "Nothing here costs money.",
	} {
		mux := http.NewServeMux()
		srv := httptest.NewServer(mux)
		ui := newUI(t, w, srv.URL)
		ui.DatabaseNote = place
		ui.Routes(mux)
		aside := newBrowser(t, srv.URL).get("/setup?link=link").all("aside", nil)[0]
		if got := textOf(descendants(aside, "p", func(n *html.Node) bool { return trial.Attr(n, "class") == "small soft" })[0]); got != want {
			t.Errorf("%q: %q, want %q", place, got, want)
		}
		srv.Close()
	}
}

func TestAPageRunsForThePersonInTheOrganizationThatItShows(t *testing.T) {
	w := newWorld()
	amal := accounts.Person{ID: "per_amal", Email: "amal@harborstreet.example"} // no name
	w.people[amal.Email] = amal
	w.members[amal.ID] = []accounts.Membership{{Organization: clinic, Role: scope.Admin}, {Organization: dental, Role: scope.Viewer}}
	b := newBrowser(t, serveWorld(t, w).URL)
	b.signIn(amal)
	w.members[amal.ID] = w.members[amal.ID][1:] // the one that the session is in is gone
	p := b.get("/connections")
	got := w.callers[len(w.callers)-1]
	want := caller.Caller{Org: dental.ID, Person: amal.ID, PersonName: amal.Email, Role: scope.Viewer, Via: caller.Browser, ID: got.ID, Name: "Web page"}
	if diff := cmp.Diff(want, got); diff != "" || got.ID == "" || !strings.Contains(p.body, dental.Name) {
		t.Errorf("status %d (-want +got):\n%s", p.status, diff)
	}
}

func TestAScriptCanRevokeAnApp(t *testing.T) {
	for _, path := range []string{"/connections", "/connections?app=con_2&ask=revoke"} {
		w := newWorld()
		w.connections = []auth.Connection{connected("con_1", "Claude", amira, "contacts:read"), connected("con_2", "Cursor", jonas, "org:read")}
		b := newBrowser(t, serveWorld(t, w).URL)
		b.signIn(amira)
		action, form := b.get(path).formWith("revoke", "con_2")
		if got := b.post(action, form); action != "/connections" || got.status != http.StatusSeeOther {
			t.Fatalf("%s: posting to %s answered %d", path, action, got.status)
		}
		if len(w.connections) != 1 || w.connections[0].ID != "con_1" {
			t.Errorf("%s: %d connections are left", path, len(w.connections))
		}
		if got := b.post(action, form); got.status != http.StatusNotFound {
			t.Errorf("%s: the same form again answered %d", path, got.status)
		}
		last := w.callers[len(w.callers)-1]
		if want := (caller.Caller{Org: clinic.ID, Person: amira.ID, PersonName: amira.Name, Role: scope.Owner, Via: caller.Browser, ID: last.ID, Name: "Web page"}); !cmp.Equal(last, want) {
			t.Errorf("%s: it was done by %+v", path, last)
		}
	}
}

// The first of the list stands open when nothing was picked. It is never the one that a question is about.
func TestNobodyIsAskedToRevokeAnAppThatTheyDidNotPick(t *testing.T) {
	w := newWorld()
	w.connections = []auth.Connection{connected("con_1", "Claude", amira, "contacts:read"), connected("con_2", "Cursor", jonas, "org:read")}
	b := newBrowser(t, serveWorld(t, w).URL)
	b.signIn(amira)
	for path, asked := range map[string]bool{
		"/connections?app=con_2&ask=revoke": true, "/connections?app=con_3&ask=revoke": false, "/connections?app=&ask=revoke": false, "/connections?ask=revoke": false,
	} {
		p := b.get(path)
		status, question := http.StatusNotFound, strings.Contains(p.body, `id="h-ask"`)
		if asked {
			status = http.StatusOK
		}
		if p.status != status || question != asked {
			t.Errorf("%s: %d, asked %t", path, p.status, question)
		}
	}
}

func TestTheLogShowsRowsForProgramsAndHandsItsFiltersOn(t *testing.T) {
	w := newWorld()
	w.entries = []audit.Entry{entry("aud_1", "upsert_contact", audit.OK, caller.Connection, "Claude"), entry("aud_2", "sign_in", audit.Refused, caller.Browser, "")}
	b := newBrowser(t, serveWorld(t, w).URL)
	b.signIn(amira)
	p := b.get("/audit?action=sign_in&outcome=refused&who=per_amira&when=week")
	rows := []string{}
	for _, r := range p.all("tr", func(n *html.Node) bool { return trial.HasAttr(n, "data-action") }) {
		rows = append(rows, trial.Attr(r, "data-action")+" "+trial.Attr(r, "data-outcome"))
	}
	if diff := cmp.Diff([]string{"upsert_contact ok", "sign_in refused"}, rows); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	f := w.filters[0]
	if f.Since.IsZero() || time.Since(f.Since) > 7*24*time.Hour {
		t.Errorf("since %v", f.Since)
	}
	f.Since = time.Time{}
	if diff := cmp.Diff(audit.Filter{Action: "sign_in", Outcome: "refused", Actor: "per_amira"}, f); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	older := p.all("a", func(n *html.Node) bool { return textOf(n) == "Older" })
	if len(older) != 1 || !strings.Contains(trial.Attr(older[0], "href"), "cursor=1.aud_1") || !strings.Contains(trial.Attr(older[0], "href"), "action=sign_in") {
		t.Error("the next page loses the filters or the cursor")
	}
}

func TestTheLogIsForAdmins(t *testing.T) {
	b := newBrowser(t, serveWorld(t, newWorld()).URL)
	b.signIn(jonas)
	if got := b.get("/audit"); got.status != http.StatusForbidden {
		t.Errorf("status %d", got.status)
	}
	if p := b.get("/connections"); len(p.all("a", func(n *html.Node) bool { return trial.Attr(n, "href") == "/audit" })) > 0 {
		t.Error("a member is led to a page that refuses them")
	}
}

func TestThePersonChoosesTheOrganization(t *testing.T) {
	w := newWorld()
	w.members[amira.ID] = []accounts.Membership{{Organization: clinic, Role: scope.Owner}, {Organization: dental, Role: scope.Viewer}}
	b := newBrowser(t, serveWorld(t, w).URL)
	b.signIn(amira)
	action, form := b.get("/connections").formWith("org", dental.ID)
	b.post(action, form)
	b.get("/connections")
	if last := w.callers[len(w.callers)-1]; last.Org != dental.ID || last.Role != scope.Viewer {
		t.Errorf("the page is for %+v", last)
	}
	form.Set("org", "org_foreign")
	if got := b.post(action, form); got.status != http.StatusNotFound {
		t.Errorf("a foreign organization answered %d", got.status)
	}
}

func TestTroubleIsAPageWithAWayOn(t *testing.T) {
	w := newWorld()
	srv := serveWorld(t, w)
	b := newBrowser(t, srv.URL)
	if got := b.get("/nowhere"); got.status != http.StatusNotFound || !strings.Contains(got.body, "/sign-in") {
		t.Errorf("an unknown page has status %d", got.status)
	}
	b.signIn(amira)
	w.broken = errors.New("the database is gone")
	got := b.get("/connections")
	if got.status != http.StatusServiceUnavailable || got.header.Get("Retry-After") == "" || strings.Contains(got.body, "database") {
		t.Errorf("trouble has status %d and Retry-After %q", got.status, got.header.Get("Retry-After"))
	}
	w.broken = nil
	w.members[amira.ID] = nil
	if got := b.get("/connections"); got.status != http.StatusForbidden {
		t.Errorf("somebody without an organization sees status %d", got.status)
	}
}

func TestTheOrganizationsLanguageWins(t *testing.T) {
	w := newWorld()
	srv := serveWorld(t, w)
	for _, tt := range []struct{ accept, lang, want string }{
		{"", "", "en ltr"}, {"ar-JO,ar;q=0.9,en;q=0.5", "", "ar rtl"}, {"fr", "", "en ltr"}, {"ar", "en", "en ltr"}, {"en", "ar", "ar rtl"}, {"en", "xx", "en ltr"},
	} {
		b := newBrowser(t, srv.URL)
		b.header.Set("Accept-Language", tt.accept)
		b.get("/sign-in?lang=" + tt.lang)
		root := b.get("/sign-in").all("html", nil)[0]
		if got := trial.Attr(root, "lang") + " " + trial.Attr(root, "dir"); got != tt.want {
			t.Errorf("Accept-Language %q, chosen %q: %s, want %s", tt.accept, tt.lang, got, tt.want)
		}
	}
	arabic := clinic
	arabic.Locale = "ar"
	w.members[amira.ID] = []accounts.Membership{{Organization: arabic, Role: scope.Owner}}
	b := newBrowser(t, srv.URL)
	b.header.Set("Accept-Language", "en")
	b.signIn(amira)
	for _, path := range []string{"/connections", "/connect", "/keys", "/audit", "/nowhere"} {
		if root := b.get(path).all("html", nil)[0]; trial.Attr(root, "lang") != "ar" || trial.Attr(root, "dir") != "rtl" {
			t.Errorf("%s speaks %s", path, trial.Attr(root, "lang"))
		}
	}
}

func TestAssetsAreKeptForGoodUnderTheNameOfTheirContent(t *testing.T) {
	b := newBrowser(t, serveWorld(t, newWorld()).URL)
	p := b.get("/sign-in")
	links := append(p.all("link", nil), p.all("script", nil)...)
	for _, n := range links {
		path := trial.Attr(n, "href") + trial.Attr(n, "src")
		got := b.get(path)
		if got.status != http.StatusOK || got.header.Get("Cache-Control") != "public, max-age=31536000, immutable" || got.header.Get("Content-Type") == "" {
			t.Errorf("%s: status %d, %q", path, got.status, got.header)
		}
	}
	if got := b.get("/assets/app.css"); len(links) != 3 || got.status != http.StatusNotFound {
		t.Errorf("%d assets; a name without its hash answered %d", len(links), got.status)
	}
}

func TestAProgramAtAnAddressThatNothingIsAtReadsJSON(t *testing.T) {
	srv := serveWorld(t, newWorld())
	for _, c := range []struct {
		method, path, accept string
		status               int
		media, allow         string
	}{
		{"GET", "/nowhere", "application/json", 404, "application/json", ""},
		{"GET", "/nowhere", "*/*", 404, "application/json", ""},
		{"POST", "/nowhere", "text/html,*/*", 404, "text/html; charset=utf-8", ""},
		{"GET", "/assets/nothing.css", "text/css,*/*", 404, "application/json", ""},
		{"PUT", "/keys", "*/*", 405, "application/json", "GET, HEAD, POST"},
		{"DELETE", "/audit", "text/html", 405, "text/html; charset=utf-8", "GET, HEAD"},
		{"PUT", "/oauth/authorize", "", 405, "application/json", "GET, HEAD, POST"},
	} {
		req, err := http.NewRequestWithContext(t.Context(), c.method, srv.URL+c.path, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Accept", c.accept)
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		if h := resp.Header; resp.StatusCode != c.status || h.Get("Content-Type") != c.media || h.Get("Allow") != c.allow {
			t.Errorf("%s %s: %d %q %q", c.method, c.path, resp.StatusCode, h.Get("Content-Type"), h.Get("Allow"))
		}
	}
}
