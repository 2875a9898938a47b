package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"switchboard/internal/fault"
	"switchboard/tools/kit"
)

// contents are texts that grow differently on their way.
var contents = map[string]string{
	"plain letters":    "a",
	"letters of two":   "é",
	"an emoji":         "😀",
	"quotation marks":  `"`,
	"backslashes":      `\`,
	"marks of HTML":    "<&>",
	"control signs":    "\x01",
	"tabs and lines":   "\t\n\r",
	"line separators":  "\u2028\u2029",
	"a bit of all":     "a\"é\\\u2028<\x02😀\n",
	"what is no UTF-8": "\xff\xfe",
}

// speakers are tools that return as much of a text as they are asked for.
func speakers() kit.Registry {
	type wish struct {
		Of    string `json:"of" doc:"Which."`
		Bytes int    `json:"bytes" doc:"How much."`
	}
	type speech struct {
		Said string `json:"said"`
	}
	say := func(_ context.Context, in wish) (speech, error) {
		unit := contents[in.Of]
		return speech{strings.Repeat(unit, in.Bytes/len(unit))}, nil
	}
	spec := kit.Spec{Name: "say", Title: "Say", Scope: "org:read", Doc: "Returns it.", Example: `{"of":"plain letters","bytes":1}`}
	change := spec
	change.Name, change.Scope, change.Effect = "change", "contacts:write", kit.Write
	return kit.NewRegistry(kit.Area{Tools: []kit.Tool{kit.New(spec, say), kit.New(change, say)}})
}

func TestTheSizeOfAValueIsWhatIsSent(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(cfg *Config) { cfg.Tools = speakers() })
	around := -1
	for name := range contents {
		r := w.post(t, "both", call("say", fmt.Sprintf(`{"of":%q,"bytes":300}`, name)))
		alone, asText := kit.Size(json.RawMessage(r.result(t).Content[0].Text))
		if around < 0 {
			around = len(r.body) - alone - asText
		}
		if got := len(r.body) - alone - asText; got != around || got > kit.Envelope {
			t.Errorf("%s: %d bytes sent are %d more than the value and its copy, not %d", name, len(r.body), got, around)
		}
	}
}

func TestNoAnswerIsLargerThanHostsTake(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(cfg *Config) { cfg.Tools = speakers() })
	seen := map[string]int{}
	for name := range contents {
		for _, bytes := range []int{1_000, 5_000, 9_000, 12_000, 18_000, 25_000, 28_000, 30_000, 40_000, 57_000, 59_000, 70_000, 300_000} {
			for _, tool := range []string{"say", "change"} {
				r := w.post(t, "both", call(tool, fmt.Sprintf(`{"of":%q,"bytes":%d}`, name, bytes)))
				if len(r.body) > kit.MaxResult {
					t.Errorf("%s, %d of %s: %d bytes", tool, bytes, name, len(r.body))
				}
				kind := judge(t, r.result(t), bytes, tool)
				seen[tool+" "+kind]++
			}
		}
	}
	for _, want := range []string{"say whole", "say cut", "say refused", "change whole", "change cut", "change done"} {
		if seen[want] == 0 {
			t.Errorf("no answer was %q: %v", want, seen)
		}
	}
	if seen["say done"]+seen["change refused"] > 0 {
		t.Errorf("%v", seen)
	}
	if n := strings.Count(w.logs.String(), `"msg":"result too large"`); n != seen["say cut"]+seen["say refused"]+seen["change cut"]+seen["change done"] {
		t.Errorf("%d log lines for %v", n, seen)
	}
	for _, part := range []string{`"tool":"say"`, `"bytes":`, `"request":"req_`} {
		if !strings.Contains(w.logs.String(), part) {
			t.Errorf("the log does not say %s", part)
		}
	}
}

// judge says what kind of answer a result is, and that it is honest.
func judge(t *testing.T, got toolResult, asked int, tool string) string {
	t.Helper()
	if got.IsError {
		if got.code(t) != fault.ResultTooLarge || got.StructuredContent != nil || !strings.Contains(got.Content[0].Text, "Ask for less") {
			t.Errorf("%s of %d: %.300s", tool, asked, got.Content[0].Text)
		}
		return "refused"
	}
	var value struct {
		Said            *string
		Done, Truncated bool
		Message         string
	}
	if err := json.Unmarshal(got.StructuredContent, &value); err != nil {
		t.Fatal(err)
	}
	text := got.Content[0].Text
	switch {
	case value.Said == nil:
		if !value.Done || !value.Truncated || !strings.Contains(value.Message, "was carried out") || !json.Valid([]byte(text)) {
			t.Errorf("%s of %d: %s", tool, asked, text)
		}
		return "done"
	case json.Valid([]byte(text)):
		var copied struct{ Said string }
		if err := json.Unmarshal([]byte(text), &copied); err != nil || copied.Said != *value.Said {
			t.Errorf("%s of %d: the text is not the value", tool, asked)
		}
		return "whole"
	}
	notice, beginning, _ := strings.Cut(text, "\n\n")
	if !strings.HasPrefix(notice, "Cut off: ") || !strings.Contains(notice, "whole in structuredContent") ||
		!strings.HasPrefix(beginning, `{"said":"`) || strings.HasSuffix(beginning, "}") || len(*value.Said) < 2 {
		t.Errorf("%s of %d: %.300s", tool, asked, text)
	}
	return "cut"
}
