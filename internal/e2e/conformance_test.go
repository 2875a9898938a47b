//go:build conformance

package e2e

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"switchboard/internal/golden"
	"switchboard/internal/trial"
)

// withFixtures is the product with what the suite asks for by name: the test binary of cmd/switchboard.
const withFixtures = "../../bin/switchboard-conformance"

const suiteProgram = "node_modules/@modelcontextprotocol/conformance/dist/index.js"

// unhurried lets the suite send as much as it likes and leaves the limits on.
const unhurried = "SWITCHBOARD_RATE_PER_MINUTE=60000"

// everyScope is what the fixtures and the product's own tools need together.
const everyScope = "org:read org:write contacts:read contacts:write"

// suite is one invocation of the official suite. Where failures is not empty it names the file of those that are expected.
type suite struct {
	name, failures string
	args           []string
}

func suites() []suite {
	return []suite{
		{"2026-07-28, what is required", "", []string{"--requirements", "2026-07-28"}},
		{"2026-07-28, the scenarios of that revision alone", "", []string{"--suite", "draft"}},
		{"2025-11-25, what is required", "conformance.yml", []string{"--requirements", "2025-11-25"}},
		{"2025-06-18", "conformance.yml", []string{"--spec-version", "2025-06-18"}},
		{"2025-03-26", "", []string{"--spec-version", "2025-03-26"}},
	}
}

// asBuilt are the scenarios that need no fixtures, or hardly any.
func asBuilt() []suite {
	var all []suite
	for _, c := range []struct{ revision, scenarios string }{
		{"2026-07-28", "server-stateless tools-list server-sse-multiple-streams dns-rebinding-protection http-header-validation"},
		{"2025-11-25", "server-initialize ping tools-list prompts-list resources-list dns-rebinding-protection"},
		{"2025-06-18", "server-initialize ping tools-list prompts-list resources-list"},
	} {
		for _, scenario := range strings.Fields(c.scenarios) {
			s := suite{"as built, " + c.revision, "", []string{"--scenario", scenario, "--spec-version", c.revision}}
			if scenario == "server-stateless" {
				s.failures = "conformance-as-built.yml"
			}
			all = append(all, s)
		}
	}
	return all
}

// What docs/measurements.md says is what the official suite found, on either database.
func TestTheOfficialSuiteFindsWhatIsExpectedAndNothingElse(t *testing.T) {
	for _, dialect := range []string{"sqlite", "postgres"} {
		t.Run(dialect, func(t *testing.T) {
			s, built := startProgram(t, withFixtures, dialect, unhurried), start(t, dialect, unhurried)
			rows := slices.Concat(runSuites(t, s, suites()), []outcome{authorize(t, s)}, runSuites(t, built, asBuilt()))
			table := outcomes(rows)
			t.Logf("on %s:\n%s", dialect, table)
			if !t.Failed() { // the table would be one of what went wrong
				golden.Section(t, "../../docs/measurements.md", "conformance", table)
			}
		})
	}
}

// runSuites runs suites against a server, as a client that its owner let do everything.
func runSuites(t *testing.T, s *server, list []suite) []outcome {
	t.Helper()
	s.user(t, owner, orgName, "owner")
	at := injecting(t, s, newScript(t, s, owner).connect(s.register(t, "Conformance", redirect), everyScope).access)
	var rows []outcome
	for _, suite := range list {
		args := append([]string{"server", "--url", at}, suite.args...)
		if suite.failures != "" {
			args = append(args, "--expected-failures", suite.failures)
		}
		o := runSuite(t, suite.name, nil, args...)
		if suite.failures == "" && len(o.failed) > 0 {
			t.Errorf("%s: failed %v", suite.name, o.failed)
		}
		if last := len(rows) - 1; last >= 0 && rows[last].suite == o.suite {
			rows[last].join(o)
			continue
		}
		rows = append(rows, o)
	}
	return rows
}

