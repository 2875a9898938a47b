package main

import (
	"context"
	"encoding/json"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/netip"
	"net/url"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"switchboard/internal/doctor"
)

func TestEveryClientConnectsToAHealthyServer(t *testing.T) {
	s := newSite(t, "--url=https://example.com")
	r := s.examine(t)
	if len(failing(r)) > 0 || len(r.Warnings) > 0 || r.Everyone != nil {
		t.Errorf("%s", text(t, r))
	}
	for _, c := range r.Clients {
		want := 8
		if fewer, ok := map[string]int{"key": 2, "2025-03-26": 7}[c.ID]; ok {
			want = fewer
		}
		if len(c.Passed) != want || len(c.Notes) > 0 {
			t.Errorf("%s passed %v, %v", c.Client, c.Passed, c.Notes)
		}
	}
}

// planted is a misconfiguration, the word for it, a part of the remedy, and whom it stops.
type planted struct {
	name  string
	fault misfit
	code  string
	do    string
	whom  func(doctor.Client) bool
}

func everyone(doctor.Client) bool         { return true }
func thoseWhoSignIn(c doctor.Client) bool { return !c.Key }
func theBrowser(c doctor.Client) bool     { return c.From == doctor.Browser }
func thoseWhoCompare(c doctor.Client) bool {
	return !c.Key && !c.Rooted
}

const metadata = "/.well-known/oauth-authorization-server"

