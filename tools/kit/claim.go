package kit

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"gorm.io/gorm/clause"

	"switchboard/internal/audit"
	"switchboard/internal/fault"
	"switchboard/internal/store"
)

// toolCall is one mutating call: started before any effect, done in the transaction of the effect, failed when
// nothing came of it. One that stays started is a call whose outcome nobody knows.
type toolCall struct {
	ID             string `gorm:"primaryKey"`
	OrgID          store.OrgID
	Tool           string
	IdempotencyKey *string // unique per organization and tool
	ArgumentsHash  string  // "" without a key: nobody will compare it
	Status         callStatus
	Result         *string // kept for a replay, so only with a key
	StartedAt      store.Time
	FinishedAt     store.Time
}

// TableName keeps gorm from making a plural of its own; the table is in the migrations.
func (toolCall) TableName() string { return "tool_calls" }

type callStatus string

const (
	callStarted callStatus = "started"
	callDone    callStatus = "done"
	callFailed  callStatus = "failed"
)

// key is what a call is found by when it comes again: the client's own key, which finds the first call also when the yes
// is another one, else that of the yes. A client may write a key of its own that looks like one of a yes; it knows no
// yes but those of its own questions.
func (a arguments) key(in any) string {
	if k, ok := in.(keyed); ok && k.IdempotencyKey() != "" {
		return k.IdempotencyKey()
	}
	if a.assented != "" {
		return "confirm:" + a.assented
	}
	return ""
}

// began reports whether a call with a key is on record, other than as failed: that gave its key free.
func (r *Runner) began(ctx context.Context, t Tool, key string) (bool, error) {
	var n int64
	err := r.store.DB(ctx).Model(&toolCall{}).Where("tool = ? AND idempotency_key = ?", t.Name(), key).Count(&n).Error
	if err != nil {
		return false, fmt.Errorf("looking a call up: %w", err)
	}
	return n > 0, nil
}

// keyed is an input that carries the client's own key for this call. A repetition with the same key is answered with
// the result of the first call.
type keyed interface{ IdempotencyKey() string }

// claim puts on record that a call starts. When its key was used before there is nothing to start: call is the one of
// then, stored its result, and the record of this one is ok without a started of its own. A key that is taken
// otherwise is a fault, and the call has no record yet.
func (r *Runner) claim(ctx context.Context, t Tool, a arguments) (call toolCall, stored json.RawMessage, err error) {
	call = toolCall{ID: store.NewID("call"), Tool: t.Name(), Status: callStarted, StartedAt: store.Now()}
	in, err := t.decode(a.canonical)
	if err != nil {
		return call, nil, fmt.Errorf("decoding valid arguments: %w", err)
	}
	if key := a.key(in); key != "" {
		call.IdempotencyKey, call.ArgumentsHash = &key, a.digest()
	}
	var first toolCall
	err = r.store.Tx(ctx, func(ctx context.Context) (err error) {
		first = toolCall{} // of an attempt that the database gave up
		created := r.store.DB(ctx).Clauses(clause.OnConflict{DoNothing: true}).Create(&call)
		if created.Error != nil {
			return created.Error
		}
		if created.RowsAffected == 1 {
			return r.audit.Append(ctx, audit.Record{Action: t.Name(), Outcome: audit.Started, CallID: call.ID})
		}
		first, err = r.replay(ctx, t, call)
		return err
	})
	if err == nil && first.Result != nil {
		return first, json.RawMessage(*first.Result), nil
	}
	return call, nil, err
}

// replay finds the call that took the key of this one and ended well, and records that its result is given again.
func (r *Runner) replay(ctx context.Context, t Tool, call toolCall) (first toolCall, err error) {
	err = r.store.DB(ctx).Where("tool = ? AND idempotency_key = ?", call.Tool, *call.IdempotencyKey).Take(&first).Error
	if store.IsNotFound(err) {
		return first, fault.New(fault.IdempotencyConflict, "Another call with this idempotency key has just failed. Try again.")
	}
	if err != nil {
		return first, err
	}
	if first.ArgumentsHash != call.ArgumentsHash {
		return first, fault.New(fault.IdempotencyConflict, "This idempotency key was used for a call with other arguments. Use a new key.")
	}
	if first.Status != callDone || first.Result == nil {
		return first, fault.New(fault.IdempotencyConflict, "A call with this idempotency key is still running, or its outcome is unknown. "+
			"Look at what it was to change before you use a new key.").With("outcome", "unknown")
	}
	record := audit.Record{Action: t.Name(), Outcome: audit.OK, CallID: first.ID, Detail: map[string]any{"replay": true}}
	return first, r.audit.Append(ctx, record)
}

// finish puts on record, in the transaction of the effect, that a call ended well.
func (r *Runner) finish(ctx context.Context, t Tool, call toolCall, value json.RawMessage, about string) error {
	changes := map[string]any{"status": callDone, "finished_at": store.Now()}
	if call.IdempotencyKey != nil {
		changes["result"] = string(value)
	}
	updated := r.store.DB(ctx).Model(&toolCall{}).Where("id = ? AND status = ?", call.ID, callStarted).Updates(changes)
	if updated.Error != nil {
		return updated.Error
	}
	if updated.RowsAffected != 1 {
		return errors.New("the record of this call is gone")
	}
	return r.audit.Append(ctx, audit.Record{Action: t.Name(), Outcome: audit.OK, Subject: about, CallID: call.ID})
}

// fail puts on record that a call ended badly, and gives its key free where that means that nothing happened. An
// external effect may be there all the same unless the handler itself refused, so such a call stays started. It
// answers nil when the call is on record as done: the commit went through and only its acknowledgement was lost. The
// record has the id of the call also when the claim itself failed and its row is not there: the log line has it too.
func (r *Runner) fail(ctx context.Context, t Tool, call toolCall, cause error) error {
	_, refused := fault.Of(cause, "")
	ctx, cancel := lasting(ctx)
	defer cancel()
	done := false
	err := r.store.Tx(ctx, func(ctx context.Context) error {
		var kept toolCall
		err := r.store.Locked(ctx).Take(&kept, "id = ?", call.ID).Error
		if err != nil && !store.IsNotFound(err) {
			return err
		}
		if done = kept.Status == callDone; done {
			return nil
		}
		if refused || !t.spec.External {
			changes := map[string]any{"status": callFailed, "finished_at": store.Now(), "idempotency_key": nil}
			err := r.store.DB(ctx).Model(&toolCall{}).Where("id = ? AND status = ?", call.ID, callStarted).Updates(changes).Error
			if err != nil {
				return err
			}
		}
		return r.audit.Append(ctx, audit.Record{Action: t.Name(), Outcome: audit.Failed, Code: codeOf(cause), CallID: call.ID})
	})
	if err != nil {
		return fmt.Errorf("recording a failed call, %s: %w", codeOf(cause), err)
	}
	if done {
		return nil
	}
	return cause
}
