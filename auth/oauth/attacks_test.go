package oauth

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
)

// The moment is made: both requests have read the code as unused when the first of them may write.
func TestACodeThatTwoHoldAtTheSameMomentGivesTokensOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		code := w.code("org:read")
		answers := make(chan answer, 2)
		err := w.store.Tx(t.Context(), func(context.Context) error { // SQLite has one writer, and we are it
			for range 2 {
				go func() { answers <- w.exchange(code) }()
			}
			synctest.Wait()
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		one, two := <-answers, <-answers
		if one.Status != 200 {
			one, two = two, one
		}
		if one.Status != 200 || two != refusal(400, "invalid_grant") {
			t.Errorf("%+v\n%+v", one, two)
		}
		if n := w.count(`SELECT count(*) FROM generations`); n != 1 {
			t.Errorf("%d pairs of tokens", n)
		}
		w.alive("the one", one)
	})
}

// RFC 9700 §4.5: the attacker has the victim's code, or has the victim's app take up theirs.
func TestACodeOfOneSignInIsWorthNothingInAnother(t *testing.T) {
	w := newWorld(t)
	const attackers = "another-verifier-that-is-long-enough-for-rfc-7636"
	challenge := challengeOf(attackers)
	for name, c := range map[string]struct{ code, client, verifier string }{
		"the victim's code in the attacker's session of the same app": {w.code("org:read"), w.desktop, attackers},
		"the attacker's code in the victim's session of the same app": {w.code("org:read", "code_challenge", challenge), w.desktop, verifier},
		"the victim's code at the attacker's own app":                 {w.code("org:read"), w.stranger, attackers},
		"and with the victim's verifier":                              {w.code("org:read"), w.stranger, verifier},
		"the challenge instead of the verifier, as plain has it":      {w.code("org:read"), w.desktop, challengeOf(verifier)},
		"a challenge that is the verifier, as plain has it":           {w.code("org:read", "code_challenge", verifier[:43]), w.desktop, verifier[:43]},
	} {
		if got := w.exchange(c.code, "client_id", c.client, "code_verifier", c.verifier); got != refusal(400, "invalid_grant") {
			t.Errorf("%s: %+v", name, got)
		}
	}
	if n := w.count(`SELECT count(*) FROM generations`); n != 0 {
		t.Errorf("%d pairs of tokens", n)
	}
}

// Whoever tries out codes and tokens of others learns nothing: the answer to one that exists is, to the letter, the
// answer to one that nobody issued. A document's app whose grant wants a key is no exception.
func TestNobodyLearnsWhetherSomebodyElsesCodeOrTokenExists(t *testing.T) {
	w := newWorld(t)
	tokens, used := w.tokens("org:read"), w.code("org:read")
	w.exchange(used)
	byKeys := w.code("org:read")
	w.exec(`UPDATE grants SET auth_method = ? WHERE id = (SELECT grant_id FROM codes WHERE code_hash = ?)`, byKey, w.server.Secrets.Hash(byKeys))
	says := func(form url.Values) string {
		rec := w.post("/oauth/token", with(form, "client_id", w.stranger))
		return strings.TrimSpace(rec.Body.String())
	}
	unknown := says(w.exchangeForm("sb_ac_" + strings.Repeat("A", 43)))
	if !strings.Contains(unknown, "invalid_grant") {
		t.Fatal(unknown)
	}
	for name, code := range map[string]string{"a fresh code": w.code("org:read"), "a used code": used, "a code of a grant that wants a key": byKeys} {
		for _, verifier := range []string{verifier, strings.Repeat("x", 43)} {
			if got := says(w.exchangeForm(code, "code_verifier", verifier)); got != unknown {
				t.Errorf("%s: %s, and about one that nobody issued: %s", name, got, unknown)
			}
		}
	}
	refresh := func(token string) url.Values {
		return url.Values{"grant_type": {"refresh_token"}, "refresh_token": {token}}
	}
	unknown = says(refresh("sb_rt_" + strings.Repeat("A", 43)))
	second := w.refresh(tokens.Refresh)
	for name, token := range map[string]string{"a fresh refresh token": second.Refresh, "a used one": tokens.Refresh, "an access token": second.Access} {
		if got := says(refresh(token)); got != unknown {
			t.Errorf("%s: %s, and about one that nobody issued: %s", name, got, unknown)
		}
	}
	for _, token := range []string{second.Access, second.Refresh, "sb_rt_" + strings.Repeat("A", 43)} {
		if rec := w.post("/oauth/revoke", url.Values{"token": {token}, "client_id": {w.stranger}}); rec.Code != 200 || rec.Body.Len() != 0 {
			t.Errorf("revoking: %d %s", rec.Code, rec.Body)
		}
	}
	w.alive("what others asked about", second)
}

func challengeOf(verifier string) string {
	sum := sha256.Sum256([]byte(verifier))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}