// misconfigurations are of proxies, one at a time.
func misconfigurations() []planted {
	redirect := func(to string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, to, http.StatusTemporaryRedirect) }
	}
	return []planted{
		{"a catch-all page at /.well-known/", at("", "/.well-known/", page(200)), "well_known_page", "location /.well-known/", thoseWhoSignIn},
		{"/.well-known/ is not passed on", at("", "/.well-known/oauth-protected", page(404)), "well_known_page", "location /.well-known/", thoseWhoCompare},
		{"nothing is passed on", at("", "/", page(200)), "page", "proxy_pass", everyone},
		{"WWW-Authenticate is removed", headers(func(h http.Header) { h.Del("WWW-Authenticate") }), "challenge_missing", "proxy_hide_header WWW-Authenticate", everyone},
		{"WWW-Authenticate is there twice", headers(func(h http.Header) { h.Add("WWW-Authenticate", `Bearer realm="proxy"`) }), "challenge_many", "add_header WWW-Authenticate", everyone},
		{"WWW-Authenticate is replaced", headers(func(h http.Header) { h.Set("WWW-Authenticate", `Bearer realm="proxy"`) }), "challenge_bare", "add_header WWW-Authenticate", everyone},
		{"Authorization is removed", sent(func(r *http.Request) { r.Header.Del("Authorization") }), "authorization_stripped", "proxy_set_header Authorization", everyone},
		{"Authorization is added", sent(func(r *http.Request) { r.Header.Set("Authorization", "Basic cHJveHk6") }), "authorization_added", "proxy_set_header Authorization", everyone},
		{"the proxy asks for a password", at("", "/", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("WWW-Authenticate", `Basic realm="proxy"`)
			w.WriteHeader(401)
		}), "password_asked", "auth_basic", everyone},
		{"Host is the upstream's name", sent(func(r *http.Request) { r.Host = "switchboard.internal:8080" }), "host_rewritten", "proxy_set_header Host $host;", everyone},
		{"a slash is added to /mcp", at("POST", "/mcp", redirect("/mcp/")), "redirected", "location /mcp/", everyone},
		{"http is made of https", at("", "/", redirect("http://example.com/mcp")), "redirected", "proxy_pass http://127.0.0.1:8080; alone", everyone},
		{"a bare name is sent to www", at("", "/", redirect("https://www.example.com/mcp")), "redirected", "SWITCHBOARD_URL to https://www.example.com", everyone},
		{"a portal before everything", at("", "/", redirect("https://sso.example/login")), "redirected", "exempt this whole host", everyone},
		{"a portal before the pages", at("", "/oauth/authorize", redirect("https://sso.example/login")), "page_redirected", "exempt this whole host", thoseWhoSignIn},
		{"Switchboard is not running", at("", "/", page(502)), "bad_gateway", "SWITCHBOARD_ADDR", everyone},
		{"the proxy has a limit that it calls trouble", at("POST", "/oauth/token", page(503)), "bad_gateway", "limit_req", thoseWhoSignIn},
		{"Switchboard is slow", at("", "/oauth/token", page(504)), "bad_gateway", "proxy_read_timeout", thoseWhoSignIn},
		{"a firewall refuses the registration", at("", "/oauth/register", page(403)), "blocked", "Exempt /mcp, /.well-known/ and /oauth/", thoseWhoSignIn},
		{"the registration is too large", at("POST", "/oauth/register", page(413)), "too_large", "client_max_body_size", thoseWhoSignIn},
		{"the proxy has a limit", at("POST", "/oauth/register", page(429)), "rate_limited", "limit_req", thoseWhoSignIn},
		{"the proxy lets no POST through", at("POST", "/oauth/token", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(405) }), "method_refused", "limit_except", thoseWhoSignIn},
		{"OPTIONS is answered by the proxy", at("OPTIONS", "/", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(204) }), "preflight", "$request_method = OPTIONS", theBrowser},
		{"OPTIONS is refused", at("OPTIONS", "/", page(405)), "preflight", "$request_method = OPTIONS", theBrowser},
		{"CORS is lost on errors", answered(func(_ *http.Request, status int, h http.Header, body string) (int, string) {
			if status >= 400 {
				h.Del("Access-Control-Allow-Origin")
			}
			return status, body
		}), "cors_missing", "proxy_hide_header Access-Control-Allow-Origin", theBrowser},
		{"CORS is there twice", headers(func(h http.Header) { h.Add("Access-Control-Allow-Origin", "*") }), "cors_twice", "add_header Access-Control", theBrowser},
		{"the challenge is not shown to pages", headers(func(h http.Header) { h.Del("Access-Control-Expose-Headers") }), "cors_hidden", "proxy_hide_header", theBrowser},
		{"cookies are removed", headers(func(h http.Header) { h.Del("Set-Cookie") }), "cookies_lost", "proxy_hide_header Set-Cookie", thoseWhoSignIn},
		{"Cache-Control is replaced", headers(func(h http.Header) { h.Set("Cache-Control", "max-age=60") }), "token_cacheable", "proxy_hide_header Cache-Control", thoseWhoSignIn},
		{"errors are replaced by pages", answered(func(r *http.Request, status int, h http.Header, body string) (int, string) {
			if status == 400 {
				h.Set("Content-Type", "text/html")
				return status, "<h1>Bad request</h1>"
			}
			return status, body
		}), "page", "error_page", thoseWhoSignIn},
		{"queries are cut", sent(func(r *http.Request) { r.URL.RawQuery = "" }), "error_page", "log", thoseWhoSignIn},
		{"the registration's answer is cut", rewritten("/oauth/register", `"client_id"`, `"id"`), "registration_incomplete", "sub_filter", thoseWhoSignIn},
		{"the registration's answer has holes", rewritten("/oauth/register", `"client_id"`, `"logo_uri":null,"client_id"`), "registration_empty", "bug", thoseWhoSignIn},
		{"the issuer gets a slash", rewritten(metadata, `"issuer":"https://example.com"`, `"issuer":"https://example.com/"`), "issuer_mismatch", "sub_filter", thoseWhoCompare},
		{"endpoints become http", rewritten(metadata, "https://example.com/oauth", "http://example.com/oauth"), "endpoint_scheme", "SWITCHBOARD_URL", thoseWhoSignIn},
		{"the database is down", at("POST", "/oauth/register", object(503, `{"error":"temporarily_unavailable"}`)), "database_down", "SWITCHBOARD_DATABASE", thoseWhoSignIn},
		{"Switchboard fails", at("", "/oauth/token", object(500, `{"error":"internal"}`)), "server_error", "req_1", thoseWhoSignIn},
		{"Origin is the proxy's", sent(func(r *http.Request) {
			if r.Header.Get("Origin") != "" {
				r.Header.Set("Origin", "https://proxy.example")
			}
		}), "origin_refused", "SWITCHBOARD_ORIGINS", theBrowser},
		{"somebody else answers", at("POST", "/mcp", object(200, `{}`)), "not_asked", "the address of Switchboard", everyone},
		{"the metadata is plain text", answered(func(r *http.Request, status int, h http.Header, body string) (int, string) {
			if strings.HasPrefix(r.URL.Path, "/.well-known/") {
				h.Set("Content-Type", "text/plain")
			}
			return status, body
		}), "not_json", "/.well-known/", thoseWhoSignIn},
		{"the metadata is somebody else's", at("", "/.well-known/oauth-protected", object(200, `{}`)), "metadata_incomplete", "unchanged", thoseWhoCompare},
		{"GET on the endpoint is answered by the proxy", at("GET", "/mcp", object(200, `{}`)), "stream", "GET /mcp", thoseWhoSignIn},
		{"the registration is changed", at("POST", "/oauth/register", object(400, `{"error":"invalid_redirect_uri"}`)), "registration_refused", "/oauth/register", thoseWhoSignIn},
		{"queries are rewritten", sent(func(r *http.Request) {
			q := r.URL.Query()
			q.Del("code_challenge")
			r.URL.RawQuery = q.Encode()
		}), "authorize_refused", "queries", thoseWhoSignIn},
		{"a bot check before the sign-in", at("GET", "/sign-in", page(200)), "no_sign_in", "bot checks", thoseWhoSignIn},
		{"a firewall before the sign-in", at("GET", "/sign-in", page(403)), "blocked", "firewall", thoseWhoSignIn},
		{"the sign-in leads to itself", at("GET", "/sign-in", redirect("/sign-in")), "redirect_loop", "redirects", thoseWhoSignIn},
		{"tokens are answered by somebody else", at("POST", "/oauth/token", object(200, `{}`)), "token_answer", "POST /oauth/token", thoseWhoSignIn},
		{"S256 is not offered", rewritten(metadata, `"S256"`, `"plain"`), "no_s256", "unchanged", thoseWhoSignIn},
		{"an endpoint is missing", rewritten(metadata, `"registration_endpoint"`, `"x"`), "endpoint_missing", "unchanged", thoseWhoSignIn},
	}
}

