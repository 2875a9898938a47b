package mcp

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"switchboard/internal/audit"
	"switchboard/internal/store/storetest"
	"switchboard/tools/kit"
)

type spoken struct {
	Text  string `json:"text" doc:"What to say." jsonschema:"What to say."`
	Limit int    `json:"limit,omitzero" doc:"How often." min:"1" max:"100" jsonschema:"How often."`
}

type said struct {
	Said  string   `json:"said"`
	Names []string `json:"names"`
}

func say(_ context.Context, in spoken) (said, error) {
	return said{Said: in.Text, Names: []string{"Ada", "Grace"}}, nil
}

// BenchmarkToolsCall compares one call through everything (edge, API key looked up in SQLite, rates, gate, Runner,
// logs to a file) with the same call to the bare SDK handler and its typed AddTool, over HTTP with keep-alive.
// GOGC is what the server sets.
func BenchmarkToolsCall(b *testing.B) {
	defer debug.SetGCPercent(debug.SetGCPercent(400))
	bare := httptest.NewServer(bareHandler())
	b.Cleanup(bare.Close)
	handler, key := fullHandler(b)
	full := httptest.NewServer(handler)
	b.Cleanup(full.Close)
	for _, side := range []struct{ name, url string }{{"bare", bare.URL}, {"full", full.URL + "/mcp"}} {
		b.Run(side.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				benchCall(b, side.url, key)
			}
		})
		b.Run(side.name+"-parallel", func(b *testing.B) {
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					benchCall(b, side.url, key)
				}
			})
		})
	}
}

func benchCall(b *testing.B, url, key string) {
	req, err := http.NewRequestWithContext(b.Context(), http.MethodPost, url, strings.NewReader(call("say", `{"text":"hello","limit":3}`)))
	if err != nil {
		b.Fatal(err)
	}
	req.Header = http.Header{
		"Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"},
		"Mcp-Protocol-Version": {"2025-11-25"}, "Authorization": {"Bearer " + key},
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		b.Fatal(err)
	}
	body, err := io.ReadAll(res.Body)
	_ = res.Body.Close()
	if err != nil || res.StatusCode != http.StatusOK || !strings.Contains(string(body), `"said":"hello"`) {
		b.Fatalf("%d %s %v", res.StatusCode, body, err)
	}
}

func bareHandler() http.Handler {
	server := sdk.NewServer(&sdk.Implementation{Name: "bare", Version: "1"}, nil)
	sdk.AddTool(server, &sdk.Tool{Name: "say", Description: "Says it."}, func(ctx context.Context, _ *sdk.CallToolRequest, in spoken) (*sdk.CallToolResult, said, error) {
		out, err := say(ctx, in)
		return nil, out, err
	})
	return sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return server }, &sdk.StreamableHTTPOptions{Stateless: true, JSONResponse: true})
}

func fullHandler(b *testing.B) (http.Handler, string) {
	file, err := os.Create(filepath.Join(b.TempDir(), "log"))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = file.Close() })
	log := slog.New(slog.NewJSONHandler(file, nil))
	s := storetest.Open(b)
	tools := kit.NewRegistry(kit.Area{Name: "bench", Tools: []kit.Tool{
		kit.New(kit.Spec{Name: "say", Title: "Say", Scope: "org:read", Doc: "Says it.", Example: `{"text":"hi"}`}, say),
	}})
	real, key := realAuth(b, s, tools, log)
	handler := New(Config{
		Auth: real, Tools: tools, Runner: kit.NewRunner(kit.RunnerConfig{Store: s, Audit: audit.New(s), Log: log}),
		Resource: resource, RatePerMinute: 100_000_000, Log: log,
	})
	return behindEdge(b, handler, log), key
}
