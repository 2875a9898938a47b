// Package auth decides who calls. It turns the bearer token or API key of a request into a Caller, and it keeps
// what people can see and revoke: connections and keys.
//
//	person ─ role ─ organization
//	   └── connection (person × organization × client)      the row that is revoked
//	          └── grant (one sign-in: scopes, audience)      auth/oauth makes them
//	                 └── generation (one pair of tokens)     one for each refresh
//	   └── key (an API key of a person, with scopes)
//
// Nothing is cached: every request reads token, grant, connection and role afresh, so that what is revoked is dead
// with the next request, on every replica.
package auth

import (
	"context"
	"log/slog"

	"gorm.io/gorm"

	"switchboard/auth/accounts"
	"switchboard/internal/audit"
	"switchboard/internal/caller"
	"switchboard/internal/scope"
	"switchboard/internal/seal"
	"switchboard/internal/store"
)

// Prefixes tell people and secret scanners what a token is.
const (
	KeyPrefix     = "sb_live_"
	AccessPrefix  = "sb_at_"
	RefreshPrefix = "sb_rt_"
	CodePrefix    = "sb_ac_"
)

// Config is what Auth works with.
type Config struct {
	Store    *store.Store
	Secrets  *seal.Keyring
	Accounts *accounts.Accounts
	Audit    *audit.Log
	Scopes   *scope.Catalog
	Log      *slog.Logger
	Issuer   string // origin of the authorization server, without a slash at the end
	// Resources are what tokens are good for.
	Resources []Resource
}

// Auth authenticates requests and serves connections and keys.
type Auth struct{ Config }

// New returns Auth.
func New(cfg Config) *Auth { return &Auth{cfg} }

// visible are the rows, of connections or of keys, that the caller may see and revoke: what is live in their
// organization, all of it for an admin and their own for anybody else.
func (a *Auth) visible(ctx context.Context) *gorm.DB {
	c, _ := caller.From(ctx)
	q := a.Store.DB(ctx).Where("revoked_at IS NULL")
	if !c.Role.SeesAll() {
		q = q.Where("person_id = ?", c.Person)
	}
	return q
}

// Catalog is the scopes that exist.
func (a *Auth) Catalog() *scope.Catalog { return a.Scopes }
