package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"switchboard/internal/store/storetest"
)

// machine is an operator's machine with an empty database.
type machine struct {
	t        *testing.T
	database string
	dir      string
}

func newMachine(t *testing.T) *machine {
	t.Helper()
	clearEnv(t)
	return &machine{t, storetest.URL(t), filepath.Join(t.TempDir(), "data")}
}

// run runs a command to its end and returns what it printed.
func (m *machine) run(stdin string, args ...string) (string, error) {
	m.t.Helper()
	var out, errors bytes.Buffer
	err := new(commands).run(m.t.Context(), append(m.settings(), args...), console{in: strings.NewReader(stdin), out: &out, errors: &errors})
	if err != nil && strings.Contains(errors.String(), "correct horse") {
		m.t.Errorf("a password is on standard error: %s", &errors)
	}
	return out.String(), err
}

func (m *machine) settings() []string {
	return []string{"--database=" + m.database, "--key-file=" + filepath.Join(m.dir, "switchboard.key")}
}

func (m *machine) must(stdin string, args ...string) string {
	m.t.Helper()
	out, err := m.run(stdin, args...)
	if err != nil {
		m.t.Fatalf("%v: %v", args, err)
	}
	return out
}

// user lets somebody in.
func (m *machine) user(email, org, role string, more ...string) string {
	m.t.Helper()
	return m.must("correct horse battery\n", append([]string{"user", "create", "--email=" + email, "--org=" + org, "--role=" + role, "--password-stdin"}, more...)...)
}

// running is a server under way.
type running struct {
	url, output string
	stop        context.CancelFunc
	ended       chan error
}

// started waits for the welcome text, which is printed when the server listens.
type started struct {
	mu  sync.Mutex
	b   bytes.Buffer
	now chan struct{}
}

func (s *started) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.b.Len() == 0 {
		defer close(s.now)
	}
	return s.b.Write(p)
}

// serve starts the server on a free port and ends it with the test.
func (m *machine) serve(terminal bool, args ...string) *running {
	m.t.Helper()
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		m.t.Fatal(err)
	}
	addr := fmt.Sprintf("localhost:%d", free.Addr().(*net.TCPAddr).Port)
	if err := free.Close(); err != nil {
		m.t.Fatal(err)
	}
	ctx, stop := context.WithCancel(m.t.Context())
	r := &running{url: "http://" + addr, stop: stop, ended: make(chan error, 1)}
	out := &started{now: make(chan struct{})}
	go func() {
		r.ended <- new(commands).run(ctx, append(append(m.settings(), "--addr="+addr), args...), console{in: strings.NewReader(""), out: out, errors: io.Discard, terminal: terminal})
	}()
	select {
	case <-out.now:
	case err := <-r.ended:
		m.t.Fatalf("the server did not start: %v", err)
	}
	r.output = out.b.String()
	m.t.Cleanup(func() {
		stop()
		if err := <-r.ended; err != nil {
			m.t.Errorf("the server ended with %v", err)
		}
	})
	return r
}

// get asks the server and never follows a redirect.
func (r *running) get(t *testing.T, method, path string, headers ...string) (int, http.Header, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, r.url+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	return r.send(t, req, headers...)
}

func (r *running) send(t *testing.T, req *http.Request, headers ...string) (int, http.Header, string) {
	t.Helper()
	for i := 0; i < len(headers); i += 2 {
		req.Header.Add(headers[i], headers[i+1])
	}
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	defer client.CloseIdleConnections()
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, resp.Header, string(body)
}

func lastLine(s string) string {
	lines := strings.Split(strings.TrimSuffix(s, "\n"), "\n")
	return lines[len(lines)-1]
}

func TestVersionSaysWhichReleaseThisIs(t *testing.T) {
	if out := newMachine(t).must("", "version"); !strings.HasPrefix(out, "switchboard "+version+" (go1.") {
		t.Errorf("%q", out)
	}
}

