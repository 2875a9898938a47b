package oauth

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"regexp"
	"time"

	"github.com/ory/fosite"

	"switchboard/internal/audit"
	"switchboard/internal/caller"
	"switchboard/internal/scope"
	"switchboard/internal/store"
)

// codeGrant issues authorization codes and exchanges them for tokens (RFC 6749 §4.1 with RFC 7636). It takes the
// place of fosite's explicit and PKCE handlers, which look a code up in one step and use it up in another.
type codeGrant struct{ grantHandler }

var (
	_ fosite.AuthorizeEndpointHandler = (*codeGrant)(nil)
	_ fosite.TokenEndpointHandler     = (*codeGrant)(nil)
)

// harmlessReplay is how soon after its use the right client may send a code again without being taken for a thief:
// clients and proxies send a request twice when they think that it was lost.
const harmlessReplay = 2 * time.Second

// HandleAuthorizeEndpointRequest implements fosite.AuthorizeEndpointHandler: it issues the code of a decision.
func (g *codeGrant) HandleAuthorizeEndpointRequest(ctx context.Context, ar fosite.AuthorizeRequester, resp fosite.AuthorizeResponder) error {
	if !ar.GetResponseTypes().ExactOne("code") {
		return nil
	}
	d := ar.GetSession().(*session).decided
	code, _ := g.s.code(g.s.Secrets.Current(), d.requestID, d.grantID)
	form := ar.GetRequestForm()
	_, err := g.s.Store.Exec(ctx, `INSERT INTO codes (code_hash, grant_id, client_id, redirect_uri, code_challenge, expires_at) VALUES (?, ?, ?, ?, ?, ?)`,
		g.s.Secrets.Hash(code), d.grantID, ar.GetClient().GetID(), form.Get("redirect_uri"), form.Get("code_challenge"), store.Now().Add(g.s.Code))
	if err != nil {
		return fmt.Errorf("keeping a code: %w", err)
	}
	resp.AddParameter("code", code)
	ar.SetResponseTypeHandled("code")
	return nil
}

// codeRow is a code with the grant it stands for.
type codeRow struct {
	hash, grantID, clientID, redirectURI, challenge string
	expiresAt, usedAt                               store.Time
	g                                               grantState
}

func (s *Server) findCode(ctx context.Context, code string) (c codeRow, err error) {
	in, hashes := store.In(s.Secrets.Hashes(code))
	err = s.Store.QueryRow(ctx, `SELECT k.code_hash, k.grant_id, k.client_id, k.redirect_uri, k.code_challenge, k.expires_at, k.used_at, `+grantColumns+`
		FROM codes k `+grantJoins("k")+` WHERE k.code_hash IN `+in, hashes,
		append([]any{&c.hash, &c.grantID, &c.clientID, &c.redirectURI, &c.challenge, &c.expiresAt, &c.usedAt}, c.g.columns()...)...)
	if err != nil && !store.IsNotFound(err) {
		err = fmt.Errorf("reading a code: %w", err)
	}
	return c, err
}

// strangeCode is the one answer about a code that nobody issued and about another client's, also when that was used:
// whoever tries codes out learns nothing of them.
var strangeCode = fosite.ErrInvalidGrant.WithHint("The code is not known here, or it was issued to another client. Start the sign-in again.")

