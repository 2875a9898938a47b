package auth

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"

	"switchboard/internal/fault"
	"switchboard/internal/scope"
	"switchboard/internal/web"
)

// Challenge answers a request that Authenticate refused: 401 with the challenge of RFC 6750 §3 and RFC 9728 §5.1
// when its credentials are missing or bad, 503 when nobody could tell.
func (a *Auth) Challenge(w http.ResponseWriter, resource string, err error) {
	var unauthorized *Unauthorized
	if !errors.As(err, &unauthorized) {
		if !errors.Is(err, context.Canceled) {
			a.Log.Error("caller not looked up", "request", w.Header().Get(web.RequestIDHeader), "err", err)
		}
		w.Header().Set("Retry-After", "2")
		web.Fault(w, fault.New(fault.Unavailable, "The server cannot reach its database. Your sign-in is still good: try again in a moment."))
		return
	}
	params := []string{}
	message := "Sign in first: send an access token or an API key as \"Authorization: Bearer …\"."
	if unauthorized.Reason != "" {
		params = append(params, "error", "invalid_token", "error_description", "The token is not valid: "+unauthorized.Reason+".")
		message = "The token is not valid: " + unauthorized.Reason + ". Refresh it or sign in again."
	}
	params = append(params, "resource_metadata", a.metadataURL(resource), "scope", a.resource(resource).Scopes.Default().String())
	w.Header().Set("WWW-Authenticate", challenge(params...))
	web.Fault(w, fault.New(fault.Unauthorized, "%s", message))
}

// ScopeChallenge is the WWW-Authenticate value of a 403: all that is needed at once, together with what the grant
// has, so that a client that asks for exactly this loses nothing.
func (a *Auth) ScopeChallenge(resource string, have, need scope.Set, description string) string {
	return challenge("error", "insufficient_scope", "scope", have.Union(need).String(),
		"resource_metadata", a.metadataURL(resource), "error_description", description)
}

// metadataURL is where RFC 9728 §3.1 puts the metadata of a resource: between the host and the path.
func (a *Auth) metadataURL(resource string) string {
	u, err := url.Parse(resource)
	if err != nil {
		return a.Issuer + "/.well-known/oauth-protected-resource"
	}
	return a.Issuer + "/.well-known/oauth-protected-resource" + u.EscapedPath()
}

// challenge writes auth-params as quoted strings (RFC 9110 §11.2).
func challenge(params ...string) string {
	parts := []string{}
	for i := 0; i < len(params); i += 2 {
		parts = append(parts, params[i]+`="`+Plain(params[i+1])+`"`)
	}
	return "Bearer " + strings.Join(parts, ", ")
}

// Plain keeps a text inside the characters that an error description may have (RFC 6749 §5.2, RFC 6750 §3): printable
// ASCII without quotes and backslashes.
func Plain(s string) string {
	s = strings.NewReplacer(`"`, "'", `\`, "/", "…", "...", "\n", " ", "\r", " ").Replace(s)
	return strings.Map(func(c rune) rune {
		if c < ' ' || c > '~' {
			return '?'
		}
		return c
	}, s)
}
