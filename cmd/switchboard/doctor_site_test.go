package main

import (
	"bytes"
	"context"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/netip"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	"switchboard/internal/doctor"
)

// site is a running server behind a proxy with TLS, at https://example.com as far as its clients know.
type site struct {
	proxy *httptest.Server
	fault atomic.Pointer[misfit] // what the proxy does wrong, nil for nothing
}

// misfit is a misconfiguration of a proxy.
type misfit func(pass http.Handler) http.Handler

func newSite(t *testing.T, args ...string) *site {
	t.Helper()
	server := newMachine(t).serve(false, append([]string{"--rate-per-minute=0"}, args...)...)
	backend, err := url.Parse(server.url)
	if err != nil {
		t.Fatal(err)
	}
	quiet := log.New(io.Discard, "", 0)
	pass := &httputil.ReverseProxy{ErrorLog: quiet, Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(backend)
		r.Out.Host = r.In.Host
	}}
	s := &site{}
	s.proxy = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var h http.Handler = pass
		if f := s.fault.Load(); f != nil {
			h = (*f)(pass)
		}
		h.ServeHTTP(w, r)
	}))
	s.proxy.Config.ErrorLog = quiet
	s.proxy.StartTLS()
	t.Cleanup(s.proxy.Close)
	return s
}

// to has every name lead to the proxy.
func (s *site) to(trusting bool) *http.Client {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	if trusting {
		transport = s.proxy.Client().Transport.(*http.Transport).Clone()
	}
	transport.Proxy = nil
	transport.DialContext = func(ctx context.Context, network, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, s.proxy.Listener.Addr().String())
	}
	return &http.Client{Transport: transport}
}

// registering are the clients as they are where nobody can fetch their documents.
func registering() []doctor.Client {
	all := doctor.Clients()
	for i := range all {
		all[i].Document = ""
	}
	return all
}

func outside(context.Context, string) ([]netip.Addr, error) {
	return []netip.Addr{netip.MustParseAddr("203.0.113.7")}, nil
}

// examine examines https://example.com unless changes say otherwise.
func (s *site) examine(t *testing.T, changes ...func(*doctor.Config)) *doctor.Report {
	t.Helper()
	cfg := doctor.Config{Clients: registering(), HTTP: s.to(true), Lookup: outside}
	for _, change := range changes {
		change(&cfg)
	}
	report, err := doctor.New(cfg).Examine(t.Context(), "https://example.com")
	if err != nil {
		t.Fatal(err)
	}
	return report
}

func text(t *testing.T, r *doctor.Report) string {
	t.Helper()
	var b bytes.Buffer
	if err := r.Print(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// failing are the clients that would not connect, and the word for what stops them.
func failing(r *doctor.Report) map[string]string {
	found := map[string]string{}
	for _, c := range r.Clients {
		if c.Finding != nil {
			found[c.ID] = c.Finding.Code
		}
	}
	return found
}

// at applies a fault to some requests only.
func at(method, path string, do http.HandlerFunc) misfit {
	return func(pass http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if (method == "" || r.Method == method) && strings.HasPrefix(r.URL.Path, path) {
				do(w, r)
				return
			}
			pass.ServeHTTP(w, r)
		})
	}
}

// page answers with HTML.
func page(status int) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		w.WriteHeader(status)
		_, _ = io.WriteString(w, "<html><body><h1>Welcome to the proxy</h1></body></html>")
	}
}

// object answers with JSON, in the way of a Switchboard and readable for pages.
func object(status int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		for name, value := range map[string]string{
			"Content-Type": "application/json", "X-Request-Id": "req_1", "Access-Control-Allow-Origin": "*", "Access-Control-Allow-Headers": r.Header.Get("Access-Control-Request-Headers"),
		} {
			w.Header().Set(name, value)
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

// sent changes requests on their way to the server.
func sent(change func(*http.Request)) misfit {
	return func(pass http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			change(r)
			pass.ServeHTTP(w, r)
		})
	}
}

// answered changes answers on their way back.
func answered(change func(r *http.Request, status int, h http.Header, body string) (int, string)) misfit {
	return func(pass http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			kept := httptest.NewRecorder()
			pass.ServeHTTP(kept, r)
			status, body := change(r, kept.Code, kept.Header(), kept.Body.String())
			for name, values := range kept.Header() {
				if name != "Content-Length" {
					w.Header()[name] = values
				}
			}
			w.WriteHeader(status)
			_, _ = io.WriteString(w, body)
		})
	}
}

// rewritten replaces text in the answers of a path.
func rewritten(path, old, by string) misfit {
	return answered(func(r *http.Request, status int, _ http.Header, body string) (int, string) {
		if strings.HasPrefix(r.URL.Path, path) {
			body = strings.ReplaceAll(body, old, by)
		}
		return status, body
	})
}

// headers changes those of every answer.
func headers(change func(http.Header)) misfit {
	return answered(func(_ *http.Request, status int, h http.Header, body string) (int, string) {
		change(h)
		return status, body
	})
}
