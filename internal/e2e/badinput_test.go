//go:build e2e

package e2e

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"switchboard/internal/trial"
)

// answerTime is how long any answer may take: a request that hangs holds a connection and a person.
const answerTime = 5 * time.Second

// The corpus is sent as it stands, over connections of its own: what an HTTP client would mend is what is tested.
func TestBadInputGetsTheAnswerThatIsWrittenDown(t *testing.T) {
	onBoth(t, func(t *testing.T, s *server) {
		w := newCorpusWorld(t, s)
		for _, endpoint := range trial.Endpoints(t) {
			if endpoint == firstRun {
				continue
			}
			t.Run(endpoint, func(t *testing.T) {
				w.run(t, endpoint)
				w.stillWorks()
			})
		}
		w.t = t
		w.checkLog()
	}, corpusSettings...)
}

// firstRun is the file for a server that nobody has set up: the set-up page ends with the first owner.
const firstRun = "firstrun"

var corpusSettings = []string{"SWITCHBOARD_RATE_PER_MINUTE=0", "SWITCHBOARD_TRUSTED_PROXIES=127.0.0.1,::1", "SWITCHBOARD_LOG_LEVEL=debug"}

func TestBadInputBeforeTheSetUpLeavesTheLinkGood(t *testing.T) {
	onBoth(t, func(t *testing.T, s *server) {
		w := newEmptyWorld(t, s)
		w.run(t, firstRun)
		w.checkLog()
		if a := w.people["nobody"].get(s.url + "/setup?link=" + w.known["link"]); a.status != http.StatusOK {
			t.Errorf("afterwards the link answers %d", a.status)
		}
	}, corpusSettings...)
}

func (w *corpusWorld) run(t *testing.T, endpoint string) {
	w.t = t
	list := trial.Corpus(t, endpoint)
	for i, r := range list {
		list[i].Want = w.try(endpoint, r)
	}
	if os.Getenv("UPDATE") != "" {
		rewriteCorpus(t, endpoint, list)
	}
}

// try sends a request, compares, and returns what should be written down as its answer.
func (w *corpusWorld) try(endpoint string, r trial.Request) string {
	w.t.Helper()
	filled, err := r.Fill(w.the)
	if err != nil {
		w.t.Fatalf("%s: %v", r.Name, err)
	}
	a, err := w.send(filled)
	if err != nil {
		w.t.Errorf("%s: %v", r.Name, err)
		return r.Want
	}
	got := w.describe(a)
	if got != filled.Want {
		if os.Getenv("UPDATE") == "" {
			w.t.Errorf("%s: got %s, want %s\n%.600q", r.Name, got, filled.Want, a.body)
		}
		r.Want = strings.ReplaceAll(got, w.s.url, `{{the "url"}}`)
	}
	if status, _, _ := strings.Cut(filled.Want, " "); status == "503" {
		w.unavailable++
	}
	for _, wrong := range w.always(endpoint, filled, a) {
		w.t.Errorf("%s: %s: %d %v %.300q", r.Name, wrong, a.status, a.header, a.body)
	}
	return r.Want
}

// send writes the bytes of a request and reads the one answer that there may be.
func (w *corpusWorld) send(r trial.Request) (answer, error) {
	conn, err := net.DialTimeout("tcp", w.host, answerTime)
	if err != nil {
		return answer{}, err
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(answerTime))
	wire := w.wire(r)
	go func() { _, _ = conn.Write(wire) }() // a server that has seen enough need not read the rest
	method, _, _ := strings.Cut(string(wire), " ")
	in := bufio.NewReader(conn)
	resp, err := http.ReadResponse(in, &http.Request{Method: method})
	if err != nil {
		return answer{}, fmt.Errorf("no answer: %w", err)
	}
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return answer{}, fmt.Errorf("half an answer: %w", err)
	}
	_ = conn.(*net.TCPConn).CloseWrite() // after the answer: before it, the server would take it for a hang-up
	if more, _ := io.ReadAll(in); len(more) > 0 {
		return answer{}, fmt.Errorf("a second answer: %.200q", more)
	}
	return answer{resp.StatusCode, resp.Header, string(body), w.sentTo(wire)}, nil
}

