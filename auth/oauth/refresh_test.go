package oauth

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"switchboard/internal/trial"
)

func TestParallelRefreshesGetOneAndTheSamePairAndItLives(t *testing.T) {
	for _, n := range []int{20, 200} {
		w := newWorld(t)
		first := w.tokens("org:read contacts:read")
		got := trial.Parallel(n, func(int) answer { return w.refresh(first.Refresh) })
		for _, a := range got {
			if diff := cmp.Diff(got[0], a, cmpopts.IgnoreFields(answer{}, "Expires")); diff != "" || a.Status != 200 || a.Expires < 3590 {
				t.Fatalf("%d refreshes: %+v\n%s", n, a, diff)
			}
		}
		w.alive("the successor", got[0])
		w.alive("the access token from before, which is left to lapse", first)
		if next := w.refresh(got[0].Refresh); next.Status != 200 || next.Refresh == got[0].Refresh {
			t.Errorf("refreshing on: %+v", next)
		}
		if diff := cmp.Diff([]string{"consent ok"}, w.audited()); diff != "" {
			t.Error(diff)
		}
		if rows := w.count(`SELECT count(*) FROM generations`); rows != 3 {
			t.Errorf("%d generations, want 3", rows)
		}
	}
}

func TestParallelRefreshesOnTwoServersGetOnePairToo(t *testing.T) {
	w := newWorld(t)
	servers := []*world{w, w.replica()}
	first := w.tokens("org:read")
	for range 5 {
		got := trial.Parallel(40, func(i int) answer { return servers[i%2].refresh(first.Refresh) })
		for _, a := range got {
			if diff := cmp.Diff(got[0], a, cmpopts.IgnoreFields(answer{}, "Expires")); diff != "" || a.Status != 200 {
				t.Fatalf("%+v\n%s", a, diff)
			}
		}
		servers[1].alive("the successor", got[0])
		first = got[0]
	}
	if diff := cmp.Diff([]string{"consent ok"}, w.audited()); diff != "" {
		t.Error(diff)
	}
}

func TestARepeatedRefreshGetsTheSameAnswerForAMinuteAndIsTheftAfterwards(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		first := w.tokens("org:read")
		time.Sleep(10 * time.Minute)
		next := w.refresh(first.Refresh)
		time.Sleep(59 * time.Second)
		repeat := w.refresh(first.Refresh)
		want := next
		want.Expires = 3600 - 59
		if diff := cmp.Diff(want, repeat); diff != "" {
			t.Errorf("after 59 s: %s", diff)
		}
		w.alive("the successor", next)
		time.Sleep(2 * time.Second)
		if got := w.refresh(first.Refresh); got != refusal(400, "invalid_grant") {
			t.Errorf("after 61 s: %+v", got)
		}
		w.dead("the successor after 61 s", next)
		if diff := cmp.Diff([]string{"consent ok", "refresh_reuse refused"}, w.audited()); diff != "" {
			t.Error(diff)
		}
	})
}

func TestReuseRevokesTheWholeConnectionButNoOtherOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		first, stepUp := w.tokens("org:read"), w.tokens("contacts:read")
		other, err := w.decide(w.mustBegin(query(w.stranger, "scope", "org:read")), w.yes("org:read"))
		if err != nil {
			t.Fatal(err)
		}
		elsewhere := w.exchange(other.Get("code"), "client_id", w.stranger)
		w.refresh(first.Refresh)
		time.Sleep(2 * time.Minute)
		w.refresh(first.Refresh)
		w.dead("a grant of the same connection", stepUp)
		w.alive("another connection", elsewhere)
	})
}

func TestAGrandparentIsTheftInsideTheWindowOnceItsSuccessorWasUsed(t *testing.T) {
	w := newWorld(t)
	first := w.tokens("org:read")
	second := w.refresh(first.Refresh)
	third := w.refresh(second.Refresh)
	if got := w.refresh(first.Refresh); got != refusal(400, "invalid_grant") {
		t.Errorf("%+v", got)
	}
	w.dead("the end of the chain", third)
	if diff := cmp.Diff([]string{"consent ok", "refresh_reuse refused"}, w.audited()); diff != "" {
		t.Error(diff)
	}
}

func TestAStrangersRefreshRevokesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		first := w.tokens("org:read")
		second := w.refresh(first.Refresh)
		third := w.refresh(second.Refresh)
		time.Sleep(2 * time.Minute)
		for name, c := range map[string]struct {
			token, client string
			want          answer
		}{
			"an old token of another client":   {first.Refresh, w.stranger, refusal(400, "invalid_grant")},
			"a fresh token of another client":  {third.Refresh, w.stranger, refusal(400, "invalid_grant")},
			"an old token of no client":        {first.Refresh, "cli_nobody", refusal(401, "invalid_client")},
			"a token that nobody issued":       {"sb_rt_AAAA", w.desktop, refusal(400, "invalid_grant")},
			"an access token":                  {third.Access, w.desktop, refusal(400, "invalid_grant")},
			"what the database has of a token": {w.server.Secrets.Hash(first.Refresh), w.desktop, refusal(400, "invalid_grant")},
		} {
			if got := w.refresh(c.token, "client_id", c.client); got != c.want {
				t.Errorf("%s: %+v", name, got)
			}
		}
		w.alive("the chain", third)
		if got := w.refresh(third.Refresh); got.Status != 200 {
			t.Errorf("the chain does not go on: %+v", got)
		}
	})
}

func TestARefreshMayNarrowAndTheGrantStaysWhole(t *testing.T) {
	w := newWorld(t)
	first := w.tokens("contacts:read contacts:write org:read")
	narrow := w.refresh(first.Refresh, "scope", "org:read offline_access")
	if who, err := w.who(narrow.Access); err != nil || narrow.Scope != "org:read" || who.Scopes.String() != "org:read" {
		t.Errorf("%+v %+v %v", narrow, who, err)
	}
	for _, again := range []string{"", "contacts:read", "contacts:read contacts:write org:read"} {
		got := w.refresh(first.Refresh, "scope", again)
		if diff := cmp.Diff(narrow, got, cmpopts.IgnoreFields(answer{}, "Expires")); diff != "" {
			t.Errorf("a repeat that asks for %q gets another answer than the first: %s", again, diff)
		}
	}
	whole := w.refresh(narrow.Refresh)
	if whole.Scope != "contacts:read contacts:write org:read" {
		t.Errorf("narrowing lasted: %+v", whole)
	}
	same := w.refresh(whole.Refresh, "scope", "org:read contacts:write contacts:read openid")
	if same.Scope != whole.Scope {
		t.Errorf("%+v", same)
	}
}

func TestARefreshThatIsRefusedDoesNotUseTheToken(t *testing.T) {
	w := newWorld(t)
	first := w.tokens("org:read contacts:read")
	for name, c := range map[string]struct {
		changes []string
		want    answer
	}{
		"wider":                  {[]string{"scope", "org:read org:write"}, refusal(400, "invalid_scope")},
		"only others":            {[]string{"scope", "billing:read"}, refusal(400, "invalid_scope")},
		"an unknown scope":       {[]string{"scope", "org:read nothing:here"}, refusal(400, "invalid_scope")},
		"an umbrella":            {[]string{"scope", "spocket"}, refusal(400, "invalid_scope")},
		"another resource":       {[]string{"resource", mail}, refusal(400, "invalid_target")},
		"a foreign resource":     {[]string{"resource", "https://other.example/"}, refusal(400, "invalid_target")},
		"no token":               {[]string{"refresh_token", ""}, refusal(400, "invalid_request")},
		"an unknown grant type":  {[]string{"grant_type", "password"}, refusal(400, "unsupported_grant_type")},
		"of an unknown client":   {[]string{"client_id", "cli_nobody"}, refusal(401, "invalid_client")},
		"of another client":      {[]string{"client_id", w.stranger}, refusal(400, "invalid_grant")},
		"an assertion as client": {[]string{"client_assertion_type", "urn:ietf:params:oauth:client-assertion-type:jwt-bearer", "client_assertion", "garbage"}, refusal(401, "invalid_client")},
	} {
		if got := w.refresh(first.Refresh, c.changes...); got != c.want {
			t.Errorf("%s: %+v", name, got)
		}
	}
	if got := w.refresh(first.Refresh, "resource", resource+"/"); got.Status != 200 || got.Scope != "contacts:read org:read" {
		t.Errorf("then a good one: %+v", got)
	}
}

func TestEachLegMaySpellTheResourceAsItLikesAndARefreshKeepsItWithTheScope(t *testing.T) {
	w := newWorld(t)
	gateway, secret := w.made(w.org.ID, w.owner.ID)
	spellings := []string{"", resource, resource + "/"} // some clients never say it, some go through a URL class
	for _, authorize := range spellings {
		for _, exchange := range spellings {
			tokens := w.exchange(w.code("contacts:read org:read", "resource", authorize), "resource", exchange)
			for i := range len(spellings) + 1 {
				what := fmt.Sprintf("authorized for %q, exchanged for %q, refreshed %d times", authorize, exchange, i)
				if tokens.Status != 200 || tokens.Refresh == "" || tokens.Scope != "contacts:read org:read" {
					t.Fatalf("%s: %+v", what, tokens)
				}
				w.alive(what, tokens)
				if _, said := w.introspect(basic(gateway, secret), tokens.Access); said["aud"] != resource || said["scope"] != tokens.Scope {
					t.Errorf("%s: %v", what, said)
				}
				tokens = w.refresh(tokens.Refresh, "resource", spellings[i%len(spellings)])
			}
		}
	}
}

