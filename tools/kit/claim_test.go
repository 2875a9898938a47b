package kit_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"switchboard/internal/caller"
	"switchboard/internal/fault"
	"switchboard/internal/scope"
	"switchboard/internal/store"
	"switchboard/tools/kit"
)

func TestTheSameKeyGivesTheSameResultOnce(t *testing.T) {
	b := newBench(t)
	ran := 0
	tool := kit.New(spec(), func(ctx context.Context, in note) (noted, error) {
		ran++
		return noted{ID: fmt.Sprint("mrk_", ran)}, b.put(ctx, in.Text)
	})
	var first string
	for i, args := range []string{`{"text":"a","key":"k"}`, `{"key":"k","text":"a"}`, ` {"key":"k", "text":"b", "text":"a"}`} {
		got, err := b.runner.Call(b.admin, tool, json.RawMessage(args))
		if err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			first = string(got.Value)
		}
		if string(got.Value) != first {
			t.Errorf("%s: %s, not %s", args, got.Value, first)
		}
	}
	_, err := b.runner.Call(b.admin, tool, json.RawMessage(`{"text":"other","key":"k"}`))
	if code(err) != fault.IdempotencyConflict {
		t.Errorf("other arguments: %v", err)
	}
	other := caller.With(b.admin, caller.Caller{Org: "org_b", Role: scope.Admin, Scopes: scope.Of("contacts:write")})
	if got, err := b.runner.Call(other, tool, json.RawMessage(`{"text":"other","key":"k"}`)); err != nil || string(got.Value) == first {
		t.Errorf("another organization's key is the same: %s, %v", got.Value, err)
	}
	if b.marks() != 1 || ran != 2 {
		t.Errorf("%d marks, ran %d times", b.marks(), ran)
	}
	b.wantRecords("started", "ok", "ok", "ok", "refused idempotency_conflict")
}

func TestConfirmIsNoPartOfWhatAKeyStandsFor(t *testing.T) {
	b := newBench(t)
	tool := kit.New(spec(), func(ctx context.Context, in note) (noted, error) { return noted{}, b.put(ctx, in.Text) },
		kit.Confirm(func(in note) bool { return false }, func(context.Context, note) (kit.Preview, error) { return kit.Preview{}, nil }))
	for _, args := range []string{`{"text":"a","key":"k"}`, `{"text":"a","key":"k","confirm":true}`} {
		if _, err := b.runner.Call(b.admin, tool, json.RawMessage(args)); err != nil {
			t.Errorf("%s: %v", args, err)
		}
	}
	if b.marks() != 1 {
		t.Errorf("%d marks", b.marks())
	}
}

func TestParallelCallsWithOneKeyRunOnce(t *testing.T) {
	b := newBench(t)
	var ran atomic.Int32
	tool := kit.New(spec(), func(ctx context.Context, in note) (noted, error) {
		ran.Add(1)
		return noted{ID: "mrk_1"}, b.put(ctx, in.Text)
	})
	var wait sync.WaitGroup
	errs := make([]error, 20)
	for i := range errs {
		wait.Go(func() { _, errs[i] = b.runner.Call(b.admin, tool, json.RawMessage(`{"text":"a","key":"k"}`)) })
	}
	wait.Wait()
	for _, err := range errs {
		if err != nil && code(err) != fault.IdempotencyConflict {
			t.Error(err)
		}
	}
	if ran.Load() != 1 || b.marks() != 1 {
		t.Errorf("ran %d times, %d marks", ran.Load(), b.marks())
	}
}

func TestAKeyWhoseCallFailedIsFree(t *testing.T) {
	b := newBench(t)
	broken := true
	tool := kit.New(spec(), func(ctx context.Context, in note) (noted, error) {
		if broken {
			return noted{}, errors.New("broken")
		}
		return noted{ID: "mrk_1"}, b.put(ctx, in.Text)
	})
	if _, err := b.runner.Call(b.admin, tool, json.RawMessage(`{"text":"a","key":"k"}`)); code(err) != fault.Internal {
		t.Fatal(err)
	}
	broken = false
	if _, err := b.runner.Call(b.admin, tool, json.RawMessage(`{"text":"a","key":"k"}`)); err != nil {
		t.Error(err)
	}
}

