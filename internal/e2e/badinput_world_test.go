//go:build e2e

package e2e

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html"

	"switchboard/internal/trial"
)

// corpusWorld is what the corpus may speak of: people, apps and tokens of a running server.
type corpusWorld struct {
	t    *testing.T
	s    *server
	host string
	sent int

	unavailable int // answers of 503 that are written down
	people      map[string]*script
	known       map[string]string
	secrets     map[string]string // what must not be in the log
	redirects   []string          // every registered one
	signer      *ecdsa.PrivateKey
}

const viewer = "viewer@harborstreet.example"

func newCorpusWorld(t *testing.T, s *server) *corpusWorld {
	t.Helper()
	w := &corpusWorld{t: t, s: s, host: strings.TrimPrefix(s.url, "http://"), known: map[string]string{}, secrets: map[string]string{}}
	s.user(t, owner, orgName, "owner")
	s.user(t, viewer, orgName, "viewer")
	s.user(t, viewer, "Harbor Street Dental", "viewer") // so that there is something to choose
	w.people = map[string]*script{"owner": newScript(t, s, owner), "viewer": newScript(t, s, viewer), "nobody": newScript(t, s, "")}
	for name, p := range w.people {
		if page := p.get(s.url + "/sign-in"); name != "nobody" {
			p.signIn(page)
		}
	}
	w.redirects = []string{redirect, "http://localhost/native", "https://app.example/cb?keep=1", "com.example.app:/cb"}
	w.known = map[string]string{
		"url": s.url, "host": w.host, "redirect": redirect, "phone": "+14155550187", "password": password, "owner email": owner, "state": "state-of-the-corpus",
		"meta":   `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}`,
		"client": s.register(t, "Corpus", redirect), "stranger": s.register(t, "Stranger", redirect), "native": s.register(t, "Native", w.redirects[1]),
		"two": s.register(t, "Two addresses", w.redirects[2:]...), "key": s.key(t, orgName, "org:read contacts:read contacts:write"),
		"mail key": s.key(t, orgName, "contacts:read"),
	}
	w.known["verifier"] = strings.Repeat("verifier-", 6)
	sum := sha256.Sum256([]byte(w.known["verifier"]))
	w.known["challenge"] = base64.RawURLEncoding.EncodeToString(sum[:])
	for _, method := range []string{"basic", "post"} {
		w.register(method, map[string]any{"token_endpoint_auth_method": "client_secret_" + method})
	}
	w.registerKeyed()
	w.known["token"] = w.people["owner"].connect(w.known["client"], "org:read org:write contacts:read contacts:write").access
	w.known["narrow"] = w.people["owner"].connect(w.known["stranger"], "org:read").access
	w.known["viewer-token"] = w.people["viewer"].connect(w.known["client"], "org:read contacts:read").access
	part := s.attempt(w.known["client"], "contacts:read").reword(t, s.url+"/oauth/authorize", "resource", s.url+"/mcp/voice")
	code := w.people["owner"].decide(w.people["owner"].consent(part), part, "approve", nil).Get("code")
	w.known["part-token"] = readTokens(t, w.people["owner"].post(s.url+"/oauth/token", url.Values{
		"grant_type": {"authorization_code"}, "client_id": {part.client}, "code": {code}, "code_verifier": {part.verifier}, "redirect_uri": {redirect},
	})).access
	for _, name := range []string{"token", "part-token", "narrow", "viewer-token", "key", "mail key", "phone", "password", "basic secret", "post secret", "verifier"} {
		w.secrets[name] = w.known[name]
	}
	for name, p := range w.people {
		at, _ := url.Parse(s.url)
		for _, c := range p.client.Jar.Cookies(at) {
			w.secrets["the cookie "+c.Name+" of "+name] = c.Value
		}
	}
	return w
}

