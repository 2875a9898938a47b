package audit

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"switchboard/internal/caller"
	"switchboard/internal/fault"
	"switchboard/internal/scope"
	"switchboard/internal/store"
	"switchboard/internal/store/storetest"
)

// as is a context in which a person of an organization acts through an app.
func as(t testing.TB, org, person, app string) context.Context {
	c := caller.Caller{Org: org, Person: "per_" + person, PersonName: person, Role: scope.Admin, Via: caller.Connection, ID: "con_" + app, Name: app}
	return caller.WithRequest(caller.With(t.Context(), c), "req_1")
}

func newLog(t testing.TB) (*Log, *store.Store) {
	s := storetest.Open(t)
	return New(s), s
}

func (l *Log) must(t testing.TB, ctx context.Context, r Record) {
	t.Helper()
	if err := l.Append(ctx, r); err != nil {
		t.Fatal(err)
	}
}

// subjects lists what a filter lets through.
func (l *Log) subjects(t testing.TB, ctx context.Context, f Filter) []string {
	t.Helper()
	out := []string{}
	for {
		entries, next, err := l.List(ctx, f)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			out = append(out, e.Subject)
		}
		if next == "" {
			return out
		}
		f.Cursor = next
	}
}

func TestARecordKeepsWhoDidWhatThroughWhat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, _ := newLog(t)
		ctx := as(t, "org_a", "amira", "claude")
		l.must(t, ctx, Record{Action: "upsert_contact", Outcome: Refused, Code: fault.Forbidden, Subject: "con_1", CallID: "call_1", Detail: map[string]any{"n": 1.5, "s": "ü", "list": []any{"x"}}})
		time.Sleep(time.Second)
		l.must(t, ctx, Record{Action: SignIn, Outcome: OK})
		now := store.Now()
		got, next, err := l.List(ctx, Filter{})
		if err != nil || next != "" || len(got) != 2 || got[0].ID <= got[1].ID {
			t.Fatal(got, next, err)
		}
		got[0].ID, got[1].ID = "", ""
		by := Entry{OrgID: "org_a", PersonID: "per_amira", PersonName: "amira", Via: caller.Connection, ViaID: "con_claude", ViaName: "claude", RequestID: "req_1"}
		signIn, call := by, by
		signIn.At, signIn.Action, signIn.Outcome, signIn.Detail = now, "sign_in", OK, Detail{}
		call.At, call.Action, call.Outcome, call.Code, call.Subject, call.CallID = now.Add(-time.Second), "upsert_contact", Refused, "forbidden", "con_1", "call_1"
		call.Detail = Detail{"n": 1.5, "s": "ü", "list": []any{"x"}}
		if diff := cmp.Diff([]Entry{signIn, call}, got); diff != "" {
			t.Error(diff)
		}
	})
}

func TestNobodyAndNoOrganizationWriteAndReadNothing(t *testing.T) {
	l, _ := newLog(t)
	l.must(t, as(t, "org_a", "amira", "claude"), Record{Action: SignIn, Outcome: OK})
	for name, ctx := range map[string]context.Context{"nobody": t.Context(), "somebody without an organization": caller.With(t.Context(), caller.Caller{Person: "per_amira", Role: scope.Owner})} {
		if err := l.Append(ctx, Record{Action: SignIn, Outcome: OK}); !errors.Is(err, store.ErrNoOrg) {
			t.Errorf("%s wrote: %v", name, err)
		}
		if got, _, err := l.List(ctx, Filter{}); err == nil || len(got) != 0 {
			t.Errorf("%s read: %v %v", name, got, err)
		}
		if n, err := l.Count(ctx, Filter{}); err == nil || n != 0 {
			t.Errorf("%s counted: %d", name, n)
		}
		actions, err := l.Actions(ctx)
		actors, err2 := l.Actors(ctx)
		if err == nil || err2 == nil || len(actions)+len(actors) != 0 {
			t.Errorf("%s sees %v %v", name, actions, actors)
		}
	}
}

func TestARecordIsWrittenWithItsEffectOrNotAtAll(t *testing.T) {
	l, s := newLog(t)
	ctx := as(t, "org_a", "amira", "claude")
	changed := errors.New("changed my mind")
	err := s.Tx(ctx, func(ctx context.Context) error {
		l.must(t, ctx, Record{Action: Revoke, Outcome: OK})
		return changed
	})
	if n, _ := l.Count(ctx, Filter{}); !errors.Is(err, changed) || n != 0 {
		t.Errorf("%d records of what did not happen, %v", n, err)
	}
	err = s.Tx(ctx, func(ctx context.Context) error { return l.Append(ctx, Record{Action: Revoke, Outcome: OK}) })
	if n, _ := l.Count(ctx, Filter{}); err != nil || n != 1 {
		t.Errorf("%d records, %v", n, err)
	}
}

