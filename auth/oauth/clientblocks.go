package oauth

import (
	"context"
	"fmt"
	"slices"

	"gorm.io/gorm/clause"

	"switchboard/auth"
	"switchboard/internal/audit"
	"switchboard/internal/caller"
	"switchboard/internal/fault"
	"switchboard/internal/store"
)

// clientBlock is a client that an organization does not let in.
type clientBlock struct {
	OrgID     store.OrgID
	ClientID  string
	PersonID  string
	CreatedAt store.Time
}

func (clientBlock) TableName() string { return "client_blocks" }

// letsIn reports whether an organization lets a client in: only is the one that the client was made for, "" for any,
// and blockedIn are those that block it.
func letsIn(org, only string, blockedIn []string) bool {
	return org != "" && (only == "" || only == org) && !slices.Contains(blockedIn, org)
}

// BlockClient keeps a client out of the caller's organization and ends its connections there; their tokens are dead with
// their next use. Blocking again is fine.
func (s *Server) BlockClient(ctx context.Context, id string) error {
	return s.changeClient(ctx, id, func(ctx context.Context, c caller.Caller, row *clientRow) error {
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

// UnblockClient lets a client ask people of the caller's organization again. What was ended stays ended.
func (s *Server) UnblockClient(ctx context.Context, id string) error {
	return s.changeClient(ctx, id, func(ctx context.Context, _ caller.Caller, row *clientRow) error {
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

// changeClient has an administrator change something about a client that the organization has to do with. Its row is held
// meanwhile; to anybody else the client does not exist.
func (s *Server) changeClient(ctx context.Context, id string, change func(ctx context.Context, c caller.Caller, row *clientRow) error) error {
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
