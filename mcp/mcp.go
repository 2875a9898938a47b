// Package mcp is the MCP face: it puts the tools of a kit.Registry on the wire as a Model Context Protocol server
// over stateless Streamable HTTP, in the revisions 2026-07-28, 2025-11-25, 2025-06-18 and 2025-03-26.
//
// A request passes five stations. front.go and envelope.go decide who is calling and how often, and refuse what is no
// message, is too much of one, or could be read in two ways. The SDK then parses it for everybody. gate.go is the SDK's
// middleware: it lets known methods through, contains panics and turns a missing scope into the HTTP challenge. bind.go
// runs the tool through kit.Runner, and confirm.go asks a person through the client where the Runner wants a
// confirmation. reply.go holds the answer back until all of them have spoken.
//
// Nothing here reads a message with a parser of its own to decide who may do what: where two parsers disagree about
// the name of a tool, the check is made on one and the other runs. What is read before the SDK only refuses. The Mcp-*
// headers decide nothing either.
package mcp

import (
	"context"
	"log/slog"
	"net/http"
	"sync"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"switchboard/internal/caller"
	"switchboard/internal/scope"
	"switchboard/internal/seal"
	"switchboard/internal/web"
	"switchboard/tools/kit"
)

// revisions are the protocol revisions served, the newest first.
var revisions = [...]string{modern, "2025-11-25", "2025-06-18", "2025-03-26"}

// modern is the first revision without sessions and without initialize.
const modern = "2026-07-28"

const defaultMaxBody = 1 << 20

// Auth knows who is calling and how to tell a client what is missing.
type Auth interface {
	// Authenticate reads the Authorization header and nothing else.
	Authenticate(r *http.Request, resource string) (caller.Caller, error)
	// Challenge answers a request that Authenticate refused with err.
	Challenge(w http.ResponseWriter, resource string, err error)
	// ScopeChallenge is the WWW-Authenticate value for a caller who has some scopes and needs others.
	ScopeChallenge(resource string, have, need scope.Set, description string) string
}

// Config is what a Handler is made of.
type Config struct {
	Auth    Auth
	Tools   kit.Registry
	Runner  *kit.Runner
	Secrets *seal.Keyring // what a client brings back with a person's answer is authenticated with it
	Version string        // of Switchboard
	// Resource is the RFC 8707 identifier of this endpoint, the URL that people paste.
	Resource string
	// RatePerMinute is what one connection or key may call; a person has five times, an organization twenty times
	// as much. 0 means no limit.
	RatePerMinute int
	// MaxBody bounds a message in bytes; 0 means 1 MiB.
	MaxBody int64
	// Fixtures are for conformance suites; the product has none.
	Fixtures *Fixtures
	Log      *slog.Logger
}

// Handler serves the endpoint. It is the same under /mcp and /mcp/ and never redirects.
type Handler struct {
	auth     Auth
	tools    kit.Registry
	runner   *kit.Runner
	secrets  *seal.Keyring
	resource string
	limits   limits
	maxBody  int64
	late     time.Duration // how long after its deadline a tool is given up on
	askedFor time.Duration
	version  string
	log      *slog.Logger
	fixtures *Fixtures

	sdk, speaking http.Handler // of one server; speaking answers with streams and is nil without fixtures
	calls         *sync.WaitGroup
}

// New makes a Handler.
func New(cfg Config) *Handler {
	h := &Handler{
		auth: cfg.Auth, tools: cfg.Tools, runner: cfg.Runner, secrets: cfg.Secrets, resource: cfg.Resource, log: cfg.Log, fixtures: cfg.Fixtures,
		limits:  newLimits(cfg.RatePerMinute),
		maxBody: cfg.MaxBody,
		late:    time.Second, askedFor: askedFor, version: cfg.Version, calls: &sync.WaitGroup{},
	}
	if h.maxBody <= 0 {
		h.maxBody = defaultMaxBody
	}
	h.serve()
	return h
}

// Part is the same face with fewer tools, as a resource of its own. The rates count over both, and Wait waits for both.
func (h *Handler) Part(resource string, tools kit.Registry) *Handler {
	part := *h
	part.resource, part.tools, part.fixtures, part.speaking = resource, tools, nil, nil
	part.serve()
	return &part
}

// serve puts the tools on a server of the SDK.
func (h *Handler) serve() {
	options := &sdk.ServerOptions{
		Instructions:              instructions,
		SupportedProtocolVersions: revisions[:],
		// Explicit: the SDK's default advertises logging and list changes, which a stateless server never sends.
		Capabilities: &sdk.ServerCapabilities{Tools: &sdk.ToolCapabilities{}},
		// The SDK's default lets a shared cache hand one caller's answer to another.
		SetCacheable: func(_ context.Context, _ sdk.Request, c *sdk.Cacheable) { c.CacheScope = "private" },
		// The SDK's log lines repeat what clients wrote. The access log and the Runner say what there is to say.
		Logger: slog.New(slog.DiscardHandler),
	}
	if h.fixtures != nil {
		h.fixtures.Options(options)
	}
	server := sdk.NewServer(&sdk.Implementation{Name: "switchboard", Title: "Switchboard", Version: h.version}, options)
	server.AddReceivingMiddleware(h.gate)
	for _, t := range h.tools.Tools() {
		h.bind(server, t)
	}
	transport := sdk.StreamableHTTPOptions{
		Stateless:                    true,
		JSONResponse:                 true, // nothing goes out before the answer is known, which the gate relies on
		PropagateRequestCancellation: true,
		DisableLocalhostProtection:   true, // internal/web knows which hosts are ours, behind a proxy too
		MaxRequestBodyBytes:          h.maxBody,
		Logger:                       slog.New(slog.DiscardHandler),
	}
	h.sdk = over(server, transport)
	if h.fixtures != nil {
		h.fixtures.Add(server)
		transport.JSONResponse = false
		h.speaking = over(server, transport)
	}
}

func over(server *sdk.Server, options sdk.StreamableHTTPOptions) http.Handler {
	return sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return server }, &options)
}

// Wait returns when no tool is running any more, or with ctx's error when that is over first. Call it after the
// server has stopped accepting requests.
func (h *Handler) Wait(ctx context.Context) error {
	idle := make(chan struct{})
	go func() { h.calls.Wait(); close(idle) }()
	select {
	case <-idle:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// limits are the rates of a connection or key, of a person and of an organization.
type limits struct{ via, person, org *web.Limiter }

func newLimits(perMinute int) limits {
	return limits{via: web.NewLimiter(perMinute), person: web.NewLimiter(5 * perMinute), org: web.NewLimiter(20 * perMinute)}
}

// admit takes a token from each bucket of the caller. When one is empty it names whose.
func (l limits) admit(c caller.Caller) (who string, wait time.Duration, ok bool) {
	for _, limit := range []struct {
		who string
		l   *web.Limiter
		key string
	}{
		{"this " + string(c.Via), l.via, string(c.Via) + " " + c.ID},
		{"this person", l.person, c.Person},
		{"this organization", l.org, c.Org},
	} {
		if wait, ok := limit.l.Allow(limit.key); !ok {
			return limit.who, wait, false
		}
	}
	return "", 0, true
}
