package oauth

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"
	"unicode"
	"unicode/utf8"

	"switchboard/internal/store"
	"switchboard/internal/web"
)

// Bounds of a registration.
const (
	maxRegistration  = 64 << 10
	maxRedirectURIs  = 20
	maxRedirectBytes = 8 << 10 // of all together; the row is anybody's to write
	maxClientName    = 120
)

// metadata is the part of RFC 7591 §2 that we keep and echo. Anything else that a client sends is ignored; nothing
// is echoed as null or "", which clients refuse.
type metadata struct {
	RedirectURIs    []string `json:"redirect_uris"`
	ClientName      string   `json:"client_name,omitempty"`
	ClientURI       string   `json:"client_uri,omitempty"`
	Scope           string   `json:"scope,omitempty"`
	ApplicationType string   `json:"application_type,omitempty"`
	SoftwareID      string   `json:"software_id,omitempty"`
	SoftwareVersion string   `json:"software_version,omitempty"`
}

// registered is the answer of RFC 7591 §3.2.1.
type registered struct {
	ClientID string `json:"client_id"`
	IssuedAt int64  `json:"client_id_issued_at"`
	metadata
	GrantTypes    []string `json:"grant_types"`
	ResponseTypes []string `json:"response_types"`
	AuthMethod    string   `json:"token_endpoint_auth_method"`
}

// register serves /oauth/register (RFC 7591). Every client becomes a public one: whatever method it names, the
// answer says none and carries no secret, which RFC 7591 §3.2.1 lets a server decide.
func (s *Server) register(w http.ResponseWriter, r *http.Request) {
	m, code, problem := readMetadata(r)
	if problem != "" {
		writeError(w, http.StatusBadRequest, code, problem)
		return
	}
	uris, _ := json.Marshal(m.RedirectURIs)
	kept, _ := json.Marshal(m)
	row := clientRow{ID: store.NewID("cli"), Name: m.ClientName, RedirectURIs: string(uris), Metadata: string(kept), CreatedAt: store.Now()}
	err := s.Store.Tx(r.Context(), func(ctx context.Context) error { return s.Store.DB(ctx).Create(&row).Error })
	if err != nil {
		s.writeFailure(w, r, &trouble{fmt.Errorf("registering a client: %w", err)})
		return
	}
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("Pragma", "no-cache")
	web.JSON(w, http.StatusCreated, registered{
		ClientID: row.ID, IssuedAt: row.CreatedAt.Unix(), metadata: m,
		GrantTypes: grantTypes, ResponseTypes: []string{"code"}, AuthMethod: "none",
	})
}

// readMetadata reads a registration. Members are matched by their exact names: encoding/json folds case, and a
// checker that reads "Redirect_uris" differently must not exist.
func readMetadata(r *http.Request) (m metadata, code, problem string) {
	const invalid = "invalid_client_metadata"
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		return m, invalid, "Send the registration as application/json."
	}
	body, err := io.ReadAll(io.LimitReader(r.Body, maxRegistration+1))
	var tooLarge *http.MaxBytesError
	if errors.As(err, &tooLarge) || len(body) > maxRegistration {
		return m, invalid, "The registration is longer than 64 KiB."
	}
	var members map[string]json.RawMessage
	if err != nil || !json.Valid(body) || json.Unmarshal(body, &members) != nil || members == nil {
		return m, invalid, "The registration is not a JSON object."
	}
	for name, into := range map[string]any{
		"redirect_uris": &m.RedirectURIs, "client_name": &m.ClientName, "client_uri": &m.ClientURI, "scope": &m.Scope,
		"application_type": &m.ApplicationType, "software_id": &m.SoftwareID, "software_version": &m.SoftwareVersion,
	} {
		raw, ok := members[name]
		if !ok || bytes.Equal(bytes.TrimSpace(raw), []byte("null")) {
			continue
		}
		if json.Unmarshal(raw, into) != nil {
			if name == "redirect_uris" {
				return m, "invalid_redirect_uri", "redirect_uris must be an array of strings."
			}
			return m, invalid, name + " must be a string."
		}
	}
	if len(m.RedirectURIs) == 0 || len(m.RedirectURIs) > maxRedirectURIs {
		return m, "invalid_redirect_uri", fmt.Sprintf("redirect_uris must name 1 to %d URIs.", maxRedirectURIs)
	}
	if total := len(strings.Join(m.RedirectURIs, "")); total > maxRedirectBytes {
		return m, "invalid_redirect_uri", fmt.Sprintf("redirect_uris are longer than %d characters together.", maxRedirectBytes)
	}
	for i, uri := range m.RedirectURIs {
		if reason := registrable(uri); reason != "" {
			return m, "invalid_redirect_uri", fmt.Sprintf("redirect_uris[%d] %s.", i, reason)
		}
	}
	m.ClientName = cleanName(m.ClientName)
	m.tidy()
	return m, "", ""
}

// tidy drops what is too long to keep; it is only ever echoed.
func (m *metadata) tidy() {
	for _, field := range []*string{&m.ClientURI, &m.Scope, &m.ApplicationType, &m.SoftwareID, &m.SoftwareVersion} {
		if len(*field) > maxRedirectURI || !utf8.ValidString(*field) {
			*field = ""
		}
	}
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
