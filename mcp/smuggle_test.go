package mcp

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"switchboard/internal/audit"
	"switchboard/internal/fault"
)

// The classic way round a check is a message that two parsers read differently: by the case of its keys, by which
// of two equal keys counts, by what is allowed before it. "low" may call low and not high.
func TestAToolOutsideTheScopesNeverRuns(t *testing.T) {
	t.Parallel()
	list := `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`
	high := call("high", `{}`)
	bodies := map[string]string{
		"plain":                      high,
		"name then Name":             `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"low","Name":"high","arguments":{}}}`,
		"Name then name":             `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"Name":"low","name":"high","arguments":{}}}`,
		"Name alone":                 `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"Name":"high","arguments":{}}}`,
		"method then METHOD":         `{"jsonrpc":"2.0","id":1,"method":"tools/list","METHOD":"tools/call","params":{"name":"high","arguments":{}}}`,
		"METHOD then method":         `{"jsonrpc":"2.0","id":1,"METHOD":"tools/list","method":"tools/call","params":{"name":"high","arguments":{}}}`,
		"two names, low first":       `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"low","name":"high","arguments":{}}}`,
		"two names, high first":      `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"high","name":"low","arguments":{}}}`,
		"two methods":                `{"jsonrpc":"2.0","id":1,"method":"tools/list","method":"tools/call","params":{"name":"high","arguments":{}}}`,
		"two params":                 `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"low"},"params":{"name":"high","arguments":{}}}`,
		"Params then params":         `{"jsonrpc":"2.0","id":1,"method":"tools/call","Params":{"name":"low"},"params":{"name":"high","arguments":{}}}`,
		"paramſ, a long s":           `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"low","arguments":{}},"paramſ":{"name":"high","arguments":{}}}`,
		"paramſ alone":               `{"jsonrpc":"2.0","id":1,"method":"tools/call","paramſ":{"name":"high","arguments":{}}}`,
		"a long s in arguments":      `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"low","argumentſ":{"name":"high"},"ſname":"high","arguments":{}}}`,
		"an escaped long s":          `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"low","arguments":{}},"param\u017f":{"name":"high","arguments":{}}}`,
		"PARAMS alone":               `{"jsonrpc":"2.0","id":1,"method":"tools/call","PARAMS":{"name":"high","arguments":{}}}`,
		"params in params":           `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"low","params":{"name":"high"},"arguments":{}}}`,
		"params as a list":           `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":["high",{}]}`,
		"params as a text":           `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":"{\"name\":\"high\",\"arguments\":{}}"}`,
		"a name that is a list":      `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":["high"],"arguments":{}}}`,
		"a method in other letters":  `{"jsonrpc":"2.0","id":1,"method":"Tools/Call","params":{"name":"high","arguments":{}}}`,
		"a method with an escape":    `{"jsonrpc":"2.0","id":1,"method":"tools\/call","params":{"name":"high","arguments":{}}}`,
		"a result beside the method": `{"jsonrpc":"2.0","id":1,"result":{},"method":"tools/call","params":{"name":"high","arguments":{}}}`,
		"an error beside the method": `{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":""},"method":"tools/call","params":{"name":"high","arguments":{}}}`,
		"two ids":                    `{"jsonrpc":"2.0","id":1,"id":2,"method":"tools/call","params":{"name":"high","arguments":{}}}`,
		"a name behind a null byte":  `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"high\u0000","arguments":{}}}`,
		"a batch in a batch":         "[[" + high + "]]",
		"an escaped key":             `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"low","n\u0061me":"high","arguments":{}}}`,
		"an escaped value":           `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"hi\u0067h","arguments":{}}}`,
		"a batch":                    "[" + list + "," + high + "]",
		"a batch of one":             "[" + high + "]",
		"a batch behind white space": " \t\r\n[" + list + "," + high + "]",
		"a batch behind a mark":      "\ufeff[" + high + "]",
		"a batch behind a form feed": "\f[" + high + "]",
		"a batch behind a null byte": "\x00[" + high + "]",
		"a second document":          list + high,
		"a batch as second document": list + "[" + high + "]",
		"a call without an id":       `{"jsonrpc":"2.0","method":"tools/call","params":{"name":"high","arguments":{}}}`,
		"arguments named like it":    `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"low","arguments":{"name":"high"}}}`,
		"a name with white space":    `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":" high","arguments":{}}}`,
		"a name in other letters":    `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"HIGH","arguments":{}}}`,
	}
	w := newWorld(t)
	for name, body := range bodies {
		for _, version := range append([]string{""}, revisions[:]...) {
			sent, headers := body, []string{"Mcp-Name", "low", "Mcp-Method", "tools/list"}
			if version != "" {
				headers = append(headers, "MCP-Protocol-Version", version)
			}
			if version == modern {
				headers = []string{"MCP-Protocol-Version", modern, "Mcp-Method", "tools/call", "Mcp-Name", "high"}
				sent = strings.ReplaceAll(body, `"arguments":{}`, `"arguments":{},`+modernMeta)
			}
			r := w.post(t, "low", sent, headers...)
			if r.status >= 500 || r.status/100 == 3 {
				t.Errorf("%s, %s: %d %s", name, version, r.status, r.body)
			}
			if w.ran.Swap(0) != 0 {
				t.Errorf("%s, %s: the tool ran", name, version)
			}
		}
	}
}

