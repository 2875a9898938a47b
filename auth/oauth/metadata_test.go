package oauth

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"switchboard/internal/scope"
)

const serverDocument = `{"issuer":"https://switch.example","authorization_endpoint":"https://switch.example/oauth/authorize",` +
	`"token_endpoint":"https://switch.example/oauth/token","registration_endpoint":"https://switch.example/oauth/register",` +
	`"revocation_endpoint":"https://switch.example/oauth/revoke","introspection_endpoint":"https://switch.example/oauth/introspect",` +
	`"scopes_supported":["apps:read","apps:write","billing:read","contacts:read","contacts:write","org:read","org:write"],` +
	`"response_types_supported":["code"],"response_modes_supported":["query"],"grant_types_supported":["authorization_code","refresh_token"],` +
	`"code_challenge_methods_supported":["S256"],"token_endpoint_auth_methods_supported":["none","client_secret_basic","client_secret_post","private_key_jwt"],` +
	`"revocation_endpoint_auth_methods_supported":["none","client_secret_basic","client_secret_post","private_key_jwt"],` +
	`"introspection_endpoint_auth_methods_supported":["client_secret_basic","client_secret_post","private_key_jwt"],` +
	`"token_endpoint_auth_signing_alg_values_supported":` + algs + `,"revocation_endpoint_auth_signing_alg_values_supported":` + algs + `,` +
	`"introspection_endpoint_auth_signing_alg_values_supported":` + algs + `,"client_id_metadata_document_supported":true,` +
	`"authorization_response_iss_parameter_supported":true}` + "\n"

const algs = `["RS256","RS384","RS512","PS256","PS384","PS512","ES256","ES384","ES512","EdDSA"]`

const mcpDocument = `{"resource":"https://switch.example/mcp","authorization_servers":["https://switch.example"],` +
	`"scopes_supported":["contacts:read","contacts:write","org:read","org:write"],"bearer_methods_supported":["header"],"resource_name":"Switchboard"}` + "\n"

func TestMetadataIsWhereClientsLookAndAJSON404IsElsewhere(t *testing.T) {
	w := newWorld(t)
	const missing = `{"error":"not_found","error_description":"There is no such document. See https://switch.example/.well-known/oauth-authorization-server and oauth-protected-resource."}` + "\n"
	mailDocument := strings.NewReplacer("/mcp", "/mcp/mail", `"contacts:read","contacts:write",`, "", `"Switchboard"`, `"Switchboard mail"`).Replace(mcpDocument)
	for _, c := range []struct {
		path   string
		status int
		body   string
	}{
		{"/.well-known/oauth-authorization-server", 200, serverDocument},
		{"/.well-known/oauth-protected-resource", 200, mcpDocument},
		{"/.well-known/oauth-protected-resource/mcp", 200, mcpDocument},
		{"/.well-known/oauth-protected-resource/mcp/", 200, mcpDocument},
		{"/.well-known/oauth-protected-resource/mcp/mail", 200, mailDocument},
		{"/.well-known/oauth-protected-resource/mcp?x=1", 200, mcpDocument},
		{"/.well-known/oauth-protected-resource/", 404, missing},
		{"/.well-known/oauth-protected-resource/mcp/other", 404, missing},
		{"/.well-known/oauth-protected-resource/MCP", 404, missing},
		{"/.well-known/oauth-protected-resourcemcp", 404, missing},
		{"/.well-known/oauth-authorization-server/mcp", 404, missing},
		{"/.well-known/openid-configuration", 404, missing},
		{"/.well-known/openid-configuration/mcp", 404, missing},
		{"/.well-known/zzz", 404, missing},
		{"/.well-known/", 404, missing},
	} {
		get, head := w.send("GET", c.path, ""), w.send("HEAD", c.path, "")
		if get.Code != c.status || get.Body.String() != c.body {
			t.Errorf("GET %s: %d\n%s", c.path, get.Code, cmp.Diff(c.body, get.Body.String()))
		}
		if head.Code != c.status {
			t.Errorf("HEAD %s: %d", c.path, head.Code)
		}
		for _, rec := range []http.Header{get.Header(), head.Header()} {
			if rec.Get("Content-Type") != "application/json" || rec.Get("Access-Control-Allow-Origin") != "*" {
				t.Errorf("%s: headers %v", c.path, rec)
			}
		}
	}
}

