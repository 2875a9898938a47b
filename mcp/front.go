package mcp

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"slices"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"switchboard/internal/caller"
	"switchboard/internal/fault"
	"switchboard/internal/web"
)

const versionHeader = "Mcp-Protocol-Version"

// ServeHTTP answers one HTTP request. Who is calling comes before everything else, whatever the method: clients
// look for the challenge with GET and HEAD too.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c, err := h.auth.Authenticate(r, h.resource)
	if err != nil {
		h.auth.Challenge(w, h.resource, err)
		return
	}
	ctx := caller.With(r.Context(), c)
	web.Note(ctx, slog.String("org", c.Org), slog.String("conn", c.ID))

	if r.Method != http.MethodPost {
		// No stream to open, no session to end.
		w.Header().Set("Allow", http.MethodPost)
		web.Refuse(w, http.StatusMethodNotAllowed, fault.New(fault.InvalidRequest, "Send MCP messages with POST."))
		return
	}
	if who, wait, ok := h.limits.admit(c); !ok {
		web.Note(ctx, slog.String("err", string(fault.RateLimited)))
		web.TooMany(w, wait, who)
		return
	}
	body, refusal := h.read(w, r)
	if refusal == nil {
		refusal = checkVersion(r, body)
	}
	if refusal != nil {
		refusal.write(w)
		return
	}
	x, next := &exchange{caller: c, body: body, version: r.Header.Get(versionHeader)}, h.sdk
	if h.speaks(body) {
		x.live, next = w, h.speaking
	}
	next.ServeHTTP(x, forward(context.WithValue(ctx, exchangeKey{}, x), r, body))
	h.answer(w, r, x)
}

// read takes in the message and refuses what is none. Every refusal is a JSON-RPC error: clients parse these
// answers as JSON whatever the status.
func (h *Handler) read(w http.ResponseWriter, r *http.Request) ([]byte, *refusal) {
	if web.Media(r) != "application/json" {
		return nil, refuse(http.StatusUnsupportedMediaType, jsonrpc.CodeInvalidRequest, "Content-Type must be application/json, once, and the body not compressed.")
	}
	if no := checkHeaders(r.Header); no != nil {
		return nil, no
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, h.maxBody))
	if tooLarge := (*http.MaxBytesError)(nil); errors.As(err, &tooLarge) {
		return nil, refuse(http.StatusRequestEntityTooLarge, jsonrpc.CodeInvalidRequest,
			fmt.Sprintf("The message is larger than %d bytes.", tooLarge.Limit))
	}
	if err != nil {
		return nil, refuse(http.StatusBadRequest, jsonrpc.CodeInvalidRequest, "The message did not arrive whole.")
	}
	switch message := bytes.TrimLeft(body, " \t\r\n"); {
	case len(message) == 0:
		return nil, refuse(http.StatusBadRequest, jsonrpc.CodeInvalidRequest, "The body must be a JSON-RPC message.")
	case message[0] == '[':
		// Batches are gone since 2025-06-18, and in one the answer to a missing scope would come after its
		// neighbours have run.
		return nil, refuse(http.StatusBadRequest, jsonrpc.CodeInvalidRequest, "Batches are not supported. Send one message a request.")
	case message[0] != '{':
		return nil, refuse(http.StatusBadRequest, jsonrpc.CodeParseError, "The body must be one JSON-RPC message.")
	}
	return body, checkMessage(body)
}

// checkVersion refuses a revision that is not served. A client that opens with initialize does not know yet what is
// served and the answer tells it, so there the header does not count: it is taken away. The message is read with the
// SDK's own parser, so that both see the same method.
func checkVersion(r *http.Request, body []byte) *refusal {
	version := r.Header.Get(versionHeader)
	if version == "" || version != modern && slices.Contains(revisions[:], version) {
		return nil
	}
	if version == modern && !bytes.Contains(body, []byte(`"initialize"`)) {
		return nil
	}
	message, err := jsonrpc.DecodeMessage(body)
	if err != nil {
		return nil // the SDK says what is wrong
	}
	call, ok := message.(*jsonrpc.Request)
	framed := ok && bytes.Contains(call.Params, []byte(`"`+sdk.MetaKeyProtocolVersion+`"`))
	switch {
	case ok && call.Method == "initialize" && !framed:
		r.Header.Del(versionHeader)
	case version != modern && !(framed && version > modern):
		return unsupported(call, version)
	}
	return nil
}

// unsupported is the answer to a revision that is not served. Its code exists since 2026-07-28.
func unsupported(call *jsonrpc.Request, version string) *refusal {
	code := int64(jsonrpc.CodeInvalidRequest)
	if version > modern {
		code = sdk.CodeUnsupportedProtocolVersion
	}
	no := refuse(http.StatusBadRequest, code, "This protocol version is not supported.")
	no.err.Data = sdk.UnsupportedProtocolVersionData{Supported: revisions[:], Requested: version}
	if call != nil {
		no.id = call.ID.Raw()
	}
	return no
}

// forward makes the request that the SDK sees. Of the headers it gets those of the protocol: no token, no cookie,
// no session or event id, which a stateless server ignores and the SDK would trip over. Accept is what the SDK
// insists on: clients spell it in many ways and can all read plain JSON.
func forward(ctx context.Context, r *http.Request, body []byte) *http.Request {
	header := http.Header{
		"Content-Type": {"application/json"},
		"Accept":       {"application/json, text/event-stream"},
	}
	for name, values := range r.Header {
		switch {
		case name == nameHeader:
			header[name] = []string{plainName(values[0])}
		case ofProtocol(name):
			header[name] = values
		}
	}
	r = r.WithContext(ctx)
	r.Header = header
	r.Body = io.NopCloser(bytes.NewReader(body))
	r.ContentLength = int64(len(body))
	return r
}
