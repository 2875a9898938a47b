package oauth

import (
	"context"
	"crypto/sha512"
	"errors"
	"net/http"
	"net/url"
	"time"

	"github.com/go-jose/go-jose/v3"
	"github.com/hashicorp/go-retryablehttp"
	"github.com/ory/fosite"
)

// compose builds the fosite provider. Every field that fosite would fill in lazily is set: its getters write the
// configuration, which is a data race.
func (s *Server) compose() *fosite.Fosite {
	codes, refreshes := &codeGrant{grantHandler{s, "authorization_code"}}, &refreshGrant{grantHandler{s, "refresh_token"}}
	cfg := &fosite.Config{
		AccessTokenLifespan:          s.Access,
		RefreshTokenLifespan:         s.Refresh,
		AuthorizeCodeLifespan:        s.Code,
		EnforcePKCE:                  true,
		ScopeStrategy:                fosite.ExactScopeStrategy,
		AudienceMatchingStrategy:     fosite.ExactAudienceMatchingStrategy, // the default one matches prefixes
		MinParameterEntropy:          1,
		RefreshTokenScopes:           []string{}, // nil would tie refresh tokens to offline_access
		TokenURL:                     s.Issuer + "/oauth/token",
		TokenEntropy:                 32,
		RedirectSecureChecker:        fosite.IsRedirectURISecure,
		HMACHasher:                   sha512.New512_256,
		JWKSFetcherStrategy:          noJWKS{},
		ClientAuthenticationStrategy: s.authenticate,
		HTTPClient:                   retryablehttp.NewClient(),
		ClientSecretsHasher:          noSecrets{},
		AllowedPromptValues:          []string{"login", "none", "consent", "select_account"},
		SanitationWhiteList:          []string{},
		FormPostHTMLTemplate:         fosite.DefaultFormPostTemplate,
		TokenEndpointHandlers:        fosite.TokenEndpointHandlers{codes, refreshes},
		AuthorizeEndpointHandlers:    fosite.AuthorizeEndpointHandlers{codes},
		RevocationHandlers:           fosite.RevocationHandlers{&revocation{s}},
		TokenIntrospectionHandlers:   fosite.TokenIntrospectionHandlers{},
	}
	return fosite.NewOAuth2Provider(&clients{s}, cfg)
}

// noJWKS fetches nothing: the keys of clients are read in clientkeys.go, and fosite's default fetcher would reach out
// unguarded and start goroutines that never end.
type noJWKS struct{}

func (noJWKS) Resolve(context.Context, string, bool) (*jose.JSONWebKeySet, error) {
	return nil, errors.New("fosite fetches no keys")
}

// noSecrets matches nothing: secrets are compared in authenticate.go.
type noSecrets struct{}

func (noSecrets) Compare(context.Context, []byte, []byte) error {
	return errors.New("fosite compares no secrets")
}

func (noSecrets) Hash(context.Context, []byte) ([]byte, error) {
	return nil, errors.New("fosite compares no secrets")
}

// session carries what the handlers of one request tell each other through fosite.
type session struct {
	fosite.DefaultSession
	decided *decided // Decide → codeGrant: what the person allowed
	issued  *issued  // handle → populate: the token answer
}

// Clone implements fosite.Session.
func (s *session) Clone() fosite.Session { c := *s; return &c }

// decided is a person's answer on its way into a code.
type decided struct {
	requestID string // the secret of the consent request; the code is derived from it
	grantID   string
}

// issued is a pair of tokens on its way to the client.
type issued struct {
	access, refresh string
	scope           []string
	expires         time.Time // of the access token
}

func (i *issued) write(resp fosite.AccessResponder) {
	resp.SetAccessToken(i.access)
	resp.SetTokenType("Bearer")
	resp.SetExpiresIn(max(0, time.Until(i.expires).Round(time.Second)))
	resp.SetScopes(i.scope)
	resp.SetExtra("refresh_token", i.refresh)
}

// trouble is an error of ours, not of the client's. Fosite writes it as the client's, invalid_client for one whose row
// could not be read, and a client then drops its registration; it keeps it in the error's chain, though, where
// writeFailure finds it.
type trouble struct{ err error }

func (t *trouble) Error() string { return t.err.Error() }
func (t *trouble) Unwrap() error { return t.err }

type redirectKey struct{}

// withRedirect hands the redirect URI that was asked for to GetClient.
func withRedirect(ctx context.Context, uri string) context.Context {
	return context.WithValue(ctx, redirectKey{}, uri)
}

func redirectOf(ctx context.Context) string {
	uri, _ := ctx.Value(redirectKey{}).(string)
	return uri
}

// formRequest is a request that holds exactly this form, for fosite to parse. Of the one that it came with it has what
// authenticates a client and says where it is.
func formRequest(from *http.Request, form url.Values) *http.Request {
	header := http.Header{}
	if values := from.Header.Values("Authorization"); len(values) > 0 {
		header["Authorization"] = values
	}
	r := &http.Request{Method: http.MethodPost, URL: &url.URL{}, Header: header, Form: form, PostForm: form, RemoteAddr: from.RemoteAddr}
	return r.WithContext(from.Context())
}
