package accounts

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"switchboard/internal/audit"
	"switchboard/internal/caller"
	"switchboard/internal/scope"
	"switchboard/internal/store"
	"switchboard/internal/trial"
)

func TestSignInKnowsTheRightPasswordAndHasOneAnswerToEverythingElse(t *testing.T) {
	w := newWorld(t)
	amira := w.user("amira@harbor.example", "Harbor", scope.Owner).Person
	for i, c := range []struct {
		email, password string
		want            error
	}{
		{"amira@harbor.example", password, nil},
		{" Amira@Harbor.EXAMPLE ", password, nil},
		{"amira@harbor.example", password + " ", ErrMismatch},
		{"amira@harbor.example", strings.ToUpper(password), ErrMismatch},
		{"amira@harbor.example", "", ErrMismatch},
		{"amira@harbor.example", strings.Repeat("x", MaxPassword+1), ErrMismatch},
		{"nobody@harbor.example", password, ErrMismatch},
		{"nobody@harbor.example", "nobody has this password", ErrMismatch}, // what an unknown account is compared with
		{"", "", ErrMismatch},
		{"amira@harbor.example\x00", password, ErrMismatch},
		{"\xff", password, ErrMismatch},
		{"' OR 1=1 --", password, ErrMismatch},
	} {
		p, err := w.restarted().SignIn(t.Context(), c.email, c.password, fmt.Sprintf("192.0.2.%d", i))
		if !errors.Is(err, c.want) || err == nil && p != amira || err != nil && p != (Person{}) {
			t.Errorf("%q %.30q: %+v %v", c.email, c.password, p, err)
		}
	}
}

func TestSignInIsRecordedInEveryOrganizationOfThePerson(t *testing.T) {
	w := newWorld(t)
	harbor := w.user("amira@harbor.example", "Harbor", scope.Owner)
	quay := w.user("amira@harbor.example", "Quay", scope.Viewer)
	other := w.user("noor@dock.example", "Dock", scope.Owner)
	for _, pw := range []string{password, "wrong"} {
		_, _ = w.SignIn(t.Context(), "amira@harbor.example", pw, "192.0.2.1")
	}
	_, _ = w.SignIn(t.Context(), "nobody@harbor.example", password, "192.0.2.1")
	for _, org := range []Organization{harbor.Organization, quay.Organization} {
		ok := audit.Entry{
			OrgID: store.OrgID(org.ID), Action: "sign_in", Outcome: audit.OK, PersonID: harbor.Person.ID, PersonName: "amira@harbor.example",
			Via: caller.Browser, ViaName: "Web page", Subject: harbor.Person.ID, Detail: audit.Detail{},
		}
		refused := ok
		refused.Outcome, refused.Code = audit.Refused, "unauthorized"
		if diff := cmp.Diff([]audit.Entry{ok, refused}, w.recorded(org)[1:]); diff != "" {
			t.Errorf("%s: %s", org.Name, diff)
		}
	}
	if got := w.recorded(other.Organization); len(got) != 1 {
		t.Errorf("somebody else's organization: %v", got)
	}
}

// try signs in and says in a word how it went.
func (w *world) try(email, pw, ip string) string {
	w.t.Helper()
	_, err := w.SignIn(w.t.Context(), email, pw, ip)
	var throttled *Throttled
	switch {
	case err == nil:
		return "in"
	case errors.Is(err, ErrMismatch):
		return "mismatch"
	case errors.As(err, &throttled) && throttled.RetryAfter > 0:
		return "throttled"
	}
	w.t.Error(err)
	return "trouble"
}

func (w *world) tries(n int, email, pw string, ip func(i int) string) map[string]int {
	w.t.Helper()
	out := map[string]int{}
	for i := range n {
		out[w.try(email, pw, ip(i))]++
	}
	return out
}

