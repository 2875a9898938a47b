package oauth

import (
	"context"
	"fmt"
	"time"

	"github.com/ory/fosite"

	"switchboard/internal/caller"
	"switchboard/internal/scope"
	"switchboard/internal/store"
)

// grantHandler is what the handlers of both grant types share with fosite: which requests are theirs, and how the
// tokens that they issued are written.
type grantHandler struct {
	s         *Server
	grantType string
}

// CanSkipClientAuth implements fosite.TokenEndpointHandler.
func (grantHandler) CanSkipClientAuth(context.Context, fosite.AccessRequester) bool { return false }

// CanHandleTokenEndpointRequest implements fosite.TokenEndpointHandler.
func (h grantHandler) CanHandleTokenEndpointRequest(_ context.Context, r fosite.AccessRequester) bool {
	return r.GetGrantTypes().ExactOne(h.grantType)
}

// PopulateTokenEndpointResponse implements fosite.TokenEndpointHandler.
func (h grantHandler) PopulateTokenEndpointResponse(ctx context.Context, r fosite.AccessRequester, resp fosite.AccessResponder) error {
	if !h.CanHandleTokenEndpointRequest(ctx, r) {
		return fosite.ErrUnknownRequest
	}
	r.GetSession().(*session).issued.write(resp)
	return nil
}

// grantState is what codes and refresh tokens have to know of the grant and connection above them.
type grantState struct {
	scope, resource, authMethod               string
	grantExpires, grantRevoked, connRevoked   store.Time
	connectionID, orgID, personID, personName string
	clientID, clientName                      string
	role                                      scope.Role // "" for somebody who is no member any more
}

// grantColumns and columns go together.
const grantColumns = `gr.scope, gr.resource, gr.auth_method, gr.expires_at, gr.revoked_at, c.revoked_at, c.id, c.org_id, c.person_id,
	CASE p.name WHEN '' THEN p.email ELSE p.name END, c.client_id, cl.name, coalesce(m.role, '')`

func (g *grantState) columns() []any {
	return []any{&g.scope, &g.resource, &g.authMethod, &g.grantExpires, &g.grantRevoked, &g.connRevoked, &g.connectionID, &g.orgID, &g.personID,
		&g.personName, &g.clientID, &g.clientName, &g.role}
}

// grantJoins joins the grant of a row of table, and what is above it.
func grantJoins(table string) string {
	return `JOIN grants gr ON gr.id = ` + table + `.grant_id
		JOIN connections c ON c.id = gr.connection_id
		JOIN clients cl ON cl.id = c.client_id
		JOIN people p ON p.id = c.person_id
		LEFT JOIN memberships m ON m.org_id = c.org_id AND m.person_id = c.person_id`
}

// dead reports whether nothing may be issued under the grant any more.
func (g *grantState) dead() bool {
	return !g.grantRevoked.IsZero() || !g.connRevoked.IsZero() || g.role == "" || !time.Now().Before(g.grantExpires.Time)
}

// caller is the connection as the audit log names it.
func (g *grantState) caller() caller.Caller {
	return caller.Caller{Org: g.orgID, Person: g.personID, PersonName: g.personName, Via: caller.Connection, ID: g.connectionID, Name: g.clientName}
}

// unproven is the refusal of a client that may not use a grant without authenticating, see client.mayUse.
func unproven() error {
	return fosite.ErrInvalidClient.WithHint("The client authenticated with a key when this was allowed: send a client_assertion (RFC 7523).")
}

// revokeGrantRow marks a grant as revoked and reports whether it was live. The caller audits it.
func (s *Server) revokeGrantRow(ctx context.Context, id string) (bool, error) {
	n, err := s.Store.Exec(ctx, `UPDATE grants SET revoked_at = ? WHERE id = ? AND revoked_at IS NULL`, store.Now(), id)
	if err != nil {
		return false, fmt.Errorf("revoking a grant: %w", err)
	}
	return n == 1, nil
}

// generation is one pair of tokens of a grant, as hashes.
type generation struct {
	refreshHash, accessHash, grantID, scope string
	issuedAt, accessExpires, refreshExpires store.Time
}

// generation is a pair issued now. Neither of its tokens outlives the grant.
func (s *Server) generation(p pair, grantID, scope string, g grantState, now store.Time) generation {
	until := func(lifetime time.Duration) store.Time {
		if end := now.Add(lifetime); end.Before(g.grantExpires.Time) {
			return end
		}
		return g.grantExpires
	}
	return generation{s.Secrets.Hash(p.refresh), s.Secrets.Hash(p.access), grantID, scope, now, until(s.Access), until(s.Refresh)}
}

// found is the generation of a token that was presented, whichever of the two it is, with the grant above it.
type found struct {
	generation
	usedAt store.Time
	g      grantState
}

func (s *Server) findToken(ctx context.Context, token string) (f found, err error) {
	in, hashes := store.In(s.Secrets.Hashes(token))
	err = s.Store.QueryRow(ctx, `SELECT g.refresh_hash, g.access_hash, g.grant_id, g.scope, g.issued_at, g.access_expires_at, g.refresh_expires_at, g.used_at, `+grantColumns+`
		FROM generations g `+grantJoins("g")+` WHERE g.access_hash IN `+in+` OR g.refresh_hash IN `+in, append(hashes, hashes...),
		append([]any{&f.refreshHash, &f.accessHash, &f.grantID, &f.scope, &f.issuedAt, &f.accessExpires, &f.refreshExpires, &f.usedAt}, f.g.columns()...)...)
	if err != nil && !store.IsNotFound(err) {
		err = fmt.Errorf("reading a token: %w", err)
	}
	return f, err
}

func (s *Server) insertGeneration(ctx context.Context, g generation) error {
	_, err := s.Store.Exec(ctx, `INSERT INTO generations (refresh_hash, access_hash, grant_id, scope, issued_at, access_expires_at, refresh_expires_at) VALUES (?, ?, ?, ?, ?, ?, ?)`,
		g.refreshHash, g.accessHash, g.grantID, g.scope, g.issuedAt, g.accessExpires, g.refreshExpires)
	if err != nil {
		return fmt.Errorf("keeping tokens: %w", err)
	}
	return nil
}

// sameResource refuses a token request that names another resource than the grant's (RFC 8707 §2.2).
func (s *Server) sameResource(asked []string, granted string) error {
	for _, v := range asked {
		if v != "" && canonical(v) != granted {
			return errInvalidTarget.WithHintf("The grant is for %s.", granted)
		}
	}
	return nil
}

// refusalUnless is the refusal, unless there was trouble.
func refusalUnless(err error, refusal *fosite.RFC6749Error) error {
	if err != nil {
		return nil
	}
	return refusal
}
