package oauth

import (
	"context"
	"fmt"
	"net/http"

	"github.com/ory/fosite"

	"switchboard/internal/audit"
	"switchboard/internal/caller"
	"switchboard/internal/store"
)

// revoke serves /oauth/revoke (RFC 7009): 200 also for a token that is unknown or another client's, which then is
// left alone. A token that could not be revoked is 503: fosite would say 200, and the client would believe it.
func (s *Server) revoke(w http.ResponseWriter, r *http.Request) {
	form, err := bodyForm(r)
	if err == nil && form.Get("token") == "" {
		err = fosite.ErrInvalidRequest.WithHint("The parameter token is missing.")
	}
	if err == nil {
		err = s.provider.NewRevocationRequest(r.Context(), formRequest(r, form))
	}
	if err != nil {
		s.writeFailure(w, r, err)
		return
	}
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(http.StatusOK)
}

// revocation implements fosite.RevocationHandler. A refresh token takes its grant with it; an access token ends alone.
type revocation struct{ s *Server }

// RevokeToken implements fosite.RevocationHandler. The hint of RFC 7009 §2.1 is not needed: tokens say what they are.
func (v *revocation) RevokeToken(ctx context.Context, token string, _ fosite.TokenType, c fosite.Client) error {
	f, err := v.s.findToken(ctx, token)
	switch {
	case store.IsNotFound(err):
		return nil
	case err != nil:
		return &trouble{err}
	case f.g.clientID != c.GetID() || f.g.dead():
		return nil
	case !c.(*client).mayUse(&f.g):
		return unproven()
	case v.s.Secrets.Matches(token, f.refreshHash):
		return v.revokeGrant(ctx, f)
	}
	_, err = v.s.Store.Exec(ctx, `UPDATE generations SET access_expires_at = ? WHERE access_hash = ?`, store.Now(), f.accessHash)
	if err != nil {
		return fmt.Errorf("revoking an access token: %w", err)
	}
	return nil
}

func (v *revocation) revokeGrant(ctx context.Context, f found) error {
	return v.s.Store.Tx(ctx, func(ctx context.Context) error {
		live, err := v.s.revokeGrantRow(ctx, f.grantID)
		if err != nil || !live {
			return err
		}
		return v.s.Audit.Append(caller.With(ctx, f.g.caller()), audit.Record{Action: audit.Revoke, Outcome: audit.OK, Subject: f.g.connectionID,
			Detail: map[string]any{"kind": "grant", "app": f.g.clientName}})
	})
}
