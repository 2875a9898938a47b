package kit

import (
	"context"
	"testing"
	"time"

	"switchboard/internal/store"
	"switchboard/internal/store/storetest"
)

func TestSweepForgetsWhatEndedLongAgoAndKeepsWhatNeverEnded(t *testing.T) {
	s := storetest.Open(t)
	r := NewRunner(RunnerConfig{Store: s})
	now, long := store.Now(), store.Now().Add(-callMemory-time.Hour)
	ctx := store.AllOrgs(t.Context(), "test")
	for _, c := range []toolCall{
		{ID: "old", OrgID: "a", Tool: "x", Status: "done", StartedAt: long, FinishedAt: long},
		{ID: "new", OrgID: "b", Tool: "x", Status: "done", StartedAt: now, FinishedAt: now},
		{ID: "lost", OrgID: "a", Tool: "x", Status: "started", StartedAt: long},
	} {
		if err := s.Tx(ctx, func(ctx context.Context) error { return s.DB(ctx).Create(&c).Error }); err != nil {
			t.Fatal(err)
		}
	}
	if err := r.Sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	var left []string
	if err := s.DB(ctx).Model(&toolCall{}).Order("id").Pluck("id", &left).Error; err != nil {
		t.Fatal(err)
	}
	if len(left) != 2 || left[0] != "lost" || left[1] != "new" {
		t.Errorf("left: %v", left)
	}
}
