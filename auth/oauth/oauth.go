// Package oauth is the issuer: an OAuth 2.1 authorization server on ory/fosite. It renders no HTML; consent-ui asks
// the person and calls Begin, Pending and Decide.
//
// Fosite parses and checks requests, dispatches grants and writes token answers. What it
// leaves to its user, or does in a way that loses sessions, is here: redirect matching for loopback clients
// (RFC 8252), resource indicators (RFC 8707), issuer identification (RFC 9207), one-use codes with PKCE (code.go)
// and the rotation of refresh tokens with one successor (refresh.go). Both grants are fosite handlers of ours,
// because each must decide and write in one step and fosite's own split them over several.
//
//	GET  /oauth/authorize   Begin: is the redirect trusted? then the request is kept and the person asked
//	POST /consent/{id}      Decide: connection + grant + code in one transaction, then back to the client
//	POST /oauth/token       code.go, refresh.go
//	POST /oauth/revoke      revoke.go          POST /oauth/introspect   introspect.go
//	POST /oauth/register    register.go        GET  /.well-known/…      metadata.go
//
// A client is registered by itself, made by an administrator (made.go), or named by the URL of a document that it
// publishes (cimd.go). How it shows that it is itself is in authenticate.go.
package oauth

import (
	"context"
	"errors"
	"log/slog"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/ory/fosite"
	"golang.org/x/sync/singleflight"

	"switchboard/auth"
	"switchboard/auth/accounts"
	"switchboard/internal/audit"
	"switchboard/internal/caller"
	"switchboard/internal/outbound"
	"switchboard/internal/scope"
	"switchboard/internal/seal"
	"switchboard/internal/store"
	"switchboard/internal/web"
)

// Lifetimes of what the server issues.
type Lifetimes struct {
	Code    time.Duration // authorization codes, 60 s
	Access  time.Duration // access tokens, 1 h
	Refresh time.Duration // refresh tokens, 30 d; a grant lives grantFactor times as long at most
	Grace   time.Duration // how long a repeated refresh gets the same answer, 60 s
}

// grantFactor caps a grant: however often it is refreshed, after this many refresh lifetimes a person is asked again.
const grantFactor = 6

// Config is what the server works with.
type Config struct {
	Issuer    string          // public origin without a slash at the end
	Resources []auth.Resource // with canonical URLs; the first is the default

	Store    *store.Store
	Secrets  *seal.Keyring
	Accounts *accounts.Accounts
	Audit    *audit.Log
	Scopes   *scope.Catalog
	Lifetimes
	// Outbound fetches what clients publish about themselves; ClientHosts says where that may be.
	Outbound    *outbound.Client
	ClientHosts HostPolicy
	// Unlimited turns the limits for each IP off, for load tests.
	Unlimited bool
	Log       *slog.Logger
}

// Server is the authorization server.
type Server struct {
	Config
	resourceURLs []string // of Resources, in their order
	provider     *fosite.Fosite
	limits       struct{ register, authorize, token, fetch *web.Limiter }

	fetches               singleflight.Group // of documents and keys, one at a time for each client
	documentLane, keyLane *lane
}

// What one IP may ask for in a minute. Vendors sign many people in and refresh for them from a few addresses, so
// only registration, which writes a row for anybody, is narrow.
const (
	registrationsPerMinute = 60
	authorizePerMinute     = 300
	tokenPerMinute         = 3000
)

// New returns a Server.
func New(cfg Config) *Server {
	s := &Server{Config: cfg}
	for _, r := range cfg.Resources {
		s.resourceURLs = append(s.resourceURLs, r.URL)
	}
	limit := func(perMinute int) *web.Limiter {
		if cfg.Unlimited {
			perMinute = 0
		}
		return web.NewLimiter(perMinute)
	}
	s.limits.register, s.limits.authorize, s.limits.token = limit(registrationsPerMinute), limit(authorizePerMinute), limit(tokenPerMinute)
	s.limits.fetch, s.documentLane, s.keyLane = limit(fetchesPerMinute), newLane(limit), newLane(limit)
	s.provider = s.compose()
	return s
}

// Routes mounts what is not HTML. The paths with a slash at the end behave the same: a redirect would turn a POST
// into a GET in some clients.
func (s *Server) Routes(mux *http.ServeMux) {
	token := web.PerIP(s.limits.token, post(s.token), tooMany)
	register := web.PerIP(s.limits.register, post(s.register), tooMany)
	for path, h := range map[string]http.Handler{
		"/oauth/token":    token,
		"/oauth/register": register,
		"/oauth/revoke":   web.PerIP(s.limits.token, post(s.revoke), tooMany),
		// Clients of the 2025-03-26 revision look here when they find no metadata. /authorize is a page.
		"/token":    token,
		"/register": register,
	} {
		mux.Handle(path, web.AnyOrigin(h))
		mux.Handle(path+"/{$}", web.AnyOrigin(h))
	}
	// Introspection is for servers, which hold a secret: no page has business there.
	introspect := web.PerIP(s.limits.token, post(s.introspect), tooMany)
	mux.Handle("/oauth/introspect", introspect)
	mux.Handle("/oauth/introspect/{$}", introspect)
	documents := web.AnyOrigin(http.HandlerFunc(s.wellKnown))
	mux.Handle(wellKnown, documents)
	mux.Handle(strings.TrimSuffix(wellKnown, "/"), documents) // or the mux would send a program to the other one
}