func TestAnUnusedRefreshTokenEndsAndAUsedOneLivesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		unused, used := w.tokens("org:read"), w.tokens("org:read")
		time.Sleep(29 * 24 * time.Hour)
		used = w.refresh(used.Refresh)
		time.Sleep(24*time.Hour + 2*time.Second)
		if got := w.refresh(unused.Refresh); got != refusal(400, "invalid_grant") {
			t.Errorf("after 30 days: %+v", got)
		}
		if used = w.refresh(used.Refresh); used.Status != 200 {
			t.Errorf("%+v", used)
		}
		if diff := cmp.Diff([]string{"consent ok", "consent ok"}, w.audited()); diff != "" {
			t.Error(diff)
		}
	})
}

func TestAGrantEndsHoweverOftenItIsRefreshed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.serve(w.ring(), Lifetimes{Code: time.Minute, Access: time.Hour, Refresh: 2 * time.Hour, Grace: time.Minute})
		tokens := w.tokens("org:read")
		for range 11 {
			time.Sleep(time.Hour)
			if tokens = w.refresh(tokens.Refresh); tokens.Status != 200 {
				t.Fatalf("%+v", tokens)
			}
		}
		time.Sleep(30 * time.Minute)
		if tokens = w.refresh(tokens.Refresh); tokens.Status != 200 || tokens.Expires != 30*60 {
			t.Errorf("half an hour before the end: %+v", tokens)
		}
		time.Sleep(30*time.Minute + 2*time.Second)
		w.dead("after six lifetimes", tokens)
	})
}

func TestRefreshesGoOnOverAKeyRotation(t *testing.T) {
	w := newWorld(t)
	first := w.tokens("org:read")
	second := w.refresh(first.Refresh)
	w.writeKeys("k2", "k1")
	w.serve(w.ring(), lifetimes)
	if diff := cmp.Diff(second, w.refresh(first.Refresh), cmpopts.IgnoreFields(answer{}, "Expires")); diff != "" {
		t.Errorf("a repeat after the rotation: %s", diff)
	}
	w.alive("a token of the old key", second)
	third := w.refresh(second.Refresh)
	w.alive("a token of the new key", third)
	if diff := cmp.Diff(third, w.refresh(second.Refresh), cmpopts.IgnoreFields(answer{}, "Expires")); diff != "" {
		t.Errorf("a repeat under the new key: %s", diff)
	}
	w.writeKeys("k1", "k2") // a replica that is still on the old order
	w.serve(w.ring(), lifetimes)
	if diff := cmp.Diff(third, w.refresh(second.Refresh), cmpopts.IgnoreFields(answer{}, "Expires")); diff != "" {
		t.Errorf("a repeat on another replica: %s", diff)
	}
	if got := w.refresh(third.Refresh); got.Status != 200 {
		t.Errorf("%+v", got)
	}
}

func TestAServerThatLacksTheKeyRefusesAndRevokesNothing(t *testing.T) {
	w := newWorld(t)
	w.writeKeys("k2", "k1")
	w.serve(w.ring(), lifetimes)
	first := w.tokens("org:read") // stored under k2

	w.writeKeys("k1")
	w.serve(w.ring(), lifetimes)
	if got := w.refresh(first.Refresh); got != refusal(400, "invalid_grant") {
		t.Errorf("a token of a key that is not here: %+v", got)
	}

	w.writeKeys("k1", "k2")
	w.serve(w.ring(), lifetimes)
	second := w.refresh(first.Refresh) // derived with k1
	w.writeKeys("k2")
	w.serve(w.ring(), lifetimes)
	if got := w.refresh(first.Refresh); got != refusal(400, "invalid_grant") {
		t.Errorf("a repeat whose answer was derived with a key that is not here: %+v", got)
	}

	w.writeKeys("k1", "k2")
	w.serve(w.ring(), lifetimes)
	w.alive("the successor", second)
	if got := w.refresh(first.Refresh); got.Refresh != second.Refresh {
		t.Errorf("%+v", got)
	}
	if diff := cmp.Diff([]string{"consent ok"}, w.audited()); diff != "" {
		t.Error(diff)
	}
}

func TestSomebodyWhoLeftCannotRefreshAndComesBackToTheirOldRightsOnly(t *testing.T) {
	w := newWorld(t)
	first := w.tokens("org:read")
	w.exec(`DELETE FROM memberships WHERE person_id = ?`, w.owner.ID)
	w.dead("after the membership ended", first)
	if w.count(`SELECT count(*) FROM connections WHERE revoked_at IS NOT NULL`) != 0 {
		t.Error("the connection was revoked, though nobody did anything wrong")
	}
}
