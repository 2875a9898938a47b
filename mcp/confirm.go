package mcp

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"switchboard/internal/caller"
	"switchboard/internal/fault"
	"switchboard/internal/seal"
	"switchboard/tools/kit"
)

// Since 2026-07-28 a server can answer a call with a question (input_required) and the client repeats the call with
// the person's answer. A client that can show a form is asked to confirm that way; to all others, and to every
// client of an older revision, the Runner's confirmation_required is the answer. What a person accepts in a form of
// the client equals `confirm: true`: the client's word, and no approval.
//
// Between question and answer nothing is kept here. What was asked travels in requestState, which the specification
// has servers treat as the attacker's: it is authenticated, and good for one caller, one tool, the arguments and the preview
// that were shown, and a while.

// confirmation is the name of the one question.
const confirmation = "confirm"

// askedFor is how long an answer is waited for.
const askedFor = 10 * time.Minute

// asked is what a question was about.
type asked struct {
	Key       string `json:"key"` // id of the server key
	Via       string `json:"via"`
	Caller    string `json:"caller"` // connection or key
	Tool      string `json:"tool"`
	Arguments string `json:"arguments"` // digest
	Shown     string `json:"shown"`     // digest of the preview
	Nonce     string `json:"nonce"`     // the call takes effect once under it
	Expires   int64  `json:"expires"`   // Unix seconds
}

// elicits reports whether a client can be asked. The revision counts as the SDK has checked it against the header:
// earlier ones have no such answer, whatever capabilities such a request claims.
func elicits(req *sdk.CallToolRequest) bool {
	if req.ProtocolVersion() != modern {
		return false
	}
	c := req.ClientCapabilities()
	return c != nil && c.Elicitation != nil && (c.Elicitation.Form != nil || c.Elicitation.URL == nil) // {} means forms
}

// ask is the question.
func (h *Handler) ask(ctx context.Context, need *kit.NeedsConfirmation) *sdk.CallToolResult {
	c, _ := caller.From(ctx)
	return &sdk.CallToolResult{
		Content: []sdk.Content{}, // nil would be null on the wire
		InputRequests: sdk.InputRequestMap{confirmation: &sdk.ElicitParams{
			Mode: "form", Message: need.Text + " Do you want this?",
			RequestedSchema: json.RawMessage(`{"type":"object","properties":{}}`),
		}},
		RequestState: h.state(asked{
			Key: h.secrets.Current(), Via: string(c.Via), Caller: c.ID, Tool: need.Tool, Arguments: need.Arguments, Shown: need.Digest(),
			Nonce: rand.Text(), Expires: time.Now().Add(h.askedFor).Unix(),
		}),
	}
}

// assent reads the answer that a call brings along. The Runner asks it only where it has found that the caller may
// run the tool, that the arguments are valid and that they need confirmation.
func (h *Handler) assent(ctx context.Context, req *sdk.CallToolRequest) kit.Assent {
	return func(arguments string) (kit.Yes, error) {
		if req.Params.RequestState == "" && len(req.Params.InputResponses) == 0 {
			return kit.Yes{}, nil
		}
		about, err := h.recall(ctx, req.Params.Name, arguments, req.Params.RequestState)
		if err != nil {
			return kit.Yes{}, err
		}
		answer, ok := req.Params.InputResponses[confirmation].(*sdk.ElicitResult)
		switch {
		case !ok: // the specification has a missing answer asked for again
			return kit.Yes{}, nil
		case answer.Action == "accept":
			return kit.Yes{Key: about.Nonce, Shown: about.Shown}, nil
		}
		return kit.Yes{}, fault.New(fault.Declined, "The person declined, and nothing was done. Do not call %s again unless they ask for it.", req.Params.Name)
	}
}

// recall opens a state and holds it against the call that brings it.
func (h *Handler) recall(ctx context.Context, tool, arguments, state string) (asked, error) {
	c, _ := caller.From(ctx)
	about, ok := h.open(state)
	switch {
	case !ok:
		return asked{}, &strayAnswer{"it was not made by this server"}
	case about.Via != string(c.Via) || about.Caller != c.ID:
		return asked{}, &strayAnswer{"another connection was asked"}
	case about.Tool != tool || about.Arguments != arguments:
		return asked{}, &strayAnswer{"the question was about another call"}
	case time.Now().Unix() >= about.Expires:
		return asked{}, &strayAnswer{fmt.Sprintf("the question is older than %s", h.askedFor)}
	}
	return about, nil
}

// state writes down what was asked, with a keyed hash in front.
func (h *Handler) state(about asked) string {
	text, _ := json.Marshal(about) // strings and a number
	mac, _ := h.secrets.Derive(about.Key, seal.Asked, string(text))
	return base64.RawURLEncoding.EncodeToString(mac) + "." + base64.RawURLEncoding.EncodeToString(text)
}

// open reads a state of ours. What it says about its own key decides only which key it is held against.
func (h *Handler) open(state string) (about asked, ok bool) {
	encodedMAC, encodedText, _ := strings.Cut(state, ".")
	mac, err := base64.RawURLEncoding.DecodeString(encodedMAC)
	if err != nil {
		return asked{}, false
	}
	text, err := base64.RawURLEncoding.DecodeString(encodedText)
	if err != nil || json.Unmarshal(text, &about) != nil {
		return asked{}, false
	}
	want, known := h.secrets.Derive(about.Key, seal.Asked, string(text))
	return about, known && hmac.Equal(mac, want)
}

// strayAnswer is an answer to something that was not asked. The protocol has it refused with a JSON-RPC error: it is
// the message that is wrong, and a model cannot mend it.
type strayAnswer struct{ why string }

func (s *strayAnswer) Error() string { return "requestState: " + s.why }

// Unwrap is the fault that goes on record.
func (s *strayAnswer) Unwrap() error {
	return fault.New(fault.InvalidRequest, "The answer does not belong to this call: %s. Call again without requestState to be asked anew.", s.why)
}

// wire is the answer of the protocol.
func (s *strayAnswer) wire() *jsonrpc.Error {
	f, _ := fault.Of(s, "")
	return &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: f.Message}
}
