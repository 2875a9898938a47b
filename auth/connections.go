package auth

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"time"

	"switchboard/internal/audit"
	"switchboard/internal/fault"
	"switchboard/internal/scope"
	"switchboard/internal/store"
)

// Connection is an AI app that may act for a person in an organization.
type Connection struct {
	ID                   string
	PersonID, PersonName string
	ClientID, ClientName string
	ClientHost           string    // of the document that its id is the address of; "" without one
	RedirectHost         string    // where the answer of its last sign-in went
	Scopes               scope.Set // what its live grants hold together
	CreatedAt, UsedAt    time.Time // UsedAt is zero when it was never used
	Grants               []Grant   // the live ones, oldest first
}

// Grant is one sign-in under a connection.
type Grant struct {
	ID                   string
	Scopes               scope.Set
	CreatedAt, ExpiresAt time.Time
}

// Why a connection was revoked.
const (
	ByPerson = "person"        // somebody pressed Revoke
	ByReuse  = "refresh_reuse" // a refresh token was used again
	ByBlock  = "client_block"  // an administrator blocked the app
)

// connectionRow is the part of a connection that is fenced to its organization.
type connectionRow struct {
	ID            string `gorm:"primaryKey"`
	OrgID         store.OrgID
	PersonID      string
	ClientID      string
	CreatedAt     store.Time
	UsedAt        store.Time
	RevokedAt     store.Time
	RevokedReason *string
}

func (connectionRow) TableName() string { return "connections" }

type clientRow struct {
	ID   string `gorm:"primaryKey"`
	Name string
}

func (clientRow) TableName() string { return "clients" }

type grantRow struct {
	ID           string `gorm:"primaryKey"`
	ConnectionID string
	Scope        string
	RedirectURI  string `gorm:"column:redirect_uri"`
	CreatedAt    store.Time
	ExpiresAt    store.Time
	RevokedAt    store.Time
}

func (grantRow) TableName() string { return "grants" }

// Connections lists the live connections of the caller's organization, the last used first: all of them for an
// admin, their own for anybody else.
func (a *Auth) Connections(ctx context.Context) ([]Connection, error) {
	var rows []connectionRow
	if err := a.visible(ctx).Find(&rows).Error; err != nil {
		return nil, fmt.Errorf("reading connections: %w", err)
	}
	grants, err := a.liveGrants(ctx, rows)
	if err != nil {
		return nil, err
	}
	rows = slices.DeleteFunc(rows, func(row connectionRow) bool { return len(grants[row.ID]) == 0 }) // nothing they could still do
	people, apps, err := a.names(ctx, rows)
	if err != nil {
		return nil, err
	}
	out := []Connection{}
	for _, row := range rows {
		out = append(out, row.public(grants[row.ID], people[row.PersonID], apps[row.ClientID]))
	}
	slices.SortStableFunc(out, func(x, y Connection) int {
		if d := y.lastSign().Compare(x.lastSign()); d != 0 {
			return d
		}
		return y.CreatedAt.Compare(x.CreatedAt)
	})
	return out, nil
}

func (c Connection) lastSign() time.Time {
	if c.UsedAt.IsZero() {
		return c.CreatedAt
	}
	return c.UsedAt
}

func (row connectionRow) public(grants []grantRow, person, app string) Connection {
	out := Connection{
		ID: row.ID, PersonID: row.PersonID, PersonName: person, ClientID: row.ClientID, ClientName: app, ClientHost: DocumentHost(row.ClientID), Scopes: scope.Set{},
		CreatedAt: row.CreatedAt.Time, UsedAt: row.UsedAt.Time,
	}
	for _, g := range grants {
		granted := Grant{g.ID, scope.Parse(g.Scope), g.CreatedAt.Time, g.ExpiresAt.Time}
		out.Grants = append(out.Grants, granted)
		out.Scopes = out.Scopes.Union(granted.Scopes)
		out.RedirectHost = RedirectHost(g.RedirectURI)
	}
	return out
}

