package oauth

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func (w *world) register(body string) (int, map[string]any) {
	w.t.Helper()
	rec := w.send("POST", "/oauth/register", body, "Content-Type", "application/json")
	noneIsEmpty(w.t, rec.Body.String())
	var members map[string]any
	if err := json.Unmarshal(rec.Body.Bytes(), &members); err != nil {
		w.t.Fatal(err)
	}
	if rec.Header().Get("Content-Type") != "application/json" || rec.Header().Get("Cache-Control") != "no-store" || rec.Header().Get("Access-Control-Allow-Origin") != "*" {
		w.t.Errorf("headers %v", rec.Header())
	}
	return rec.Code, members
}

func strs(values ...string) []any {
	out := []any{}
	for _, v := range values {
		out = append(out, v)
	}
	return out
}

func TestARegistrationOfEveryKnownClientIsAnsweredAsItAsked(t *testing.T) {
	w := newWorld(t)
	const oneURI = `"redirect_uris":["http://127.0.0.1/callback"]`
	one := strs("http://127.0.0.1/callback")
	for _, c := range []struct {
		name, body string
		want       map[string]any // beside the members that every answer has
	}{
		{"Cursor", `{"client_name":"Cursor","application_type":"web","redirect_uris":["cursor://anysphere.cursor-mcp/oauth/callback","https://www.cursor.com/agents/mcp/oauth/callback","http://localhost:8787/callback"],"token_endpoint_auth_method":"none","grant_types":["authorization_code","refresh_token"],"response_types":["code"]}`,
			map[string]any{"client_name": "Cursor", "application_type": "web", "redirect_uris": strs(cursor...)}},
		{"VS Code", `{"client_name":"Visual Studio Code","redirect_uris":["https://insiders.vscode.dev/redirect","https://vscode.dev/redirect","http://127.0.0.1/","http://127.0.0.1:33418/"],"grant_types":["authorization_code","refresh_token","urn:ietf:params:oauth:grant-type:device_code"],"application_type":"native"}`,
			map[string]any{"client_name": "Visual Studio Code", "application_type": "native", "redirect_uris": strs(vsCode...)}},
		{"Claude", `{"client_name":"Claude","redirect_uris":["https://claude.ai/api/mcp/auth_callback","https://claude.com/api/mcp/auth_callback"],"token_endpoint_auth_method":"client_secret_post","scope":"contacts:read"}`,
			map[string]any{"client_name": "Claude", "scope": "contacts:read", "redirect_uris": strs(claude...), "token_endpoint_auth_method": "client_secret_post"}},
		{"ChatGPT", `{"client_name":"ChatGPT","redirect_uris":["https://chatgpt.com/connector/oauth/abc","https://chatgpt.com/connector_platform_oauth_redirect"],"token_endpoint_auth_method":"client_secret_basic"}`,
			map[string]any{"client_name": "ChatGPT", "redirect_uris": strs(chatGPT...), "token_endpoint_auth_method": "client_secret_basic"}},
		{"none", `{` + oneURI + `,"token_endpoint_auth_method":"none"}`, map[string]any{"redirect_uris": one}},
		{"post", `{` + oneURI + `,"token_endpoint_auth_method":"client_secret_post"}`, map[string]any{"redirect_uris": one, "token_endpoint_auth_method": "client_secret_post"}},
		{"basic", `{` + oneURI + `,"token_endpoint_auth_method":"client_secret_basic"}`, map[string]any{"redirect_uris": one, "token_endpoint_auth_method": "client_secret_basic"}},
		{"key", `{` + oneURI + `,"token_endpoint_auth_method":"private_key_jwt","jwks":` + ecKeys + `}`,
			map[string]any{"redirect_uris": one, "token_endpoint_auth_method": "private_key_jwt", "jwks": parsed(t, ecKeys)}},
		{"key at an address", `{` + oneURI + `,"token_endpoint_auth_method":"private_key_jwt","jwks_uri":"https://app.example/keys"}`,
			map[string]any{"redirect_uris": one, "token_endpoint_auth_method": "private_key_jwt", "jwks_uri": "https://app.example/keys"}},
		{"a key that is not asked for", `{` + oneURI + `,"token_endpoint_auth_method":"none","jwks":` + ecKeys + `}`, map[string]any{"redirect_uris": one}},
		{"a server that says nothing", `{"redirect_uris":["https://app.example/cb"]}`,
			map[string]any{"redirect_uris": strs("https://app.example/cb"), "token_endpoint_auth_method": "client_secret_basic"}},
		{"a native app that says nothing", `{"redirect_uris":["https://app.example/cb"],"application_type":"native"}`,
			map[string]any{"redirect_uris": strs("https://app.example/cb"), "application_type": "native"}},
		{"nothing but redirects", `{` + oneURI + `}`, map[string]any{"redirect_uris": one}},
		{"unknown members", `{` + oneURI + `,"software_id":"s-1","x_foo":{"a":[1]},"contacts":[],"jwks":null}`, map[string]any{"redirect_uris": one, "software_id": "s-1"}},
		{"null members", `{` + oneURI + `,"client_name":null,"scope":null,"client_uri":null,"grant_types":null,"token_endpoint_auth_method":null}`, map[string]any{"redirect_uris": one}},
		{"empty members", `{` + oneURI + `,"client_name":"","client_uri":"","scope":"","software_version":""}`, map[string]any{"redirect_uris": one}},
		{"members in another case", `{` + oneURI + `,"Redirect_uris":["https://evil.example/cb"],"REDIRECT_URIS":["javascript:x"],"Client_Name":"Claude"}`, map[string]any{"redirect_uris": one}},
		{"members in letters that fold", `{` + oneURI + `,"redirect_uriſ":["https://evil.example/cb"],"ſcope":"admin","toKen_endpoint_auth_method":"none","jwKſ":{}}`,
			map[string]any{"redirect_uris": one}},
		{"a member that comes twice", `{"redirect_uris":["https://evil.example/cb"],` + oneURI + `}`, map[string]any{"redirect_uris": one}},
		{"a name in disguise", `{` + oneURI + `,"client_name":" a\u0000\u202e\u200b b\n\u2028c "}`, map[string]any{"redirect_uris": one, "client_name": "a bc"}},
		{"a name that is markup", `{` + oneURI + `,"client_name":"<b>Claude</b>"}`, map[string]any{"redirect_uris": one, "client_name": "<b>Claude</b>"}},
	} {
		status, got := w.register(c.body)
		if id, ok := got["client_id"].(string); !ok || !strings.HasPrefix(id, "cli_") {
			t.Errorf("%s: client_id %v", c.name, got["client_id"])
		}
		if at, ok := got["client_id_issued_at"].(float64); !ok || at <= 0 {
			t.Errorf("%s: client_id_issued_at %v", c.name, got["client_id_issued_at"])
		}
		delete(got, "client_id")
		delete(got, "client_id_issued_at")
		c.want["grant_types"], c.want["response_types"] = strs("authorization_code", "refresh_token"), strs("code")
		if c.want["token_endpoint_auth_method"] == nil {
			c.want["token_endpoint_auth_method"] = "none"
		}
		secret, _ := got["client_secret"].(string)
		if strings.HasPrefix(c.want["token_endpoint_auth_method"].(string), "client_secret_") {
			c.want["client_secret"], c.want["client_secret_expires_at"] = secret, 0.0
			if !strings.HasPrefix(secret, secretPrefix) || len(secret) != len(secretPrefix)+43 {
				t.Errorf("%s: the secret is %q", c.name, secret)
			}
		}
		if diff := cmp.Diff(c.want, got); status != http.StatusCreated || diff != "" {
			t.Errorf("%s: %d\n%s", c.name, status, diff)
		}
	}
}

