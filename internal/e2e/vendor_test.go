//go:build e2e || interop

package e2e

import (
	"encoding/json"
	"encoding/pem"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
)

// vendor is an https host on which somebody publishes documents about their clients.
type vendor struct {
	*httptest.Server
	dialled   atomic.Int64 // connections, whatever came of them
	mu        sync.Mutex
	documents map[string]any
}

func newVendor(t *testing.T) *vendor {
	t.Helper()
	v := &vendor{documents: map[string]any{}}
	v.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		v.mu.Lock()
		defer v.mu.Unlock()
		if v.documents[r.URL.Path] == nil {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", "application/json; charset=utf-8")
		_ = json.NewEncoder(w).Encode(v.documents[r.URL.Path])
	}))
	v.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			v.dialled.Add(1)
		}
	}
	v.StartTLS()
	t.Cleanup(v.Close)
	return v
}

// publish puts a document at a path and returns its address, which is the client's id.
func (v *vendor) publish(path, name string, redirects ...string) string {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.documents[path] = map[string]any{
		"client_id": v.URL + path, "client_name": name, "redirect_uris": redirects, "grant_types": []string{"authorization_code", "refresh_token"},
		"response_types": []string{"code"}, "token_endpoint_auth_method": "none",
	}
	return v.URL + path
}

// trusted are the settings with which a server fetches from the vendor, who is on this machine and vouches for itself.
func (v *vendor) trusted(t *testing.T) []string {
	t.Helper()
	authority := filepath.Join(t.TempDir(), "authority.pem")
	if err := os.WriteFile(authority, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: v.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	return []string{"SWITCHBOARD_OUTBOUND_ALLOW=127.0.0.0/8", "SSL_CERT_FILE=" + authority}
}
