package oauth

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
	"github.com/ory/fosite"

	"switchboard/internal/store"
)

// assertionType is the one of RFC 7523 §2.2.
const assertionType = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"

// maxAssertionAge is how far ahead an assertion may end; until then it has to be remembered.
const maxAssertionAge = time.Hour

// assertionAlgs are the signatures that an assertion may carry: asymmetric ones.
var assertionAlgs = []jose.SignatureAlgorithm{
	jose.RS256, jose.RS384, jose.RS512, jose.PS256, jose.PS384, jose.PS512, jose.ES256, jose.ES384, jose.ES512, jose.EdDSA,
}

// claim is what a request says about which client sent it.
type claim struct {
	id        string
	secret    string
	assertion *jwt.JSONWebToken // nil for none; nothing in it has been checked
	subject   string            // of the assertion
}

// authenticate finds out which client sent a request (RFC 6749 §2.3). It takes the place of fosite's strategy, which
// wants each client to name one algorithm and one place for its secret, and looks an assertion's id up in one step and
// writes it in another.
func (s *Server) authenticate(ctx context.Context, r *http.Request, form url.Values) (fosite.Client, error) {
	said, err := readClaim(r, form)
	if err != nil {
		return nil, err
	}
	c, err := s.find(ctx, said.id)
	if errors.Is(err, fosite.ErrNotFound) {
		return nil, fosite.ErrInvalidClient.WithHint("The client is not known here: register it again.").WithWrap(err)
	}
	if err != nil {
		return nil, err
	}
	switch {
	case c.row.hasSecret():
		if said.secret == "" {
			return nil, fosite.ErrInvalidClient.WithHintf("The client is registered for %s, and the request carries no secret.", c.row.AuthMethod)
		}
		if !s.isSecret(&c.row, said.secret) {
			return nil, fosite.ErrInvalidClient.WithHint("The client secret is wrong.")
		}
		c.proven = true
	case c.row.AuthMethod == byKey && said.assertion != nil:
		if err := s.checkAssertion(ctx, r, c, said.assertion); err != nil {
			return nil, err
		}
		c.proven = true
	case c.row.AuthMethod == byKey && c.row.Kind != kindDocument:
		return nil, fosite.ErrInvalidClient.WithHint("The client is registered for private_key_jwt, and the request carries no client_assertion.")
	case said.secret != "":
		return nil, fosite.ErrInvalidClient.WithHint("The client has no secret here: send its client_id alone.")
	case said.assertion != nil && said.subject != said.id: // RFC 7521 §4.2
		return nil, fosite.ErrInvalidClient.WithHint("client_id and client_assertion name different clients.")
	}
	return c, nil
}

// readClaim reads what the request says. Two ways at once are refused (RFC 6749 §2.3): a proxy or a log may have seen
// the other one.
func readClaim(r *http.Request, form url.Values) (claim, error) {
	said := claim{id: form.Get("client_id"), secret: form.Get("client_secret")}
	ways := 0
	if said.secret != "" {
		ways++
	}
	if form.Get("client_assertion") != "" || form.Get("client_assertion_type") != "" {
		ways++
		if err := said.readAssertion(form.Get("client_assertion_type"), form.Get("client_assertion")); err != nil {
			return said, err
		}
	}
	headers := r.Header.Values("Authorization")
	if len(headers) > 1 { // a proxy may have looked at the other one
		return said, fosite.ErrInvalidRequest.WithHint("Send one Authorization header.")
	}
	if len(headers) == 1 {
		header := headers[0]
		id, secret, err := basicCredentials(header)
		if err != nil {
			return said, err
		}
		if said.id != "" && said.id != id {
			return said, fosite.ErrInvalidRequest.WithHint("client_id and the Authorization header name different clients.")
		}
		said.id = id
		if secret != "" { // none: a public client of a library that knows no other way
			ways++
			said.secret = secret
		}
	}
	switch {
	case ways > 1:
		return said, fosite.ErrInvalidRequest.WithHint("Authenticate the client in one way: header, client_secret or client_assertion.")
	case said.id == "":
		return said, fosite.ErrInvalidRequest.WithHint("The parameter client_id is missing.")
	}
	return said, nil
}

// readAssertion parses an assertion, and takes the client from it where the request does not name it (RFC 7521 §4.2).
func (c *claim) readAssertion(kind, assertion string) error {
	if kind != assertionType {
		return fosite.ErrInvalidRequest.WithHintf("client_assertion_type must be %s.", assertionType)
	}
	var said jwt.Claims
	token, err := jwt.ParseSigned(assertion, assertionAlgs)
	if err != nil || len(token.Headers) != 1 || token.UnsafeClaimsWithoutVerification(&said) != nil {
		return fosite.ErrInvalidClient.WithHint("client_assertion is not a JWT with an asymmetric signature (RFC 7523).")
	}
	c.assertion, c.subject = token, said.Subject
	if c.id == "" {
		c.id = said.Subject
	}
	return nil
}