// What the suite was shown beyond the product's own is nowhere in the product, and the permission that it needed is no
// formality.
func TestTheProductAsItIsBuiltHasNoneOfTheFixtures(t *testing.T) {
	for _, dialect := range []string{"sqlite", "postgres"} {
		t.Run(dialect, func(t *testing.T) {
			shown, built := startProgram(t, withFixtures, dialect, unhurried), start(t, dialect, unhurried)
			reads, does := map[*server]string{}, map[*server]string{}
			for _, s := range []*server{shown, built} {
				s.user(t, owner, orgName, "owner")
				reads[s], does[s] = s.key(t, orgName, "org:read"), s.key(t, orgName, everyScope)
			}
			own := built.toolNames(t, does[built])
			fixtures := slices.DeleteFunc(shown.toolNames(t, does[shown]), func(name string) bool { return slices.Contains(own, name) })
			if len(own) == 0 || len(fixtures) < 20 {
				t.Fatalf("the product has %v, the fixtures are %v", own, fixtures)
			}
			for _, revision := range revisions {
				for _, name := range fixtures {
					if a := built.speak(t, does[built], revision, "tools/call", name, map[string]any{"name": name}); !strings.Contains(a.body, `"code":-32602`) || !strings.Contains(a.body, "unknown tool") {
						t.Errorf("%s %s in the product: %d %s", revision, name, a.status, a.body)
					}
					if a := shown.speak(t, reads[shown], revision, "tools/call", name, map[string]any{"name": name}); !isChallenge(a, "contacts:write org:read") {
						t.Errorf("%s %s without its scope: %d %s", revision, name, a.status, a.body)
					}
				}
				if a := built.speak(t, reads[built], revision, "tools/call", "list_contacts", map[string]any{"name": "list_contacts"}); !isChallenge(a, "contacts:read org:read") {
					t.Errorf("%s list_contacts without its scope: %d %s", revision, a.status, a.body)
				}
				for _, method := range []string{"prompts/get", "resources/read", "completion/complete", "logging/setLevel", "resources/subscribe", "resources/unsubscribe", "subscriptions/listen"} {
					params := map[string]any{"name": "test_simple_prompt", "uri": "test://static-text", "level": "info", "notifications": map[string]any{"toolsListChanged": true},
						"ref": map[string]any{"type": "ref/prompt", "name": "test_prompt_with_arguments"}, "argument": map[string]any{"name": "arg1", "value": ""}}
					name := map[string]string{"prompts/get": "test_simple_prompt", "resources/read": "test://static-text"}[method]
					if a := built.speak(t, does[built], revision, method, name, params); !strings.Contains(a.body, `"code":-32601`) || a.header.Get("Content-Type") != "application/json" {
						t.Errorf("%s %s in the product: %d %s", revision, method, a.status, a.body)
					}
				}
				for _, list := range []string{"prompts", "resources"} {
					if a := built.speak(t, does[built], revision, list+"/list", "", map[string]any{}); !strings.Contains(a.body, `"`+list+`":[]`) && !strings.Contains(a.body, `"code":-32601`) {
						t.Errorf("%s %s in the product: %d %s", revision, list, a.status, a.body)
					}
				}
			}
			if a := built.speak(t, reads[built], "2026-07-28", "server/discover", "", map[string]any{}); !strings.Contains(a.body, `"capabilities":{"tools":{}}`) {
				t.Errorf("the product declares %s", a.body)
			}
		})
	}
}

// isChallenge reports whether an answer is the step-up to these scopes.
func isChallenge(a answer, scopes string) bool {
	return a.status == http.StatusForbidden && strings.HasPrefix(a.header.Get("WWW-Authenticate"), `Bearer error="insufficient_scope", scope="`+scopes+`", resource_metadata="`)
}

// toolNames are the tools that a server lists.
func (s *server) toolNames(t *testing.T, token string) []string {
	t.Helper()
	var list struct {
		Result struct{ Tools []struct{ Name string } }
	}
	if err := json.Unmarshal([]byte(s.call(t, token, "tools/list", map[string]any{}).body), &list); err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, tool := range list.Result.Tools {
		names = append(names, tool.Name)
	}
	return names
}

