package accounts

import (
	"context"
	"errors"
	"fmt"
	"time"

	"switchboard/internal/seal"
	"switchboard/internal/store"
)

// SessionLifetime is how long a browser stays signed in.
const SessionLifetime = 14 * 24 * time.Hour

// ErrNoSession is the answer to a session token that is unknown, ended or expired.
var ErrNoSession = errors.New("no such session")

// Session is a signed-in browser.
type Session struct {
	ID                   string
	Person               Person
	OrgID                string // the organization that the person looked at last
	CreatedAt, ExpiresAt time.Time
}

type browserSession struct {
	ID        string `gorm:"primaryKey"`
	TokenHash string
	PersonID  string
	OrgID     string
	CreatedAt store.Time
	ExpiresAt store.Time
}

func (browserSession) TableName() string { return "browser_sessions" }

// StartSession signs a person in and returns the token for the browser's cookie, which is not kept.
func (a *Accounts) StartSession(ctx context.Context, personID string) (string, Session, error) {
	p, err := a.Person(ctx, personID)
	if err != nil {
		return "", Session{}, err
	}
	memberships, err := a.Memberships(ctx, personID)
	if err != nil {
		return "", Session{}, err
	}
	token, now := seal.NewToken("sb_bs_"), store.Now()
	row := browserSession{ID: store.NewID("ses"), TokenHash: a.Secrets.Hash(token), PersonID: personID, CreatedAt: now, ExpiresAt: now.Add(SessionLifetime)}
	if len(memberships) > 0 {
		row.OrgID = memberships[0].Organization.ID
	}
	err = a.Store.Tx(ctx, func(ctx context.Context) error { return a.Store.DB(ctx).Create(&row).Error })
	if err != nil {
		return "", Session{}, fmt.Errorf("starting a session: %w", err)
	}
	return token, row.public(p), nil
}

// Session finds the session of a cookie's token.
func (a *Accounts) Session(ctx context.Context, token string) (Session, error) {
	var row browserSession
	err := a.Store.DB(ctx).Take(&row, "token_hash IN ? AND expires_at > ?", a.Secrets.Hashes(token), store.Now()).Error
	if store.IsNotFound(err) {
		return Session{}, ErrNoSession
	}
	if err != nil {
		return Session{}, fmt.Errorf("reading a session: %w", err)
	}
	p, err := a.Person(ctx, row.PersonID)
	if err != nil {
		return Session{}, err
	}
	return row.public(p), nil
}

// UseOrganization makes an organization of the person the one that the session looks at.
func (a *Accounts) UseOrganization(ctx context.Context, sessionID, orgID string) error {
	return a.Store.Tx(ctx, func(ctx context.Context) error {
		var row browserSession
		err := a.Store.DB(ctx).Take(&row, "id = ?", sessionID).Error
		if store.IsNotFound(err) {
			return ErrNoSession
		}
		if err != nil {
			return fmt.Errorf("reading a session: %w", err)
		}
		if _, err := a.RoleOf(ctx, row.PersonID, orgID); err != nil {
			return err
		}
		return a.Store.DB(ctx).Model(&row).Update("org_id", orgID).Error
	})
}

// EndSession signs a browser out. A session that is gone already is no error.
func (a *Accounts) EndSession(ctx context.Context, sessionID string) error {
	return a.Store.Tx(ctx, func(ctx context.Context) error {
		return a.Store.DB(ctx).Delete(&browserSession{}, "id = ?", sessionID).Error
	})
}

// Sweep removes sessions and set-up links that ended before now.
func (a *Accounts) Sweep(ctx context.Context) error {
	return a.Store.Tx(ctx, func(ctx context.Context) error {
		return errors.Join(
			a.Store.DB(ctx).Delete(&browserSession{}, "expires_at < ?", store.Now()).Error,
			a.Store.DB(ctx).Delete(&setupLink{}, "expires_at < ?", store.Now()).Error,
		)
	})
}

func (s browserSession) public(p Person) Session {
	return Session{s.ID, p, s.OrgID, s.CreatedAt.Time, s.ExpiresAt.Time}
}
