//go:build e2e || interop || conformance

package e2e

import (
	"context"
	"database/sql"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib"

	"switchboard/internal/store"
	"switchboard/internal/trial"
)

const binary = "../../bin/switchboard"

// The people of every test.
const (
	password = "a sentence that I remember"
	owner    = "amira@harborstreet.example"
	orgName  = "Harbor Street Clinic"
)

// server is a running binary in a folder of its own.
type server struct {
	program string
	url     string
	dir     string
	env     []string
	cmd     *exec.Cmd
	logs    *trial.Journal
	exited  chan struct{}
}

// onBoth runs a test on both databases.
func onBoth(t *testing.T, test func(t *testing.T, s *server), env ...string) {
	for _, dialect := range []string{"sqlite", "postgres"} {
		t.Run(dialect, func(t *testing.T) { test(t, start(t, dialect, env...)) })
	}
}

// start runs a server on a fresh database.
func start(t *testing.T, dialect string, env ...string) *server {
	t.Helper()
	return startProgram(t, binary, dialect, env...)
}

// startProgram is start for another build of the server.
func startProgram(t *testing.T, program, dialect string, env ...string) *server {
	t.Helper()
	path, err := filepath.Abs(program)
	if err != nil {
		t.Fatal(err)
	}
	s := &server{program: path, dir: t.TempDir()}
	port := freePort(t)
	s.url = "http://localhost:" + port
	s.env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + s.dir, "SWITCHBOARD_ADDR=localhost:" + port}, env...)
	if dialect == "postgres" {
		s.env = append(s.env, "SWITCHBOARD_DATABASE="+postgresDatabase(t))
	}
	s.launch(t)
	t.Cleanup(func() { s.stop(t) })
	return s
}

// launch starts the binary and waits until it is ready.
func (s *server) launch(t *testing.T) {
	t.Helper()
	if s.logs == nil {
		s.logs = &trial.Journal{}
	}
	s.cmd = exec.Command(s.program)
	s.cmd.Dir, s.cmd.Env, s.cmd.Stdout, s.cmd.Stderr = s.dir, s.env, s.logs, s.logs
	if err := s.cmd.Start(); err != nil {
		t.Fatalf("starting %s: %v (run `make build` first)", s.program, err)
	}
	s.exited = make(chan struct{})
	go func() { _ = s.cmd.Wait(); close(s.exited) }()
	deadline := time.After(30 * time.Second)
	for {
		if resp, err := http.Get(s.url + "/readyz"); err == nil {
			resp.Body.Close()
			if resp.StatusCode == http.StatusOK {
				return
			}
		}
		select {
		case <-s.exited:
			t.Fatalf("the server stopped: %s", s.logs)
		case <-deadline:
			t.Fatalf("the server is not ready: %s", s.logs)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

func (s *server) stop(t *testing.T) {
	_ = s.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-s.exited:
	case <-time.After(20 * time.Second):
		t.Error("the server does not stop on SIGTERM")
		s.kill()
	}
}

func (s *server) kill() {
	_ = s.cmd.Process.Kill()
	<-s.exited
}

// command runs another command of the binary beside the server and returns what it printed.
func (s *server) command(t *testing.T, stdin string, args ...string) (string, error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), s.program, args...)
	cmd.Dir, cmd.Env, cmd.Stdin = s.dir, s.env, strings.NewReader(stdin)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func (s *server) user(t *testing.T, email, org, role string, more ...string) {
	t.Helper()
	args := append([]string{"user", "create", "--email", email, "--org", org, "--role", role, "--password-stdin"}, more...)
	if out, err := s.command(t, password+"\n", args...); err != nil {
		t.Fatalf("user create: %v: %s", err, out)
	}
}

// key makes an API key; it is alone on the last line.
func (s *server) key(t *testing.T, org, scopes string, more ...string) string {
	t.Helper()
	out, err := s.command(t, "", append([]string{"key", "create", "--org", org, "--name", "ci", "--scopes", scopes}, more...)...)
	if err != nil {
		t.Fatalf("key create: %v: %s", err, out)
	}
	lines := strings.Split(strings.TrimSpace(out), "\n")
	return lines[len(lines)-1]
}

// database opens the server's database beside it.
func (s *server) database(t *testing.T) *store.Store {
	t.Helper()
	at := filepath.Join(s.dir, "data", "switchboard.db")
	for _, v := range s.env {
		if dsn, ok := strings.CutPrefix(v, "SWITCHBOARD_DATABASE="); ok {
			at = dsn
		}
	}
	db, err := store.Open(t.Context(), store.Config{URL: at})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// postgresDatabase makes a database that is gone after the test.
func postgresDatabase(t *testing.T) string {
	t.Helper()
	at, err := url.Parse(os.Getenv("TEST_POSTGRES_URL"))
	if err != nil || at.Scheme == "" {
		t.Fatal("TEST_POSTGRES_URL is not set: run `make e2e`")
	}
	db, err := sql.Open("pgx", at.String())
	if err != nil {
		t.Fatal(err)
	}
	name := store.NewID("e2e")
	if _, err := db.ExecContext(t.Context(), "CREATE DATABASE "+name); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_, _ = db.ExecContext(context.Background(), fmt.Sprintf("DROP DATABASE %s WITH (FORCE)", name))
		_ = db.Close()
	})
	at.Path = "/" + name
	return at.String()
}

func freePort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	return port
}

func readFile(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
