//go:build e2e

package e2e

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
)

// Every way to spell an address that some parser takes for a registered one and a browser for another. They are sent as
// they stand, so that what the query string's parser makes of them is a part of the attack.
func TestNoSpellingOfARedirectGetsAnAnswer(t *testing.T) {
	onBoth(t, func(t *testing.T, s *server) {
		s.user(t, owner, orgName, "owner")
		client := s.register(t, "Redirected", "https://app.example/cb", redirect)
		p := newScript(t, s, owner)
		p.consent(s.attemptAt(client, "https://app.example/cb", "org:read")) // signed in: nothing but the address stands in the way
		_, good, _ := strings.Cut(s.attemptAt(client, "X", "org:read").url, "?")
		ask := func(query string) answer { return p.get(s.url + "/oauth/authorize?" + query) }
		for name, raw := range map[string]string{
			"userinfo":                       "https://app.example@evil.example/cb",
			"userinfo of ours":               "https://evil.example@app.example/cb",
			"userinfo and a backslash":       `https://evil.example%5C@app.example/cb`,
			"a backslash":                    `https://app.example%5C.evil.example/cb`,
			"a host below":                   "https://app.example.evil.example/cb",
			"a host beside":                  "https://evilapp.example/cb",
			"a root dot":                     "https://app.example./cb",
			"another port":                   "https://app.example:8443/cb",
			"the port that is meant":         "https://app.example:443/cb",
			"upper case host":                "https://APP.example/cb",
			"upper case scheme":              "HTTPS://app.example/cb",
			"upper case path":                "https://app.example/CB",
			"http":                           "http://app.example/cb",
			"no scheme":                      "//app.example/cb",
			"one slash":                      "https:/app.example/cb",
			"unicode dot":                    "https://app%E3%80%82example/cb",
			"unicode letter":                 "https://%D0%B0pp.example/cb",
			"unicode slash":                  "https://app.example%E2%81%84cb",
			"punycode":                       "https://xn--pp-7kc.example/cb",
			"dot segments":                   "https://app.example/x/../cb",
			"dot segments, escaped":          "https://app.example/x/%252e%252e/cb",
			"dot segment":                    "https://app.example/./cb",
			"two slashes":                    "https://app.example//cb",
			"a slash at the end":             "https://app.example/cb/",
			"more path":                      "https://app.example/cb/../evil",
			"an escaped letter":              "https://app.example/c%2562",
			"an escaped slash":               "https://app.example%252Fcb",
			"a fragment":                     "https://app.example/cb%23",
			"a fragment with a host":         "https://evil.example%23@app.example/cb",
			"a query":                        "https://app.example/cb%3Fnext=https://evil.example",
			"an empty query":                 "https://app.example/cb%3F",
			"a semicolon":                    "https://app.example/cb%3Bx",
			"a NUL":                          "https://app.example/cb%00",
			"a line break":                   "https://app.example/cb%0d%0aSet-Cookie:%20a=b",
			"a space in front":               "+https://app.example/cb",
			"javascript":                     "javascript:alert(1)",
			"data":                           "data:text/html,x",
			"loopback with userinfo":         "http://127.0.0.1:53682@evil.example/callback",
			"loopback below":                 "http://127.0.0.1.evil.example:53682/callback",
			"loopback by another name":       "http://localhost:53682/callback",
			"loopback as a number":           "http://2130706433:53682/callback",
			"loopback as IPv6":               "http://[::ffff:127.0.0.1]:53682/callback",
			"loopback over https":            "https://127.0.0.1:53682/callback",
			"loopback, an escaped letter":    "http://127.0.0.1:53682/c%2561llback",
			"the first of two":               "https://evil.example/cb&redirect_uri=https://app.example/cb",
			"the second of two":              "https://app.example/cb&redirect_uri=https://evil.example/cb",
			"a second one in capitals":       "https://evil.example/cb&REDIRECT_URI=https://app.example/cb",
			"a second one as an array":       "https://evil.example/cb&redirect_uri[]=https://app.example/cb",
			"a second one after a semicolon": "https://evil.example/cb;redirect_uri=https://app.example/cb",
			"nothing":                        "",
		} {
			got := ask(strings.Replace(good, "redirect_uri=X", "redirect_uri="+raw, 1))
			if got.status != http.StatusBadRequest || got.header.Get("Location") != "" || got.header.Get("Refresh") != "" || got.header.Get("Set-Cookie") != "" {
				t.Errorf("%s: %d to %q", name, got.status, got.header.Get("Location"))
			}
		}
		if got := ask(strings.Replace(good, "redirect_uri=X", "redirect_uri=https://app.example/cb", 1)); !strings.HasPrefix(got.header.Get("Location"), "/consent/") {
			t.Errorf("as registered: %d to %q", got.status, got.header.Get("Location"))
		}
	})
}