func TestAFilterLetsThroughWhatItNames(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, _ := newLog(t)
		amira, noor, foreign := as(t, "org_a", "amira", "claude"), as(t, "org_a", "noor", "cursor"), as(t, "org_b", "amira", "claude")
		start := time.Now()
		for i, r := range []struct {
			ctx     context.Context
			action  string
			outcome Outcome
		}{
			{amira, SignIn, OK}, {amira, "upsert_contact", Started}, {amira, "upsert_contact", OK}, {noor, "upsert_contact", Refused},
			{noor, Revoke, OK}, {noor, "send", Failed}, {foreign, SignIn, OK}, {foreign, "upsert_contact", Started},
		} {
			l.must(t, r.ctx, Record{Action: r.action, Outcome: r.outcome, Subject: fmt.Sprint(i)})
			time.Sleep(time.Minute)
		}
		at := func(i int) time.Time { return start.Add(time.Duration(i) * time.Minute) }
		for name, c := range map[string]struct {
			f    Filter
			want []string // newest first
		}{
			"everything but what only started": {Filter{}, []string{"5", "4", "3", "2", "0"}},
			"an action":                        {Filter{Action: "upsert_contact"}, []string{"3", "2"}},
			"an unknown action":                {Filter{Action: "x"}, []string{}},
			"an outcome":                       {Filter{Outcome: "ok"}, []string{"4", "2", "0"}},
			"started, when asked for":          {Filter{Outcome: "started"}, []string{"1"}},
			"an unknown outcome":               {Filter{Outcome: "x"}, []string{}},
			"a person":                         {Filter{Actor: "per_noor"}, []string{"5", "4", "3"}},
			"an app":                           {Filter{Actor: "con_claude"}, []string{"2", "0"}},
			"since":                            {Filter{Since: at(3)}, []string{"5", "4", "3"}},
			"until":                            {Filter{Until: at(3)}, []string{"2", "0"}},
			"between":                          {Filter{Since: at(2), Until: at(4)}, []string{"3", "2"}},
			"in another time zone":             {Filter{Since: at(3).In(time.FixedZone("far", 9*3600))}, []string{"5", "4", "3"}},
			"all at once":                      {Filter{Action: "upsert_contact", Outcome: "ok", Actor: "per_amira", Since: at(0), Until: at(9)}, []string{"2"}},
			"an injection":                     {Filter{Action: "' OR 1=1 --"}, []string{}},
			"one a page":                       {Filter{Limit: 1}, []string{"5", "4", "3", "2", "0"}},
			"two a page, an actor":             {Filter{Limit: 2, Actor: "per_noor"}, []string{"5", "4", "3"}},
		} {
			if diff := cmp.Diff(c.want, l.subjects(t, amira, c.f)); diff != "" {
				t.Errorf("%s: %s", name, diff)
			}
			if n, err := l.Count(amira, c.f); err != nil || n != int64(len(c.want)) {
				t.Errorf("%s: counted %d, %v", name, n, err)
			}
		}
		if diff := cmp.Diff([]string{"6"}, l.subjects(t, foreign, Filter{})); diff != "" {
			t.Errorf("the other organization: %s", diff)
		}
		actions, err := l.Actions(amira)
		if diff := cmp.Diff([]string{"revoke", "send", "sign_in", "upsert_contact"}, actions); err != nil || diff != "" {
			t.Errorf("actions: %v %s", err, diff)
		}
		actors, err := l.Actors(amira)
		if diff := cmp.Diff([]Actor{{"per_amira", "amira"}, {"per_noor", "noor"}, {"con_claude", "claude"}, {"con_cursor", "cursor"}}, actors); err != nil || diff != "" {
			t.Errorf("actors: %v %s", err, diff)
		}
	})
}

