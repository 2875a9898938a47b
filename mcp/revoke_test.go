package mcp

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"switchboard/internal/audit"
	"switchboard/internal/caller"
	"switchboard/internal/scope"
	"switchboard/internal/store"
	"switchboard/internal/store/storetest"
	"switchboard/tools/kit"
)

// A revocation does not tear a change in half: the call that runs ends and is on record, and the next one is refused.
func TestACallThatRunsWhileItsKeyIsRevokedEndsOnRecordAndIsTheLast(t *testing.T) {
	t.Parallel()
	type none struct{}
	type answer struct {
		Said string `json:"said"`
	}
	started, release := make(chan struct{}), make(chan struct{})
	tools := kit.NewRegistry(kit.Area{Name: "test", Tools: []kit.Tool{
		kit.New(kit.Spec{Name: "slow", Title: "Slow", Scope: "org:read", Effect: kit.Write, Idempotent: true, Doc: "Returns what was said.", Example: `{}`},
			func(ctx context.Context, _ none) (answer, error) {
				close(started)
				select {
				case <-release:
					return answer{"done"}, nil
				case <-ctx.Done():
					return answer{}, ctx.Err()
				}
			}),
	}})
	var key string
	var revoke func()
	w := newWorld(t, func(cfg *Config) {
		s := storetest.Open(t)
		cfg.Tools = tools
		cfg.Auth, key = realAuth(t, s, tools, cfg.Log)
		revoke = func() { exec(t, s, `UPDATE api_keys SET revoked_at = ?`, store.Now()) }
	})
	onRecord := func(what string, want map[audit.Outcome]int) {
		t.Helper()
		got := map[audit.Outcome]int{}
		for _, outcome := range []audit.Outcome{audit.Started, audit.OK, audit.Failed, audit.Refused} {
			entries, _, err := w.audit.List(caller.With(t.Context(), caller.Caller{Org: "org_1", Person: "per_1", Role: scope.Owner}), audit.Filter{Action: "slow", Outcome: string(outcome)})
			if err != nil {
				t.Fatal(err)
			}
			if len(entries) > 0 {
				got[outcome] = len(entries)
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("on record %s (-want +got):\n%s", what, diff)
		}
	}
	running := make(chan reply, 1)
	go func() {
		defer close(running)
		running <- w.post(t, key, call("slow", `{}`))
	}()
	<-started
	revoke()
	next := w.post(t, key, `{"jsonrpc":"2.0","id":2,"method":"tools/list"}`)
	if next.status != http.StatusUnauthorized || !strings.Contains(next.header.Get("WWW-Authenticate"), `error="invalid_token"`) {
		t.Errorf("a call after the revocation, while one runs: %d %v", next.status, next.header)
	}
	onRecord("while it runs", map[audit.Outcome]int{audit.Started: 1})
	close(release)
	if got := (<-running).result(t); got.IsError {
		t.Errorf("the call that ran: %+v", got)
	}
	onRecord("after it", map[audit.Outcome]int{audit.Started: 1, audit.OK: 1})
	if last := w.post(t, key, call("slow", `{}`)); last.status != http.StatusUnauthorized {
		t.Errorf("a call after it: %d %s", last.status, last.body)
	}
}