func TestAnAddressIsThrottledWhereverTheGuessesComeFrom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.user("amira@harbor.example", "Harbor", scope.Owner)
		w.user("noor@harbor.example", "Harbor", scope.Member)
		anywhere := func(i int) string { return fmt.Sprintf("192.0.2.%d", i) }
		if diff := cmp.Diff(map[string]int{"mismatch": 5, "throttled": 15}, w.tries(20, "Amira@harbor.example", "wrong", anywhere)); diff != "" {
			t.Error(diff)
		}
		if got := w.try("amira@harbor.example", password, "198.51.100.1"); got != "throttled" {
			t.Errorf("the right password in the pause: %s", got)
		}
		if got := w.try("noor@harbor.example", password, "192.0.2.1"); got != "in" {
			t.Errorf("a colleague: %s", got)
		}
		time.Sleep(failurePause + time.Second)
		if diff := cmp.Diff(map[string]int{"mismatch": 1, "throttled": 4}, w.tries(5, "amira@harbor.example", "wrong", anywhere)); diff != "" {
			t.Errorf("after a pause: %s", diff)
		}
		time.Sleep(failurePause + time.Second)
		if got := w.try("amira@harbor.example", password, "198.51.100.1"); got != "in" {
			t.Errorf("the right password after the pause: %s", got)
		}
		if diff := cmp.Diff(map[string]int{"mismatch": 5, "throttled": 1}, w.tries(6, "amira@harbor.example", "wrong", anywhere)); diff != "" {
			t.Errorf("after signing in the count starts again: %s", diff)
		}
	})
}

func TestAnUnknownAddressIsThrottledLikeAKnownOne(t *testing.T) {
	w := newWorld(t)
	if diff := cmp.Diff(map[string]int{"mismatch": 5, "throttled": 3}, w.tries(8, "nobody@harbor.example", "wrong", func(i int) string { return fmt.Sprintf("192.0.2.%d", i) })); diff != "" {
		t.Error(diff)
	}
}

func TestAnIPIsThrottledWhicheverAddressesItTries(t *testing.T) {
	for name, ip := range map[string]func(i int) string{
		"IPv4":                 func(int) string { return "192.0.2.1" },
		"an IPv6 network":      func(i int) string { return fmt.Sprintf("2001:db8:1:2::%x", i+1) },
		"no address known":     func(int) string { return "" },
		"IPv4 written as IPv6": func(i int) string { return []string{"192.0.2.1", "::ffff:192.0.2.1"}[i%2] },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				w.user("amira@harbor.example", "Harbor", scope.Owner)
				got := map[string]int{}
				for i := range 50 {
					got[w.try(fmt.Sprintf("person%d@harbor.example", i), "wrong", ip(i))]++
				}
				if diff := cmp.Diff(map[string]int{"mismatch": 30, "throttled": 20}, got); diff != "" {
					t.Error(diff)
				}
				if got := w.try("amira@harbor.example", password, ip(0)); got != "throttled" {
					t.Errorf("from there in the pause: %s", got)
				}
				if got := w.try("amira@harbor.example", password, "198.51.100.1"); got != "in" {
					t.Errorf("from elsewhere: %s", got)
				}
				time.Sleep(failurePause + time.Second)
				if got := w.try("amira@harbor.example", password, ip(0)); got != "in" {
					t.Errorf("after the pause: %s", got)
				}
			})
		})
	}
}

func TestOnlyFailuresCount(t *testing.T) {
	w := newWorld(t)
	w.user("amira@harbor.example", "Harbor", scope.Owner)
	if diff := cmp.Diff(map[string]int{"in": 100}, w.tries(100, "amira@harbor.example", password, func(int) string { return "192.0.2.1" })); diff != "" {
		t.Error(diff)
	}
}

func TestAnAccountOfOnesOwnBuysNoGuessesAtOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.user("mallory@harbor.example", "Harbor", scope.Viewer)
		const ip = "192.0.2.1"
		guesses := map[string]int{}
		for i := range 60 {
			w.try("mallory@harbor.example", password, ip)
			guesses[w.try(fmt.Sprintf("person%d@harbor.example", i), "wrong", ip)]++
		}
		if diff := cmp.Diff(map[string]int{"mismatch": 30, "throttled": 30}, guesses); diff != "" {
			t.Error(diff)
		}
	})
}

func TestTroubleIsNobodysFailure(t *testing.T) {
	w := newWorld(t)
	w.user("amira@harbor.example", "Harbor", scope.Owner)
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	for range 2 * failuresPerIP {
		if _, err := w.SignIn(gone, "amira@harbor.example", password, "192.0.2.1"); err == nil || errors.Is(err, ErrMismatch) {
			t.Fatal(err)
		}
	}
	if got := w.try("amira@harbor.example", password, "192.0.2.1"); got != "in" {
		t.Errorf("after attempts that broke off: %s", got)
	}
}

