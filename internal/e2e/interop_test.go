//go:build interop

package e2e

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"switchboard/internal/golden"
)

// A candidate is software of other people that signs in to a Switchboard.
type candidate struct {
	name     string // as the table has it
	from     string // the package or module that it comes from; its version is pinned where packages are
	document bool   // its id is the address of a metadata document
	env      []string
	try      func(b *bench)
}

// candidates lists every client with every way of signing in.
func candidates() []candidate {
	all := []candidate{
		{name: "TypeScript SDK, v1", from: "@modelcontextprotocol/sdk", try: runScript("typescript-sdk-1.mjs", "none")},
		{name: "TypeScript SDK, v1, by metadata document", from: "@modelcontextprotocol/sdk", document: true, try: runScript("typescript-sdk-1.mjs", "none")},
		{name: "TypeScript SDK, v2", from: "@modelcontextprotocol/client", try: runScript("typescript-sdk-2.mjs", "none")},
		{name: "TypeScript SDK, v2, by metadata document", from: "@modelcontextprotocol/client", document: true, try: runScript("typescript-sdk-2.mjs", "none")},
		{name: "Go SDK", from: "github.com/modelcontextprotocol/go-sdk", env: []string{everyCallRefreshes}, try: tryGoSDK},
		{name: "Go SDK, by metadata document", from: "github.com/modelcontextprotocol/go-sdk", document: true, env: []string{everyCallRefreshes}, try: tryGoSDK},
		{name: "mcp-remote", from: "mcp-remote", try: tryMCPRemote},
		{name: "MCP Inspector, CLI", from: "@modelcontextprotocol/inspector", try: tryInspector},
		{name: "golang.org/x/oauth2", from: "golang.org/x/oauth2", env: []string{everyCallRefreshes}, try: tryOAuth2},
	}
	for _, library := range []string{"openid-client", "oauth4webapi"} {
		for _, method := range []string{"none", "client_secret_basic", "client_secret_post", "private_key_jwt"} {
			c := candidate{name: library, from: library, try: runScript(library+".mjs", method)}
			if method != "none" {
				c.name += ", " + method
			}
			all = append(all, c)
		}
	}
	return all
}

// steps are what every client is put through; a client that cannot take one says why.
func steps() []string {
	return []string{"discover", "register", "sign in", "call", "step-up", "refresh", "revoke"}
}

// What docs/measurements.md says is what was measured, on either database.
func TestClientsOfOtherPeopleSignInCallStepUpRefreshAndAreRevoked(t *testing.T) {
	for _, dialect := range []string{"sqlite", "postgres"} {
		t.Run(dialect, func(t *testing.T) {
			list := candidates()
			rows := make([]*row, len(list))
			t.Run("clients", func(t *testing.T) {
				for i, c := range list {
					rows[i] = &row{client: c, cells: map[string]string{}}
					t.Run(c.name, func(t *testing.T) {
						t.Parallel()
						c.try(newBench(t, dialect, rows[i]))
						rows[i].complete(t)
					})
				}
			})
			if t.Failed() {
				return // the table would be one of what went wrong
			}
			table := render(t, rows)
			t.Logf("on %s:\n%s", dialect, table)
			golden.Section(t, "../../docs/measurements.md", "interoperability", table)
		})
	}
}

// row is what one client could do.
type row struct {
	client candidate
	mu     sync.Mutex
	cells  map[string]string
}

func (r *row) set(t *testing.T, step, cell string) {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	if before, taken := r.cells[step]; taken || !slices.Contains(steps(), step) {
		t.Fatalf("the step %q says %q, and said %q", step, cell, before)
	}
	r.cells[step] = cell
}

func (r *row) complete(t *testing.T) {
	t.Helper()
	if got := slices.Collect(maps.Keys(r.cells)); len(got) != len(steps()) {
		t.Errorf("took only the steps %v", got)
	}
}

func render(t *testing.T, rows []*row) string {
	t.Helper()
	var b strings.Builder
	fmt.Fprintf(&b, "| client | version | %s |\n|---|---|%s\n", strings.Join(steps(), " | "), strings.Repeat("---|", len(steps())))
	for _, r := range rows {
		fmt.Fprintf(&b, "| %s | %s |", r.client.name, version(t, r.client.from))
		for _, step := range steps() {
			fmt.Fprintf(&b, " %s |", r.cells[step])
		}
		b.WriteString("\n")
	}
	return b.String()
}

// version is what package.json or go.mod pins.
func version(t *testing.T, from string) string {
	t.Helper()
	var packages struct{ Dependencies map[string]string }
	if err := json.Unmarshal([]byte(readFile(t, "interop/package.json")), &packages); err != nil {
		t.Fatal(err)
	}
	if v := packages.Dependencies[from]; v != "" {
		return v
	}
	module := regexp.MustCompile(`(?m)^\s*` + regexp.QuoteMeta(from) + ` v(\S+)`).FindStringSubmatch(readFile(t, "../../go.mod"))
	if module == nil {
		t.Fatalf("nothing pins a version of %s", from)
	}
	return module[1]
}
