package web

import (
	"mime"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"path"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

func fuzzEdge(f *testing.F) *Edge {
	u, err := url.Parse("https://switch.example")
	if err != nil {
		f.Fatal(err)
	}
	proxies, err := ParsePrefixes("10.0.0.0/8, ::1")
	if err != nil {
		f.Fatal(err)
	}
	e, err := New(Config{URL: u, TrustedProxies: proxies})
	if err != nil {
		f.Fatal(err)
	}
	return e
}

// A peer that nobody trusts is who it is, whatever it writes; and behind a trusted one the client is an address that some
// proxy saw, or the proxy itself.
func FuzzForwardedHeaders(f *testing.F) {
	for _, seed := range []string{"", "203.0.113.7", "203.0.113.7, 10.1.1.1", "canary, 203.0.113.7", "[2001:db8::1]:443", "::ffff:203.0.113.7", "fe80::1%eth0", ",,,", "10.0.0.1,10.0.0.2", "203.0.113.7:99999", "%00", "[", "0x7f.1"} {
		f.Add(seed, seed)
	}
	e := fuzzEdge(f)
	f.Fuzz(func(t *testing.T, forwarded, host string) {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)
		r.Header = http.Header{"X-Forwarded-For": {forwarded}, "X-Forwarded-Host": {host}}
		r.RemoteAddr = "203.0.113.9:1"
		if got := e.client(r); got != direct(r) {
			t.Errorf("a stranger who writes %q and %q is %+v", forwarded, host, got)
		}
		r.RemoteAddr = "10.9.9.9:1"
		got := e.client(r)
		seen := []netip.Addr{netip.MustParseAddr("10.9.9.9")}
		for _, hop := range strings.Split(forwarded, ",") {
			seen = append(seen, parseIP(strings.TrimSpace(hop)))
		}
		if !got.ip.IsValid() || got.ip.Zone() != "" || got.ip.Is4In6() || !slices.Contains(seen, got.ip) {
			t.Errorf("%q is %v", forwarded, got.ip)
		}
		if again := parseIP(got.ip.String()); again != got.ip {
			t.Errorf("%q is %v and then %v", forwarded, got.ip, again)
		}
	})
}

// What passes as a host name of ours is ours to a second parser too.
func FuzzHosts(f *testing.F) {
	for _, seed := range []string{"switch.example", "SWITCH.EXAMPLE.:443", "localhost", "a.localhost:1", "[::1]:8080", "::1", "127.0.0.1", "switch.example.evil.example", "switch.example@evil.example", "evil.example:switch.example", "[switch.example]", "switch.example:", "", ".", "localhost.", "[localhost", "0x7f000001", "127.1"} {
		f.Add(seed)
	}
	e := fuzzEdge(f)
	reached := false
	h := e.identify(e.knownHost(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached = true })))
	f.Fuzz(func(t *testing.T, host string) {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/mcp", nil)
		r.Host, reached = host, false
		rec := httptest.NewRecorder()
		h.ServeHTTP(rec, r)
		if !reached && rec.Code != http.StatusForbidden {
			t.Errorf("%q: %d", host, rec.Code)
		}
		u, err := url.Parse("http://" + host + "/")
		if !reached || err != nil { // a host that a URL cannot have is no host of a page
			return
		}
		name := strings.TrimSuffix(strings.ToLower(u.Hostname()), ".")
		ip, errIP := netip.ParseAddr(name)
		if name != "switch.example" && name != "localhost" && !strings.HasSuffix(name, ".localhost") && (errIP != nil || !ip.Unmap().IsLoopback()) {
			t.Errorf("%q passed, and a browser would be at %q", host, name)
		}
	})
}

