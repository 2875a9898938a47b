package mcp

import (
	"bytes"
	"fmt"
	"net/http"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"switchboard/internal/caller"
	"switchboard/tools/kit"
)

// Fixtures are what a conformance suite asks a server for and no domain offers: content of every kind, prompts,
// resources, tools that speak while they run. They are served by the same handler, behind the same gate, so that what
// the suite finds it finds in the product. The product has none, and then nothing here is reached.
type Fixtures struct {
	// Options changes what the server is made with: capabilities, completion, subscriptions.
	Options func(*sdk.ServerOptions)
	// Add puts tools, prompts and resources on the server.
	Add func(*sdk.Server)
	// Tools says of each added tool what the gate has to know. One that is not here cannot be called.
	Tools map[string]Fixture
	// Methods are let through besides those that the product knows, each with the scope that it needs.
	Methods map[string]string
}

// Fixture is what the gate knows of an added tool.
type Fixture struct {
	Scope string
	// Speaks says that the tool sends notifications while it runs. The answer to a call of it is a stream.
	Speaks bool
}

// permit asks kit.Allowed about what the fixtures added. About the product's own tools the Runner asks.
func (h *Handler) permit(c caller.Caller, method string, req sdk.Request) error {
	if h.fixtures == nil {
		return nil
	}
	name, need := method, h.fixtures.Methods[method]
	if call, ok := req.(*sdk.CallToolRequest); ok {
		name = call.Params.Name
		if _, own := h.tools.Tool(name); own {
			return nil
		}
		fixture, ok := h.fixtures.Tools[name]
		if !ok {
			return &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: fmt.Sprintf("unknown tool %q", name)}
		}
		need = fixture.Scope
	} else if known(method) != "" {
		return nil
	}
	return kit.Allowed(c, kit.Spec{Name: name, Scope: need})
}

// lets returns a method that the gate lets through, and "" for any other.
func (h *Handler) lets(method string) string {
	if h.fixtures != nil {
		if _, ok := h.fixtures.Methods[method]; ok {
			return method
		}
	}
	return known(method)
}

// speaks reports whether the answer to a message is a stream: to a subscription, or to a call of a tool that speaks
// while it runs. The message is read with the SDK's own parser. Its params are only searched for a name: that may find
// one where there is none and costs the answer its form and nothing else, since it is the gate that decides what runs.
func (h *Handler) speaks(body []byte) bool {
	if h.fixtures == nil {
		return false
	}
	message, err := jsonrpc.DecodeMessage(body)
	call, ok := message.(*jsonrpc.Request)
	if err != nil || !ok {
		return false
	}
	if call.Method == "subscriptions/listen" {
		return h.lets(call.Method) != ""
	}
	for name, fixture := range h.fixtures.Tools {
		if fixture.Speaks && call.Method == "tools/call" && bytes.Contains(call.Params, []byte(`"`+name+`"`)) {
			return true
		}
	}
	return false
}

// stream sends a frame on as it comes. Frames begin only once the gate has let the call through: whatever the gate or
// the SDK refuse is no stream, or is denied by now, and is held back like any other answer.
func (x *exchange) stream(frame []byte) (int, error) {
	if !x.streaming {
		x.streaming = true
		header := x.live.Header()
		header.Set("Content-Type", eventStream)
		header.Set("Cache-Control", "no-store")
		header.Set("X-Accel-Buffering", "no") // proxies that collect answers would keep it until the end
		x.live.WriteHeader(http.StatusOK)
	}
	n, err := x.live.Write(frame)
	if err == nil {
		err = http.NewResponseController(x.live).Flush()
	}
	return n, err
}

const eventStream = "text/event-stream"