func TestMigratingTwiceIsAsGoodAsOnce(t *testing.T) {
	m := newMachine(t)
	for range 2 {
		if out := m.must("", "migrate"); out != "The database is up to date.\n" {
			t.Errorf("%q", out)
		}
	}
	info, err := os.Stat(filepath.Join(m.dir, "switchboard.key"))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the key file: %v %v", info, err)
	}
}

func TestAForeignKeyFileStopsEveryCommand(t *testing.T) {
	m := newMachine(t)
	m.must("", "migrate")
	m.dir = t.TempDir() // another key file is made here
	if _, err := m.run("", "migrate"); err == nil || !strings.Contains(err.Error(), "SWITCHBOARD_KEY_FILE") {
		t.Error(err)
	}
}

func TestUserCreateSaysWhatItDid(t *testing.T) {
	m := newMachine(t)
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"amira@harbor.example", "Harbor", "owner"}, "amira@harbor.example can sign in and is owner of Harbor.\n"},
		{[]string{"amira@harbor.example", "Quay", "viewer", "--country=EG", "--timezone=Africa/Cairo", "--language=ar"}, "amira@harbor.example, who keeps their password, is now also viewer of Quay.\n"},
		{[]string{"olga@harbor.example", "harbor", "owner"}, "olga@harbor.example can sign in and is owner of Harbor.\n"},
		{[]string{"amira@harbor.example", "harbor", "admin"}, "amira@harbor.example, who keeps their password, is now admin of Harbor (before: owner).\n"},
		{[]string{"noor@harbor.example", "Harbor", "member", "--name=Noor"}, "noor@harbor.example can sign in and is member of Harbor.\n"},
	} {
		out := m.user(c.args[0], c.args[1], c.args[2], c.args[3:]...)
		if got := lastLine(out) + "\n"; got != c.want {
			t.Errorf("%v: %q", c.args, out)
		}
		if made := strings.HasPrefix(out, "Made the organization "); made != (strings.Count(out, "\n") == 2) {
			t.Errorf("%v: %q", c.args, out)
		}
	}
	if out := m.must("", "user", "create", "--email=amira@harbor.example", "--org=Harbor", "--role=owner"); !strings.Contains(out, "is now owner of Harbor") {
		t.Errorf("a known address without a password: %q", out)
	}
}

func TestUserCreateRefusesInTheWordsOfItsFlags(t *testing.T) {
	m := newMachine(t)
	for _, c := range []struct {
		stdin string
		args  []string
		want  string
	}{
		{"", []string{"--email=a@b.example", "--org=Harbor", "--role=owner"}, "pass --password-stdin"},
		{"", []string{"--email=a@b.example", "--org=Harbor", "--role=owner", "--password-stdin"}, "standard input: it is empty"},
		{"\n", []string{"--email=a@b.example", "--org=Harbor", "--role=owner", "--password-stdin"}, "standard input: it is empty"},
		{"short\n", []string{"--email=a@b.example", "--org=Harbor", "--role=owner", "--password-stdin"}, "the password needs at least 12 characters"},
		{"correct horse battery\n", []string{"--email=a", "--org=Harbor", "--role=owner", "--password-stdin"}, "--email is not an email address"},
		{"correct horse battery\n", []string{"--email=a@b.example", "--org= ", "--role=owner", "--password-stdin"}, "--org is missing"},
		{"correct horse battery\n", []string{"--email=a@b.example", "--org=Harbor", "--role=king", "--password-stdin"}, "--role"},
		{"correct horse battery\n", []string{"--email=a@b.example", "--org=Harbor", "--role=owner", "--password-stdin", "--language=fr"}, "--language must be en or ar"},
		{"correct horse battery\n", []string{"--email=a@b.example", "--org=Harbor", "--role=owner", "--password-stdin", "--country=Egypt"}, "--country is not a country code"},
		{"correct horse battery\n", []string{"--email=a@b.example", "--org=Harbor", "--role=owner", "--password-stdin", "--timezone=Cairo"}, "--timezone is not a time zone"},
		{"", []string{"--org=Harbor", "--role=owner"}, "--email"},
	} {
		if _, err := m.run(c.stdin, append([]string{"user", "create"}, c.args...)...); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: %v", c.args, err)
		}
	}
}