func TestARefusalTakesItsTimeWhoeverItIs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.user("amira@harbor.example", "Harbor", scope.Owner)
		for _, email := range []string{"amira@harbor.example", "nobody@harbor.example"} {
			for _, pw := range []string{"wrong", strings.Repeat("x", MaxPassword+1)} {
				began := time.Now()
				if got := w.try(email, pw, "192.0.2.1"); got != "mismatch" || time.Since(began) != refusalTime {
					t.Errorf("%s, %d characters: %s after %s", email, len(pw), got, time.Since(began))
				}
			}
		}
	})
}

// No clock is asked: a hash that cannot be read shows that it was going to be compared with. That of an unknown account
// costs what a known one costs, and a password that nobody can have is hashed too.
func TestAnUnknownAddressCostsTheSamePasswordHash(t *testing.T) {
	w := newWorld(t)
	w.user("amira@harbor.example", "Harbor", scope.Owner)
	var stored string
	if err := w.Store.QueryRow(t.Context(), `SELECT password_hash FROM people`, nil, &stored); err != nil {
		t.Fatal(err)
	}
	cost := func(hash string) string { return hash[:strings.LastIndex(hash[:strings.LastIndex(hash, "$")], "$")] }
	if cost(w.passwords.decoy) != cost(stored) || cost(stored) == "" {
		t.Errorf("an unknown account costs %s, a known one %s", cost(w.passwords.decoy), cost(stored))
	}
	w.passwords.decoy = "no hash"
	if _, err := w.Store.Exec(t.Context(), `UPDATE people SET password_hash = 'no hash'`); err != nil {
		t.Fatal(err)
	}
	for _, email := range []string{"amira@harbor.example", "nobody@harbor.example"} {
		for _, pw := range []string{password, "", strings.Repeat("x", MaxPassword+1)} {
			if _, err := w.SignIn(t.Context(), email, pw, "192.0.2.1"); err == nil || !strings.Contains(err.Error(), "checking a password") {
				t.Errorf("%s, %d characters: nothing was hashed, %v", email, len(pw), err)
			}
		}
	}
}

func TestFailuresAreForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.user("amira@harbor.example", "Harbor", scope.Owner)
		for range 4 {
			if diff := cmp.Diff(map[string]int{"mismatch": 4}, w.tries(4, "amira@harbor.example", "wrong", func(int) string { return "192.0.2.1" })); diff != "" {
				t.Error(diff)
			}
			time.Sleep(failureMemory + time.Second)
		}
		w.try("somebody@harbor.example", "wrong", "198.51.100.1")
		if n := len(w.throttle.seen); n != 2 {
			t.Errorf("%d counts are kept, want those of the last attempt", n)
		}
	})
}

func TestGuessesAtOnceDoNotSlipThroughTogether(t *testing.T) {
	w := newWorld(t)
	w.user("amira@harbor.example", "Harbor", scope.Owner)
	got := map[string]int{}
	for _, outcome := range trial.Parallel(40, func(i int) string { return w.try("amira@harbor.example", "wrong", fmt.Sprintf("192.0.2.%d", i)) }) {
		got[outcome]++
	}
	if diff := cmp.Diff(map[string]int{"mismatch": 5, "throttled": 35}, got); diff != "" {
		t.Error(diff)
	}
}

func TestTroubleWithTheDatabaseIsNoMismatch(t *testing.T) {
	w := newWorld(t)
	if err := w.Store.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := w.SignIn(t.Context(), "amira@harbor.example", password, "192.0.2.1"); err == nil || errors.Is(err, ErrMismatch) {
		t.Error(err)
	}
	if _, err := w.Session(t.Context(), "x"); err == nil || errors.Is(err, ErrNoSession) {
		t.Error(err)
	}
	if err := w.SetupOpen(t.Context(), "x"); err == nil || errors.Is(err, ErrNoSetup) {
		t.Error(err)
	}
	if _, err := w.NewSetupLink(t.Context()); err == nil || errors.Is(err, ErrNoSetup) {
		t.Error(err)
	}
}

func TestPasswordsAreHashedAsOWASPAdvises(t *testing.T) {
	h, err := newPasswords(Hashing{}).hash(t.Context(), password)
	if err != nil || !strings.HasPrefix(h, "$argon2id$v=19$m=47104,t=1,p=1$") {
		t.Errorf("%s %v", h, err)
	}
}
