package consentui

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"switchboard/auth"
	"switchboard/auth/accounts"
	"switchboard/auth/oauth"
	"switchboard/internal/audit"
	"switchboard/internal/caller"
	"switchboard/internal/fault"
	"switchboard/internal/scope"
	"switchboard/internal/store"
	"switchboard/tools/kit"
)

// world stands in for the rest of the product: it keeps what the pages were told, and says what a test wants said.
// The e2e tests run the pages on the real thing.
type world struct {
	apps        []oauth.Client
	people      map[string]accounts.Person // by address; every password is passphrase
	members     map[string][]accounts.Membership
	sessions    map[string]accounts.Session
	issued      int
	throttled   time.Duration
	setupLink   string
	setupWrong  *accounts.Invalid
	setups      []accounts.Setup
	signIns     []string
	broken      error
	pending     map[string]oauth.Pending
	browsers    map[string]string // consent request → browser
	held        map[string]scope.Set
	begin       error
	waiting     *oauth.RedirectError
	decisions   []oauth.Decision
	location    string
	connections []auth.Connection
	keys        []auth.Key
	newKeys     []auth.NewKey
	callers     []caller.Caller
	entries     []audit.Entry
	filters     []audit.Filter
	tools       kit.Registry
}

const passphrase = "correct horse battery staple"

var (
	amira  = accounts.Person{ID: "per_amira", Email: "amira@harborstreet.example", Name: "Amira Nasser"}
	jonas  = accounts.Person{ID: "per_jonas", Email: "jonas@harborstreet.example", Name: "Jonas Reed"}
	agreed = time.Date(2026, 11, 14, 9, 12, 0, 0, time.UTC)
	clinic = accounts.Organization{ID: "org_clinic", Name: "Harbor Street Clinic", HomeCountry: "US", Timezone: "America/Los_Angeles", Locale: "en"}
	dental = accounts.Organization{ID: "org_dental", Name: "Harbor Street Dental", HomeCountry: "US", Timezone: "America/Los_Angeles", Locale: "en"}
)

func newWorld() *world {
	return &world{
		people:   map[string]accounts.Person{amira.Email: amira, jonas.Email: jonas},
		members:  map[string][]accounts.Membership{amira.ID: {{Organization: clinic, Role: scope.Owner}}, jonas.ID: {{Organization: clinic, Role: scope.Member}}},
		sessions: map[string]accounts.Session{}, pending: map[string]oauth.Pending{}, browsers: map[string]string{}, held: map[string]scope.Set{},
		location: "http://localhost:53682/callback?code=sb_ac_1&state=a%2Fb&iss=http%3A%2F%2Flocalhost",
		tools:    testTools(),
	}
}

// testTools are tools of every kind of consequence, most of which the product does not have yet.
func testTools() kit.Registry {
	type none struct{}
	do := func(context.Context, none) (none, error) { return none{}, nil }
	tool := func(name, title, needs string, effect kit.Effect, spends bool) kit.Tool {
		return kit.New(kit.Spec{Name: name, Title: title, Scope: needs, Effect: effect, Spends: spends, Unconfirmed: "a test", Doc: "For tests.", Example: "{}"}, do)
	}
	return kit.NewRegistry(kit.Area{Name: "test", Tools: []kit.Tool{
		tool("list_calls", "List calls", "calls:read", kit.Read, false), tool("get_call", "Get a call", "calls:read", kit.Read, false),
		tool("start_call", "Start a call", "calls:write", kit.Write, true), tool("end_call", "End a call", "calls:write", kit.Write, false),
		tool("list_numbers", "List numbers", "numbers:read", kit.Read, false), tool("release_number", "Release a number", "numbers:write", kit.Destroy, false),
		tool("list_contacts", "List contacts", "contacts:read", kit.Read, false), tool("get_contact", "Get a contact", "contacts:read", kit.Read, false),
		tool("upsert_contact", "Create or update a contact", "contacts:write", kit.Write, false), tool("set_do_not_call", "Set do-not-call", "contacts:write", kit.Write, false),
		tool("get_organization", "Get the organization", "org:read", kit.Read, false), tool("update_outbound_settings", "Update outbound settings", "org:write", kit.Write, false),
		tool("get_usage", "Get usage", "usage:read", kit.Read, false),
		tool("list_webhooks", "List webhooks", "webhooks:read", kit.Read, false), tool("create_webhook", "Create a webhook", "webhooks:write", kit.Write, false),
	}})
}