// ecKeys is a set with one public key, the one of RFC 7517 appendix A.1.
const ecKeys = `{"keys":[{"kty":"EC","crv":"P-256","x":"MKBCTNIcKUSDii11ySs3526iDZ8AiTo7Tu6KPAqv7D4","y":"4Etl6SRW2YiLUrN5vfvVHuhp7x8PxltmWWlbbM4IFyM","use":"sig","kid":"1"}]}`

func parsed(t *testing.T, text string) (v any) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatal(err)
	}
	return v
}

func TestEachRegisteredRedirectWorksAtAuthorize(t *testing.T) {
	w := newWorld(t)
	for _, uris := range [][]string{cursor, vsCode, claude, chatGPT, claudeCode} {
		id := w.client("App", uris...)
		for _, uri := range uris {
			request := w.mustBegin(query(id, "redirect_uri", uri))
			location, err := w.server.Decide(t.Context(), request, browser, w.yes("contacts:read"))
			if err != nil || !strings.HasPrefix(location, uri+"?") || answerIn(t, location).Get("code") == "" {
				t.Errorf("%s: %s %v", uri, location, err)
			}
		}
	}
}

func TestARegistrationThatCannotBeServedIsRefused(t *testing.T) {
	w := newWorld(t)
	uri := func(s string) string { return `{"redirect_uris":["https://ok.example/cb",` + strconv.Quote(s) + `]}` }
	method := func(m string) string {
		return `{"redirect_uris":["https://ok.example/cb"],"token_endpoint_auth_method":"` + m + `"`
	}
	for _, c := range []struct{ body, code string }{
		{uri("javascript:alert(1)"), "invalid_redirect_uri"},
		{uri("JavaScript:alert(1)"), "invalid_redirect_uri"},
		{uri("data:text/html,x"), "invalid_redirect_uri"},
		{uri("file:///x"), "invalid_redirect_uri"},
		{uri("blob:https://ok.example/1"), "invalid_redirect_uri"},
		{uri("ms-msdt:/id"), "invalid_redirect_uri"},
		{uri("search-ms:query=a"), "invalid_redirect_uri"},
		{uri("x-apple.systempreferences:com.apple"), "invalid_redirect_uri"},
		{uri("feed:javascript:alert(1)"), "invalid_redirect_uri"},
		{uri("vbscript:x"), "invalid_redirect_uri"},
		{uri("about:blank"), "invalid_redirect_uri"},
		{uri("view-source:https://ok.example"), "invalid_redirect_uri"},
		{uri("intent://x"), "invalid_redirect_uri"},
		{uri("chrome://settings"), "invalid_redirect_uri"},
		{uri("chrome-extension://x/y"), "invalid_redirect_uri"},
		{uri("ws://localhost/x"), "invalid_redirect_uri"},
		{uri("wss://ok.example/x"), "invalid_redirect_uri"},
		{uri("ftp://ok.example/x"), "invalid_redirect_uri"},
		{uri("mailto:a@b.example"), "invalid_redirect_uri"},
		{uri("tel:+1"), "invalid_redirect_uri"},
		{uri("sms:+1"), "invalid_redirect_uri"},
		{uri("http://evil.example/cb"), "invalid_redirect_uri"},
		{uri("http://localhost.evil.example/cb"), "invalid_redirect_uri"},
		{uri("http://127.0.0.2/cb"), "invalid_redirect_uri"},
		{uri("https://ok.example/cb#f"), "invalid_redirect_uri"},
		{uri("https://ok.example/cb#"), "invalid_redirect_uri"},
		{uri("https://u:p@ok.example/cb"), "invalid_redirect_uri"},
		{uri("https://@ok.example/cb"), "invalid_redirect_uri"},
		{uri("https:///cb"), "invalid_redirect_uri"},
		{uri("https:cb"), "invalid_redirect_uri"},
		{uri("http:cb"), "invalid_redirect_uri"},
		{uri("/cb"), "invalid_redirect_uri"},
		{uri("//ok.example/cb"), "invalid_redirect_uri"},
		{uri("https://ok.example/a b"), "invalid_redirect_uri"},
		{uri("https://ok.example/\n"), "invalid_redirect_uri"},
		{uri(`https://ok.example\@evil.example/`), "invalid_redirect_uri"},
		{uri("https://ok.example:x/"), "invalid_redirect_uri"},
		{uri("https://ök.example/"), "invalid_redirect_uri"},
		{uri("https://ok.example/" + strings.Repeat("a", 2048)), "invalid_redirect_uri"},
		{uri(""), "invalid_redirect_uri"},
		{`{}`, "invalid_redirect_uri"},
		{`{"redirect_uris":[]}`, "invalid_redirect_uri"},
		{`{"redirect_uris":null}`, "invalid_redirect_uri"},
		{`{"redirect_uris":[null]}`, "invalid_redirect_uri"},
		{`{"redirect_uris":"https://ok.example/cb"}`, "invalid_redirect_uri"},
		{`{"redirect_uris":[1]}`, "invalid_redirect_uri"},
		{`{"redirect_uris":[` + strings.Repeat(`"https://ok.example/cb",`, 20) + `"https://ok.example/cb"]}`, "invalid_redirect_uri"},
		{`{"Redirect_uris":["https://ok.example/cb"]}`, "invalid_redirect_uri"},
		{`{"redirect_uris":["https://ok.example/cb"],"client_name":5}`, "invalid_client_metadata"},
		{method("x"), "invalid_client_metadata"},
		{method("client_secret_jwt"), "invalid_client_metadata"},
		{method("tls_client_auth"), "invalid_client_metadata"},
		{method("private_key_jwt"), "invalid_client_metadata"},
		{method("private_key_jwt") + `,"jwks_uri":"http://ok.example/keys"`, "invalid_client_metadata"},
		{method("private_key_jwt") + `,"jwks":{"keys":[]}`, "invalid_client_metadata"},
		{method("private_key_jwt") + `,"jwks":"x"`, "invalid_client_metadata"},
		{method("private_key_jwt") + `,"jwks":` + strings.Replace(ecKeys, `"keys"`, `"Keys"`, 1), "invalid_client_metadata"},
		{method("private_key_jwt") + `,"jwks":` + strings.Replace(ecKeys, `{"keys"`, `{"keys":[],"KEYS"`, 1), "invalid_client_metadata"},
		{method("private_key_jwt") + `,"jwks":` + strings.Replace(ecKeys, `"keys"`, `"Keys"`, 1), "invalid_client_metadata"},
		{method("private_key_jwt") + `,"JWKS":` + ecKeys, "invalid_client_metadata"},
		{method("private_key_jwt") + `,"jwks":{"keys":[{"kty":"oct","k":"c2VjcmV0"}]}`, "invalid_client_metadata"},
		{method("private_key_jwt") + `,"jwks":` + strings.Replace(ecKeys, `"x"`, `"d":"AAAA","x"`, 1), "invalid_client_metadata"},
		{method("private_key_jwt") + `,"jwks":{"keys":[{"kty":"RSA","e":"AQAB","n":"` + strings.Repeat("A", 40) + `"}]}`, "invalid_client_metadata"},
		{method("private_key_jwt") + `,"jwks":` + ecKeys + `,"jwks_uri":"https://ok.example/keys"`, "invalid_client_metadata"},
		{`{"redirect_uris":["https://ok.example/cb"],"x":"` + strings.Repeat("a", 64<<10) + `"}`, "invalid_client_metadata"},
		{"{\"redirect_uris\":[\"https://ok.example/cb\"],\"x\":\"\xff\"}", "invalid_client_metadata"},
		{`[]`, "invalid_client_metadata"},
		{`null`, "invalid_client_metadata"},
		{``, "invalid_client_metadata"},
		{`{"redirect_uris":["https://ok.example/cb"]} {}`, "invalid_client_metadata"},
		{`redirect_uris=https://ok.example/cb`, "invalid_client_metadata"},
	} {
		if strings.Contains(c.body, "_method") { // they are opened by method
			c.body += "}"
		}
		status, got := w.register(c.body)
		if description, _ := got["error_description"].(string); status != 400 || got["error"] != c.code || description == "" || len(got) != 2 {
			t.Errorf("%.80s: %d %v", c.body, status, got)
		}
	}
	rec := w.send("POST", "/oauth/register", `{"redirect_uris":["https://ok.example/cb"]}`, "Content-Type", "text/plain")
	if rec.Code != 400 {
		t.Errorf("a registration as text/plain: %d", rec.Code)
	}
	if n := w.count(`SELECT count(*) FROM clients`); n != 2 {
		t.Errorf("%d clients, want the two of the world", n)
	}
}