// injecting is a way to the server that signs its requests in: the suite cannot. What it finds out about hosts and
// origins it finds out about the server, since only the proxy's own address is replaced.
func injecting(t *testing.T, s *server, token string) string {
	t.Helper()
	to, err := url.Parse(s.url)
	if err != nil {
		t.Fatal(err)
	}
	var own []string // the proxy's own names
	proxy := httptest.NewUnstartedServer(&httputil.ReverseProxy{
		FlushInterval: -1,
		Rewrite: func(r *httputil.ProxyRequest) {
			r.Out.URL.Scheme, r.Out.URL.Host, r.Out.Host = to.Scheme, to.Host, r.In.Host
			if slices.Contains(own, r.In.Host) {
				r.Out.Host = to.Host
				if r.In.Header.Get("Origin") == "http://"+r.In.Host {
					r.Out.Header.Set("Origin", s.url)
				}
			}
			r.Out.Header.Set("Authorization", "Bearer "+token)
			// Read whole: net/http takes the body away when an answer begins, and a transport that still looks for its end
			// then hangs up on the stream.
			body, _ := io.ReadAll(r.In.Body)
			r.Out.Body = io.NopCloser(bytes.NewReader(body))
		},
	})
	_, port, _ := net.SplitHostPort(proxy.Listener.Addr().String())
	own = []string{"127.0.0.1:" + port, "localhost:" + port}
	proxy.Start()
	t.Cleanup(proxy.Close)
	return proxy.URL + "/mcp"
}

// outcome is what a run of the suite found, by scenario.
type outcome struct {
	suite                   string
	passed, failed, skipped []string
	unscored                []string // failed, and nobody has to pass them
	checks, good            int
}

// join adds what another run of the same suite found.
func (o *outcome) join(other outcome) {
	o.passed, o.failed, o.skipped = append(o.passed, other.passed...), append(o.failed, other.failed...), append(o.skipped, other.skipped...)
	o.unscored, o.checks, o.good = append(o.unscored, other.unscored...), o.checks+other.checks, o.good+other.good
}

