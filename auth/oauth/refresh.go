package oauth

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"time"

	"github.com/ory/fosite"

	"switchboard/auth"
	"switchboard/internal/audit"
	"switchboard/internal/caller"
	"switchboard/internal/scope"
	"switchboard/internal/store"
)

// refreshGrant rotates refresh tokens (RFC 6749 §6, RFC 9700 §4.14). It takes the place of fosite's handler, which
// signs a person out whenever a client refreshes twice at once.
//
// A refresh token has exactly one successor. Whoever presents it again within the grace, as parallel tabs and retries
// do, gets that same successor, as long as the successor itself is unused. Any other reuse means that two parties
// hold the chain, and revokes the connection. Inside the grace too once the successor was used: if a thief rotates
// twice at once, the victim's repeat is the only alarm there will be.
type refreshGrant struct{ grantHandler }

var _ fosite.TokenEndpointHandler = (*refreshGrant)(nil)

// parent is a refresh token that was presented, with its successor if it has one.
type parent struct {
	hash, grantID               string
	refreshExpires, usedAt      store.Time
	nextHash, salt, keyID       sql.NullString
	nextScope                   sql.NullString
	nextUsed, nextAccessExpires store.Time
	g                           grantState
}

func (s *Server) findParent(ctx context.Context, token string) (p parent, err error) {
	in, hashes := store.In(s.Secrets.Hashes(token))
	err = s.Store.QueryRow(ctx, `SELECT g.refresh_hash, g.grant_id, g.refresh_expires_at, g.used_at, g.next_hash, g.next_salt, g.next_key,
			n.scope, n.used_at, n.access_expires_at, `+grantColumns+`
		FROM generations g `+grantJoins("g")+`
		LEFT JOIN generations n ON n.refresh_hash = g.next_hash
		WHERE g.refresh_hash IN `+in, hashes,
		append([]any{&p.hash, &p.grantID, &p.refreshExpires, &p.usedAt, &p.nextHash, &p.salt, &p.keyID, &p.nextScope, &p.nextUsed, &p.nextAccessExpires}, p.g.columns()...)...)
	if err != nil && !store.IsNotFound(err) {
		err = fmt.Errorf("reading a refresh token: %w", err)
	}
	return p, err
}

// strangeToken is the one answer about a refresh token that nobody issued and about another client's, see strangeCode.
var strangeToken = fosite.ErrInvalidGrant.WithHint("The refresh token is not known here, or it was issued to another client. Sign in again.")

// HandleTokenEndpointRequest implements fosite.TokenEndpointHandler. Everything that can be refused is refused before
// the token is touched: a failed refresh never uses it up.
func (g *refreshGrant) HandleTokenEndpointRequest(ctx context.Context, r fosite.AccessRequester) error {
	if !g.CanHandleTokenEndpointRequest(ctx, r) {
		return fosite.ErrUnknownRequest
	}
	form := r.GetRequestForm()
	token := form.Get("refresh_token")
	if token == "" {
		return fosite.ErrInvalidRequest.WithHint("The parameter refresh_token is missing.")
	}
	for {
		p, err := g.s.findParent(ctx, token)
		if store.IsNotFound(err) {
			return strangeToken
		}
		if err != nil {
			return err
		}
		switch {
		case p.g.clientID != r.GetClient().GetID():
			return strangeToken
		case !r.GetClient().(*client).mayUse(&p.g):
			return unproven()
		case p.g.dead():
			return fosite.ErrInvalidGrant.WithHint("The connection has been revoked or has ended. Sign in again.")
		case p.usedAt.IsZero() && !time.Now().Before(p.refreshExpires.Time):
			return fosite.ErrInvalidGrant.WithHint("The refresh token has expired. Sign in again.")
		}
		if err := g.s.sameResource(form["resource"], p.g.resource); err != nil {
			return err
		}
		scopes, err := g.narrow(form.Get("scope"), p.g.scope)
		if err != nil {
			return err
		}
		out, err := g.rotate(ctx, token, p, scopes)
		if err != nil {
			return err
		}
		if out != nil {
			g.s.used(ctx, r.GetClient().(*client))
			r.GetSession().(*session).issued = out
			return nil
		}
		// Another request rotated the token between our look and our write: look again, and find its successor.
	}
}