// sentTo is the address that a request was for, nil for one that is none.
func (w *corpusWorld) sentTo(wire []byte) *url.URL {
	line, _, _ := strings.Cut(string(wire), "\r\n")
	_, target, _ := strings.Cut(line, " ")
	target, _, _ = strings.Cut(target, " HTTP/")
	u, _ := url.Parse(target)
	return u
}

// wire is a request as it goes out: what the file leaves out is added, unless it is raw.
func (w *corpusWorld) wire(r trial.Request) []byte {
	lines := strings.Split(r.Head(), "\n")
	body := r.Body()
	if !r.Is("raw") {
		if !regexp.MustCompile(` HTTP/\d`).MatchString(lines[0]) {
			lines[0] += " HTTP/1.1"
		}
		add := func(name, value string) {
			if !slices.ContainsFunc(lines, func(l string) bool { return strings.HasPrefix(strings.ToLower(l), strings.ToLower(name)+":") }) {
				lines = append(lines, name+": "+value)
			}
		}
		add("Host", w.host)
		for _, as := range r.As {
			for _, header := range w.headers(as) {
				add(header[0], header[1])
			}
		}
		w.sent++
		add("X-Forwarded-For", fmt.Sprintf("198.51.%d.%d", w.sent/250, w.sent%250)) // so that limits of one address stay out of the way
		add("Connection", "close")
		if body != "" && !slices.ContainsFunc(lines, func(l string) bool { return strings.HasPrefix(strings.ToLower(l), "transfer-encoding:") }) {
			add("Content-Length", strconv.Itoa(len(body)))
		}
	}
	return []byte(strings.Join(lines, "\r\n") + "\r\n\r\n" + body)
}

// headers are those that a word behind "as" stands for.
func (w *corpusWorld) headers(as string) [][2]string {
	switch as {
	case "raw":
		return nil
	case "json":
		return [][2]string{{"Content-Type", "application/json"}, {"Accept", "application/json, text/event-stream"}}
	case "form":
		return [][2]string{{"Content-Type", "application/x-www-form-urlencoded"}}
	case "modern":
		return [][2]string{{"MCP-Protocol-Version", "2026-07-28"}}
	case "owner", "viewer", "nobody":
		return [][2]string{{"Cookie", w.must("cookies " + as)}}
	case "token", "part-token", "narrow", "viewer-token", "key":
		return [][2]string{{"Authorization", "Bearer " + w.must(as)}}
	}
	w.t.Fatalf("nobody is called %q", as)
	return nil
}

var (
	programs = regexp.MustCompile(`^/(mcp|token|register|healthz|readyz|oauth/(token|register|revoke|introspect)|\.well-known)(/|$)`)
	secrets  = regexp.MustCompile(`canary|sb_(at|rt|ac|bs|live)_[A-Za-z0-9_-]{8}`)
)

// describe says an answer in the words of the corpus.
func (w *corpusWorld) describe(a answer) string {
	kind, _, _ := strings.Cut(a.header.Get("Content-Type"), ";")
	to := a.header.Get("Location")
	switch {
	case bare(a):
		return fmt.Sprintf("%d bare", a.status)
	case to != "":
		return fmt.Sprintf("%d %s", a.status, w.describePlace(a, to))
	case a.body == "" && kind == "":
		return fmt.Sprintf("%d empty", a.status)
	case kind == "text/html":
		return fmt.Sprintf("%d page", a.status)
	case kind == "application/json":
		return fmt.Sprintf("%d %s", a.status, describeJSON(a.body))
	}
	return fmt.Sprintf("%d file %s", a.status, kind)
}

