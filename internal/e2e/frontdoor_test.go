//go:build e2e

package e2e

import (
	"io"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// request sends anything anywhere; headers are pairs, and Host sets the host.
func (s *server) request(t *testing.T, method, path, body string, headers ...string) answer {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, s.url+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(headers); i += 2 {
		if headers[i] == "Host" {
			req.Host = headers[i+1]
		} else {
			req.Header.Add(headers[i], headers[i+1])
		}
	}
	client := &http.Client{Timeout: 2 * time.Second, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	return do(t, client, req)
}

const initialize = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"qa","version":"0"}}}`

var asJSON = []string{"Content-Type", "application/json", "Accept", "application/json, text/event-stream"}

func TestDiscoveryIsJSONOrAbsentAndNeverAPage(t *testing.T) {
	onBoth(t, func(t *testing.T, s *server) {
		for path, want := range map[string]int{
			"/.well-known/oauth-protected-resource": 200, "/.well-known/oauth-protected-resource/mcp": 200, "/.well-known/oauth-authorization-server": 200,
			"/.well-known/oauth-authorization-server/mcp": 404, "/.well-known/openid-configuration": 404, "/.well-known/zzz": 404,
			"/mcp/.well-known/oauth-authorization-server": 404, "/mcp/.well-known/openid-configuration": 404,
		} {
			for _, method := range []string{http.MethodGet, http.MethodHead} {
				a := s.request(t, method, path, "", "Accept", "text/html,*/*")
				if a.status != want || a.header.Get("Content-Type") != "application/json" || len(a.header.Values("Set-Cookie")) > 0 {
					t.Errorf("%s %s: %d %s", method, path, a.status, a.header.Get("Content-Type"))
				}
				if method == http.MethodGet && (strings.Contains(a.body, "null") || strings.Contains(a.body, `""`)) {
					t.Errorf("%s holds null or an empty string: %s", path, a.body)
				}
			}
		}
		server := s.request(t, "GET", "/.well-known/oauth-authorization-server", "").json(t)
		resource := s.request(t, "GET", "/.well-known/oauth-protected-resource/mcp", "").json(t)
		if server["issuer"] != s.url || resource["resource"] != s.url+"/mcp" || resource["authorization_servers"].([]any)[0] != server["issuer"] {
			t.Errorf("%v %v", server["issuer"], resource)
		}
	})
}

func TestNoEndpointAnswersAProgramWithARedirect(t *testing.T) {
	onBoth(t, func(t *testing.T, s *server) {
		s.user(t, owner, orgName, "owner")
		key := s.key(t, orgName, "org:read")
		for _, path := range slashed("/mcp", "/oauth/register", "/oauth/token", "/oauth/revoke", "/oauth/introspect", "/register", "/token") {
			for _, host := range []string{"", "127.0.0.1", "localhost"} {
				headers := append([]string{"X-Forwarded-Proto", "http", "X-Forwarded-Host", "evil.example", "Authorization", "Bearer " + key}, asJSON...)
				if host != "" {
					headers = append(headers, "Host", host)
				}
				a := s.request(t, "POST", path, initialize, headers...)
				if a.status >= 300 && a.status < 400 || strings.Contains(a.body, "evil.example") {
					t.Errorf("%s at %q: %d %s %s", path, host, a.status, a.header.Get("Location"), a.body)
				}
				if strings.HasPrefix(path, "/mcp") && a.status != 200 {
					t.Errorf("%s at %q: %d %s", path, host, a.status, a.body)
				}
			}
		}
		for _, path := range slashed("/mcp") {
			if a := s.request(t, "POST", path, initialize, asJSON...); a.status != 401 || !strings.Contains(a.header.Get("WWW-Authenticate"), s.url+"/.well-known/oauth-protected-resource/mcp") {
				t.Errorf("%s without credentials: %d %s", path, a.status, a.header.Get("WWW-Authenticate"))
			}
		}
	})
}

// slashed is each path as it is and with a slash at the end.
func slashed(paths ...string) []string {
	out := []string{}
	for _, p := range paths {
		out = append(out, p, p+"/")
	}
	return out
}

// A proxy ends TLS and says so, or a client pretends that one did: neither makes an address of ours http.
func TestAddressesStayHTTPSWhateverAPeerForwards(t *testing.T) {
	onBoth(t, func(t *testing.T, s *server) {
		s.user(t, owner, orgName, "owner")
		key := s.key(t, orgName, "org:read")
		const public = "https://switch.example"
		pretending := []string{"Host", "switch.example", "X-Forwarded-Proto", "http", "X-Forwarded-Host", "evil.example", "X-Forwarded-For", "127.0.0.1", "Forwarded", "proto=http;host=evil.example"}
		for _, with := range [][]string{{"Host", "switch.example"}, pretending} {
			for _, path := range slashed("/mcp", "/oauth/register", "/oauth/token", "/oauth/revoke", "/oauth/introspect", "/register", "/token") {
				for _, authorization := range []string{"", "Bearer " + key} {
					headers := append(append([]string{}, with...), asJSON...)
					if authorization != "" {
						headers = append(headers, "Authorization", authorization)
					}
					a := s.request(t, "POST", path, initialize, headers...)
					said := a.body + strings.Join(a.header.Values("WWW-Authenticate"), " ")
					if a.status >= 300 && a.status < 400 || a.status >= 500 || strings.Contains(said, "http:") || strings.Contains(said, "evil.example") {
						t.Errorf("POST %s with %v: %d %s", path, with, a.status, said)
					}
					if !strings.HasPrefix(path, "/mcp") {
						continue
					}
					if want := map[bool]int{true: 401, false: 200}[authorization == ""]; a.status != want {
						t.Errorf("POST %s with %q: %d", path, authorization, a.status)
					}
					if authorization == "" && !strings.Contains(said, `resource_metadata="`+public+`/.well-known/oauth-protected-resource/mcp"`) {
						t.Errorf("POST %s: the challenge %s", path, said)
					}
				}
			}
			server := s.request(t, "GET", "/.well-known/oauth-authorization-server", "", with...).json(t)
			for _, path := range []string{"/.well-known/oauth-protected-resource", "/.well-known/oauth-protected-resource/mcp"} {
				resource := s.request(t, "GET", path, "", with...).json(t)
				if server["issuer"] != public || resource["resource"] != public+"/mcp" || !slices.Equal(resource["authorization_servers"].([]any), []any{public}) {
					t.Errorf("%s with %v: %v of %v", path, with, resource, server["issuer"])
				}
			}
			for name, value := range server {
				if v, ok := value.(string); ok && !strings.HasPrefix(v, public) {
					t.Errorf("%s is %s with %v", name, v, with)
				}
			}
		}
	}, "SWITCHBOARD_URL=https://switch.example")
}

// There are no sessions and no streams, so none can be lost, hang or be unknown.
func TestAnIdOfASessionIsIgnoredAlsoAfterARestart(t *testing.T) {
	onBoth(t, func(t *testing.T, s *server) {
		s.user(t, owner, orgName, "owner")
		headers := append([]string{"Authorization", "Bearer " + s.key(t, orgName, "org:read")}, asJSON...)
		if a := s.request(t, "POST", "/mcp", initialize, headers...); a.status != 200 || a.header.Get("Mcp-Session-Id") != "" {
			t.Errorf("initialize: %d with the session %q", a.status, a.header.Get("Mcp-Session-Id"))
		}
		headers = append(headers, "Mcp-Session-Id", "of-the-process-before")
		for range 2 {
			if a := s.request(t, "POST", "/mcp", `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, headers...); a.status != 200 || !strings.Contains(a.body, `"tools"`) {
				t.Errorf("tools/list: %d %s", a.status, a.body)
			}
			for _, method := range []string{"GET", "HEAD", "PUT", "DELETE"} {
				for _, accept := range []string{"text/event-stream", "application/json"} {
					began := time.Now()
					a := s.request(t, method, "/mcp", "", "Authorization", headers[1], "Accept", accept, "Mcp-Session-Id", "x")
					if a.status != 405 || a.header.Get("Allow") != "POST" || time.Since(began) > time.Second {
						t.Errorf("%s of %s: %d with Allow %q after %s", method, accept, a.status, a.header.Get("Allow"), time.Since(began))
					}
				}
				if a := s.request(t, method, "/mcp", "", "Accept", "text/event-stream"); a.status != 401 || !strings.HasPrefix(a.header.Get("WWW-Authenticate"), "Bearer ") {
					t.Errorf("%s without credentials: %d %q", method, a.status, a.header.Get("WWW-Authenticate"))
				}
			}
			s.stop(t)
			s.launch(t)
		}
	})
}