func TestPagesStayPutWhileRecordsAreAdded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // the clock stands still, so every record has the same moment
		l, _ := newLog(t)
		ctx, foreign := as(t, "org_a", "amira", "claude"), as(t, "org_b", "amira", "claude")
		for i := range 25 {
			l.must(t, ctx, Record{Action: "x", Outcome: OK, Subject: fmt.Sprint(i)})
			l.must(t, foreign, Record{Action: "x", Outcome: OK, Subject: "foreign"})
			if i%5 == 0 {
				time.Sleep(time.Second)
			}
		}
		want := l.subjects(t, ctx, Filter{Limit: 200})
		got, f := []string{}, Filter{Limit: 4}
		for page := 0; ; page++ {
			entries, next, err := l.List(ctx, f)
			if err != nil {
				t.Fatal(err)
			}
			for _, e := range entries {
				got = append(got, e.Subject)
			}
			l.must(t, ctx, Record{Action: "x", Outcome: OK, Subject: "later"})
			if next == "" {
				break
			}
			f.Cursor = next
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
		if slices.Contains(got, "foreign") || len(got) != 25 {
			t.Errorf("%d records: %v", len(got), got)
		}
	})
}

func TestAPageHasFiftyRecordsUnlessAskedAndTwoHundredAtMost(t *testing.T) {
	l, _ := newLog(t)
	ctx := as(t, "org_a", "amira", "claude")
	for range 210 {
		l.must(t, ctx, Record{Action: "x", Outcome: OK})
	}
	for limit, want := range map[int]int{0: 50, -1: 50, 7: 7, 200: 200, 1000: 200} {
		got, next, err := l.List(ctx, Filter{Limit: limit})
		if err != nil || len(got) != want || next == "" {
			t.Errorf("limit %d: %d records, %q, %v", limit, len(got), next, err)
		}
	}
}

func TestABrokenCursorIsTheCallersMistake(t *testing.T) {
	l, _ := newLog(t)
	ctx := as(t, "org_a", "amira", "claude")
	for _, cursor := range []string{"x", ".", "1.", ".aud_1", "x.aud_1", "1", "12x.aud_1", "99999999999999999999.aud_1", "1.aud_\x00", "1.x"} {
		if _, _, err := l.List(ctx, Filter{Cursor: cursor}); !fault.Is(err, fault.InvalidRequest) {
			t.Errorf("%q: %v", cursor, err)
		}
	}
}

func TestTheLogIsForThoseWhoSeeEverything(t *testing.T) {
	l, _ := newLog(t)
	for _, role := range append(scope.Roles(), "king", "") {
		ctx := caller.With(t.Context(), caller.Caller{Org: "org_a", Person: "per_1", Role: role})
		_, _, listed := l.List(ctx, Filter{})
		_, counted := l.Count(ctx, Filter{})
		_, actors := l.Actors(ctx)
		_, actions := l.Actions(ctx)
		for _, err := range []error{listed, counted, actors, actions} {
			if allowed := role == scope.Admin || role == scope.Owner; fault.Is(err, fault.Forbidden) == allowed || allowed && err != nil {
				t.Errorf("%q: %v", role, err)
			}
		}
	}
}

func TestAFilterThatNoRecordCanHaveFindsNothing(t *testing.T) {
	l, _ := newLog(t)
	ctx := as(t, "org_a", "amira", "claude")
	l.must(t, ctx, Record{Action: "x", Outcome: OK})
	for _, odd := range []string{"\x00", "a\xff"} {
		for _, f := range []Filter{{Action: odd}, {Outcome: odd}, {Actor: odd}} {
			got, _, err := l.List(ctx, f)
			n, countErr := l.Count(ctx, f)
			if err != nil || countErr != nil || len(got) != 0 || n != 0 {
				t.Errorf("%q in %+v: %v %d %v %v", odd, f, got, n, err, countErr)
			}
		}
	}
}

func TestTwoRecordsOfOneActorUnderTwoNamesAreOneActor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, _ := newLog(t)
		renamed := func(name string) context.Context {
			return caller.With(t.Context(), caller.Caller{Role: scope.Admin, Org: "org_a", Person: "per_1", PersonName: name, Via: caller.Browser, ID: "ses_1"})
		}
		l.must(t, renamed("Amira"), Record{Action: SignIn, Outcome: OK})
		time.Sleep(time.Second)
		l.must(t, renamed("Amira Al-Sayed"), Record{Action: SignIn, Outcome: OK})
		got, err := l.Actors(renamed("x"))
		if diff := cmp.Diff([]Actor{{"per_1", "Amira Al-Sayed"}}, got); err != nil || diff != "" {
			t.Errorf("%v %s", err, diff)
		}
	})
}
