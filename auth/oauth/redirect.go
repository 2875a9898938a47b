package oauth

import (
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// loopbacks are the names of this machine that a native app may listen on. They never match each other: what is
// registered as localhost may be another program than what listens on 127.0.0.1.
var loopbacks = []string{"localhost", "127.0.0.1", "::1"}

// refusedSchemes run code, read files, or reach into a program or the system when a browser is sent to them. Anybody
// can register a client, so what is listed here is what a link must never do.
var refusedSchemes = []string{
	"javascript", "data", "file", "blob", "vbscript", "about", "view-source", "intent", "ws", "wss", "ftp", "mailto", "tel", "sms",
	"filesystem", "jar", "feed", "res", "shell", "search", "search-ms", "livescript", "mocha",
}

// refusedFamilies are schemes by how they begin: of browsers, and those with which Windows and macOS open their own parts.
var refusedFamilies = []string{"chrome", "ms-", "x-apple"}

const maxRedirectURI = 2048

// registrable says what is wrong with a redirect URI, "" for nothing. Accepted are https, http on a loopback name,
// and private-use schemes (RFC 8252 §7.1) but for those of the deny list.
func registrable(uri string) string {
	if len(uri) > maxRedirectURI || strings.ContainsFunc(uri, notInURI) {
		return "is longer than 2048 characters or has characters that a URI cannot have"
	}
	u, err := url.Parse(uri)
	switch {
	case err != nil || u.Scheme == "":
		return "is not an absolute URI"
	case strings.Contains(uri, "#"):
		return "has a fragment (RFC 6749 section 3.1.2)"
	case u.User != nil:
		return "has a user name in it"
	case u.Scheme == "https" && u.Hostname() == "":
		return "has no host"
	case u.Scheme == "http" && !slices.Contains(loopbacks, u.Hostname()):
		return "uses http for a host that is not localhost, 127.0.0.1 or [::1]"
	case (u.Scheme == "https" || isLoopback(u)) && !isPort(u.Port()):
		return "has a port that nobody can listen on"
	case refused(u.Scheme):
		return "uses a scheme that apps cannot be given"
	}
	return ""
}

// notInURI reports whether a character cannot stand in a URI (RFC 3986 §2).
func notInURI(c rune) bool {
	return c <= ' ' || c > '~' || strings.ContainsRune(`"<>\^`+"`{|}", c)
}

func refused(scheme string) bool {
	return slices.Contains(refusedSchemes, scheme) ||
		slices.ContainsFunc(refusedFamilies, func(f string) bool { return strings.HasPrefix(scheme, f) })
}

func matchesAny(registered []string, requested string) bool {
	return slices.ContainsFunc(registered, func(r string) bool { return matches(r, requested) })
}

// matches compares a requested redirect URI with a registered one: character by character (RFC 9700 §4.1), but for
// the port of a loopback URI, which the system hands out when the app starts to listen (RFC 8252 §7.3).
func matches(registered, requested string) bool {
	if registered == requested {
		return true
	}
	if registrable(requested) != "" {
		return false
	}
	a, errA := url.Parse(registered)
	b, errB := url.Parse(requested)
	return errA == nil && errB == nil && isLoopback(a) && isLoopback(b) &&
		a.Hostname() == b.Hostname() && path(a) == path(b) && a.RawQuery == b.RawQuery
}

func isLoopback(u *url.URL) bool {
	return u.Scheme == "http" && slices.Contains(loopbacks, u.Hostname())
}

// isPort reports whether a browser can be sent to a port, "" being the scheme's own.
func isPort(port string) bool {
	n, err := strconv.ParseUint(port, 10, 16)
	return port == "" || err == nil && n > 0
}

// path is the path as written; an empty one is the root (RFC 9110 §4.2.3).
func path(u *url.URL) string {
	if p := u.EscapedPath(); p != "" {
		return p
	}
	return "/"
}

// location is a redirect URI with parameters added. What the client registered stays as it is, byte for byte.
func location(redirectURI string, params url.Values) string {
	separator := "?"
	if strings.Contains(redirectURI, "?") {
		separator = "&"
	}
	return redirectURI + separator + params.Encode()
}
