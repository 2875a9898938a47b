package oauth

import (
	"errors"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"switchboard/internal/trial"
)

func TestACodeIsWorthOnePairOfTokens(t *testing.T) {
	w := newWorld(t)
	rec := w.post("/oauth/token", w.exchangeForm(w.code("org:read contacts:read")))
	noneIsEmpty(t, rec.Body.String())
	if rec.Code != 200 || rec.Header().Get("Content-Type") != "application/json;charset=UTF-8" && rec.Header().Get("Content-Type") != "application/json" {
		t.Errorf("%d %v", rec.Code, rec.Header())
	}
	got := w.tokens("org:read contacts:read")
	if !strings.HasPrefix(got.Access, "sb_at_") || !strings.HasPrefix(got.Refresh, "sb_rt_") {
		t.Errorf("%+v", got)
	}
	w.alive("a fresh token", got)
	got.Access, got.Refresh = "", ""
	if diff := cmp.Diff(answer{Status: 200, Scope: "contacts:read org:read", Type: "bearer", Expires: 3600}, got, cmp.Transformer("fold", foldType)); diff != "" {
		t.Error(diff)
	}
}

// foldType writes the token type in lower case: RFC 6749 §5.1 compares it so.
func foldType(a answer) struct{ Answer answerFields } {
	a.Type = strings.ToLower(a.Type)
	return struct{ Answer answerFields }{answerFields(a)}
}

type answerFields answer

func TestOfTwentyExchangesAtOnceOneWinsAndItsTokensLive(t *testing.T) {
	w := newWorld(t)
	for range 3 {
		code := w.code("org:read")
		var winner answer
		won := 0
		for _, got := range trial.Parallel(20, func(int) answer { return w.exchange(code) }) {
			if got.Status == 200 {
				won++
				winner = got
			} else if got != refusal(400, "invalid_grant") {
				t.Errorf("%+v", got)
			}
		}
		if won != 1 {
			t.Fatalf("%d of 20 won", won)
		}
		w.alive("the winner", winner)
		if got := w.refresh(winner.Refresh); got.Status != 200 {
			t.Errorf("the winner cannot refresh: %+v", got)
		}
	}
}

func TestOfExchangesOnTwoServersOneWins(t *testing.T) {
	w := newWorld(t)
	servers := []*world{w, w.replica()}
	code := w.code("org:read")
	won := []answer{}
	for _, got := range trial.Parallel(20, func(i int) answer { return servers[i%2].exchange(code) }) {
		if got.Status == 200 {
			won = append(won, got)
		} else if got != refusal(400, "invalid_grant") {
			t.Errorf("%+v", got)
		}
	}
	if len(won) != 1 {
		t.Fatalf("%d of 20 won", len(won))
	}
	servers[1].alive("the winner", won[0])
}

func TestASecondUseOfACodeRevokesItsGrantUnlessItIsAnEcho(t *testing.T) {
	for name, c := range map[string]struct {
		after   time.Duration
		changes []string
		revoked bool
	}{
		"the same request within 2 s":       {1900 * time.Millisecond, nil, false},
		"the same request at once":          {0, nil, false},
		"the same request later":            {2100 * time.Millisecond, nil, true},
		"the same request when it is stale": {5 * time.Minute, nil, true},
		"another verifier at once":          {0, []string{"code_verifier", strings.Repeat("x", 43)}, true},
		"another client at once":            {0, []string{"client_id", "the stranger"}, true},
		"another client later":              {time.Minute, []string{"client_id", "the stranger"}, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				bystander := w.tokens("org:read")
				code := w.code("contacts:read")
				tokens := w.exchange(code)
				time.Sleep(c.after)
				changes := append([]string{}, c.changes...)
				if len(changes) == 2 && changes[1] == "the stranger" {
					changes[1] = w.stranger
				}
				if got := w.exchange(code, changes...); got != refusal(400, "invalid_grant") {
					t.Errorf("%+v", got)
				}
				want := []string{"consent ok", "consent ok"}
				if c.revoked {
					w.dead("the grant", tokens)
					want = append(want, "code_reuse refused")
				} else {
					w.alive("the grant", tokens)
				}
				w.alive("another grant of the connection", bystander)
				w.exchange(code, changes...)
				if diff := cmp.Diff(want, w.audited()); diff != "" {
					t.Error(diff)
				}
			})
		})
	}
}