// newEmptyWorld is a server that nobody has set up yet.
func newEmptyWorld(t *testing.T, s *server) *corpusWorld {
	t.Helper()
	w := &corpusWorld{t: t, s: s, host: strings.TrimPrefix(s.url, "http://"), secrets: map[string]string{}}
	w.people = map[string]*script{"nobody": newScript(t, s, "")}
	w.people["nobody"].get(s.url + "/sign-in")
	w.known = map[string]string{"url": s.url, "host": w.host, "link": readSetupLink(t, s), "password": password}
	w.secrets["the set-up link"], w.secrets["a password"] = w.known["link"], password
	return w
}

func (w *corpusWorld) register(name string, more map[string]any) {
	w.t.Helper()
	metadata := map[string]any{"client_name": name, "redirect_uris": []string{redirect}}
	for k, v := range more {
		metadata[k] = v
	}
	a := w.s.postJSON(w.t, "/oauth/register", metadata)
	out := a.json(w.t)
	id, _ := out["client_id"].(string)
	if id == "" {
		w.t.Fatalf("registering %s: %d %s", name, a.status, a.body)
	}
	w.known[name+" id"] = id
	w.known[name+" secret"], _ = out["client_secret"].(string)
}

func (w *corpusWorld) registerKeyed() {
	w.t.Helper()
	var err error
	if w.signer, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader); err != nil {
		w.t.Fatal(err)
	}
	point, err := w.signer.PublicKey.Bytes()
	if err != nil {
		w.t.Fatal(err)
	}
	enc := base64.RawURLEncoding
	w.register("keyed", map[string]any{"token_endpoint_auth_method": "private_key_jwt", "jwks": map[string]any{"keys": []any{map[string]any{
		"kty": "EC", "crv": "P-256", "alg": "ES256", "use": "sig", "kid": "k1", "x": enc.EncodeToString(point[1:33]), "y": enc.EncodeToString(point[33:]),
	}}}})
}

func (w *corpusWorld) must(name string) string {
	w.t.Helper()
	v, err := w.the(name)
	if err != nil {
		w.t.Fatal(err)
	}
	return v
}

// the is what a directive {{the "…"}} stands for. Some are made anew each time: a code, a refresh token, a consent
// request, an assertion.
func (w *corpusWorld) the(name string) (string, error) {
	if v, ok := w.known[name]; ok {
		return v, nil
	}
	what, rest, _ := strings.Cut(name, " ")
	words := strings.Fields(rest)
	switch what {
	case "authorize": // a good authorization request, without the parameters that follow with a minus
		return w.authorize(words), nil
	case "code":
		return w.secret("a code", w.code()), nil
	case "refresh":
		got := w.people["owner"].connect(w.known["client"], "org:read")
		w.secrets["another access token"] = got.access
		return w.secret("a refresh token", got.refresh), nil
	case "assertion":
		return w.assertion(words), nil
	case "basic": // an id and a secret as the header has them
		return base64.StdEncoding.EncodeToString([]byte(rest)), nil
	case "escaped":
		v, err := w.the(rest)
		return url.QueryEscape(v), err
	case "cookies":
		return w.cookies(words[0]), nil
	case "form": // what the form of a person's page sends along: form PERSON PAGE, and a FIELD that it has or the /path it goes to
		return w.form(words[0], words[1], words[2]).Encode(), nil
	case "consent": // the path of a new consent request of a person, whose form is "consent-form"
		return w.consent(words[0]), nil
	}
	return "", fmt.Errorf("nothing is called %q", name)
}

func (w *corpusWorld) secret(what, value string) string {
	w.secrets[what+" "+strconv.Itoa(len(w.secrets))] = value
	return value
}

func (w *corpusWorld) authorize(without []string) string {
	q := url.Values{
		"response_type": {"code"}, "client_id": {w.known["client"]}, "redirect_uri": {redirect}, "state": {w.known["state"]}, "resource": {w.s.url + "/mcp"},
		"code_challenge": {w.known["challenge"]}, "code_challenge_method": {"S256"}, "scope": {"org:read"},
	}
	for _, name := range without {
		q.Del(strings.TrimPrefix(name, "-"))
	}
	return q.Encode()
}

