package mcp

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"switchboard/tools/kit"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

const (
	methodHeader = "Mcp-Method"
	nameHeader   = "Mcp-Name"
	paramHeader  = "Mcp-Param-" // and a name
)

// ofProtocol reports whether a header belongs to the protocol and reaches the SDK.
func ofProtocol(name string) bool {
	return name == versionHeader || name == methodHeader || name == nameHeader || strings.HasPrefix(name, paramHeader)
}

// checkHeaders refuses a header of the protocol that is there twice and differs: the SDK reads the first, and a proxy
// that decides by the headers may have read the other.
func checkHeaders(header http.Header) *refusal {
	for name, values := range header {
		if ofProtocol(name) && len(slices.Compact(slices.Clone(values))) > 1 {
			return refuse(http.StatusBadRequest, sdk.CodeHeaderMismatch, name+" is there twice with different values.")
		}
	}
	return nil
}

// plainName undoes the form that a client gives to a name that a header cannot hold, =?base64?…?=. The SDK does so for
// the headers of arguments alone. What cannot be undone stays, and is then no tool's name.
func plainName(value string) string {
	encoded, begun := strings.CutPrefix(value, "=?base64?")
	encoded, ended := strings.CutSuffix(encoded, "?=")
	if !begun || !ended {
		return value
	}
	if name, err := base64.StdEncoding.DecodeString(encoded); err == nil {
		return string(name)
	}
	return value
}

// checkMessage refuses what is small on the wire and large to whoever parses it, and then, with that out of the way, what
// the SDK would read as something else: text that is not UTF-8 (RFC 8259 §8.1), a null for a method, and an id that it
// would answer under another one, since it keeps whole numbers of 53 bits. It only refuses; what runs is decided on what
// the SDK parses.
func checkMessage(body []byte) *refusal {
	switch values, depth := kit.Values(body); {
	case values > kit.MaxValues:
		return refuse(http.StatusRequestEntityTooLarge, jsonrpc.CodeInvalidRequest, fmt.Sprintf("The message holds more than %d values.", kit.MaxValues))
	case depth > kit.MaxDepth:
		return refuse(http.StatusBadRequest, jsonrpc.CodeInvalidRequest, fmt.Sprintf("The message is more than %d levels deep.", kit.MaxDepth))
	}
	var members map[string]json.RawMessage // by exact name, as the SDK has it; encoding/json folds case in structs alone
	if !utf8.Valid(body) || json.Unmarshal(body, &members) != nil {
		return refuse(http.StatusBadRequest, jsonrpc.CodeParseError, "The body must be one JSON-RPC message in UTF-8.")
	}
	if bytes.Equal(members["method"], []byte("null")) {
		return refuse(http.StatusBadRequest, jsonrpc.CodeInvalidRequest, "The method must be a string.")
	}
	if id := members["id"]; len(id) > 0 && (id[0] == '-' || id[0] >= '0' && id[0] <= '9') {
		n, err := strconv.ParseFloat(string(id), 64)
		if err != nil || n != math.Trunc(n) || math.Abs(n) >= 1<<53 {
			return refuse(http.StatusBadRequest, jsonrpc.CodeInvalidRequest, "The id must be a string or a whole number of at most 53 bits.")
		}
	}
	return nil
}
