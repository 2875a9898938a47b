package oauth

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
)

// confidential registers an app that authenticates.
func (w *world) confidential(method string, more ...string) (id, secret string) {
	w.t.Helper()
	extra := strings.Join(append(more, `"client_name":"Server"`), ",")
	status, got := w.register(`{"redirect_uris":["http://127.0.0.1/callback"],"token_endpoint_auth_method":"` + method + `",` + extra + `}`)
	if status != http.StatusCreated {
		w.t.Fatalf("registering: %d %v", status, got)
	}
	secret, _ = got["client_secret"].(string)
	return got["client_id"].(string), secret
}

// codeFor takes a request of a client through consent.
func (w *world) codeFor(client, scopes string) string {
	w.t.Helper()
	answer, err := w.decide(w.mustBegin(query(client, "scope", scopes)), w.yes(scopes))
	if err != nil || answer.Get("code") == "" {
		w.t.Fatalf("no code: %v %v", answer, err)
	}
	return answer.Get("code")
}

func basic(id, secret string) string {
	return "Basic " + base64.StdEncoding.EncodeToString([]byte(id+":"+secret))
}

// ask sends a form with an Authorization header, "" for none.
func (w *world) ask(path, authorization string, form url.Values) answer {
	headers := []string{"Content-Type", "application/x-www-form-urlencoded"}
	if authorization != "" {
		headers = append(headers, "Authorization", authorization)
	}
	rec := w.send("POST", path, form.Encode(), headers...)
	a := answer{Status: rec.Code}
	if rec.Body.Len() > 0 {
		if err := json.Unmarshal(rec.Body.Bytes(), &a); err != nil {
			w.t.Errorf("%s answered %d %q", path, rec.Code, rec.Body)
		}
		noneIsEmpty(w.t, rec.Body.String())
	}
	if rec.Code == http.StatusUnauthorized && !strings.HasPrefix(rec.Header().Get("WWW-Authenticate"), "Basic ") {
		w.t.Errorf("%s: a 401 without the challenge of RFC 6749 §5.2", path)
	}
	return a
}

func TestASecretIsGoodInTheHeaderAndInTheFormAndNothingElseIs(t *testing.T) {
	w := newWorld(t)
	id, secret := w.confidential("client_secret_basic")
	other, _ := w.confidential("client_secret_post")
	encoded := strings.ReplaceAll(id, "_", "%5F")
	tokens := w.ask("/oauth/token", basic(id, secret), w.exchangeForm(w.codeFor(id, "org:read"), "client_id", ""))
	if tokens.Status != 200 {
		t.Fatalf("%+v", tokens)
	}
	form := func(changes ...string) url.Values {
		return with(url.Values{"grant_type": {"refresh_token"}, "refresh_token": {tokens.Refresh}}, changes...)
	}
	for name, c := range map[string]struct {
		header string
		form   url.Values
		want   answer
	}{
		"nobody":                      {"", form(), refusal(400, "invalid_request")},
		"no secret":                   {"", form("client_id", id), refusal(401, "invalid_client")},
		"an empty secret":             {basic(id, ""), form(), refusal(401, "invalid_client")},
		"a wrong secret":              {basic(id, secret+"x"), form(), refusal(401, "invalid_client")},
		"a wrong secret in the form":  {"", form("client_id", id, "client_secret", "sb_cs_x"), refusal(401, "invalid_client")},
		"another's secret":            {basic(other, secret), form(), refusal(401, "invalid_client")},
		"a hash for the secret":       {basic(id, w.server.Secrets.Hash(secret)), form(), refusal(401, "invalid_client")},
		"two ways":                    {basic(id, secret), form("client_secret", secret), refusal(400, "invalid_request")},
		"two clients":                 {basic(id, secret), form("client_id", other), refusal(400, "invalid_request")},
		"Bearer":                      {"Bearer " + secret, form("client_id", id), refusal(400, "invalid_request")},
		"no colon":                    {"Basic " + base64.StdEncoding.EncodeToString([]byte(id)), form(), refusal(400, "invalid_request")},
		"no base64":                   {"Basic %%%", form(), refusal(400, "invalid_request")},
		"broken escapes":              {basic("%zz", secret), form(), refusal(400, "invalid_request")},
		"a key instead":               {"", form("client_id", id, "client_assertion_type", assertionType, "client_assertion", "x.y.z"), refusal(401, "invalid_client")},
		"another kind of assertion":   {"", form("client_id", id, "client_assertion_type", "saml", "client_assertion", "x"), refusal(400, "invalid_request")},
		"a public client's secret":    {basic(w.desktop, "x"), form(), refusal(401, "invalid_client")},
		"a public client":             {"", form("client_id", w.desktop), refusal(400, "invalid_grant")},
		"a public client by Basic":    {basic(w.desktop, ""), form(), refusal(400, "invalid_grant")},
		"another that is itself":      {"", form("client_id", other, "client_secret", "x"), refusal(401, "invalid_client")},
		"an unknown one with secrets": {basic("cli_nobody", secret), form(), refusal(401, "invalid_client")},
	} {
		if got := w.ask("/oauth/token", c.header, c.form); got != c.want {
			t.Errorf("%s: %+v", name, got)
		}
	}
	for name, ways := range map[string][2]string{"encoded": {basic(encoded, url.QueryEscape(secret)), ""}, "in the form": {"", secret}, "lower case": {strings.Replace(basic(id, secret), "Basic", "basic", 1), ""}} {
		f := form()
		f.Set("refresh_token", tokens.Refresh)
		if ways[1] != "" {
			f = with(f, "client_id", id, "client_secret", ways[1])
		}
		next := w.ask("/oauth/token", ways[0], f)
		if next.Status != 200 {
			t.Fatalf("%s: %+v", name, next)
		}
		tokens = next
	}
	if strings.Contains(w.logs.String(), secret) {
		t.Error("the secret is in the log")
	}
	if n := w.count(`SELECT count(*) FROM clients WHERE metadata LIKE ? OR secret_hash LIKE ?`, "%"+secret+"%", "%"+secret+"%"); n != 0 {
		t.Error("the secret is in the database")
	}
	// A confidential client's token is nobody's to revoke without the secret.
	w.ask("/oauth/revoke", "", url.Values{"token": {tokens.Refresh}, "client_id": {id}})
	w.ask("/oauth/revoke", "", url.Values{"token": {tokens.Refresh}, "client_id": {w.desktop}})
	w.alive("after others revoked it", tokens)
	if got := w.ask("/oauth/revoke", basic(id, secret), url.Values{"token": {tokens.Refresh}}); got.Status != 200 {
		t.Errorf("revoking: %+v", got)
	}
	if _, err := w.who(tokens.Access); err == nil {
		t.Error("it lives on after its client revoked it")
	}
}

