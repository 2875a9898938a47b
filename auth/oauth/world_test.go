package oauth

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"switchboard/auth"
	"switchboard/auth/accounts"
	"switchboard/internal/audit"
	"switchboard/internal/caller"
	"switchboard/internal/scope"
	"switchboard/internal/seal"
	"switchboard/internal/store"
	"switchboard/internal/store/storetest"
	"switchboard/internal/trial"
	"switchboard/migrations"
)

const (
	issuer   = "https://switch.example"
	resource = issuer + "/mcp"
	mail     = issuer + "/mcp/mail" // a part of it
	browser  = "browser of the person"
	redirect = "http://127.0.0.1:5555/callback"
	verifier = "a-verifier-that-is-long-enough-for-rfc-7636.~_"
)

// lifetimes are those of the configuration.
var lifetimes = Lifetimes{Code: time.Minute, Access: time.Hour, Refresh: 30 * 24 * time.Hour, Grace: time.Minute}

// resources are the endpoint and a part of it.
func resources() []auth.Resource {
	part := scope.NewCatalog([]scope.Group{{Name: "organization", Scopes: scope.Of("org:read", "org:write"), Default: true}}, nil, scope.Of("org:read", "org:write"))
	return []auth.Resource{{URL: resource, Name: "Switchboard", Scopes: catalog()}, {URL: mail, Name: "Switchboard mail", Scopes: part, Whole: resource}}
}

// catalog is a handful of scopes: two default groups, one that is off, one that only an admin may use.
func catalog() *scope.Catalog {
	groups := []scope.Group{
		{Name: "contacts", Scopes: scope.Of("contacts:read", "contacts:write"), Default: true},
		{Name: "organization", Scopes: scope.Of("org:read", "org:write"), Default: true},
		{Name: "billing", Scopes: scope.Of("billing:read")},
		{Name: "apps", Scopes: scope.Of("apps:read", "apps:write", "env:write")},
	}
	umbrellas := map[string]scope.Set{"spocket": scope.Of("apps:read", "apps:write", "env:write")}
	needed := scope.Of("contacts:read", "contacts:write", "org:read", "org:write", "billing:read", "apps:read", "apps:write")
	return scope.NewCatalog(groups, umbrellas, needed)
}

// world is an authorization server with people of every role in one organization, and a neighbour in another.
type world struct {
	t        testing.TB
	url      string // of the database
	keys     string // path of the key file
	store    *store.Store
	accounts *accounts.Accounts
	audit    *audit.Log
	auth     *auth.Auth
	server   *Server
	mux      *http.ServeMux
	logs     *trial.Journal
	vendor   *publisher // see published
	hosts    HostPolicy // of documents; it counts with the next serve

	people            map[scope.Role]accounts.Person
	org, otherOrg     accounts.Organization
	neighbour         accounts.Person // owner of otherOrg
	owner             accounts.Person
	lastIP            atomic.Int64
	desktop, stranger string // client ids
}

func newWorld(t testing.TB) *world {
	t.Helper()
	w := &world{t: t, url: storetest.URL(t), keys: filepath.Join(t.TempDir(), "keys"), logs: &trial.Journal{}, people: map[scope.Role]accounts.Person{}}
	w.store = w.open()
	w.writeKeys("k1")
	w.serve(w.ring(), lifetimes)
	for _, role := range scope.Roles() {
		made := w.user(string(role)+"@harbor.example", "Harbor", role)
		w.people[role], w.org = made.Person, made.Organization
	}
	w.owner = w.people[scope.Owner]
	made := w.user("noor@quay.example", "Quay", scope.Owner)
	w.neighbour, w.otherOrg = made.Person, made.Organization
	w.desktop = w.client("Desktop", "http://127.0.0.1/callback")
	w.stranger = w.client("Stranger", "http://127.0.0.1/callback")
	return w
}

// open opens the world's database once more, as another process does.
func (w *world) open() *store.Store {
	w.t.Helper()
	s, err := store.Open(w.t.Context(), store.Config{URL: w.url, MaxConnections: 8})
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { _ = s.Close() })
	if err := s.Migrate(w.t.Context(), migrations.FS); err != nil {
		w.t.Fatal(err)
	}
	return s
}

// replica is another server on the same database and key file.
func (w *world) replica() *world {
	r := &world{t: w.t, url: w.url, keys: w.keys, logs: w.logs, vendor: w.vendor, people: w.people, org: w.org, owner: w.owner, desktop: w.desktop, stranger: w.stranger}
	r.store = r.open()
	r.serve(r.ring(), lifetimes)
	return r
}

// writeKeys writes a key file with these keys, the current one first.
func (w *world) writeKeys(ids ...string) {
	w.t.Helper()
	content := ""
	for _, id := range ids {
		secret := sha256.Sum256([]byte(id))
		content += id + " " + base64.StdEncoding.EncodeToString(secret[:]) + "\n"
	}
	if err := os.WriteFile(w.keys, []byte(content), 0o600); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) ring() *seal.Keyring {
	w.t.Helper()
	ring, err := seal.Load(w.keys)
	if err != nil {
		w.t.Fatal(err)
	}
	return ring
}

