package oauth

import (
	"crypto/x509"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"sync"
	"testing"
	"time"

	"switchboard/internal/outbound"
)

// publisher is a vendor's https server on which clients publish documents and keys.
type publisher struct {
	server *httptest.Server

	mu    sync.Mutex
	pages map[string]http.HandlerFunc
	asked map[string]int
}

func newPublisher(t testing.TB) *publisher {
	p := &publisher{pages: map[string]http.HandlerFunc{}, asked: map[string]int{}}
	p.server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.mu.Lock()
		p.asked[r.URL.Path]++
		page := p.pages[r.URL.Path]
		p.mu.Unlock()
		if page == nil {
			http.NotFound(w, r)
			return
		}
		page(w, r)
	}))
	t.Cleanup(p.server.Close)
	return p
}

// published is a world with a publisher that its servers may reach. It is not in every world: its listener is real,
// and a bubble of testing/synctest would wait for it for ever.
func published(t testing.TB) *world {
	w := newWorld(t)
	w.vendor = newPublisher(t)
	w.serve(w.ring(), lifetimes)
	return w
}

// fetcher is what a server of the tests fetches with. The publisher is on this machine, so that network is let through.
func (w *world) fetcher() *outbound.Client {
	if w.vendor == nil {
		return outbound.New(outbound.Config{})
	}
	roots := x509.NewCertPool()
	roots.AddCert(w.vendor.server.Certificate())
	return outbound.New(outbound.Config{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}, Roots: roots, Timeout: fetchTime})
}

// fetchTime is the most that a fetch of the tests may take.
const fetchTime = 2 * time.Second

// at is the address of a path.
func (p *publisher) at(path string) string { return p.server.URL + path }

// serve has a path answer so from now on; nil takes it away.
func (p *publisher) serve(path string, h http.HandlerFunc) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.pages[path] = h
}

// count is how often a path was asked for.
func (p *publisher) count(path string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.asked[path]
}

// document publishes a document with changes, pairs of member and value, and returns the client id. A nil value takes
// a member away. Keep it for a day, says its server.
func (p *publisher) document(path string, changes ...any) string {
	id := p.at(path)
	m := map[string]any{
		"client_id": id, "client_name": "Desktop", "redirect_uris": []string{"http://localhost/callback", "http://127.0.0.1/callback"},
		"grant_types": []string{"authorization_code", "refresh_token"}, "token_endpoint_auth_method": "none", "logo_uri": "https://logo.example/l.png",
	}
	for i := 0; i < len(changes); i += 2 {
		if changes[i+1] == nil {
			delete(m, changes[i].(string))
		} else {
			m[changes[i].(string)] = changes[i+1]
		}
	}
	body, _ := json.Marshal(m)
	p.serve(path, page("application/json", "max-age=86400", string(body)))
	return id
}

// page is an answer that is always the same.
func page(kind, cache, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", kind)
		if cache != "" {
			w.Header().Set("Cache-Control", cache)
		}
		fmt.Fprint(w, body)
	}
}
