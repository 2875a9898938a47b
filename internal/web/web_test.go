package web

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"testing"

	"switchboard/internal/caller"
	"switchboard/internal/fault"
	"switchboard/internal/trial"
)

// lines are the log records.
func lines(t *testing.T, j *trial.Journal) []map[string]any {
	t.Helper()
	var out []map[string]any
	for line := range strings.Lines(j.String()) {
		var m map[string]any
		if err := json.Unmarshal([]byte(line), &m); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		out = append(out, m)
	}
	return out
}

func newEdge(t *testing.T, public string, change ...func(*Config)) (*Edge, *trial.Journal) {
	t.Helper()
	u, err := url.Parse(public)
	if err != nil {
		t.Fatal(err)
	}
	j := &trial.Journal{}
	cfg := Config{URL: u, Log: slog.New(slog.NewJSONHandler(j, &slog.HandlerOptions{Level: slog.LevelDebug}))}
	for _, c := range change {
		c(&cfg)
	}
	e, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return e, j
}

var ok = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok") })

// ask sends a request that never touches a socket; headers come in pairs.
func ask(h http.Handler, method, target, host string, headers ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, target, nil)
	r.Host = host
	for i := 0; i < len(headers); i += 2 {
		r.Header.Add(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

func TestHostsThatAreNotOursAreRefused(t *testing.T) {
	cases := []struct {
		public, host, path string
		want               int
	}{
		{"https://public.example", "public.example", "/mcp", 200},
		{"https://public.example", "PUBLIC.example.", "/mcp", 200},
		{"https://public.example", "public.example:443", "/mcp", 200},
		{"https://public.example", "public.example:8080", "/mcp", 200}, // a port mapping in front
		{"https://public.example", "127.0.0.1:8080", "/mcp", 200},      // from the same machine
		{"https://public.example", "[::1]:8080", "/mcp", 200},
		{"https://public.example", "localhost:8080", "/mcp", 200},
		{"https://public.example", "inside.internal:8080", "/mcp", 200}, // configured
		{"https://public.example", "evil.example", "/mcp", 403},
		{"https://public.example", "evil.example", "/sign-in", 403},
		{"https://public.example", "public.example.evil.example", "/mcp", 403},
		{"https://public.example", "localhost.evil.example", "/mcp", 403},
		{"https://public.example", "127.0.0.1.evil.example", "/mcp", 403},
		{"https://public.example", "10.0.0.7:8080", "/mcp", 403},
		{"https://public.example", "", "/mcp", 403},
		{"https://public.example", "10.0.0.7:8080", "/healthz", 200},
		{"https://public.example", "10.0.0.7:8080", "/readyz", 200},
		{"http://localhost:8080", "evil.example", "/mcp", 403},
		{"http://localhost:8080", "evil.example:8080", "/.well-known/oauth-authorization-server", 403},
		{"http://localhost:8080", "sb.localhost:8080", "/mcp", 200},
		{"http://localhost:8080", "127.0.0.1:8080", "/oauth/token", 200},
	}
	for _, c := range cases {
		e, _ := newEdge(t, c.public, func(cfg *Config) { cfg.Hosts = []string{"inside.internal"} })
		w := ask(e.Handler(ok), http.MethodPost, c.path, c.host)
		if w.Code != c.want {
			t.Errorf("%s asked for as %q %s: %d, want %d", c.public, c.host, c.path, w.Code, c.want)
		}
		if c.want == 403 && w.Header().Get("Content-Type") != "application/json" {
			t.Errorf("%q: refused as %s", c.host, w.Header().Get("Content-Type"))
		}
	}
}

func TestABrowserOnALoopbackNameIsSentToTheCanonicalOne(t *testing.T) {
	const local, public = "http://localhost:8080", "https://public.example"
	cases := []struct {
		public, method, host, target, want string
	}{
		{local, "GET", "127.0.0.1:8080", "/sign-in?next=%2Fkeys&a=b", local + "/sign-in?next=%2Fkeys&a=b"},
		{local, "HEAD", "[::1]:8080", "/", local + "/"},
		{local, "GET", "127.0.0.1:8080", "//evil.example/x", ""}, // there is no such path
		{local, "GET", "localhost:8080", "/sign-in", ""},
		{local, "GET", "localhost:9090", "/sign-in", ""}, // cookies do not know ports
		{local, "GET", "LOCALHOST:8080", "/sign-in", ""},
		{local, "POST", "127.0.0.1:8080", "/sign-in", ""},
		{public, "GET", "127.0.0.1:8080", "/sign-in", ""},
		{public, "GET", "public.example", "/sign-in", ""},
	}
	for _, c := range cases {
		e, _ := newEdge(t, c.public)
		r := httptest.NewRequest(c.method, "/", nil)
		u, err := url.ParseRequestURI(c.target)
		if err != nil {
			t.Fatal(err)
		}
		r.URL, r.Host = u, c.host
		w := httptest.NewRecorder()
		e.Handler(e.Canonical(ok)).ServeHTTP(w, r)
		if got := w.Header().Get("Location"); got != c.want || (got != "") != (w.Code == http.StatusTemporaryRedirect) {
			t.Errorf("%s %s at %s: %d to %q, want %q", c.method, c.target, c.host, w.Code, got, c.want)
		}
	}
}

func TestForwardedHeadersCountFromTrustedPeersOnly(t *testing.T) {
	proxies, err := ParsePrefixes("10.0.0.0/8, 192.0.2.1 fd00::/8")
	if err != nil {
		t.Fatal(err)
	}
	cases := []struct {
		name, peer string
		headers    []string
		ip         string
		host       string
	}{
		{"nobody in between", "203.0.113.9:5000", nil, "203.0.113.9", "public.example"},
		{"somebody who pretends", "203.0.113.9:5000", []string{"X-Forwarded-For", "198.51.100.1", "X-Forwarded-Proto", "https", "X-Forwarded-Host", "evil.example"}, "203.0.113.9", "public.example"},
		{"a proxy", "10.1.2.3:5000", []string{"X-Forwarded-For", "198.51.100.1", "X-Forwarded-Proto", "https", "X-Forwarded-Host", "other.example"}, "198.51.100.1", "other.example"},
		{"a single address", "192.0.2.1:5000", []string{"X-Forwarded-For", "198.51.100.1"}, "198.51.100.1", "public.example"},
		{"a client that pretends, behind a proxy", "10.1.2.3:5000", []string{"X-Forwarded-For", "1.1.1.1, 198.51.100.1"}, "198.51.100.1", "public.example"},
		{"two proxies", "10.1.2.3:5000", []string{"X-Forwarded-For", "1.1.1.1, 198.51.100.1, 10.9.9.9"}, "198.51.100.1", "public.example"},
		{"two headers", "10.1.2.3:5000", []string{"X-Forwarded-For", "1.1.1.1", "X-Forwarded-For", "198.51.100.1"}, "198.51.100.1", "public.example"},
		{"an address with a port", "10.1.2.3:5000", []string{"X-Forwarded-For", "198.51.100.1:4711"}, "198.51.100.1", "public.example"},
		{"IPv6", "[fd00::1]:5000", []string{"X-Forwarded-For", "2001:db8::1"}, "2001:db8::1", "public.example"},
		{"IPv4 in IPv6", "[::ffff:10.1.2.3]:5000", []string{"X-Forwarded-For", "198.51.100.1"}, "198.51.100.1", "public.example"},
		{"nonsense", "10.1.2.3:5000", []string{"X-Forwarded-For", "unknown", "X-Forwarded-Proto", "gopher"}, "10.1.2.3", "public.example"},
		{"nothing", "10.1.2.3:5000", nil, "10.1.2.3", "public.example"},
	}
	for _, c := range cases {
		e, _ := newEdge(t, "https://public.example", func(cfg *Config) {
			cfg.TrustedProxies, cfg.Hosts = proxies, []string{"other.example"}
		})
		var ip, host string
		h := e.Handler(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { ip, host = ClientIP(r), Host(r) }))
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.RemoteAddr, r.Host = c.peer, "public.example"
		for i := 0; i < len(c.headers); i += 2 {
			r.Header.Add(c.headers[i], c.headers[i+1])
		}
		h.ServeHTTP(httptest.NewRecorder(), r)
		if ip != c.ip || host != c.host {
			t.Errorf("%s: %s %s, want %s %s", c.name, ip, host, c.ip, c.host)
		}
	}
}

func TestProxiesThatCannotBeReadAreAnError(t *testing.T) {
	for _, list := range []string{"10.0.0.0/33", "proxy.example", "10.0.0.1;10.0.0.2"} {
		if _, err := ParsePrefixes(list); err == nil {
			t.Errorf("%q was accepted", list)
		}
	}
	got, err := ParsePrefixes(" ")
	if err != nil || len(got) != 0 {
		t.Errorf("an empty list: %v %v", got, err)
	}
	if got, err := ParsePrefixes("10.1.2.3/8,::1"); err != nil || fmt.Sprint(got) != fmt.Sprint([]netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("::1/128")}) {
		t.Errorf("%v %v", got, err)
	}
}

