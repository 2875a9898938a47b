package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"switchboard/internal/caller"
	"switchboard/internal/fault"
	"switchboard/tools/kit"
)

// withCaller is a context as one of the test callers has it inside a request.
func withCaller(t testing.TB, name string) context.Context {
	t.Helper()
	return caller.With(t.Context(), newDoorman(nil).callers[name])
}

// bearing sends the token of one caller with every request of an SDK client.
type bearing string

func (b bearing) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+string(b))
	return http.DefaultTransport.RoundTrip(r)
}

func connect(t *testing.T, w *world, token string) *sdk.ClientSession {
	t.Helper()
	client := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, nil)
	session, err := client.Connect(t.Context(), &sdk.StreamableClientTransport{
		Endpoint: w.url + "/mcp", HTTPClient: &http.Client{Transport: bearing(token)}, MaxRetries: -1,
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = session.Close() })
	return session
}

func TestTheSDKClientListsAndCalls(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	session := connect(t, w, "both")
	if got := session.InitializeResult().Instructions; got != instructions {
		t.Errorf("instructions %q", got)
	}
	var names []string
	for tool, err := range session.Tools(t.Context(), nil) {
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, tool.Name)
		hints := tool.Annotations
		if hints == nil || hints.DestructiveHint == nil || hints.OpenWorldHint == nil || hints.Title == "" || tool.Title == "" {
			t.Errorf("%s: hints %+v", tool.Name, hints)
		}
		if tool.Meta["securitySchemes"] == nil || tool.OutputSchema != nil {
			t.Errorf("%s: meta %v, output schema %v", tool.Name, tool.Meta, tool.OutputSchema)
		}
	}
	want := []string{"be_stuck", "buy", "buy_more", "fail", "high", "list", "low", "miss", "panic", "wait_for_it"}
	if diff := cmp.Diff(want, names); diff != "" {
		t.Errorf("tools (-want +got):\n%s", diff)
	}
	res, err := session.CallTool(t.Context(), &sdk.CallToolParams{Name: "low", Arguments: map[string]any{"text": "hi"}})
	if err != nil || res.IsError {
		t.Fatalf("calling low: %v %+v", err, res)
	}
	if diff := cmp.Diff(map[string]any{"said": "low hi"}, res.StructuredContent); diff != "" {
		t.Errorf("value (-want +got):\n%s", diff)
	}
	if text := res.Content[0].(*sdk.TextContent).Text; text != `{"said":"low hi"}` {
		t.Errorf("text %s", text)
	}
	res, err = session.CallTool(t.Context(), &sdk.CallToolParams{Name: "miss"})
	if err != nil || !res.IsError || res.StructuredContent != nil {
		t.Errorf("a refusal: %v %+v", err, res)
	}
}

func TestAbsentNullAndEmptyArgumentsAreTheSame(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, params := range []string{
		`{"name":"list"}`, `{"name":"list","arguments":null}`, `{"name":"list","arguments":{}}`, `{"name":"list","arguments": { } }`,
	} {
		got := w.post(t, "low", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":`+params+`}`).result(t)
		if got.IsError || string(got.StructuredContent) != `{"names":[]}` {
			t.Errorf("%s: %+v", params, got)
		}
	}
}

func TestAPanicIsContainedAndLoggedWithItsRequest(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := w.post(t, "low", call("panic", `{}`))
	if got := r.result(t).code(t); got != fault.Internal {
		t.Errorf("code %s", got)
	}
	if r := w.post(t, "low", `{"jsonrpc":"2.0","id":1,"method":"ping"}`); r.status != http.StatusOK {
		t.Errorf("afterwards: %d %s", r.status, r.body)
	}
	for _, want := range []string{"boom", "stack", r.header.Get("X-Request-Id")} {
		if !strings.Contains(w.logs.String(), want) {
			t.Errorf("the log does not say %q", want)
		}
	}
	if strings.Contains(r.body, "boom") {
		t.Errorf("the answer tells what panicked: %s", r.body)
	}
}

func TestAPanicOutsideToolsIsContained(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	panics := w.handler.gate(func(context.Context, string, sdk.Request) (sdk.Result, error) { panic("boom") })
	ctx := context.WithValue(withCaller(t, "low"), exchangeKey{}, &exchange{})
	_, err := panics(ctx, "tools/list", nil)
	if err == nil || strings.Contains(err.Error(), "boom") {
		t.Errorf("error %v", err)
	}
}

func TestTheGateFailsClosed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	passed := false
	gate := w.handler.gate(func(context.Context, string, sdk.Request) (sdk.Result, error) { passed = true; return nil, nil })
	exchanged := context.WithValue(t.Context(), exchangeKey{}, &exchange{})
	for name, try := range map[string]struct {
		ctx    context.Context
		method string
	}{
		"no caller":      {exchanged, "tools/list"},
		"no exchange":    {withCaller(t, "low"), "tools/list"},
		"unknown method": {context.WithValue(withCaller(t, "low"), exchangeKey{}, &exchange{}), "resources/read"},
	} {
		if _, err := gate(try.ctx, try.method, nil); err == nil || passed {
			t.Errorf("%s: passed %t, error %v", name, passed, err)
		}
	}
}

