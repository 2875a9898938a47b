package kit

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"time"

	"switchboard/internal/audit"
	"switchboard/internal/caller"
	"switchboard/internal/fault"
	"switchboard/internal/store"
)

// Result is what a call returned, encoded once.
type Result struct {
	Value json.RawMessage
}

// NeedsConfirmation says that a call was valid and allowed and did nothing yet: a person has to say yes first.
type NeedsConfirmation struct {
	Tool      string
	Arguments string // a digest of what the yes would be to, for an Assent to compare
	Preview
}

// Assent is how a face that asks the person itself brings their answer to a call that needs confirmation. arguments is
// the digest of what would run. The zero Yes says that nobody was asked yet, and any error that the call is refused.
type Assent func(arguments string) (Yes, error)

// Yes is a person's, to what they were shown.
type Yes struct {
	Key   string // a key of its own for the call, under which it takes effect once however often the yes is sent
	Shown string // Preview.Digest of what they were shown; when the call would do something else by now, they are asked again
}

func (e *NeedsConfirmation) Error() string { return e.Tool + " needs confirmation" }

// Unwrap is the error for faces that cannot ask.
func (e *NeedsConfirmation) Unwrap() error {
	f := fault.New(fault.ConfirmationRequired, "%s Ask the user, then call %s again with confirm: true.", e.Text, e.Tool)
	if e.Cost != 0 {
		f = f.With("cost", e.Cost).With("currency", e.Currency)
	}
	return f
}

// RunnerConfig is where a Runner keeps its records; it needs nothing of the domains or the faces.
type RunnerConfig struct {
	Store *store.Store
	Audit *audit.Log
	Log   *slog.Logger
}

// Runner runs tools: the same gates in the same order for every face.
type Runner struct {
	store *store.Store
	audit *audit.Log
	log   *slog.Logger
}

// NewRunner makes the one Runner of a product: all faces share it.
func NewRunner(cfg RunnerConfig) *Runner {
	return &Runner{store: cfg.Store, audit: cfg.Audit, log: cfg.Log}
}

// Call runs a tool for the caller in ctx. The error is a *ScopeError, a *NeedsConfirmation or another *fault.Error,
// to be found with errors.As; what went wrong inside is logged here and comes out as the fault internal_error.
func (r *Runner) Call(ctx context.Context, t Tool, args json.RawMessage) (Result, error) {
	return r.CallAsking(ctx, t, args, nil)
}

// CallAsking is Call for a face that can ask the person. It is asked about a call that needs confirmation and comes
// without `confirm: true`, and about no other.
func (r *Runner) CallAsking(ctx context.Context, t Tool, args json.RawMessage, assent Assent) (Result, error) {
	began := time.Now()
	var result Result
	var id string
	err := contained(func() (err error) {
		result, id, err = r.call(ctx, t, args, assent)
		return err
	})
	shown := r.outward(ctx, t, err)
	r.report(ctx, t, id, time.Since(began), err, shown)
	return result, shown
}

// call also returns the id under which a call is on record, "" for one that only read or was refused before it started.
func (r *Runner) call(ctx context.Context, t Tool, args json.RawMessage, assent Assent) (result Result, id string, err error) {
	c, ok := caller.From(ctx)
	if !ok || c.Org == "" {
		return Result{}, "", fault.New(fault.Unauthorized, "Sign in first.")
	}
	if store.InTx(ctx) {
		// The record that a call started would vanish with the transaction around it.
		return Result{}, "", errors.New("a tool was called inside a transaction")
	}
	if t.spec.Mutates() {
		// A client that hangs up must not leave a change in doubt: it is finished and goes on record.
		ctx = context.WithoutCancel(ctx)
	}
	within, cancel := context.WithTimeout(ctx, t.spec.Timeout)
	defer cancel()
	arguments, err := r.admit(within, c, t, args, assent)
	if err != nil {
		return Result{}, "", r.refuse(ctx, t, inTime(within, err))
	}
	if !t.spec.Mutates() {
		value, _, err := t.run(within, arguments.canonical)
		return Result{Value: value}, "", inTime(within, err)
	}
	return r.mutate(within, t, arguments)
}