func TestMetadataNamesTheSameIssuerEverywhereAndNothingEmpty(t *testing.T) {
	for _, document := range []string{serverDocument, mcpDocument} {
		noneIsEmpty(t, document)
	}
	var server struct {
		Issuer string
		Scopes []string `json:"scopes_supported"`
	}
	var protected struct {
		Servers []string `json:"authorization_servers"`
		Scopes  []string `json:"scopes_supported"`
	}
	for document, into := range map[string]any{serverDocument: &server, mcpDocument: &protected} {
		if err := json.Unmarshal([]byte(document), into); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff([]string{server.Issuer}, protected.Servers); diff != "" {
		t.Error(diff)
	}
	if !scope.Of(server.Scopes...).Contains(scope.Of(protected.Scopes...)) {
		t.Errorf("the resource's %v are not all among the server's %v", protected.Scopes, server.Scopes)
	}
}

// noneIsEmpty fails on a member that is null or "", however deep.
func noneIsEmpty(t testing.TB, document string) {
	t.Helper()
	var members map[string]any
	if err := json.Unmarshal([]byte(document), &members); err != nil {
		t.Fatalf("%v in %s", err, document)
	}
	if path := emptyIn(members); path != "" {
		t.Errorf("%s is null or empty in %s", path, document)
	}
}

// emptyIn is where a value holds null or "", "" for nowhere.
func emptyIn(value any) string {
	switch v := value.(type) {
	case nil:
		return "."
	case string:
		return map[bool]string{true: "."}[v == ""]
	case map[string]any:
		for name, member := range v {
			if path := emptyIn(member); path != "" {
				return "." + name + path
			}
		}
	case []any:
		for _, element := range v {
			if path := emptyIn(element); path != "" {
				return "[]" + path
			}
		}
	}
	return ""
}

func TestMetadataCanOnlyBeReadAndPreflightsAreAnswered(t *testing.T) {
	w := newWorld(t)
	for _, path := range []string{"/.well-known/oauth-authorization-server", "/.well-known/oauth-protected-resource/mcp"} {
		if rec := w.send("POST", path, "{}"); rec.Code != 405 || rec.Header().Get("Allow") != "GET, HEAD, OPTIONS" {
			t.Errorf("POST %s: %d %v", path, rec.Code, rec.Header())
		}
	}
	for _, path := range []string{"/.well-known/oauth-authorization-server", "/oauth/token", "/oauth/register", "/oauth/revoke", "/oauth/token/", "/token", "/register/"} {
		rec := w.send("OPTIONS", path, "", "Origin", "http://localhost:6274", "Access-Control-Request-Method", "POST", "Access-Control-Request-Headers", "content-type")
		if rec.Code != 204 || rec.Header().Get("Access-Control-Allow-Origin") != "*" || !strings.EqualFold(rec.Header().Get("Access-Control-Allow-Headers"), "content-type") {
			t.Errorf("preflight of %s: %d %v", path, rec.Code, rec.Header())
		}
	}
}

func TestEndpointsTakePOSTOnlyAndNeverRedirect(t *testing.T) {
	w := newWorld(t)
	for _, path := range []string{"/oauth/token", "/oauth/register", "/oauth/revoke", "/oauth/introspect", "/token", "/register"} {
		for _, slash := range []string{"", "/"} {
			for _, method := range []string{"GET", "HEAD", "PUT", "DELETE"} {
				rec := w.send(method, path+slash, "")
				if rec.Code != 405 || rec.Header().Get("Allow") != "POST, OPTIONS" || rec.Header().Get("Content-Type") != "application/json" || rec.Header().Get("Cache-Control") != "no-store" {
					t.Errorf("%s %s: %d %v", method, path+slash, rec.Code, rec.Header())
				}
			}
			if rec := w.send("POST", path+slash, "", "X-Forwarded-Proto", "http"); rec.Code != 400 {
				t.Errorf("POST %s: %d", path+slash, rec.Code)
			}
		}
	}
}

func TestAPageMayReadEveryAnswerOfThePublicEndpointsAndNoneOfIntrospection(t *testing.T) {
	w := newWorld(t)
	const registration = `{"redirect_uris":["http://localhost/cb"]}`
	form := func(path string, v url.Values, headers ...string) *httptest.ResponseRecorder {
		return w.send("POST", path, v.Encode(), append(headers, "Content-Type", "application/x-www-form-urlencoded", "Origin", "http://localhost:6274")...)
	}
	register := func(path, body string) *httptest.ResponseRecorder {
		return w.send("POST", path, body, "Content-Type", "application/json", "Origin", "http://localhost:6274")
	}
	revocation := func(changes ...string) url.Values {
		return with(url.Values{"token": {"sb_rt_x"}, "client_id": {w.desktop}}, changes...)
	}
	for _, c := range []struct {
		name   string
		rec    *httptest.ResponseRecorder
		status int
	}{
		{"registered", register("/oauth/register", registration), 201},
		{"registered at the root", register("/register", registration), 201},
		{"not registered", register("/oauth/register", "{}"), 400},
		{"exchanged", form("/oauth/token", w.exchangeForm(w.code("org:read"))), 200},
		{"exchanged at the root", form("/token", w.exchangeForm(w.code("org:read"))), 200},
		{"a bad grant", form("/oauth/token", w.exchangeForm("x")), 400},
		{"a bad client", form("/oauth/token", w.exchangeForm("x", "client_id", "cli_nobody")), 401},
		{"a bad method", w.send("GET", "/oauth/token", "", "Origin", "http://localhost:6274"), 405},
		{"revoked", form("/oauth/revoke", revocation()), 200},
		{"nothing to revoke", form("/oauth/revoke", revocation("token", "")), 400},
		{"revoked by nobody", form("/oauth/revoke", revocation("client_id", "cli_nobody")), 401},
	} {
		h := c.rec.Header()
		if c.rec.Code != c.status || h.Get("Access-Control-Allow-Origin") != "*" || h.Get("Access-Control-Allow-Credentials") != "" || !strings.Contains(h.Get("Access-Control-Expose-Headers"), "WWW-Authenticate") {
			t.Errorf("%s: %d %v", c.name, c.rec.Code, h)
		}
	}

	gateway, secret := w.made(w.org.ID, w.owner.ID)
	question := url.Values{"token": {w.tokens("org:read").Access}}
	for name, rec := range map[string]*httptest.ResponseRecorder{
		"preflight": w.send("OPTIONS", "/oauth/introspect", "", "Origin", "http://localhost:6274", "Access-Control-Request-Method", "POST", "Access-Control-Request-Headers", "authorization"),
		"success":   form("/oauth/introspect", question, "Authorization", basic(gateway, secret)),
		"error":     form("/oauth/introspect/", question),
	} {
		for header := range rec.Header() {
			if strings.HasPrefix(header, "Access-Control-") {
				t.Errorf("introspection, %s: %d with %s", name, rec.Code, header)
			}
		}
	}
}