func TestAResourceThatDoesNotExistHasTheCodeOfTheRevision(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for version, want := range map[string]int64{"": -32002, "2025-03-26": -32002, "2025-06-18": -32002, "2025-11-25": -32002, modern: -32602} {
		ctx := context.WithValue(withCaller(t, "low"), exchangeKey{}, &exchange{version: version})
		for name, try := range map[string]struct {
			err  error
			want int64
		}{
			"no such resource":    {sdk.ResourceNotFoundError("switchboard://skill"), want},
			"other wrong params":  {&jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "unknown tool"}, -32602},
			"others with data":    {&jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Data: json.RawMessage(`{"field":"uri"}`)}, -32602},
			"another code of uri": {&jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Data: json.RawMessage(`{"uri":"a:"}`)}, -32601},
		} {
			_, err := w.handler.gate(func(context.Context, string, sdk.Request) (sdk.Result, error) { return nil, try.err })(ctx, "tools/list", nil)
			var wire, sent *jsonrpc.Error
			if !errors.As(err, &wire) || !errors.As(try.err, &sent) || wire.Code != try.want || string(wire.Data) != string(sent.Data) {
				t.Errorf("%s in %q: %v, want %d", name, version, err, try.want)
			}
		}
	}
}

func TestAToolThatIgnoresItsDeadlineDoesNotHoldTheAnswer(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.handler.late = 30 * time.Millisecond
	began := time.Now()
	got := w.post(t, "low", call("be_stuck", `{}`)).result(t)
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("took %s", took)
	}
	if !got.IsError || got.code(t) != fault.Timeout {
		t.Errorf("%+v", got)
	}
	soon, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if err := w.handler.Wait(soon); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Wait does not wait for the abandoned call: %v", err)
	}
	close(w.stuck)
	if err := w.handler.Wait(t.Context()); err != nil {
		t.Error(err)
	}
}

