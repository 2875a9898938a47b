//go:build e2e

package e2e

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
)

// onBothFor is onBoth for servers that fetch from a vendor.
func onBothFor(t *testing.T, test func(t *testing.T, s *server, v *vendor), env ...string) {
	for _, dialect := range []string{"sqlite", "postgres"} {
		t.Run(dialect, func(t *testing.T) {
			v := newVendor(t)
			test(t, start(t, dialect, append(v.trusted(t), env...)...), v)
		})
	}
}

// The shapes of two clients as they arrive: one of a program that listens on any port of this machine, one of a
// service with a callback for each connector.
func TestClientsThatPublishWhoTheyAreSignIn(t *testing.T) {
	onBothFor(t, func(t *testing.T, s *server, v *vendor) {
		s.user(t, owner, orgName, "owner")
		p := newScript(t, s, owner)
		for _, c := range []struct {
			path, name string
			redirects  []string
			redirect   string
		}{
			{"/oauth/claude-code-client-metadata", "Claude Code", []string{"http://localhost/callback", "http://127.0.0.1/callback"}, "http://localhost:" + freePort(t) + "/callback"},
			{"/oauth/plugin_1/client.json", "ChatGPT", []string{"https://chatgpt.example/connector/oauth/plugin_1"}, "https://chatgpt.example/connector/oauth/plugin_1"},
			{"/oauth/plugin_2/client.json", "ChatGPT", []string{"https://chatgpt.example/connector/oauth/plugin_2"}, "https://chatgpt.example/connector/oauth/plugin_2"},
		} {
			id := v.publish(c.path, c.name, c.redirects...)
			a := s.attemptAt(id, c.redirect, "org:read")
			page := p.consent(a)
			published := strings.TrimPrefix(v.URL, "https://")
			if !strings.Contains(page.body, published) || !strings.Contains(page.body, "publishes it, which is checked") {
				t.Errorf("%s: the page does not tell that %s published it", c.name, published)
			}
			tokens := readTokens(t, s.exchange(t, a, p.decide(page, a, "approve", nil).Get("code")))
			if got, _ := s.tool(t, tokens.access, "get_organization", map[string]any{}); got.status != http.StatusOK {
				t.Errorf("%s: a call answered %d", c.name, got.status)
			}
			readTokens(t, s.refresh(t, id, tokens.refresh))
		}
		if page := p.get(s.url + "/clients"); strings.Count(page.body, "Published by") != 3 {
			t.Errorf("the page about apps: %.600s", page.body)
		}
	})
}

func TestADocumentThatGoesAwayEndsNothingAndABadOneIsAPage(t *testing.T) {
	onBothFor(t, func(t *testing.T, s *server, v *vendor) {
		s.user(t, owner, orgName, "owner")
		p := newScript(t, s, owner)
		id := v.publish("/client.json", "Desktop", redirect)
		a := s.attempt(id, "org:read")
		page := p.consent(a)
		bad := v.publish("/bad.json", "Bad", redirect)
		v.mu.Lock()
		v.documents["/bad.json"].(map[string]any)["client_id"] = id
		v.mu.Unlock()
		if got := p.get(s.attempt(bad, "").url); got.status != http.StatusBadRequest || !strings.Contains(got.body, "Its client_id is not the address that it is at.") {
			t.Errorf("a document about another client: %d %.300s", got.status, got.body)
		}
		v.Close()
		tokens := readTokens(t, s.exchange(t, a, p.decide(page, a, "approve", nil).Get("code")))
		next := readTokens(t, s.refresh(t, id, tokens.refresh))
		if got, _ := s.tool(t, next.access, "get_organization", map[string]any{}); got.status != http.StatusOK {
			t.Errorf("with the vendor away a call answered %d", got.status)
		}
		got := p.get(s.attempt(v.URL+"/other.json", "").url)
		if got.status != http.StatusServiceUnavailable || got.header.Get("Location") != "" {
			t.Errorf("a document of nobody: %d", got.status)
		}
		if got := do(t, http.DefaultClient, formPost(t, s.url+"/oauth/token", url.Values{"grant_type": {"refresh_token"}, "refresh_token": {"x"}, "client_id": {v.URL + "/other.json"}})); got.status != http.StatusUnauthorized || got.json(t)["error"] != "invalid_client" {
			t.Errorf("and its tokens: %d %s", got.status, got.body)
		}
	})
}