func TestAKeyIsGoodForToolsAndForNothingElse(t *testing.T) {
	onBoth(t, func(t *testing.T, s *server) {
		s.user(t, owner, orgName, "owner")
		key := s.key(t, orgName, "org:read")
		client := s.register(t, "Reader", redirect)
		bearer := []string{"Authorization", "Bearer " + key}
		for _, path := range []string{"/connections", "/clients", "/keys", "/audit"} {
			if a := s.request(t, "GET", path, "", bearer...); a.status != http.StatusSeeOther || !strings.HasPrefix(a.header.Get("Location"), "/sign-in") {
				t.Errorf("GET %s: %d to %q", path, a.status, a.header.Get("Location"))
			}
			a := s.request(t, "POST", path, "create=key&name=x&scope=org%3Aread", append(bearer, "Content-Type", "application/x-www-form-urlencoded")...)
			if a.status < 400 && !strings.HasPrefix(a.header.Get("Location"), "/sign-in") || a.status >= 500 || strings.Contains(a.body, "sb_live_") {
				t.Errorf("POST %s: %d %.200s", path, a.status, a.body)
			}
		}
		for what, form := range map[string]url.Values{
			"/oauth/token as a refresh token": {"grant_type": {"refresh_token"}, "client_id": {client}, "refresh_token": {key}},
			"/oauth/token as a code":          {"grant_type": {"authorization_code"}, "client_id": {client}, "code": {key}, "code_verifier": {strings.Repeat("a", 43)}},
			"/oauth/token as a secret":        {"grant_type": {"refresh_token"}, "client_id": {client}, "client_secret": {key}, "refresh_token": {key}},
			"/oauth/introspect as a token":    {"client_id": {client}, "token": {key}},
		} {
			path, _, _ := strings.Cut(what, " ")
			for _, headers := range [][]string{nil, bearer} {
				a := s.request(t, "POST", path, form.Encode(), append(headers, "Content-Type", "application/x-www-form-urlencoded")...)
				if a.status != 400 && a.status != 401 || a.json(t)["error"] == nil || strings.Contains(a.body, key) {
					t.Errorf("%s with %d headers: %d %s", what, len(headers), a.status, a.body)
				}
			}
		}
		if a := do(t, http.DefaultClient, formPost(t, s.url+"/oauth/revoke", url.Values{"client_id": {client}, "token": {key}})); a.status != 200 {
			t.Errorf("revoking it as if it were a client's: %d", a.status)
		}
		if a := s.call(t, key, "tools/list", map[string]any{}); a.status != 200 {
			t.Errorf("after all of it: %d %s", a.status, a.body)
		}
		if strings.Contains(s.logs.String(), key[len("sb_live_"):]) {
			t.Error("the key is in the log")
		}
	})
}

