package oauth

import (
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-jose/go-jose/v4"
)

const day = 24 * time.Hour

func (w *world) sweep() {
	w.t.Helper()
	if err := w.server.Sweep(w.t.Context()); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) exists(client string) bool {
	w.t.Helper()
	return w.count(`SELECT count(*) FROM clients WHERE id = ?`, client) == 1
}

func TestAfterAMonthTheLiveClientStillRefreshesAndTheUnusedOneIsGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		tokens := w.tokens("org:read")
		abandoned := w.client("Only an expired code", "http://127.0.0.1/callback")
		if _, err := w.decide(w.mustBegin(query(abandoned, "scope", "org:read")), w.yes("org:read")); err != nil {
			t.Fatal(err)
		}
		for range 31 {
			time.Sleep(day)
			tokens = w.refresh(tokens.Refresh)
			w.sweep()
		}
		if tokens = w.refresh(tokens.Refresh); tokens.Status != 200 {
			t.Errorf("the live client: %+v", tokens)
		}
		w.alive("the live client", tokens)
		if !w.exists(w.desktop) || w.exists(w.stranger) || w.exists(abandoned) {
			t.Errorf("live %v, never used %v, only a code %v", w.exists(w.desktop), w.exists(w.stranger), w.exists(abandoned))
		}
	})
}

// age lets time pass for all that the issuer keeps, where a test cannot wait in a bubble because something listens.
func (w *world) age(d time.Duration) {
	w.t.Helper()
	for table, columns := range map[string]string{
		"clients": "created_at used_at jwks_at fresh_until", "consent_requests": "created_at expires_at", "connections": "created_at used_at",
		"grants": "created_at expires_at", "codes": "expires_at used_at", "generations": "issued_at access_expires_at refresh_expires_at used_at",
	} {
		for column := range strings.FieldsSeq(columns) {
			w.exec(`UPDATE `+table+` SET `+column+` = `+column+` - ?`, d.Microseconds())
		}
	}
}

func TestAfterAMonthAClientOfAnyKindIsThereIfItLives(t *testing.T) {
	w := published(t)
	key := newSigner(t, jose.ES256, "1")
	byItself := func(id string, form url.Values) answer { return w.ask("/oauth/token", "", with(form, "client_id", id)) }
	byKey := func(id string, form url.Values) answer { return w.ask("/oauth/token", "", by(key.sign(id), form)) }
	bySecret := func(secret string) func(string, url.Values) answer {
		return func(id string, form url.Values) answer { return w.ask("/oauth/token", basic(id, secret), form) }
	}
	for name, c := range map[string]struct {
		register func(name string) (string, func(id string, form url.Values) answer)
		kept     bool // though nobody uses it
	}{
		"public": {func(name string) (string, func(string, url.Values) answer) {
			return w.client(name, "http://127.0.0.1/callback"), byItself
		}, false},
		"with a secret": {func(string) (string, func(string, url.Values) answer) {
			id, secret := w.confidential("client_secret_basic")
			return id, bySecret(secret)
		}, false},
		"with a key": {func(string) (string, func(string, url.Values) answer) {
			id, _ := w.confidential("private_key_jwt", `"jwks":`+setText(key))
			return id, byKey
		}, false},
		"of a document": {func(name string) (string, func(string, url.Values) answer) {
			return w.vendor.document("/" + name + "/client.json"), byItself
		}, false},
		"of an administrator": {func(string) (string, func(string, url.Values) answer) {
			secret, app, err := w.server.MakeClient(w.asOwner(), NewClient{Name: "Made", Redirects: []string{redirect}, Method: byBasic})
			if err != nil {
				t.Fatal(err)
			}
			return app.ID, bySecret(secret)
		}, true},
	} {
		live, ask := c.register("live")
		dead, _ := c.register("dead")
		tokens := ask(live, w.exchangeForm(w.codeFor(live, "org:read"), "client_id", ""))
		w.codeFor(dead, "org:read") // and it never came for its tokens
		refresh := func() {
			tokens = ask(live, url.Values{"grant_type": {"refresh_token"}, "refresh_token": {tokens.Refresh}})
		}
		w.age(29 * day)
		refresh()
		w.age(2 * day)
		w.sweep()
		if refresh(); tokens.Status != 200 {
			t.Errorf("%s: the live one: %+v", name, tokens)
		}
		w.alive(name, tokens)
		if !w.exists(live) || w.exists(dead) != c.kept {
			t.Errorf("%s: live %v, with only a code that ended %v", name, w.exists(live), w.exists(dead))
		}
	}
}