// admit asks, in this order, whether the caller may, whether the arguments are valid, and whether a person agreed.
func (r *Runner) admit(ctx context.Context, c caller.Caller, t Tool, args json.RawMessage, assent Assent) (arguments, error) {
	if err := Allowed(c, t.spec); err != nil {
		return arguments{}, err
	}
	a, err := t.input.read(args)
	if err != nil || !t.Confirms() || a.confirmed {
		return a, err
	}
	err = contained(func() error {
		in, err := t.decode(a.canonical)
		if err != nil || !t.confirm(in) {
			return err
		}
		var yes Yes
		if assent != nil {
			if yes, err = assent(a.digest()); err != nil {
				return err
			}
		}
		if a.assented = yes.Key; yes.Key != "" {
			// What was confirmed may look otherwise, or be gone, because the call has run. Its repeat is told so.
			if again, err := r.began(ctx, t, a.key(in)); err != nil || again {
				return err
			}
		}
		preview, err := t.preview(ctx, in)
		if err != nil || yes.Key != "" && yes.Shown == preview.Digest() {
			return err
		}
		return &NeedsConfirmation{Tool: t.Name(), Arguments: a.digest(), Preview: preview}
	})
	return a, err
}

// refuse records that a call that would have changed something did not start: scope, role, arguments, confirmation or
// a key that is taken stood against it. That one record, refused, is all there is of it; no started goes before it and
// it has no call id. What a handler refuses has started, and ends as failed. A gate that broke, a preview for example,
// is recorded as failed, also without started. A refusal that cannot be recorded is an internal error.
func (r *Runner) refuse(ctx context.Context, t Tool, cause error) error {
	if !t.spec.Mutates() {
		return cause
	}
	record := audit.Record{Action: t.Name(), Outcome: audit.Refused, Code: codeOf(cause)}
	if _, known := fault.Of(cause, ""); !known {
		record.Outcome = audit.Failed
	}
	ctx, cancel := lasting(ctx)
	defer cancel()
	if err := r.audit.Append(ctx, record); err != nil {
		return fmt.Errorf("recording a refusal, %s: %w", record.Code, err)
	}
	return cause
}

// codeOf is the code that a record has of an error.
func codeOf(err error) fault.Code {
	if errors.Is(err, errTimeout) {
		return fault.Timeout
	}
	f, _ := fault.Of(err, "")
	return f.Code
}

// mutate runs a call that changes something. That it started is on record before anything happens; that it ended
// well is recorded in the transaction of its effect, so neither is there without the other.
//
// The deadline in ctx is the handler's. What brackets it, the claim and the commit, gets time of its own: cut off in
// the middle of a COMMIT, nobody could say whether it happened.
func (r *Runner) mutate(ctx context.Context, t Tool, a arguments) (result Result, id string, err error) {
	bracket, cancel := lasting(ctx)
	call, stored, err := r.claim(bracket, t, a)
	cancel()
	if _, known := fault.Of(err, ""); err != nil && known {
		return Result{}, "", r.refuse(ctx, t, err)
	}
	if err != nil {
		return Result{}, call.ID, r.fail(ctx, t, call, err)
	}
	if stored != nil {
		return Result{Value: stored}, call.ID, nil
	}
	var value json.RawMessage
	if t.spec.External {
		value, err = r.runOutside(ctx, t, a, call)
	} else {
		value, err = r.runInside(ctx, t, a, call)
	}
	if err = inTime(ctx, err); err != nil {
		err = r.fail(ctx, t, call, err)
	}
	if err != nil {
		return Result{}, call.ID, err
	}
	return Result{Value: value}, call.ID, nil
}

// runInside runs a handler whose effect is in our database, in one transaction with the record of its end.
func (r *Runner) runInside(ctx context.Context, t Tool, a arguments, call toolCall) (value json.RawMessage, err error) {
	deadline, _ := ctx.Deadline()
	bracket, cancel := context.WithDeadline(context.WithoutCancel(ctx), deadline.Add(lastingTime))
	defer cancel()
	err = r.store.Tx(bracket, func(tx context.Context) error {
		within, cancel := context.WithDeadline(tx, deadline)
		defer cancel()
		var subject string
		var err error
		if value, subject, err = t.run(within, a.canonical); err == nil {
			err = within.Err() // too late is too late, also for a handler that did not look
		}
		if err != nil {
			return err
		}
		return r.finish(tx, t, call, value, subject)
	})
	return value, err
}