func TestTheChallengeIsWhatClientsParse(t *testing.T) {
	onBoth(t, func(t *testing.T, s *server) {
		s.user(t, owner, orgName, "owner")
		parameter := regexp.MustCompile(`(\w+)="([^"\\]*)"`)
		for name, c := range map[string]struct {
			header []string
			err    string
		}{
			"no header":   {nil, ""},
			"garbage":     {[]string{"Authorization", "Bearer garbage"}, "invalid_token"},
			"empty":       {[]string{"Authorization", "Bearer "}, "invalid_token"},
			"two words":   {[]string{"Authorization", "Bearer a b"}, "invalid_token"},
			"basic":       {[]string{"Authorization", "Basic eDp5"}, "invalid_token"},
			"long":        {[]string{"Authorization", "Bearer " + strings.Repeat("x", 10_000)}, "invalid_token"},
			"two headers": {[]string{"Authorization", "Bearer a", "Authorization", "Bearer b"}, "invalid_token"},
		} {
			a := s.request(t, "POST", "/mcp", initialize, append(c.header, asJSON...)...)
			challenges := a.header.Values("WWW-Authenticate")
			if a.status != 401 || len(challenges) != 1 || !strings.HasPrefix(challenges[0], "Bearer ") {
				t.Errorf("%s: %d %v", name, a.status, challenges)
				continue
			}
			got := map[string]string{}
			for _, m := range parameter.FindAllStringSubmatch(challenges[0], -1) {
				if _, twice := got[m[1]]; twice {
					t.Errorf("%s: %s is there twice", name, m[1])
				}
				got[m[1]] = m[2]
			}
			if got["error"] != c.err || got["resource_metadata"] != s.url+"/.well-known/oauth-protected-resource/mcp" {
				t.Errorf("%s: %v", name, got)
			}
		}
		key := s.key(t, orgName, "org:read")
		for name, c := range map[string]struct {
			method string
			header []string
			path   string
			want   int
		}{
			"lower-case scheme":  {"POST", []string{"Authorization", "bearer " + key}, "/mcp", 200},
			"key in the query":   {"POST", nil, "/mcp?api_key=" + key + "&access_token=" + key, 401},
			"GET":                {"GET", []string{"Authorization", "Bearer " + key}, "/mcp", 405},
			"DELETE":             {"DELETE", []string{"Authorization", "Bearer " + key}, "/mcp", 405},
			"PUT":                {"PUT", []string{"Authorization", "Bearer " + key}, "/mcp", 405},
			"GET without one":    {"GET", nil, "/mcp", 401},
			"an old session":     {"POST", []string{"Authorization", "Bearer " + key, "Mcp-Session-Id", "gone"}, "/mcp", 200},
			"at the token's end": {"POST", []string{"Authorization", "Bearer " + key, "Content-Type", "application/x-www-form-urlencoded"}, "/oauth/token", 400},
		} {
			headers := c.header
			if strings.HasPrefix(c.path, "/mcp") {
				headers = append(headers, asJSON...)
			}
			a := s.request(t, c.method, c.path, initialize, headers...)
			if a.status != c.want || a.status == 405 && a.header.Get("Allow") != "POST" {
				t.Errorf("%s: %d %s %s", name, a.status, a.header.Get("Allow"), a.body)
			}
		}
		if strings.Contains(s.logs.String(), key[len("sb_live_"):]) {
			t.Error("the key is in the log")
		}
	})
}

