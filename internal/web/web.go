// Package web is the edge of the HTTP server: what happens to every request before a face sees it, and to every
// answer after. It has no opinions about the product.
//
// Edge.Handler goes around the whole mux: request id, the client behind trusted proxies, access log, recovery,
// security headers, the Host policy, the body limit. Around single routes go Edge.Origins (/mcp), AnyOrigin (the
// public OAuth endpoints), Edge.Canonical (pages) and PerIP.
package web

import (
	"fmt"
	"log/slog"
	"net/http"
	"net/netip"
	"net/url"
	"path"
	"strings"

	"switchboard/internal/fault"
)

const defaultMaxBody = 1 << 20

// Config says what the edge knows of the world around it.
type Config struct {
	// URL is the public origin, SWITCHBOARD_URL.
	URL *url.URL
	// Hosts are further host names under which requests arrive, for example inside a private network.
	Hosts []string
	// Origins are further origins whose pages may call /mcp.
	Origins []string
	// TrustedProxies are the peers whose X-Forwarded-* headers count.
	TrustedProxies []netip.Prefix
	// MaxBody bounds every request body in bytes; 0 means 1 MiB.
	MaxBody int64
	// ErrorPage shows a person what a program gets as JSON: a panic (500), an unknown host (403). Nil: JSON for all.
	ErrorPage func(w http.ResponseWriter, r *http.Request, status int)
	Log       *slog.Logger
}

// Edge wraps handlers with the policies of one server.
type Edge struct {
	canonical *url.URL
	loopback  bool // the canonical URL is on this machine
	hosts     map[string]bool
	origins   map[string]bool
	proxies   []netip.Prefix
	maxBody   int64
	errorPage func(w http.ResponseWriter, r *http.Request, status int)
	log       *slog.Logger
}

// New makes an Edge.
func New(cfg Config) (*Edge, error) {
	own, ok := originOf(cfg.URL.String())
	if !ok {
		return nil, fmt.Errorf("%q is not an http or https URL with a host", cfg.URL)
	}
	e := &Edge{
		canonical: &url.URL{Scheme: strings.ToLower(cfg.URL.Scheme), Host: cfg.URL.Host},
		loopback:  isLoopbackName(hostname(cfg.URL.Host)),
		hosts:     map[string]bool{hostname(cfg.URL.Host): true},
		origins:   map[string]bool{own: true},
		proxies:   cfg.TrustedProxies,
		maxBody:   cfg.MaxBody,
		errorPage: cfg.ErrorPage,
		log:       cfg.Log,
	}
	if e.maxBody <= 0 {
		e.maxBody = defaultMaxBody
	}
	for _, h := range cfg.Hosts {
		e.hosts[hostname(h)] = true
	}
	for _, o := range cfg.Origins {
		origin, ok := originOf(o)
		if !ok {
			return nil, fmt.Errorf("%q is not an origin such as https://app.example", o)
		}
		e.origins[origin] = true
	}
	return e, nil
}

// Handler wraps the server's mux. The mux gets the very request that the access log holds, so that the pattern it
// matched can be logged instead of the path.
func (e *Edge) Handler(mux http.Handler) http.Handler {
	h := e.limitBody(e.cleanPath(mux))
	h = e.knownHost(h)
	h = e.secure(h)
	h = e.recoverer(h)
	h = e.accessLog(h)
	h = e.identify(h)
	return identified(h)
}

// cleanPath answers 404 where a path is not written as it means. A mux would redirect it, and a client that follows a
// redirect of a POST drops its body or its credentials.
func (e *Edge) cleanPath(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "" { // RFC 9110 §4.2.3: an empty path is the root
			r.URL.Path = "/"
		}
		clean := path.Clean("/" + r.URL.Path)
		if strings.HasSuffix(r.URL.Path, "/") && clean != "/" {
			clean += "/"
		}
		// An escaped slash is none to a proxy that decides by the path, and one to whoever reads it decoded.
		// A target without a path at all, "a:b", would be told on as an address of its own.
		if r.URL.Opaque != "" || r.URL.Path != clean || strings.Contains(strings.ToLower(r.URL.RawPath), "%2f") {
			e.refuse(w, r, http.StatusNotFound, fault.New(fault.NotFound, "There is nothing at this path. The MCP endpoint is /mcp, written without empty and dotted parts."))
			return
		}
		next.ServeHTTP(w, r)
	})
}

func (e *Edge) limitBody(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.Body = http.MaxBytesReader(w, r.Body, e.maxBody)
		next.ServeHTTP(w, r)
	})
}

// secure sets the headers that are right for every answer; pages set stricter ones.
func (e *Edge) secure(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "same-origin")
		if e.canonical.Scheme == "https" {
			h.Set("Strict-Transport-Security", "max-age=31536000")
		}
		next.ServeHTTP(w, r)
	})
}

// refuse answers in the caller's format: a page for somebody who is looking at one, JSON for a program.
func (e *Edge) refuse(w http.ResponseWriter, r *http.Request, status int, f *fault.Error) {
	if e.errorPage != nil && WantsPage(r) {
		e.errorPage(w, r, status)
		return
	}
	Refuse(w, status, f)
}

// WantsPage reports whether a browser is navigating rather than a program calling.
func WantsPage(r *http.Request) bool {
	return strings.Contains(r.Header.Get("Accept"), "text/html")
}