// describePlace tells the app from our pages, and the exact address of everything else.
func (w *corpusWorld) describePlace(a answer, to string) string {
	if regexp.MustCompile(`^/consent/[A-Za-z0-9_-]{43}$`).MatchString(to) {
		return "consent"
	}
	u, err := url.Parse(to)
	if err != nil || !strings.HasPrefix(to, redirect+"?") {
		return "to " + to
	}
	q, state := u.Query(), a.url.Query().Get("state")
	if strings.HasPrefix(a.url.Path, "/consent/") {
		state = w.known["state"] // of the request that is answered
	}
	good := q.Get("error") != "" && q.Get("iss") == w.s.url && q.Get("state") == state && q.Has("error_description")
	for name, values := range q {
		good = good && len(values) == 1 && slices.Contains([]string{"error", "error_description", "iss", "state"}, name)
	}
	if !good {
		return "to " + to
	}
	return "back " + q.Get("error")
}

func describeJSON(body string) string {
	var a struct {
		Version     string `json:"jsonrpc"`
		Description string `json:"error_description"`
		Error       json.RawMessage
		Result      *struct {
			IsError bool
			Content []struct{ Text string }
		}
	}
	if body == "" {
		return "ok" // the answer to HEAD
	}
	if json.Unmarshal([]byte(body), &a) != nil {
		return "broken JSON"
	}
	var word string
	var object struct {
		Code    any
		Message string
	}
	switch {
	case a.Result != nil && a.Result.IsError && len(a.Result.Content) == 1:
		return strings.Replace(describeJSON(a.Result.Content[0].Text), "json ", "tool ", 1)
	case a.Result != nil:
		return "result"
	case len(a.Error) == 0:
		return "ok"
	case json.Unmarshal(a.Error, &word) == nil && a.Description != "":
		return "oauth " + word
	case json.Unmarshal(a.Error, &object) == nil && object.Message != "" && a.Version == "2.0":
		return fmt.Sprintf("jsonrpc %v", object.Code)
	case json.Unmarshal(a.Error, &object) == nil && object.Message != "":
		return fmt.Sprintf("json %v", object.Code)
	}
	return "an error that says nothing"
}