func TestBrowserClientsGetInAndForeignPagesDoNot(t *testing.T) {
	onBoth(t, func(t *testing.T, s *server) {
		const inspector = "http://localhost:6274"
		for _, path := range []string{"/.well-known/oauth-protected-resource/mcp", "/.well-known/oauth-authorization-server", "/oauth/register", "/oauth/token", "/oauth/revoke", "/mcp"} {
			a := s.request(t, "OPTIONS", path, "", "Origin", inspector, "Access-Control-Request-Method", "POST", "Access-Control-Request-Headers", "authorization,content-type,mcp-protocol-version")
			if a.status != 200 && a.status != 204 || a.header.Get("Access-Control-Allow-Origin") == "" || !strings.Contains(strings.ToLower(a.header.Get("Access-Control-Allow-Headers")), "mcp-protocol-version") {
				t.Errorf("preflight of %s: %d %v", path, a.status, a.header)
			}
			method := "POST"
			if strings.HasPrefix(path, "/.well-known") {
				method = "GET"
			}
			a = s.request(t, method, path, "{}", append([]string{"Origin", inspector}, asJSON...)...)
			allowed := a.header.Get("Access-Control-Allow-Origin")
			if allowed != "*" && allowed != inspector || a.header.Get("Access-Control-Allow-Credentials") != "" {
				t.Errorf("%s %s (%d): %v", method, path, a.status, a.header)
			}
		}
		a := s.request(t, "POST", "/mcp", initialize, append([]string{"Origin", inspector}, asJSON...)...)
		if !strings.Contains(strings.ToLower(a.header.Get("Access-Control-Expose-Headers")), "www-authenticate") {
			t.Errorf("a browser cannot read the challenge: %v", a.header)
		}
		if a := s.request(t, "POST", "/mcp", initialize, append([]string{"Origin", "https://evil.example"}, asJSON...)...); a.status != 403 {
			t.Errorf("a foreign page: %d", a.status)
		}
		for _, path := range []string{
			"/oauth/authorize?client_id=x", "/authorize?client_id=x", "/sign-in", "/setup", "/consent/x", "/connect", "/connections", "/clients", "/keys", "/audit", "/oauth/introspect",
		} {
			for _, method := range []string{"OPTIONS", "GET", "POST"} {
				a := s.request(t, method, path, "", "Origin", inspector, "Access-Control-Request-Method", "POST", "Access-Control-Request-Headers", "content-type")
				if a.header.Get("Access-Control-Allow-Origin") != "" || a.header.Get("Access-Control-Allow-Headers") != "" || a.status >= 500 {
					t.Errorf("%s %s is open to other pages, with %d", method, path, a.status)
				}
			}
		}
	})
}

