package mcp

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"switchboard/auth"
	"switchboard/internal/audit"
	"switchboard/internal/caller"
	"switchboard/internal/fault"
	"switchboard/internal/scope"
	"switchboard/internal/store/storetest"
	"switchboard/internal/trial"
	"switchboard/internal/web"
	"switchboard/tools/kit"
)

const resource = "https://switchboard.example/mcp"

// world is an endpoint behind the whole edge, with tools that exist for these tests only.
type world struct {
	url  string
	logs *trial.Journal
	ran  atomic.Int64 // how often a tool outside the scopes of "low" ran
	cost atomic.Int64 // of what buy buys, in USD; 0 means 2

	entered chan struct{} // wait_for_it has started
	ended   chan error    // how the context of wait_for_it ended
	stuck   chan struct{} // closed to let be_stuck go

	handler *Handler
	audit   *audit.Log
}

// doorman knows its callers by name; what it says to others is auth's.
type doorman struct {
	*auth.Auth
	callers map[string]caller.Caller
}

func (d doorman) Authenticate(r *http.Request, _ string) (caller.Caller, error) {
	token, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	switch c, known := d.callers[token]; {
	case !ok:
		return caller.Caller{}, &auth.Unauthorized{}
	case token == "database-down":
		return caller.Caller{}, errors.New("looking a token up: connection refused")
	case !known:
		return caller.Caller{}, &auth.Unauthorized{Reason: "it is not known here"}
	default:
		return c, nil
	}
}

func newDoorman(needed scope.Set) doorman {
	issuer, _ := url.Parse(resource)
	catalog := scope.NewCatalog([]scope.Group{{Name: "all", Scopes: needed, Default: true}}, nil, needed)
	person := func(name string, role scope.Role, scopes ...string) caller.Caller {
		return caller.Caller{
			Org: "org_1", Person: "per_" + name, PersonName: name, Role: role,
			Via: caller.Connection, ID: "con_" + name, Name: "test client", Scopes: scope.Of(scopes...), Granted: scope.Of(scopes...),
		}
	}
	byKey := person("both", scope.Admin, "org:read", "contacts:write", "numbers:write")
	byKey.Via = caller.Key
	return doorman{
		Auth: auth.New(auth.Config{Issuer: "https://" + issuer.Host, Scopes: catalog, Log: slog.New(slog.DiscardHandler)}),
		callers: map[string]caller.Caller{
			"low":    person("low", scope.Member, "org:read"),
			"other":  person("other", scope.Admin, "org:read", "contacts:write", "numbers:write"),
			"by key": byKey, // with the id of the connection of "both"
			"both":   person("both", scope.Admin, "org:read", "contacts:write", "numbers:write"),
			"viewer": person("viewer", scope.Viewer, "org:read", "contacts:write"),
		},
	}
}

func (w *world) tools() kit.Registry {
	type none struct{}
	type answer struct {
		Said string `json:"said"`
	}
	type list struct {
		Names []string `json:"names"`
	}
	type words struct {
		Text  string   `json:"text,omitzero" doc:"What to say." max:"100"`
		Limit int      `json:"limit" doc:"How often." min:"1" max:"10" default:"1"`
		Tags  []string `json:"tags,omitzero" doc:"Labels." max:"5"`
	}
	type purchase struct {
		Item string `json:"item" doc:"What to buy." min:"1" max:"20"`
	}
	buy := func(name string) kit.Tool {
		return kit.New(kit.Spec{Name: name, Title: "Buy", Scope: "numbers:write", Effect: kit.Write, Spends: true, External: true, Doc: "Returns what was bought.", Example: `{"item":"pen"}`},
			func(_ context.Context, in purchase) (answer, error) {
				w.ran.Add(1)
				return answer{"bought " + in.Item}, nil
			},
			kit.Confirm(kit.Always[purchase], func(_ context.Context, in purchase) (kit.Preview, error) {
				usd := cmp.Or(w.cost.Load(), 2)
				return kit.Preview{Text: fmt.Sprintf("Buys a %s for %d USD.", in.Item, usd), Cost: usd * 1_000_000, Currency: "USD"}, nil
			}))
	}
	return kit.NewRegistry(kit.Area{Name: "test", Tools: []kit.Tool{
		kit.New(kit.Spec{Name: "low", Title: "Look", Scope: "org:read", Doc: "Returns what was said.", Example: `{"text":"hi"}`},
			func(_ context.Context, in words) (answer, error) { return answer{"low " + in.Text}, nil }),
		kit.New(kit.Spec{Name: "high", Title: "Change", Scope: "contacts:write", Effect: kit.Write, Idempotent: true, Doc: "Returns what was said.", Example: `{}`},
			func(context.Context, none) (answer, error) { w.ran.Add(1); return answer{"high"}, nil }),
		buy("buy"), buy("buy_more"),
		kit.New(kit.Spec{Name: "list", Title: "List", Scope: "org:read", Doc: "Returns names.", Example: `{}`},
			func(context.Context, none) (list, error) { return list{}, nil }),
		kit.New(kit.Spec{Name: "miss", Title: "Miss", Scope: "org:read", Doc: "Returns nothing.", Example: `{}`},
			func(context.Context, none) (answer, error) {
				return answer{}, fault.New(fault.NotFound, "There is no contact <7>. Call list to see which there are.")
			}),
		kit.New(kit.Spec{Name: "fail", Title: "Fail", Scope: "org:read", Doc: "Returns nothing.", Example: `{}`},
			func(context.Context, none) (answer, error) { return answer{}, errors.New("disk on fire") }),
		kit.New(kit.Spec{Name: "panic", Title: "Panic", Scope: "org:read", Doc: "Returns nothing.", Example: `{}`},
			func(context.Context, none) (answer, error) { panic("boom") }),
		kit.New(kit.Spec{Name: "wait_for_it", Title: "Wait", Scope: "org:read", Doc: "Returns nothing.", Example: `{}`, Timeout: 2 * time.Second},
			func(ctx context.Context, _ none) (answer, error) {
				w.entered <- struct{}{}
				<-ctx.Done()
				w.ended <- ctx.Err()
				return answer{}, ctx.Err()
			}),
		kit.New(kit.Spec{Name: "be_stuck", Title: "Stuck", Scope: "org:read", Doc: "Returns nothing.", Example: `{}`, Timeout: 20 * time.Millisecond},
			func(context.Context, none) (answer, error) { <-w.stuck; return answer{"free"}, nil }),
	}})
}