// serve starts the server anew, as a restart or another replica does.
func (w *world) serve(ring *seal.Keyring, lifetimes Lifetimes) {
	log := slog.New(slog.NewJSONHandler(w.logs, &slog.HandlerOptions{Level: slog.LevelDebug}))
	w.audit = audit.New(w.store)
	w.accounts = accounts.New(accounts.Config{
		Store: w.store, Secrets: ring, Audit: w.audit, Log: log, Hashing: accounts.Hashing{MemoryKiB: 64, Iterations: 1},
	})
	w.auth = auth.New(auth.Config{Store: w.store, Secrets: ring, Accounts: w.accounts, Audit: w.audit, Scopes: catalog(), Resources: resources(), Log: log, Issuer: issuer})
	w.server = New(Config{
		Issuer: issuer, Resources: resources(), Store: w.store, Secrets: ring,
		Accounts: w.accounts, Audit: w.audit, Scopes: catalog(), Lifetimes: lifetimes, Log: log,
		Outbound: w.fetcher(), ClientHosts: w.hosts,
	})
	w.mux = http.NewServeMux()
	w.server.Routes(w.mux)
}

func (w *world) user(email, org string, role scope.Role) accounts.CreatedUser {
	w.t.Helper()
	made, err := w.accounts.CreateUser(w.t.Context(), accounts.NewUser{Email: email, Password: "correct horse battery", Organization: org, Role: role})
	if err != nil {
		w.t.Fatal(err)
	}
	return made
}

// client registers an app through the endpoint.
func (w *world) client(name string, redirects ...string) string {
	w.t.Helper()
	body, _ := json.Marshal(map[string]any{"client_name": name, "redirect_uris": redirects})
	rec := w.send("POST", "/oauth/register", string(body), "Content-Type", "application/json")
	var out struct {
		ID string `json:"client_id"`
	}
	if err := json.Unmarshal(rec.Body.Bytes(), &out); err != nil || rec.Code != http.StatusCreated {
		w.t.Fatalf("registering answered %d %s", rec.Code, rec.Body)
	}
	return out.ID
}

// send sends a request from an address that nobody used before, so that limits per IP stay out of the way.
func (w *world) send(method, target, body string, headers ...string) *httptest.ResponseRecorder {
	n := w.lastIP.Add(1)
	return w.sendFrom(fmt.Sprintf("198.18.%d.%d:4000", n/250, n%250), method, target, body, headers...)
}

func (w *world) sendFrom(ip, method, target, body string, headers ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequestWithContext(w.t.Context(), method, target, strings.NewReader(body))
	r.RemoteAddr = ip
	for i := 0; i < len(headers); i += 2 {
		r.Header.Add(headers[i], headers[i+1])
	}
	rec := httptest.NewRecorder()
	w.mux.ServeHTTP(rec, r)
	return rec
}

func (w *world) post(path string, form url.Values) *httptest.ResponseRecorder {
	return w.send("POST", path, form.Encode(), "Content-Type", "application/x-www-form-urlencoded")
}

// query is a good authorization request, with changes: pairs of name and value, where "" takes a parameter away.
func query(client string, changes ...string) url.Values {
	sum := sha256.Sum256([]byte(verifier))
	q := url.Values{
		"response_type": {"code"}, "client_id": {client}, "redirect_uri": {redirect}, "state": {"xyz"}, "resource": {resource},
		"code_challenge": {base64.RawURLEncoding.EncodeToString(sum[:])}, "code_challenge_method": {"S256"},
	}
	return with(q, changes...)
}

func with(q url.Values, changes ...string) url.Values {
	for i := 0; i < len(changes); i += 2 {
		if q.Set(changes[i], changes[i+1]); changes[i+1] == "" {
			q.Del(changes[i])
		}
	}
	return q
}

func (w *world) begin(q url.Values) (string, error) {
	n := w.lastIP.Add(1)
	r := httptest.NewRequestWithContext(w.t.Context(), "GET", "/oauth/authorize?"+q.Encode(), nil)
	r.RemoteAddr = fmt.Sprintf("198.19.%d.%d:4000", n/250, n%250)
	return w.server.Begin(r, browser)
}

func (w *world) mustBegin(q url.Values) string {
	w.t.Helper()
	id, err := w.begin(q)
	if err != nil {
		w.t.Fatal(err)
	}
	return id
}

// yes approves as the owner.
func (w *world) yes(scopes string) Decision {
	return Decision{Approve: true, PersonID: w.owner.ID, OrgID: w.org.ID, Scopes: scope.Parse(scopes)}
}

