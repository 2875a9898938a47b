package oauth

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/ory/fosite"

	"switchboard/auth"
	"switchboard/internal/seal"
	"switchboard/internal/store"
)

// client is an application that may ask people for access. It implements fosite.Client.
type client struct {
	row       clientRow
	redirects []string
	scopes    []string
	resources []string
	proven    bool // it authenticated itself in this request, see authenticate.go
}

type clientRow struct {
	ID             string `gorm:"primaryKey"`
	Kind           string
	OrgID          *string // of a made one
	Name           string
	RedirectURIs   string `gorm:"column:redirect_uris"`
	Metadata       string
	AuthMethod     string
	SecretHash     string
	OldSecretHash  string
	OldSecretUntil store.Time
	JWKS           string     `gorm:"column:jwks"`
	JWKSURI        string     `gorm:"column:jwks_uri"`
	JWKSAt         store.Time `gorm:"column:jwks_at"`
	FreshUntil     store.Time
	CreatedAt      store.Time
	UsedAt         store.Time
}

func (clientRow) TableName() string { return "clients" }

// How a client came here.
const (
	kindRegistered = "registered" // by itself (RFC 7591)
	kindDocument   = "document"   // its id is the URL of its metadata
	kindMade       = "made"       // by an administrator, for their organization
)

// secretPrefix tells people and secret scanners what a client secret is.
const secretPrefix = "sb_cs_"

// hasSecret reports whether the client authenticates with a secret. Which of the two places it puts it in is its own
// affair: libraries mix them up, and it is the same secret.
func (r *clientRow) hasSecret() bool { return isSecretMethod(r.AuthMethod) }

func isSecretMethod(method string) bool { return method == byBasic || method == byPost }

// label is how the log names a client: by its id, and by its host where that is an address, whose query is nobody's
// business.
func (c *client) label() string {
	if host := auth.DocumentHost(c.row.ID); host != "" {
		return host
	}
	return c.row.ID
}

// giveSecret makes a secret for a client that authenticates with one and returns it, "" for any other. The row keeps a
// hash of it.
func (s *Server) giveSecret(r *clientRow) string {
	if !r.hasSecret() {
		return ""
	}
	secret := seal.NewToken(secretPrefix)
	r.SecretHash = s.Secrets.Hash(secret)
	return secret
}

// mark stands for the present secret where people see it: a hash of its hash, in short.
func (r *clientRow) mark() string {
	if r.SecretHash == "" {
		return ""
	}
	sum := sha256.Sum256([]byte(r.SecretHash))
	return hex.EncodeToString(sum[:8])
}

// redirects is what RedirectURIs holds. It was written by us; a row that cannot be read has none, and matches nothing.
func (r *clientRow) redirects() []string {
	var uris []string
	_ = json.Unmarshal([]byte(r.RedirectURIs), &uris)
	return uris
}

// organization is the one that a client was made for, "" for all.
func (r *clientRow) organization() string {
	if r.OrgID == nil {
		return ""
	}
	return *r.OrgID
}

var _ fosite.Client = (*client)(nil)

func (c *client) GetID() string                      { return c.row.ID }
func (c *client) GetHashedSecret() []byte            { return nil }
func (c *client) GetRedirectURIs() []string          { return c.redirects }
func (c *client) GetGrantTypes() fosite.Arguments    { return grantTypes }
func (c *client) GetResponseTypes() fosite.Arguments { return fosite.Arguments{"code"} }
func (c *client) GetScopes() fosite.Arguments        { return c.scopes } // a registered scope limits nothing
func (c *client) IsPublic() bool                     { return c.row.AuthMethod == byNothing }
func (c *client) GetAudience() fosite.Arguments      { return c.resources }

var grantTypes = []string{"authorization_code", "refresh_token"}

// mayUse reports whether the client may use a code or token of a grant, as far as its authentication goes. A document
// that asks for keys where it did not before, or no longer does, leaves running grants as they are: the app's copies
// out there learn of it one by one.
func (c *client) mayUse(g *grantState) bool {
	return c.proven || c.row.AuthMethod == byNothing || g.authMethod == byNothing
}

// find loads a client, and answers fosite.ErrNotFound for an unknown one and for one whose host the operator denies.
func (s *Server) find(ctx context.Context, id string) (*client, error) {
	c := &client{scopes: s.Scopes.Known(), resources: s.resourceURLs}
	r := &c.row
	err := s.Store.QueryRow(ctx, `SELECT id, kind, org_id, name, redirect_uris, auth_method, secret_hash, old_secret_hash, old_secret_until,
			jwks, jwks_uri, jwks_at, fresh_until, created_at, used_at FROM clients WHERE id = ?`, []any{id},
		&r.ID, &r.Kind, &r.OrgID, &r.Name, &r.RedirectURIs, &r.AuthMethod, &r.SecretHash, &r.OldSecretHash, &r.OldSecretUntil,
		&r.JWKS, &r.JWKSURI, &r.JWKSAt, &r.FreshUntil, &r.CreatedAt, &r.UsedAt)
	if store.IsNotFound(err) || err == nil && r.Kind == kindDocument && !s.ClientHosts.admits(id) {
		return nil, fosite.ErrNotFound
	}
	if err != nil {
		return nil, &trouble{fmt.Errorf("reading a client: %w", err)}
	}
	c.redirects = r.redirects()
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

// ClientAssertionJWTValid implements fosite.ClientManager: assertions are judged in authenticate.go.
func (*clients) ClientAssertionJWTValid(context.Context, string) error { return fosite.ErrJTIKnown }

// SetClientAssertionJWT implements fosite.ClientManager.
func (*clients) SetClientAssertionJWT(context.Context, string, time.Time) error {
	return fosite.ErrJTIKnown
}