// post lets POST through, tells OPTIONS so, and answers anything else with 405.
func post(h http.HandlerFunc) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost {
			w.Header().Set("Allow", "POST, OPTIONS")
			if r.Method == http.MethodOptions {
				w.WriteHeader(http.StatusNoContent)
				return
			}
			writeError(w, http.StatusMethodNotAllowed, "invalid_request", "This endpoint takes POST only.")
			return
		}
		h(w, r)
	})
}

// tooMany answers 429 in the form that OAuth clients can read: to them "error" is a word, not an object.
func tooMany(w http.ResponseWriter, retryAfter time.Duration) {
	w.Header().Set("Retry-After", strconv.Itoa(max(1, int(math.Ceil(retryAfter.Seconds())))))
	writeError(w, http.StatusTooManyRequests, "temporarily_unavailable", "Too many requests from this address. Wait as long as Retry-After says, then try again.")
}

// writeError is the error answer of RFC 6749 §5.2 and RFC 7591 §3.2.2.
func writeError(w http.ResponseWriter, status int, code, description string) {
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("Pragma", "no-cache")
	web.JSON(w, status, map[string]string{"error": code, "error_description": description})
}

// writeFailure writes err as an OAuth error. What is not an OAuth error is trouble of ours, most likely the
// database: 503, so that the client keeps its token and comes back.
func (s *Server) writeFailure(w http.ResponseWriter, r *http.Request, err error) {
	var oauth *fosite.RFC6749Error
	var troubled *trouble
	if errors.As(err, &troubled) || !errors.As(err, &oauth) {
		s.Log.ErrorContext(r.Context(), "authorization server in trouble", "request", caller.Request(r.Context()), "err", err)
		w.Header().Set("Retry-After", "2")
		writeError(w, http.StatusServiceUnavailable, "temporarily_unavailable", "The server cannot answer at this moment. Try again with the same token.")
		return
	}
	status := oauth.CodeField
	if oauth.ErrorField == fosite.ErrInvalidClient.ErrorField {
		status = http.StatusUnauthorized
		w.Header().Set("WWW-Authenticate", `Basic realm="switchboard"`) // RFC 6749 §5.2
	}
	if status == http.StatusServiceUnavailable {
		w.Header().Set("Retry-After", "10")
	}
	writeError(w, status, oauth.ErrorField, describe(oauth))
}

// describe is what a client's developer reads. Fosite's own texts are about its internals, its hints are not.
func describe(e *fosite.RFC6749Error) string {
	if e.HintField != "" {
		return auth.Plain(e.HintField)
	}
	return auth.Plain(e.DescriptionField)
}

// Sweep removes what has ended: unanswered requests, codes, tokens and grants, and clients that nobody uses.
func (s *Server) Sweep(ctx context.Context) error {
	now := store.Now()
	day := now.Add(-24 * time.Hour)
	for _, step := range []struct {
		query string
		args  []any
	}{
		// A salt is what lets an old refresh token and a stolen server key walk the chain forward (see refresh.go).
		{`UPDATE generations SET next_salt = '' WHERE next_salt <> '' AND used_at < ?`, []any{now.Add(-s.Grace)}},
		{`DELETE FROM consent_requests WHERE expires_at < ?`, []any{now}},
		{`DELETE FROM codes WHERE expires_at < ?`, []any{day}},
		{`DELETE FROM generations WHERE refresh_expires_at < ?`, []any{day}},
		{`DELETE FROM generations WHERE grant_id IN (SELECT id FROM grants WHERE revoked_at < ? OR expires_at < ?)`, []any{day, day}},
		{`DELETE FROM codes WHERE grant_id IN (SELECT id FROM grants WHERE revoked_at < ? OR expires_at < ?)`, []any{day, day}},
		{`DELETE FROM grants WHERE created_at < ? AND NOT EXISTS (SELECT 1 FROM generations g WHERE g.grant_id = grants.id)
			AND NOT EXISTS (SELECT 1 FROM codes c WHERE c.grant_id = grants.id)`, []any{day}},
		{`DELETE FROM connections WHERE created_at < ? AND NOT EXISTS (SELECT 1 FROM grants g WHERE g.connection_id = connections.id)`, []any{day}},
		{`DELETE FROM client_assertions WHERE expires_at < ?`, []any{now}},
		{`UPDATE clients SET old_secret_hash = '', old_secret_until = NULL WHERE old_secret_until < ?`, []any{now}},
		{`DELETE FROM clients WHERE (used_at IS NULL AND created_at < ? OR used_at < ?) AND kind <> ?
			AND NOT EXISTS (SELECT 1 FROM connections c WHERE c.client_id = clients.id)
			AND NOT EXISTS (SELECT 1 FROM client_blocks b WHERE b.client_id = clients.id)
			AND NOT EXISTS (SELECT 1 FROM consent_requests r WHERE r.client_id = clients.id)`, []any{day, now.Add(-clientMemory), kindMade}},
	} {
		if _, err := s.Store.Exec(ctx, step.query, step.args...); err != nil {
			return err
		}
	}
	return nil
}

// clientMemory is how long a registered client is kept after its last use: clients remember their id, and one that
// comes back to an unknown id needs a person to connect it again.
const clientMemory = 90 * 24 * time.Hour