// modernMeta is what every message of 2026-07-28 says in its params.
const modernMeta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}`

// What a tool gets comes from "arguments" and from nothing that reads like it.
func TestArgumentsComeUnderOneName(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for params, want := range map[string]string{
		`{"name":"low","arguments":{"text":"a"},"Arguments":{"text":"b"}}`: "low a",
		`{"name":"low","Arguments":{"text":"b"},"arguments":{"text":"a"}}`: "low a",
		`{"name":"low","ARGUMENTS":{"text":"b"}}`:                          "low ",
		`{"name":"low","argumentſ":{"text":"b"},"arguments":{"text":"a"}}`: "low a",
		`{"name":"low","arguments":{"text":"b"},"arguments":{"text":"a"}}`: "low a",
		`{"name":"low","text":"b","arguments":{}}`:                         "low ",
		`{"name":"low","arguments":{"text":"b","text":"a"}}`:               "low a",
		`{"name":"low","arguments":{"te\u0078t":"a"}}`:                     "low a",
		`{"name":"low","arguments":{"text":"a","Text":"b"}}`:               "",
		`{"name":"low","arguments":{"TEXT":"b"}}`:                          "",
		`{"name":"low","arguments":{"text":"a","tagſ":["b"]}}`:             "",
		`{"name":"low","arguments":"{\"text\":\"b\"}"}`:                    "",
		`{"name":"low","arguments":[{"text":"b"}]}`:                        "",
	} {
		got := w.post(t, "low", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":`+params+`}`).result(t)
		if want == "" {
			if !got.IsError || got.code(t) != fault.InvalidRequest {
				t.Errorf("%s: %+v", params, got)
			}
			continue
		}
		if got.IsError || string(got.StructuredContent) != `{"said":"`+want+`"}` {
			t.Errorf("%s: %s %s", params, got.StructuredContent, got.Content[0].Text)
		}
	}
}

func TestARefusedCallIsOnRecordAndAnAllowedOneRuns(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	if r := w.post(t, "low", call("high", `{}`)); r.status != http.StatusForbidden {
		t.Fatalf("low: %d %s", r.status, r.body)
	}
	if got := w.post(t, "viewer", call("high", `{}`)).result(t); !got.IsError {
		t.Fatal("a viewer changed something")
	}
	if w.ran.Load() != 0 {
		t.Fatal("a refused tool ran")
	}
	if got := w.post(t, "both", call("high", `{}`)).result(t); got.IsError || w.ran.Load() != 1 {
		t.Fatalf("an allowed call: %+v, ran %d times", got, w.ran.Load())
	}
	ctx := withCaller(t, "both")
	entries, _, err := w.audit.List(ctx, audit.Filter{Action: "high"})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range entries {
		got = append(got, e.PersonName+" "+string(e.Outcome)+" "+e.Code)
		if e.RequestID == "" {
			t.Errorf("%s: no request id", e.ID)
		}
	}
	slices.Sort(got)
	want := []string{"both ok ", "low refused insufficient_scope", "viewer refused forbidden"}
	if !slices.Equal(got, want) {
		t.Errorf("audit %q, want %q", got, want)
	}
}

// Whatever arrives, the process lives, the answer is JSON or empty, and the tool outside the scopes does not run.
func FuzzMessages(f *testing.F) {
	for _, seed := range []string{
		call("low", `{}`), call("high", `{}`), `{"jsonrpc":"2.0","id":1,"method":"initialize","params":null}`,
		`{"jsonrpc":"2.0","id":"","method":"tools/call","params":{"name":"low","_meta":null}}`,
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"low","_meta":{"progressToken":{}}}}`,
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"low","inputResponses":{"a":{}},"requestState":"x"}}`,
		`{"jsonrpc":"2.0","id":1.5,"method":"ping"}`, `{"jsonrpc":"2.0","id":-0,"method":"ping","params":[]}`,
		`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":{}}}`,
		`{"jsonrpc":"2.0","method":"notifications/cancelled"}`, `{"jsonrpc":"2.0","method":"notifications/progress","params":null}`,
		`{"jsonrpc":"2.0","id":1,"method":"completion/complete","params":{"ref":{"type":"x"}}}`,
		`{"jsonrpc":"2.0","id":1,"method":"resources/subscribe","params":{"uri":"a:"}}`,
		`{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":{}}`,
		`{"jsonrpc":"2.0","id":1,"error":{}}`, `{"jsonrpc":"2.0","id":1,"result":null,"method":""}`,
		`{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":null,"io.modelcontextprotocol/clientInfo":[]}}}`,
	} {
		for _, version := range []string{"", "2025-11-25", modern} {
			f.Add(seed, version, "tools/call", "low")
		}
	}
	w := newWorld(f)
	f.Fuzz(func(t *testing.T, body, version, method, name string) {
		headers := []string{"MCP-Protocol-Version", version, "Mcp-Method", method, "Mcp-Name", name}
		for _, h := range headers {
			if strings.ContainsFunc(h, func(r rune) bool { return r < ' ' || r > '~' }) {
				t.Skip("net/http does not send such a header")
			}
		}
		if strings.Contains(body, "wait_for_it") || strings.Contains(body, "be_stuck") {
			t.Skip("takes its time")
		}
		r := w.post(t, "low", body, headers...)
		if media := r.header.Get("Content-Type"); r.status >= 500 || r.body != "" && media != "application/json" {
			t.Errorf("%q: %d %s %s", body, r.status, media, r.body)
		}
		if w.ran.Load() != 0 {
			t.Errorf("%q: the tool ran", body)
		}
	})
}