func TestEachMisconfigurationOfAProxyIsNamedWithItsRemedy(t *testing.T) {
	s := newSite(t, "--url=https://example.com")
	for _, p := range misconfigurations() {
		s.fault.Store(&p.fault)
		r := s.examine(t)
		want := map[string]string{}
		for _, c := range registering() {
			if p.whom(c) {
				want[c.ID] = p.code
			}
		}
		if diff := cmp.Diff(want, failing(r)); diff != "" {
			t.Errorf("%s: %s%s", p.name, diff, text(t, r))
		}
		for _, c := range r.Clients {
			if c.Finding != nil && c.Finding.Code == p.code && (!strings.Contains(c.Finding.Do, p.do) || c.Finding.Saw == "" || c.Finding.Step == "") {
				t.Errorf("%s: %s is told %+v, want %q", p.name, c.Client, *c.Finding, p.do)
				break
			}
		}
	}
}

func TestWhatStopsAllIsSaidOnceAtTheTop(t *testing.T) {
	s := newSite(t, "--url=https://example.com")
	down := at("", "/", page(502))
	s.fault.Store(&down)
	r := s.examine(t)
	got := text(t, r)
	if r.Everyone == nil || strings.Count(got, "SWITCHBOARD_ADDR") != 1 || strings.Count(got, "  fails\n") != len(r.Clients) || !strings.Contains(got, "Every client fails at the first request.\n") {
		t.Errorf("%s", got)
	}
	eaten := at("", "/.well-known/oauth-protected", page(200))
	s.fault.Store(&eaten)
	if got := text(t, s.examine(t)); strings.Count(got, "location /.well-known/") != 1 || !strings.Contains(got, "Cursor                fails at the resource metadata [1]\n") || !strings.Contains(got, "CI with an API key    ok\n") {
		t.Errorf("%s", got)
	}
}