func (w *world) Catalog() *scope.Catalog {
	group := func(name string, on bool, scopes ...string) scope.Group {
		return scope.Group{Name: name, Scopes: scope.Of(scopes...), Default: on}
	}
	return scope.NewCatalog([]scope.Group{
		group("calls", true, "calls:read", "calls:write"), group("contacts", true, "contacts:read", "contacts:write"),
		group("numbers", true, "numbers:read", "numbers:write"), group("billing", true, "usage:read"),
		group("webhooks", false, "webhooks:read", "webhooks:write"), group("organization", true, "org:read", "org:write"),
	}, nil, w.tools.Needed())
}

func (w *world) SignIn(_ context.Context, email, password, _ string) (accounts.Person, error) {
	w.signIns = append(w.signIns, email)
	if w.throttled > 0 {
		return accounts.Person{}, &accounts.Throttled{RetryAfter: w.throttled}
	}
	if p, ok := w.people[email]; ok && password == passphrase {
		return p, nil
	}
	return accounts.Person{}, accounts.ErrMismatch
}

func (w *world) Memberships(_ context.Context, personID string) ([]accounts.Membership, error) {
	return w.members[personID], w.broken
}

func (w *world) StartSession(_ context.Context, personID string) (string, accounts.Session, error) {
	w.issued++
	token := fmt.Sprintf("sb_bs_%d", w.issued)
	for _, p := range w.people {
		if p.ID == personID {
			s := accounts.Session{ID: "ses_" + token, Person: p}
			if m := w.members[personID]; len(m) > 0 {
				s.OrgID = m[0].Organization.ID
			}
			w.sessions[token] = s
		}
	}
	return token, w.sessions[token], nil
}

func (w *world) Session(_ context.Context, token string) (accounts.Session, error) {
	if s, ok := w.sessions[token]; ok {
		return s, nil
	}
	return accounts.Session{}, accounts.ErrNoSession
}

func (w *world) UseOrganization(_ context.Context, sessionID, orgID string) error {
	for token, s := range w.sessions {
		if s.ID == sessionID {
			s.OrgID = orgID
			w.sessions[token] = s
		}
	}
	return nil
}

func (w *world) EndSession(_ context.Context, sessionID string) error {
	for token, s := range w.sessions {
		if s.ID == sessionID {
			w.sessions[token] = accounts.Session{}
		}
	}
	maps.DeleteFunc(w.sessions, func(_ string, s accounts.Session) bool { return s.ID == "" })
	return nil
}

func (w *world) HasOwner(context.Context) (bool, error) { return w.setupLink == "", w.broken }

func (w *world) SetupOpen(_ context.Context, link string) error {
	if link == "" || link != w.setupLink {
		return accounts.ErrNoSetup
	}
	return nil
}

func (w *world) CompleteSetup(ctx context.Context, link string, in accounts.Setup) (accounts.Person, error) {
	if err := w.SetupOpen(ctx, link); err != nil {
		return accounts.Person{}, err
	}
	if w.setupWrong != nil {
		return accounts.Person{}, w.setupWrong
	}
	w.setups, w.setupLink = append(w.setups, in), ""
	return amira, nil
}

func (w *world) Connections(ctx context.Context) ([]auth.Connection, error) {
	w.note(ctx)
	return w.connections, w.broken
}

func (w *world) RevokeConnection(ctx context.Context, id string) error {
	w.note(ctx)
	before := len(w.connections)
	w.connections = slices.DeleteFunc(w.connections, func(c auth.Connection) bool { return c.ID == id })
	if len(w.connections) == before {
		return fault.New(fault.NotFound, "No such connection.")
	}
	return nil
}

func (w *world) Keys(ctx context.Context) ([]auth.Key, error) {
	w.note(ctx)
	return w.keys, nil
}

func (w *world) CreateKey(ctx context.Context, n auth.NewKey) (string, auth.Key, error) {
	w.note(ctx)
	switch {
	case n.Name == "":
		return "", auth.Key{}, fault.New(fault.InvalidRequest, "A key needs a name.").With("field", "name")
	case len(n.Scopes) == 0:
		return "", auth.Key{}, fault.New(fault.InvalidRequest, "A key needs a scope.").With("field", "scope")
	}
	w.newKeys = append(w.newKeys, n)
	k := auth.Key{ID: fmt.Sprintf("key_%d", len(w.keys)+1), Name: n.Name, Hint: "sb_live_7Qx2", PersonID: amira.ID, PersonName: amira.Name, Scopes: n.Scopes, CreatedAt: time.Now()}
	if n.Expires > 0 {
		k.ExpiresAt = time.Now().Add(n.Expires)
	}
	w.keys = append([]auth.Key{k}, w.keys...)
	return "sb_live_7Qx2mBvT9cKpWn4LrYd8HsJf3GzAeU6o", k, nil
}

