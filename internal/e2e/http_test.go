//go:build e2e || interop || conformance

package e2e

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"strings"
	"testing"

	"golang.org/x/net/html"

	"switchboard/internal/trial"
)

// script is a person without a browser: an HTTP client with cookies that reads forms and posts them.
type script struct {
	t      *testing.T
	s      *server
	client *http.Client
	email  string
}

func newScript(t *testing.T, s *server, email string) *script {
	jar, _ := cookiejar.New(nil)
	return &script{t: t, s: s, email: email, client: &http.Client{
		Jar: jar, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// answer is a response that has been read.
type answer struct {
	status int
	header http.Header
	body   string
	url    *url.URL
}

func (a answer) json(t *testing.T) map[string]any {
	t.Helper()
	var v map[string]any
	if err := json.Unmarshal([]byte(a.body), &v); err != nil {
		t.Fatalf("%d is not JSON: %v: %.300s", a.status, err, a.body)
	}
	return v
}

func do(t *testing.T, c *http.Client, req *http.Request) answer {
	t.Helper()
	resp, err := c.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer{resp.StatusCode, resp.Header, string(b), req.URL}
}

func (p *script) get(rawURL string) answer {
	p.t.Helper()
	req, _ := http.NewRequestWithContext(p.t.Context(), http.MethodGet, rawURL, nil)
	return do(p.t, p.client, req)
}

func (p *script) post(rawURL string, form url.Values) answer {
	p.t.Helper()
	return do(p.t, p.client, formPost(p.t, rawURL, form))
}

func formPost(t *testing.T, rawURL string, form url.Values) *http.Request {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, rawURL, strings.NewReader(form.Encode()))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	return req
}

// form is a form of a page: where it goes and what it would send as it stands.
type form struct {
	action string
	values url.Values
	fields map[string]string // every control's name and, for buttons, a value
}

// formWith finds the form of a page that has a control of this name.
func formWith(t *testing.T, a answer, name string) form {
	t.Helper()
	root, err := html.Parse(strings.NewReader(a.body))
	if err != nil {
		t.Fatal(err)
	}
	var found *form
	for n := range root.Descendants() {
		if n.Type != html.ElementNode || n.Data != "form" {
			continue
		}
		f := readForm(n)
		if _, ok := f.fields[name]; ok && found == nil {
			found = &f
		}
	}
	if found == nil {
		t.Fatalf("%s has no form with %q: %.1500s", a.url, name, a.body)
	}
	to, err := a.url.Parse(found.action)
	if err != nil {
		t.Fatal(err)
	}
	found.action = to.String()
	return *found
}

func readForm(n *html.Node) form {
	f := form{action: trial.Attr(n, "action"), values: url.Values{}, fields: map[string]string{}}
	for c := range n.Descendants() {
		name := trial.Attr(c, "name")
		if c.Type != html.ElementNode || name == "" {
			continue
		}
		kind, value := trial.Attr(c, "type"), trial.Attr(c, "value")
		f.fields[name] = value
		switch {
		case c.Data == "input" && (kind == "checkbox" || kind == "radio"):
			if trial.HasAttr(c, "checked") {
				f.values.Add(name, value)
			}
		case c.Data == "input" && kind != "submit":
			f.values.Add(name, value)
		case c.Data == "select":
			f.values.Add(name, selected(c))
		}
	}
	return f
}

func selected(n *html.Node) string {
	first, found := "", false
	for o := range n.Descendants() {
		if o.Type != html.ElementNode || o.Data != "option" {
			continue
		}
		if trial.HasAttr(o, "selected") {
			return trial.Attr(o, "value")
		}
		if !found {
			first, found = trial.Attr(o, "value"), true
		}
	}
	return first
}

// register registers a client.
func (s *server) register(t *testing.T, name string, redirects ...string) string {
	t.Helper()
	a := s.postJSON(t, "/oauth/register", map[string]any{"client_name": name, "redirect_uris": redirects})
	if a.status != http.StatusCreated {
		t.Fatalf("registering: %d %s", a.status, a.body)
	}
	return a.json(t)["client_id"].(string)
}

func (s *server) postJSON(t *testing.T, path string, body any) answer {
	t.Helper()
	b, _ := json.Marshal(body)
	req, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, s.url+path, bytes.NewReader(b))
	req.Header.Set("Content-Type", "application/json")
	return do(t, http.DefaultClient, req)
}

// redirect is where the scripts' apps listen; nobody does, since the location is all they need.
const redirect = "http://127.0.0.1:53682/callback"

// attempt is one authorization request of an app.
type attempt struct {
	client, redirect, verifier, state string
	resource                          string
	url                               string
}

func (s *server) attempt(client, scope string) attempt { return s.attemptAt(client, redirect, scope) }

// attemptAt wants the answer at an address of its own.
func (s *server) attemptAt(client, redirect, scope string) attempt {
	return s.attemptFor(s.url+"/mcp", client, redirect, scope)
}

// attemptFor asks for a token for a resource.
func (s *server) attemptFor(resource, client, redirect, scope string) attempt {
	verifier := base64.RawURLEncoding.EncodeToString(random(48))
	challenge := sha256.Sum256([]byte(verifier))
	a := attempt{resource: resource, client: client, redirect: redirect, verifier: verifier, state: base64.RawURLEncoding.EncodeToString(random(16))}
	q := url.Values{
		"response_type": {"code"}, "client_id": {client}, "redirect_uri": {redirect}, "state": {a.state}, "resource": {resource},
		"code_challenge": {base64.RawURLEncoding.EncodeToString(challenge[:])}, "code_challenge_method": {"S256"},
	}
	if scope != "" {
		q.Set("scope", scope)
	}
	a.url = s.url + "/oauth/authorize?" + q.Encode()
	return a
}

func random(n int) []byte {
	b := make([]byte, n)
	_, _ = rand.Read(b)
	return b
}

// consent opens an authorization request, signs in where it is asked, and returns the consent page.
func (p *script) consent(a attempt) answer {
	p.t.Helper()
	next := a.url
	for range 8 {
		page := p.get(next)
		if page.status >= 300 && page.status < 400 {
			to, err := page.url.Parse(page.header.Get("Location"))
			if err != nil {
				p.t.Fatal(err)
			}
			next = to.String()
			continue
		}
		if page.status != http.StatusOK {
			p.t.Fatalf("%s: %d %.500s", next, page.status, page.body)
		}
		if strings.Contains(page.body, `name="decision"`) {
			return page
		}
		next = p.signIn(page)
	}
	p.t.Fatal("no consent page after eight steps")
	return answer{}
}

// signIn posts the sign-in form of a page and returns where it leads.
func (p *script) signIn(page answer) string {
	p.t.Helper()
	f := formWith(p.t, page, "password")
	f.values.Set("email", p.email)
	f.values.Set("password", password)
	a := p.post(f.action, f.values)
	if a.status != http.StatusSeeOther {
		p.t.Fatalf("signing in: %d %.800s", a.status, a.body)
	}
	to, err := page.url.Parse(a.header.Get("Location"))
	if err != nil {
		p.t.Fatal(err)
	}
	return to.String()
}

// decide presses a button of the consent page and returns the parameters that the app receives.
func (p *script) decide(page answer, a attempt, decision string, change func(url.Values)) url.Values {
	p.t.Helper()
	f := formWith(p.t, page, "decision")
	if change != nil {
		change(f.values)
	}
	f.values.Set("decision", decision)
	got := p.post(f.action, f.values)
	location := got.header.Get("Location")
	if got.status != http.StatusSeeOther || !strings.HasPrefix(location, a.redirect+"?") {
		p.t.Fatalf("consent answered %d to %q: %.500s", got.status, location, got.body)
	}
	u, err := url.Parse(location)
	if err != nil {
		p.t.Fatal(err)
	}
	q := u.Query()
	if q.Get("state") != a.state || q.Get("iss") != p.s.url {
		p.t.Fatalf("the redirect has state %q and iss %q", q.Get("state"), q.Get("iss"))
	}
	return q
}

// tokens is a token answer.
type tokens struct{ access, refresh, scope string }

func readTokens(t *testing.T, a answer) tokens {
	t.Helper()
	if a.status != http.StatusOK {
		t.Fatalf("the token endpoint answered %d %s", a.status, a.body)
	}
	v := a.json(t)
	return tokens{v["access_token"].(string), v["refresh_token"].(string), v["scope"].(string)}
}

// connect goes the whole way from an authorization request to tokens.
func (p *script) connect(client, scope string) tokens {
	p.t.Helper()
	return p.follow(p.s.attempt(client, scope))
}

// follow goes that way with an attempt.
func (p *script) follow(a attempt) tokens {
	p.t.Helper()
	q := p.decide(p.consent(a), a, "approve", nil)
	return readTokens(p.t, p.s.exchange(p.t, a, q.Get("code")))
}

func (s *server) exchange(t *testing.T, a attempt, code string) answer {
	t.Helper()
	return do(t, http.DefaultClient, formPost(t, s.url+"/oauth/token", url.Values{
		"grant_type": {"authorization_code"}, "client_id": {a.client}, "code": {code}, "code_verifier": {a.verifier}, "redirect_uri": {a.redirect}, "resource": {a.resource},
	}))
}

func (s *server) refresh(t *testing.T, client, token string) answer {
	t.Helper()
	return do(t, http.DefaultClient, formPost(t, s.url+"/oauth/token", url.Values{"grant_type": {"refresh_token"}, "client_id": {client}, "refresh_token": {token}}))
}

// call sends one MCP message of the 2025-06-18 revision.
func (s *server) call(t *testing.T, token, method string, params any) answer {
	t.Helper()
	b, _ := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
	return s.raw(t, token, string(b), "2025-06-18")
}

// raw sends a body as it is.
func (s *server) raw(t *testing.T, token, body, revision string) answer {
	t.Helper()
	req, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, s.url+"/mcp", strings.NewReader(body))
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	if revision != "" {
		req.Header.Set("MCP-Protocol-Version", revision)
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	return do(t, http.DefaultClient, req)
}

var revisions = []string{"2026-07-28", "2025-11-25", "2025-06-18", "2025-03-26"}

// message is a request of a revision; the modern one says in the body what it says in the headers.
func message(revision, method string, params map[string]any) string {
	if revision == "2026-07-28" {
		params["_meta"] = map[string]any{
			"io.modelcontextprotocol/protocolVersion": revision, "io.modelcontextprotocol/clientCapabilities": map[string]any{},
			"io.modelcontextprotocol/clientInfo": map[string]any{"name": "e2e", "version": "1"},
		}
	}
	b, _ := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": 7, "method": method, "params": params})
	return string(b)
}

func (s *server) speak(t *testing.T, token, revision, method, name string, params map[string]any) answer {
	t.Helper()
	req, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, s.url+"/mcp", strings.NewReader(message(revision, method, params)))
	for k, v := range map[string]string{
		"Content-Type": "application/json", "Accept": "application/json, text/event-stream", "Authorization": "Bearer " + token,
		"MCP-Protocol-Version": revision, "Mcp-Method": method, "Mcp-Name": name,
	} {
		if v != "" {
			req.Header.Set(k, v)
		}
	}
	return do(t, http.DefaultClient, req)
}

// tool calls a tool and returns the HTTP answer and the JSON of its text block.
func (s *server) tool(t *testing.T, token, name string, arguments any) (answer, map[string]any) {
	t.Helper()
	a := s.call(t, token, "tools/call", map[string]any{"name": name, "arguments": arguments})
	if a.status != http.StatusOK {
		return a, nil
	}
	var reply struct {
		Result struct {
			Content []struct{ Text string }
			IsError bool
		}
	}
	if err := json.Unmarshal([]byte(a.body), &reply); err != nil || len(reply.Result.Content) == 0 {
		t.Fatalf("%s answered %s", name, a.body)
	}
	var out map[string]any
	if err := json.Unmarshal([]byte(reply.Result.Content[0].Text), &out); err != nil {
		t.Fatalf("%s: the text is not JSON: %s", name, reply.Result.Content[0].Text)
	}
	return a, out
}

// code is the error code of a tool's answer, "" for a result.
func code(out map[string]any) string {
	e, _ := out["error"].(map[string]any)
	return fmt.Sprint(e["code"])
}
