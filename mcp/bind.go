package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"switchboard/internal/caller"
	"switchboard/internal/fault"
	"switchboard/internal/web"
	"switchboard/tools/kit"
)

// bind puts one tool on the server. It uses the SDK's low-level AddTool: the kit has validated the arguments and
// encoded the result already, and the typed AddTool would do both again and put a made-up value beside every error.
func (h *Handler) bind(server *sdk.Server, t kit.Tool) {
	server.AddTool(describe(t), func(ctx context.Context, req *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		web.Note(ctx, slog.String("tool", t.Name()))
		var assent kit.Assent
		if elicits(req) {
			assent = h.assent(ctx, req)
		}
		res, err := h.within(ctx, t, req.Params.Arguments, assent)
		if missing := (*kit.ScopeError)(nil); errors.As(err, &missing) {
			return nil, missing
		}
		if stray := (*strayAnswer)(nil); errors.As(err, &stray) {
			web.Note(ctx, slog.String("err", string(fault.InvalidRequest)))
			return nil, stray.wire()
		}
		if need := (*kit.NeedsConfirmation)(nil); assent != nil && errors.As(err, &need) {
			web.Note(ctx, slog.String("err", string(fault.ConfirmationRequired)))
			return h.ask(ctx, need), nil
		}
		if err != nil {
			f, _ := fault.Of(err, caller.Request(ctx))
			web.Note(ctx, slog.String("err", string(f.Code)))
			return refused(f), nil
		}
		return h.whole(ctx, t, res.Value), nil
	})
}

// describe is a tool's entry in tools/list. Every hint is said: what is left out, hosts assume the worst of. There
// is no outputSchema: official clients hold even error results against it.
func describe(t kit.Tool) *sdk.Tool {
	s := t.Spec()
	destroys, reachesOut := s.Effect == kit.Destroy, s.External
	return &sdk.Tool{
		Name:        t.Name(),
		Title:       s.Title,
		Description: t.Description(),
		InputSchema: t.InputSchema(),
		Annotations: &sdk.ToolAnnotations{
			Title:           s.Title,
			ReadOnlyHint:    !s.Mutates(),
			DestructiveHint: &destroys,
			IdempotentHint:  s.Idempotent,
			OpenWorldHint:   &reachesOut,
		},
		Meta: sdk.Meta{"securitySchemes": []map[string]any{{"type": "oauth2", "scopes": []string(t.Needs())}}},
	}
}

// within runs a tool and gives up on it a moment after its deadline. The Runner's deadline is a request to the tool;
// one that does not listen must not keep the client, and the goroutines of its connection, waiting. The abandoned
// call goes on to its end, where the Runner records what became of it; Wait waits for it.
func (h *Handler) within(ctx context.Context, t kit.Tool, args json.RawMessage, assent kit.Assent) (kit.Result, error) {
	type outcome struct {
		res kit.Result
		err error
	}
	done := make(chan outcome, 1)
	h.calls.Go(func() {
		var o outcome
		defer func() {
			if v := recover(); v != nil {
				o.err = h.broken(ctx, fmt.Errorf("panic in %s: %v", t.Name(), v), debug.Stack())
			}
			done <- o
		}()
		o.res, o.err = h.runner.CallAsking(ctx, t, args, assent)
	})
	limit := t.Spec().Timeout
	timer := time.NewTimer(limit + h.late)
	defer timer.Stop()
	select {
	case o := <-done:
		return o.res, o.err
	case <-timer.C:
		return kit.Result{}, fault.New(fault.Timeout,
			"%s did not answer within %s and may still finish. Look whether it took effect before you call it again.", t.Name(), limit)
	}
}