func (w *world) RevokeKey(ctx context.Context, id string) error {
	w.note(ctx)
	before := len(w.keys)
	w.keys = slices.DeleteFunc(w.keys, func(k auth.Key) bool { return k.ID == id })
	if len(w.keys) == before {
		return fault.New(fault.NotFound, "No such key.")
	}
	return nil
}

func (w *world) note(ctx context.Context) {
	c, _ := caller.From(ctx)
	w.callers = append(w.callers, c)
}

func (w *world) Begin(r *http.Request, browser string) (string, error) {
	if w.begin != nil {
		return "", w.begin
	}
	id := fmt.Sprintf("req_%d", len(w.pending)+1)
	w.browsers[id], w.pending[id] = browser, oauth.Pending{
		ID: id, ClientID: "cli_1", ClientName: cmpOr(r.URL.Query().Get("client_name"), "Claude Code"),
		RedirectURI: "http://localhost:53682/callback", RedirectHost: "localhost:53682", Loopback: true,
		Resource: "http://localhost:8080/mcp", Requested: cmpSet(scope.Parse(r.URL.Query().Get("scope")), w.Catalog().Default()),
	}
	return id, nil
}

func (w *world) Pending(_ context.Context, id, browser string) (oauth.Pending, error) {
	if w.browsers[id] != browser {
		return oauth.Pending{}, oauth.ErrGone
	}
	if w.waiting != nil && id == "waits" {
		return oauth.Pending{}, w.waiting
	}
	return w.pending[id], nil
}

func (w *world) Wait(_ context.Context, browser string, back *oauth.RedirectError) (string, error) {
	w.browsers["waits"], w.waiting = browser, back
	return "waits", nil
}

func (w *world) Held(_ context.Context, _ oauth.Pending, personID, orgID string) (scope.Set, time.Time, error) {
	return w.held[personID+orgID], agreed, nil
}

func (w *world) Decide(_ context.Context, id, browser string, d oauth.Decision) (string, error) {
	if w.browsers[id] != browser {
		return "", oauth.ErrGone
	}
	w.decisions = append(w.decisions, d)
	return w.location, nil
}

func (w *world) Clients(ctx context.Context) ([]oauth.Client, error) {
	w.note(ctx)
	if c, _ := caller.From(ctx); !c.Role.SeesAll() {
		return nil, fault.New(fault.Forbidden, "Not yours.")
	}
	return w.apps, w.broken
}

func (w *world) MakeClient(ctx context.Context, n oauth.NewClient) (string, oauth.Client, error) {
	w.note(ctx)
	if n.Name == "" || len(n.Redirects) == 0 {
		return "", oauth.Client{}, fault.New(fault.InvalidRequest, "No.").With("field", cmpOr(map[bool]string{true: "name"}[n.Name == ""], "redirects"))
	}
	app := oauth.Client{ID: "cli_new", Name: n.Name, Redirects: n.Redirects, Method: n.Method, Made: true}
	w.apps = append(w.apps, app)
	return "sb_cs_shown_once", app, nil
}

func (w *world) RotateSecret(ctx context.Context, id, mark string, leaked bool) (string, oauth.Client, error) {
	if i := slices.IndexFunc(w.apps, func(a oauth.Client) bool { return a.ID == id }); i >= 0 && w.apps[i].Mark != mark {
		return "", oauth.Client{}, oauth.ErrSecretChanged
	}
	app, err := w.change(ctx, id, func(a *oauth.Client) {
		a.Mark += "+"
		if a.OldUntil = agreed; leaked {
			a.OldUntil = time.Time{}
		}
	})
	return "sb_cs_rotated", app, err
}

func (w *world) BlockClient(ctx context.Context, id string) error {
	_, err := w.change(ctx, id, func(a *oauth.Client) { a.BlockedAt = agreed })
	return err
}

func (w *world) UnblockClient(ctx context.Context, id string) error {
	_, err := w.change(ctx, id, func(a *oauth.Client) { a.BlockedAt = time.Time{} })
	return err
}

