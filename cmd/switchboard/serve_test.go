package main

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

func TestCommandsWorkWhileTheServerRuns(t *testing.T) {
	m := newMachine(t)
	server := m.serve(false)
	m.must("", "migrate")
	m.user("amira@harbor.example", "Harbor", "owner")
	key := lastLine(m.must("", "key", "create", "--org=Harbor", "--name=CI", "--scopes=org:read"))
	call := func(path, authorization string) (int, http.Header) {
		body := `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{}}`
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.url+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		headers := []string{"Content-Type", "application/json", "Accept", "application/json, text/event-stream", "MCP-Protocol-Version", "2025-06-18"}
		if authorization != "" {
			headers = append(headers, "Authorization", authorization)
		}
		status, h, _ := server.send(t, req, headers...)
		return status, h
	}
	for _, path := range []string{"/mcp", "/mcp/"} {
		if status, _ := call(path, "Bearer "+key); status != 200 {
			t.Errorf("%s with a key that another process made: %d", path, status)
		}
		status, h := call(path, "")
		want := `resource_metadata="` + server.url + `/.well-known/oauth-protected-resource/mcp"`
		if status != 401 || !strings.Contains(h.Get("WWW-Authenticate"), want) {
			t.Errorf("%s without one: %d %v", path, status, h)
		}
	}
	if status, _ := call("/mcp?api_key="+key, ""); status != 401 {
		t.Errorf("a key in the query: %d", status)
	}
}

func TestProbesForMetadataNeverMeetAPageARedirectOrAChallenge(t *testing.T) {
	server := newMachine(t).serve(false)
	for path, status := range map[string]int{
		"/.well-known/oauth-protected-resource":       200,
		"/.well-known/oauth-protected-resource/mcp":   200,
		"/.well-known/oauth-authorization-server":     200,
		"/.well-known/oauth-authorization-server/mcp": 404,
		"/.well-known/openid-configuration":           404,
		"/mcp/.well-known/oauth-authorization-server": 404,
		"/mcp/.well-known/openid-configuration":       404,
		"/mcp/.well-known/oauth-protected-resource":   404,
		"/.well-known/zzz":                            404,
	} {
		for _, headers := range [][]string{nil, {"Accept", "text/html"}, {"Origin", "http://localhost:6274"}, {"X-Forwarded-Proto", "https"}} {
			got, h, body := server.get(t, "GET", path, headers...)
			head, _, _ := server.get(t, "HEAD", path, headers...)
			if got != status || head != status || h.Get("Content-Type") != "application/json" || !json.Valid([]byte(body)) {
				t.Errorf("%s %v: GET %d, HEAD %d, %v", path, headers, got, head, h)
			}
		}
	}
	for _, path := range []string{"/oauth/token", "/oauth/register", "/oauth/revoke", "/oauth/token/", "/oauth/register/", "/oauth/revoke/"} {
		if got, h, _ := server.get(t, "POST", path, "X-Forwarded-Proto", "http"); got != 400 || h.Get("Content-Type") != "application/json" {
			t.Errorf("POST %s: %d %v", path, got, h)
		}
	}
	var metadata struct {
		Issuer   string
		Resource string
		Servers  []string `json:"authorization_servers"`
	}
	for _, path := range []string{"/.well-known/oauth-authorization-server", "/.well-known/oauth-protected-resource"} {
		_, _, body := server.get(t, "GET", path)
		if err := json.Unmarshal([]byte(body), &metadata); err != nil {
			t.Error(err)
		}
	}
	if metadata.Issuer != server.url || metadata.Resource != server.url+"/mcp" || len(metadata.Servers) != 1 || metadata.Servers[0] != server.url {
		t.Errorf("%+v", metadata)
	}
}

func TestHealthIsOfTheProcessAndReadinessOfTheDatabase(t *testing.T) {
	m := newMachine(t)
	server := m.serve(false)
	for path, want := range map[string]string{"/healthz": `{"status":"ok"}`, "/readyz": `{"status":"ready"}`} {
		if status, _, body := server.get(t, "GET", path); status != 200 || strings.TrimSpace(body) != want {
			t.Errorf("%s: %d %s", path, status, body)
		}
	}
}

func TestASetupLinkIsShownToATerminalAndWrittenToAFileOtherwise(t *testing.T) {
	pattern := regexp.MustCompile(`(http://localhost:\d+)/setup\?link=(sb_setup_[A-Za-z0-9_-]{43})`)
	m := newMachine(t)
	atTerminal := m.serve(true)
	if found := pattern.FindStringSubmatch(atTerminal.output); found == nil || found[1] != atTerminal.url {
		t.Errorf("no link in %q", atTerminal.output)
	}
	path := filepath.Join(m.dir, "setup-link")
	if _, err := os.Stat(path); err == nil {
		t.Error("a file was written at a terminal")
	}

	inALog := m.serve(false)
	if strings.Contains(inALog.output, "sb_setup_") || !strings.Contains(inALog.output, path) {
		t.Errorf("the welcome to a log is %q", inALog.output)
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Fatalf("%v %v", info, err)
	}
	content, err := os.ReadFile(path)
	found := pattern.FindStringSubmatch(string(content))
	if err != nil || found == nil || string(content) != found[0]+"\n" {
		t.Fatalf("the file holds %q, %v", content, err)
	}
	if status, _, body := inALog.get(t, "GET", strings.TrimPrefix(found[0], inALog.url), "Accept", "text/html"); status != 200 || !strings.Contains(body, `name="password"`) {
		t.Errorf("the link opens %d", status)
	}
	again := m.serve(false)
	if content, err := os.ReadFile(path); err != nil || string(content) == found[0]+"\n" || !pattern.Match(content) {
		t.Errorf("after another start the file holds %q, %v: %s", content, err, again.output)
	}
}

