package oauth

import (
	"context"
	"net/http"
	"time"

	"github.com/ory/fosite"

	"switchboard/internal/scope"
	"switchboard/internal/store"
	"switchboard/internal/web"
)

// introspection is the answer of RFC 7662 §2.2. A token that is dead, unknown, or none of the asking client's business
// is inactive and nothing more is said (§2.2, §4).
type introspection struct {
	Active   bool   `json:"active"`
	Scope    string `json:"scope,omitempty"`
	ClientID string `json:"client_id,omitempty"`
	Subject  string `json:"sub,omitempty"`
	Type     string `json:"token_type,omitempty"`
	Expires  int64  `json:"exp,omitempty"`
	IssuedAt int64  `json:"iat,omitempty"`
	Audience string `json:"aud,omitempty"`
	Issuer   string `json:"iss,omitempty"`
}

// introspect serves /oauth/introspect (RFC 7662). Whoever asks has to show who they are: a client may ask about its
// own tokens, one that an administrator made about any of its organization. Public clients may not ask at all; a
// stranger could try tokens out.
func (s *Server) introspect(w http.ResponseWriter, r *http.Request) {
	form, err := bodyForm(r)
	if err == nil && form.Get("token") == "" {
		err = fosite.ErrInvalidRequest.WithHint("The parameter token is missing.")
	}
	var who fosite.Client
	if err == nil {
		who, err = s.authenticate(r.Context(), r, form)
	}
	if err == nil && !who.(*client).proven {
		err = fosite.ErrInvalidClient.WithHint("Introspection is for clients that authenticate, with a secret or a key.")
	}
	var answer introspection
	if err == nil {
		answer, err = s.look(r.Context(), who.(*client), form.Get("token"))
	}
	if err != nil {
		s.writeFailure(w, r, err)
		return
	}
	s.used(r.Context(), who.(*client))
	w.Header().Set("Cache-Control", "no-store")
	web.JSON(w, http.StatusOK, answer)
}

// look finds what a token is worth now: its scopes that the person's role still allows.
func (s *Server) look(ctx context.Context, who *client, token string) (introspection, error) {
	t, err := s.findToken(ctx, token)
	if store.IsNotFound(err) {
		return introspection{}, nil
	}
	if err != nil {
		return introspection{}, &trouble{err}
	}
	isAccess, ends := s.Secrets.Matches(token, t.accessHash), t.refreshExpires
	if isAccess {
		ends = t.accessExpires
	}
	theirs, err := s.mayAskAbout(ctx, who, &t.g)
	if err != nil {
		return introspection{}, &trouble{err}
	}
	if !theirs || t.g.dead() || !time.Now().Before(ends.Time) || !isAccess && !t.usedAt.IsZero() {
		return introspection{}, nil
	}
	out := introspection{
		Active: true, Scope: scope.Parse(t.scope).Filter(t.g.role.Allows).String(), ClientID: t.g.clientID, Subject: t.g.personID,
		Expires: ends.Unix(), IssuedAt: t.issuedAt.Unix(), Audience: t.g.resource, Issuer: s.Issuer,
	}
	if isAccess {
		out.Type = "Bearer"
	}
	return out, nil
}

// mayAskAbout reports whether a grant is a client's business: it is its own, or of the organization that made the
// client and has not blocked it since.
func (s *Server) mayAskAbout(ctx context.Context, who *client, g *grantState) (bool, error) {
	if who.row.ID == g.clientID {
		return true, nil
	}
	if who.row.Kind != kindMade {
		return false, nil
	}
	blocked, err := s.blockedIn(ctx, who.row.ID)
	return letsIn(g.orgID, who.row.organization(), blocked), err
}
