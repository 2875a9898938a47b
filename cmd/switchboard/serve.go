package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"runtime/debug"
	"sync"
	"syscall"
	"time"

	"github.com/KimMachineGun/automemlimit/memlimit"

	"switchboard/auth/oauth"
	consentui "switchboard/consent-ui"
	"switchboard/internal/fault"
	"switchboard/internal/origin"
	"switchboard/internal/web"
	"switchboard/mcp"
	"switchboard/tools/kit"
)

type serveCommand struct {
	fixtures *mcp.Fixtures // of the conformance suite; there are none but in a test binary
}

// Run serves until ctx ends.
func (c serveCommand) Run(ctx context.Context, cfg *Config, io console, log *slog.Logger) error {
	tuneMemory(log)
	p, err := open(ctx, cfg, log)
	if err != nil {
		return err
	}
	defer p.close()
	s, err := wire(cfg, p, c.fixtures)
	if err != nil {
		return err
	}
	listeners, err := listen(ctx, cfg.Addr)
	if err != nil {
		return err
	}
	if host, _, _ := net.SplitHostPort(cfg.Addr); s.origin.Scheme == "http" && !origin.IsLoopback(host) {
		log.Warn("listening beyond this machine, in clear: put a proxy with TLS in front and set SWITCHBOARD_URL to its https address", "addr", cfg.Addr)
	}
	if err := welcome(ctx, cfg, p, s.origin, io); err != nil {
		return err
	}
	ctx, stop := context.WithCancel(ctx) // serving may also end because a listener failed
	var sweeping sync.WaitGroup
	sweeping.Go(func() { sweep(ctx, p.log, s.oauth, p.accounts, s.runner) })
	defer sweeping.Wait()
	defer stop()
	return s.serve(ctx, listeners, log)
}

// server is the wired product.
type server struct {
	origin  *url.URL
	handler http.Handler
	oauth   *oauth.Server
	mcp     *mcp.Handler
	runner  *kit.Runner
}

// wire puts the faces on one mux.
func wire(cfg *Config, p *product, fixtures *mcp.Fixtures) (*server, error) {
	public, err := cfg.origin()
	if err != nil {
		return nil, err
	}
	proxies, err := cfg.proxies()
	if err != nil {
		return nil, err
	}
	fetcher, err := cfg.outbound(public)
	if err != nil {
		return nil, err
	}
	issuer := oauth.New(oauth.Config{
		Issuer: public.String(), Resources: p.resources,
		Store: p.store, Secrets: p.secrets, Accounts: p.accounts, Audit: p.audit, Scopes: p.scopes, Lifetimes: cfg.lifetimes(),
		Outbound: fetcher, ClientHosts: oauth.HostPolicy{Allow: cfg.ClientsAllow, Deny: cfg.ClientsDeny},
		Unlimited: cfg.RatePerMinute == 0, Log: p.log,
	})
	runner := kit.NewRunner(kit.RunnerConfig{Store: p.store, Audit: p.audit, Log: p.log})
	tools := mcp.New(mcp.Config{
		Auth: p.auth, Tools: p.tools, Runner: runner, Secrets: p.secrets, Version: version, Resource: p.resources[0].URL,
		RatePerMinute: cfg.RatePerMinute, Fixtures: fixtures, Log: p.log,
	})
	pages, err := consentui.New(consentui.Config{
		Issuer: public, Accounts: p.accounts, Auth: p.auth, OAuth: issuer, Audit: p.audit, Tools: p.tools, Log: p.log, Version: version,
		FormKeys: p.formKeys(), IdleEnd: cfg.RefreshTTL, DatabaseNote: cfg.databaseNote(),
	})
	if err != nil {
		return nil, err
	}
	edge, err := web.New(web.Config{URL: public, Hosts: cfg.Hosts, Origins: cfg.Origins, TrustedProxies: proxies, Log: p.log, ErrorPage: pages.ErrorPage})
	if err != nil {
		return nil, err
	}

	face := http.NewServeMux()
	pages.Routes(face)
	mux := http.NewServeMux()
	issuer.Routes(mux)
	endpoint := func(path string, h http.Handler) {
		mux.Handle(path, edge.Origins(h))
		mux.Handle(path+"/{$}", edge.Origins(h))
	}
	endpoint("/mcp", tools)
	for _, set := range p.tools.Toolsets() {
		path := "/mcp/" + string(set)
		endpoint(path, tools.Part(public.String()+path, p.tools.Toolset(set)))
	}
	mux.Handle("/mcp/", edge.Origins(http.HandlerFunc(noEndpoint)))
	mux.HandleFunc("/healthz", func(w http.ResponseWriter, _ *http.Request) {
		web.JSON(w, http.StatusOK, map[string]string{"status": "ok"})
	})
	mux.HandleFunc("/readyz", p.ready)
	mux.Handle("/", edge.Canonical(face))
	return &server{public, edge.Handler(mux), issuer, tools, runner}, nil
}

