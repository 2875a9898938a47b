package mcp

import (
	"bufio"
	"context"
	"encoding/json"
	"net/http"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// stage is a world with fixtures.
type stage struct {
	*world
	ran  atomic.Int64
	goOn chan struct{} // lets test_speak end
}

func newStage(t *testing.T) *stage {
	t.Helper()
	s := &stage{goOn: make(chan struct{})}
	says := func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		s.ran.Add(1)
		return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: "done"}}}, nil
	}
	s.world = newWorld(t, func(cfg *Config) {
		cfg.Fixtures = &Fixtures{
			Options: func(o *sdk.ServerOptions) {
				o.Capabilities = &sdk.ServerCapabilities{Tools: &sdk.ToolCapabilities{}, Prompts: &sdk.PromptCapabilities{}}
			},
			Add: func(server *sdk.Server) {
				schema := json.RawMessage(`{"type":"object"}`)
				server.AddTool(&sdk.Tool{Name: "test_plain", InputSchema: schema}, says)
				server.AddTool(&sdk.Tool{Name: "test_unknown", InputSchema: schema}, says)
				server.AddTool(&sdk.Tool{Name: "test_scopeless", InputSchema: schema}, says)
				server.AddTool(&sdk.Tool{Name: "test_speak", InputSchema: schema}, func(ctx context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
					if err := r.Session.NotifyProgress(ctx, &sdk.ProgressNotificationParams{ProgressToken: "p", Progress: 1}); err != nil {
						return nil, err
					}
					select {
					case <-s.goOn:
					case <-t.Context().Done():
					}
					return says(ctx, r)
				})
				server.AddTool(&sdk.Tool{Name: "test_speak_and_panic", InputSchema: schema}, func(ctx context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
					panic("boom")
				})
				server.AddPrompt(&sdk.Prompt{Name: "test_prompt"}, func(context.Context, *sdk.GetPromptRequest) (*sdk.GetPromptResult, error) {
					s.ran.Add(1)
					return &sdk.GetPromptResult{Messages: []*sdk.PromptMessage{}}, nil
				})
			},
			Tools: map[string]Fixture{
				"test_plain": {Scope: "contacts:write"}, "test_speak": {Scope: "contacts:write", Speaks: true},
				"test_speak_and_panic": {Scope: "contacts:write", Speaks: true}, "test_scopeless": {},
			},
			Methods: map[string]string{"prompts/get": "contacts:write", "completion/complete": "", "subscriptions/listen": "contacts:write"},
		}
	})
	return s
}

// modernly is a message of 2026-07-28 with its headers.
func modernly(method, params string) (string, []string) {
	meta := `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}`
	headers := []string{"MCP-Protocol-Version", "2026-07-28", "Mcp-Method", method}
	if name := regexp.MustCompile(`"name":"([^"]*)"`).FindStringSubmatch(params); name != nil {
		headers = append(headers, "Mcp-Name", name[1])
	}
	return `{"jsonrpc":"2.0","id":1,"method":"` + method + `","params":{` + params + `,` + meta + `}}`, headers
}

func TestAFixtureIsRefusedLikeAnyToolWhereItsScopeIsMissing(t *testing.T) {
	s := newStage(t)
	close(s.goOn)
	listen, headers := modernly("subscriptions/listen", `"notifications":{"toolsListChanged":true}`)
	for _, c := range []struct {
		body    string
		headers []string
	}{
		{call("test_plain", "{}"), nil},
		{call("test_speak", "{}"), nil},
		{`{"jsonrpc":"2.0","id":1,"method":"prompts/get","params":{"name":"test_prompt"}}`, nil},
		{listen, headers},
	} {
		got := s.post(t, "low", c.body, c.headers...)
		challenge := got.header.Get("WWW-Authenticate")
		if got.status != http.StatusForbidden || !strings.HasPrefix(challenge, `Bearer error="insufficient_scope", scope="contacts:write org:read"`) || !strings.Contains(got.body, `"insufficient_scope"`) {
			t.Errorf("%s: %d %s %s", c.body, got.status, challenge, got.body)
		}
	}
	if n := s.ran.Load(); n != 0 {
		t.Fatalf("%d of them ran", n)
	}
	for _, body := range []string{call("test_plain", "{}"), `{"jsonrpc":"2.0","id":1,"method":"prompts/get","params":{"name":"test_prompt"}}`} {
		if got := s.post(t, "both", body); got.status != http.StatusOK || !strings.Contains(got.body, `"result"`) || got.header.Get("Content-Type") != "application/json" {
			t.Errorf("with the scope, %s: %d %s", body, got.status, got.body)
		}
	}
	if n := s.ran.Load(); n != 2 {
		t.Errorf("with the scope %d ran", n)
	}
}