func TestTheFrontDoorTakesEverySpellingThatClientsUse(t *testing.T) {
	onBoth(t, func(t *testing.T, s *server) {
		s.user(t, owner, orgName, "owner")
		key := []string{"Authorization", "Bearer " + s.key(t, orgName, "org:read")}
		list := `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`
		for name, c := range map[string]struct {
			body    string
			headers []string
			want    int
		}{
			"charset":                    {initialize, []string{"Content-Type", "application/json; charset=utf-8", "Accept", "application/json, text/event-stream"}, 200},
			"capitals":                   {initialize, []string{"Content-Type", "Application/JSON", "Accept", "application/json, text/event-stream"}, 200},
			"accept anything":            {initialize, []string{"Content-Type", "application/json", "Accept", "*/*"}, 200},
			"accept a stream":            {initialize, []string{"Content-Type", "application/json", "Accept", "text/event-stream"}, 200},
			"accept JSON":                {initialize, []string{"Content-Type", "application/json", "Accept", "application/json"}, 200},
			"the public name":            {initialize, append([]string{"Host", "public.example"}, asJSON...), 200},
			"somebody else's name":       {initialize, append([]string{"Host", "evil.example"}, asJSON...), 403},
			"a revision of the future":   {strings.Replace(initialize, "2025-06-18", "2099-01-01", 1), append([]string{"MCP-Protocol-Version", "2099-01-01"}, asJSON...), 200},
			"no revision after init":     {list, append([]string{"MCP-Protocol-Version", "bogus"}, asJSON...), 400},
			"text":                       {initialize, []string{"Content-Type", "text/plain", "Accept", "*/*"}, 415},
			"no JSON":                    {"hello", asJSON, 400},
			"nothing":                    {"", asJSON, 400},
			"too much":                   {`{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"x":"` + strings.Repeat("a", 2<<20) + `"}}`, asJSON, 413},
			"a tool that is not there":   {`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"nope","arguments":{}}}`, asJSON, 200},
			"a method that is not there": {`{"jsonrpc":"2.0","id":1,"method":"nope"}`, asJSON, 200},
		} {
			a := s.request(t, "POST", "/mcp", c.body, append(append([]string{}, key...), c.headers...)...)
			if a.status != c.want || !strings.HasPrefix(a.header.Get("Content-Type"), "application/json") {
				t.Errorf("%s: %d %s %.200s", name, a.status, a.header.Get("Content-Type"), a.body)
			}
		}
	}, "SWITCHBOARD_HOSTS=public.example")
}

