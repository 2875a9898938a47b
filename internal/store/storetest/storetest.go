// Package storetest opens databases for tests: the same test runs on a fresh SQLite file by default and on a fresh
// Postgres schema when TEST_DATABASE is "postgres".
package storetest

import (
	"context"
	"database/sql"
	"net/url"
	"os"
	"path/filepath"
	"testing"

	"switchboard/internal/store"
	"switchboard/migrations"
)

// Open returns a migrated store that nobody else uses and that is gone after the test. On Postgres it is a schema of
// its own in the database that TEST_POSTGRES_URL names; without that the test fails, it never skips.
func Open(t testing.TB) *store.Store {
	t.Helper()
	s, err := store.Open(t.Context(), store.Config{URL: URL(t), MaxConnections: 8})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	if err := s.Migrate(t.Context(), migrations.FS); err != nil {
		t.Fatal(err)
	}
	return s
}

// URL is a database that is empty and gone after the test, for what opens its store itself.
func URL(t testing.TB) string {
	t.Helper()
	if os.Getenv("TEST_DATABASE") != "postgres" {
		return filepath.Join(t.TempDir(), "test.db")
	}
	server, err := url.Parse(os.Getenv("TEST_POSTGRES_URL"))
	if err != nil || server.Scheme == "" {
		t.Fatal("TEST_DATABASE is postgres and TEST_POSTGRES_URL is not a postgres:// URL")
	}
	db, err := sql.Open("pgx", server.String())
	if err != nil {
		t.Fatal(err)
	}
	schema := store.NewID("test")
	if _, err := db.ExecContext(t.Context(), "CREATE SCHEMA "+schema); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if _, err := db.ExecContext(context.Background(), "DROP SCHEMA "+schema+" CASCADE"); err != nil {
			t.Error(err)
		}
		_ = db.Close()
	})
	q := server.Query()
	q.Set("search_path", schema)
	server.RawQuery = q.Encode()
	return server.String()
}