// The spellings in which a link could lead the server into itself or its network, at the built binary.
func TestTheServerFetchesNothingFromItsOwnNetwork(t *testing.T) {
	v := newVendor(t) // on loopback, trusted, and nobody said that it may be reached
	v.publish("/client.json", "Inside", redirect)
	onBoth(t, func(t *testing.T, s *server) {
		port := strings.TrimPrefix(v.URL, "https://127.0.0.1")
		p := newScript(t, s, owner)
		for _, host := range []string{"127.0.0.1", "localhost", "127.1", "0x7f000001", "2130706433", "0.0.0.0", "[::1]", "[::ffff:127.0.0.1]", "[64:ff9b::7f00:1]", "169.254.169.254", "[fd00:ec2::254]"} {
			got := p.get(s.attempt("https://"+host+port+"/client.json", "").url)
			if got.status < 400 || got.status == 500 || got.header.Get("Location") != "" {
				t.Errorf("%s: %d", host, got.status)
			}
		}
		if n := v.dialled.Load(); n != 0 {
			t.Errorf("%d connections arrived", n)
		}
	}, v.trusted(t)[1])
}

func TestAnAppOfTheOrganizationKeepsASecretAsksAboutTokensAndIsBlocked(t *testing.T) {
	onBoth(t, func(t *testing.T, s *server) {
		s.user(t, owner, orgName, "owner")
		p := newScript(t, s, owner)
		p.signIn(p.get(s.url + "/sign-in"))
		f := formWith(t, p.get(s.url+"/clients"), "create")
		f.values.Set("name", "Booking")
		f.values.Set("redirects", redirect)
		f.values.Set("create", "client")
		made := p.post(f.action, f.values)
		id, secret := between(t, made.body, `id="client-id"`), between(t, made.body, `id="client-secret"`)
		a := s.attempt(id, "org:read")
		code := p.decide(p.consent(a), a, "approve", nil).Get("code")
		if got := s.exchange(t, a, code); got.status != http.StatusUnauthorized || got.header.Get("WWW-Authenticate") == "" {
			t.Errorf("without the secret: %d", got.status)
		}
		form := url.Values{"grant_type": {"authorization_code"}, "code": {code}, "code_verifier": {a.verifier}, "redirect_uri": {redirect}}
		tokens := readTokens(t, s.postAs(t, "/oauth/token", id, secret, form))
		other := p.connect(s.register(t, "Desktop", redirect), "org:read")
		for _, token := range []string{tokens.access, other.access, other.refresh} {
			if got := s.postAs(t, "/oauth/introspect", id, secret, url.Values{"token": {token}}); got.status != http.StatusOK || got.json(t)["active"] != true {
				t.Errorf("introspection: %d %s", got.status, got.body)
			}
		}
		f = formWith(t, p.get(s.url+"/clients?block="+id), "block")
		f.values.Set("block", id)
		if got := p.post(f.action, f.values); got.status != http.StatusSeeOther {
			t.Errorf("blocking: %d", got.status)
		}
		if got, _ := s.tool(t, tokens.access, "get_organization", map[string]any{}); got.status != http.StatusUnauthorized {
			t.Errorf("a call of a blocked app: %d", got.status)
		}
		if page := p.consent(s.attempt(id, "org:read")); strings.Contains(page.body, `value="approve"`) || !strings.Contains(page.body, "blocked") {
			t.Error("a blocked app can be allowed")
		}
		if strings.Contains(s.logs.String(), secret) {
			t.Error("the secret is in the log")
		}
	})
}

// postAs posts a form with the app's secret in the header.
func (s *server) postAs(t *testing.T, path, id, secret string, form url.Values) answer {
	t.Helper()
	req := formPost(t, s.url+path, form)
	req.SetBasicAuth(url.QueryEscape(id), url.QueryEscape(secret))
	return do(t, http.DefaultClient, req)
}

// between is the text of the element with an attribute.
func between(t *testing.T, page, attribute string) string {
	t.Helper()
	_, after, ok := strings.Cut(page, attribute)
	_, after, inside := strings.Cut(after, ">")
	text, _, ends := strings.Cut(after, "<")
	if !ok || !inside || !ends {
		t.Fatalf("no element with %s", attribute)
	}
	return text
}
