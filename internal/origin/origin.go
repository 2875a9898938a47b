// Package origin has the two questions about URLs on which security decisions rest: which origin a URL is of, and
// whether a name means this machine.
package origin

import (
	"net/netip"
	"net/url"
	"strings"
)

// Of is the origin of an http or https URL, RFC 6454 §4 and §6.2: scheme and host in lower case, the port unless it
// is the scheme's own. Anything else, nil, a URL with a user name in it and a host that is not plain among it, has none:
// letters of other scripts become others in lower case, İ an i.
func Of(u *url.URL) (*url.URL, bool) {
	if !IsPlain(u) || u.Hostname() == "" || u.User != nil { // a port alone is no host
		return nil, false
	}
	scheme, host := strings.ToLower(u.Scheme), strings.ToLower(u.Host)
	host = strings.TrimSuffix(host, ":") // RFC 3986 §3.2.3: a port without digits is none
	switch scheme {
	case "http":
		host = strings.TrimSuffix(host, ":80")
	case "https":
		host = strings.TrimSuffix(host, ":443")
	default:
		return nil, false
	}
	return &url.URL{Scheme: scheme, Host: host}, true
}

// IsPlain reports whether the host of a URL is written in the characters of host names and addresses. Anything else,
// escapes and letters of other scripts among it, is mapped to these by what dials it (UTS #46), so that a comparison
// before it sees another host.
func IsPlain(u *url.URL) bool { return u != nil && PlainHost(u.Host) }

// PlainHost is IsPlain of a host as a Host header has it.
func PlainHost(host string) bool {
	return host != "" && !strings.ContainsFunc(host, func(c rune) bool {
		return !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.ContainsRune("-._:[]", c))
	})
}

// Host is the name of a URL's host as it is compared: lower case, without the port and the root's dot.
func Host(u *url.URL) string { return strings.ToLower(strings.TrimSuffix(u.Hostname(), ".")) }

// IsLoopback reports whether a host name, without a port or brackets, is localhost or an address of this machine.
func IsLoopback(name string) bool {
	ip, err := netip.ParseAddr(name)
	return name == "localhost" || err == nil && ip.Unmap().IsLoopback()
}