// RFC 9700 §4.5: one party's code in the other's sign-in, either way round, at the same app and at another one.
func TestAnInjectedCodeIsWorthNothing(t *testing.T) {
	onBoth(t, func(t *testing.T, s *server) {
		s.user(t, owner, orgName, "owner")
		s.user(t, "mallory@elsewhere.example", "Elsewhere", "owner")
		app, own := s.register(t, "App of both", redirect), s.register(t, "App of the attacker", redirect)
		code := func(email, client string) (attempt, string) {
			p := newScript(t, s, email)
			a := s.attempt(client, "org:read")
			return a, p.decide(p.consent(a), a, "approve", nil).Get("code")
		}
		for name, c := range map[string]struct{ by, of, client string }{
			"the victim's code in the attacker's session": {"mallory@elsewhere.example", owner, app},
			"the attacker's code in the victim's session": {owner, "mallory@elsewhere.example", app},
			"the victim's code at the attacker's app":     {"mallory@elsewhere.example", owner, own},
		} {
			mine, _ := code(c.by, c.client)
			theirs, stolen := code(c.of, app)
			if a := s.exchange(t, mine, stolen); a.status != 400 || a.json(t)["error"] != "invalid_grant" {
				t.Errorf("%s: %d %s", name, a.status, a.body)
			}
			if a := s.exchange(t, theirs, stolen); c.client == app && a.status != 400 {
				t.Errorf("%s, after one guess: %d %s", name, a.status, a.body)
			}
		}
	})
}

// Login CSRF and its sister: a sign-in form and a consent request of the attacker's browser, in the victim's.
func TestNothingThatBeganInAnotherBrowserGoesOnHere(t *testing.T) {
	onBoth(t, func(t *testing.T, s *server) {
		s.user(t, owner, orgName, "owner")
		s.user(t, "mallory@elsewhere.example", "Elsewhere", "owner")
		attacker, victim := newScript(t, s, "mallory@elsewhere.example"), newScript(t, s, owner)
		signIn := formWith(t, attacker.get(s.url+"/sign-in"), "password")
		signIn.values.Set("email", attacker.email)
		signIn.values.Set("password", password)
		victim.get(s.url + "/sign-in")
		if a := victim.post(signIn.action, signIn.values); a.status != http.StatusForbidden {
			t.Errorf("the attacker's sign-in form: %d", a.status)
		}
		if a := victim.get(s.url + "/connections"); a.status != http.StatusSeeOther {
			t.Errorf("somebody is signed in: %d", a.status)
		}

		request := s.attempt(s.register(t, "App", redirect), "org:read")
		page := attacker.consent(request)
		victim.consent(s.attempt(request.client, "org:read"))
		if a := victim.get(page.url.String()); a.status != http.StatusGone || strings.Contains(a.body, `name="decision"`) {
			t.Errorf("the attacker's request in the victim's browser: %d", a.status)
		}
		form := formWith(t, page, "decision")
		form.values.Set("decision", "approve")
		if a := victim.post(form.action, form.values); a.status != http.StatusForbidden || a.header.Get("Location") != "" {
			t.Errorf("answering it: %d to %q", a.status, a.header.Get("Location"))
		}
	})
}

