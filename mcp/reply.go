package mcp

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"switchboard/internal/caller"
	"switchboard/internal/fault"
	"switchboard/internal/scope"
	"switchboard/internal/web"
)

// exchange is one message and the answer to it, held back until it is whole. The gate leaves a denial here, and
// then the SDK's answer never goes out.
type exchange struct {
	caller caller.Caller
	body   []byte // the message
	// version is what the request says of its revision, "" for one before 2025-06-18.
	version string

	header http.Header
	status int
	out    bytes.Buffer
	denied *denial

	live      http.ResponseWriter // where an answer goes that may be a stream; nil for every other
	streaming bool                // it is one, and has begun
}

// denial is a call that the caller's scopes do not cover.
type denial struct {
	message string
	need    scope.Set
}

type exchangeKey struct{}

// Header, Write and WriteHeader make an exchange the http.ResponseWriter of the SDK. The SDK writes from the
// goroutine of the call, and its ServeHTTP returns only after that has finished writing.
func (x *exchange) Header() http.Header {
	if x.header == nil {
		x.header = http.Header{}
	}
	return x.header
}

func (x *exchange) WriteHeader(status int) {
	if x.status == 0 {
		x.status = status
	}
}

func (x *exchange) Write(b []byte) (int, error) {
	if x.live != nil && x.denied == nil && x.Header().Get("Content-Type") == eventStream {
		return x.stream(b)
	}
	x.WriteHeader(http.StatusOK)
	return x.out.Write(b)
}

// answer sends what the gate and the SDK have decided.
func (h *Handler) answer(w http.ResponseWriter, r *http.Request, x *exchange) {
	switch {
	case x.streaming: // it went out as it came
	case x.denied != nil:
		h.challenge(w, r, x)
	case x.status == 0:
		if r.Context().Err() == nil { // otherwise nobody is there to read it
			internal(caller.Request(r.Context())).write(w)
		}
	case strings.HasPrefix(x.Header().Get("Content-Type"), "text/plain"):
		translate(x).write(w)
	default:
		if no := unreadable(x); no != nil {
			no.write(w)
			return
		}
		out := x.out.Bytes()
		// The SDK answers subscriptions/listen as a stream, whatever it was told. What it holds is one message.
		if frame, ok := bytes.CutPrefix(out, []byte("event: message\ndata: ")); ok {
			out = bytes.TrimSpace(frame)
		}
		w.Header().Set("Cache-Control", "no-store")
		if len(out) > 0 {
			w.Header().Set("Content-Type", "application/json")
		}
		w.WriteHeader(x.status)
		_, _ = w.Write(out) // a client that is gone is no error of ours
	}
}

// unreadable replaces the SDK's error about params that do not fit their method, which quotes the message and names
// Go types. It returns nil for any other answer.
func unreadable(x *exchange) *refusal {
	out := x.out.Bytes()
	if bytes.Contains(out, []byte(`,"result":`)) || !bytes.Contains(out, []byte(`"message":"handling '`)) {
		return nil
	}
	var answer struct {
		ID    json.RawMessage
		Error wireError
	}
	if json.Unmarshal(out, &answer) != nil {
		return nil
	}
	method, _, _ := strings.Cut(strings.TrimPrefix(answer.Error.Message, "handling '"), "'")
	if answer.Error.Code == 0 { // the SDK leaves it out where the params of initialize do not fit
		answer.Error.Code = jsonrpc.CodeInvalidParams
	}
	no := refuse(x.status, answer.Error.Code, fmt.Sprintf("The params of %s do not have the form that the protocol gives them.", method))
	no.id = answer.ID
	return no
}

// challenge is the step-up of RFC 6750 §3.1: what the caller has and what the call needs, in one list, because
// clients ask for exactly the list they are shown and would otherwise lose what they had.
func (h *Handler) challenge(w http.ResponseWriter, r *http.Request, x *exchange) {
	c := x.caller
	web.Note(r.Context(), slog.String("err", string(fault.InsufficientScope)))
	w.Header().Set("WWW-Authenticate", h.auth.ScopeChallenge(h.resource, c.Granted, x.denied.need, x.denied.message))
	web.Fault(w, fault.New(fault.InsufficientScope, "%s", x.denied.message).
		With("required", x.denied.need).With("granted", c.Scopes))
}

// refusal is an HTTP answer with a JSON-RPC error, which says "id": null where it is not known whose error it is
// (JSON-RPC 2.0 §5).
type refusal struct {
	status int
	id     any
	err    wireError
}

type wireError struct {
	Code    int64  `json:"code"`
	Message string `json:"message"`
	Data    any    `json:"data,omitempty"`
}

func refuse(status int, code int64, message string) *refusal {
	return &refusal{status: status, err: wireError{Code: code, Message: message}}
}

// translate turns the SDK's plain text into JSON-RPC.
func translate(x *exchange) *refusal {
	text := strings.TrimSpace(x.out.String())
	message, err := jsonrpc.DecodeMessage(x.body)
	if err != nil {
		if !json.Valid(x.body) {
			return refuse(x.status, jsonrpc.CodeParseError, "The body is not valid JSON.")
		}
		return refuse(x.status, jsonrpc.CodeInvalidRequest, "The body is not a JSON-RPC message.")
	}
	call, ok := message.(*jsonrpc.Request)
	switch {
	case !ok:
		return refuse(x.status, jsonrpc.CodeInvalidRequest, text)
	case !strings.HasPrefix(text, "JSON RPC not handled"):
		no := refuse(x.status, jsonrpc.CodeInvalidRequest, text)
		no.id = call.ID.Raw()
		return no
	case !call.IsCall():
		return &refusal{status: http.StatusAccepted} // JSON-RPC 2.0 §4.1: a notification gets no error
	}
	// Revisions before 2026-07-28 carry the errors of a request in a 200.
	no := refuse(http.StatusOK, jsonrpc.CodeMethodNotFound, fmt.Sprintf("method not found: %q", call.Method))
	no.id = call.ID.Raw()
	return no
}

func internal(request string) *refusal {
	f, _ := fault.Of(nil, request)
	no := refuse(http.StatusInternalServerError, jsonrpc.CodeInternalError, f.Message)
	no.err.Data = f.Details
	return no
}

func (no *refusal) write(w http.ResponseWriter) {
	if no.status == http.StatusAccepted {
		w.WriteHeader(no.status)
		return
	}
	w.Header().Set("Cache-Control", "no-store")
	web.JSON(w, no.status, struct {
		Version string    `json:"jsonrpc"`
		ID      any       `json:"id"`
		Error   wireError `json:"error"`
	}{"2.0", no.id, no.err})
}
