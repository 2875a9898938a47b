package oauth

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/go-jose/go-jose/v4"
	"github.com/google/go-cmp/cmp"

	"switchboard/internal/outbound"
	"switchboard/internal/trial"
)

// In a fuzzed request these words stand for ids, which differ from world to world.
const (
	anApp        = "DESKTOP"
	aStranger    = "STRANGER"
	aGoodRequest = "response_type=code&client_id=DESKTOP&redirect_uri=http%3A%2F%2F127.0.0.1%3A5555%2Fcallback&state=xyz&code_challenge=E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM&code_challenge_method=S256"
)

// inTheCorpus is what the corpus calls these things.
func inTheCorpus(name string) string {
	if rest, ok := strings.CutPrefix(name, "authorize"); ok {
		q, _ := url.ParseQuery(aGoodRequest)
		for _, without := range strings.Fields(rest) {
			q.Del(strings.TrimPrefix(without, "-"))
		}
		return q.Encode()
	}
	return map[string]string{"client": anApp, "stranger": aStranger, "escaped redirect": url.QueryEscape(redirect), "escaped url": url.QueryEscape(issuer)}[name]
}

func (w *world) named(s string) string {
	return strings.NewReplacer(anApp, w.desktop, aStranger, w.stranger).Replace(s)
}

// fuzzWorld is a world that a fuzz target can send any number of requests to.
func fuzzWorld(f *testing.F) *world {
	w := newWorld(f)
	w.server.Unlimited = true
	s := New(w.server.Config)
	w.server, w.mux = s, http.NewServeMux()
	s.Routes(w.mux)
	return w
}

// Whatever is asked, a browser is sent to the app at its registered address, with an error, its state and our iss; or a
// page says what is wrong; or the person is asked about exactly this app and address.
func FuzzAuthorizationRequests(f *testing.F) {
	for _, seed := range append(trial.Seeds(f, inTheCorpus, "authorize"), aGoodRequest) {
		f.Add(seed)
	}
	w := fuzzWorld(f)
	f.Fuzz(func(t *testing.T, raw string) {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/oauth/authorize", nil)
		r.URL.RawQuery = w.named(raw)
		q, _ := url.ParseQuery(r.URL.RawQuery)
		id, err := w.server.Begin(r, browser)
		var back *RedirectError
		var page *PageError
		switch {
		case errors.As(err, &back):
			to, err := url.Parse(back.Location)
			if err != nil {
				t.Fatalf("%q leads to %q", raw, back.Location)
			}
			got := to.Query()
			if to.Scheme != "http" || to.Hostname() != "127.0.0.1" || to.Path != "/callback" || to.User != nil || got.Get("error") == "" || got.Has("code") ||
				got.Get("iss") != issuer || got.Get("state") != q.Get("state") || len(got["state"]) > 1 {
				t.Errorf("%q leads to %q", raw, back.Location)
			}
		case errors.As(err, &page):
			if page.Status >= 500 && page.Reason != "document_unreachable" || page.Status < 400 {
				t.Errorf("%q: %d %v", raw, page.Status, err)
			}
		case err != nil:
			t.Errorf("%q: %v", raw, err)
		default:
			pending, err := w.server.Pending(t.Context(), id, browser)
			at, errURL := url.Parse(pending.RedirectURI)
			if err != nil || errURL != nil || at.Scheme != "http" || at.Hostname() != "127.0.0.1" || at.User != nil || at.EscapedPath() != "/callback" || at.RawQuery != "" || pending.Resource != resource && pending.Resource != mail || len(pending.Requested) == 0 {
				t.Errorf("%q asks about %+v %v", raw, pending, err)
			}
			if _, err := w.server.Pending(t.Context(), id, "another browser"); err == nil {
				t.Errorf("%q: another browser may answer", raw)
			}
		}
	})
}

// Whatever is posted, the answer is one that an OAuth client can read, and nobody without a code or a token gets one.
func FuzzFormsOfClients(f *testing.F) {
	for _, seed := range trial.Seeds(f, inTheCorpus, "token", "revoke", "introspect") {
		f.Add(seed, "")
		f.Add(seed, "Basic REVTS1RPUDo=") // DESKTOP:
	}
	w := fuzzWorld(f)
	f.Fuzz(func(t *testing.T, body, authorization string) {
		for _, path := range []string{"/oauth/token", "/oauth/revoke", "/oauth/introspect"} {
			r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, path, strings.NewReader(w.named(body)))
			r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
			if authorization != "" {
				r.Header.Set("Authorization", authorization)
			}
			rec := httptest.NewRecorder()
			w.mux.ServeHTTP(rec, r)
			if path == "/oauth/revoke" && rec.Code == http.StatusOK && rec.Body.Len() == 0 {
				continue // RFC 7009 §2.2
			}
			checkRefusal(t, path, body, rec)
		}
	})
}

