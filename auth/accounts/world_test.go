package accounts

import (
	"context"
	"log/slog"
	"path/filepath"
	"testing"

	"switchboard/internal/audit"
	"switchboard/internal/caller"
	"switchboard/internal/scope"
	"switchboard/internal/seal"
	"switchboard/internal/store"
	"switchboard/internal/store/storetest"
)

const password = "correct horse battery"

// cheap makes hashing a password cost next to nothing.
var cheap = Hashing{MemoryKiB: 64, Iterations: 1}

type world struct {
	*Accounts
	t testing.TB
}

func newWorld(t testing.TB) *world {
	t.Helper()
	ring, err := seal.Load(filepath.Join(t.TempDir(), "keys"))
	if err != nil {
		t.Fatal(err)
	}
	s := storetest.Open(t)
	return &world{New(Config{Store: s, Secrets: ring, Audit: audit.New(s), Log: slog.New(slog.DiscardHandler), Hashing: cheap}), t}
}

// restarted is the same server after a restart: what it kept in memory is gone.
func (w *world) restarted() *world { return &world{New(w.Config), w.t} }

func (w *world) user(email, org string, role scope.Role) CreatedUser {
	w.t.Helper()
	made, err := w.CreateUser(w.t.Context(), NewUser{Email: email, Password: password, Organization: org, Role: role})
	if err != nil {
		w.t.Fatal(err)
	}
	return made
}

// in is a context in which somebody looks at an organization.
func (w *world) in(org Organization) context.Context {
	return caller.With(w.t.Context(), caller.Caller{Org: org.ID, Role: scope.Owner, Via: caller.Browser})
}

// recorded lists what the audit log of an organization says, the oldest first.
func (w *world) recorded(org Organization) []audit.Entry {
	w.t.Helper()
	entries, _, err := w.Audit.List(w.in(org), audit.Filter{Limit: 200})
	if err != nil {
		w.t.Fatal(err)
	}
	out := []audit.Entry{}
	for _, e := range entries {
		e.ID, e.At = "", store.Time{}
		out = append([]audit.Entry{e}, out...)
	}
	return out
}
