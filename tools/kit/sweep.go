package kit

import (
	"context"
	"fmt"
	"time"

	"switchboard/internal/store"
)

// callMemory is how long a call that ended is kept, and with it the answer to a repeat of its idempotency key.
const callMemory = 30 * 24 * time.Hour

// Sweep forgets the calls of all organizations that ended long ago. A call that never ended stays: nobody knows its
// outcome, and a repeat of it must not run.
func (r *Runner) Sweep(ctx context.Context) error {
	ctx = store.AllOrgs(ctx, "sweeping the calls of all organizations")
	return r.store.Tx(ctx, func(ctx context.Context) error {
		err := r.store.DB(ctx).Delete(&toolCall{}, "finished_at < ?", store.Now().Add(-callMemory)).Error
		if err != nil {
			return fmt.Errorf("sweeping calls: %w", err)
		}
		return nil
	})
}
