package oauth

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"gorm.io/gorm/clause"

	"switchboard/auth"
	"switchboard/internal/audit"
	"switchboard/internal/caller"
	"switchboard/internal/fault"
	"switchboard/internal/store"
)

// App is a client as an administrator sees it: one that they made, that is or was connected here, or that they block.
type App struct {
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

// HasSecret reports whether the app authenticates with a secret.
func (a App) HasSecret() bool { return a.Method == byBasic || a.Method == byPost }

// NewApp asks for a client of the caller's organization.
type NewApp struct {
	Name      string
	Redirects []string
	Method    string // none, client_secret_basic, client_secret_post or private_key_jwt
	JWKSURI   string // https address of its public keys, for private_key_jwt
}

// AuthMethods are the ways in which a client can authenticate, by the names of RFC 7591.
func AuthMethods() []string { return slices.Clone(authMethods) }

// oldSecretLife is how long the old secret goes on after a rotation, so that an app's servers can be given the new one.
const oldSecretLife = 24 * time.Hour

// clientBlock is a client that an organization does not let in.
type clientBlock struct {
	OrgID     store.OrgID
	ClientID  string
	PersonID  string
	CreatedAt store.Time
}

func (clientBlock) TableName() string { return "client_blocks" }

// admin is the caller, who must be an administrator.
func admin(ctx context.Context) (caller.Caller, error) {
	c, _ := caller.From(ctx)
	if !c.Role.SeesAll() {
		return c, fault.New(fault.Forbidden, "Only an administrator manages the apps of an organization. Ask one.")
	}
	return c, nil
}

// Apps lists the clients of the caller's organization, by name.
func (s *Server) Apps(ctx context.Context) ([]App, error) {
	c, err := admin(ctx)
	if err != nil {
		return nil, err
	}
	var blocks []clientBlock
	if err := s.Store.DB(ctx).Find(&blocks).Error; err != nil {
		return nil, fmt.Errorf("reading blocked clients: %w", err)
	}
	var counts []struct {
		ClientID string
		Live     int
		UsedAt   store.Time // the last call
		IssuedAt store.Time // the last token
	}
	// A table without a model, so the fence does not see it: the organization is a condition of the query.
	err = s.Store.DB(store.AllOrgs(ctx, "the organization is a condition")).Table("connections").
		Select(`client_id, sum(CASE WHEN revoked_at IS NULL THEN 1 ELSE 0 END) AS live, max(used_at) AS used_at,
			max((SELECT max(g.issued_at) FROM generations g JOIN grants gr ON gr.id = g.grant_id WHERE gr.connection_id = connections.id)) AS issued_at`).
		Where("org_id = ?", c.Org).Group("client_id").Find(&counts).Error
	if err != nil {
		return nil, fmt.Errorf("counting connections: %w", err)
	}
	live, used, ids := map[string]int{}, map[string]time.Time{}, []string{}
	for _, n := range counts {
		live[n.ClientID], used[n.ClientID], ids = n.Live, n.UsedAt.Time, append(ids, n.ClientID)
		if n.IssuedAt.After(n.UsedAt.Time) {
			used[n.ClientID] = n.IssuedAt.Time
		}
	}
	blocked := map[string]time.Time{}
	for _, b := range blocks {
		blocked[b.ClientID], ids = b.CreatedAt.Time, append(ids, b.ClientID)
	}
	var rows []clientRow
	if err := s.Store.DB(ctx).Where("org_id = ? OR id IN ?", c.Org, ids).Find(&rows).Error; err != nil {
		return nil, fmt.Errorf("reading clients: %w", err)
	}
	out := []App{}
	for _, row := range rows {
		app := row.app()
		if !app.Made {
			app.UsedAt = used[row.ID] // elsewhere is not this organization's business
		}
		app.Connections, app.BlockedAt = live[row.ID], blocked[row.ID]
		out = append(out, app)
	}
	slices.SortFunc(out, func(a, b App) int {
		if d := strings.Compare(strings.ToLower(a.Name), strings.ToLower(b.Name)); d != 0 {
			return d
		}
		return strings.Compare(a.ID, b.ID)
	})
	return out, nil
}

func (r *clientRow) app() App {
	app := App{
		ID: r.ID, Name: r.Name, Host: auth.DocumentHost(r.ID), Made: r.Kind == kindMade, Method: r.AuthMethod,
		CreatedAt: r.CreatedAt.Time, UsedAt: r.UsedAt.Time, Redirects: r.redirects(), Mark: r.mark(),
	}
	if time.Now().Before(r.OldSecretUntil.Time) {
		app.OldUntil = r.OldSecretUntil.Time
	}
	return app
}

// MakeApp makes a client of the caller's organization and returns its secret, "" for one without; it is not kept.
func (s *Server) MakeApp(ctx context.Context, n NewApp) (string, App, error) {
	c, err := admin(ctx)
	if err != nil {
		return "", App{}, err
	}
	m := clientMetadata{ClientName: cleanName(n.Name), RedirectURIs: n.Redirects, AuthMethod: n.Method, JWKSURI: strings.TrimSpace(n.JWKSURI)}
	if err := s.checkMade(&m); err != nil {
		return "", App{}, err
	}
	row := newClientRow(m, kindMade)
	row.OrgID = &c.Org
	secret := s.giveSecret(&row)
	err = s.Store.Tx(ctx, func(ctx context.Context) error {
		if err := s.Store.DB(ctx).Create(&row).Error; err != nil {
			return fmt.Errorf("making a client: %w", err)
		}
		return s.Audit.Append(ctx, audit.Record{Action: audit.ClientCreate, Outcome: audit.OK, Subject: row.ID, Detail: map[string]any{"app": row.Name, "method": row.AuthMethod}})
	})
	if err != nil {
		return "", App{}, err
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
	var bad *badMetadata
	if err := errors.Join(m.checkKeys(), s.checkKeysHost(*m)); errors.As(err, &bad) {
		return wrong("jwks_uri", bad.problem)
	}
	return nil
}

// RotateSecret gives a client that the organization made a new secret and returns it. The one before, which mark stands
// for, goes on for a day, or ends at once when it got out. Where that is not the present one any more, somebody else was
// faster or a form came twice, and a conflict is answered: the secret that was just handed out must not die of it.
func (s *Server) RotateSecret(ctx context.Context, id, mark string, leaked bool) (string, App, error) {
	c, err := admin(ctx)
	if err != nil {
		return "", App{}, err
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
			return fault.New(fault.IdempotencyConflict, "The app has had a new secret since this was asked. Look at it again.")
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
		return "", App{}, err
	}
	return secret, row.app(), nil
}

// BlockApp keeps a client out of the caller's organization and ends its connections there; their tokens are dead with
// their next use. Blocking again is fine.
func (s *Server) BlockApp(ctx context.Context, id string) error {
	return s.changeApp(ctx, id, func(ctx context.Context, c caller.Caller, row *clientRow) error {
		made := s.Store.DB(ctx).Clauses(clause.OnConflict{DoNothing: true}).
			Create(&clientBlock{OrgID: store.OrgID(c.Org), ClientID: id, PersonID: c.Person, CreatedAt: store.Now()})
		if made.Error != nil {
			return fmt.Errorf("blocking a client: %w", made.Error)
		}
		ended, err := s.Store.Exec(ctx, `UPDATE connections SET revoked_at = ?, revoked_reason = ? WHERE org_id = ? AND client_id = ? AND revoked_at IS NULL`,
			store.Now(), auth.ByBlock, c.Org, id)
		if err != nil {
			return fmt.Errorf("ending a client's connections: %w", err)
		}
		if made.RowsAffected == 0 && ended == 0 {
			return nil
		}
		return s.Audit.Append(ctx, audit.Record{Action: audit.ClientBlock, Outcome: audit.OK, Subject: id, Detail: map[string]any{"app": row.Name, "connections": ended}})
	})
}

// UnblockApp lets a client ask people of the caller's organization again. What was ended stays ended.
func (s *Server) UnblockApp(ctx context.Context, id string) error {
	return s.changeApp(ctx, id, func(ctx context.Context, _ caller.Caller, row *clientRow) error {
		gone := s.Store.DB(ctx).Where("client_id = ?", id).Delete(&clientBlock{})
		if gone.Error != nil {
			return fmt.Errorf("letting a client in: %w", gone.Error)
		}
		if gone.RowsAffected == 0 {
			return nil
		}
		return s.Audit.Append(ctx, audit.Record{Action: audit.ClientUnblock, Outcome: audit.OK, Subject: id, Detail: map[string]any{"app": row.Name}})
	})
}

// changeApp has an administrator change something about a client that the organization has to do with. Its row is held
// meanwhile; to anybody else the client does not exist.
func (s *Server) changeApp(ctx context.Context, id string, change func(ctx context.Context, c caller.Caller, row *clientRow) error) error {
	c, err := admin(ctx)
	if err != nil {
		return err
	}
	return s.Store.Tx(ctx, func(ctx context.Context) error {
		var row clientRow
		err := s.Store.Locked(store.AllOrgs(ctx, "the organization is a condition")).
			Where("org_id = ? OR EXISTS (SELECT 1 FROM connections c WHERE c.client_id = clients.id AND c.org_id = ?) OR EXISTS (SELECT 1 FROM client_blocks b WHERE b.client_id = clients.id AND b.org_id = ?)", c.Org, c.Org, c.Org).
			Take(&row, "id = ?", id).Error
		if store.IsNotFound(err) {
			return fault.New(fault.NotFound, "There is no such app here.")
		}
		if err != nil {
			return fmt.Errorf("reading a client: %w", err)
		}
		return change(ctx, c, &row)
	})
}

// blockedIn lists the organizations that do not let a client in.
func (s *Server) blockedIn(ctx context.Context, clientID string) ([]string, error) {
	var orgs []string
	err := s.Store.DB(store.AllOrgs(ctx, "who lets a client in, for its person to see")).Model(&clientBlock{}).Where("client_id = ?", clientID).Pluck("org_id", &orgs).Error
	if err != nil {
		return nil, fmt.Errorf("reading who blocks a client: %w", err)
	}
	return orgs, nil
}
