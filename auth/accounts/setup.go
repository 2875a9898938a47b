package accounts

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"switchboard/internal/audit"
	"switchboard/internal/caller"
	"switchboard/internal/scope"
	"switchboard/internal/seal"
	"switchboard/internal/store"
)

// SetupLifetime is how long a set-up link may be used.
const SetupLifetime = time.Hour

// ErrNoSetup is the answer to a set-up link that is unknown, used or expired, and to any once there is an owner.
var ErrNoSetup = errors.New("this set-up link does not work any more")

type setupLink struct {
	LinkHash   string `gorm:"primaryKey"`
	CreatedAt  store.Time
	ExpiresAt  store.Time
	ConsumedAt store.Time
}

func (setupLink) TableName() string { return "setup_links" }

// Setup is what the first owner fills in.
type Setup struct {
	Organization, Country, Timezone, Locale string
	Name, Email, Password                   string
}

// HasOwner reports whether anybody owns an organization here.
func (a *Accounts) HasOwner(ctx context.Context) (bool, error) {
	var n int64
	if err := a.Store.DB(ctx).Model(&membership{}).Where("role = ?", scope.Owner).Count(&n).Error; err != nil {
		return false, fmt.Errorf("looking for an owner: %w", err)
	}
	return n > 0, nil
}

// noOwner answers ErrNoSetup once there is an owner. Trouble in finding out is not that: it would tell the operator
// of an empty server to sign in.
func (a *Accounts) noOwner(ctx context.Context) error {
	owned, err := a.HasOwner(ctx)
	if err == nil && owned {
		err = ErrNoSetup
	}
	return err
}

// NewSetupLink makes the secret of a set-up link; only its hash is kept. It answers ErrNoSetup once there is an
// owner.
func (a *Accounts) NewSetupLink(ctx context.Context) (string, error) {
	if err := a.noOwner(ctx); err != nil {
		return "", err
	}
	link, now := seal.NewToken("sb_setup_"), store.Now()
	row := setupLink{LinkHash: a.Secrets.Hash(link), CreatedAt: now, ExpiresAt: now.Add(SetupLifetime)}
	err := a.Store.Tx(ctx, func(ctx context.Context) error { return a.Store.DB(ctx).Create(&row).Error })
	if err != nil {
		return "", fmt.Errorf("making a set-up link: %w", err)
	}
	return link, nil
}

// SetupOpen reports with nil that a set-up link can be used.
func (a *Accounts) SetupOpen(ctx context.Context, link string) error {
	if err := a.noOwner(ctx); err != nil {
		return err
	}
	var n int64
	err := a.Store.DB(ctx).Model(&setupLink{}).
		Where("link_hash IN ? AND consumed_at IS NULL AND expires_at > ?", a.Secrets.Hashes(link), store.Now()).Count(&n).Error
	if err != nil {
		return fmt.Errorf("reading a set-up link: %w", err)
	}
	if n == 0 {
		return ErrNoSetup
	}
	return nil
}

// CompleteSetup makes the organization and its owner and uses the link up. Bad input is an *Invalid and leaves
// the link as it was.
func (a *Accounts) CompleteSetup(ctx context.Context, link string, in Setup) (Person, error) {
	in.Email, in.Organization, in.Name = normalizeEmail(in.Email), OneLine(in.Organization), OneLine(in.Name)
	if err := in.check(); err != nil {
		return Person{}, err
	}
	if err := a.SetupOpen(ctx, link); err != nil {
		return Person{}, err
	}
	hash, err := a.passwords.hash(ctx, in.Password)
	if err != nil {
		return Person{}, err
	}
	var p Person
	err = a.Store.Tx(ctx, func(ctx context.Context) error {
		if err := a.consume(ctx, link); err != nil {
			return err
		}
		o, person, err := a.takeOver(ctx, in, hash)
		if err != nil {
			return err
		}
		p = person
		if _, err := a.setRole(ctx, p.ID, o.ID, scope.Owner); err != nil {
			return err
		}
		owner := caller.Caller{Org: o.ID, Person: p.ID, PersonName: p.Display(), Role: scope.Owner}
		return a.Audit.Append(caller.With(ctx, owner.InBrowser("")), audit.Record{Action: audit.UserCreate, Outcome: audit.OK, Subject: p.ID, Detail: map[string]any{"role": string(scope.Owner)}})
	})
	return p, err
}

// takeOver makes the organization and the person, or what the form says of those that the command line made without
// an owner: whoever holds the link owns the server, and what they filled in counts. Sessions under an old password end.
func (a *Accounts) takeOver(ctx context.Context, in Setup, hash string) (o Organization, p Person, err error) {
	n := NewUser{Email: in.Email, Name: in.Name, Organization: in.Organization, Country: in.Country, Timezone: in.Timezone, Locale: in.Locale}
	o, freshOrg, err := a.findOrCreateOrganization(ctx, n)
	if err != nil {
		return o, p, err
	}
	p, freshPerson, err := a.findOrCreatePerson(ctx, n, hash)
	if err != nil {
		return o, p, err
	}
	db := a.Store.DB(ctx)
	if !freshOrg {
		err = db.Model(&organization{}).Where("id = ?", o.ID).Updates(map[string]any{"home_country": in.Country, "timezone": in.Timezone, "locale": in.Locale}).Error
	}
	if err == nil && !freshPerson {
		err = errors.Join(db.Model(&person{}).Where("id = ?", p.ID).Update("name", in.Name).Error, a.setPassword(ctx, p.ID, hash))
		p.Name = in.Name
	}
	if err != nil {
		return o, p, fmt.Errorf("taking over what was there: %w", err)
	}
	return o, p, nil
}

// consume uses every open link up. People who post several links at once queue for the rows in one order, and all
// but the first find none left.
func (a *Accounts) consume(ctx context.Context, link string) error {
	now := store.Now()
	var open []setupLink
	if err := a.Store.Locked(ctx).Where("consumed_at IS NULL AND expires_at > ?", now).Order("link_hash").Find(&open).Error; err != nil {
		return fmt.Errorf("reading set-up links: %w", err)
	}
	hashes := a.Secrets.Hashes(link)
	if !slices.ContainsFunc(open, func(l setupLink) bool { return slices.Contains(hashes, l.LinkHash) }) {
		return ErrNoSetup
	}
	if err := a.Store.DB(ctx).Model(&setupLink{}).Where("consumed_at IS NULL").Update("consumed_at", now).Error; err != nil {
		return fmt.Errorf("using up set-up links: %w", err)
	}
	return a.noOwner(ctx)
}

func (in Setup) check() error {
	if err := firstInvalid(
		checkText("org", in.Organization, 120), checkCountry(in.Country), checkTimezone(in.Timezone), checkLocale(in.Locale),
		checkText("name", in.Name, 120), checkEmail(in.Email),
	); err != nil {
		return err
	}
	return checkPassword(in.Password, in.Email)
}
