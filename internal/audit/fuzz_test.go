package audit

import (
	"strings"
	"testing"
	"unicode/utf8"

	"switchboard/internal/caller"
	"switchboard/internal/fault"
)

// Filters that nobody offered find nothing, and break nothing.
func FuzzFilters(f *testing.F) {
	for _, seed := range []string{"", "a", "\x00", "\xff", "'", "%", "0.aud_x", "9223372036854775808.aud_x", "-1.aud_\x00", "1.", ".aud_"} {
		f.Add(seed, seed, seed, seed)
		f.Add("", "", "", seed)
	}
	log, _ := newLog(f)
	f.Fuzz(func(t *testing.T, action, outcome, actor, cursor string) {
		ctx := caller.With(t.Context(), caller.Caller{Org: "org_1", Person: "per_1", Role: "owner"})
		if _, id, ok := parseCursor(cursor); ok && (!utf8.ValidString(id) || strings.Contains(id, "\x00")) {
			t.Errorf("%q is a cursor, and Postgres would refuse it", cursor)
		}
		filter := Filter{Action: action, Outcome: outcome, Actor: actor, Cursor: cursor}
		if _, _, err := log.List(ctx, filter); err != nil && !fault.Is(err, fault.InvalidRequest) {
			t.Errorf("%+v: %v", filter, err)
		}
		filter.Cursor = ""
		if _, err := log.Count(ctx, filter); err != nil {
			t.Errorf("%+v: %v", filter, err)
		}
	})
}
