package oauth

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/ory/fosite"

	"switchboard/auth"
	"switchboard/internal/scope"
	"switchboard/internal/seal"
	"switchboard/internal/store"
)

// RedirectError is an error that goes back to the client: its redirect URI is registered. Anybody can register one, so
// nobody is sent there before they have signed in (RFC 9700 §4.11.2). See Wait.
type RedirectError struct {
	Location string
	Mistake  string     // what the client is going to be told
	answer   url.Values // the same as parameters, with what belongs to the request
	client   *client
	cause    error
}

func (e *RedirectError) Error() string { return "back to the client: " + e.cause.Error() }

// Unwrap returns what was wrong.
func (e *RedirectError) Unwrap() error { return e.cause }

// PageError is an error that a person has to read, because the redirect URI cannot be trusted (RFC 6749 §4.1.2.1).
// Reason is a word for the message: unknown_client, bad_redirect, bad_request, unavailable, rate_limited,
// document_unreachable, document_invalid, document_refused. Detail is for the app's developer, in English.
type PageError struct {
	Status     int
	Code       string
	Reason     string
	Detail     string
	RetryAfter time.Duration
	cause      error
}

func (e *PageError) Error() string { return fmt.Sprintf("%s: %v", e.Reason, e.cause) }

// Unwrap returns what was wrong.
func (e *PageError) Unwrap() error { return e.cause }

// requestLifetime is how long a person may take to sign in and answer.
const requestLifetime = time.Hour

// maxAuthorizeForm bounds the parameters of an authorization request, state included: they are kept for strangers.
const maxAuthorizeForm = 8 << 10

// authorization is an authorization request that has been checked.
type authorization struct {
	client      *client
	redirectURI string
	state       string
	resource    string
	scopes      scope.Set
	form        url.Values // what to keep, in canonical form
}

// Begin checks an authorization request and keeps it for the browser that sent it. It returns the secret id under
// which the person's answer is awaited, a *RedirectError or a *PageError.
func (s *Server) Begin(r *http.Request, browser string) (string, error) {
	if wait, ok := s.limits.authorize.AllowIP(r); !ok {
		return "", &PageError{Status: http.StatusTooManyRequests, Code: "temporarily_unavailable", Reason: "rate_limited", RetryAfter: wait, cause: errors.New("too many requests")}
	}
	form, err := authorizeForm(r)
	if err != nil {
		return "", &PageError{Status: http.StatusBadRequest, Code: "invalid_request", Reason: "bad_request", cause: err}
	}
	c, err := s.clientFor(r, form.Get("client_id"))
	if err != nil {
		return "", err
	}
	a, err := s.check(r.Context(), c, form)
	if err != nil {
		return "", err
	}
	return s.keep(r.Context(), browser, c, a.form)
}

// Wait keeps an error for a browser in which nobody is signed in. Pending answers with it again once somebody is.
func (s *Server) Wait(ctx context.Context, browser string, back *RedirectError) (requestID string, err error) {
	return s.keep(ctx, browser, back.client, back.answer)
}

// keep stores a request until its person has signed in and answered.
func (s *Server) keep(ctx context.Context, browser string, c *client, form url.Values) (string, error) {
	id, now := seal.NewToken(""), store.Now()
	row := consentRequest{
		IDHash: s.Secrets.Hash(id), BrowserHash: s.Secrets.Hash(browser), ClientID: c.row.ID, Query: form.Encode(),
		CreatedAt: now, ExpiresAt: now.Add(requestLifetime),
	}
	err := s.Store.Tx(ctx, func(ctx context.Context) error { return s.Store.DB(ctx).Create(&row).Error })
	if err != nil {
		return "", unavailable(err)
	}
	return id, nil
}

func unavailable(err error) *PageError {
	return &PageError{Status: http.StatusServiceUnavailable, Code: "temporarily_unavailable", Reason: "unavailable", RetryAfter: 2 * time.Second, cause: err}
}

// authorizeForm reads the parameters of the query. The web face turns a POST, which RFC 6749 §3.1 lets a server take,
// into a GET with what was in its body.
func authorizeForm(r *http.Request) (url.Values, error) {
	raw := r.URL.RawQuery
	if len(raw) > maxAuthorizeForm {
		return nil, errors.New("the request is too long")
	}
	form, err := url.ParseQuery(raw)
	if err != nil {
		return nil, fmt.Errorf("reading the parameters: %w", err)
	}
	for _, key := range []string{"client_id", "redirect_uri", "state"} {
		if len(form[key]) > 1 {
			return nil, fmt.Errorf("%s is there twice", key)
		}
	}
	return form, nil
}

// check first finds out whether the redirect can be trusted; from then on errors go to the client.
func (s *Server) check(ctx context.Context, c *client, form url.Values) (*authorization, error) {
	a := &authorization{client: c, redirectURI: form.Get("redirect_uri"), state: form.Get("state")}
	if a.redirectURI == "" && len(c.redirects) == 1 {
		a.redirectURI = c.redirects[0]
	}
	if !matchesAny(c.redirects, a.redirectURI) {
		return nil, &PageError{Status: http.StatusBadRequest, Code: "invalid_request", Reason: "bad_redirect", cause: errors.New("redirect URI not registered")}
	}
	if err := s.checkTrusted(ctx, a, form); err != nil {
		var page *PageError
		if errors.As(err, &page) {
			return nil, err
		}
		return nil, s.back(a, fosite.ErrorToRFC6749Error(err), err)
	}
	return a, nil
}

