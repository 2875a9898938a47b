package kit_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"switchboard/internal/audit"
	"switchboard/internal/caller"
	"switchboard/internal/fault"
	"switchboard/internal/scope"
	"switchboard/internal/store"
	"switchboard/internal/store/storetest"
	"switchboard/tools/kit"
)

// bench is a Runner on a fresh database with a table for effects and what was logged.
type bench struct {
	*testing.T
	store  *store.Store
	audit  *audit.Log
	runner *kit.Runner
	logged bytes.Buffer
	admin  context.Context
}

// mark is an effect in our database.
type mark struct {
	ID    string `gorm:"primaryKey"`
	OrgID store.OrgID
	Text  string
}

func newBench(t *testing.T) *bench {
	b := &bench{T: t, store: storetest.Open(t)}
	b.audit = audit.New(b.store)
	b.runner = kit.NewRunner(kit.RunnerConfig{Store: b.store, Audit: b.audit, Log: slog.New(slog.NewJSONHandler(&b.logged, nil))})
	ctx := store.AllOrgs(t.Context(), "a table for the test")
	err := b.store.Tx(ctx, func(ctx context.Context) error {
		return b.store.DB(ctx).Exec("CREATE TABLE marks (id TEXT PRIMARY KEY, org_id TEXT NOT NULL, text TEXT NOT NULL)").Error
	})
	if err != nil {
		t.Fatal(err)
	}
	b.admin = b.as(caller.Caller{Role: scope.Admin, Scopes: scope.Of("contacts:write", "contacts:read", "numbers:write")})
	return b
}

func (b *bench) as(c caller.Caller) context.Context {
	c.Org, c.Person, c.Via, c.ID = "org_a", "per_1", caller.Connection, "cnn_1"
	return caller.WithRequest(caller.With(b.Context(), c), "req_1")
}

func (b *bench) put(ctx context.Context, text string) error {
	return b.store.Tx(ctx, func(ctx context.Context) error {
		return b.store.DB(ctx).Create(&mark{ID: store.NewID("mrk"), Text: text}).Error
	})
}

func (b *bench) marks() int {
	b.Helper()
	var n int64
	if err := b.store.DB(b.admin).Model(&mark{}).Count(&n).Error; err != nil {
		b.Fatal(err)
	}
	return int(n)
}

// records are the audit records, oldest first, as "outcome" or "outcome code".
func (b *bench) records() []string {
	b.Helper()
	var entries []audit.Entry
	if err := b.store.DB(b.admin).Order("at, id").Find(&entries).Error; err != nil {
		b.Fatal(err)
	}
	out := []string{}
	for _, e := range entries {
		out = append(out, strings.TrimSpace(string(e.Outcome)+" "+e.Code))
	}
	return out
}

func (b *bench) wantRecords(want ...string) {
	b.Helper()
	if diff := cmp.Diff(want, b.records(), cmpopts.EquateEmpty()); diff != "" {
		b.Error("audit records:", diff)
	}
}

type call struct {
	ID, Status     string
	OrgID          store.OrgID
	IdempotencyKey *string
	Result         *string
}

func (call) TableName() string { return "tool_calls" }

func (b *bench) calls() []call {
	b.Helper()
	var calls []call
	if err := b.store.DB(b.admin).Order("started_at, id").Find(&calls).Error; err != nil {
		b.Fatal(err)
	}
	return calls
}

type note struct {
	Text string `json:"text" max:"50" doc:"What to note."`
	Key  string `json:"key,omitzero" max:"20" doc:"The client's key."`
}

func (n note) IdempotencyKey() string { return n.Key }

type noted struct {
	ID   string   `json:"id"`
	Tags []string `json:"tags"`
}

func (n noted) Subject() string { return n.ID }

func spec() kit.Spec {
	return kit.Spec{Name: "note_it", Title: "Note", Scope: "contacts:write", Effect: kit.Write, Doc: "Notes.", Example: `{"text":"x"}`}
}

// noter is a tool that makes one mark a call.
func (b *bench) noter() kit.Tool {
	return kit.New(spec(), func(ctx context.Context, in note) (noted, error) { return noted{ID: "mrk_1"}, b.put(ctx, in.Text) })
}

func code(err error) fault.Code {
	if f, ok := fault.Of(err, ""); ok {
		return f.Code
	}
	return ""
}

