package mcp

import (
	"log/slog"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"switchboard/auth"
	"switchboard/internal/audit"
	"switchboard/internal/scope"
	"switchboard/internal/seal"
	"switchboard/internal/store"
	"switchboard/internal/store/storetest"
	"switchboard/tools/kit"
)

// realAuth is auth itself, over an organization with one member and their key.
func realAuth(t testing.TB, s *store.Store, tools kit.Registry, log *slog.Logger) (*auth.Auth, string) {
	t.Helper()
	ring, err := seal.Load(filepath.Join(t.TempDir(), "keys"))
	if err != nil {
		t.Fatal(err)
	}
	key, now := seal.NewToken(auth.KeyPrefix), store.Now()
	exec(t, s, `INSERT INTO organizations (id, name, home_country, timezone, locale, created_at) VALUES ('org_1', 'Acme', 'US', 'UTC', 'en', ?)`, now)
	exec(t, s, `INSERT INTO people (id, email, name, password_hash, created_at) VALUES ('per_1', 'ada@acme.example', 'Ada', 'none', ?)`, now)
	exec(t, s, `INSERT INTO memberships (org_id, person_id, role, created_at) VALUES ('org_1', 'per_1', 'member', ?)`, now)
	exec(t, s, `INSERT INTO api_keys (id, org_id, person_id, name, key_hash, hint, scope, created_at) VALUES ('key_1', 'org_1', 'per_1', 'CI', ?, '', 'org:read', ?)`, ring.Hash(key), now)
	return auth.New(auth.Config{
		Store: s, Secrets: ring, Audit: audit.New(s), Scopes: scope.NewCatalog(nil, nil, tools.Needed()), Log: log, Issuer: "https://switchboard.example",
	}), key
}

func exec(t testing.TB, s *store.Store, statement string, values ...any) {
	t.Helper()
	if _, err := s.Exec(t.Context(), statement, values...); err != nil {
		t.Fatal(err)
	}
}

func TestAKeyWorksOnEveryRevisionUntilItIsRevoked(t *testing.T) {
	t.Parallel()
	var key string
	var revoke func(at store.Time)
	w := newWorld(t, func(cfg *Config) {
		s := storetest.Open(t)
		cfg.Auth, key = realAuth(t, s, cfg.Tools, cfg.Log)
		revoke = func(at store.Time) { exec(t, s, `UPDATE api_keys SET revoked_at = ?`, at) }
	})
	for _, version := range revisions {
		post := func(method, name string) reply {
			params := `"arguments":{}`
			if version == modern {
				params += `,"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}`
			}
			if method != "tools/call" {
				params = strings.TrimPrefix(strings.TrimPrefix(params, `"arguments":{}`), ",")
			} else {
				params = `"name":"` + name + `",` + params
			}
			return w.post(t, key, `{"jsonrpc":"2.0","id":1,"method":"`+method+`","params":{`+params+`}}`,
				"MCP-Protocol-Version", version, "Mcp-Method", method, "Mcp-Name", name)
		}
		for _, try := range []struct {
			method, name string
			want         int
		}{{"tools/list", "", 200}, {"tools/call", "low", 200}, {"tools/call", "high", 403}} {
			if r := post(try.method, try.name); r.status != try.want || try.want == 200 && !strings.Contains(r.body, `"result"`) {
				t.Errorf("%s %s %s: %d %s", version, try.method, try.name, r.status, r.body)
			}
		}
		revoke(store.Now())
		for _, method := range []string{"tools/list", "tools/call"} {
			if r := post(method, "low"); r.status != http.StatusUnauthorized || !strings.Contains(r.header.Get("WWW-Authenticate"), `error="invalid_token"`) {
				t.Errorf("%s %s with a revoked key: %d %v", version, method, r.status, r.header)
			}
		}
		revoke(store.Time{})
	}
	if w.ran.Load() != 0 {
		t.Error("a tool outside the key's scopes ran")
	}
}