// basicCredentials reads the Basic scheme. Both parts are form-encoded before they are joined (RFC 6749 §2.3.1), which
// is how a client_id that is a URL, with a colon in it, gets through.
func basicCredentials(header string) (id, secret string, err error) {
	malformed := fosite.ErrInvalidRequest.WithHint("The Authorization header is not HTTP Basic with a form-encoded client_id and secret (RFC 6749 section 2.3.1).")
	scheme, encoded, _ := strings.Cut(header, " ")
	if !strings.EqualFold(scheme, "Basic") {
		return "", "", malformed
	}
	raw, err := base64.StdEncoding.DecodeString(strings.TrimSpace(encoded))
	if err != nil {
		return "", "", malformed
	}
	id, secret, ok := strings.Cut(string(raw), ":")
	if !ok {
		return "", "", malformed
	}
	for _, part := range []*string{&id, &secret} {
		if *part, err = url.QueryUnescape(*part); err != nil {
			return "", "", malformed
		}
	}
	return id, secret, nil
}

// isSecret compares a secret with the client's, and with the one before as long as that is good. Secrets are random,
// so a keyed hash keeps them as well as a slow one would, and 10,000 of them can be checked in the time of one.
func (s *Server) isSecret(row *clientRow, secret string) bool {
	return s.Secrets.Matches(secret, row.SecretHash) ||
		time.Now().Before(row.OldSecretUntil.Time) && s.Secrets.Matches(secret, row.OldSecretHash)
}

// checkAssertion is RFC 7523 §3: signed by the client, about itself, for this server, now, and for the first time.
func (s *Server) checkAssertion(ctx context.Context, r *http.Request, c *client, token *jwt.JSONWebToken) error {
	var said jwt.Claims
	if err := s.verify(r, c, token, &said); err != nil {
		return err
	}
	now := time.Now()
	here := jwt.Audience{s.Issuer, s.Issuer + "/oauth/token", s.Issuer + "/oauth/revoke", s.Issuer + "/oauth/introspect"}
	err := said.Validate(jwt.Expected{Issuer: c.row.ID, Subject: c.row.ID, Time: now})
	switch {
	case len(said.Audience) == 0 || slices.ContainsFunc(said.Audience, func(a string) bool { return !here.Contains(a) }):
		// One that is also for somebody else is one that somebody else may bring.
		return fosite.ErrInvalidClient.WithHintf("The aud of client_assertion must be %s and nothing else.", s.Issuer)
	case err != nil:
		return fosite.ErrInvalidClient.WithHint("The iss and sub of client_assertion must both be the client_id, and it must not have ended: check the clock.")
	case said.Expiry == nil || said.Expiry.Time().After(now.Add(maxAssertionAge)):
		return fosite.ErrInvalidClient.WithHint("client_assertion must have an exp, at most an hour ahead.")
	case said.ID == "":
		return fosite.ErrInvalidClient.WithHint("client_assertion must have a jti, so that nobody can use it again.")
	}
	hash := sha256.Sum256([]byte(c.row.ID + "\x00" + said.ID))
	n, err := s.Store.Exec(ctx, `INSERT INTO client_assertions (assertion_hash, expires_at) VALUES (?, ?) ON CONFLICT DO NOTHING`,
		hex.EncodeToString(hash[:]), store.At(said.Expiry.Time().Add(2*jwt.DefaultLeeway)))
	if err != nil {
		return &trouble{fmt.Errorf("keeping an assertion: %w", err)}
	}
	if n == 0 {
		return fosite.ErrInvalidClient.WithHint("client_assertion was used before: make a new one for each request.")
	}
	return nil
}

// verify checks the signature with the client's keys. A key that is not among those that we have may be a new one, so
// they are fetched once more then. A client whose keys could not be fetched is told to come back: invalid_client would
// make it give its registration up.
func (s *Server) verify(r *http.Request, c *client, token *jwt.JSONWebToken, said *jwt.Claims) error {
	tried, unsure := "", error(nil)
	due := c.row.Kind == kindDocument && !time.Now().Before(c.row.FreshUntil.Time)
	for _, again := range []bool{false, true} {
		keys, failed, err := s.keysOf(r, c, again, again != due) // the document is read once, now or then
		if err != nil {
			return err
		}
		if failed != nil {
			unsure = failed
		}
		if c.row.JWKS == tried {
			break // nothing new
		}
		tried = c.row.JWKS
		for _, key := range candidates(keys, token.Headers[0]) {
			if token.Claims(key.Key, said) == nil {
				return nil
			}
		}
	}
	if unsure != nil {
		return keysMissing(unsure)
	}
	return fosite.ErrInvalidClient.WithHint("The signature of client_assertion fits none of the client's keys.")
}
