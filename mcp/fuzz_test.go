package mcp

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"switchboard/internal/trial"
)

var goWords = regexp.MustCompile(`goroutine |\.go:\d|runtime error|json: |unmarshal|strconv|reflect\.|mcp\.|jsonrpc2|map\[string\]`)

// Whatever is posted, the answer is empty or one JSON document that belongs to the request: it has the id that was sent, a
// result or an error that has a code, and no words of the inside. A message that is answered 200 was one message.
func FuzzAnswers(f *testing.F) {
	known := func(name string) string {
		return map[string]string{"meta": `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}`}[name]
	}
	for _, seed := range trial.Seeds(f, known, "mcp", "tools") {
		f.Add(strings.NewReplacer("get_organization", "low", "list_contacts", "list", "upsert_contact", "high", "get_contact", "miss").Replace(seed), "")
		f.Add(seed, modern)
	}
	w := newWorld(f)
	f.Fuzz(func(t *testing.T, body, version string) {
		if strings.ContainsFunc(version, func(r rune) bool { return r < ' ' || r > '~' }) {
			t.Skip("net/http does not send such a header")
		}
		if strings.Contains(body, "wait") || strings.Contains(body, "stuck") || strings.Contains(body, "fail") || strings.Contains(body, "panic") {
			t.Skip("takes its time, or is in trouble by order")
		}
		method, name := "", ""
		var sent map[string]json.RawMessage
		if json.Unmarshal([]byte(body), &sent) == nil {
			var params struct{ Name string }
			_, _ = json.Unmarshal(sent["method"], &method), json.Unmarshal(sent["params"], &params)
			name = params.Name
		}
		headers := []string{"MCP-Protocol-Version", version}
		for _, h := range [][2]string{{"Mcp-Method", method}, {"Mcp-Name", name}} {
			if h[1] == strings.TrimSpace(h[1]) && !strings.ContainsFunc(h[1], func(r rune) bool { return r < ' ' || r > '~' }) {
				headers = append(headers, h[0], h[1])
			}
		}
		r := w.post(t, "low", body, headers...)
		if r.status >= 500 || w.ran.Swap(0) != 0 {
			t.Fatalf("%q: %d %s, or a tool ran that must not", body, r.status, r.body)
		}
		if r.body == "" {
			return
		}
		var answer struct {
			Version string `json:"jsonrpc"`
			ID      json.RawMessage
			Result  json.RawMessage
			Error   *struct {
				Code    json.RawMessage
				Message string
			}
		}
		if err := json.Unmarshal([]byte(r.body), &answer); err != nil || !utf8.ValidString(r.body) {
			t.Fatalf("%q: %s", body, r.body)
		}
		if r.status == 403 {
			return // the challenge, which is no JSON-RPC
		}
		code := ""
		if answer.Error != nil {
			code = string(answer.Error.Code)
		}
		if code == "-32603" {
			t.Errorf("%q is trouble of ours: %s", body, r.body)
		}
		if answer.Version != "2.0" || (answer.Result == nil) == (answer.Error == nil) || answer.Error != nil && (len(code) < 2 || code[0] != '-' && !strings.HasPrefix(code, `"`) || answer.Error.Message == "") {
			t.Errorf("%q: %d %s", body, r.status, r.body)
		}
		if answer.Error != nil && goWords.MatchString(strings.ReplaceAll(answer.Error.Message, method, "")) && method != "" {
			t.Errorf("%q: %s", body, r.body)
		}
		if id := string(answer.ID); id != "null" && id != "" && !sameID(sent["id"], answer.ID) {
			t.Errorf("%q is answered under the id %s", body, id)
		}
		if r.status == 200 && (!utf8.ValidString(body) || sent == nil) {
			t.Errorf("%q was taken for a message: %s", body, r.body)
		}
	})
}

// sameID compares ids as values: 1e2 is 100.
func sameID(a, b json.RawMessage) bool {
	var x, y any
	return json.Unmarshal(a, &x) == nil && json.Unmarshal(b, &y) == nil && x == y
}