func TestTheAccessLogNamesTheRouteAndNothingThatAClientWrote(t *testing.T) {
	e, j := newEdge(t, "https://public.example")
	mux := http.NewServeMux()
	mux.HandleFunc("GET /consent/{id}", func(w http.ResponseWriter, r *http.Request) {
		Note(r.Context(), slog.String("org", "org_1"), slog.String("conn", "con_1"))
		w.WriteHeader(http.StatusTeapot)
		_, _ = io.WriteString(w, "12345")
	})
	mux.Handle("/healthz", ok)
	h := e.Handler(mux)
	secret := []string{"Authorization", "Bearer canary", "Cookie", "s=canary", "X-Request-Id", "canary", "Referer", "canary", "User-Agent", "canary"}
	w := ask(h, http.MethodGet, "/consent/canary?code=canary", "public.example", secret...)
	ask(h, http.MethodGet, "/canary", "public.example")
	ask(h, "CANARY", "/healthz", "public.example")
	ask(h, http.MethodGet, "/x", "canary.example")

	lines := lines(t, j)
	var got []string
	for _, l := range lines {
		got = append(got, fmt.Sprint(l["level"], " ", l["msg"], " ", l["method"], " ", l["route"], " ", l["status"], " ", l["bytes"], " ", l["org"], " ", l["conn"]))
		if l["request"] == "" || l["ms"] == nil {
			t.Errorf("%v: no request id or time", l)
		}
	}
	want := []string{
		"INFO request GET /consent/{id} 418 5 org_1 con_1",
		"INFO request GET none 404 19 <nil> <nil>",
		"DEBUG request other /healthz 200 2 <nil> <nil>",
		"INFO request GET none 403",
	}
	for i := range want {
		if i >= len(got) || !strings.HasPrefix(got[i], want[i]) {
			t.Errorf("line %d: %q, want %q", i, got, want[i])
		}
	}
	if raw := j.String(); strings.Contains(strings.ToLower(raw), "canary") {
		t.Errorf("the log repeats a client: %s", raw)
	}
	if id := w.Header().Get(RequestIDHeader); id != lines[0]["request"] || !strings.HasPrefix(id, "req_") {
		t.Errorf("the answer says %q, the log %q", id, lines[0]["request"])
	}
}