// runOutside runs a handler whose effect no transaction of ours can take back. Once it is there it goes on record,
// also when the time is up.
func (r *Runner) runOutside(ctx context.Context, t Tool, a arguments, call toolCall) (json.RawMessage, error) {
	value, subject, err := t.run(ctx, a.canonical)
	if err != nil {
		return nil, err
	}
	ctx, cancel := lasting(ctx)
	defer cancel()
	return value, r.store.Tx(ctx, func(ctx context.Context) error { return r.finish(ctx, t, call, value, subject) })
}

// subject is a result that knows the id of what was acted on; the audit record names it.
type subject interface{ Subject() string }

// run decodes the arguments, each time anew because a transaction may run twice, runs the handler and encodes what
// it returned. A panic is contained here, so that the transaction around it is rolled back in order.
func (t Tool) run(ctx context.Context, canonical []byte) (value json.RawMessage, about string, err error) {
	err = contained(func() error {
		in, err := t.decode(canonical)
		if err != nil {
			return fmt.Errorf("decoding valid arguments: %w", err)
		}
		out, err := t.handle(ctx, in)
		if err != nil {
			return err
		}
		if s, ok := out.(subject); ok {
			about = s.Subject()
		}
		value, err = encode(out)
		return err
	})
	return value, about, err
}

// panicked is an error made of a panic; the log gets its stack.
type panicked struct {
	value any
	stack []byte
}

func (p *panicked) Error() string { return fmt.Sprintf("panic: %v", p.value) }

func contained(f func() error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = &panicked{value: v, stack: debug.Stack()}
		}
	}()
	return f()
}

// inTime makes a fault of an error that came because the time was up. Databases say so in many ways, so the clock is
// asked and not the error; a handler that refused in so many words keeps its word.
func inTime(ctx context.Context, err error) error {
	deadline, limited := ctx.Deadline()
	if _, known := fault.Of(err, ""); err == nil || known || !limited || time.Now().Before(deadline) {
		return err
	}
	return fmt.Errorf("%w: %w", errTimeout, err)
}

var errTimeout = errors.New("the time for this call is up")

// lastingTime is how long the database may take for what must be written whatever became of the call.
const lastingTime = 10 * time.Second

// lasting is a context for that.
func lasting(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), lastingTime)
}

// outward is the error as the caller of the tool may see it.
func (r *Runner) outward(ctx context.Context, t Tool, err error) error {
	if err == nil {
		return nil
	}
	if errors.Is(err, errTimeout) {
		next := "Nothing was changed; try again."
		if t.spec.External {
			next = "Look at what it was to change before you try again."
		}
		return fault.New(fault.Timeout, "%s took longer than %s and was stopped. %s", t.Name(), t.spec.Timeout, next)
	}
	if _, known := fault.Of(err, ""); known {
		return err
	}
	f, _ := fault.Of(err, caller.Request(ctx))
	return f
}

// report writes the one log line of a call. Its id leads to the audit records, and from those here. Arguments and
// results are people's data and stay out of it.
func (r *Runner) report(ctx context.Context, t Tool, id string, took time.Duration, cause, shown error) {
	c, _ := caller.From(ctx)
	attributes := []slog.Attr{
		slog.String("request", caller.Request(ctx)), slog.String("org", c.Org), slog.String("conn", c.ID),
		slog.String("tool", t.Name()),
	}
	if id != "" {
		attributes = append(attributes, slog.String("call", id))
	}
	attributes = append(attributes, slog.Int64("ms", took.Milliseconds()))
	level := slog.LevelInfo
	if shown != nil {
		f, _ := fault.Of(shown, "")
		if f.Code == fault.Internal && errors.Is(ctx.Err(), context.Canceled) {
			attributes = append(attributes, slog.String("err", "the client left"))
		} else if f.Code == fault.Internal {
			level = slog.LevelError
			attributes = append(attributes, slog.String("err", cause.Error()))
		} else {
			attributes = append(attributes, slog.String("err", string(f.Code)))
		}
		if p := (*panicked)(nil); errors.As(cause, &p) {
			attributes = append(attributes, slog.String("stack", string(p.stack)))
		}
	}
	r.log.LogAttrs(ctx, level, "tool call", attributes...)
}
