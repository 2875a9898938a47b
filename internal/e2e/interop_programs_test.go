//go:build interop

package e2e

import (
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"switchboard/internal/trial"
)

// watcher reads what a program prints and has the person open each authorization URL in it.
type watcher struct {
	b    *bench
	page *regexp.Regexp

	mu     sync.Mutex
	rest   string // a line that has not ended
	last   string // the URL that was opened last: programs print one more than once
	all    trial.Journal
	opened sync.WaitGroup
}

func newWatcher(b *bench) *watcher {
	return &watcher{b: b, page: regexp.MustCompile(regexp.QuoteMeta(b.s.url) + `/oauth/authorize\?\S+`)}
}

// Write implements io.Writer.
func (w *watcher) Write(p []byte) (int, error) {
	_, _ = w.all.Write(p)
	w.mu.Lock()
	defer w.mu.Unlock()
	lines := strings.Split(w.rest+string(p), "\n")
	w.rest = lines[len(lines)-1]
	for _, line := range lines[:len(lines)-1] {
		if found := w.page.FindString(line); found != "" && found != w.last {
			w.last = found
			w.opened.Go(func() {
				location, err := w.b.open(found)
				if err == nil {
					err = w.b.deliver(location)
				}
				if err != nil {
					fmt.Fprintf(&w.all, "the person could not come back: %v\n", err)
				}
			})
		}
	}
	return len(p), nil
}

// asApp makes a command believe that it opened a browser. What it printed goes to the watcher.
func asApp(cmd *exec.Cmd, w *watcher, env ...string) *exec.Cmd {
	cmd.Env = append(append(cmd.Env, "BROWSER=true"), env...)
	cmd.Stderr = w
	return cmd
}

const listContacts, upsertContact = "list_contacts", "upsert_contact"

func sara() map[string]any { return map[string]any{"phone": "+14155550123", "name": "Sara"} }

// tryMCPRemote talks to mcp-remote as a desktop app does, through its standard input and output.
func tryMCPRemote(b *bench) {
	w := newWatcher(b)
	cmd := asApp(nodeCommand(b.t, b.home, "node_modules/mcp-remote/dist/proxy.js", b.s.url+"/mcp", freePort(b.t)), w, "MCP_REMOTE_CONFIG_DIR="+b.home)
	var session *sdk.ClientSession
	b.must("starting mcp-remote", func() (err error) {
		client := sdk.NewClient(&sdk.Implementation{Name: "interop", Version: "1"}, nil)
		session, err = client.Connect(b.t.Context(), &sdk.CommandTransport{Command: cmd}, nil)
		return withOutput(err, w)
	})
	b.t.Cleanup(func() { _ = session.Close(); w.opened.Wait() })
	b.signedIn()
	call := func(tool string, arguments map[string]any) error {
		return withOutput(callTool(b, session, tool, arguments), w)
	}
	b.exercise(call)
	b.asksAgainOnceRevoked("has no revocation call", call)
}

func withOutput(err error, w *watcher) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%w\nit says: %s", err, &w.all)
}

// signedIn records the first three steps of a client that was given the URL of the server and nothing else.
func (b *bench) signedIn() {
	b.t.Helper()
	clients, grants := b.count(`SELECT count(*) FROM clients`), b.count(`SELECT count(*) FROM grants`)
	if clients != 1 || grants != 1 || b.asked != 1 {
		b.t.Fatalf("there are %d clients and %d grants, and the person was asked %d times", clients, grants, b.asked)
	}
	b.yes("discover")
	b.yes("register")
	b.yes("sign in")
}

// exercise takes a client that is signed in through a call, a step-up and a refresh.
func (b *bench) exercise(call func(tool string, arguments map[string]any) error) {
	b.t.Helper()
	b.must("a call", func() error { return call(listContacts, map[string]any{}) })
	b.yes("call")

	asked := b.asked
	b.must("a step-up", func() error { return call(upsertContact, sara()) })
	if b.asked != asked+1 {
		b.t.Fatalf("in the step-up the person was asked %d times", b.asked-asked)
	}
	b.yes("step-up")

	asked, before := b.asked, b.refreshes()
	b.endAccessTokens()
	b.must("a refresh", func() error { return call(listContacts, map[string]any{}) })
	if b.asked != asked || b.refreshes() == before {
		b.t.Fatalf("after the access tokens ended: %d refreshes, and the person was asked %d times", b.refreshes()-before, b.asked-asked)
	}
	b.yes("refresh")
}

// asksAgainOnceRevoked has an administrator end what a client cannot end itself, and shows that the client notices.
func (b *bench) asksAgainOnceRevoked(why string, call func(tool string, arguments map[string]any) error) {
	b.t.Helper()
	b.revokeAll()
	asked := b.asked
	b.must("a call after the revocation", func() error { return call(listContacts, map[string]any{}) })
	if b.asked != asked+1 {
		b.t.Fatalf("after the revocation the person was asked %d times", b.asked-asked)
	}
	b.no("revoke", why+"; once an administrator revoked, its next call asks the person to sign in again")
}

// tryInspector runs the Inspector once for each call; it keeps its tokens in between. The server is in a file that
// says which scopes to ask for: only then does it step up, while a server that is named on the command line gets a
// refresh for an answer to its challenge.
func tryInspector(b *bench) {
	callback := "http://127.0.0.1:" + freePort(b.t) + "/oauth/callback"
	servers := filepath.Join(b.home, "servers.json")
	b.write(servers, asJSONText(map[string]any{"mcpServers": map[string]any{"switchboard": map[string]any{
		"type": "streamable-http", "url": b.s.url + "/mcp", "oauth": map[string]any{"scopes": "contacts:read"},
	}}}))
	run := func(more ...string) error {
		w := newWatcher(b)
		args := append([]string{"--cli", "--config", servers, "--server", "switchboard", "--callback-url", callback, "--format", "json"}, more...)
		cmd := asApp(nodeCommand(b.t, b.home, "node_modules/@modelcontextprotocol/inspector/clients/launcher/build/index.js", args...), w,
			"MCP_STORAGE_DIR="+b.home, "MCP_INSPECTOR_SECRET_STORE=file", "MCP_AUTO_OPEN_ENABLED=true")
		cmd.Stdin = strings.NewReader("y\n") // to "Proceed with step-up authorization?"
		out, err := cmd.Output()
		w.opened.Wait()
		if err == nil && strings.Contains(string(out), `"isError":true`) {
			err = errors.New("refused")
		}
		if err != nil {
			err = fmt.Errorf("%w: %s", err, out)
		}
		return withOutput(err, w)
	}
	call := func(tool string, arguments map[string]any) error {
		return run("--method", "tools/call", "--tool-name", tool, "--tool-args-json", asJSONText(arguments))
	}
	b.must("signing in", func() error { return run("--method", "tools/list") })
	b.signedIn()
	b.exercise(call)
	const revoked = `SELECT count(*) FROM grants WHERE revoked_at IS NOT NULL`
	before := b.count(revoked)
	b.must("signing in anew", func() error { return run("--relogin", "--method", "tools/list") })
	if b.count(revoked) > before {
		b.yes("revoke")
		return
	}
	b.asksAgainOnceRevoked("--relogin forgets its tokens without revoking them: it looks for the endpoint in metadata that the CLI does not keep", call)
}