// checkRefusal holds for every error answer of RFC 6749 §5.2.
func checkRefusal(t *testing.T, path, body string, rec *httptest.ResponseRecorder) {
	t.Helper()
	var said struct {
		Error       string `json:"error"`
		Description string `json:"error_description"`
	}
	err := json.Unmarshal(rec.Body.Bytes(), &said)
	inside := strings.ContainsFunc(said.Description, func(c rune) bool { return c < ' ' || c > '~' || c == '"' || c == '\\' })
	if err != nil || rec.Code != http.StatusBadRequest && rec.Code != http.StatusUnauthorized || said.Error == "" || said.Description == "" || inside ||
		rec.Header().Get("Cache-Control") != "no-store" || rec.Code == http.StatusUnauthorized && rec.Header().Get("WWW-Authenticate") == "" {
		t.Errorf("%s %q: %d %v %s", path, body, rec.Code, rec.Header(), rec.Body)
	}
}

// Whatever registers itself: what is answered can be registered again and comes out the same, and none of its addresses
// is one that no app may have.
func FuzzRegistrations(f *testing.F) {
	for _, seed := range append(trial.Seeds(f, inTheCorpus, "register"), `{"redirect_uris":["http://127.0.0.1/cb"],"client_name":"A","scope":"org:read","application_type":"native"}`) {
		f.Add(seed)
	}
	w := fuzzWorld(f)
	register := func(t *testing.T, body string) (rec *httptest.ResponseRecorder, out map[string]any) {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/oauth/register", strings.NewReader(body))
		r.Header.Set("Content-Type", "application/json")
		rec = httptest.NewRecorder()
		w.mux.ServeHTTP(rec, r)
		_ = json.Unmarshal(rec.Body.Bytes(), &out)
		return rec, out
	}
	f.Fuzz(func(t *testing.T, body string) {
		rec, out := register(t, body)
		if rec.Code != http.StatusCreated {
			checkRefusal(t, "/oauth/register", body, rec)
			return
		}
		if !utf8.ValidString(body) {
			t.Errorf("%q is no text and was registered", body)
		}
		for name, v := range out {
			if v == nil || v == "" {
				t.Errorf("%q: %s is %v, which clients refuse", body, name, v)
			}
		}
		uris, _ := out["redirect_uris"].([]any)
		if len(uris) == 0 || slices.ContainsFunc(uris, func(uri any) bool { return registrable(uri.(string)) != "" }) {
			t.Errorf("%q registered %v", body, uris)
		}
		again, _ := json.Marshal(out)
		rec, next := register(t, string(again))
		for _, own := range []string{"client_id", "client_secret", "client_id_issued_at"} {
			delete(out, own)
			delete(next, own)
		}
		if diff := cmp.Diff(out, next); rec.Code != http.StatusCreated || diff != "" {
			t.Errorf("%q, registered again: %d %s", body, rec.Code, diff)
		}
	})
}

// A document is about the address that it is at, holds no secret, and leaves addresses that can be served.
func FuzzDocumentsOfClients(f *testing.F) {
	const id = "https://app.example/client.json"
	for _, seed := range append(trial.Seeds(f, inTheCorpus, "register"), `{"redirect_uris":["http://127.0.0.1/cb"],"client_name":"A"}`) {
		f.Add(strings.Replace(seed, "{", `{"client_id":"https://other.example","client_name":"A",`, 1))
		f.Add(strings.Replace(seed, "{", `{"client_id":"`+id+`","client_name":"A",`, 1))
	}
	f.Fuzz(func(t *testing.T, body string) {
		m, err := readDocument(id, &outbound.Response{Status: 200, Header: http.Header{"Content-Type": {"application/json"}}, Body: []byte(body)}, HostPolicy{})
		if bad := (*badMetadata)(nil); err != nil {
			if !errors.As(err, &bad) || bad.problem == "" || bad.code == "" {
				t.Errorf("%q: %v", body, err)
			}
			return
		}
		bad := m.ClientName == "" || m.ClientName != cleanName(m.ClientName) || m.AuthMethod != byNothing && m.AuthMethod != byKey ||
			len(m.RedirectURIs) == 0 || slices.ContainsFunc(m.RedirectURIs, func(uri string) bool { return registrable(uri) != "" })
		if bad {
			t.Errorf("%q is read as %+v", body, m)
		}
		var members map[string]any
		if json.Unmarshal([]byte(body), &members) != nil || members["client_id"] != id || members["client_secret"] != nil {
			t.Errorf("%q was accepted", body)
		}
	})
}

// Keys that are kept are public, and are read again as the same keys.
func FuzzKeysOfClients(f *testing.F) {
	for _, seed := range trial.Seeds(f, inTheCorpus, "register") {
		if _, set, ok := strings.Cut(seed, `"jwks":`); ok {
			f.Add(strings.TrimSuffix(set, "}"))
		}
	}
	f.Add(`{"keys":[{"kty":"EC","crv":"P-256","x":"f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU","y":"x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0","kid":"1"}]}`)
	f.Add(`{"keys":[{"kty":"OKP","crv":"Ed25519","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"},{"kty":"oct","k":"AA"},{"kty":"XX","d":"AA"}]}`)
	f.Add(`{"keys":[{"kty":"OKP","crv":"Ed25519","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}]}`)
	f.Fuzz(func(t *testing.T, raw string) {
		keys, err := parseKeys([]byte(raw))
		if err != nil {
			return
		}
		var members struct{ Keys []map[string]any }
		_ = json.Unmarshal([]byte(raw), &members)
		if slices.ContainsFunc(members.Keys, func(k map[string]any) bool { return k["d"] != nil || k["k"] != nil || k["p"] != nil }) {
			t.Errorf("%q holds a secret and was accepted", raw)
		}
		if len(keys) == 0 || len(keys) > maxKeys || slices.ContainsFunc(keys, func(k jose.JSONWebKey) bool { return !k.IsPublic() || !k.Valid() }) {
			t.Errorf("%q is read as %v", raw, keys)
		}
		kept := keySet(keys)
		again, err := parseKeys(kept)
		if err != nil || string(keySet(again)) != string(kept) {
			t.Errorf("%q is kept as %s and read as %v %v", raw, kept, again, err)
		}
	})
}

