package auth

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"switchboard/auth/accounts"
	"switchboard/internal/audit"
	"switchboard/internal/caller"
	"switchboard/internal/fault"
	"switchboard/internal/scope"
	"switchboard/internal/seal"
	"switchboard/internal/store"
	"switchboard/internal/store/storetest"
	"switchboard/internal/trial"
)

const (
	issuer   = "https://switch.example"
	resource = issuer + "/mcp"
)

func catalog() *scope.Catalog {
	groups := []scope.Group{
		{Name: "contacts", Scopes: scope.Of("contacts:read", "contacts:write"), Default: true},
		{Name: "organization", Scopes: scope.Of("org:read", "org:write"), Default: true},
		{Name: "billing", Scopes: scope.Of("billing:read")},
	}
	umbrellas := map[string]scope.Set{"people": scope.Of("contacts:read", "contacts:write", "people:delete")}
	return scope.NewCatalog(groups, umbrellas, scope.Of("contacts:read", "contacts:write", "org:read", "org:write", "billing:read"))
}

// world has people of every role in one organization and an owner in another.
type world struct {
	t             testing.TB
	store         *store.Store
	auth          *Auth
	audit         *audit.Log
	people        map[scope.Role]accounts.Person
	neighbour     accounts.Person
	org, otherOrg accounts.Organization
}

// resources are the endpoint, two parts of it, and one that is none of its parts.
func resources() []Resource {
	part := scope.NewCatalog([]scope.Group{{Name: "organization", Scopes: scope.Of("org:read", "org:write"), Default: true}}, nil, scope.Of("org:read", "org:write"))
	return []Resource{
		{URL: resource, Scopes: catalog()}, {URL: resource + "/mail", Scopes: part, Whole: resource}, {URL: resource + "/apps", Scopes: part, Whole: resource},
		{URL: issuer + "/v1", Scopes: catalog()},
	}
}

func newWorld(t testing.TB) *world {
	t.Helper()
	w := &world{t: t, store: storetest.Open(t), people: map[scope.Role]accounts.Person{}}
	ring := trial.Ring(t, "k1")
	w.audit = audit.New(w.store)
	people := accounts.New(accounts.Config{
		Store: w.store, Secrets: ring, Audit: w.audit, Log: slog.New(slog.DiscardHandler), Hashing: accounts.Hashing{MemoryKiB: 64, Iterations: 1},
	})
	w.auth = New(Config{Store: w.store, Secrets: ring, Accounts: people, Audit: w.audit, Scopes: catalog(), Resources: resources(), Log: slog.New(slog.DiscardHandler), Issuer: issuer})
	user := func(email, org string, role scope.Role) accounts.CreatedUser {
		made, err := people.CreateUser(t.Context(), accounts.NewUser{Email: email, Password: "correct horse battery", Organization: org, Role: role})
		if err != nil {
			t.Fatal(err)
		}
		return made
	}
	for _, role := range scope.Roles() {
		made := user(string(role)+"@harbor.example", "Harbor", role)
		w.people[role], w.org = made.Person, made.Organization
	}
	made := user("noor@quay.example", "Quay", scope.Owner)
	w.neighbour, w.otherOrg = made.Person, made.Organization
	return w
}

func (w *world) exec(query string, args ...any) {
	w.t.Helper()
	if _, err := w.store.Exec(w.t.Context(), query, args...); err != nil {
		w.t.Fatal(err)
	}
}

// as is a context in which somebody with this role looks at the organization with a browser.
func (w *world) as(role scope.Role) context.Context {
	p := w.people[role]
	return caller.With(w.t.Context(), caller.Caller{Org: w.org.ID, Person: p.ID, PersonName: p.Display(), Role: role, Via: caller.Browser, Name: "Web page"})
}

func (w *world) asNeighbour() context.Context {
	return caller.With(w.t.Context(), caller.Caller{Org: w.otherOrg.ID, Person: w.neighbour.ID, PersonName: "noor@quay.example", Role: scope.Owner, Via: caller.Browser})
}

// client registers an app.
func (w *world) client(name, redirects string) string {
	w.t.Helper()
	id := store.NewID("cli")
	w.exec(`INSERT INTO clients (id, name, redirect_uris, metadata, created_at) VALUES (?, ?, ?, '{}', ?)`, id, name, redirects, store.Now())
	return id
}

// connection is what an app was allowed.
type connection struct{ id, grant, token string }

// connect lets an app act for somebody, as auth/oauth does.
func (w *world) connect(person accounts.Person, org, client, scopes string) connection {
	w.t.Helper()
	c := connection{id: store.NewID("con")}
	w.exec(`INSERT INTO connections (id, org_id, person_id, client_id, created_at) VALUES (?, ?, ?, ?, ?)`, c.id, org, person.ID, client, store.Now())
	return w.grant(c, scopes)
}

// grant adds a sign-in to a connection.
func (w *world) grant(c connection, scopes string) connection {
	w.t.Helper()
	now := store.Now()
	c.grant, c.token = store.NewID("gra"), seal.NewToken(AccessPrefix)
	w.exec(`INSERT INTO grants (id, connection_id, scope, resource, redirect_uri, created_at, expires_at) VALUES (?, ?, ?, ?, ?, ?, ?)`, c.grant, c.id, scopes, resource, "https://app.example/cb", now, now.Add(24*time.Hour))
	w.exec(`INSERT INTO generations (refresh_hash, access_hash, grant_id, scope, issued_at, access_expires_at, refresh_expires_at) VALUES (?, ?, ?, ?, ?, ?, ?)`,
		w.auth.Secrets.Hash(seal.NewToken(RefreshPrefix)), w.auth.Secrets.Hash(c.token), c.grant, scopes, now, now.Add(time.Hour), now.Add(24*time.Hour))
	return c
}

// key makes an API key for somebody.
func (w *world) key(role scope.Role, scopes string, expires time.Duration) (string, Key) {
	w.t.Helper()
	secret, key, err := w.auth.CreateKey(w.as(role), NewKey{Name: "CI", Scopes: scope.Parse(scopes), Expires: expires})
	if err != nil {
		w.t.Fatal(err)
	}
	return secret, key
}

// call authenticates a request with these Authorization headers.
func (w *world) call(headers ...string) (caller.Caller, error) {
	return w.callAt(resource, headers...)
}

func (w *world) callAt(resource string, headers ...string) (caller.Caller, error) {
	r := httptest.NewRequestWithContext(w.t.Context(), http.MethodPost, "/mcp", nil)
	for _, h := range headers {
		r.Header.Add("Authorization", h)
	}
	return w.auth.Authenticate(r, resource)
}

// recorded lists what the audit log says in an organization, the oldest first.
func (w *world) recorded(ctx context.Context) []audit.Entry {
	w.t.Helper()
	entries, _, err := w.audit.List(ctx, audit.Filter{Limit: 200})
	if err != nil {
		w.t.Fatal(err)
	}
	out := []audit.Entry{}
	for _, e := range entries {
		if e.Action != audit.UserCreate {
			e.ID, e.At = "", store.Time{}
			out = append([]audit.Entry{e}, out...)
		}
	}
	return out
}

func isFault(code fault.Code) func(error) bool {
	return func(err error) bool { return fault.Is(err, code) }
}