func TestAnExternalEffectOfUnknownOutcomeIsNeverRepeated(t *testing.T) {
	for name, c := range map[string]struct {
		fails   error
		replay  fault.Code
		records []string
	}{
		"the wire broke": {errors.New("connection reset"), fault.IdempotencyConflict,
			[]string{"started", "failed internal_error", "refused idempotency_conflict"}},
		"the other side refused": {fault.New(fault.NotFound, "No such number."), fault.NotFound,
			[]string{"started", "failed not_found", "started", "failed not_found"}},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			s := spec()
			s.External = true
			tool := kit.New(s, func(ctx context.Context, in note) (noted, error) {
				if store.InTx(ctx) {
					t.Error("the transaction is open while the outside world is asked")
				}
				return noted{}, c.fails
			})
			for range 2 {
				_, err := b.runner.Call(b.admin, tool, json.RawMessage(`{"text":"a","key":"k"}`))
				if err == nil {
					t.Fatal("no error")
				}
			}
			_, err := b.runner.Call(b.admin, tool, json.RawMessage(`{"text":"a","key":"k"}`))
			if code(err) != c.replay {
				t.Errorf("again: %v", err)
			}
			if got := b.records(); !cmp.Equal(c.records, got[:len(c.records)]) {
				t.Errorf("records: %v", got)
			}
		})
	}
}

func TestAnExternalEffectIsRecordedAlsoWhenTheClientLeft(t *testing.T) {
	b := newBench(t)
	s := spec()
	s.External = true
	ctx, leave := context.WithCancel(b.admin)
	tool := kit.New(s, func(context.Context, note) (noted, error) { leave(); return noted{ID: "call_1"}, nil })
	if _, err := b.runner.Call(ctx, tool, json.RawMessage(`{"text":"a","key":"k"}`)); err != nil {
		t.Error(err)
	}
	b.wantRecords("started", "ok")
	if got, err := b.runner.Call(b.admin, tool, json.RawMessage(`{"text":"a","key":"k"}`)); err != nil || string(got.Value) != `{"id":"call_1","tags":[]}` {
		t.Errorf("again: %s, %v", got.Value, err)
	}
}

// A face that asks the person itself brings their yes under a key of its own.
func TestAYesRunsACallOnceHoweverOftenItIsSent(t *testing.T) {
	b := newBench(t)
	tool := kit.New(spec(), func(ctx context.Context, in note) (noted, error) { return noted{ID: "mrk_1"}, b.put(ctx, in.Text) },
		kit.Confirm(kit.Always, func(context.Context, note) (kit.Preview, error) { return kit.Preview{Text: "Notes."}, nil }))
	var about []string
	says := func(key string, err error) kit.Assent {
		return func(arguments string) (kit.Yes, error) {
			about = append(about, arguments)
			return kit.Yes{Key: key, Shown: kit.Preview{Text: "Notes."}.Digest()}, err
		}
	}
	for _, s := range []struct {
		args   string
		assent kit.Assent
		want   fault.Code
		marks  int
	}{
		{`{"text":"a"}`, nil, fault.ConfirmationRequired, 0},
		{`{"text":"a"}`, says("", nil), fault.ConfirmationRequired, 0},
		{`{"text":"a"}`, says("", fault.New(fault.Declined, "No.")), fault.Declined, 0},
		{`{"text":"a"}`, says("yes", nil), "", 1},
		{`{"text":"a"}`, says("yes", nil), "", 1},
		{`{"text":"b"}`, says("yes", nil), fault.IdempotencyConflict, 1},
		{`{"text":"a","key":"k"}`, says("another yes", nil), "", 2},
		{`{"text":"a","key":"k"}`, says("a third yes", nil), "", 2},
		{`{"text":"a","key":"yes"}`, says("a fourth yes", nil), "", 3},
		{`{"text":"a","confirm":true}`, func(string) (kit.Yes, error) { panic("asked about what is confirmed") }, "", 4},
	} {
		_, err := b.runner.CallAsking(b.admin, tool, json.RawMessage(s.args), s.assent)
		if code(err) != s.want || b.marks() != s.marks {
			t.Errorf("%s: %v, %d marks", s.args, err, b.marks())
		}
	}
	if about[0] != about[1] || about[0] == about[4] || about[0] == about[5] {
		t.Errorf("digests: %v", about)
	}
}

// A call that was refused had no effect, so the person's yes still stands for it.
func TestAYesToACallThatWasRefusedStands(t *testing.T) {
	b := newBench(t)
	full := true
	tool := kit.New(spec(), func(ctx context.Context, in note) (noted, error) {
		if full {
			return noted{}, fault.New(fault.NotFound, "There is no room.")
		}
		return noted{ID: "mrk_1"}, b.put(ctx, in.Text)
	}, kit.Confirm(kit.Always, func(context.Context, note) (kit.Preview, error) { return kit.Preview{Text: "Notes."}, nil }))
	yes := func(string) (kit.Yes, error) {
		return kit.Yes{Key: "yes", Shown: kit.Preview{Text: "Notes."}.Digest()}, nil
	}
	for i, want := range []fault.Code{fault.NotFound, "", ""} {
		_, err := b.runner.CallAsking(b.admin, tool, json.RawMessage(`{"text":"a"}`), yes)
		if code(err) != want {
			t.Errorf("try %d: %v", i, err)
		}
		full = false
	}
	if b.marks() != 1 {
		t.Errorf("%d marks", b.marks())
	}
}