func TestOnceThereIsAnOwnerThereIsNoSetupLink(t *testing.T) {
	m := newMachine(t)
	m.user("amira@harbor.example", "Harbor", "owner")
	for _, terminal := range []bool{true, false} {
		server := m.serve(terminal)
		if strings.Contains(server.output, "sb_setup_") || !strings.Contains(server.output, "Sign in at "+server.url+"/sign-in") {
			t.Errorf("%q", server.output)
		}
	}
	if _, err := os.Stat(filepath.Join(m.dir, "setup-link")); err == nil {
		t.Error("a set-up link was written")
	}
}

func TestTheWelcomeHasALineToPasteForEachClient(t *testing.T) {
	m := newMachine(t)
	local := m.serve(false)
	for _, line := range []string{
		"claude mcp add --transport http switchboard " + local.url + "/mcp\n",
		`{"mcpServers":{"switchboard":{"url":"` + local.url + `/mcp"}}}`,
		`code --add-mcp '{"name":"switchboard","type":"http","url":"` + local.url + `/mcp"}'`,
		"they need a public https URL",
	} {
		if !strings.Contains(local.output, line) {
			t.Errorf("%q is not in %s", line, local.output)
		}
	}
	public := m.serve(false, "--url=https://sb.example")
	if strings.Contains(public.output, "localhost") || !strings.Contains(public.output, "add a custom connector with the URL https://sb.example/mcp") {
		t.Errorf("%s", public.output)
	}
}

func TestLocalhostIsBothAddressesAndNobodyElsesPort(t *testing.T) {
	taken, err := net.Listen("tcp6", "[::1]:0")
	if err != nil {
		listeners, err := listen(t.Context(), "localhost:0") // a machine without IPv6
		if err != nil || len(listeners) != 1 {
			t.Fatal(listeners, err)
		}
		_ = listeners[0].Close()
		return
	}
	defer taken.Close()
	port := taken.Addr().(*net.TCPAddr).Port
	if listeners, err := listen(t.Context(), fmt.Sprintf("localhost:%d", port)); err == nil {
		t.Errorf("[::1]:%d is another program's, and browsers would go there: %v", port, listeners)
	}
	if free, err := net.Listen("tcp4", fmt.Sprintf("127.0.0.1:%d", port)); err != nil {
		t.Errorf("the other address was kept: %v", err)
	} else {
		_ = free.Close()
	}
	listeners, err := listen(t.Context(), "localhost:0")
	if err != nil || len(listeners) != 2 {
		t.Fatal(listeners, err)
	}
	got := []string{listeners[0].Addr().(*net.TCPAddr).IP.String(), listeners[1].Addr().(*net.TCPAddr).IP.String()}
	if got[0] != "127.0.0.1" || got[1] != "::1" || listeners[0].Addr().(*net.TCPAddr).Port != listeners[1].Addr().(*net.TCPAddr).Port {
		t.Error(listeners[0].Addr(), listeners[1].Addr())
	}
	for _, l := range listeners {
		_ = l.Close()
	}
}

func TestAServerWhoseAddressIsTakenSaysSoAndEnds(t *testing.T) {
	m := newMachine(t)
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	for _, host := range []string{"localhost", "127.0.0.1"} {
		addr := fmt.Sprintf("%s:%d", host, taken.Addr().(*net.TCPAddr).Port)
		if _, err := m.run("", "--addr="+addr, "serve"); err == nil || !strings.Contains(err.Error(), "address already in use") {
			t.Errorf("%s: %v", addr, err)
		}
	}
}

func TestAServerWhoseListenerFailsEnds(t *testing.T) {
	m := newMachine(t)
	cli, err := parse(t, append(m.settings(), "--addr=localhost:0", "--url=http://localhost:1")...)
	if err != nil {
		t.Fatal(err)
	}
	log := newLog("error", new(strings.Builder))
	p, err := open(t.Context(), &cli.Config, log)
	if err != nil {
		t.Fatal(err)
	}
	defer p.close()
	s, err := wire(&cli.Config, p, nil)
	if err != nil {
		t.Fatal(err)
	}
	listeners, err := listen(t.Context(), "localhost:0")
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range listeners {
		_ = l.Close()
	}
	if err := s.serve(t.Context(), listeners, log); err == nil {
		t.Error("it ended as if all were well")
	}
}
