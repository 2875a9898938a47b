package oauth

import (
	"net/http"
	"net/url"
	"strings"

	"switchboard/auth"
	"switchboard/internal/scope"
	"switchboard/internal/web"
)

// serverMetadata is RFC 8414 §2. It names what works and nothing else.
type serverMetadata struct {
	Issuer                string    `json:"issuer"`
	AuthorizationEndpoint string    `json:"authorization_endpoint"`
	TokenEndpoint         string    `json:"token_endpoint"`
	RegistrationEndpoint  string    `json:"registration_endpoint"`
	RevocationEndpoint    string    `json:"revocation_endpoint"`
	IntrospectionEndpoint string    `json:"introspection_endpoint"`
	ScopesSupported       scope.Set `json:"scopes_supported"`
	ResponseTypes         []string  `json:"response_types_supported"`
	ResponseModes         []string  `json:"response_modes_supported"`
	GrantTypes            []string  `json:"grant_types_supported"`
	ChallengeMethods      []string  `json:"code_challenge_methods_supported"`
	TokenAuthMethods      []string  `json:"token_endpoint_auth_methods_supported"`
	RevocationAuthMethods []string  `json:"revocation_endpoint_auth_methods_supported"`
	IntrospectionMethods  []string  `json:"introspection_endpoint_auth_methods_supported"`
	TokenAuthAlgs         []string  `json:"token_endpoint_auth_signing_alg_values_supported"`
	RevocationAuthAlgs    []string  `json:"revocation_endpoint_auth_signing_alg_values_supported"`
	IntrospectionAlgs     []string  `json:"introspection_endpoint_auth_signing_alg_values_supported"`
	DocumentsSupported    bool      `json:"client_id_metadata_document_supported"`
	IssParameterSupported bool      `json:"authorization_response_iss_parameter_supported"`
}

// resourceMetadata is RFC 9728 §2.
type resourceMetadata struct {
	Resource             string    `json:"resource"`
	AuthorizationServers []string  `json:"authorization_servers"`
	ScopesSupported      scope.Set `json:"scopes_supported"`
	BearerMethods        []string  `json:"bearer_methods_supported"`
	Name                 string    `json:"resource_name"`
}

const wellKnown = "/.well-known/"

// wellKnown serves everything under /.well-known: the two documents that exist, and a JSON 404 for whatever else
// clients probe. A page in HTML there has kept clients from ever signing in.
func (s *Server) wellKnown(w http.ResponseWriter, r *http.Request) {
	document := s.document(strings.TrimPrefix(r.URL.Path, wellKnown))
	switch {
	case document == nil:
		w.Header().Set("Cache-Control", "no-store")
		web.JSON(w, http.StatusNotFound, map[string]string{
			"error":             "not_found",
			"error_description": "There is no such document. See " + s.Issuer + wellKnown + "oauth-authorization-server and oauth-protected-resource.",
		})
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		w.Header().Set("Allow", "GET, HEAD, OPTIONS")
		writeError(w, http.StatusMethodNotAllowed, "invalid_request", "This document can only be read.")
	default:
		w.Header().Set("Cache-Control", "public, max-age=300")
		web.JSON(w, http.StatusOK, document)
	}
}

// document is the one under a name, nil for none. Metadata of a protected resource is at the path form of RFC 9728
// §3.1 and, for clients that look there, at the root for the default resource. Metadata of the server is not at a
// path of the resource: RFC 8414 §3.3 has clients reject an issuer that the URL does not spell.
func (s *Server) document(name string) any {
	switch name {
	case "oauth-authorization-server":
		return s.serverMetadata()
	case "oauth-protected-resource":
		return s.resourceMetadata(s.Resources[0])
	}
	path, ok := strings.CutPrefix(name, "oauth-protected-resource/")
	for _, resource := range s.Resources {
		if u, err := url.Parse(resource.URL); ok && err == nil && u.Path == "/"+strings.TrimSuffix(path, "/") {
			return s.resourceMetadata(resource)
		}
	}
	return nil
}

func (s *Server) serverMetadata() serverMetadata {
	algs := []string{}
	for _, a := range assertionAlgs {
		algs = append(algs, string(a))
	}
	return serverMetadata{
		Issuer: s.Issuer, AuthorizationEndpoint: s.Issuer + "/oauth/authorize", TokenEndpoint: s.Issuer + "/oauth/token",
		RegistrationEndpoint: s.Issuer + "/oauth/register", RevocationEndpoint: s.Issuer + "/oauth/revoke", IntrospectionEndpoint: s.Issuer + "/oauth/introspect",
		ScopesSupported: s.Scopes.Known(), ResponseTypes: []string{"code"}, ResponseModes: []string{"query"}, GrantTypes: grantTypes,
		ChallengeMethods: []string{"S256"}, TokenAuthMethods: authMethods, RevocationAuthMethods: authMethods, IntrospectionMethods: provingMethods,
		TokenAuthAlgs: algs, RevocationAuthAlgs: algs, IntrospectionAlgs: algs,
		DocumentsSupported: !s.ClientHosts.admitsNone(), IssParameterSupported: true,
	}
}

func (s *Server) resourceMetadata(r auth.Resource) resourceMetadata {
	return resourceMetadata{
		Resource: r.URL, AuthorizationServers: []string{s.Issuer}, ScopesSupported: r.Scopes.Default(), BearerMethods: []string{"header"}, Name: r.Name,
	}
}