func (s *Server) back(a *authorization, e *fosite.RFC6749Error, cause error) *RedirectError {
	return &RedirectError{
		Location: s.errorLocation(a, e), Mistake: e.ErrorField + ": " + describe(e), client: a.client, cause: cause,
		answer: url.Values{"client_id": {a.client.row.ID}, "redirect_uri": {a.redirectURI}, "state": {a.state}, "error": {e.ErrorField}, "error_description": {describe(e)}},
	}
}

// challengePattern is the S256 challenge of RFC 7636 §4.2: 32 bytes in base64url.
var challengePattern = regexp.MustCompile(`^[A-Za-z0-9_-]{43}$`)

func (s *Server) checkTrusted(ctx context.Context, a *authorization, form url.Values) error {
	for key, values := range form {
		if len(values) > 1 && key != "resource" {
			return fosite.ErrInvalidRequest.WithHintf("The parameter %.40q is there twice (RFC 6749 section 3.1).", key)
		}
	}
	switch {
	case form.Get("request") != "":
		return fosite.ErrRequestNotSupported
	case form.Get("request_uri") != "":
		return fosite.ErrRequestURINotSupported
	case form.Get("response_mode") != "" && form.Get("response_mode") != "query":
		return fosite.ErrInvalidRequest.WithHint("The only response_mode is query.")
	case form.Get("response_type") == "":
		return fosite.ErrInvalidRequest.WithHint("The parameter response_type is missing; the only one is code.")
	case form.Get("response_type") != "code":
		return fosite.ErrUnsupportedResponseType.WithHint("The only response_type is code.")
	case slices.Contains(strings.Fields(form.Get("prompt")), "none"):
		return fosite.ErrInteractionRequired.WithHint("A person is asked every time, so prompt=none cannot succeed.")
	case form.Get("code_challenge") == "":
		return fosite.ErrInvalidRequest.WithHint("PKCE is required: send code_challenge and code_challenge_method=S256 (RFC 7636).")
	case form.Get("code_challenge_method") != "S256":
		return fosite.ErrInvalidRequest.WithHint("The only code_challenge_method is S256.")
	case !challengePattern.MatchString(form.Get("code_challenge")):
		return fosite.ErrInvalidRequest.WithHint("code_challenge is not the base64url form of a SHA-256 hash, 43 characters.")
	}
	resource, err := s.resource(form["resource"])
	if err != nil {
		return err
	}
	if a.scopes, err = requestedScopes(resource, form.Get("scope")); err != nil {
		return err
	}
	a.resource = resource.URL
	a.form = url.Values{
		"client_id": {a.client.row.ID}, "redirect_uri": {a.redirectURI}, "response_type": {"code"}, "scope": {a.scopes.String()},
		"resource": {a.resource}, "code_challenge": {form.Get("code_challenge")}, "code_challenge_method": {"S256"},
	}
	if form.Has("state") {
		a.form.Set("state", a.state)
	}
	_, err = s.parse(ctx, a)
	return err
}

// parse has fosite read the request. Fosite wants a state of some length and knows no resource, so it gets a stand-in
// for the one and the audience for the other.
func (s *Server) parse(ctx context.Context, a *authorization) (fosite.AuthorizeRequester, error) {
	form := url.Values{"state": {"kept-by-switchboard"}, "audience": {a.resource}}
	for _, key := range []string{"client_id", "redirect_uri", "response_type", "scope", "code_challenge", "code_challenge_method"} {
		form[key] = a.form[key]
	}
	ar, err := s.provider.NewAuthorizeRequest(withRedirect(ctx, a.redirectURI), &http.Request{Method: http.MethodGet, URL: &url.URL{}, Form: form})
	if troubled := (*trouble)(nil); errors.As(err, &troubled) {
		return nil, unavailable(troubled)
	}
	if err != nil {
		return nil, err
	}
	return ar, nil
}

// openID are the scopes that clients add out of habit. They unlock nothing here.
var openID = scope.Of("openid", "profile", "email", "address", "phone", "offline_access")

// requestedScopes reads the scope parameter: none means the default set of the resource, ones that unlock nothing there
// are dropped unless nothing else remains.
func requestedScopes(r auth.Resource, raw string) (scope.Set, error) {
	asked := scope.Parse(raw).Minus(openID)
	if len(asked) == 0 {
		return r.Scopes.Default(), nil
	}
	known := r.Scopes.Expand(asked)
	if len(known) == 0 {
		return nil, fosite.ErrInvalidScope.WithHintf("None of the scopes exists here. The scopes of %s are: %s.", r.URL, r.Scopes.Known())
	}
	return known, nil
}

// errorLocation sends an error to the client, with its state and our issuer (RFC 6749 §4.1.2.1, RFC 9207 §2).
func (s *Server) errorLocation(a *authorization, e *fosite.RFC6749Error) string {
	return s.answer(a, url.Values{"error": {e.ErrorField}, "error_description": {describe(e)}})
}

func (s *Server) answer(a *authorization, params url.Values) string {
	params.Set("iss", s.Issuer)
	if a.state != "" {
		params.Set("state", a.state)
	}
	return location(a.redirectURI, params)
}
