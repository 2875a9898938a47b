package oauth

import (
	"net/url"
	"slices"
	"strings"

	"github.com/ory/fosite"

	"switchboard/auth"
	"switchboard/internal/origin"
)

// errInvalidTarget is the error of RFC 8707 §2.
var errInvalidTarget = &fosite.RFC6749Error{
	ErrorField:       "invalid_target",
	DescriptionField: "The requested resource is not one of this server.",
	CodeField:        400,
}

// resource picks the protected resource that a request names; a client that names none (the 2025-03-26 revision
// never does) means the default one. Several spellings of one resource are one; two resources are refused, since a
// token is bound to one.
func (s *Server) resource(values []string) (auth.Resource, error) {
	var found auth.Resource
	for _, v := range values {
		if v == "" {
			continue
		}
		at := slices.Index(s.resourceURLs, canonical(v))
		if at < 0 {
			return found, errInvalidTarget.WithHintf("The resource is not known here. This server protects %s.", strings.Join(s.resourceURLs, ", "))
		}
		if found.URL != "" && found.URL != s.Resources[at].URL {
			return found, errInvalidTarget.WithHint("A token is bound to one resource: ask for one at a time.")
		}
		found = s.Resources[at]
	}
	if found.URL == "" {
		return s.Resources[0], nil
	}
	return found, nil
}

// canonical writes a resource identifier as the metadata has it: scheme and host in lower case, no default port, no
// slash at the end and no query. Clients that pass URLs through a URL class change exactly these. A fragment is
// forbidden (RFC 8707 §2) and makes it unknown.
func canonical(raw string) string {
	u, _ := url.Parse(raw)
	o, ok := origin.Of(u)
	if !ok || strings.Contains(raw, "#") {
		return ""
	}
	return o.String() + strings.TrimRight(u.EscapedPath(), "/")
}
