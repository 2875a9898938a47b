package oauth

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/ory/fosite"

	"switchboard/internal/store"
)

// client is an application that may ask people for access. It implements fosite.Client.
type client struct {
	row       clientRow
	redirects []string
	scopes    []string
	resources []string
}

type clientRow struct {
	ID           string `gorm:"primaryKey"`
	Name         string
	RedirectURIs string `gorm:"column:redirect_uris"`
	Metadata     string
	CreatedAt    store.Time
	UsedAt       store.Time
}

func (clientRow) TableName() string { return "clients" }

var _ fosite.Client = (*client)(nil)

func (c *client) GetID() string                      { return c.row.ID }
func (c *client) GetHashedSecret() []byte            { return nil }
func (c *client) GetRedirectURIs() []string          { return c.redirects }
func (c *client) GetGrantTypes() fosite.Arguments    { return grantTypes }
func (c *client) GetResponseTypes() fosite.Arguments { return fosite.Arguments{"code"} }
func (c *client) GetScopes() fosite.Arguments        { return c.scopes } // a registered scope limits nothing
func (c *client) IsPublic() bool                     { return true }
func (c *client) GetAudience() fosite.Arguments      { return c.resources }

var grantTypes = []string{"authorization_code", "refresh_token"}

// find loads a client, and answers fosite.ErrNotFound for an unknown one.
func (s *Server) find(ctx context.Context, id string) (*client, error) {
	c := &client{scopes: s.Scopes.Known(), resources: s.Resources}
	err := s.Store.QueryRow(ctx, `SELECT id, name, redirect_uris, created_at, used_at FROM clients WHERE id = ?`, []any{id},
		&c.row.ID, &c.row.Name, &c.row.RedirectURIs, &c.row.CreatedAt, &c.row.UsedAt)
	if store.IsNotFound(err) {
		return nil, fosite.ErrNotFound
	}
	if err == nil {
		err = json.Unmarshal([]byte(c.row.RedirectURIs), &c.redirects)
	}
	if err != nil {
		return nil, &trouble{fmt.Errorf("reading a client: %w", err)}
	}
	return c, nil
}

// used notes the day on which a client was used last, so that Sweep keeps it.
func (s *Server) used(ctx context.Context, c *client) {
	if time.Since(c.row.UsedAt.Time) < 24*time.Hour {
		return
	}
	if _, err := s.Store.Exec(ctx, `UPDATE clients SET used_at = ? WHERE id = ?`, store.Now(), c.row.ID); err != nil {
		s.Log.WarnContext(ctx, "last use of a client not recorded", "err", err)
	}
}

// clients implements fosite.Storage.
type clients struct{ s *Server }

// GetClient implements fosite.ClientManager. Fosite compares redirect URIs by its own rules, which know nothing of
// localhost; it is handed the requested one when ours let it through.
func (c *clients) GetClient(ctx context.Context, id string) (fosite.Client, error) {
	found, err := c.s.find(ctx, id)
	if err != nil {
		return nil, err
	}
	if uri := redirectOf(ctx); uri != "" && matchesAny(found.redirects, uri) {
		found.redirects = append(slices.Clone(found.redirects), uri)
	}
	return found, nil
}

// ClientAssertionJWTValid implements fosite.ClientManager: no assertion is accepted.
func (*clients) ClientAssertionJWTValid(context.Context, string) error { return fosite.ErrJTIKnown }

// SetClientAssertionJWT implements fosite.ClientManager.
func (*clients) SetClientAssertionJWT(context.Context, string, time.Time) error {
	return fosite.ErrJTIKnown
}
