package oauth

import (
	"net/url"
	"slices"
	"strings"

	"github.com/ory/fosite"

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
func (s *Server) resource(values []string) (string, error) {
	found := ""
	for _, v := range values {
		if v == "" {
			continue
		}
		c := canonical(v)
		if !slices.Contains(s.Resources, c) {
			return "", errInvalidTarget.WithHintf("The resource is not known here. This server protects %s.", strings.Join(s.Resources, ", "))
		}
		if found != "" && found != c {
			return "", errInvalidTarget.WithHint("A token is bound to one resource: ask for one at a time.")
		}
		found = c
	}
	if found == "" {
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