func TestARaceOfARightAndAWrongVerifierLeavesNothingToTheWrongOne(t *testing.T) {
	w := newWorld(t)
	for range 5 {
		code := w.code("org:read")
		got := trial.Parallel(8, func(i int) answer {
			if i%2 == 0 {
				return w.exchange(code)
			}
			return w.exchange(code, "code_verifier", strings.Repeat("w", 43))
		})
		for i, a := range got {
			if a.Status == 200 && i%2 == 1 {
				t.Fatal("a wrong verifier got tokens")
			}
			if a.Status == 200 {
				w.dead("a code that two parties hold", a)
			}
		}
	}
}

func TestOneGuessOfTheVerifierForEachCode(t *testing.T) {
	w := newWorld(t)
	for _, wrong := range []string{strings.Repeat("x", 43), verifier + "x", strings.ToUpper(verifier), "short", strings.Repeat("x", 129), verifier[:42] + "é"} {
		code := w.code("org:read")
		if got := w.exchange(code, "code_verifier", wrong); got != refusal(400, "invalid_grant") {
			t.Errorf("%q: %+v", wrong, got)
		}
		if got := w.exchange(code); got != refusal(400, "invalid_grant") {
			t.Errorf("the right verifier after %q: %+v", wrong, got)
		}
	}
	if n := w.count(`SELECT count(*) FROM generations`); n != 0 {
		t.Errorf("%d pairs were issued", n)
	}
}

func TestAnExchangeThatIsRefusedForItsFormDoesNotUseTheCode(t *testing.T) {
	w := newWorld(t)
	for name, c := range map[string]struct {
		changes []string
		want    answer
	}{
		"redirect_uri of another port": {[]string{"redirect_uri", "http://127.0.0.1:5556/callback"}, refusal(400, "invalid_grant")},
		"redirect_uri as registered":   {[]string{"redirect_uri", "http://127.0.0.1/callback"}, refusal(400, "invalid_grant")},
		"no verifier":                  {[]string{"code_verifier", ""}, refusal(400, "invalid_request")},
		"another resource":             {[]string{"resource", mail}, refusal(400, "invalid_target")},
		"a foreign resource":           {[]string{"resource", "https://other.example/mcp"}, refusal(400, "invalid_target")},
		"a broken resource":            {[]string{"resource", "::"}, refusal(400, "invalid_target")},
		"another client":               {[]string{"client_id", "the stranger"}, refusal(400, "invalid_grant")},
		"an unknown client":            {[]string{"client_id", "cli_nobody"}, refusal(401, "invalid_client")},
	} {
		code := w.code("org:read")
		if c.changes[1] == "the stranger" {
			c.changes[1] = w.stranger
		}
		if got := w.exchange(code, c.changes...); got != c.want {
			t.Errorf("%s: %+v", name, got)
		}
		if got := w.exchange(code); got.Status != 200 {
			t.Errorf("%s, then right: %+v", name, got)
		}
	}
}

func TestAnExchangeMayLeaveOutRedirectAndResourceOrSpellTheResourceOtherwise(t *testing.T) {
	w := newWorld(t)
	for name, changes := range map[string][]string{
		"no redirect_uri":          {"redirect_uri", ""},
		"resource":                 {"resource", resource},
		"resource with a slash":    {"resource", resource + "/"},
		"resource in upper case":   {"resource", "HTTPS://SWITCH.example/mcp"},
		"a scope, which is moot":   {"scope", "apps:write"},
		"a parameter of no moment": {"x", "y"},
	} {
		got := w.exchange(w.code("org:read", "resource", resource+"/"), changes...)
		if got.Status != 200 || got.Scope != "org:read" {
			t.Errorf("%s: %+v", name, got)
		}
		w.alive(name, got)
	}
}

