package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"switchboard/internal/caller"
	"switchboard/internal/fault"
	"switchboard/tools/kit"
)

// gate stands where the SDK has parsed the message and is about to act on it, so it judges what will run. It fails
// closed: without a caller nothing passes, and neither does a method that is not listed.
//
// Whether a tool may run is kit.Allowed's decision, which the Runner asks before it looks at the arguments, and
// records where the tool would have changed something. The gate turns a missing scope into the HTTP answer. Were
// that lost, the client would still get an error and the tool would still not run.
func (h *Handler) gate(next sdk.MethodHandler) sdk.MethodHandler {
	return func(ctx context.Context, method string, req sdk.Request) (res sdk.Result, err error) {
		defer func() {
			if v := recover(); v != nil {
				res, err = nil, h.broken(ctx, fmt.Errorf("panic in %s: %v", h.lets(method), v), debug.Stack())
			}
		}()
		x, ok := ctx.Value(exchangeKey{}).(*exchange)
		c, authenticated := caller.From(ctx)
		if !ok || !authenticated {
			return nil, h.broken(ctx, errors.New("message without a caller"), nil)
		}
		if h.lets(method) == "" || h.undeclared(method, x.version) {
			return nil, &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: fmt.Sprintf("method not found: %q", method)}
		}
		if err = h.permit(c, method, req); err == nil {
			res, err = next(ctx, method, req)
		}
		if err == nil {
			return res, nil
		}
		if missing := (*kit.ScopeError)(nil); errors.As(err, &missing) {
			x.denied = h.denial(missing, req)
			return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: x.denied.message}
		}
		if wire := (*jsonrpc.Error)(nil); errors.As(err, &wire) {
			return nil, inRevision(x.version, wire)
		}
		return nil, h.broken(ctx, err, nil)
	}
}

// undeclared reports whether a request is for a list of something that server/discover does not declare. Who supports a
// feature must declare it, and since 2026-07-28 clients know what is declared before they ask.
func (h *Handler) undeclared(method, revision string) bool {
	switch method {
	case "prompts/list", "resources/list", "resources/templates/list":
		return revision == modern && h.fixtures == nil
	}
	return false
}

// known returns a method that is let through, and "" for any other: what belongs to a capability that is not declared is
// a method not found (2026-07-28, MethodNotFoundError), resources/read and prompts/get among it. Lists without entries
// are let through because clients of the revisions before 2026-07-28 ask for them whether or not they are declared.
func known(method string) string {
	switch method {
	case "initialize", "ping", "server/discover",
		"notifications/initialized", "notifications/cancelled", "notifications/progress", "notifications/roots/list_changed",
		"tools/list", "tools/call", "prompts/list", "resources/list", "resources/templates/list":
		return method
	}
	return ""
}

// codeNoResource is what a resource that does not exist was before 2026-07-28 (2025-11-25, server/resources, Error
// Handling). Since then it is -32602 with the uri as data, and the SDK sends that in every revision.
const codeNoResource = -32002

// inRevision gives an error the code that it has in the revision of the request.
func inRevision(version string, err *jsonrpc.Error) *jsonrpc.Error {
	var missing struct{ URI *string }
	if version == modern || err.Code != jsonrpc.CodeInvalidParams || json.Unmarshal(err.Data, &missing) != nil || missing.URI == nil {
		return err
	}
	return &jsonrpc.Error{Code: codeNoResource, Message: err.Message, Data: err.Data}
}

// denial names everything that the call needs, not only what is missing: a challenge that drips one scope at a time
// sends a person through consent once for each.
func (h *Handler) denial(missing *kit.ScopeError, req sdk.Request) *denial {
	d := &denial{message: "This call needs a permission that was not given.", need: missing.Missing}
	if f := (*fault.Error)(nil); errors.As(missing, &f) {
		d.message = f.Message
	}
	if call, ok := req.(*sdk.CallToolRequest); ok {
		if t, ok := h.tools.Tool(call.Params.Name); ok {
			d.need = d.need.Union(t.Needs())
		}
	}
	return d
}

// broken logs what must not happen and returns what the outside may know about it.
func (h *Handler) broken(ctx context.Context, cause error, stack []byte) *jsonrpc.Error {
	request := caller.Request(ctx)
	attrs := []slog.Attr{slog.String("request", request), slog.String("err", cause.Error())}
	if stack != nil {
		attrs = append(attrs, slog.String("stack", string(stack)))
	}
	h.log.LogAttrs(ctx, slog.LevelError, "mcp request failed", attrs...)
	f, _ := fault.Of(cause, request)
	data, _ := jsonObject(f.Details)
	return &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: f.Message, Data: data}
}