// signer makes assertions.
type signer struct {
	t   testing.TB
	key any
	alg jose.SignatureAlgorithm
	kid string
}

func newSigner(t testing.TB, alg jose.SignatureAlgorithm, kid string) *signer {
	t.Helper()
	var key any
	var err error
	switch alg {
	case jose.ES256:
		key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	case jose.EdDSA:
		_, key, err = ed25519.GenerateKey(rand.Reader)
	default:
		key, err = rsa.GenerateKey(rand.Reader, 2048)
	}
	if err != nil {
		t.Fatal(err)
	}
	return &signer{t, key, alg, kid}
}

// set is the JWKS of several signers.
func set(signers ...*signer) map[string]any {
	keys := []any{map[string]any{"kty": "future", "x": "?"}}
	for _, s := range signers {
		private := jose.JSONWebKey{Key: s.key, KeyID: s.kid}
		public := private.Public()
		keys = append(keys, &public)
	}
	return map[string]any{"keys": keys}
}

func setText(signers ...*signer) string {
	b, _ := json.Marshal(set(signers...))
	return string(b)
}

// sign makes an assertion of a client, with changes: pairs of claim and value, nil takes one away.
func (s *signer) sign(id string, changes ...any) string {
	s.t.Helper()
	claims := map[string]any{
		"iss": id, "sub": id, "aud": issuer, "jti": base64.RawURLEncoding.EncodeToString(newNonce()), "iat": time.Now().Unix(), "exp": time.Now().Add(5 * time.Minute).Unix(),
	}
	for i := 0; i < len(changes); i += 2 {
		if changes[i+1] == nil {
			delete(claims, changes[i].(string))
		} else {
			claims[changes[i].(string)] = changes[i+1]
		}
	}
	key := jose.SigningKey{Algorithm: s.alg, Key: jose.JSONWebKey{Key: s.key, KeyID: s.kid}}
	sig, err := jose.NewSigner(key, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	out, err := jwt.Signed(sig).Claims(claims).Serialize()
	if err != nil {
		s.t.Fatal(err)
	}
	return out
}

func newNonce() []byte {
	b := make([]byte, 16)
	_, _ = rand.Read(b)
	return b
}

// by is a form with an assertion.
func by(assertion string, form url.Values) url.Values {
	form.Set("client_assertion_type", assertionType)
	form.Set("client_assertion", assertion)
	return form
}

func TestAnAssertionIsTheClientsAboutItselfForUsNowAndOnce(t *testing.T) {
	w := newWorld(t)
	mine, theirs := newSigner(t, jose.ES256, "1"), newSigner(t, jose.ES256, "1")
	id, _ := w.confidential("private_key_jwt", `"jwks":`+setText(mine))
	other, _ := w.confidential("private_key_jwt", `"jwks":`+setText(theirs))
	form := func(changes ...string) url.Values {
		return with(url.Values{"grant_type": {"refresh_token"}, "refresh_token": {"sb_rt_x"}}, changes...)
	}
	good := refusal(400, "invalid_grant") // it is known who asks; the token is not
	used := mine.sign(id)
	unsigned := base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"none"}`)) + "." + base64.RawURLEncoding.EncodeToString([]byte(`{"iss":"`+id+`","sub":"`+id+`","aud":"`+issuer+`","jti":"n","exp":9999999999}`)) + "."
	symmetric := &signer{t, []byte(strings.Repeat("k", 32)), jose.HS256, "1"}
	parts := strings.Split(mine.sign(id), ".")
	for name, c := range map[string]struct {
		form url.Values
		want answer
	}{
		"good":                        {by(used, form()), good},
		"with its client_id":          {by(mine.sign(id), form("client_id", id)), good},
		"for the token endpoint":      {by(mine.sign(id, "aud", issuer+"/oauth/token"), form()), good},
		"for several of our names":    {by(mine.sign(id, "aud", []string{issuer + "/oauth/token", issuer}), form()), good},
		"for us and for another":      {by(mine.sign(id, "aud", []string{issuer, "https://other.example"}), form()), refusal(401, "invalid_client")},
		"for a minute ago":            {by(mine.sign(id, "exp", time.Now().Add(-30*time.Second).Unix()), form()), good},
		"another client_id":           {by(mine.sign(id), form("client_id", other)), refusal(401, "invalid_client")},
		"another client's key":        {by(theirs.sign(id), form()), refusal(401, "invalid_client")},
		"about another":               {by(mine.sign(id, "sub", other), form()), refusal(401, "invalid_client")},
		"from another":                {by(mine.sign(id, "iss", other), form()), refusal(401, "invalid_client")},
		"for another server":          {by(mine.sign(id, "aud", "https://other.example"), form()), refusal(401, "invalid_client")},
		"for a longer name":           {by(mine.sign(id, "aud", issuer+".evil.example"), form()), refusal(401, "invalid_client")},
		"for the resource":            {by(mine.sign(id, "aud", resource), form()), refusal(401, "invalid_client")},
		"for nobody":                  {by(mine.sign(id, "aud", nil), form()), refusal(401, "invalid_client")},
		"ended":                       {by(mine.sign(id, "exp", time.Now().Add(-2*time.Minute).Unix()), form()), refusal(401, "invalid_client")},
		"without an end":              {by(mine.sign(id, "exp", nil), form()), refusal(401, "invalid_client")},
		"for years":                   {by(mine.sign(id, "exp", time.Now().Add(24*time.Hour).Unix()), form()), refusal(401, "invalid_client")},
		"from the future":             {by(mine.sign(id, "iat", time.Now().Add(5*time.Minute).Unix()), form()), refusal(401, "invalid_client")},
		"not yet":                     {by(mine.sign(id, "nbf", time.Now().Add(5*time.Minute).Unix()), form()), refusal(401, "invalid_client")},
		"without an id":               {by(mine.sign(id, "jti", nil), form()), refusal(401, "invalid_client")},
		"alg none":                    {by(unsigned, form()), refusal(401, "invalid_client")},
		"symmetric":                   {by(symmetric.sign(id), form()), refusal(401, "invalid_client")},
		"no JWT":                      {by("x", form()), refusal(401, "invalid_client")},
		"empty":                       {by("", form("client_id", id)), refusal(401, "invalid_client")},
		"a changed claim":             {by(parts[0]+"."+base64.RawURLEncoding.EncodeToString([]byte(`{"iss":"`+id+`","sub":"`+id+`"}`))+"."+parts[2], form()), refusal(401, "invalid_client")},
		"a secret beside":             {by(mine.sign(id), form("client_secret", "x")), refusal(400, "invalid_request")},
		"of a public client":          {by(mine.sign(w.desktop), form("client_id", w.desktop)), good}, // public: it is taken at its word
		"no assertion":                {form("client_id", id), refusal(401, "invalid_client")},
		"of a client that is unknown": {by(mine.sign("cli_nobody"), form()), refusal(401, "invalid_client")},
	} {
		if got := w.ask("/oauth/token", "", c.form); got != c.want {
			t.Errorf("%s: %+v", name, got)
		}
	}
	if got := w.ask("/oauth/token", "", by(used, form())); got != refusal(401, "invalid_client") {
		t.Errorf("a second time: %+v", got)
	}
	if got := w.replica().ask("/oauth/token", "", by(used, form())); got != refusal(401, "invalid_client") {
		t.Errorf("a second time at another server: %+v", got)
	}
	if n := w.count(`SELECT count(*) FROM client_assertions`); n != 5 {
		t.Errorf("%d assertions are remembered, want those that were good", n)
	}
}

func TestEveryKindOfKeySigns(t *testing.T) {
	w := newWorld(t)
	for _, alg := range []jose.SignatureAlgorithm{jose.RS256, jose.PS256, jose.ES256, jose.EdDSA} {
		key := newSigner(t, alg, "")
		id, _ := w.confidential("private_key_jwt", `"jwks":`+setText(key))
		got := w.ask("/oauth/token", "", by(key.sign(id), w.exchangeForm(w.codeFor(id, "org:read"), "client_id", id)))
		if got.Status != 200 {
			t.Errorf("%s: %+v", alg, got)
		}
	}
}
