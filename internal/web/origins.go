package web

import (
	"net/http"
	"net/url"
	"strings"

	"github.com/rs/cors"

	"switchboard/internal/fault"
	"switchboard/internal/origin"
)

// exposed are the answer headers that a page's script may read: all of them, and by name for browsers that do not know
// the asterisk.
var exposed = []string{"WWW-Authenticate", "Mcp-Session-Id", "MCP-Protocol-Version", "Retry-After", RequestIDHeader, "*"}

// Origins admits pages of our own origin, of configured origins and of loopback origins (developer tools such as
// the MCP Inspector) with full CORS, on errors too, and refuses any other page with 403 as the transport demands.
// Requests without an Origin are not from a page and pass. Preflights are answered here, before authentication:
// browsers send them without credentials.
func (e *Edge) Origins(next http.Handler) http.Handler {
	shared := cors.New(cors.Options{
		AllowOriginFunc: e.admits,
		AllowedMethods:  []string{http.MethodGet, http.MethodPost, http.MethodDelete},
		AllowedHeaders:  []string{"*"}, // echoes what was asked for: Mcp-Param-* has no fixed names
		ExposedHeaders:  exposed,
		MaxAge:          7200,
	}).Handler(answerOptions(next, "POST, OPTIONS"))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if origins := r.Header.Values("Origin"); len(origins) > 1 || len(origins) == 1 && !e.admits(origins[0]) {
			w.Header().Add("Vary", "Origin")
			Fault(w, fault.New(fault.Forbidden, "Pages of this origin may not call this server. Call it from a program, or have the operator add the origin."))
			return
		}
		shared.ServeHTTP(w, r)
	})
}

func (e *Edge) admits(header string) bool {
	u, _ := url.Parse(header)
	o, ok := origin.Of(u)
	if !ok {
		return false // "null" among others
	}
	return e.origins[o.String()] || isLoopbackName(hostname(o.Host))
}

// AnyOrigin opens an endpoint to every page: on the preflight, on success and on errors. It is for the public OAuth
// endpoints, which never look at cookies: a browser client that registers, exchanges a code or reads metadata has
// an origin that nobody knows in advance.
func AnyOrigin(next http.Handler) http.Handler {
	preflight := cors.New(cors.Options{
		AllowedOrigins: []string{"*"},
		AllowedMethods: []string{http.MethodGet, http.MethodHead, http.MethodPost},
		AllowedHeaders: []string{"*"},
		MaxAge:         7200,
	})
	plain := answerOptions(next, "GET, HEAD, POST, OPTIONS")
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// The same for everybody, so that a cache may keep it: no echo, no Vary, no credentials.
		w.Header().Set("Access-Control-Allow-Origin", "*")
		if r.Method == http.MethodOptions && r.Header.Get("Access-Control-Request-Method") != "" {
			preflight.HandlerFunc(w, r)
			return
		}
		w.Header().Set("Access-Control-Expose-Headers", strings.Join(exposed, ", "))
		plain.ServeHTTP(w, r)
	})
}

// answerOptions answers an OPTIONS request that is no preflight.
func answerOptions(next http.Handler, allow string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodOptions {
			w.Header().Set("Allow", allow)
			w.WriteHeader(http.StatusNoContent)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// originOf is how a browser writes the origin of a URL in the Origin header.
func originOf(raw string) (string, bool) {
	u, _ := url.Parse(raw)
	o, ok := origin.Of(u)
	if !ok {
		return "", false
	}
	return o.String(), true
}
