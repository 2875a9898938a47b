package kit

import (
	"context"
	"testing"
	"time"

	"switchboard/internal/caller"
	"switchboard/internal/fault"
	"switchboard/internal/store"
)

// A cursor that was not given out for this list and organization is refused; one that was leads back to its place.
func FuzzCursors(f *testing.F) {
	ctx := caller.With(context.Background(), caller.Caller{Org: "org_1"})
	at := Position{At: store.At(time.UnixMicro(1_800_000_000_000_000)), ID: "con_1"}
	for _, seed := range []string{"", "canary", "AAAA", "AAAAAAAAAAAxIAA", cursor(ctx, "list", at), cursor(ctx, "other", at), cursor(ctx, "list", at) + "=", "\x00"} {
		f.Add(seed, int64(7), "con_1")
	}
	f.Fuzz(func(t *testing.T, sent string, micros int64, id string) {
		p, err := parseCursor(ctx, "list", sent)
		if err == nil && cursor(ctx, "list", p) != sent {
			t.Errorf("%q is %+v, which is %q", sent, p, cursor(ctx, "list", p))
		}
		if err != nil && !fault.Is(err, fault.InvalidRequest) {
			t.Errorf("%q: %v", sent, err)
		}
		if !idPattern.MatchString(id) {
			return
		}
		want := Position{At: store.At(time.UnixMicro(micros)), ID: id}
		own := cursor(ctx, "list", want)
		if got, err := parseCursor(ctx, "list", own); err != nil || !got.At.Equal(want.At.Time) || got.ID != id {
			t.Errorf("%+v is %q and read as %+v %v", want, own, got, err)
		}
		for _, elsewhere := range []struct{ org, list string }{{"org_2", "list"}, {"org_1", "other"}} {
			if _, err := parseCursor(caller.With(ctx, caller.Caller{Org: elsewhere.org}), elsewhere.list, own); err == nil {
				t.Errorf("%q is good for %+v too", own, elsewhere)
			}
		}
	})
}