func TestAPanicIsA500InTheCallersFormat(t *testing.T) {
	e, j := newEdge(t, "https://public.example", func(cfg *Config) {
		cfg.ErrorPage = func(w http.ResponseWriter, _ *http.Request, status int) {
			w.WriteHeader(status)
			_, _ = io.WriteString(w, "<h1>sorry</h1>")
		}
	})
	h := e.Handler(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic("boom") }))

	w := ask(h, http.MethodPost, "/oauth/token", "public.example", "Accept", "application/json")
	var body fault.Body
	if err := json.Unmarshal(w.Body.Bytes(), &body); err != nil || w.Code != 500 || body.Error.Code != fault.Internal {
		t.Errorf("a program got %d %s", w.Code, w.Body)
	}
	if body.Error.Details["requestId"] != w.Header().Get(RequestIDHeader) || strings.Contains(w.Body.String(), "boom") {
		t.Errorf("the answer %s does not name the request, or tells too much", w.Body)
	}
	if w := ask(h, http.MethodGet, "/", "public.example", "Accept", "text/html,*/*"); w.Code != 500 || w.Body.String() != "<h1>sorry</h1>" {
		t.Errorf("a person got %d %s", w.Code, w.Body)
	}
	var stacks int
	for _, l := range lines(t, j) {
		if l["msg"] == "panic" && l["err"] == "boom" && strings.Contains(fmt.Sprint(l["stack"]), "web_test.go") {
			stacks++
		}
	}
	if stacks != 2 {
		t.Errorf("%d panics logged with their stack, want 2", stacks)
	}
}

