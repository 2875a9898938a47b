package oauth

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"

	"switchboard/internal/store"
	"switchboard/internal/web"
)

// registered is the answer of RFC 7591 §3.2.1.
type registered struct {
	ClientID      string `json:"client_id"`
	IssuedAt      int64  `json:"client_id_issued_at"`
	Secret        string `json:"client_secret,omitempty"`
	SecretExpires *int64 `json:"client_secret_expires_at,omitempty"` // 0 is never; there is one only with a secret
	clientMetadata
	GrantTypes    []string `json:"grant_types"`
	ResponseTypes []string `json:"response_types"`
}

// register serves /oauth/register (RFC 7591).
func (s *Server) register(w http.ResponseWriter, r *http.Request) {
	m, err := readRegistration(r, s.ClientHosts)
	var bad *badMetadata
	switch {
	case errors.As(err, &bad):
		writeError(w, http.StatusBadRequest, bad.code, bad.problem)
		return
	case err != nil:
		s.writeFailure(w, r, err)
		return
	}
	row := newClientRow(store.NewID("cli"), kindRegistered, m)
	out := registered{ClientID: row.ID, IssuedAt: row.CreatedAt.Unix(), clientMetadata: m, GrantTypes: grantTypes, ResponseTypes: []string{"code"}}
	if out.Secret = s.giveSecret(&row); out.Secret != "" {
		out.SecretExpires = new(int64)
	}
	if err := s.Store.Tx(r.Context(), func(ctx context.Context) error { return s.Store.DB(ctx).Create(&row).Error }); err != nil {
		s.writeFailure(w, r, &trouble{fmt.Errorf("registering a client: %w", err)})
		return
	}
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("Pragma", "no-cache")
	web.JSON(w, http.StatusCreated, out)
}

// newClientRow is a client with what it says of itself.
func newClientRow(id, kind string, m clientMetadata) clientRow {
	uris, _ := json.Marshal(m.RedirectURIs)
	said := m
	said.JWKS = nil // it has a column of its own
	kept, _ := json.Marshal(said)
	now := store.Now()
	row := clientRow{
		ID: id, Kind: kind, Name: m.ClientName, RedirectURIs: string(uris), Metadata: string(kept), CreatedAt: now,
		AuthMethod: m.AuthMethod, JWKS: string(m.JWKS), JWKSURI: m.JWKSURI,
	}
	if len(m.JWKS) > 0 {
		row.JWKSAt = now
	}
	return row
}

func readRegistration(r *http.Request, hosts HostPolicy) (clientMetadata, error) {
	if web.Media(r) != "application/json" {
		return clientMetadata{}, invalidMetadata("Send the registration as application/json.")
	}
	body, err := io.ReadAll(io.LimitReader(r.Body, maxMetadata+1))
	var tooLarge *http.MaxBytesError
	if errors.As(err, &tooLarge) || len(body) > maxMetadata {
		return clientMetadata{}, invalidMetadata("The registration is longer than 64 KiB.")
	}
	if err != nil {
		return clientMetadata{}, invalidMetadata("The registration could not be read to its end.")
	}
	members, err := parseMembers(body)
	if err != nil {
		return clientMetadata{}, err
	}
	m, err := parseMetadata(members)
	if err != nil {
		return m, err
	}
	return m, m.checkRegistration(hosts)
}

// checkRegistration settles how the client will authenticate and refuses what cannot be served. One redirect URI that
// is refused refuses the registration: a client finds out now rather than when a person waits.
func (m *clientMetadata) checkRegistration(hosts HostPolicy) error {
	for i, uri := range m.RedirectURIs {
		if reason := registrable(uri); reason != "" {
			return invalidRedirects("redirect_uris[%d] %s.", i, reason)
		}
	}
	if m.AuthMethod == "" {
		// RFC 7591 §2 has client_secret_basic for a client that does not say; an app on people's machines cannot keep
		// a secret (RFC 8252 §8.5), and those that do not ask for one do not send it either.
		if m.AuthMethod = byBasic; m.native() {
			m.AuthMethod = byNothing
		}
	}
	if !slices.Contains(authMethods, m.AuthMethod) {
		return invalidMetadata("token_endpoint_auth_method must be one of %s.", strings.Join(authMethods, ", "))
	}
	return m.checkKeys(hosts)
}
