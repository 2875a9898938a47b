//go:build e2e

package e2e

import (
	"net/http"
	"strings"
	"testing"
)

// A toolset is an endpoint with metadata and tokens of its own.
func TestAToolsetIsAResourceOfItsOwn(t *testing.T) {
	onBoth(t, func(t *testing.T, s *server) {
		s.user(t, owner, orgName, "owner")
		p := newScript(t, s, owner)
		client := s.register(t, "Toolsets", redirect)
		voice := s.url + "/mcp/voice"
		list := `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`
		ask := func(path, token string) answer {
			headers := append([]string{"Authorization", "Bearer " + token}, asJSON...)
			return s.request(t, http.MethodPost, path, list, headers...)
		}

		metadata := s.request(t, "GET", "/.well-known/oauth-protected-resource/mcp/voice", "").json(t)
		if metadata["resource"] != voice || metadata["authorization_servers"].([]any)[0] != s.url || metadata["resource_name"] != "Switchboard voice" {
			t.Errorf("metadata %v", metadata)
		}
		for _, path := range []string{"/mcp/voice", "/mcp/voice/"} {
			a := s.request(t, http.MethodPost, path, list, asJSON...)
			if challenge := a.header.Get("WWW-Authenticate"); a.status != 401 || !strings.Contains(challenge, `resource_metadata="`+s.url+`/.well-known/oauth-protected-resource/mcp/voice"`) {
				t.Errorf("%s without a token: %d %q", path, a.status, challenge)
			}
		}
		for _, path := range []string{"/mcp/testing", "/mcp/mail", "/mcp/apps", "/mcp/VOICE", "/mcp/voice/x", "/mcp/voice2"} {
			if a := ask(path, "x"); a.status != 404 || a.header.Get("Content-Type") != "application/json" {
				t.Errorf("%s: %d %s", path, a.status, a.body)
			}
		}

		whole := p.connect(client, "org:read contacts:read")
		part := p.follow(s.attemptFor(voice, client, redirect, "org:read"))
		for _, c := range []struct {
			path, token string
			status      int
		}{
			{"/mcp", whole.access, 200}, {"/mcp/voice", whole.access, 200}, {"/mcp/voice/", whole.access, 200},
			{"/mcp/voice", part.access, 200}, {"/mcp/", part.access, 401}, {"/mcp", part.access, 401},
		} {
			if a := ask(c.path, c.token); a.status != c.status || a.status == 200 && !strings.Contains(a.body, `"list_contacts"`) {
				t.Errorf("%s: %d %s", c.path, a.status, a.body)
			}
		}
		contacts := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"list_contacts"}}`
		a := s.request(t, http.MethodPost, "/mcp/voice", contacts, append([]string{"Authorization", "Bearer " + part.access}, asJSON...)...)
		if challenge := a.header.Get("WWW-Authenticate"); a.status != 403 || !strings.Contains(challenge, `scope="contacts:read org:read"`) || !strings.Contains(challenge, "/mcp/voice") {
			t.Errorf("a step-up: %d %q", a.status, challenge)
		}
		key := s.key(t, orgName, "org:read contacts:read")
		for _, path := range []string{"/mcp", "/mcp/voice"} {
			if a := ask(path, key); a.status != 200 {
				t.Errorf("a key at %s: %d %s", path, a.status, a.body)
			}
		}
	})
}