// An origin that is admitted is the origin of a page on our own host or on this machine.
func FuzzOrigins(f *testing.F) {
	for _, seed := range []string{"https://switch.example", "https://switch.example.evil.example", "http://localhost:6274", "null", "https://switch.example/", "https://a@switch.example", "HTTPS://SWITCH.EXAMPLE:443", "https://[::1]:1", "http://localhost@evil.example", "://", "javascript:alert(1)", "https://evil.example#switch.example", `https://evil.example\@switch.example`} {
		f.Add(seed)
	}
	e := fuzzEdge(f)
	f.Fuzz(func(t *testing.T, header string) {
		if !e.admits(header) {
			return
		}
		_, authority, ok := strings.Cut(header, "://")
		if end := strings.IndexAny(authority, `/?#\`); end >= 0 { // where a browser ends it
			authority = authority[:end]
		}
		name := hostname(authority)
		if !ok || strings.Contains(authority, "@") || name != "switch.example" && !isLoopbackName(name) {
			t.Errorf("%q was admitted, and is of %q", header, authority)
		}
	})
}

// A path that is let through is the one that every reader takes it for, and a redirect stays at home.
func FuzzPaths(f *testing.F) {
	for _, seed := range []string{"/", "/mcp", "//evil.example", "/mcp/../x", "/%2e%2e/mcp", "/%2fmcp", "/a//b", `/\evil.example`, "/%5cevil.example", "*", "/mcp;a", "/mcp%00", "/%6dcp", "/mcp/.", "http://evil.example/mcp"} {
		f.Add(seed, "a=b")
	}
	u, _ := url.Parse("http://localhost:8080")
	e, err := New(Config{URL: u})
	if err != nil {
		f.Fatal(err)
	}
	var read string
	h := e.identify(e.cleanPath(e.Canonical(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { read = r.URL.Path }))))
	f.Fuzz(func(t *testing.T, target, query string) {
		if query != "" {
			target += "?" + query
		}
		parsed, err := url.ParseRequestURI(target)
		if err != nil { // as net/http does, which refuses the rest
			return
		}
		for _, host := range []string{"localhost:8080", "127.0.0.1:8080"} {
			read = ""
			address := *parsed
			r := &http.Request{Method: http.MethodGet, URL: &address, Host: host, Header: http.Header{}}
			rec := httptest.NewRecorder()
			h.ServeHTTP(rec, r.WithContext(t.Context()))
			if read != "" && (read[0] != '/' || path.Clean(read) != read && path.Clean(read)+"/" != read || strings.Contains(strings.ToLower(parsed.RawPath), "%2f")) {
				t.Errorf("%q was read as %q", target, read)
			}
			if to := rec.Header().Get("Location"); to != "" {
				home, _, _ := strings.Cut(to, "#") // what stands behind it stays in the browser
				at, err := url.Parse(home)
				if err != nil || at.Scheme != "http" || at.Host != "localhost:8080" || at.User != nil || !strings.HasPrefix(to, "http://localhost:8080/") {
					t.Errorf("%q at %s leads to %q", target, host, to)
				}
			}
		}
	})
}

// A media type is what the standard library makes of the one header, and nothing of two or of a coded body.
func FuzzMediaTypes(f *testing.F) {
	for _, seed := range []string{"application/json", "Application/JSON; charset=utf-8", "text/plain;", ";", "application/json, text/html", `application/json; a="`, "*/*", "application/x-www-form-urlencoded"} {
		f.Add(seed, "")
		f.Add(seed, "gzip")
	}
	f.Fuzz(func(t *testing.T, kind, coding string) {
		r := &http.Request{Header: http.Header{"Content-Type": {kind}, "Content-Encoding": {coding}}}
		want, _, err := mime.ParseMediaType(kind)
		if err != nil || coding != "" && coding != "identity" {
			want = ""
		}
		if got := Media(r); got != want || got != strings.ToLower(got) && utf8.ValidString(got) {
			t.Errorf("%q coded %q is %q, want %q", kind, coding, got, want)
		}
		r.Header.Add("Content-Type", kind)
		if got := Media(r); got != "" {
			t.Errorf("%q twice is %q", kind, got)
		}
	})
}
