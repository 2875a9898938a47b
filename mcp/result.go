package mcp

import (
	"bytes"
	"encoding/json"
	"fmt"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"switchboard/internal/fault"
)

// value is the result of a call that went well: the value for programs, and the same JSON as text for the clients
// that read only that.
func value(v json.RawMessage) *sdk.CallToolResult {
	return &sdk.CallToolResult{StructuredContent: v, Content: []sdk.Content{&sdk.TextContent{Text: string(v)}}}
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
