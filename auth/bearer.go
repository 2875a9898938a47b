package auth

import (
	"context"
	"database/sql"
	"fmt"
	"net/http"
	"strings"
	"time"

	"switchboard/internal/caller"
	"switchboard/internal/scope"
	"switchboard/internal/store"
)

// Unauthorized is the answer to a request without valid credentials. Reason is for the client's developer and is
// empty when the request carried none (RFC 6750 §3.1 then wants no error code).
type Unauthorized struct{ Reason string }

func (u *Unauthorized) Error() string {
	if u.Reason == "" {
		return "no credentials"
	}
	return "invalid token: " + u.Reason
}

// usedGranularity is how exact "last used" is; a finer one would write on every call.
const usedGranularity = time.Minute

// maxToken bounds what is hashed and looked up. Ours are 50 characters.
const maxToken = 512

// Authenticate finds out who sent a request to a protected resource, by its Authorization header alone: RFC 6750
// §2.2 and §2.3 (token in the body or the query) are refused by RFC 9700. Any error but *Unauthorized means that
// nobody could tell, and must not cost a client its token.
func (a *Auth) Authenticate(r *http.Request, resource string) (caller.Caller, error) {
	token, err := bearer(r)
	if err != nil {
		return caller.Caller{}, err
	}
	if strings.HasPrefix(token, KeyPrefix) {
		return a.byKey(r.Context(), token)
	}
	return a.byAccessToken(r.Context(), token, resource)
}

// bearer reads the one Authorization header. Two of them are refused: a proxy may have looked at the other one.
func bearer(r *http.Request) (string, error) {
	headers := r.Header.Values("Authorization")
	if len(headers) == 0 {
		return "", &Unauthorized{}
	}
	if len(headers) > 1 {
		return "", &Unauthorized{"more than one Authorization header"}
	}
	scheme, token, _ := strings.Cut(headers[0], " ")
	token = strings.TrimSpace(token)
	switch {
	case !strings.EqualFold(scheme, "Bearer"): // RFC 9110 §11.1: the scheme is case-insensitive
		return "", &Unauthorized{"the Authorization header does not use the Bearer scheme"}
	case token == "":
		return "", &Unauthorized{"the bearer token is empty"}
	case len(token) > maxToken || strings.ContainsAny(token, " \t,"):
		return "", &Unauthorized{"the bearer token is malformed"}
	}
	return token, nil
}

// subject is what both kinds of credentials say about a person in an organization.
type subject struct {
	c         caller.Caller
	role      sql.NullString
	email     string
	scope     string // of the token
	granted   string // of the grant behind it
	usedAt    store.Time
	expiresAt store.Time
	revoked   bool
}

func (a *Auth) byAccessToken(ctx context.Context, token, resource string) (caller.Caller, error) {
	in, hashes := store.In(a.Secrets.Hashes(token))
	var s subject
	var audience string
	var grantRevoked, connectionRevoked store.Time
	err := a.Store.QueryRow(ctx, `
		SELECT g.scope, gr.scope, g.access_expires_at, gr.resource, gr.revoked_at, c.revoked_at, c.id, c.org_id, c.person_id, c.used_at,
		       cl.name, p.name, p.email, m.role
		FROM generations g
		JOIN grants gr ON gr.id = g.grant_id
		JOIN connections c ON c.id = gr.connection_id
		JOIN clients cl ON cl.id = c.client_id
		JOIN people p ON p.id = c.person_id
		LEFT JOIN memberships m ON m.org_id = c.org_id AND m.person_id = c.person_id
		WHERE g.access_hash IN `+in, hashes,
		&s.scope, &s.granted, &s.expiresAt, &audience, &grantRevoked, &connectionRevoked, &s.c.ID, &s.c.Org, &s.c.Person, &s.usedAt,
		&s.c.Name, &s.c.PersonName, &s.email, &s.role)
	if err != nil {
		return caller.Caller{}, lookupFailed(err)
	}
	s.c.Via = caller.Connection
	s.revoked = !grantRevoked.IsZero() || !connectionRevoked.IsZero()
	c, err := s.judge()
	if err != nil {
		return caller.Caller{}, err
	}
	if !a.resource(resource).accepts(audience) {
		// RFC 8707 §2 and the MCP specification: a token for another resource is no token here.
		return caller.Caller{}, &Unauthorized{"the token was issued for another resource"}
	}
	a.touch(ctx, "connections", c.ID, s.usedAt)
	return c, nil
}

func (a *Auth) byKey(ctx context.Context, token string) (caller.Caller, error) {
	in, hashes := store.In(a.Secrets.Hashes(token))
	var s subject
	var revoked store.Time
	err := a.Store.QueryRow(ctx, `
		SELECT k.scope, k.expires_at, k.revoked_at, k.id, k.org_id, k.person_id, k.used_at, k.name, p.name, p.email, m.role
		FROM api_keys k
		JOIN people p ON p.id = k.person_id
		LEFT JOIN memberships m ON m.org_id = k.org_id AND m.person_id = k.person_id
		WHERE k.key_hash IN `+in, hashes,
		&s.scope, &s.expiresAt, &revoked, &s.c.ID, &s.c.Org, &s.c.Person, &s.usedAt, &s.c.Name, &s.c.PersonName, &s.email, &s.role)
	if err != nil {
		return caller.Caller{}, lookupFailed(err)
	}
	s.granted = s.scope
	s.c.Via = caller.Key
	s.revoked = !revoked.IsZero()
	c, err := s.judge()
	if err != nil {
		return caller.Caller{}, err
	}
	a.touch(ctx, "api_keys", c.ID, s.usedAt)
	return c, nil
}

// judge refuses what is revoked, expired, or of somebody who left the organization.
func (s *subject) judge() (caller.Caller, error) {
	switch {
	case s.revoked:
		return caller.Caller{}, &Unauthorized{"it has been revoked"}
	case !s.expiresAt.IsZero() && !time.Now().Before(s.expiresAt.Time):
		return caller.Caller{}, &Unauthorized{"it has expired"}
	case !s.role.Valid:
		return caller.Caller{}, &Unauthorized{"its person is no longer a member of the organization"}
	}
	if s.c.PersonName == "" {
		s.c.PersonName = s.email
	}
	s.c.Role, s.c.Scopes, s.c.Granted = scope.Role(s.role.String), scope.Parse(s.scope), scope.Parse(s.granted)
	return s.c, nil
}

// touchTime is how long a call waits for its last use to be written. SQLite has one writer, and a call that only
// reads must not queue behind a long change.
const touchTime = 250 * time.Millisecond

// touch keeps "last used" up to date. It is a comfort: when it cannot be written the call goes on.
func (a *Auth) touch(ctx context.Context, table, id string, used store.Time) {
	now := store.Now()
	if now.Sub(used.Time) < usedGranularity {
		return
	}
	within, cancel := context.WithTimeout(ctx, touchTime)
	defer cancel()
	_, err := a.Store.Exec(within, `UPDATE `+table+` SET used_at = ? WHERE id = ? AND (used_at IS NULL OR used_at < ?)`, now, id, now.Add(-usedGranularity))
	if err != nil && ctx.Err() == nil {
		a.Log.DebugContext(ctx, "last use not recorded", "request", caller.Request(ctx), "err", err)
	}
}

func lookupFailed(err error) error {
	if store.IsNotFound(err) {
		return &Unauthorized{"it is not known here"}
	}
	return fmt.Errorf("looking a token up: %w", err)
}