func TestTheTokenEndpointsErrorsAreThoseThatClientsActOn(t *testing.T) {
	onBoth(t, func(t *testing.T, s *server) {
		s.user(t, owner, orgName, "owner")
		mine, other := s.register(t, "Mine", redirect), s.register(t, "Other", redirect)
		live := newScript(t, s, owner).connect(mine, "")
		for name, c := range map[string]struct {
			form   url.Values
			status int
			err    string
		}{
			"unknown token":    {url.Values{"grant_type": {"refresh_token"}, "client_id": {mine}, "refresh_token": {"sb_rt_x"}}, 400, "invalid_grant"},
			"another client's": {url.Values{"grant_type": {"refresh_token"}, "client_id": {other}, "refresh_token": {live.refresh}}, 400, "invalid_grant"},
			"no token":         {url.Values{"grant_type": {"refresh_token"}, "client_id": {mine}}, 400, "invalid_request"},
			"unknown client":   {url.Values{"grant_type": {"refresh_token"}, "client_id": {"cli_x"}, "refresh_token": {live.refresh}}, 401, "invalid_client"},
			"unknown grant":    {url.Values{"grant_type": {"password"}, "client_id": {mine}}, 400, "unsupported_grant_type"},
			"wider scope":      {url.Values{"grant_type": {"refresh_token"}, "client_id": {mine}, "refresh_token": {live.refresh}, "scope": {"contacts:read nope:read"}}, 400, "invalid_scope"},
			"unknown code":     {url.Values{"grant_type": {"authorization_code"}, "client_id": {mine}, "code": {"x"}, "code_verifier": {strings.Repeat("a", 43)}}, 400, "invalid_grant"},
		} {
			a := do(t, http.DefaultClient, formPost(t, s.url+"/oauth/token", c.form))
			if a.status != c.status || a.json(t)["error"] != c.err || a.header.Get("Cache-Control") != "no-store" {
				t.Errorf("%s: %d %s", name, a.status, a.body)
			}
		}
		if a := s.postJSON(t, "/oauth/token", map[string]string{"grant_type": "refresh_token"}); a.status != 400 {
			t.Errorf("JSON: %d", a.status)
		}
		if a := s.request(t, "GET", "/oauth/token", ""); a.status != 405 || a.header.Get("Allow") == "" {
			t.Errorf("GET: %d", a.status)
		}
		for _, path := range []string{"/oauth/authorize?client_id=unknown&redirect_uri=https%3A%2F%2Fx.example", "/oauth/authorize?response_type=code&client_id=" + mine + "&redirect_uri=https%3A%2F%2Fevil.example"} {
			if a := s.request(t, "GET", path, ""); a.status != 400 || !strings.HasPrefix(a.header.Get("Content-Type"), "text/html") || a.header.Get("Location") != "" || !strings.Contains(a.body, "add it again") {
				t.Errorf("%s: %d %s", path, a.status, a.body)
			}
		}
		readTokens(t, s.refresh(t, mine, live.refresh)) // none of it cost the token
	})
}

func TestARequestThatBreaksOffIsNoTrouble(t *testing.T) {
	onBoth(t, func(t *testing.T, s *server) {
		r, w := io.Pipe()
		go func() { _, _ = w.Write([]byte("grant_type=")); _ = w.CloseWithError(io.ErrUnexpectedEOF) }()
		req, _ := http.NewRequestWithContext(t.Context(), "POST", s.url+"/oauth/token", r)
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		if resp, err := http.DefaultClient.Do(req); err == nil && resp.StatusCode >= 500 {
			t.Errorf("%d", resp.StatusCode)
		}
		if strings.Contains(s.logs.String(), "panic") {
			t.Error(s.logs.String())
		}
	})
}