// narrow is the scope of the next access token: what was asked, within what was granted (RFC 6749 §6). The refresh
// token keeps the whole grant.
func (g *refreshGrant) narrow(asked, granted string) (scope.Set, error) {
	all := scope.Parse(granted)
	want := scope.Parse(asked).Minus(openID)
	if len(want) == 0 {
		return all, nil
	}
	want = g.s.Scopes.Expand(want).Union(want.Filter(func(s string) bool { return len(g.s.Scopes.Expand(scope.Of(s))) == 0 }))
	if !all.Contains(want) {
		return nil, fosite.ErrInvalidScope.WithHint("A refresh cannot add permissions. Send the person to sign in with the scopes that are missing.")
	}
	return want, nil
}

// rotate answers with the successor of p, and with nil when another request made one at the same moment.
func (g *refreshGrant) rotate(ctx context.Context, token string, p parent, scopes scope.Set) (*issued, error) {
	now := store.Now()
	if p.usedAt.IsZero() {
		salt, keyID := newSalt(), g.s.Secrets.Current()
		next, _ := g.s.successor(keyID, salt, token)
		row := g.s.generation(next, p.grantID, scopes.String(), p.g, now)
		won, err := g.s.replace(ctx, p.hash, row, salt, keyID)
		if err != nil || !won {
			return nil, err
		}
		return &issued{next.access, next.refresh, scopes, row.accessExpires.Time}, nil
	}
	if now.Sub(p.usedAt.Time) < g.s.Grace && p.nextUsed.IsZero() && p.salt.String != "" {
		next, ok := g.s.successor(p.keyID.String, p.salt.String, token)
		if !ok || !slices.Contains(g.s.Secrets.Hashes(next.refresh), p.nextHash.String) {
			// This server lacks the key that another one rotated with: no proof of theft, and no answer either.
			return nil, fosite.ErrInvalidGrant.WithHint("The refresh token was used on another server. Try again there, or sign in.")
		}
		return &issued{next.access, next.refresh, scope.Parse(p.nextScope.String), p.nextAccessExpires.Time}, nil
	}
	return nil, g.reused(ctx, p)
}

// reused revokes the connection of a refresh token that came back.
func (g *refreshGrant) reused(ctx context.Context, p parent) error {
	err := g.s.Store.Tx(ctx, func(ctx context.Context) error {
		live, err := auth.RevokeRow(ctx, g.s.Store, p.g.connectionID, auth.ByReuse)
		if err != nil || !live {
			return err
		}
		return g.s.Audit.Append(caller.With(ctx, p.g.caller()), audit.Record{Action: audit.RefreshReuse, Outcome: audit.Refused, Subject: p.g.connectionID})
	})
	if err != nil {
		return fmt.Errorf("revoking a connection: %w", err)
	}
	return fosite.ErrInvalidGrant.WithHint("The refresh token was used before, so the connection has been revoked. Sign in again.")
}

// replace uses a refresh token up and keeps its successor, both or neither, and reports whether this request was the
// one that did. On Postgres it is one statement and so one round trip; SQLite has no writing CTE.
func (s *Server) replace(ctx context.Context, hash string, next generation, salt, keyID string) (bool, error) {
	const use = `UPDATE generations SET used_at = ?, next_hash = ?, next_salt = ?, next_key = ? WHERE refresh_hash = ? AND used_at IS NULL`
	args := []any{next.issuedAt, next.refreshHash, salt, keyID, hash}
	if s.Store.Dialect == store.Postgres {
		n, err := s.Store.Exec(ctx, `WITH used AS (`+use+` RETURNING grant_id)
			INSERT INTO generations (refresh_hash, access_hash, grant_id, scope, issued_at, access_expires_at, refresh_expires_at)
			SELECT ?::text, ?::text, grant_id, ?::text, ?::bigint, ?::bigint, ?::bigint FROM used`,
			append(args, next.refreshHash, next.accessHash, next.scope, next.issuedAt, next.accessExpires, next.refreshExpires)...)
		if err != nil {
			return false, fmt.Errorf("rotating a refresh token: %w", err)
		}
		return n == 1, nil
	}
	won := false
	err := s.Store.Tx(ctx, func(ctx context.Context) error {
		n, err := s.Store.Exec(ctx, use, args...)
		if won = n == 1; err != nil || !won {
			return err
		}
		return s.insertGeneration(ctx, next)
	})
	if err != nil {
		return false, fmt.Errorf("rotating a refresh token: %w", err)
	}
	return won, nil
}