// runSuite runs the suite and reads its results. A person may look at what it prints meanwhile.
func runSuite(t *testing.T, name string, person func(io.Reader), args ...string) outcome {
	t.Helper()
	dir := t.TempDir()
	cmd := nodeCommand(t, t.TempDir(), suiteProgram, append(args, "-o", dir)...)
	var printed trial.Journal
	cmd.Stderr = &printed
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	reading := io.TeeReader(stdout, &printed)
	if person != nil {
		person(reading)
	}
	_, _ = io.Copy(io.Discard, reading)
	failed := cmd.Wait()
	o := outcome{suite: name}
	must := required(t, args)
	results, err := filepath.Glob(filepath.Join(dir, "*", "checks.json"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range results {
		o.add(t, path, must)
	}
	for _, name := range must {
		if !slices.Contains(slices.Concat(o.passed, o.failed), name) {
			t.Errorf("%s is required and did not run", name)
		}
	}
	if failed != nil || len(results) == 0 {
		t.Errorf("the suite ended with %v: %s", failed, printed.String())
	}
	return o
}

// required are the scenarios that a revision requires, or none where all that run count.
func required(t *testing.T, args []string) []string {
	t.Helper()
	at := slices.Index(args, "--requirements")
	if at < 0 {
		return nil
	}
	out, err := nodeCommand(t, t.TempDir(), suiteProgram, "list", "--server", "--requirements", args[at+1]).Output()
	if err != nil {
		t.Fatal(err)
	}
	_, servers, _ := strings.Cut(string(out), "Server scenarios")
	servers, _, _ = strings.Cut(servers, "\n\n")
	var names []string
	for _, found := range regexp.MustCompile(`(?m)^  - (\S+)$`).FindAllStringSubmatch(servers, -1) {
		names = append(names, found[1])
	}
	if len(names) == 0 {
		t.Fatalf("nothing is required: %s", out)
	}
	return names
}

var resultFolder = regexp.MustCompile(`^(?:server|authorization-server)-(.+)-\d{4}-\d\d-\d\dT[\d-]+Z$`)

// add reads the result of one scenario. One that warns has failed: so says the suite where it compares with a list.
func (o *outcome) add(t *testing.T, path string, must []string) {
	t.Helper()
	var checks []struct{ ID, Status, ErrorMessage string }
	if err := json.Unmarshal([]byte(readFile(t, path)), &checks); err != nil {
		t.Fatal(err)
	}
	folder := resultFolder.FindStringSubmatch(filepath.Base(filepath.Dir(path)))
	if folder == nil {
		t.Fatalf("%s is of no scenario", path)
	}
	name, bad, good := folder[1], 0, 0
	for _, c := range checks {
		switch c.Status {
		case "FAILURE", "WARNING":
			bad++
			t.Logf("%s: %s: %s", name, c.ID, c.ErrorMessage)
		case "SUCCESS":
			good++
		}
	}
	o.checks, o.good = o.checks+good+bad, o.good+good
	switch {
	case bad > 0 && must != nil && !slices.Contains(must, name):
		o.unscored = append(o.unscored, name)
	case bad > 0:
		o.failed = append(o.failed, name)
	case good == 0 || good == 1 && slices.ContainsFunc(checks, func(c struct{ ID, Status, ErrorMessage string }) bool { return c.ID == "wire-schema-valid" }):
		o.skipped = append(o.skipped, name)
	default:
		o.passed = append(o.passed, name)
	}
}

func outcomes(rows []outcome) string {
	var b strings.Builder
	b.WriteString("| suite | passed | failed | skipped | not required, failed | checks |\n|---|---|---|---|---|---|\n")
	for _, r := range rows {
		fmt.Fprintf(&b, "| %s | %d | %s | %s | %s | %d of %d |\n", r.suite, len(r.passed), list(r.failed), list(r.skipped), list(r.unscored), r.good, r.checks)
	}
	return b.String()
}

// list says how many, and which.
func list(names []string) string {
	if len(names) == 0 {
		return "0"
	}
	slices.Sort(names)
	return fmt.Sprintf("%d: %s", len(names), strings.Join(names, ", "))
}

// authorize runs the suite's scenarios of the authorization server. It signs in with a browser, which a person does here.
func authorize(t *testing.T, s *server) outcome {
	t.Helper()
	port := freePort(t)
	back := "http://127.0.0.1:" + port + "/callback"
	client := s.register(t, "Conformance", back)
	person := func(lines io.Reader) {
		signInWhereAsked(newScript(t, s, owner), lines, s.url+"/oauth/authorize?", back)
	}
	o := runSuite(t, "authorization", person, "authorization", "--url", s.url, "--client-id", client, "--resource", s.url+"/mcp", "--port", port, "--spec-version", "2026-07-28")
	if want := []string{"authorization-code-grant", "authorization-server-metadata-endpoint"}; !slices.Equal(o.passed, want) {
		t.Errorf("passed %v, want %v", o.passed, want)
	}
	return o
}

// signInWhereAsked reads what the suite prints until it wants a URL opened, and opens it.
func signInWhereAsked(p *script, lines io.Reader, prefix, back string) {
	p.t.Helper()
	for in := bufio.NewScanner(lines); in.Scan(); {
		line := strings.TrimSpace(in.Text())
		if !strings.HasPrefix(line, prefix) {
			continue
		}
		asked, err := url.Parse(line)
		if err != nil {
			p.t.Fatal(err)
		}
		a := attempt{url: line, redirect: back, state: asked.Query().Get("state")}
		if got := p.get(back + "?" + p.decide(p.consent(a), a, "approve", nil).Encode()); got.status != http.StatusOK {
			p.t.Fatalf("the suite did not take the answer: %d %s", got.status, got.body)
		}
		return
	}
	p.t.Fatal("the suite asked nobody to sign in")
}