func TestWhatTheGateWasNotToldOfDoesNotRun(t *testing.T) {
	s := newStage(t)
	for body, want := range map[string]string{
		call("test_unknown", "{}"):   `"error":{"code":-32602,"message":"unknown tool \"test_unknown\""}`,
		call("test_scopeless", "{}"): `"error":{"code":-32603,"message":"Something went wrong on the server.`,
		`{"jsonrpc":"2.0","id":1,"method":"completion/complete","params":{"ref":{"type":"ref/prompt","name":"test_prompt"},"argument":{"name":"a","value":""}}}`: `"code":-32603`,
		`{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":"test://a"}}`:                                                                         `"code":-32601`,
	} {
		if got := s.post(t, "both", body); !strings.Contains(got.body, want) {
			t.Errorf("%s: %d %s, want %s", body, got.status, got.body, want)
		}
	}
	if n := s.ran.Load(); n != 0 {
		t.Errorf("%d ran", n)
	}
}

func TestAToolThatSpeaksIsHeardWhileItRuns(t *testing.T) {
	s := newStage(t)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second) // an answer that is held back never comes
	defer cancel()
	body, headers := modernly("tools/call", `"name":"test_speak"`)
	for _, headers := range [][]string{headers, {"MCP-Protocol-Version", "2025-11-25"}} {
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.url+"/mcp", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		if headers[1] != modern {
			req, _ = http.NewRequestWithContext(ctx, http.MethodPost, s.url+"/mcp", strings.NewReader(call("test_speak", "{}")))
		}
		headers = append(headers, "Content-Type", "application/json", "Accept", "application/json, text/event-stream", "Authorization", "Bearer both")
		for i := 0; i < len(headers); i += 2 {
			req.Header.Set(headers[i], headers[i+1])
		}
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		frames := bufio.NewScanner(res.Body)
		frame := func() string {
			for frames.Scan() {
				if data, ok := strings.CutPrefix(frames.Text(), "data: "); ok {
					return data
				}
			}
			return ""
		}
		before := s.ran.Load()
		if f := frame(); !strings.Contains(f, `"notifications/progress"`) || s.ran.Load() != before { // the tool waits for us
			t.Errorf("%s: the first frame is %s", headers[1], f)
		}
		s.goOn <- struct{}{}
		if f := frame(); !strings.Contains(f, `"text":"done"`) {
			t.Errorf("%s: the second frame is %s", headers[1], f)
		}
		rest := ""
		for frames.Scan() {
			rest += frames.Text()
		}
		if rest != "" || res.StatusCode != http.StatusOK || res.Header.Get("Content-Type") != "text/event-stream" || res.Header.Get("Cache-Control") != "no-store" || res.Header.Get("X-Accel-Buffering") != "no" {
			t.Errorf("%s: %d %v, and then %q", headers[1], res.StatusCode, res.Header, rest)
		}
		_ = res.Body.Close()
	}
}

func TestTheFormOfAnAnswerDecidesNothing(t *testing.T) {
	s := newStage(t)
	close(s.goOn)
	// The name is in the arguments, where the search finds it: the call is that of another tool all the same.
	if got := s.post(t, "both", call("low", `{"text":"test_speak"}`)); got.status != http.StatusOK || !strings.Contains(got.body, `low test_speak`) {
		t.Errorf("%d %s", got.status, got.body)
	}
	if got := s.post(t, "low", call("high", `{"text":"test_speak"}`)); got.status != http.StatusForbidden || !strings.Contains(got.body, "insufficient_scope") {
		t.Errorf("outside the scopes: %d %s", got.status, got.body)
	}
	if got := s.post(t, "both", call("test_speak_and_panic", "{}")); !strings.Contains(got.body, `"code":-32603`) || strings.Contains(got.body, "boom") {
		t.Errorf("a panic: %d %s", got.status, got.body)
	}
	// What the SDK refuses before anything runs keeps its status.
	body, headers := modernly("tools/call", `"name":"test_speak"`)
	headers[len(headers)-1] = "other"
	if got := s.post(t, "both", body, headers...); got.status != http.StatusBadRequest || !strings.Contains(got.body, "-32020") || got.header.Get("Content-Type") != "application/json" {
		t.Errorf("a header that does not match: %d %s", got.status, got.body)
	}
	if n := s.ran.Load(); n != 0 {
		t.Errorf("%d ran", n)
	}
}