func TestKeyCreatePrintsTheKeyAloneOnTheLastLine(t *testing.T) {
	m := newMachine(t)
	m.user("amira@harbor.example", "Harbor", "owner")
	m.user("noor@harbor.example", "Harbor", "member")
	for _, c := range []struct {
		args []string
		want string // in what is printed above the key
	}{
		{[]string{"--scopes=org:read"}, `acts as amira@harbor.example (owner) in Harbor and never ends by itself`},
		{[]string{"--scopes=org:read contacts:read", "--as=Noor@harbor.example", "--expires=90d"}, `acts as noor@harbor.example (member) in Harbor and ends 2`},
		{[]string{"--scopes=org:read", "--expires=never"}, `never ends by itself`},
	} {
		out := m.must("", append([]string{"key", "create", "--org=harbor", "--name=CI"}, c.args...)...)
		key := lastLine(out)
		if !strings.HasPrefix(key, "sb_live_") || len(key) != len("sb_live_")+43 || !strings.HasSuffix(out, "\n"+key+"\n") || strings.Count(out, key) != 1 || !strings.Contains(out, c.want) {
			t.Errorf("%v: %q", c.args, out)
		}
	}
}

func TestUserPasswordSetsOne(t *testing.T) {
	m := newMachine(t)
	m.user("amira@harbor.example", "Harbor", "owner")
	if out := m.must("another horse battery\n", "user", "password", "--email=amira@harbor.example", "--password-stdin"); out != "amira@harbor.example has a new password and is signed out everywhere.\n" {
		t.Errorf("%q", out)
	}
	for args, want := range map[[2]string]string{
		{"--email=nobody@harbor.example", "long enough a password"}: `nobody has the address "nobody@harbor.example"`,
		{"--email=amira@harbor.example", "short"}:                   "the password needs at least 12 characters",
		{"--email=amira@harbor.example", ""}:                        "it is empty",
	} {
		if _, err := m.run(args[1]+"\n", "user", "password", args[0], "--password-stdin"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v", args, err)
		}
	}
}

func TestKeyCreateRefusesWhatTheKeyCouldNotDo(t *testing.T) {
	m := newMachine(t)
	m.user("amira@harbor.example", "Harbor", "owner")
	m.user("noor@harbor.example", "Harbor", "viewer")
	m.user("dana@quay.example", "Quay", "viewer")
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"--org=Nowhere", "--scopes=org:read"}, `there is no organization "Nowhere"`},
		{[]string{"--org=Quay", "--scopes=org:read"}, "Quay has no owner yet"},
		{[]string{"--org=Harbor", "--scopes=org:read", "--as=nobody@harbor.example"}, `nobody has the address "nobody@harbor.example"`},
		{[]string{"--org=Harbor", "--scopes=org:read", "--as=dana@quay.example"}, "dana@quay.example is not a member of Harbor"},
		{[]string{"--org=Harbor", "--scopes=everything"}, "No tool needs the scope everything"},
		{[]string{"--org=Harbor", "--scopes=mail:read"}, "No tool needs the scope mail:read"},
		{[]string{"--org=Harbor", "--scopes="}, "at least one scope"},
		{[]string{"--org=Harbor", "--scopes=org:read", "--expires=soon"}, "is not a time from now such as 90d"},
		{[]string{"--org=Harbor", "--scopes=org:read", "--expires=-1d"}, "90d"},
		{[]string{"--org=Harbor", "--scopes=org:read", "--expires=3650d1h"}, "at most ten years"},
	} {
		if out, err := m.run("", append([]string{"key", "create", "--name=CI"}, c.args...)...); err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(out, "sb_live_") {
			t.Errorf("%v: %q %v", c.args, out, err)
		}
	}
}