func TestAPanicAfterTheAnswerBeganCutsTheConnection(t *testing.T) {
	e, _ := newEdge(t, "https://public.example")
	server := httptest.NewServer(e.Handler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "half")
		_ = http.NewResponseController(w).Flush()
		panic("boom")
	})))
	defer server.Close()
	res, err := server.Client().Get(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if _, err := io.ReadAll(res.Body); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("reading on: %v, want the connection cut", err)
	}
}

func TestBodiesAreBounded(t *testing.T) {
	e, _ := newEdge(t, "https://public.example", func(cfg *Config) { cfg.MaxBody = 10 })
	var got error
	h := e.Handler(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { _, got = io.ReadAll(r.Body) }))
	for body, want := range map[string]bool{"0123456789": false, "0123456789x": true} {
		r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(body))
		r.Host = "public.example"
		h.ServeHTTP(httptest.NewRecorder(), r)
		if tooLarge := (*http.MaxBytesError)(nil); errors.As(got, &tooLarge) != want {
			t.Errorf("%d bytes: %v", len(body), got)
		}
	}
}

func TestEveryAnswerHasTheSafeHeaders(t *testing.T) {
	for public, hsts := range map[string]string{"https://public.example": "max-age=31536000", "http://localhost:8080": ""} {
		e, _ := newEdge(t, public)
		h := ask(e.Handler(ok), http.MethodGet, "/", e.canonical.Host).Header()
		if h.Get("X-Content-Type-Options") != "nosniff" || h.Get("Referrer-Policy") != "same-origin" || h.Get("Strict-Transport-Security") != hsts {
			t.Errorf("%s: %v", public, h)
		}
	}
}

func TestTheRequestIDReachesTheHandler(t *testing.T) {
	e, _ := newEdge(t, "https://public.example")
	var inside string
	w := ask(e.Handler(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { inside = caller.Request(r.Context()) })),
		http.MethodGet, "/", "public.example", RequestIDHeader, "theirs")
	if inside == "" || inside == "theirs" || inside != w.Header().Get(RequestIDHeader) {
		t.Errorf("inside %q, outside %q", inside, w.Header().Get(RequestIDHeader))
	}
}

func TestAnEdgeNeedsAnHTTPURL(t *testing.T) {
	for _, public := range []string{"ftp://public.example", "public.example", "https://"} {
		u, err := url.Parse(public)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := New(Config{URL: u}); err == nil {
			t.Errorf("%s was accepted", public)
		}
	}
	u, _ := url.Parse("https://public.example")
	if _, err := New(Config{URL: u, Origins: []string{"app.example"}}); err == nil {
		t.Error("an origin without a scheme was accepted")
	}
}

func TestNoPathIsRedirectedToAnother(t *testing.T) {
	e, _ := newEdge(t, "https://public.example", func(*Config) {})
	mux := http.NewServeMux()
	mux.HandleFunc("/mcp", func(http.ResponseWriter, *http.Request) {})
	mux.HandleFunc("/mcp/{$}", func(http.ResponseWriter, *http.Request) {})
	mux.HandleFunc("/{$}", func(http.ResponseWriter, *http.Request) {})
	h := e.Handler(mux)
	for _, method := range []string{http.MethodGet, http.MethodPost} {
		for path, want := range map[string]int{
			"/mcp": 200, "/mcp/": 200, "/": 200, "http://public.example": 200, "//mcp": 404, "/mcp//": 404, "/./mcp": 404, "/x/../mcp": 404, "/mcp/.": 404, "/mcp/..": 404, "//": 404, "/%2e%2e/mcp": 404,
		} {
			if w := ask(h, method, path, "public.example", "Accept", "application/json"); w.Code != want || w.Header().Get("Location") != "" {
				t.Errorf("%s %s: %d to %q, want %d", method, path, w.Code, w.Header().Get("Location"), want)
			}
		}
	}
}