// Audience confusion and token passthrough: a token is one where it was issued, and nothing but the one header carries it.
func TestATokenIsGoodAtItsOwnServerInItsOwnHeader(t *testing.T) {
	onBoth(t, func(t *testing.T, s *server) {
		s.user(t, owner, orgName, "owner")
		other := start(t, "sqlite")
		other.user(t, owner, orgName, "owner")
		p := newScript(t, s, owner)
		got := p.connect(s.register(t, "App", redirect), "org:read")
		key := s.key(t, orgName, "org:read")
		list := `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`
		for _, token := range []string{got.access, key} {
			if a := s.raw(t, token, list, ""); a.status != 200 {
				t.Errorf("at its own server: %d %s", a.status, a.body)
			}
			if a := other.raw(t, token, list, ""); a.status != 401 {
				t.Errorf("at another server: %d %s", a.status, a.body)
			}
			for what, send := range map[string][]string{
				"the query":       {"/mcp?access_token=" + token + "&token=" + token + "&api_key=" + token, list, "", ""},
				"the body":        {"/mcp", `{"jsonrpc":"2.0","id":1,"method":"tools/list","access_token":"` + token + `"}`, "", ""},
				"a form":          {"/mcp", "access_token=" + token, "Content-Type", "application/x-www-form-urlencoded"},
				"a cookie":        {"/mcp", list, "Cookie", "access_token=" + token + "; sb_session=" + token},
				"another header":  {"/mcp", list, "X-Api-Key", token},
				"Proxy":           {"/mcp", list, "Proxy-Authorization", "Bearer " + token},
				"Basic":           {"/mcp", list, "Authorization", "Basic " + token},
				"a session id":    {"/mcp", list, "Mcp-Session-Id", token},
				"a refresh token": {"/mcp", list, "Authorization", "Bearer " + got.refresh},
			} {
				headers := append([]string{}, asJSON...)
				if send[2] != "" {
					headers = append(headers, send[2], send[3])
				}
				if a := s.request(t, "POST", send[0], send[1], headers...); a.status != 401 {
					t.Errorf("by %s: %d %.300s", what, a.status, a.body)
				}
			}
		}
		if a := p.get(s.url + "/connections"); a.status != 200 {
			t.Fatalf("the person is not signed in: %d", a.status)
		}
		req, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, s.url+"/mcp", strings.NewReader(list))
		req.Header.Set("Content-Type", "application/json")
		if a := do(t, p.client, req); a.status != 401 { // with the cookies of somebody who is signed in
			t.Errorf("by the cookies of a person: %d %s", a.status, a.body)
		}
		if strings.Contains(s.logs.String(), got.access) || strings.Contains(s.logs.String(), got.refresh) {
			t.Error("a token is in the log")
		}
	})
}

// What a cache between here and somebody may keep must be the same for everybody, and what a request says of its own
// address must not be in it.
func TestACacheHasNothingToKeepThatIsSomebodysOrSomebodysDoing(t *testing.T) {
	onBoth(t, func(t *testing.T, s *server) {
		s.user(t, owner, orgName, "owner")
		key := s.key(t, orgName, "org:read")
		client := s.register(t, "App", redirect)
		p := newScript(t, s, owner)
		consent := p.consent(s.attempt(client, "org:read"))
		poison := []string{"X-Forwarded-Host", "evil.example", "X-Host", "evil.example", "X-Forwarded-Prefix", "/evil", "X-Original-URL", "/evil", "Forwarded", "host=evil.example"}
		for what, a := range map[string]answer{
			"a call":               s.request(t, "POST", "/mcp", initialize, append([]string{"Authorization", "Bearer " + key}, asJSON...)...),
			"a challenge":          s.request(t, "POST", "/mcp", initialize, append(poison, asJSON...)...),
			"a missing scope":      s.call(t, key, "tools/call", map[string]any{"name": "upsert_contact", "arguments": map[string]any{"phone": "+14155550123"}}),
			"a refusal of a token": s.refresh(t, client, "sb_rt_x"),
			"a registration":       s.postJSON(t, "/oauth/register", map[string]any{"redirect_uris": []string{redirect}}),
			"a revocation":         do(t, http.DefaultClient, formPost(t, s.url+"/oauth/revoke", url.Values{"client_id": {client}, "token": {"x"}})),
			"introspection":        do(t, http.DefaultClient, formPost(t, s.url+"/oauth/introspect", url.Values{"client_id": {client}, "token": {"x"}})),
			"no document":          s.request(t, "GET", "/.well-known/openid-configuration", ""),
			"the consent page":     consent,
			"the sign-in page":     s.request(t, "GET", "/sign-in", "", poison...),
			"a bad request":        s.request(t, "GET", "/oauth/authorize?client_id=x", "", poison...),
			"a page that is none":  s.request(t, "GET", "/nowhere", "", poison...),
		} {
			if a.header.Get("Cache-Control") != "no-store" || strings.Contains(a.body+a.header.Get("Location")+a.header.Get("WWW-Authenticate"), "evil") {
				t.Errorf("%s (%d): Cache-Control %q: %.300s", what, a.status, a.header.Get("Cache-Control"), a.body)
			}
		}
		for _, path := range []string{"/.well-known/oauth-authorization-server", "/.well-known/oauth-protected-resource", "/.well-known/oauth-protected-resource/mcp"} {
			plain, poisoned := s.request(t, "GET", path, ""), s.request(t, "GET", path+"?x=evil", "", append(poison, "Origin", "https://evil.example", "Cookie", "sb_session=evil")...)
			if plain.body != poisoned.body || plain.header.Get("Access-Control-Allow-Origin") != poisoned.header.Get("Access-Control-Allow-Origin") || poisoned.header.Get("Set-Cookie") != "" {
				t.Errorf("%s differs: %s\n%s", path, plain.body, poisoned.body)
			}
		}
	})
}
