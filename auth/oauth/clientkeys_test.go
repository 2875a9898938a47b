package oauth

import (
	"crypto/rand"
	"crypto/rsa"
	"encoding/json"
	"math/big"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
)

func TestKeysAreFetchedWhereTheyArePublishedAndAgainWhenOneIsNew(t *testing.T) {
	w := published(t)
	old, fresh := newSigner(t, jose.ES256, "old"), newSigner(t, jose.ES256, "new")
	publish := func(signers ...*signer) {
		w.vendor.serve("/keys", page("application/jwk-set+json", "", setText(signers...)))
	}
	publish(old)
	id, _ := w.confidential("private_key_jwt", `"jwks_uri":"`+w.vendor.at("/keys")+`"`)
	try := func(s *signer) int {
		return w.ask("/oauth/token", "", by(s.sign(id), url.Values{"grant_type": {"refresh_token"}, "refresh_token": {"sb_rt_x"}})).Status
	}
	if got := []int{try(old), try(old), try(fresh)}; got[0] != 400 || got[1] != 400 || got[2] != 401 || w.vendor.count("/keys") != 2 {
		t.Errorf("%v after %d fetches, want one and one more for the key that is missing", got, w.vendor.count("/keys"))
	}
	publish(fresh)
	if got := try(fresh); got != 400 || w.vendor.count("/keys") != 3 {
		t.Errorf("with a new key: %d after %d fetches", got, w.vendor.count("/keys"))
	}
	// A key that was withdrawn ends within the hour; a server that is away ends nothing for a day.
	publish(old)
	w.exec(`UPDATE clients SET jwks_at = jwks_at - ?`, (2 * maxKeysAge).Microseconds())
	if got := []int{try(fresh), try(old)}; got[0] != 401 || got[1] != 400 {
		t.Errorf("with a withdrawn key: %v", got)
	}
	w.vendor.serve("/keys", nil)
	w.exec(`UPDATE clients SET jwks_at = jwks_at - ?`, (2 * maxKeysAge).Microseconds())
	if got := try(old); got != 400 {
		t.Errorf("with the address of the keys away: %d", got)
	}
	w.exec(`UPDATE clients SET jwks_at = jwks_at - ?`, (2 * staleKeys).Microseconds())
	if got := try(old); got != 503 {
		t.Errorf("with keys of the day before: %d, where 401 would cost the client its registration", got)
	}
	for range 30 {
		try(fresh)
	}
	if n := w.vendor.count("/keys"); n > clientFetchesPerMinute {
		t.Errorf("the address of the keys was asked %d times", n)
	}
}

func TestADocumentsKeysSignAndRotate(t *testing.T) {
	w := published(t)
	old, fresh := newSigner(t, jose.ES256, "old"), newSigner(t, jose.ES256, "new")
	id := w.vendor.document("/client.json", "token_endpoint_auth_method", "private_key_jwt", "jwks", set(old))
	tokens := w.ask("/oauth/token", "", by(old.sign(id), w.exchangeForm(w.codeFor(id, "org:read"), "client_id", id)))
	if tokens.Status != 200 {
		t.Fatalf("%+v", tokens)
	}
	refresh := func(s *signer) answer {
		f := url.Values{"grant_type": {"refresh_token"}, "refresh_token": {tokens.Refresh}, "client_id": {id}}
		if s == nil {
			return w.ask("/oauth/token", "", f)
		}
		return w.ask("/oauth/token", "", by(s.sign(id), f))
	}
	if got := refresh(nil); got != refusal(401, "invalid_client") {
		t.Errorf("without the key: %+v", got)
	}
	w.vendor.document("/client.json", "token_endpoint_auth_method", "private_key_jwt", "jwks", set(fresh))
	w.exec(`UPDATE clients SET fresh_until = 1`)
	if got := refresh(old); got != refusal(401, "invalid_client") {
		t.Errorf("a key that was withdrawn: %+v", got)
	}
	next := refresh(fresh)
	if next.Status != 200 {
		t.Fatalf("with the new key: %+v", next)
	}
	if got := refresh(old); got != refusal(401, "invalid_client") {
		t.Errorf("with the old one: %+v", got)
	}
	w.ask("/oauth/revoke", "", url.Values{"token": {next.Refresh}, "client_id": {id}})
	w.alive("revoked without the key", next)
	// The keys move to an address of their own.
	moved := newSigner(t, jose.ES256, "moved")
	w.vendor.serve("/keys", page("application/json", "", setText(moved)))
	w.vendor.document("/client.json", "token_endpoint_auth_method", "private_key_jwt", "jwks_uri", w.vendor.at("/keys"))
	tokens = next
	if next = refresh(moved); next.Status != 200 {
		t.Fatalf("with keys that moved: %+v", next)
	}
	// The document gives keys up: its app stops signing, and goes on.
	w.vendor.document("/client.json")
	w.exec(`UPDATE clients SET fresh_until = 1`)
	w.mustBegin(query(id))
	tokens = next
	if got := refresh(nil); got.Status != 200 {
		t.Errorf("after the document gave keys up: %+v", got)
	}
}

