package web

import (
	"net/http"
	"testing"
)

func TestOriginsAreAdmittedByTheirExactForm(t *testing.T) {
	e, _ := newEdge(t, "https://public.example", func(cfg *Config) { cfg.Origins = []string{"https://app.example:443", "http://dev.example:3000/"} })
	cases := map[string]bool{
		"https://public.example":       true,
		"https://PUBLIC.example":       true,
		"https://public.example:443":   true,
		"https://app.example":          true,
		"http://dev.example:3000":      true,
		"http://localhost:6274":        true,
		"https://localhost":            true,
		"http://127.0.0.1:1":           true,
		"http://127.1.2.3":             true,
		"http://[::1]:6274":            true,
		"http://sb.localhost":          true,
		"null":                         false,
		"":                             false,
		"http://public.example":        false,
		"https://public.example:8443":  false,
		"https://public.example.evil":  false,
		"https://evilpublic.example":   false,
		"https://app.example.evil":     false,
		"http://dev.example":           false,
		"http://localhost.evil":        false,
		"http://127.0.0.1.evil":        false,
		"http://user@localhost":        false,
		"file://localhost":             false,
		"chrome-extension://localhost": false,
		"http://2130706433":            false,
	}
	for origin, want := range cases {
		reached := false
		h := e.Origins(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { reached = true; w.WriteHeader(http.StatusTeapot) }))
		w := ask(h, http.MethodPost, "/mcp", "public.example", "Origin", origin)
		if reached != want || (w.Code == http.StatusForbidden) == want {
			t.Errorf("%q: reached %t with %d, want %t", origin, reached, w.Code, want)
		}
		allowed := w.Header().Get("Access-Control-Allow-Origin")
		if want && allowed != origin || !want && allowed != "" {
			t.Errorf("%q: allowed %q", origin, allowed)
		}
		if w.Header().Get("Access-Control-Allow-Credentials") != "" {
			t.Errorf("%q: credentials are allowed", origin)
		}
		preflight := ask(h, http.MethodOptions, "/mcp", "public.example", "Origin", origin,
			"Access-Control-Request-Method", "POST", "Access-Control-Request-Headers", "authorization,mcp-param-city")
		if (preflight.Code == http.StatusNoContent) != want || want && preflight.Header().Get("Access-Control-Allow-Headers") != "authorization,mcp-param-city" {
			t.Errorf("%q: preflight %d %v", origin, preflight.Code, preflight.Header())
		}
	}
}

func TestTwoOriginsAreRefused(t *testing.T) {
	e, _ := newEdge(t, "https://public.example")
	w := ask(e.Origins(ok), http.MethodPost, "/mcp", "public.example", "Origin", "https://public.example", "Origin", "https://evil.example")
	if w.Code != http.StatusForbidden {
		t.Errorf("%d", w.Code)
	}
}

func TestPublicEndpointsAreOpenToEveryPage(t *testing.T) {
	reached := false
	h := AnyOrigin(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		reached = true
		w.WriteHeader(http.StatusBadRequest)
	}))
	for _, headers := range [][]string{nil, {"Origin", "http://localhost:6274"}, {"Origin", "https://any.example"}, {"Origin", "null"}} {
		for _, method := range []string{http.MethodGet, http.MethodHead, http.MethodPost} {
			w := ask(h, method, "/oauth/token", "public.example", headers...)
			if w.Code != http.StatusBadRequest || w.Header().Get("Access-Control-Allow-Origin") != "*" || w.Header().Get("Access-Control-Allow-Credentials") != "" {
				t.Errorf("%s %v: %d %v", method, headers, w.Code, w.Header())
			}
		}
		reached = false
		w := ask(h, http.MethodOptions, "/oauth/token", "public.example", append(headers,
			"Access-Control-Request-Method", "POST", "Access-Control-Request-Headers", "content-type,mcp-protocol-version")...)
		if reached || w.Code != http.StatusNoContent || w.Header().Get("Access-Control-Allow-Origin") != "*" {
			t.Errorf("preflight %v: reached %t, %d %v", headers, reached, w.Code, w.Header())
		}
		if len(headers) > 0 && w.Header().Get("Access-Control-Allow-Headers") != "content-type,mcp-protocol-version" {
			t.Errorf("preflight %v: %v", headers, w.Header())
		}
	}
	if w := ask(h, http.MethodOptions, "/oauth/token", "public.example"); reached || w.Code != http.StatusNoContent || w.Header().Get("Allow") == "" {
		t.Errorf("OPTIONS: reached %t, %d %v", reached, w.Code, w.Header())
	}
}