func TestGatesStandInOrder(t *testing.T) {
	b := newBench(t)
	ran := false
	spec := spec()
	spec.Scope, spec.Spends = "numbers:write", true
	buy := kit.New(spec, func(context.Context, note) (noted, error) { ran = true; return noted{}, nil },
		kit.Confirm(kit.Always, func(_ context.Context, in note) (kit.Preview, error) {
			return kit.Preview{Text: "Buys one number.", Cost: 1_150_000, Currency: "USD"}, nil
		}))
	steps := []struct {
		name   string
		ctx    context.Context
		args   string
		want   fault.Code
		record string
	}{
		{"nothing is right", b.as(caller.Caller{Role: scope.Viewer}), `{"x":1}`, fault.InsufficientScope, "refused insufficient_scope"},
		{"the scope is there", b.as(caller.Caller{Role: scope.Member, Scopes: scope.Of("numbers:write")}), `{"x":1}`, fault.Forbidden, "refused forbidden"},
		{"and the role", b.admin, `{"x":1}`, fault.InvalidRequest, "refused invalid_request"},
		{"and the arguments", b.admin, `{"text":"a"}`, fault.ConfirmationRequired, "refused confirmation_required"},
		{"and no confirmation", b.admin, `{"text":"a","confirm":false}`, fault.ConfirmationRequired, "refused confirmation_required"},
	}
	var records []string
	for _, s := range steps {
		_, err := b.runner.Call(s.ctx, buy, json.RawMessage(s.args))
		if code(err) != s.want || ran {
			t.Errorf("%s: %v, ran: %v", s.name, err, ran)
		}
		records = append(records, s.record)
		b.wantRecords(records...)
	}
	if calls := b.calls(); len(calls) != 0 {
		t.Errorf("a refused call was started: %v", calls)
	}
	var missing *kit.ScopeError
	if _, err := b.runner.Call(steps[0].ctx, buy, nil); !errors.As(err, &missing) || !missing.Missing.Equal(scope.Of("numbers:write")) {
		t.Errorf("the missing scope is not named: %v", err)
	}
	var asks *kit.NeedsConfirmation
	_, err := b.runner.Call(b.admin, buy, json.RawMessage(`{"text":"a"}`))
	if !errors.As(err, &asks) {
		t.Fatal(err)
	}
	sum := sha256.Sum256([]byte(`{"text":"a"}`))
	want := kit.NeedsConfirmation{Tool: "note_it", Arguments: hex.EncodeToString(sum[:]), Preview: kit.Preview{Text: "Buys one number.", Cost: 1_150_000, Currency: "USD"}}
	if diff := cmp.Diff(want, *asks); diff != "" {
		t.Error(diff)
	}
	if f, _ := fault.Of(err, ""); f.Message != "Buys one number. Ask the user, then call note_it again with confirm: true." {
		t.Error(f.Message)
	}
	if _, err := b.runner.Call(b.admin, buy, json.RawMessage(`{"text":"a","confirm":true}`)); err != nil || !ran {
		t.Errorf("confirmed: %v, ran: %v", err, ran)
	}
}

func TestConfirmationCanDependOnTheArguments(t *testing.T) {
	b := newBench(t)
	tool := kit.New(spec(), func(ctx context.Context, in note) (noted, error) { return noted{}, b.put(ctx, in.Text) },
		kit.Confirm(func(in note) bool { return in.Text == "now" },
			func(context.Context, note) (kit.Preview, error) { return kit.Preview{Text: "Calls people."}, nil }))
	if _, err := b.runner.Call(b.admin, tool, json.RawMessage(`{"text":"draft"}`)); err != nil {
		t.Error(err)
	}
	if _, err := b.runner.Call(b.admin, tool, json.RawMessage(`{"text":"now"}`)); code(err) != fault.ConfirmationRequired {
		t.Error(err)
	}
	if b.marks() != 1 {
		t.Errorf("%d marks", b.marks())
	}
}

func TestACallIsOnRecordBeforeItsEffectAndDoneWithIt(t *testing.T) {
	b := newBench(t)
	tool := kit.New(spec(), func(ctx context.Context, in note) (noted, error) {
		// The context of the bench carries no transaction: it sees what is committed.
		b.wantRecords("started")
		if calls := b.calls(); len(calls) != 1 || calls[0].Status != "started" {
			t.Errorf("while it runs: %+v", calls)
		}
		if !store.InTx(ctx) {
			t.Error("the handler runs outside of a transaction")
		}
		return noted{ID: "mrk_1"}, b.put(ctx, in.Text)
	})
	got, err := b.runner.Call(b.admin, tool, json.RawMessage(`{"text":"a"}`))
	if err != nil || string(got.Value) != `{"id":"mrk_1","tags":[]}` {
		t.Fatalf("%s, %v", got.Value, err)
	}
	b.wantRecords("started", "ok")
	if calls := b.calls(); b.marks() != 1 || calls[0].Status != "done" || calls[0].Result != nil {
		t.Errorf("%d marks, %+v", b.marks(), calls)
	}
	entries, _, err := b.audit.List(b.admin, audit.Filter{})
	if err != nil || len(entries) != 1 || entries[0].Subject != "mrk_1" || entries[0].CallID != b.calls()[0].ID ||
		entries[0].Action != "note_it" || entries[0].PersonID != "per_1" || entries[0].RequestID != "req_1" {
		t.Errorf("%+v, %v", entries, err)
	}
}

