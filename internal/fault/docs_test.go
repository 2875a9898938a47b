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
	{IdempotencyConflict, "The idempotency key was used with other arguments, or its first call has no known outcome."},
	{ResultTooLarge, "The result is larger than hosts take. Ask for less, as the message says; where one entry bars a list, `details.nextCursor` leads past it."},
	{Timeout, "The tool did not answer in time. Look whether it took effect before you call it again."},
	{Unauthorized, "The token or key is missing, unknown, expired or revoked. The `WWW-Authenticate` header says where to sign in."},
	{InsufficientScope, "The connection was not given the permission. The `WWW-Authenticate` header names all that is needed: sign in again with it."},
	{RateLimited, "Too many requests. `Retry-After` says when to come back."},
	{Unavailable, "The database cannot be reached. The token is still good: try again."},
	{Internal, "Something went wrong on the server. `details.requestId` finds it in the log."},
}

func TestDocsOfErrorsAreUpToDate(t *testing.T) {
	var b strings.Builder
	b.WriteString("# Errors\n\nA tool that fails answers with `isError: true` and this JSON as its text:\n\n```json\n{\"error\": {\"code\": \"not_found\", \"message\": \"…\", \"details\": {}}}\n```\n\n")
	b.WriteString("What fails before a tool runs is an HTTP error with the same body (401, 403, 429, 503), or a JSON-RPC error where the message\nitself is at fault. The OAuth endpoints answer as RFC 6749 has it, `{\"error\", \"error_description\"}`. Codes are added, never\nrenamed; messages may change.\n\n| code | HTTP | meaning |\n|---|---|---|\n")
	for _, m := range meanings {
		fmt.Fprintf(&b, "| `%s` | %d | %s |\n", m.code, m.code.Status(), m.meaning)
	}
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
