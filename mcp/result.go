package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"unicode/utf8"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"switchboard/internal/caller"
	"switchboard/internal/fault"
	"switchboard/internal/web"
	"switchboard/tools/kit"
)

// whole is the result of a call that went well: the value for programs, and the same JSON as text for the clients that
// read only that. Domains page and bound what they return; whole is the last guard, for what one forgot. It keeps the
// value and cuts the text where both are too large, and where the value alone is:
//
//   - What was read is not shown at all, cut JSON being worse than none. The error says how to ask for less.
//   - What was changed stays changed, so an error would be a lie. The result says that it was done and not what.
func (h *Handler) whole(ctx context.Context, t kit.Tool, v json.RawMessage) *sdk.CallToolResult {
	alone, asText := kit.Size(v)
	room := kit.MaxResult - kit.Envelope - alone
	if asText <= room {
		return value(v, string(v))
	}
	h.log.LogAttrs(ctx, slog.LevelWarn, "result too large", slog.String("request", caller.Request(ctx)),
		slog.String("tool", t.Name()), slog.Int("bytes", alone+asText))
	if room >= minText {
		return value(v, cut(v, room))
	}
	if !t.Spec().Mutates() {
		web.Note(ctx, slog.String("err", string(fault.ResultTooLarge)))
		return refused(fault.New(fault.ResultTooLarge, "The result has %d bytes, and clients take %d. "+
			"Ask for less: a smaller limit, a narrower filter, or a part of it.", alone, kit.MaxResult).With("bytes", alone))
	}
	done, _ := jsonObject(map[string]any{"done": true, "truncated": true,
		"message": fmt.Sprintf("The call was carried out. Its result has %d bytes and is too large to show: read what you need of it. Do not call again.", alone)})
	return value(done, string(done))
}

func value(v json.RawMessage, text string) *sdk.CallToolResult {
	return &sdk.CallToolResult{StructuredContent: v, Content: []sdk.Content{&sdk.TextContent{Text: text}}}
}

// minText is how much of a text is worth sending beside a value.
const minText = 1_000

// cut is the beginning of a value as text, in room bytes as it is sent. What stands before it keeps it from being taken
// for the whole.
func cut(v json.RawMessage, room int) string {
	notice := fmt.Sprintf("Cut off: this is the beginning of a result of %d bytes, which is whole in structuredContent. "+
		"If you see only this text, ask for less: a smaller limit, a narrower filter, or a part of it.\n\n", len(v))
	room -= len(notice)
	end := 0
	for end < len(v) {
		_, width := utf8.DecodeRune(v[end:])
		if _, size := kit.Size(v[end : end+width]); room < size {
			break
		} else {
			room -= size
		}
		end += width
	}
	return notice + string(v[:end])
}

// refused is the result of a call that was understood and not carried out. It has no structuredContent: that is
// where clients look for the value.
func refused(f *fault.Error) *sdk.CallToolResult {
	text, err := jsonObject(f.Body())
	if err != nil {
		text = []byte(fmt.Sprintf(`{"error":{"code":%q,"message":"The error cannot be shown."}}`, f.Code))
	}
	return &sdk.CallToolResult{IsError: true, Content: []sdk.Content{&sdk.TextContent{Text: string(text)}}}
}

// jsonObject encodes without the HTML escapes that make text harder to read for a model.
func jsonObject(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(v)
	return bytes.TrimSpace(b.Bytes()), err
}