func TestAnswersThatNeverComeAreGivenUp(t *testing.T) {
	s := newSite(t, "--url=https://example.com")
	ended := make(chan struct{})
	t.Cleanup(func() { close(ended) })
	hang := func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		w.WriteHeader(200)
		_ = http.NewResponseController(w).Flush()
		select {
		case <-ended:
		case <-r.Context().Done():
		}
	}
	for _, c := range []struct {
		method, path, code string
		whom               func(doctor.Client) bool
	}{{"GET", "/mcp", "stream_hangs", thoseWhoSignIn}, {"POST", "/mcp", "hang", everyone}} {
		f := at(c.method, c.path, hang)
		s.fault.Store(&f)
		r := s.examine(t, func(cfg *doctor.Config) { cfg.Patience = 2 * time.Second })
		for _, client := range registering() {
			if got := failing(r)[client.ID]; c.whom(client) && got != c.code || !c.whom(client) && got != "" {
				t.Errorf("%s %s: %s: %q", c.method, c.path, client.Name, got)
			}
		}
	}
}

func TestAServerWithAnotherAddressIsToldWhichToSet(t *testing.T) {
	for _, c := range []struct {
		args []string
		code string
		whom func(doctor.Client) bool
	}{
		{[]string{"--url=https://other.example"}, "host_unknown", everyone},
		{[]string{"--url=https://other.example", "--hosts=example.com"}, "other_address", thoseWhoCompare},
		{[]string{"--url=http://example.com", "--insecure"}, "other_address", thoseWhoCompare},
	} {
		s := newSite(t, c.args...)
		r := s.examine(t, func(cfg *doctor.Config) {
			cfg.Clients = slices.DeleteFunc(cfg.Clients, func(c doctor.Client) bool { return c.Rooted }) // it follows to other.example
		})
		for i, client := range r.Clients {
			if f := client.Finding; c.whom(registering()[slices.IndexFunc(registering(), func(x doctor.Client) bool { return x.ID == client.ID })]) {
				if f == nil || f.Code != c.code || !strings.Contains(f.Do, "Set SWITCHBOARD_URL=https://example.com and restart, or paste "+strings.TrimPrefix(c.args[0], "--url=")+"/mcp.") {
					t.Errorf("%v: %s: %+v", c.args, r.Clients[i].Client, f)
				}
			} else if f != nil {
				t.Errorf("%v: %s: %+v", c.args, client.Client, f)
			}
		}
	}
}

func TestASecondAddressOfAServerIsNothingToConfigureItFor(t *testing.T) {
	server := newMachine(t).serve(false)
	second := strings.Replace(server.url, "localhost", "127.0.0.1", 1)
	for address, want := range map[string][2]string{
		second:                 {"other_address", "Use " + server.url + "/mcp, which is the address to paste"},
		server.url + "/at/mcp": {"not_found", "Switchboard needs a host of its own"},
	} {
		r, err := doctor.New(doctor.Config{Clients: registering()[1:2]}).Examine(t.Context(), address)
		if err != nil {
			t.Fatal(err)
		}
		if f := r.Clients[0].Finding; f == nil || f.Code != want[0] || !strings.Contains(f.Do, want[1]) {
			t.Errorf("%s: %+v, want %v", address, f, want)
		}
	}
}

