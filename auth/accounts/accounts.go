// Package accounts knows people, the organizations they belong to, and in which browsers they are signed in.
//
// A person signs in with an address and a password and may be a member of several organizations, with a role in
// each. Roles are read again on every request, so that a change works at once.
package accounts

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"switchboard/internal/audit"
	"switchboard/internal/caller"
	"switchboard/internal/scope"
	"switchboard/internal/seal"
	"switchboard/internal/store"
)

// Config is what Accounts works with.
type Config struct {
	Store   *store.Store
	Secrets *seal.Keyring
	Audit   *audit.Log
	Log     *slog.Logger
	// Hashing is the cost of a password hash; the zero value is Argon2id as OWASP advises.
	Hashing Hashing
	// RefusalTime is how long a refused sign-in takes at least; 0 means 250 ms.
	RefusalTime time.Duration
}

const refusalTime = 250 * time.Millisecond

// Accounts serves people, organizations and browser sessions.
type Accounts struct {
	Config
	passwords *passwords
	throttle  *throttle
}

// New returns Accounts.
func New(cfg Config) *Accounts {
	if cfg.RefusalTime == 0 {
		cfg.RefusalTime = refusalTime
	}
	return &Accounts{Config: cfg, passwords: newPasswords(cfg.Hashing), throttle: newThrottle()}
}

// Person is somebody who can sign in.
type Person struct{ ID, Email, Name string }

// Organization owns everything that people and apps work with.
type Organization struct {
	ID, Name    string
	HomeCountry string // ISO 3166-1 alpha-2
	Timezone    string // IANA
	Locale      string // "en" or "ar"
	CreatedAt   time.Time
}

// Membership is what a person is in one organization.
type Membership struct {
	Organization Organization
	Role         scope.Role
}

// ErrNoMember is the answer about an organization that the person does not belong to, or that does not exist.
var ErrNoMember = errors.New("not a member of this organization")

type person struct {
	ID           string `gorm:"primaryKey"`
	Email        string
	Name         string
	PasswordHash string
	CreatedAt    store.Time
}

func (person) TableName() string { return "people" }

func (p person) public() Person { return Person{p.ID, p.Email, p.Name} }

type organization struct {
	ID          string `gorm:"primaryKey"`
	Name        string
	HomeCountry string
	Timezone    string
	Locale      string
	CreatedAt   store.Time
}

func (organization) TableName() string { return "organizations" }

func (o organization) public() Organization {
	return Organization{o.ID, o.Name, o.HomeCountry, o.Timezone, o.Locale, o.CreatedAt.Time}
}

type membership struct {
	OrgID     string `gorm:"primaryKey"`
	PersonID  string `gorm:"primaryKey"`
	Role      scope.Role
	CreatedAt store.Time
}

func (membership) TableName() string { return "memberships" }

// Person reads one person.
func (a *Accounts) Person(ctx context.Context, id string) (Person, error) {
	var p person
	if err := a.Store.DB(ctx).Take(&p, "id = ?", id).Error; err != nil {
		return Person{}, fmt.Errorf("reading a person: %w", err)
	}
	return p.public(), nil
}

// Names is how people are called, by id; who is not there is left out.
func (a *Accounts) Names(ctx context.Context, ids []string) (map[string]string, error) {
	var people []person
	if err := a.Store.DB(ctx).Where("id IN ?", ids).Find(&people).Error; err != nil {
		return nil, fmt.Errorf("reading people: %w", err)
	}
	out := map[string]string{}
	for _, p := range people {
		out[p.ID] = p.public().Display()
	}
	return out, nil
}

// Organization reads one organization.
func (a *Accounts) Organization(ctx context.Context, id string) (Organization, error) {
	var o organization
	if err := a.Store.DB(ctx).Take(&o, "id = ?", id).Error; err != nil {
		return Organization{}, fmt.Errorf("reading an organization: %w", err)
	}
	return o.public(), nil
}

// SetTimezone changes an organization's time zone. The caller has checked that it exists.
func (a *Accounts) SetTimezone(ctx context.Context, id, timezone string) error {
	return a.Store.Tx(ctx, func(ctx context.Context) error {
		err := a.Store.DB(ctx).Model(&organization{}).Where("id = ?", id).Update("timezone", timezone).Error
		if err != nil {
			return fmt.Errorf("changing a time zone: %w", err)
		}
		return nil
	})
}

// Memberships lists the organizations of a person by name.
func (a *Accounts) Memberships(ctx context.Context, personID string) ([]Membership, error) {
	var roles []membership
	if err := a.Store.DB(ctx).Where("person_id = ?", personID).Find(&roles).Error; err != nil {
		return nil, fmt.Errorf("reading memberships: %w", err)
	}
	roleIn := map[string]scope.Role{}
	ids := []string{}
	for _, m := range roles {
		roleIn[m.OrgID] = m.Role
		ids = append(ids, m.OrgID)
	}
	var orgs []organization
	if err := a.Store.DB(ctx).Where("id IN ?", ids).Order("name, id").Find(&orgs).Error; err != nil {
		return nil, fmt.Errorf("reading organizations: %w", err)
	}
	out := []Membership{}
	for _, o := range orgs {
		out = append(out, Membership{o.public(), roleIn[o.ID]})
	}
	return out, nil
}

// Member is a person in an organization as a caller that has no means and no scopes yet. It answers ErrNoMember
// where the person does not belong.
func (a *Accounts) Member(ctx context.Context, p Person, orgID string) (caller.Caller, error) {
	var m membership
	err := a.Store.DB(ctx).Take(&m, "org_id = ? AND person_id = ?", orgID, p.ID).Error
	if store.IsNotFound(err) {
		return caller.Caller{}, ErrNoMember
	}
	if err != nil {
		return caller.Caller{}, fmt.Errorf("reading a membership: %w", err)
	}
	return caller.Caller{Org: orgID, Person: p.ID, PersonName: p.Display(), Role: m.Role}, nil
}

// Display is how the audit log and the connection list call a person.
func (p Person) Display() string {
	if p.Name != "" {
		return p.Name
	}
	return p.Email
}

// RoleOf is a person's present role in an organization.
func (a *Accounts) RoleOf(ctx context.Context, personID, orgID string) (scope.Role, error) {
	c, err := a.Member(ctx, Person{ID: personID}, orgID)
	return c.Role, err
}
