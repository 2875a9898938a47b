package oauth

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"switchboard/auth"
	"switchboard/internal/audit"
	"switchboard/internal/caller"
	"switchboard/internal/fault"
	"switchboard/internal/store"
)

// Client is a client as an administrator sees it: one that they made, that is or was connected here, or that they block.
type Client struct {
	ID, Name    string
	Host        string // of the document that its id is the address of, "" without one
	Made        bool   // by an administrator of this organization
	Method      string // how it authenticates, RFC 7591 token_endpoint_auth_method
	Redirects   []string
	Connections int // live ones here
	CreatedAt   time.Time
	UsedAt      time.Time // zero when it never was
	BlockedAt   time.Time // zero when it is not
	OldUntil    time.Time // until when the secret before the present one is good, zero when it is not
	Mark        string    // stands for the present secret, so that it is rotated once; "" without one
}

// HasSecret reports whether the client authenticates with a secret.
func (c Client) HasSecret() bool { return isSecretMethod(c.Method) }

// NewClient asks for a client of the caller's organization.
type NewClient struct {
	Name      string
	Redirects []string
	Method    string // none, client_secret_basic, client_secret_post or private_key_jwt
	JWKSURI   string // https address of its public keys, for private_key_jwt
}

// AuthMethods are the ways in which a client can authenticate, by the names of RFC 7591, the most usual first.
func AuthMethods() []string { return append(slices.Clone(provingMethods), byNothing) }

// ErrSecretChanged is the answer to a rotation of a secret that is not the present one: somebody else was faster, or the
// same form came twice.
var ErrSecretChanged = errors.New("the client has had a new secret since this was asked")

// oldSecretLife is how long the old secret goes on after a rotation, so that an app's servers can be given the new one.
const oldSecretLife = 24 * time.Hour

// admin is the caller, who must be an administrator.
func admin(ctx context.Context) (caller.Caller, error) {
	c, _ := caller.From(ctx)
	if !c.Role.SeesAll() {
		return c, fault.New(fault.Forbidden, "Only an administrator manages the apps of an organization. Ask one.")
	}
	return c, nil
}

// Clients lists the clients of the caller's organization, by name.
func (s *Server) Clients(ctx context.Context) ([]Client, error) {
	c, err := admin(ctx)
	if err != nil {
		return nil, err
	}
	var blocks []clientBlock
	if err := s.Store.DB(ctx).Find(&blocks).Error; err != nil {
		return nil, fmt.Errorf("reading blocked clients: %w", err)
	}
	here, err := s.uses(ctx, c.Org)
	if err != nil {
		return nil, err
	}
	blocked, ids := map[string]time.Time{}, slices.Collect(maps.Keys(here))
	for _, b := range blocks {
		blocked[b.ClientID], ids = b.CreatedAt.Time, append(ids, b.ClientID)
	}
	var rows []clientRow
	if err := s.Store.DB(ctx).Where("org_id = ? OR id IN ?", c.Org, ids).Find(&rows).Error; err != nil {
		return nil, fmt.Errorf("reading clients: %w", err)
	}
	out := []Client{}
	for _, row := range rows {
		app := row.app()
		if !app.Made {
			app.UsedAt = here[row.ID].last // elsewhere is not this organization's business
		}
		app.Connections, app.BlockedAt = here[row.ID].live, blocked[row.ID]
		out = append(out, app)
	}
	slices.SortFunc(out, func(a, b Client) int {
		if d := strings.Compare(strings.ToLower(a.Name), strings.ToLower(b.Name)); d != 0 {
			return d
		}
		return strings.Compare(a.ID, b.ID)
	})
	return out, nil
}

// use is what an organization makes of a client.
type use struct {
	live int       // connections
	last time.Time // call or token
}

// uses are those of an organization, by client.
func (s *Server) uses(ctx context.Context, org string) (map[string]use, error) {
	var rows []struct {
		ClientID string
		Live     int
		UsedAt   store.Time // the last call
		IssuedAt store.Time // the last token
	}
	// A table without a model, so the fence does not see it: the organization is a condition of the query.
	err := s.Store.DB(store.AllOrgs(ctx, "the organization is a condition")).Table("connections").
		Select(`client_id, sum(CASE WHEN revoked_at IS NULL THEN 1 ELSE 0 END) AS live, max(used_at) AS used_at,
			max((SELECT max(g.issued_at) FROM generations g JOIN grants gr ON gr.id = g.grant_id WHERE gr.connection_id = connections.id)) AS issued_at`).
		Where("org_id = ?", org).Group("client_id").Find(&rows).Error
	if err != nil {
		return nil, fmt.Errorf("counting connections: %w", err)
	}
	out := map[string]use{}
	for _, row := range rows {
		u := use{row.Live, row.UsedAt.Time}
		if row.IssuedAt.After(u.last) {
			u.last = row.IssuedAt.Time
		}
		out[row.ClientID] = u
	}
	return out, nil
}