func TestAKeyThatADocumentWithdrawsEndsAndOneThatCannotBeReadIsForLater(t *testing.T) {
	w := published(t)
	key, later := newSigner(t, jose.ES256, "1"), newSigner(t, jose.ES256, "2")
	id := w.vendor.document("/client.json", "token_endpoint_auth_method", "private_key_jwt", "jwks", set(key))
	tokens := w.ask("/oauth/token", "", by(key.sign(id), w.exchangeForm(w.codeFor(id, "org:read"), "client_id", id)))
	try := func(s *signer) answer {
		w.serve(w.ring(), lifetimes) // another minute, as far as limits go
		return w.ask("/oauth/token", "", by(s.sign(id), url.Values{"grant_type": {"refresh_token"}, "refresh_token": {"sb_rt_x"}}))
	}
	known, refused, comeBack := refusal(400, "invalid_grant"), refusal(401, "invalid_client"), refusal(503, "temporarily_unavailable")
	stale := func(by time.Duration) {
		w.exec(`UPDATE clients SET fresh_until = 1, jwks_at = ?`, time.Now().Add(-by).UnixMicro())
	}
	good := w.vendor.pages["/client.json"]
	for name, c := range map[string]struct {
		page  http.HandlerFunc
		age   time.Duration
		key   *signer
		wants answer
	}{
		"gone, with the key that it had":       {nil, time.Hour, key, known},
		"gone, with another":                   {nil, time.Hour, later, comeBack},
		"gone for days":                        {nil, maxDocumentLife + 2*staleKeys, key, comeBack},
		"in trouble":                           {func(rw http.ResponseWriter, _ *http.Request) { rw.WriteHeader(500) }, time.Hour, key, known},
		"in trouble, with another":             {func(rw http.ResponseWriter, _ *http.Request) { rw.WriteHeader(500) }, time.Hour, later, comeBack},
		"without keys":                         {func(rw http.ResponseWriter, r *http.Request) { w.keyless(good, rw, r) }, time.Hour, key, refused},
		"as it was":                            {good, time.Hour, key, known},
		"as it was, with a key of its own":     {good, time.Hour, later, refused},
		"as it was, and everything is in time": {good, 0, key, known},
	} {
		w.vendor.serve("/client.json", c.page)
		stale(c.age)
		before := w.vendor.count("/client.json")
		if got := try(c.key); got != c.wants {
			t.Errorf("%s: %+v, want %+v", name, got, c.wants)
		}
		if n := w.vendor.count("/client.json") - before; n != 1 {
			t.Errorf("%s: the document was read %d times for one request", name, n)
		}
	}
	// What others use up of our limits is no reason to send the client away.
	stale(time.Hour)
	w.vendor.serve("/client.json", good)
	ask := func(s *signer) answer {
		return w.ask("/oauth/token", "", by(s.sign(id), url.Values{"grant_type": {"refresh_token"}, "refresh_token": {"sb_rt_x"}}))
	}
	for range 2 * clientFetchesPerMinute {
		ask(newSigner(t, jose.ES256, "junk"))
	}
	w.vendor.document("/client.json", "token_endpoint_auth_method", "private_key_jwt", "jwks", set(later))
	if got := ask(later); got != comeBack {
		t.Errorf("a new key when we have asked too often: %+v", got)
	}
	// A token of a client that authenticates is not revoked for somebody who does not.
	w.ask("/oauth/revoke", "", url.Values{"token": {tokens.Access}, "client_id": {id}})
	w.alive("revoked without the key", answer{Access: tokens.Access})
}

// keyless answers with a document that has no keys any more.
func (w *world) keyless(good http.HandlerFunc, rw http.ResponseWriter, r *http.Request) {
	rec := httptest.NewRecorder()
	good(rec, r)
	var m map[string]any
	if err := json.Unmarshal(rec.Body.Bytes(), &m); err != nil {
		w.t.Error(err)
	}
	m["jwks"] = map[string]any{"keys": []any{}}
	rw.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(rw).Encode(m)
}