// Since 2026-07-28 closing the connection cancels a call. Before, only a notification does, and there is no session
// that one could be sent to: the deadline ends such a call.
func TestADisconnectCancelsACallWhereTheRevisionSaysSo(t *testing.T) {
	t.Parallel()
	meta := `,"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}`
	for version, want := range map[string]error{modern: context.Canceled, "2025-11-25": context.DeadlineExceeded} {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			body := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"wait_for_it","arguments":{}` + map[bool]string{true: meta}[version == modern] + `}}`
			ctx, hangUp := context.WithCancel(t.Context())
			req, err := http.NewRequestWithContext(ctx, http.MethodPost, w.url+"/mcp", strings.NewReader(body))
			if err != nil {
				t.Fatal(err)
			}
			for k, v := range map[string]string{
				"Authorization": "Bearer low", "Content-Type": "application/json", "MCP-Protocol-Version": version,
				"Mcp-Method": "tools/call", "Mcp-Name": "wait_for_it",
			} {
				req.Header.Set(k, v)
			}
			gone := make(chan struct{})
			go func() {
				defer close(gone)
				if res, err := http.DefaultClient.Do(req); err == nil {
					_ = res.Body.Close()
				}
			}()
			<-w.entered
			hangUp()
			<-gone
			if got := <-w.ended; !errors.Is(got, want) {
				t.Errorf("the call ended with %v, want %v", got, want)
			}
		})
	}
}

func TestRatesAreLimitedPerConnectionPersonAndOrganization(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(cfg *Config) { cfg.RatePerMinute = 2 })
	ping := `{"jsonrpc":"2.0","id":1,"method":"ping"}`
	for range 2 {
		if r := w.post(t, "low", ping); r.status != http.StatusOK {
			t.Fatalf("within the rate: %d %s", r.status, r.body)
		}
	}
	r := w.post(t, "low", ping)
	var body fault.Body
	if err := json.Unmarshal([]byte(r.body), &body); err != nil || r.status != http.StatusTooManyRequests || body.Error.Code != fault.RateLimited {
		t.Errorf("over the rate: %d %s", r.status, r.body)
	}
	if after, err := strconv.Atoi(r.header.Get("Retry-After")); err != nil || after < 1 || after > 60 {
		t.Errorf("Retry-After %q", r.header.Get("Retry-After"))
	}
	if r := w.post(t, "both", ping); r.status != http.StatusOK {
		t.Errorf("somebody else: %d %s", r.status, r.body)
	}
	if r := w.post(t, "nobody", ping); r.status != http.StatusUnauthorized {
		t.Errorf("nobody: %d, want the challenge before the rate", r.status)
	}
}

func TestEachBucketHasItsOwnSize(t *testing.T) {
	t.Parallel()
	l := newLimits(1)
	admitted := func(c func(i int) caller.Caller) (n int, who string) {
		for i := range 100 {
			who, _, ok := l.admit(c(i))
			if !ok {
				return n, who
			}
			n++
		}
		return n, ""
	}
	id := func(s string, i int) string { return fmt.Sprintf("%s %d", s, i) }
	n, who := admitted(func(i int) caller.Caller {
		return caller.Caller{Via: caller.Key, ID: id("key", i), Person: "one", Org: "a"}
	})
	if n != 5 || who != "this person" {
		t.Errorf("one person with many keys: %d, %s", n, who)
	}
	n, who = admitted(func(i int) caller.Caller {
		return caller.Caller{Via: caller.Key, ID: id("other", i), Person: id("p", i), Org: "b"}
	})
	if n != 20 || who != "this organization" {
		t.Errorf("one organization with many people: %d, %s", n, who)
	}
	n, who = admitted(func(int) caller.Caller {
		return caller.Caller{Via: caller.Connection, ID: "x", Person: "two", Org: "c"}
	})
	if n != 1 || who != "this connection" {
		t.Errorf("one connection: %d, %s", n, who)
	}
}

func TestLogsHaveNoTokenNoQueryAndNoArguments(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	send := func(token, path, body string) reply {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, w.url+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+token)
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("X-Request-Id", "canary-id")
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		b, err := io.ReadAll(res.Body)
		if err != nil {
			t.Fatal(err)
		}
		return reply{res.StatusCode, res.Header, string(b)}
	}
	send("canary-token", "/mcp?access_token=canary-query", call("low", `{}`))
	send("low", "/mcp?key=canary-query", call("low", `{"text":"canary-argument"}`))
	send("low", "/mcp", call("low", `{"canary-key":1}`))
	send("low", "/mcp", call("canary-tool", `{}`))
	send("low", "/mcp", `{"jsonrpc":"2.0","id":1,"method":"canary-method"}`)
	send("low", "/canary-path", ``)
	send("low", "/mcp", call("high", `{"secret":"canary-argument"}`))
	logs := w.logs.String()
	if i := strings.Index(logs, "canary"); i >= 0 {
		t.Errorf("the log says %q", logs[i:min(len(logs), i+40)])
	}
	for _, want := range []string{`"route":"/mcp"`, `"route":"none"`, `"tool":"low"`, `"org":"org_1"`, `"conn":"con_low"`, `"err":"insufficient_scope"`} {
		if !strings.Contains(logs, want) {
			t.Errorf("the log does not say %s:\n%s", want, logs)
		}
	}
}

func TestTheRequestIDIsOurs(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := w.post(t, "low", call("fail", `{}`), "X-Request-Id", "req_theirs")
	id := r.header.Get("X-Request-Id")
	if !strings.HasPrefix(id, "req_") || id == "req_theirs" {
		t.Fatalf("id %q", id)
	}
	if text := r.result(t).Content[0].Text; !strings.Contains(text, id) {
		t.Errorf("the error does not name %s: %s", id, text)
	}
	if !strings.Contains(w.logs.String(), id) {
		t.Errorf("the log does not name %s", id)
	}
}

func TestAPartHasFewerToolsAndTheSameRates(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(cfg *Config) { cfg.RatePerMinute = 4 })
	low, _ := w.handler.tools.Tool("low")
	part := &world{handler: w.handler.Part(resource+"/part", kit.NewRegistry(kit.Area{Name: "part", Tools: []kit.Tool{low}}))}
	server := httptest.NewServer(behindEdge(t, part.handler, w.handler.log))
	t.Cleanup(server.Close)
	part.url = server.URL
	if r := part.post(t, "", call("low", `{}`)); r.status != 401 || !strings.Contains(r.header.Get("WWW-Authenticate"), "/.well-known/oauth-protected-resource/mcp/part") {
		t.Errorf("nobody: %d %v", r.status, r.header)
	}
	if got := part.post(t, "low", call("low", `{"text":"hi"}`)).result(t); got.IsError {
		t.Errorf("its own tool: %+v", got)
	}
	if r := part.post(t, "low", call("list", `{}`)); r.status != 200 || !strings.Contains(r.body, "-32602") {
		t.Errorf("another tool: %d %s", r.status, r.body)
	}
	if r := part.post(t, "low", `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`); strings.Count(r.body, `"inputSchema"`) != 1 {
		t.Errorf("its list: %s", r.body)
	}
	if got := w.post(t, "low", call("list", `{}`)).result(t); got.IsError {
		t.Errorf("the whole: %+v", got)
	}
	for name, at := range map[string]*world{"the part": part, "the whole": w} {
		if r := at.post(t, "low", call("low", `{}`)); r.status != http.StatusTooManyRequests {
			t.Errorf("a fifth call in a minute, at %s: %d", name, r.status)
		}
	}
}

// A value of a byte takes a hundred in memory: what is small on the wire must not be large when it is parsed.
func TestAMessageOfTooManyValuesOrLevelsIsNotParsed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for name, c := range map[string]struct {
		value  string
		status int
	}{
		"a list":           {"[" + strings.Repeat("0,", kit.MaxValues) + "0]", 413},
		"lists in a list":  {"[" + strings.Repeat("[],", kit.MaxValues) + "0]", 413},
		"an object":        {`{` + strings.Repeat(`"a":0,`, kit.MaxValues) + `"a":0}`, 413},
		"deep lists":       {strings.Repeat("[", kit.MaxDepth) + strings.Repeat("]", kit.MaxDepth), 400},
		"deep objects":     {strings.Repeat(`{"a":`, kit.MaxDepth) + "0" + strings.Repeat("}", kit.MaxDepth), 400},
		"levels that fit":  {strings.Repeat("[", kit.MaxDepth-3) + strings.Repeat("]", kit.MaxDepth-3), 200},
		"brackets in text": {`"` + strings.Repeat(`[{\"`, kit.MaxDepth) + `"`, 200},
		"a list that fits": {"[" + strings.Repeat("0,", kit.MaxValues-20) + "0]", 200},
		"a text":           {`"` + strings.Repeat(`,[{\",`, kit.MaxValues) + `"`, 200},
	} {
		ping := `{"jsonrpc":"2.0","id":1,"method":"ping","params":{"_meta":{"x":` + c.value + `}}}`
		if r := w.post(t, "low", ping); r.status != c.status || r.status >= 400 && !strings.Contains(r.body, `"code":-32600`) {
			t.Errorf("%s: %d %.200s", name, r.status, r.body)
		}
	}
}