func TestAClientThatWasUsedIsRememberedForThreeMonths(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.tokens("org:read")
		time.Sleep(89 * day)
		w.sweep()
		if !w.exists(w.desktop) {
			t.Error("gone after 89 days")
		}
		if n := w.count(`SELECT count(*) FROM generations`) + w.count(`SELECT count(*) FROM grants`); n != 0 {
			t.Errorf("%d rows of a sign-in that ended long ago", n)
		}
		time.Sleep(3 * day)
		w.sweep()
		if w.exists(w.desktop) {
			t.Error("there after 92 days")
		}
	})
}

func TestAClientIsKeptAsLongAsAConnectionOfIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		lifetimes := lifetimes
		lifetimes.Refresh = 200 * day
		w.serve(w.ring(), lifetimes)
		tokens := w.tokens("org:read")
		time.Sleep(150 * day)
		w.sweep()
		if got := w.refresh(tokens.Refresh); got.Status != 200 {
			t.Errorf("%+v", got)
		}
	})
}

func TestSweepingTakesNothingThatIsStillNeeded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		waiting := w.client("Waiting for a person", "http://127.0.0.1/callback")
		time.Sleep(day - 10*time.Minute)
		id := w.mustBegin(query(waiting, "scope", "org:read"))
		time.Sleep(20 * time.Minute)
		first := w.tokens("org:read")
		next := w.refresh(first.Refresh)
		time.Sleep(50 * time.Second)
		w.sweep()
		if got := w.refresh(first.Refresh); got.Refresh != next.Refresh {
			t.Errorf("a repeat within the grace after a sweep: %+v", got)
		}
		answer, err := w.decide(id, w.yes("org:read"))
		if err != nil {
			t.Fatal(err)
		}
		w.sweep()
		if got := w.exchange(answer.Get("code"), "client_id", waiting); got.Status != 200 {
			t.Errorf("a code after a sweep: %+v", got)
		}
	})
}

func TestSaltsAreGoneWhenTheWindowHasPassedAndReuseIsStillTheft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		first := w.tokens("org:read")
		next := w.refresh(first.Refresh)
		time.Sleep(61 * time.Second)
		w.sweep()
		if n := w.count(`SELECT count(*) FROM generations WHERE next_salt <> ''`); n != 0 {
			t.Errorf("%d salts are left", n)
		}
		if got := w.refresh(first.Refresh); got != refusal(400, "invalid_grant") {
			t.Errorf("%+v", got)
		}
		w.dead("the chain", next)
	})
}

func TestWhatEndedIsRemovedADayLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		revoked := w.tokens("org:read")
		w.code("contacts:read") // never exchanged
		w.mustBegin(query(w.desktop))
		who, err := w.who(revoked.Access)
		if err != nil {
			t.Fatal(err)
		}
		if err := w.auth.RevokeConnection(w.asOwner(), who.ID); err != nil {
			t.Fatal(err)
		}
		time.Sleep(lifetimes.Refresh + day + time.Minute)
		w.sweep()
		for _, table := range []string{"consent_requests", "codes", "generations", "grants", "connections"} {
			if n := w.count(`SELECT count(*) FROM ` + table); n != 0 {
				t.Errorf("%d rows in %s", n, table)
			}
		}
	})
}