// noEndpoint answers below /mcp, where clients look for metadata that is under /.well-known.
func noEndpoint(w http.ResponseWriter, _ *http.Request) {
	web.Fault(w, fault.New(fault.NotFound, "There is nothing here. The MCP endpoint is /mcp, its metadata is /.well-known/oauth-protected-resource/mcp."))
}

// ready says whether requests can be served: the database answers.
func (p *product) ready(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), 2*time.Second)
	defer cancel()
	if err := p.store.Ping(ctx); err != nil {
		p.log.WarnContext(r.Context(), "not ready", "err", err)
		web.JSON(w, http.StatusServiceUnavailable, map[string]string{"status": "the database does not answer"})
		return
	}
	web.JSON(w, http.StatusOK, map[string]string{"status": "ready"})
}

// listen opens the address; localhost is both loopback addresses, because clients resolve the name to either.
func listen(ctx context.Context, addr string) ([]net.Listener, error) {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, fmt.Errorf("SWITCHBOARD_ADDR %q is not host:port", addr)
	}
	var lc net.ListenConfig
	if host != "localhost" {
		l, err := lc.Listen(ctx, "tcp", addr)
		return []net.Listener{l}, err
	}
	v4, err := lc.Listen(ctx, "tcp4", net.JoinHostPort("127.0.0.1", port))
	if err != nil {
		return nil, err
	}
	_, port, _ = net.SplitHostPort(v4.Addr().String()) // port 0 was chosen for us
	v6, err := lc.Listen(ctx, "tcp6", net.JoinHostPort("::1", port))
	if errors.Is(err, syscall.EADDRINUSE) {
		// Somebody else's program: browsers that resolve localhost to [::1] would hand it their passwords.
		return nil, errors.Join(err, v4.Close())
	}
	if err != nil {
		return []net.Listener{v4}, nil // a machine without IPv6
	}
	return []net.Listener{v4, v6}, nil
}

const (
	// answerTime is what the slowest tool may take, and time to record and write its answer.
	answerTime = kit.MaxTimeout + 22*time.Second
	// shutdownGrace is time for every call under way to end and to go on record.
	shutdownGrace = kit.MaxTimeout + 25*time.Second
)

// serve runs until ctx ends, and then lets the requests under way finish.
func (s *server) serve(ctx context.Context, listeners []net.Listener, log *slog.Logger) error {
	h := &http.Server{
		Handler: s.handler, ReadHeaderTimeout: 10 * time.Second, ReadTimeout: 30 * time.Second, WriteTimeout: answerTime, IdleTimeout: 2 * time.Minute,
		MaxHeaderBytes: 128 << 10, ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelDebug),
		TLSNextProto: map[string]func(*http.Server, *tls.Conn, http.Handler){},
	}
	failed := make(chan error, len(listeners))
	for _, l := range listeners {
		go func() { failed <- h.Serve(l) }()
	}
	var err error
	select {
	case <-ctx.Done():
		log.Info("shutting down")
	case err = <-failed:
	}
	grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownGrace)
	defer cancel()
	return errors.Join(err, h.Shutdown(grace), s.mcp.Wait(grace))
}

const sweepEvery = 10 * time.Minute

// sweep removes what has ended, now and then until ctx ends. Every replica does it; it is the same work twice.
func sweep(ctx context.Context, log *slog.Logger, sweepers ...interface{ Sweep(context.Context) error }) {
	tick := time.NewTicker(sweepEvery)
	defer tick.Stop()
	for {
		for _, s := range sweepers {
			if err := s.Sweep(ctx); err != nil && ctx.Err() == nil {
				log.Warn("sweeping failed", "err", err)
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// tuneMemory trades memory for speed unless the operator decided otherwise: the MCP SDK allocates a large buffer for
// each message, and with the default setting half of the time goes into collecting them.
func tuneMemory(log *slog.Logger) {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(400)
	}
	_, err := memlimit.Set(memlimit.WithRatio(0.8), memlimit.WithProvider(memlimit.ApplyFallback(memlimit.FromCgroup, memlimit.FromSystem)))
	if err != nil {
		log.Debug("no memory limit set", "err", err)
	}
}