func TestWhatGoesWrongLeavesNoEffect(t *testing.T) {
	for name, c := range map[string]struct {
		after func(context.Context, *bench) error
		want  fault.Code
		log   string
	}{
		"a refusal": {func(context.Context, *bench) error { return fault.New(fault.NotFound, "No such thing.") }, fault.NotFound, "not_found"},
		"a wrapped refusal": {func(context.Context, *bench) error {
			return fmt.Errorf("looking: %w", fault.New(fault.NotFound, "No such thing."))
		}, fault.NotFound, "not_found"},
		"an error": {func(context.Context, *bench) error { return errors.New("disk full") }, fault.Internal, "disk full"},
		"a panic":  {func(context.Context, *bench) error { panic("oh") }, fault.Internal, "panic: oh"},
		"the time is up": {func(ctx context.Context, _ *bench) error {
			<-ctx.Done()
			return ctx.Err()
		}, fault.Timeout, "timeout"},
		"the time is up and the handler did not look": {func(ctx context.Context, _ *bench) error {
			<-ctx.Done()
			return nil
		}, fault.Timeout, "timeout"},
		"the record cannot be finished": {func(ctx context.Context, b *bench) error {
			return b.store.DB(ctx).Where("status = ?", "started").Delete(&call{}).Error
		}, fault.Internal, "the record of this call is gone"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			s := spec()
			s.Timeout = 200 * time.Millisecond
			if c.want != fault.Timeout {
				s.Timeout = 20 * time.Second
			}
			tool := kit.New(s, func(ctx context.Context, in note) (noted, error) {
				if err := b.put(ctx, in.Text); err != nil {
					return noted{}, err
				}
				return noted{}, c.after(ctx, b)
			})
			_, err := b.runner.Call(b.admin, tool, json.RawMessage(`{"text":"canary","key":"k"}`))
			f, known := fault.Of(err, "")
			if !known || f.Code != c.want {
				t.Fatalf("%v: %s", err, b.logged.String())
			}
			if f.Code == fault.Internal && (strings.Contains(f.Message, c.log) || f.Details["requestId"] != "req_1") {
				t.Errorf("the outside sees %+v", f)
			}
			b.wantRecords("started", "failed "+string(c.want))
			if calls := b.calls(); b.marks() != 0 || len(calls) != 1 || calls[0].Status != "failed" || calls[0].IdempotencyKey != nil {
				t.Errorf("%d marks, %+v", b.marks(), calls)
			}
			logged := b.logged.String()
			if strings.Count(logged, "\n") != 1 || !strings.Contains(logged, c.log) || strings.Contains(logged, "canary") {
				t.Errorf("logged: %s", logged)
			}
			if name == "a panic" && !strings.Contains(logged, "run_test.go") {
				t.Error("the stack of a panic is not logged")
			}
		})
	}
}

func TestAChangeIsFinishedWhenTheClientLeaves(t *testing.T) {
	for name, leaveAt := range map[string]string{"before it starts": "start", "while it runs": "run"} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			ctx, leave := context.WithCancel(b.admin)
			tool := kit.New(spec(), func(ctx context.Context, in note) (noted, error) {
				err := b.put(ctx, in.Text)
				leave()
				return noted{}, err
			})
			if leaveAt == "start" {
				leave()
			}
			if _, err := b.runner.Call(ctx, tool, json.RawMessage(`{"text":"a"}`)); err != nil {
				t.Error(err)
			}
			if b.marks() != 1 {
				t.Errorf("%d effects", b.marks())
			}
			b.wantRecords("started", "ok")
		})
	}
}

func TestAnErrorAfterTheEffectIsCommittedIsNoFailure(t *testing.T) {
	b := newBench(t)
	s := spec()
	s.External = true // outside of a transaction, so that the record can change meanwhile
	tool := kit.New(s, func(ctx context.Context, in note) (noted, error) {
		// The commit went through and its acknowledgement was lost: what is on record says so.
		err := b.store.Tx(b.admin, func(ctx context.Context) error {
			return b.store.DB(ctx).Model(&call{}).Where("status = ?", "started").Update("status", "done").Error
		})
		return noted{}, errors.Join(err, errors.New("connection reset"))
	})
	if _, err := b.runner.Call(b.admin, tool, json.RawMessage(`{"text":"a"}`)); err != nil {
		t.Error(err)
	}
	b.wantRecords("started")
}