// change changes an app that is here.
func (w *world) change(ctx context.Context, id string, f func(*oauth.Client)) (oauth.Client, error) {
	w.note(ctx)
	i := slices.IndexFunc(w.apps, func(a oauth.Client) bool { return a.ID == id })
	if i < 0 {
		return oauth.Client{}, fault.New(fault.NotFound, "No.")
	}
	f(&w.apps[i])
	return w.apps[i], nil
}

func (w *world) List(_ context.Context, f audit.Filter) ([]audit.Entry, string, error) {
	w.filters = append(w.filters, f)
	next := ""
	if len(w.entries) > 0 && f.Cursor == "" {
		next = "1.aud_1"
	}
	return w.entries, next, nil
}

func (w *world) Count(context.Context, audit.Filter) (int64, error) {
	return int64(len(w.entries)), nil
}

func (w *world) Actors(context.Context) ([]audit.Actor, error) {
	return []audit.Actor{{ID: amira.ID, Name: amira.Name}, {ID: "con_1", Name: "Claude"}, {ID: "con_2"}}, nil
}

func (w *world) Actions(context.Context) ([]string, error) {
	return []string{"consent", "sign_in", "upsert_contact"}, nil
}

func cmpOr(a, b string) string {
	if a == "" {
		return b
	}
	return a
}

func cmpSet(a, b scope.Set) scope.Set {
	if len(a) == 0 {
		return b
	}
	return a
}

// connected is a connection for the pages to show.
func connected(id, app string, person accounts.Person, scopes ...string) auth.Connection {
	return auth.Connection{
		ID: id, PersonID: person.ID, PersonName: person.Name, ClientID: "cli_" + id, ClientName: app, RedirectHost: "localhost:53682",
		Scopes: scope.Of(scopes...), CreatedAt: agreed, UsedAt: agreed.Add(time.Hour),
		Grants: []auth.Grant{{ID: "gra_" + id, Scopes: scope.Of(scopes...), CreatedAt: agreed, ExpiresAt: agreed.Add(30 * 24 * time.Hour)}},
	}
}

func entry(id, action string, outcome audit.Outcome, via caller.Kind, name string) audit.Entry {
	return audit.Entry{
		ID: id, OrgID: store.OrgID(clinic.ID), At: store.At(agreed), Action: action, Outcome: outcome, PersonID: amira.ID, PersonName: amira.Name,
		Via: via, ViaID: "via_1", ViaName: name, Subject: "sub_1", RequestID: "req_abc", Detail: audit.Detail{"scopes": "contacts:read"},
	}
}

// serveWorld serves the pages over plain http at the address that browsers will use.
func serveWorld(t testing.TB, w *world) *httptest.Server {
	t.Helper()
	mux := http.NewServeMux()
	srv := httptest.NewServer(mux)
	t.Cleanup(srv.Close)
	newUI(t, w, srv.URL).Routes(mux)
	return srv
}

func newUI(t testing.TB, w *world, issuer string) *UI {
	t.Helper()
	origin, err := url.Parse(issuer)
	if err != nil {
		t.Fatal(err)
	}
	ui, err := New(Config{
		Issuer: origin, Accounts: w, Auth: w, OAuth: w, Audit: w, Tools: w.tools, Log: slog.New(slog.DiscardHandler),
		Version: "0.1", FormKeys: [][]byte{[]byte(strings.Repeat("k", 32))}, IdleEnd: 30 * 24 * time.Hour, DatabaseNote: "data/switchboard.db",
	})
	if err != nil {
		t.Fatal(err)
	}
	return ui
}

// signInCookies are the cookies that a sign-in sets, with a form of ours for the browser that is named in cookie.
func signInCookies(t testing.TB, ui *UI, cookie string) []*http.Cookie {
	t.Helper()
	mux := http.NewServeMux()
	ui.Routes(mux)
	first := httptest.NewRecorder()
	mux.ServeHTTP(first, httptest.NewRequest(http.MethodGet, "/sign-in", nil))
	id := first.Result().Cookies()[0]
	form := url.Values{"email": {amira.Email}, "password": {passphrase}, "csrf": {ui.seal(id.Value, "sign-in", "", "").Token}}
	req := httptest.NewRequest(http.MethodPost, "/sign-in", strings.NewReader(form.Encode()))
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.AddCookie(&http.Cookie{Name: cookie, Value: id.Value})
	second := httptest.NewRecorder()
	mux.ServeHTTP(second, req)
	if second.Code != http.StatusSeeOther {
		t.Fatalf("the sign-in answered %d", second.Code)
	}
	return append(first.Result().Cookies(), second.Result().Cookies()...)
}