func TestAServerBelowAPathIsToldToHaveAHostOfItsOwn(t *testing.T) {
	s := newSite(t, "--url=https://example.com")
	below := sent(func(r *http.Request) { r.URL.Path = strings.TrimPrefix(r.URL.Path, "/tools") })
	s.fault.Store(&below)
	r, err := doctor.New(doctor.Config{Clients: registering()[:1], HTTP: s.to(true), Lookup: outside}).Examine(t.Context(), "https://example.com/tools/mcp")
	if err != nil {
		t.Fatal(err)
	}
	if f := r.Clients[0].Finding; f == nil || f.Code != "resource_mismatch" || !strings.HasPrefix(f.Do, "Paste https://example.com/mcp.") {
		t.Errorf("%+v", f)
	}
}

func TestAClientOf20250326TakesFixedPathsWhereThereIsNoMetadata(t *testing.T) {
	s := newSite(t, "--url=https://example.com")
	aliased := func(pass http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == metadata {
				page(404)(w, r)
				return
			}
			pass.ServeHTTP(w, r)
		})
	}
	for _, c := range []struct {
		fault misfit
		code  string
	}{{aliased, ""}, {at("", metadata, page(200)), "well_known_page"}} {
		s.fault.Store(&c.fault)
		if got := failing(s.examine(t))["2025-03-26"]; got != c.code {
			t.Errorf("%q, want %q", got, c.code)
		}
	}
}

func TestAClientWhoseDocumentCannotBeFetchedIsToldOfEgress(t *testing.T) {
	s := newSite(t, "--url=https://example.com")
	r := s.examine(t, func(cfg *doctor.Config) {
		cfg.Clients = registering()
		for i := range cfg.Clients {
			if cfg.Clients[i].ID == "claude-code" {
				cfg.Clients[i].Document = "https://client.invalid/document"
			}
		}
	})
	if diff := cmp.Diff(map[string]string{"claude-code": "client_document"}, failing(r)); diff != "" {
		t.Error(diff)
	}
	if got := text(t, r); !strings.Contains(got, "Let the server reach https://client.invalid") || !strings.Contains(got, "SWITCHBOARD_CLIENTS_ALLOW") {
		t.Errorf("%s", got)
	}
}

func TestCertificatesAndClocksAreLookedAt(t *testing.T) {
	s := newSite(t, "--url=https://example.com")
	r := s.examine(t, func(cfg *doctor.Config) { cfg.HTTP = s.to(false) })
	if r.Everyone == nil || r.Everyone.Code != "certificate_untrusted" || !strings.Contains(r.Everyone.Do, "fullchain.pem") {
		t.Errorf("%s", text(t, r))
	}
	warned := func(r *doctor.Report) (codes []string) {
		for _, w := range r.Warnings {
			codes = append(codes, w.Code)
		}
		return codes
	}
	for _, off := range []time.Duration{-2 * time.Minute, 2 * time.Minute} {
		wrong := headers(func(h http.Header) { h.Set("Date", time.Now().Add(off).UTC().Format(http.TimeFormat)) })
		s.fault.Store(&wrong)
		if r = s.examine(t); !slices.Equal(warned(r), []string{"clock"}) || r.Failing() > 0 {
			t.Errorf("%s off: %s", off, text(t, r))
		}
	}
	s.fault.Store(nil)
	end := s.proxy.Certificate().NotAfter
	r = s.examine(t, func(cfg *doctor.Config) { cfg.Now = func() time.Time { return end.Add(-6 * 24 * time.Hour) } })
	if !slices.Contains(warned(r), "certificate_ends") || r.Failing() > 0 {
		t.Errorf("%s", text(t, r))
	}
}