func TestATokenForAPartIsNoneForTheWholeAndHasOnlyItsScopes(t *testing.T) {
	w := newWorld(t)
	for asked, want := range map[string]string{"": "org:read org:write", "org:read contacts:read apps:write": "org:read"} {
		p, err := w.server.Pending(t.Context(), w.mustBegin(query(w.desktop, "scope", asked, "resource", mail)), browser)
		if err != nil || p.Requested.String() != want {
			t.Errorf("%q: asks for %s, %v", asked, p.Requested, err)
		}
	}
	_, err := w.begin(query(w.desktop, "scope", "contacts:read", "resource", mail))
	if back := (*RedirectError)(nil); !errors.As(err, &back) || !strings.Contains(back.Location, "error=invalid_scope") {
		t.Errorf("a scope of another part alone: %v", err)
	}
	got := w.exchange(w.code("org:read", "resource", mail))
	if got.Status != 200 {
		t.Fatalf("%+v", got)
	}
	if again := w.refresh(got.Refresh, "resource", resource); again.Status != 400 {
		t.Errorf("refreshed for the whole: %+v", again)
	}
	if _, err := w.who(got.Access); err == nil {
		t.Error("a token for /mcp/mail is good on /mcp")
	}
}

func TestACodeEndsAfterAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		in, out := w.code("org:read"), w.code("org:read")
		time.Sleep(59 * time.Second)
		if got := w.exchange(in); got.Status != 200 {
			t.Errorf("after 59 s: %+v", got)
		}
		time.Sleep(2 * time.Second)
		if got := w.exchange(out); got != refusal(400, "invalid_grant") {
			t.Errorf("after 61 s: %+v", got)
		}
	})
}

func TestAnAccessTokenEndsAfterAnHour(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		got := w.tokens("org:read")
		time.Sleep(time.Hour - 2*time.Second)
		w.alive("just before", got)
		time.Sleep(4 * time.Second)
		if _, err := w.who(got.Access); err == nil {
			t.Error("it lives after an hour")
		}
	})
}

func TestACodeOfSomebodyWhoLeftIsWorthNothing(t *testing.T) {
	w := newWorld(t)
	code := w.code("org:read")
	w.exec(`DELETE FROM memberships WHERE person_id = ?`, w.owner.ID)
	if got := w.exchange(code); got != refusal(400, "invalid_grant") {
		t.Errorf("%+v", got)
	}
}

func TestACodeOutlivesAKeyRotation(t *testing.T) {
	w := newWorld(t)
	code := w.code("org:read")
	w.writeKeys("k2", "k1")
	w.serve(w.ring(), lifetimes)
	if got := w.exchange(code); got.Status != 200 {
		t.Errorf("%+v", got)
	}
}

func TestAnyThingElseThatIsPresentedAsACodeIsRefused(t *testing.T) {
	w := newWorld(t)
	tokens := w.tokens("org:read")
	for _, code := range []string{"x", tokens.Access, tokens.Refresh, "sb_ac_" + strings.Repeat("A", 43), "\x00", strings.Repeat("x", 60000)} {
		if got := w.exchange(code); got != refusal(400, "invalid_grant") {
			t.Errorf("%.20q: %+v", code, got)
		}
	}
	if got := w.token(url.Values{"grant_type": {"authorization_code"}, "client_id": {w.desktop}, "code_verifier": {verifier}}); got != refusal(400, "invalid_request") {
		t.Errorf("no code: %+v", got)
	}
	w.alive("a bystander", tokens)
}