// HandleTokenEndpointRequest implements fosite.TokenEndpointHandler. Whatever can be refused without touching the
// code is refused first; then the code is claimed, and only the one who claimed it gets to try a verifier.
func (g *codeGrant) HandleTokenEndpointRequest(ctx context.Context, r fosite.AccessRequester) error {
	if !g.CanHandleTokenEndpointRequest(ctx, r) {
		return fosite.ErrUnknownRequest
	}
	form := r.GetRequestForm()
	code, verifier := form.Get("code"), form.Get("code_verifier")
	if code == "" || verifier == "" {
		return fosite.ErrInvalidRequest.WithHint("The parameters code and code_verifier are required.")
	}
	c, err := g.s.findCode(ctx, code)
	if store.IsNotFound(err) {
		return strangeCode
	}
	if err != nil {
		return err
	}
	theirs := c.clientID == r.GetClient().GetID()
	if theirs && !r.GetClient().(*client).mayUse(&c.g) {
		return unproven()
	}
	right := theirs && verifies(c.challenge, verifier)
	if !c.usedAt.IsZero() {
		return g.replayed(ctx, c, theirs, right)
	}
	switch redirectURI := form.Get("redirect_uri"); {
	case !theirs:
		return strangeCode
	case !time.Now().Before(c.expiresAt.Time):
		return fosite.ErrInvalidGrant.WithHint("The code has expired. Start the sign-in again.")
	case c.g.dead():
		return fosite.ErrInvalidGrant.WithHint("The connection has been revoked.")
	case redirectURI != "" && redirectURI != c.redirectURI: // OAuth 2.1 leaves it out: PKCE guards
		return fosite.ErrInvalidGrant.WithHint("redirect_uri is not the one of the authorization request.")
	}
	if err := g.s.sameResource(form["resource"], c.g.resource); err != nil {
		return err
	}
	return g.claim(ctx, r, c, right)
}

// claim uses the code up. A wrong verifier uses it up too: one guess for each code.
func (g *codeGrant) claim(ctx context.Context, r fosite.AccessRequester, c codeRow, right bool) error {
	p, now := freshPair(), store.Now()
	row := g.s.generation(p, c.grantID, c.g.scope, c.g, now)
	won := false
	err := g.s.Store.Tx(ctx, func(ctx context.Context) error {
		n, err := g.s.Store.Exec(ctx, `UPDATE codes SET used_at = ? WHERE code_hash = ? AND used_at IS NULL`, now, c.hash)
		if won = n == 1; err != nil || !won || !right {
			return err
		}
		return g.s.insertGeneration(ctx, row)
	})
	switch {
	case err != nil:
		return fmt.Errorf("using a code: %w", err)
	case !won: // two at once, and the other one was first: judge this one as what it is, a second use
		return g.HandleTokenEndpointRequest(ctx, r)
	case !right:
		return fosite.ErrInvalidGrant.WithHint("code_verifier does not match the code_challenge. The code is used up: start the sign-in again.")
	}
	g.s.used(ctx, r.GetClient().(*client))
	r.GetSession().(*session).issued = &issued{p.access, p.refresh, scope.Parse(c.g.scope), row.accessExpires.Time}
	return nil
}

// replayed answers a code that was used before. A request that was sent twice is refused and nothing more; anybody
// else has stolen the code or lost it to a thief, so what it led to is revoked (RFC 6749 §4.1.2).
func (g *codeGrant) replayed(ctx context.Context, c codeRow, theirs, right bool) error {
	refusal := strangeCode
	if theirs {
		refusal = fosite.ErrInvalidGrant.WithHint("The code has been used. Start the sign-in again.")
	}
	if right && time.Since(c.usedAt.Time) < harmlessReplay || c.g.dead() {
		return refusal
	}
	err := g.s.Store.Tx(ctx, func(ctx context.Context) error {
		live, err := g.s.revokeGrantRow(ctx, c.grantID)
		if err != nil || !live {
			return err
		}
		return g.s.Audit.Append(caller.With(ctx, c.g.caller()), audit.Record{Action: audit.CodeReuse, Outcome: audit.Refused, Subject: c.g.connectionID})
	})
	return errors.Join(err, refusalUnless(err, refusal))
}

// verifierPattern is RFC 7636 §4.1.
var verifierPattern = regexp.MustCompile(`^[A-Za-z0-9._~-]{43,128}$`)

// verifies is the S256 check of RFC 7636 §4.6.
func verifies(challenge, verifier string) bool {
	sum := sha256.Sum256([]byte(verifier))
	return verifierPattern.MatchString(verifier) &&
		subtle.ConstantTimeCompare([]byte(base64.RawURLEncoding.EncodeToString(sum[:])), []byte(challenge)) == 1
}