// names is how the people and the apps of connections are called, by id.
func (a *Auth) names(ctx context.Context, rows []connectionRow) (people, apps map[string]string, err error) {
	var personIDs, clientIDs []string
	for _, row := range rows {
		personIDs, clientIDs = append(personIDs, row.PersonID), append(clientIDs, row.ClientID)
	}
	if people, err = a.Accounts.Names(ctx, personIDs); err != nil {
		return nil, nil, err
	}
	var clients []clientRow
	if err := a.Store.DB(ctx).Where("id IN ?", clientIDs).Find(&clients).Error; err != nil {
		return nil, nil, fmt.Errorf("reading clients: %w", err)
	}
	apps = map[string]string{}
	for _, c := range clients {
		apps[c.ID] = c.Name
	}
	return people, apps, nil
}

// RedirectHost is where a redirect URI leads, as people are shown it. A private scheme is claimed by whatever app
// is installed, so what stands where a host would be ("evil://claude.ai") says nothing.
func RedirectHost(uri string) string {
	u, err := url.Parse(uri)
	switch {
	case err != nil:
		return ""
	case u.Scheme == "https" || u.Scheme == "http":
		return u.Host
	}
	return u.Scheme + ":"
}

// DocumentHost is the host of a client whose id is the address of a document about it, "" for any other client. Unlike
// a name it is proved: the document is there, and says that it is about this address.
func DocumentHost(clientID string) string {
	u, err := url.Parse(clientID)
	if err != nil || u.Scheme != "https" {
		return ""
	}
	return u.Host
}

// liveGrants are the grants that can still be used, for each connection.
func (a *Auth) liveGrants(ctx context.Context, rows []connectionRow) (map[string][]grantRow, error) {
	ids := []string{}
	for _, row := range rows {
		ids = append(ids, row.ID)
	}
	var grants []grantRow
	err := a.Store.DB(ctx).Where("connection_id IN ? AND revoked_at IS NULL AND expires_at > ?", ids, store.Now()).Order("created_at, id").Find(&grants).Error
	if err != nil {
		return nil, fmt.Errorf("reading grants: %w", err)
	}
	out := map[string][]grantRow{}
	for _, g := range grants {
		out[g.ConnectionID] = append(out[g.ConnectionID], g)
	}
	return out, nil
}

// RevokeConnection ends a connection; its tokens and open codes are dead with their next use. An id of another
// organization, or of somebody else for a caller who is no admin, does not exist.
func (a *Auth) RevokeConnection(ctx context.Context, id string) error {
	return a.Store.Tx(ctx, func(ctx context.Context) error {
		var row connectionRow
		err := a.visible(ctx).Take(&row, "id = ?", id).Error
		if store.IsNotFound(err) {
			return fault.New(fault.NotFound, "There is no such connection. It may have been revoked already.")
		}
		if err != nil {
			return fmt.Errorf("reading a connection: %w", err)
		}
		people, apps, err := a.names(ctx, []connectionRow{row})
		if err != nil {
			return err
		}
		if _, err := RevokeRow(ctx, a.Store, id, ByPerson); err != nil {
			return err
		}
		return a.Audit.Append(ctx, audit.Record{Action: audit.Revoke, Outcome: audit.OK, Subject: id,
			Detail: map[string]any{"kind": "connection", "app": apps[row.ClientID], "person": people[row.PersonID]}})
	})
}

// RevokeRow marks a connection as revoked, whoever it belongs to, and reports whether it was live. The caller
// audits it.
func RevokeRow(ctx context.Context, s *store.Store, id, reason string) (bool, error) {
	n, err := s.Exec(ctx, `UPDATE connections SET revoked_at = ?, revoked_reason = ? WHERE id = ? AND revoked_at IS NULL`, store.Now(), reason, id)
	if err != nil {
		return false, fmt.Errorf("revoking a connection: %w", err)
	}
	return n == 1, nil
}