func (r *clientRow) app() Client {
	app := Client{
		ID: r.ID, Name: r.Name, Host: auth.DocumentHost(r.ID), Made: r.Kind == kindMade, Method: r.AuthMethod,
		CreatedAt: r.CreatedAt.Time, UsedAt: r.UsedAt.Time, Redirects: r.redirects(), Mark: r.mark(),
	}
	if time.Now().Before(r.OldSecretUntil.Time) {
		app.OldUntil = r.OldSecretUntil.Time
	}
	return app
}

// MakeClient makes a client of the caller's organization and returns its secret, "" for one without; it is not kept.
func (s *Server) MakeClient(ctx context.Context, n NewClient) (string, Client, error) {
	c, err := admin(ctx)
	if err != nil {
		return "", Client{}, err
	}
	m := clientMetadata{ClientName: cleanName(n.Name), RedirectURIs: n.Redirects, AuthMethod: n.Method, JWKSURI: strings.TrimSpace(n.JWKSURI)}
	if err := s.checkMade(&m); err != nil {
		return "", Client{}, err
	}
	row := newClientRow(store.NewID("cli"), kindMade, m)
	row.OrgID = &c.Org
	secret := s.giveSecret(&row)
	err = s.Store.Tx(ctx, func(ctx context.Context) error {
		if err := s.Store.DB(ctx).Create(&row).Error; err != nil {
			return fmt.Errorf("making a client: %w", err)
		}
		return s.Audit.Append(ctx, audit.Record{Action: audit.ClientCreate, Outcome: audit.OK, Subject: row.ID, Detail: map[string]any{"app": row.Name, "method": row.AuthMethod}})
	})
	if err != nil {
		return "", Client{}, err
	}
	return secret, row.app(), nil
}

// checkMade refuses what an administrator typed wrong, naming the field.
func (s *Server) checkMade(m *clientMetadata) error {
	wrong := func(field, problem string) error {
		return fault.New(fault.InvalidRequest, "%s", problem).With("field", field)
	}
	switch {
	case m.ClientName == "":
		return wrong("name", "An app needs a name of at most 120 characters.")
	case len(m.RedirectURIs) > maxRedirectURIs:
		return wrong("redirects", "An app has at most 20 redirect URIs, one on each line.")
	case !slices.Contains(authMethods, m.AuthMethod):
		return wrong("method", "Choose how the app authenticates.")
	case len(m.RedirectURIs) == 0 && m.AuthMethod == byNothing:
		// Without a redirect URI it signs nobody in, and without authenticating it can ask about no token.
		return wrong("redirects", "An app without a secret or key needs a redirect URI, one on each line.")
	}
	for _, uri := range m.RedirectURIs {
		if reason := registrable(uri); reason != "" {
			return wrong("redirects", fmt.Sprintf("The redirect URI %.200s %s.", uri, reason))
		}
	}
	err := m.checkKeys(s.ClientHosts)
	if bad := (*badMetadata)(nil); errors.As(err, &bad) {
		return wrong("jwks_uri", bad.problem)
	}
	return err
}

// RotateSecret gives a client that the organization made a new secret and returns it. The one before, which mark stands
// for, goes on for a day, or ends at once when it got out. Where that is not the present one any more the
// answer is ErrSecretChanged: the secret that was just handed out must not die of a form that came twice.
func (s *Server) RotateSecret(ctx context.Context, id, mark string, leaked bool) (string, Client, error) {
	c, err := admin(ctx)
	if err != nil {
		return "", Client{}, err
	}
	var row clientRow
	secret := ""
	err = s.Store.Tx(ctx, func(ctx context.Context) error {
		err := s.Store.Locked(ctx).Take(&row, "id = ? AND org_id = ?", id, c.Org).Error
		if store.IsNotFound(err) || err == nil && !row.hasSecret() {
			return fault.New(fault.NotFound, "There is no such app of this organization that has a secret.")
		}
		if err != nil {
			return fmt.Errorf("reading a client: %w", err)
		}
		if row.mark() != mark {
			return ErrSecretChanged
		}
		row.OldSecretHash, row.OldSecretUntil = row.SecretHash, store.Now().Add(oldSecretLife)
		if leaked {
			row.OldSecretHash, row.OldSecretUntil = "", store.Time{}
		}
		secret = s.giveSecret(&row)
		if err := s.Store.DB(ctx).Select("secret_hash", "old_secret_hash", "old_secret_until").Updates(&row).Error; err != nil {
			return fmt.Errorf("rotating a secret: %w", err)
		}
		return s.Audit.Append(ctx, audit.Record{Action: audit.ClientRotate, Outcome: audit.OK, Subject: id, Detail: map[string]any{"app": row.Name, "leaked": leaked}})
	})
	if err != nil {
		return "", Client{}, err
	}
	return secret, row.app(), nil
}
