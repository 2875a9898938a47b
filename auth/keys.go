package auth

import (
	"context"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"switchboard/auth/accounts"
	"switchboard/internal/audit"
	"switchboard/internal/caller"
	"switchboard/internal/fault"
	"switchboard/internal/scope"
	"switchboard/internal/seal"
	"switchboard/internal/store"
)

// Key is an API key. It is worth its scopes ∩ the present role of the person who made it.
type Key struct {
	ID, Name             string
	Hint                 string // the first characters, to tell keys apart
	PersonID, PersonName string
	Scopes               scope.Set
	CreatedAt            time.Time
	ExpiresAt, UsedAt    time.Time // zero when never
	Expired              bool
}

// NewKey asks for a key. Expires is from now on; 0 is never, and ten years the most.
type NewKey struct {
	Name    string
	Scopes  scope.Set
	Expires time.Duration
}

const maxKeyLifetime = 10 * 365 * 24 * time.Hour

type keyRow struct {
	ID        string `gorm:"primaryKey"`
	OrgID     store.OrgID
	PersonID  string
	Name      string
	KeyHash   string
	Hint      string
	Scope     string
	CreatedAt store.Time
	ExpiresAt store.Time
	UsedAt    store.Time
	RevokedAt store.Time
}

func (keyRow) TableName() string { return "api_keys" }

// Keys lists the keys of the caller's organization that are not revoked, the newest first: all of them for an
// admin, their own for anybody else.
func (a *Auth) Keys(ctx context.Context) ([]Key, error) {
	var rows []keyRow
	if err := a.visible(ctx).Order("created_at DESC, id DESC").Find(&rows).Error; err != nil {
		return nil, fmt.Errorf("reading keys: %w", err)
	}
	ids := []string{}
	for _, row := range rows {
		ids = append(ids, row.PersonID)
	}
	people, err := a.Accounts.Names(ctx, ids)
	if err != nil {
		return nil, err
	}
	out := []Key{}
	for _, row := range rows {
		out = append(out, row.public(people[row.PersonID]))
	}
	return out, nil
}

func (k keyRow) public(person string) Key {
	return Key{
		ID: k.ID, Name: k.Name, Hint: k.Hint, PersonID: k.PersonID, PersonName: person, Scopes: scope.Parse(k.Scope),
		CreatedAt: k.CreatedAt.Time, ExpiresAt: k.ExpiresAt.Time, UsedAt: k.UsedAt.Time,
		Expired: !k.ExpiresAt.IsZero() && !time.Now().Before(k.ExpiresAt.Time),
	}
}

// CreateKey makes a key for the caller and returns its secret, which is not kept. A scope that does not exist is
// refused rather than left out: a script should not find out at its first call. So is one that the caller's role lacks,
// which would come to life when the role changes and nobody thinks of the key; the operator at the command line may
// want just that, and is told.
func (a *Auth) CreateKey(ctx context.Context, n NewKey) (string, Key, error) {
	c, _ := caller.From(ctx)
	n.Name = strings.TrimSpace(n.Name)
	if err := a.checkKey(c, n); err != nil {
		return "", Key{}, err
	}
	secret, now := seal.NewToken(KeyPrefix), store.Now()
	row := keyRow{
		ID: store.NewID("key"), OrgID: store.OrgID(c.Org), PersonID: c.Person, Name: n.Name, KeyHash: a.Secrets.Hash(secret),
		Hint: secret[:len(KeyPrefix)+4], Scope: a.Scopes.Expand(n.Scopes).String(), CreatedAt: now,
	}
	if n.Expires > 0 {
		row.ExpiresAt = now.Add(n.Expires)
	}
	err := a.Store.Tx(ctx, func(ctx context.Context) error {
		if err := a.roomForKey(ctx, c); err != nil {
			return err
		}
		if err := a.Store.DB(ctx).Create(&row).Error; err != nil {
			return fmt.Errorf("creating a key: %w", err)
		}
		return a.Audit.Append(ctx, audit.Record{Action: audit.KeyCreate, Outcome: audit.OK, Subject: row.ID,
			Detail: map[string]any{"name": row.Name, "scopes": row.Scope}})
	})
	if err != nil {
		return "", Key{}, err
	}
	return secret, row.public(c.PersonName), nil
}

// mostKeys is how many keys a person may have at a time in an organization.
const mostKeys = 50

// roomForKey refuses a key beyond the last. Two made at once may both find room; the bound is there for the page that
// lists them, and need not be exact.
func (a *Auth) roomForKey(ctx context.Context, c caller.Caller) error {
	var n int64
	err := a.Store.DB(ctx).Model(&keyRow{}).Where("person_id = ? AND revoked_at IS NULL AND (expires_at IS NULL OR expires_at > ?)", c.Person, store.Now()).Count(&n).Error
	if err != nil {
		return fmt.Errorf("counting keys: %w", err)
	}
	if n >= mostKeys {
		return fault.New(fault.Forbidden, "A person can have %d keys. Revoke one that is not used any more.", mostKeys).With("field", "count")
	}
	return nil
}

func (a *Auth) checkKey(c caller.Caller, n NewKey) error {
	unknown := n.Scopes.Filter(func(s string) bool { return len(a.Scopes.Expand(scope.Of(s))) == 0 })
	lacking := a.Scopes.Expand(n.Scopes).Filter(func(s string) bool { return !c.Role.Allows(s) })
	switch {
	case n.Name == "" || utf8.RuneCountInString(n.Name) > 120 || n.Name != accounts.OneLine(n.Name):
		return fault.New(fault.InvalidRequest, "A key needs a name of at most 120 characters, on one line.").With("field", "name")
	case len(unknown) > 0:
		return fault.New(fault.InvalidRequest, "No tool needs the scope %s. The scopes are: %s.", unknown, a.Scopes.Known()).With("field", "scope")
	case len(n.Scopes) == 0:
		return fault.New(fault.InvalidRequest, "A key needs at least one scope. The scopes are: %s.", a.Scopes.Known()).With("field", "scope")
	case len(lacking) > 0 && c.Via != caller.System:
		return fault.New(fault.Forbidden, "The role %s does not have %s, and neither can a key. Leave it out, or ask an administrator for another role.", c.Role, lacking).With("field", "scope")
	case n.Expires < 0 || n.Expires > maxKeyLifetime:
		return fault.New(fault.InvalidRequest, "A key ends in the future, at most ten years from now.").With("field", "expires")
	}
	return nil
}

// RevokeKey ends a key. What holds for RevokeConnection about foreign ids holds here.
func (a *Auth) RevokeKey(ctx context.Context, id string) error {
	return a.Store.Tx(ctx, func(ctx context.Context) error {
		var row keyRow
		err := a.visible(ctx).Take(&row, "id = ?", id).Error
		if store.IsNotFound(err) {
			return fault.New(fault.NotFound, "There is no such key. It may have been revoked already.")
		}
		if err != nil {
			return fmt.Errorf("reading a key: %w", err)
		}
		if err := a.Store.DB(ctx).Model(&keyRow{}).Where("id = ?", id).Update("revoked_at", store.Now()).Error; err != nil {
			return fmt.Errorf("revoking a key: %w", err)
		}
		return a.Audit.Append(ctx, audit.Record{Action: audit.Revoke, Outcome: audit.OK, Subject: id,
			Detail: map[string]any{"kind": "key", "name": row.Name}})
	})
}