func TestWhatCannotBeReachedFromTheInternetIsNotedForThoseWhoCallFromThere(t *testing.T) {
	s := newSite(t, "--url=https://example.com")
	r := s.examine(t, func(cfg *doctor.Config) {
		cfg.Lookup = func(context.Context, string) ([]netip.Addr, error) {
			return []netip.Addr{netip.MustParseAddr("10.1.2.3")}, nil
		}
	})
	var noted []string
	for _, c := range r.Clients {
		if len(c.Notes) == 1 && c.Notes[0].Code == "not_public" && strings.Contains(c.Notes[0].Saw, "example.com is 10.1.2.3") {
			noted = append(noted, c.ID)
		}
	}
	if diff := cmp.Diff([]string{"claude", "chatgpt"}, noted); diff != "" || r.Failing() > 0 {
		t.Errorf("%s%s", diff, text(t, r))
	}
}

func TestPlainHTTPBeyondThisMachineIsWarnedOfAndKeepsVendorsAway(t *testing.T) {
	server := newMachine(t).serve(false, "--url=http://example.com", "--insecure")
	encrypting := false
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if encrypting {
			http.Redirect(w, r, "https://"+r.Host+r.URL.Path, http.StatusMovedPermanently)
			return
		}
		backend, _ := url.Parse(server.url)
		(&httputil.ReverseProxy{Rewrite: func(p *httputil.ProxyRequest) { p.SetURL(backend); p.Out.Host = p.In.Host }}).ServeHTTP(w, r)
	}))
	defer front.Close()
	examine := func() *doctor.Report {
		cfg := doctor.Config{Clients: registering(), Lookup: outside, HTTP: &http.Client{Transport: &http.Transport{
			DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
				return new(net.Dialer).DialContext(ctx, network, front.Listener.Addr().String())
			},
		}}}
		r, err := doctor.New(cfg).Examine(t.Context(), "http://example.com/mcp")
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	r := examine()
	if diff := cmp.Diff(map[string]string{"claude": "not_https", "chatgpt": "not_https"}, failing(r)); diff != "" || len(r.Warnings) != 1 || r.Warnings[0].Code != "clear_text" {
		t.Errorf("%s%s", diff, text(t, r))
	}
	encrypting = true
	if r := examine(); r.Everyone == nil || r.Everyone.Code != "redirected" || !strings.HasPrefix(r.Everyone.Do, "Paste the https:// address") {
		t.Errorf("%s", text(t, r))
	}
}

func TestTheDoctorCommandFailsWhenAClientWould(t *testing.T) {
	m := newMachine(t)
	server := m.serve(false)
	examined := *m // its own directory, in which nothing may be made
	examined.dir = t.TempDir() + "/elsewhere"
	const clients = "--client=cursor,VS Code,inspector,2025-03-26,key"
	for _, args := range [][]string{{server.url}, {server.url + "/mcp"}, {server.url + "/"}, {"--url=" + server.url}} {
		out, err := examined.run("", append([]string{"doctor", clients}, args...)...)
		if err != nil || strings.Count(out, "  ok\n") != 5 || !strings.Contains(out, server.url+"/mcp\n") {
			t.Errorf("%v: %v\n%s", args, err, out)
		}
	}
	out, err := examined.run("", "doctor", "--json", "--client=cursor,key", server.url)
	var report doctor.Report
	if err != nil || json.Unmarshal([]byte(out), &report) != nil || len(report.Clients) != 2 || len(report.Clients[0].Passed) != 8 {
		t.Errorf("%v\n%s", err, out)
	}
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_ = closed.Close()
	out, err = examined.run("", "doctor", "http://"+closed.Addr().String())
	if err == nil || !strings.Contains(err.Error(), "11 of 11 clients would not connect") || strings.Count(out, "Start Switchboard") != 1 || !strings.Contains(out, "Claude ") {
		t.Errorf("%v\n%s", err, out)
	}
	for _, c := range []struct{ arg, want string }{{"--client=netscape", "use one of claude, "}, {"ftp://example.com", "not the address of a server"}} {
		if _, err := examined.run("", "doctor", c.arg); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", c.arg, err)
		}
	}
	if _, err := os.Stat(examined.dir); err == nil {
		t.Error("the doctor made a directory")
	}
}