func (w *world) decide(id string, d Decision) (url.Values, error) {
	location, err := w.server.Decide(w.t.Context(), id, browser, d)
	if err != nil {
		return nil, err
	}
	return answerIn(w.t, location), nil
}

// answerIn is what a location tells the client.
func answerIn(t testing.TB, location string) url.Values {
	t.Helper()
	u, err := url.Parse(location)
	if err != nil {
		t.Fatal(err)
	}
	return u.Query()
}

// code takes a request of the desktop client through consent.
func (w *world) code(scopes string, changes ...string) string {
	w.t.Helper()
	answer, err := w.decide(w.mustBegin(query(w.desktop, append([]string{"scope", scopes}, changes...)...)), w.yes(scopes))
	if err != nil || answer.Get("code") == "" {
		w.t.Fatalf("no code: %v %v", answer, err)
	}
	return answer.Get("code")
}

// answer is what the token endpoint says.
type answer struct {
	Status  int    `json:"-"`
	Error   string `json:"error"`
	Access  string `json:"access_token"`
	Refresh string `json:"refresh_token"`
	Scope   string `json:"scope"`
	Type    string `json:"token_type"`
	Expires int    `json:"expires_in"`
}

func (w *world) token(form url.Values) answer {
	rec := w.post("/oauth/token", form)
	a := answer{Status: rec.Code}
	if err := json.Unmarshal(rec.Body.Bytes(), &a); err != nil {
		w.t.Errorf("the token endpoint answered %d %q", rec.Code, rec.Body)
	}
	noneIsEmpty(w.t, rec.Body.String())
	if got := rec.Header().Get("Cache-Control"); got != "no-store" {
		w.t.Errorf("Cache-Control is %q", got)
	}
	return a
}

func (w *world) exchangeForm(code string, changes ...string) url.Values {
	return with(url.Values{
		"grant_type": {"authorization_code"}, "client_id": {w.desktop}, "code": {code}, "code_verifier": {verifier}, "redirect_uri": {redirect},
	}, changes...)
}

func (w *world) exchange(code string, changes ...string) answer {
	return w.token(w.exchangeForm(code, changes...))
}

func (w *world) refresh(token string, changes ...string) answer {
	return w.token(with(url.Values{"grant_type": {"refresh_token"}, "client_id": {w.desktop}, "refresh_token": {token}}, changes...))
}

// tokens signs the owner in at the desktop client.
func (w *world) tokens(scopes string) answer {
	w.t.Helper()
	a := w.exchange(w.code(scopes))
	if a.Status != http.StatusOK {
		w.t.Fatalf("no tokens: %+v", a)
	}
	return a
}

// refusal is an error answer as a value to compare with.
func refusal(status int, code string) answer { return answer{Status: status, Error: code} }

// who is the caller behind an access token.
func (w *world) who(token string) (caller.Caller, error) {
	r := httptest.NewRequestWithContext(w.t.Context(), "POST", "/mcp", nil)
	r.Header.Set("Authorization", "Bearer "+token)
	return w.auth.Authenticate(r, resource)
}

func (w *world) alive(what string, tokens answer) {
	w.t.Helper()
	if _, err := w.who(tokens.Access); err != nil {
		w.t.Errorf("%s: the access token is dead: %v", what, err)
	}
}

func (w *world) dead(what string, tokens answer) {
	w.t.Helper()
	var unauthorized *auth.Unauthorized
	if _, err := w.who(tokens.Access); !errors.As(err, &unauthorized) {
		w.t.Errorf("%s: the access token lives, %v", what, err)
	}
	if got := w.refresh(tokens.Refresh); got != refusal(400, "invalid_grant") {
		w.t.Errorf("%s: the refresh token lives, %+v", what, got)
	}
}

// asOwner is a context in which the owner looks at their organization.
func (w *world) asOwner() context.Context {
	return caller.With(w.t.Context(), caller.Caller{Org: w.org.ID, Person: w.owner.ID, Role: scope.Owner, Via: caller.Browser})
}

// audited lists "action outcome" of the organization's records, the oldest first, but for those of its making.
func (w *world) audited() []string {
	w.t.Helper()
	entries, _, err := w.audit.List(w.asOwner(), audit.Filter{Limit: 200})
	if err != nil {
		w.t.Fatal(err)
	}
	out := []string{}
	for _, e := range entries {
		if e.Action != audit.UserCreate {
			out = append([]string{e.Action + " " + string(e.Outcome)}, out...)
		}
	}
	return out
}

func (w *world) count(query string, args ...any) int {
	w.t.Helper()
	n := 0
	if err := w.store.QueryRow(w.t.Context(), query, args, &n); err != nil {
		w.t.Fatal(err)
	}
	return n
}

func (w *world) exec(query string, args ...any) {
	w.t.Helper()
	if _, err := w.store.Exec(w.t.Context(), query, args...); err != nil {
		w.t.Fatal(err)
	}
}