// always is what no answer may be, whatever is written down for it.
func (w *corpusWorld) always(endpoint string, r trial.Request, a answer) (wrong []string) {
	to := a.header.Get("Location")
	leaks := regexp.MustCompile(`(?i)goroutine \d|\.go:\d|panic|runtime error|sqlstate|\bpgx\b|json: cannot|unmarshal|invalid character|strconv\.|reflect\.`)
	for what, is := range map[string]bool{
		"a 5xx": a.status >= 500 && !bare(a) && (a.status != http.StatusServiceUnavailable || !strings.HasPrefix(r.Want, "503 ")),
		"a redirect that is no answer to a browser": to != "" && a.status != http.StatusSeeOther && a.status != http.StatusTemporaryRedirect,
		"a redirect to an address that nobody registered": to != "" && (!strings.HasPrefix(to, "/") || strings.HasPrefix(to, "//") || strings.HasPrefix(to, `/\`)) &&
			!strings.HasPrefix(to, w.s.url+"/") && !slices.ContainsFunc(w.redirects, func(at string) bool {
			return to == at || strings.HasPrefix(to, at+"?") || strings.HasPrefix(to, at+"&")
		}),
		"no JSON for a program":         a.url != nil && programs.MatchString(a.url.Path) && a.body != "" && !strings.HasPrefix(a.header.Get("Content-Type"), "application/json") && !bare(a),
		"a redirect of a program":       a.url != nil && programs.MatchString(a.url.Path) && to != "",
		"a 401 without a challenge":     a.status == http.StatusUnauthorized && a.header.Get("WWW-Authenticate") == "",
		"a 405 without Allow":           a.status == http.StatusMethodNotAllowed && a.header.Get("Allow") == "",
		"a 503 that says nothing more":  a.status == http.StatusServiceUnavailable && a.header.Get("Retry-After") == "",
		"something of the inside":       leaks.MatchString(a.body + fmt.Sprint(a.header)),
		"characters that are not UTF-8": !bytes.Equal([]byte(a.body), bytes.ToValidUTF8([]byte(a.body), nil)),
		"a page without its headers":    strings.HasPrefix(a.header.Get("Content-Type"), "text/html") && !strings.Contains(a.header.Get("Content-Security-Policy"), "frame-ancestors 'none'"),
		"an answer that a cache keeps": a.header.Get("Cache-Control") != "no-store" && a.status != http.StatusNoContent && a.status != http.StatusAccepted && !bare(a) && (a.url == nil || a.url.Path != "/healthz") &&
			!slices.Contains([]string{"assets", "wellknown", "health", "unknown"}, endpoint),
	} {
		if is {
			wrong = append(wrong, what)
		}
	}
	return wrong
}

// bare reports whether net/http answered before any handler of ours, which gives every request an id.
func bare(a answer) bool { return a.header.Get("X-Request-Id") == "" }

// stillWorks shows that nothing that was sent has broken the server for others.
func (w *corpusWorld) stillWorks() {
	w.t.Helper()
	if a, out := w.s.tool(w.t, w.must("token"), "get_organization", map[string]any{}); a.status != http.StatusOK || out["name"] != orgName {
		w.t.Errorf("a call afterwards: %d %s", a.status, a.body)
	}
	for path, what := range map[string]string{"/connections": "cookies owner", "/readyz": "cookies nobody"} {
		if a := w.s.request(w.t, "GET", path, "", "Cookie", w.must(what)); a.status != http.StatusOK {
			w.t.Errorf("%s afterwards: %d", path, a.status)
		}
	}
}

// everyRoute is what the product serves, as the access log names it.
var everyRoute = []string{
	"/", "/.well-known", "/.well-known/", "/assets/{file}", "/audit", "/authorize", "/clients", "/connect", "/connections", "/consent/{id}", "/healthz", "/keys",
	"/mcp", "/mcp/", "/mcp/voice", "/mcp/voice/{$}", "/mcp/{$}", "/oauth/authorize", "/oauth/introspect", "/oauth/introspect/{$}", "/oauth/register", "/oauth/register/{$}", "/oauth/revoke", "/oauth/revoke/{$}", "/oauth/token", "/oauth/token/{$}", "/organization",
	"/readyz", "/register", "/register/{$}", "/setup", "/sign-in", "/sign-out", "/token", "/token/{$}", "/{$}", "none",
}

// checkLog looks for what must not be in the log after all of it.
func (w *corpusWorld) checkLog() {
	w.t.Helper()
	troubles, routes := 0, map[string]bool{}
	for line := range strings.Lines(w.s.logs.String()) {
		var said struct {
			Level, Msg string
			Status     int
			Route      string
		}
		_ = json.Unmarshal([]byte(line), &said)
		switch {
		case said.Msg == "request" && said.Status == http.StatusServiceUnavailable:
			troubles++
		case said.Level == "ERROR" || strings.Contains(line, "goroutine ") || strings.Contains(line, "panic"):
			w.t.Errorf("in the log: %.800s", line)
		}
		if said.Msg == "request" {
			routes[said.Route] = true
		}
		if found := secrets.FindString(line); found != "" {
			w.t.Errorf("%q is in the log: %.800s", found, line)
		}
		for name, secret := range w.secrets {
			if strings.Contains(line, secret) {
				w.t.Errorf("%s is in the log: %.800s", name, line)
			}
		}
	}
	for _, route := range everyRoute {
		if w.known["client"] != "" && !routes[route] {
			w.t.Errorf("nothing was sent to %s", route)
		}
		delete(routes, route)
	}
	for route := range routes {
		w.t.Errorf("everyRoute lacks %s", route)
	}
	if troubles != w.unavailable {
		w.t.Errorf("%d requests were answered 503, %d were expected to", troubles, w.unavailable)
	}
}

// rewriteCorpus puts the answers that came into a file.
func rewriteCorpus(t *testing.T, endpoint string, list []trial.Request) {
	t.Helper()
	path := trial.CorpusFile(t, endpoint)
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	text := string(b)
	for _, r := range list {
		before, block, _ := strings.Cut(text, "== "+r.Name+"\n")
		sent, after, _ := strings.Cut(block, "\n-> ")
		_, after, _ = strings.Cut(after, "\n")
		text = before + "== " + r.Name + "\n" + sent + "\n-> " + r.Want + "\n" + after
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}