// Credentials that are written as RFC 6749 §2.3.1 has it are read as they were, and nothing else is read at all.
func FuzzCredentialsOfClients(f *testing.F) {
	for _, seed := range []string{"Basic YTpi", "basic YTpi", "Basic  YTpi ", "Basic", "Basic !!!", "Basic YQ==", "Basic AGNhbmFyeQA6AA==", "Digest x", "Bearer sb_at_x"} {
		f.Add(seed, "id", "secret")
	}
	f.Add("", "https://app.example/c?a=b:c", "p+q %\x00\xff")
	f.Fuzz(func(t *testing.T, header, id, secret string) {
		written := "Basic " + base64.StdEncoding.EncodeToString([]byte(url.QueryEscape(id)+":"+url.QueryEscape(secret)))
		if gotID, gotSecret, err := basicCredentials(written); err != nil || gotID != id || gotSecret != secret {
			t.Errorf("%q %q was read as %q %q %v", id, secret, gotID, gotSecret, err)
		}
		gotID, gotSecret, err := basicCredentials(header)
		r := http.Request{Header: http.Header{"Authorization": {header}}}
		theirID, theirSecret, ok := r.BasicAuth()
		if plain := !strings.ContainsAny(theirID+theirSecret, "%+"); ok && plain && (err != nil || gotID != theirID || gotSecret != theirSecret) {
			t.Errorf("%q is %q %q %v here and %q %q for net/http", header, gotID, gotSecret, err, theirID, theirSecret)
		}
		claimed, err := readClaim(&r, url.Values{"client_id": {id}})
		if err == nil && header != "" && id != "" && claimed.id != id {
			t.Errorf("%q beside %q is %q", header, id, claimed.id)
		}
	})
}

// An assertion that nobody signed proves nothing, and naming an app by it is all that it does.
func FuzzAssertions(f *testing.F) {
	key := newSigner(f, jose.ES256, "1")
	good := key.sign("DESKTOP")
	for _, seed := range []string{good, good + "A", good[:len(good)-4], "..", "e30.e30.", "e30.e30.e30", "eyJhbGciOiJub25lIn0.e30.", "eyJhbGciOiJIUzI1NiJ9.e30.AA"} {
		f.Add(seed)
	}
	w := fuzzWorld(f)
	f.Fuzz(func(t *testing.T, assertion string) {
		form := url.Values{"client_assertion": {assertion}, "client_assertion_type": {assertionType}, "client_id": {w.desktop}, "grant_type": {"refresh_token"}, "refresh_token": {"x"}, "token": {"x"}}
		for _, path := range []string{"/oauth/token", "/oauth/introspect"} {
			r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, path, strings.NewReader(form.Encode()))
			r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
			rec := httptest.NewRecorder()
			w.mux.ServeHTTP(rec, r)
			checkRefusal(t, path, assertion, rec)
			if strings.Contains(rec.Body.String(), "invalid_grant") && assertion != "" {
				t.Errorf("%s: %q was taken for the word of the app: %s", path, assertion, rec.Body)
			}
		}
	})
}

// A resource that is written as the metadata has it stays as it is, and no spelling of one is another.
func FuzzResources(f *testing.F) {
	for _, seed := range []string{resource, resource + "/", "HTTPS://Switch.Example:443/mcp", mail, issuer, resource + "#", resource + "?a", "https://a@switch.example/mcp", "https://switch.example/%6dcp", "https://switch.example/x/../mcp", "//switch.example/mcp", "https://[::1]/mcp"} {
		f.Add(seed)
	}
	w := fuzzWorld(f)
	f.Fuzz(func(t *testing.T, raw string) {
		once := canonical(raw)
		if once != "" && canonical(once) != once {
			t.Errorf("%q becomes %q and then %q", raw, once, canonical(once))
		}
		found, err := w.server.resource([]string{raw})
		if err == nil && raw != "" && (strings.Contains(raw, "#") || found.URL != once || found.URL != resource && found.URL != mail) {
			t.Errorf("%q is %q", raw, found.URL)
		}
		if u, e := url.Parse(raw); err == nil && raw != "" && (e != nil || !strings.EqualFold(u.Hostname(), "switch.example") || u.User != nil) {
			t.Errorf("%q was taken for %q", raw, found.URL)
		}
	})
}
