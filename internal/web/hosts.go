package web

import (
	"net"
	"net/http"
	"net/netip"
	"strings"

	"switchboard/internal/fault"
	"switchboard/internal/origin"
)

// knownHost refuses requests for a host name that is not ours. That is what stops DNS rebinding: a page on
// evil.example whose name suddenly resolves to this machine still sends its own name. Loopback names pass, because
// no page elsewhere can have one as its own, and so does the public name on a loopback socket: that is a reverse
// proxy on the same machine. Ports are not compared, rebinding cannot choose a name by them and port mappings differ.
func (e *Edge) knownHost(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name := hostname(Host(r))
		if !e.hosts[name] && !isLoopbackName(name) && !isProbe(r) {
			e.refuse(w, r, http.StatusForbidden, fault.New(fault.Forbidden,
				"This server does not answer to the host name of this request. Use %s, or have the operator add the name.", e.canonical))
			return
		}
		next.ServeHTTP(w, r)
	})
}

// isProbe reports whether a health check is asking. Orchestrators ask by the address of a container, and there is
// nothing in the answer.
func isProbe(r *http.Request) bool { return r.URL.Path == "/healthz" || r.URL.Path == "/readyz" }

// Canonical sends a browser that opens a page under another loopback name to the canonical one, because its
// cookies are kept by name. It goes around pages only, and only GET and HEAD are sent on: a client that follows a
// redirect of a POST drops its body or its credentials.
func (e *Edge) Canonical(pages http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name := hostname(Host(r))
		reading := r.Method == http.MethodGet || r.Method == http.MethodHead
		if !reading || !e.loopback || !isLoopbackName(name) || name == hostname(e.canonical.Host) {
			pages.ServeHTTP(w, r)
			return
		}
		to := *r.URL
		to.Scheme, to.Host, to.User = e.canonical.Scheme, e.canonical.Host, nil
		w.Header().Set("Cache-Control", "no-store")
		w.Header().Set("Location", to.String())
		w.WriteHeader(http.StatusTemporaryRedirect)
	})
}

// hostname is the bare name of a host[:port], in lower case and without the root dot; "" for what is no host's name, in
// which a second parser may find another one.
func hostname(hostport string) string {
	if !origin.PlainHost(hostport) {
		return ""
	}
	name := hostport
	if h, _, err := net.SplitHostPort(hostport); err == nil {
		name = h
	} else if inner, ok := strings.CutPrefix(hostport, "["); ok {
		name = strings.TrimSuffix(inner, "]")
	}
	if strings.ContainsAny(hostport, "[]") || strings.Contains(name, ":") { // an IPv6 address, and nothing else
		ip, err := netip.ParseAddr(name)
		if err != nil || !ip.Is6() {
			return ""
		}
	}
	return strings.TrimSuffix(strings.ToLower(name), ".")
}

// isLoopbackName reports whether a name means this machine wherever it is looked up, RFC 6761 §6.3.
func isLoopbackName(name string) bool {
	return strings.HasSuffix(name, ".localhost") || origin.IsLoopback(name)
}