func TestOfKeysOnlyWhatIsOfUseIsKept(t *testing.T) {
	w := newWorld(t)
	padded := strings.Replace(ecKeys, `"use":"sig"`, `"use":"sig","pad":"`+strings.Repeat("p", 40000)+`"`, 1)
	status, got := w.register(`{"redirect_uris":["http://127.0.0.1/callback"],"token_endpoint_auth_method":"private_key_jwt","jwks":` + padded + `}`)
	if diff := cmp.Diff(parsed(t, ecKeys), got["jwks"]); status != http.StatusCreated || diff != "" {
		t.Errorf("%d\n%s", status, diff)
	}
	if n := w.count(`SELECT max(length(metadata) + length(jwks)) FROM clients`); n > 2000 {
		t.Errorf("the row holds %d characters", n)
	}
}

func TestABurstOfRegistrationsPassesAndAFloodIsTold(t *testing.T) {
	w := newWorld(t)
	from := func(ip string) (code, wait int, body string) {
		rec := w.sendFrom(ip, "POST", "/oauth/register", `{"redirect_uris":["http://localhost/cb"]}`, "Content-Type", "application/json")
		wait, _ = strconv.Atoi(rec.Header().Get("Retry-After"))
		if rec.Header().Get("Access-Control-Allow-Origin") != "*" || rec.Header().Get("Content-Type") != "application/json" {
			t.Errorf("%d with %v", rec.Code, rec.Header())
		}
		return rec.Code, wait, rec.Body.String()
	}
	refused := 0
	for i := range 300 {
		code, wait, body := from("192.0.2.7:4000")
		switch {
		case i < 60 && code != 201:
			t.Fatalf("registration %d of a burst: %d %s", i+1, code, body)
		case code == 429:
			refused++
			var got struct {
				Error       string
				Description string `json:"error_description"`
			}
			if err := json.Unmarshal([]byte(body), &got); err != nil || got.Error == "" || got.Description == "" || wait < 1 {
				t.Fatalf("the flood is told %q, Retry-After %d, %v", body, wait, err)
			}
		}
	}
	if refused < 200 {
		t.Errorf("%d of 300 registrations were refused", refused)
	}
	if code, _, _ := from("192.0.2.8:4000"); code != 201 {
		t.Errorf("another address pays for the flood: %d", code)
	}
	for i := range 61 { // an IPv6 client owns a /64
		if code, _, _ := from(fmt.Sprintf("[2001:db8::%x]:4000", i+1)); (code == 201) != (i < 60) {
			t.Errorf("registration %d from one /64: %d", i+1, code)
		}
	}
}
