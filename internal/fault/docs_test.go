package fault

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"switchboard/internal/golden"
)

// meanings says of every code what happened and what a client does about it.
var meanings = []struct {
	code    Code
	meaning string
}{
	{InvalidRequest, "An argument is missing, unknown or malformed. `details.field` names it. Correct it and call again."},
	{Forbidden, "The role of the person behind the connection or key does not allow this. No consent could: ask an administrator."},
	{NotFound, "There is no such thing in this organization. List first."},
	{ConfirmationRequired, "Nothing was done yet. Tell the user what would happen, and call again with `confirm: true` when they agree."},
	{Declined, "The person was asked by their client and said no. Nothing was done. Do not call again unless they ask for it."},
	{IdempotencyConflict, "The idempotency key was used with other arguments, or its first call has no known outcome: look whether it took effect before you use a new key."},
	{ResultTooLarge, "The result is larger than hosts take. Ask for less, as the message says; where one entry bars a list, `details.nextCursor` leads past it."},
	{Timeout, "The tool did not answer in time. Look whether it took effect before you call it again."},
	{Unauthorized, "The token or key is missing, unknown, expired or revoked. The `WWW-Authenticate` header says where to sign in."},
	{InsufficientScope, "The connection was not given the permission. The `WWW-Authenticate` header names all that is needed: sign in again with it."},
	{RateLimited, "Too many requests. `Retry-After` says when to come back."},
	{Unavailable, "The database cannot be reached. The token is still good: try again."},
	{Internal, "Something went wrong on the server. Try again; `details.requestId` finds it in the log."},
}

// onTheWire are the errors of the protocol; mcp/testdata has each in every revision.
const onTheWire = `
## JSON-RPC

| code | HTTP | when |
|---|---|---|
| -32700 | 400 | The body is not one JSON-RPC message in UTF-8. |
| -32600 | 400, 413, 415 | It is empty, a batch, not a message, over 1 MiB, over 20,000 values or 64 levels deep, or not application/json; the revision is not served. |
| -32601 | 200, since 2026-07-28 404 | There is no such method here. |
| -32602 | 200, since 2026-07-28 400 | There is no such tool, prompt or resource, the params do not have the form of the method, the cursor is not one of ours, or an answer does not belong to its question. |
| -32002 | 200 | There is no such resource, in revisions before 2026-07-28. |
| -32020 | 400 | A header of the protocol is missing, does not fit the message, or is there twice and differs (2026-07-28). |
| -32022 | 400 | The revision is not served; data.supported lists those that are (2026-07-28). |
| -32603 | 200 or 500 | Something went wrong on the server. |
`

func TestDocsOfErrorsAreUpToDate(t *testing.T) {
	var b strings.Builder
	b.WriteString("# Errors\n\nA tool that does not do what it was called for answers 200, with `isError: true` and this JSON as its text:\n\n```json\n{\"error\": {\"code\": \"not_found\", \"message\": \"…\", \"details\": {}}}\n```\n\n")
	b.WriteString("What fails before a tool runs is an HTTP error with the same body (401 without a valid token, 403 without the scope, 429, 503), or\na JSON-RPC error, [below](#json-rpc), where the message itself is at fault. The OAuth endpoints answer as RFC 6749 has it,\n`{\"error\", \"error_description\"}`; what a person has to read is a page. Codes are added, never renamed; messages may change. *HTTP*\nis the status of the code where the answer is not that of a tool.\n\n| code | HTTP | meaning |\n|---|---|---|\n")
	for _, m := range meanings {
		fmt.Fprintf(&b, "| `%s` | %d | %s |\n", m.code, m.code.Status(), m.meaning)
	}
	b.WriteString(onTheWire)
	golden.Check(t, "../../docs/errors.md", b.String())
}

func TestEveryCodeIsExplained(t *testing.T) {
	source, err := os.ReadFile("fault.go")
	if err != nil {
		t.Fatal(err)
	}
	codes := regexp.MustCompile(`(?m)^\t\w+ +Code = "(\w+)"`).FindAllStringSubmatch(string(source), -1)
	if len(codes) != len(meanings) {
		t.Errorf("%d codes, %d meanings", len(codes), len(meanings))
	}
	for i := range min(len(codes), len(meanings)) {
		if string(meanings[i].code) != codes[i][1] {
			t.Errorf("code %d is %s, its meaning is that of %s", i, codes[i][1], meanings[i].code)
		}
	}
}