// code is a new authorization code for the verifier of the corpus.
func (w *corpusWorld) code() string {
	p := w.people["owner"]
	a := attempt{client: w.known["client"], redirect: redirect, state: w.known["state"], url: w.s.url + "/oauth/authorize?" + w.authorize(nil)}
	return p.decide(p.consent(a), a, "approve", nil).Get("code")
}

func (w *corpusWorld) cookies(person string) string {
	at, _ := url.Parse(w.s.url)
	parts := []string{}
	for _, c := range w.people[person].client.Jar.Cookies(at) {
		parts = append(parts, c.Name+"="+c.Value)
	}
	return strings.Join(parts, "; ")
}

// form is what a page's form with some control carries besides what a person fills in.
func (w *corpusWorld) form(person, page, field string) url.Values {
	a := w.people[person].get(w.s.url + "/" + page)
	f := form{}
	if strings.HasPrefix(field, "/") {
		f = formTo(w.t, a, field)
	} else {
		f = formWith(w.t, a, field)
	}
	kept := url.Values{}
	for _, name := range []string{"csrf", "as", "in"} {
		if values, ok := f.values[name]; ok {
			kept[name] = values
		}
	}
	return kept
}

// formTo finds the form of a page that goes to a path.
func formTo(t *testing.T, a answer, action string) form {
	t.Helper()
	root, err := html.Parse(strings.NewReader(a.body))
	if err != nil {
		t.Fatal(err)
	}
	for n := range root.Descendants() {
		if n.Type == html.ElementNode && n.Data == "form" && trial.Attr(n, "action") == action {
			return readForm(n)
		}
	}
	t.Fatalf("%s has no form to %s: %.1500s", a.url, action, a.body)
	return form{}
}

func (w *corpusWorld) consent(person string) string {
	a := attempt{url: w.s.url + "/oauth/authorize?" + w.authorize(nil)}
	page := w.people[person].consent(a)
	f := formWith(w.t, page, "decision")
	path := strings.TrimPrefix(page.url.String(), w.s.url)
	w.known["consent-form"], w.known["consent-id"] = f.values.Encode(), strings.TrimPrefix(path, "/consent/")
	return path
}

// assertion is a client assertion of the client "keyed", with changes: pairs of a claim or header and a value, "-" for
// none.
func (w *corpusWorld) assertion(changes []string) string {
	header := map[string]any{"alg": "ES256", "typ": "JWT", "kid": "k1"}
	claims := map[string]any{
		"iss": w.known["keyed id"], "sub": w.known["keyed id"], "aud": w.s.url, "exp": time.Now().Add(time.Minute).Unix(),
		"iat": time.Now().Unix(), "jti": base64.RawURLEncoding.EncodeToString(random(12)),
	}
	for i := 0; i+1 < len(changes); i += 2 {
		part := claims
		if slices.Contains([]string{"alg", "typ", "kid", "crit", "jwk", "b64"}, changes[i]) {
			part = header
		}
		var v any
		if json.Unmarshal([]byte(changes[i+1]), &v) != nil {
			v = changes[i+1]
		}
		if part[changes[i]] = v; changes[i+1] == "-" {
			delete(part, changes[i])
		}
	}
	encode := func(v any) string {
		b, _ := json.Marshal(v)
		return base64.RawURLEncoding.EncodeToString(b)
	}
	text := encode(header) + "." + encode(claims)
	sum := sha256.Sum256([]byte(text))
	signature := []byte{}
	switch header["alg"] {
	case "none":
	case "HS256": // with the public key as the secret, as in the attack on libraries that do not care which kind it is
		point, _ := w.signer.PublicKey.Bytes()
		h := hmac.New(sha256.New, point)
		h.Write([]byte(text))
		signature = h.Sum(nil)
	default:
		r, s, err := ecdsa.Sign(rand.Reader, w.signer, sum[:])
		if err != nil {
			w.t.Fatal(err)
		}
		signature = append(r.FillBytes(make([]byte, 32)), s.FillBytes(make([]byte, 32))...)
	}
	return text + "." + base64.RawURLEncoding.EncodeToString(signature)
}
