package oauth

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"switchboard/internal/origin"
)

// Bounds of what a client says about itself.
const (
	maxMetadata      = 64 << 10
	maxRedirectURIs  = 20
	maxRedirectBytes = 8 << 10 // of all together; the row is anybody's to write
	maxClientName    = 120
)

// clientMetadata is the part of RFC 7591 §2 that we keep and echo. Anything else that a client sends is ignored;
// nothing is echoed as null or "", which clients refuse. Logos are neither kept nor shown: what a stranger's server
// draws next to a name would look like something that we checked.
type clientMetadata struct {
	RedirectURIs    []string        `json:"redirect_uris"`
	ClientName      string          `json:"client_name,omitempty"`
	ClientURI       string          `json:"client_uri,omitempty"`
	Scope           string          `json:"scope,omitempty"`
	ApplicationType string          `json:"application_type,omitempty"`
	SoftwareID      string          `json:"software_id,omitempty"`
	SoftwareVersion string          `json:"software_version,omitempty"`
	AuthMethod      string          `json:"token_endpoint_auth_method,omitempty"`
	JWKSURI         string          `json:"jwks_uri,omitempty"`
	JWKS            json.RawMessage `json:"jwks,omitempty"`
}

// The ways in which a client shows that it is itself at the token endpoint (RFC 7591 §2).
const (
	byNothing = "none"
	byBasic   = "client_secret_basic"
	byPost    = "client_secret_post"
	byKey     = "private_key_jwt"
)

// provingMethods are those with which a client proves that it is itself, and authMethods are all.
var (
	provingMethods = []string{byBasic, byPost, byKey}
	authMethods    = append([]string{byNothing}, provingMethods...)
)

// badMetadata says what is wrong with a client's metadata, as RFC 7591 §3.2.2 wants it told.
type badMetadata struct {
	code, problem string
	keys          bool // it is the keys
}

func (b *badMetadata) Error() string { return b.code + ": " + b.problem }

func invalidMetadata(format string, args ...any) error {
	return &badMetadata{code: "invalid_client_metadata", problem: fmt.Sprintf(format, args...)}
}

func invalidKeys(format string, args ...any) error {
	return &badMetadata{code: "invalid_client_metadata", problem: fmt.Sprintf(format, args...), keys: true}
}

func invalidRedirects(format string, args ...any) error {
	return &badMetadata{code: "invalid_redirect_uri", problem: fmt.Sprintf(format, args...)}
}

// parseMembers reads a JSON object. Its members are matched by their exact names later: encoding/json folds case, and
// a checker that reads "Redirect_uris" differently must not exist.
func parseMembers(body []byte) (map[string]json.RawMessage, error) {
	var members map[string]json.RawMessage
	if !utf8.Valid(body) || !json.Valid(body) || json.Unmarshal(body, &members) != nil || members == nil {
		return nil, invalidMetadata("The metadata is not a JSON object in UTF-8.")
	}
	return members, nil
}

// parseMetadata reads the members that we know. Which redirect URIs and which method are good is the caller's to say.
func parseMetadata(members map[string]json.RawMessage) (clientMetadata, error) {
	var m clientMetadata
	for name, into := range map[string]any{
		"redirect_uris": &m.RedirectURIs, "client_name": &m.ClientName, "client_uri": &m.ClientURI, "scope": &m.Scope,
		"application_type": &m.ApplicationType, "software_id": &m.SoftwareID, "software_version": &m.SoftwareVersion,
		"token_endpoint_auth_method": &m.AuthMethod, "jwks_uri": &m.JWKSURI, "jwks": &m.JWKS,
	} {
		raw, ok := members[name]
		if !ok || bytes.Equal(bytes.TrimSpace(raw), []byte("null")) {
			continue
		}
		if json.Unmarshal(raw, into) != nil {
			if name == "redirect_uris" {
				return m, invalidRedirects("redirect_uris must be an array of strings.")
			}
			return m, invalidMetadata("%s must be a string.", name)
		}
	}
	if len(m.RedirectURIs) == 0 || len(m.RedirectURIs) > maxRedirectURIs {
		return m, invalidRedirects("redirect_uris must name 1 to %d URIs.", maxRedirectURIs)
	}
	if total := len(strings.Join(m.RedirectURIs, "")); total > maxRedirectBytes {
		return m, invalidRedirects("redirect_uris are longer than %d characters together.", maxRedirectBytes)
	}
	m.ClientName = cleanName(m.ClientName)
	m.tidy()
	return m, nil
}

// tidy drops what is too long to keep; it is only ever echoed.
func (m *clientMetadata) tidy() {
	for _, field := range []*string{&m.ClientURI, &m.Scope, &m.ApplicationType, &m.SoftwareID, &m.SoftwareVersion} {
		if len(*field) > maxRedirectURI || !utf8.ValidString(*field) {
			*field = ""
		}
	}
}

// checkKeys sees that a client that authenticates with a key has published one, at a host that the operator admits, and
// keeps keys of no other.
func (m *clientMetadata) checkKeys(hosts HostPolicy) error {
	if m.AuthMethod != byKey {
		m.JWKS, m.JWKSURI = nil, ""
		return nil
	}
	switch {
	case len(m.JWKS) > 0 && m.JWKSURI != "":
		return invalidKeys("Give either jwks or jwks_uri, not both (RFC 7591 section 2).")
	case len(m.JWKS) > 0:
		keys, err := parseKeys(m.JWKS)
		m.JWKS = keySet(keys)
		return err
	}
	u, err := url.Parse(m.JWKSURI)
	if err != nil || u.Scheme != "https" || !origin.IsPlain(u) || u.User != nil || strings.Contains(m.JWKSURI, "#") || len(m.JWKSURI) > maxRedirectURI || strings.ContainsFunc(m.JWKSURI, notInURI) {
		return invalidKeys("private_key_jwt needs the public keys: jwks, or jwks_uri with an https address.")
	}
	if !hosts.admits(m.JWKSURI) {
		return invalidKeys("The host of jwks_uri is not one that this server fetches from. Ask whoever runs it, or send jwks.")
	}
	return nil
}

// native reports whether an app runs on people's machines: it says so, or all its answers go to a port or a scheme of
// its own there.
func (m *clientMetadata) native() bool {
	return m.ApplicationType == "native" || !slices.ContainsFunc(m.RedirectURIs, func(uri string) bool {
		return strings.HasPrefix(uri, "https:")
	})
}

// cleanName makes a client's name inert: no control and no direction-changing characters (which could dress a name
// up as another), and a length that fits a sentence.
func cleanName(name string) string {
	name = strings.Map(func(c rune) rune {
		if unicode.IsControl(c) || unicode.In(c, unicode.Cf, unicode.Zl, unicode.Zp, unicode.Co, unicode.Cs) || c == utf8.RuneError {
			return -1
		}
		return c
	}, name)
	name = strings.Join(strings.Fields(name), " ")
	if runes := []rune(name); len(runes) > maxClientName {
		name = string(runes[:maxClientName])
	}
	return name
}