func TestARefusalOfARunnerWithoutACallerOrInATransaction(t *testing.T) {
	b := newBench(t)
	if _, err := b.runner.Call(t.Context(), b.noter(), json.RawMessage(`{"text":"a"}`)); code(err) != fault.Unauthorized {
		t.Errorf("nobody: %v", err)
	}
	err := b.store.Tx(b.admin, func(ctx context.Context) error {
		_, err := b.runner.Call(ctx, b.noter(), json.RawMessage(`{"text":"a"}`))
		return err
	})
	if code(err) != fault.Internal || b.marks() != 0 {
		t.Errorf("inside a transaction: %v", err)
	}
}

func TestReadingLeavesNoRecord(t *testing.T) {
	b := newBench(t)
	s := spec()
	s.Effect, s.Scope, s.Timeout = kit.Read, "contacts:read", 50*time.Millisecond
	look := kit.New(s, func(ctx context.Context, in note) (noted, error) {
		if in.Text == "slow" {
			<-ctx.Done()
			return noted{}, ctx.Err()
		}
		if in.Text == "write" {
			return noted{}, b.store.DB(ctx).Create(&mark{ID: "mrk_1", Text: "x"}).Error
		}
		return noted{}, nil
	})
	for args, want := range map[string]fault.Code{`{"text":"a"}`: "", `{"x":1}`: fault.InvalidRequest, `{"text":"slow"}`: fault.Timeout} {
		if _, err := b.runner.Call(b.admin, look, json.RawMessage(args)); code(err) != want {
			t.Errorf("%s: %v", args, err)
		}
	}
	if b.store.Dialect == store.SQLite {
		if _, err := b.runner.Call(b.admin, look, json.RawMessage(`{"text":"write"}`)); code(err) != fault.Internal {
			t.Errorf("a tool that reads wrote: %v", err)
		}
	}
	if calls := b.calls(); len(calls) != 0 {
		t.Errorf("%+v", calls)
	}
	b.wantRecords()
}

func TestALogLineHasNoArgumentsAndLeadsToItsRecords(t *testing.T) {
	for name, c := range map[string]struct {
		effect  kit.Effect
		args    string
		err     any
		records []string // those that have the id of the line
	}{
		"a change":                {kit.Write, `{"text":"canary"}`, nil, []string{"started", "ok"}},
		"a change with a key":     {kit.Write, `{"text":"canary","key":"k"}`, nil, []string{"started", "ok"}},
		"its replay":              {kit.Write, `{"text":"canary","key":"used"}`, nil, []string{"started", "ok", "ok"}},
		"a change that failed":    {kit.Write, `{"text":"fail"}`, "not_found", []string{"started", "failed not_found"}},
		"a change that panicked":  {kit.Write, `{"text":"panic"}`, "panic: oh", []string{"started", "failed internal_error"}},
		"a change that was no go": {kit.Write, `{"canary":1}`, "invalid_request", nil},
		"a key that is taken":     {kit.Write, `{"text":"other","key":"used"}`, "idempotency_conflict", nil},
		"a look":                  {kit.Read, `{"text":"canary"}`, nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			s := spec()
			s.Effect = c.effect
			tool := kit.New(s, func(_ context.Context, in note) (noted, error) {
				switch in.Text {
				case "fail":
					return noted{}, fault.New(fault.NotFound, "No such thing.")
				case "panic":
					panic("oh")
				}
				return noted{}, nil
			})
			if _, err := b.runner.Call(b.admin, tool, json.RawMessage(`{"text":"canary","key":"used"}`)); err != nil {
				t.Fatal(err)
			}
			b.logged.Reset()
			_, err := b.runner.Call(b.admin, tool, json.RawMessage(c.args))
			if (err == nil) != (c.err == nil) {
				t.Fatal(err)
			}
			var line map[string]any
			if err := json.Unmarshal(b.logged.Bytes(), &line); err != nil {
				t.Fatal(err)
			}
			id, there := line["call"]
			var entries []audit.Entry
			if err := b.store.DB(b.admin).Where("call_id = ?", id).Order("at, id").Find(&entries).Error; err != nil {
				t.Fatal(err)
			}
			var records []string
			for _, e := range entries {
				records = append(records, strings.TrimSpace(string(e.Outcome)+" "+e.Code))
			}
			if diff := cmp.Diff(c.records, records); diff != "" || there != (c.records != nil) {
				t.Errorf("the records of call %v: %s", id, diff)
			}
			want := map[string]any{"msg": "tool call", "request": "req_1", "org": "org_a", "conn": "cnn_1", "tool": "note_it"}
			if c.err != nil {
				want["err"] = c.err
			}
			for _, key := range []string{"time", "level", "ms", "call", "stack"} {
				delete(line, key)
			}
			if diff := cmp.Diff(want, line); diff != "" {
				t.Error(diff)
			}
		})
	}
}
