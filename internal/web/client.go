package web

import (
	"context"
	"fmt"
	"net/http"
	"net/netip"
	"strings"
)

// client is who sent a request and how they spelled our name, as far as trusted proxies tell.
type client struct {
	ip   netip.Addr
	host string
}

type clientKey struct{}

// ClientIP is the address of the client, "" when it is not known. Behind a trusted proxy it is the address that
// the proxy saw.
func ClientIP(r *http.Request) string {
	if ip := clientOf(r).ip; ip.IsValid() {
		return ip.String()
	}
	return ""
}

// Host is the host, with its port if any, that the client asked for.
func Host(r *http.Request) string { return clientOf(r).host }

// ParsePrefixes reads a list of CIDRs and addresses separated by commas or spaces.
func ParsePrefixes(list string) ([]netip.Prefix, error) {
	var out []netip.Prefix
	for _, s := range strings.FieldsFunc(list, func(c rune) bool { return c == ',' || c == ' ' }) {
		prefix, err := netip.ParsePrefix(s)
		if err != nil {
			addr, err := netip.ParseAddr(s)
			if err != nil {
				return nil, fmt.Errorf("%q is neither an address nor a CIDR", s)
			}
			prefix = netip.PrefixFrom(addr, addr.BitLen())
		}
		out = append(out, prefix.Masked())
	}
	return out, nil
}

// identify finds out who the client is and leaves it in the context.
func (e *Edge) identify(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx := context.WithValue(r.Context(), clientKey{}, e.client(r))
		next.ServeHTTP(w, r.WithContext(ctx))
	})
}

func clientOf(r *http.Request) client {
	if c, ok := r.Context().Value(clientKey{}).(client); ok {
		return c
	}
	return direct(r)
}

// direct is the client as the socket shows it.
func direct(r *http.Request) client {
	return client{host: r.Host, ip: parseIP(r.RemoteAddr)}
}

// client believes X-Forwarded-For and X-Forwarded-Host from trusted peers only; the scheme is that of the public URL,
// whatever a proxy says. Every proxy appends the address of its own peer, so the
// list is read from the right and the first address that is no proxy of ours is the client; what stands left of it
// anybody could have written.
func (e *Edge) client(r *http.Request) client {
	c := direct(r)
	if !e.trusts(c.ip) {
		return c
	}
	hops := strings.Split(strings.Join(r.Header.Values("X-Forwarded-For"), ","), ",")
	for i := len(hops) - 1; i >= 0 && e.trusts(c.ip); i-- {
		ip := parseIP(strings.TrimSpace(hops[i]))
		if !ip.IsValid() {
			break
		}
		c.ip = ip
	}
	if h := lastValue(r, "X-Forwarded-Host"); h != "" {
		c.host = h
	}
	return c
}

func (e *Edge) trusts(ip netip.Addr) bool {
	for _, p := range e.proxies {
		if p.Contains(ip) {
			return true
		}
	}
	return false
}

// lastValue is what the nearest proxy wrote where several did.
func lastValue(r *http.Request, header string) string {
	values := strings.Split(strings.Join(r.Header.Values(header), ","), ",")
	return strings.TrimSpace(values[len(values)-1])
}

// parseIP reads an address with or without a port.
func parseIP(s string) netip.Addr {
	if ap, err := netip.ParseAddrPort(s); err == nil {
		return ap.Addr().Unmap().WithZone("")
	}
	ip, _ := netip.ParseAddr(strings.Trim(s, "[]"))
	return ip.Unmap().WithZone("")
}