func newWorld(t testing.TB, change ...func(*Config)) *world {
	t.Helper()
	w := &world{logs: &trial.Journal{}, entered: make(chan struct{}, 1), ended: make(chan error, 1), stuck: make(chan struct{})}
	log := slog.New(slog.NewJSONHandler(w.logs, nil))
	s := storetest.Open(t)
	w.audit = audit.New(s)
	tools := w.tools()
	cfg := Config{
		Secrets: trial.Ring(t, "k1"),
		Auth:    newDoorman(tools.Needed()), Tools: tools, Runner: kit.NewRunner(kit.RunnerConfig{Store: s, Audit: w.audit, Log: log}),
		Version: "1.2.3", Resource: resource, Log: log,
	}
	for _, c := range change {
		c(&cfg)
	}
	w.handler = New(cfg)
	server := httptest.NewServer(behindEdge(t, w.handler, log))
	t.Cleanup(server.Close)
	w.url = server.URL
	return w
}

func behindEdge(t testing.TB, h http.Handler, log *slog.Logger) http.Handler {
	t.Helper()
	public, err := url.Parse("https://switchboard.example")
	if err != nil {
		t.Fatal(err)
	}
	edge, err := web.New(web.Config{URL: public, Log: log})
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.Handle("/mcp", edge.Origins(h))
	mux.Handle("/mcp/{$}", edge.Origins(h))
	return edge.Handler(mux)
}

// reply is an answer with its body read.
type reply struct {
	status int
	header http.Header
	body   string
}

// post sends one message; headers come in pairs and win over the usual ones, an empty value removes one.
func (w *world) post(t testing.TB, token, body string, headers ...string) reply {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, w.url+"/mcp", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	for i := 0; i < len(headers); i += 2 {
		if headers[i+1] == "" {
			req.Header.Del(headers[i])
			continue
		}
		req.Header.Set(headers[i], headers[i+1])
	}
	return send(t, req)
}

func send(t testing.TB, req *http.Request) reply {
	t.Helper()
	client := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	res, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return reply{res.StatusCode, res.Header, string(body)}
}

// toolResult is the part of a tools/call answer that the tests look at.
type toolResult struct {
	IsError           bool            `json:"isError"`
	StructuredContent json.RawMessage `json:"structuredContent"`
	Content           []struct{ Text string }
}

func (r reply) result(t testing.TB) toolResult {
	t.Helper()
	var message struct{ Result *toolResult }
	if err := json.Unmarshal([]byte(r.body), &message); err != nil || message.Result == nil || len(message.Result.Content) != 1 {
		t.Fatalf("%d %s: no result with one text", r.status, r.body)
	}
	return *message.Result
}

// code is the code of the error that a tool result carries.
func (r toolResult) code(t testing.TB) fault.Code {
	t.Helper()
	var b fault.Body
	if err := json.Unmarshal([]byte(r.Content[0].Text), &b); err != nil {
		t.Fatalf("%s: %v", r.Content[0].Text, err)
	}
	return b.Error.Code
}

// call is a tools/call message as revisions before 2026-07-28 send it.
func call(tool, arguments string) string {
	return `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"` + tool + `","arguments":` + arguments + `}}`
}
