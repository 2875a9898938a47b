//go:build e2e

package e2e

import (
	"io"
	"net/http"
	"net/url"
	"regexp"
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
		for _, path := range []string{"/mcp", "/mcp/", "/oauth/register", "/oauth/register/", "/oauth/token", "/oauth/token/", "/oauth/revoke", "/oauth/revoke/"} {
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
		for _, path := range []string{"/mcp", "/mcp/"} {
			if a := s.request(t, "POST", path, initialize, asJSON...); a.status != 401 || !strings.Contains(a.header.Get("WWW-Authenticate"), s.url+"/.well-known/oauth-protected-resource/mcp") {
				t.Errorf("%s without credentials: %d %s", path, a.status, a.header.Get("WWW-Authenticate"))
			}
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
		for _, path := range []string{"/oauth/authorize?client_id=x", "/sign-in", "/connections"} {
			if a := s.request(t, "GET", path, "", "Origin", inspector); a.header.Get("Access-Control-Allow-Origin") != "" {
				t.Errorf("%s is open to other pages", path)
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
			if a := s.request(t, "GET", path, ""); a.status != 400 || !strings.HasPrefix(a.header.Get("Content-Type"), "text/html") {
				t.Errorf("%s: %d", path, a.status)
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