func TestNobodyKeepsOthersFromBeingFetched(t *testing.T) {
	w := published(t)
	known := w.vendor.document("/known.json")
	w.mustBegin(query(known))
	w.exec(`UPDATE clients SET fresh_until = ? WHERE id = ?`, time.Now().Add(-time.Minute).UnixMicro(), known)
	arrived := make(chan struct{}, 1000)
	hanging := func(_ http.ResponseWriter, r *http.Request) {
		arrived <- struct{}{}
		<-r.Context().Done()
	}
	key := newSigner(t, jose.ES256, "1")
	// One address names the host in key sets and in documents, as often and for as long as it can.
	const flooder = "203.0.113.9:1000"
	w.vendor.serve("/slow", hanging)
	done := make(chan struct{}, 200)
	for i := range cap(done) {
		id, _ := w.confidential("private_key_jwt", `"jwks_uri":"`+w.vendor.at("/slow")+`?`+strconv.Itoa(i)+`"`)
		go func() {
			defer func() { done <- struct{}{} }()
			form := by(key.sign(id), url.Values{"grant_type": {"refresh_token"}, "refresh_token": {"x"}})
			w.sendFrom(flooder, "POST", "/oauth/token", form.Encode(), "Content-Type", "application/x-www-form-urlencoded")
		}()
	}
	for range fetchesAtOnceOfIP {
		<-arrived
	}
	// And others hang at other ports of the host.
	elsewhere := httptest.NewTLSServer(http.HandlerFunc(hanging))
	defer elsewhere.Close()
	for i := range 2 * fetchesAtOnceOfHost {
		go func() { _, _ = w.begin(query(elsewhere.URL + "/" + strconv.Itoa(i))) }()
	}
	if _, err := w.begin(query(known)); err != nil {
		t.Errorf("a known client, meanwhile: %v", err)
	}
	fresh := w.vendor.document("/fresh.json")
	if _, err := w.begin(query(fresh)); err != nil {
		t.Errorf("a new client, meanwhile: %v", err)
	}
	for range cap(done) {
		<-done
	}
	if n := w.vendor.count("/slow"); n > fetchesPerMinute {
		t.Errorf("one address caused %d fetches", n)
	}
	// A document whose server is away stands for a day after its time, and then no longer.
	w.vendor.serve("/known.json", hanging)
	w.exec(`UPDATE clients SET fresh_until = ? WHERE id = ?`, time.Now().Add(-time.Hour).UnixMicro(), known)
	if _, err := w.begin(query(known)); err != nil {
		t.Errorf("with the document's server away: %v", err)
	}
	w.exec(`UPDATE clients SET fresh_until = ? WHERE id = ?`, time.Now().Add(-2*staleDocument).UnixMicro(), known)
	if _, err := w.begin(query(known)); err == nil {
		t.Error("a document of the day before yesterday stands")
	}
}

func TestASignatureIsTriedWithFewKeysOfModestSize(t *testing.T) {
	small, _ := rsa.GenerateKey(rand.Reader, 2048)
	huge := *small
	huge.E = 1<<31 - 1
	for name, c := range map[string]struct {
		key jose.JSONWebKey
		ok  bool
	}{
		"usual":         {jose.JSONWebKey{Key: &small.PublicKey}, true},
		"large e":       {jose.JSONWebKey{Key: &rsa.PublicKey{N: small.N, E: 1<<31 - 1}}, false},
		"large n":       {jose.JSONWebKey{Key: &rsa.PublicKey{N: new(big.Int).Lsh(small.N, 4096), E: 65537}}, false},
		"to encrypt":    {jose.JSONWebKey{Key: &small.PublicKey, Use: "enc"}, false},
		"a long name":   {jose.JSONWebKey{Key: &small.PublicKey, KeyID: strings.Repeat("k", 300)}, false},
		"private":       {jose.JSONWebKey{Key: small}, false},
		"symmetric":     {jose.JSONWebKey{Key: []byte("secret")}, false},
		"private, huge": {jose.JSONWebKey{Key: &huge}, false},
	} {
		if got := usable(c.key); got != c.ok {
			t.Errorf("%s: %v", name, got)
		}
	}
	keys := []jose.JSONWebKey{}
	for i := range maxKeys {
		keys = append(keys, jose.JSONWebKey{Key: &small.PublicKey, KeyID: map[bool]string{true: "named"}[i == 7], Algorithm: map[bool]string{true: "PS256"}[i == 8]})
	}
	if n := len(candidates(keys, jose.Header{Algorithm: "RS256"})); n != maxCandidates {
		t.Errorf("%d keys are tried", n)
	}
	if n := len(candidates(keys[7:9], jose.Header{KeyID: "other", Algorithm: "RS256"})); n != 0 {
		t.Errorf("%d keys of other names and algorithms are tried", n)
	}
}
