package consentui

import (
	"context"
	"net/http"
	"time"

	"switchboard/auth"
	"switchboard/auth/accounts"
	"switchboard/auth/oauth"
	"switchboard/internal/audit"
	"switchboard/internal/scope"
)

// Accounts is what the pages need of auth/accounts.
type Accounts interface {
	SignIn(ctx context.Context, email, password, ip string) (accounts.Person, error)
	Memberships(ctx context.Context, personID string) ([]accounts.Membership, error)

	StartSession(ctx context.Context, personID string) (string, accounts.Session, error)
	Session(ctx context.Context, token string) (accounts.Session, error)
	UseOrganization(ctx context.Context, sessionID, orgID string) error
	EndSession(ctx context.Context, sessionID string) error

	HasOwner(ctx context.Context) (bool, error)
	SetupOpen(ctx context.Context, link string) error
	CompleteSetup(ctx context.Context, link string, in accounts.Setup) (accounts.Person, error)
}

// Auth is what the pages need of auth: what acts in the caller's organization, and the permissions there are.
type Auth interface {
	Connections(ctx context.Context) ([]auth.Connection, error)
	RevokeConnection(ctx context.Context, id string) error
	Keys(ctx context.Context) ([]auth.Key, error)
	CreateKey(ctx context.Context, in auth.NewKey) (string, auth.Key, error)
	RevokeKey(ctx context.Context, id string) error
	Catalog() *scope.Catalog
}

// OAuth is what the pages need of the authorization server: the request that waits for a person and the way to answer
// it, and the apps that an administrator keeps.
type OAuth interface {
	Begin(r *http.Request, browser string) (requestID string, err error)
	Wait(ctx context.Context, browser string, back *oauth.RedirectError) (requestID string, err error)
	Pending(ctx context.Context, requestID, browser string) (oauth.Pending, error)
	Held(ctx context.Context, p oauth.Pending, personID, orgID string) (scope.Set, time.Time, error)
	Decide(ctx context.Context, requestID, browser string, d oauth.Decision) (location string, err error)

	Clients(ctx context.Context) ([]oauth.Client, error)
	MakeClient(ctx context.Context, n oauth.NewClient) (secret string, app oauth.Client, err error)
	RotateSecret(ctx context.Context, id, mark string, leaked bool) (secret string, app oauth.Client, err error)
	BlockClient(ctx context.Context, id string) error
	UnblockClient(ctx context.Context, id string) error
}

// Audit is what the log's page needs of internal/audit.
type Audit interface {
	List(ctx context.Context, f audit.Filter) ([]audit.Entry, string, error)
	Count(ctx context.Context, f audit.Filter) (int64, error)
	Actors(ctx context.Context) ([]audit.Actor, error)
	Actions(ctx context.Context) ([]string, error)
}
