package doctor

import (
	"fmt"
	"slices"
	"strings"
)

// From is where a client's requests come from. It decides what can stop them.
type From int

const (
	Machine  From = iota // a program beside the person
	Internet             // servers of the vendor
	Browser              // a page: CORS applies
)

// Client is how one client connects, as far as a server can tell.
type Client struct {
	ID, Name string
	From     From
	Revision string // of the protocol that it opens with; it decides the shape of the first request

	// Document is the client's metadata document, which is its client_id where the server takes one. A client
	// without one, and any client at a server that takes none, registers.
	Document string
	Redirect string         // where it wants the answer
	Register map[string]any // its registration but for the name; nil registers Redirect alone

	Page   string // origin of the page that it is, when it is From a Browser
	Rooted bool   // it looks for the metadata at the root of the host alone, as revision 2025-03-26 had it
	Key    bool   // it sends an API key and signs nobody in
}

// Revisions that the clients open with.
const (
	modern   = "2026-07-28" // opens with server/discover
	november = "2025-11-25"
	june     = "2025-06-18"
	first    = "2025-03-26"
)

// Clients are those whose way in differs: vendors that publish documents, those that register and in which shape, pages,
// the newest and the oldest revision, and a script. What connects as one of them does is not here once more.
func Clients() []Client {
	return []Client{
		{
			ID: "claude", Name: "Claude", From: Internet, Revision: november,
			Document: "https://claude.ai/oauth/mcp-oauth-client-metadata", Redirect: "https://claude.ai/api/mcp/auth_callback",
		},
		{
			ID: "claude-code", Name: "Claude Code", Revision: november,
			Document: "https://claude.ai/oauth/claude-code-client-metadata", Redirect: "http://localhost:51763/callback",
		},
		{
			// Its document has an id in its address that is made for each connector, so nobody else can name one.
			// Codex stands in for the fetch: its document is at the same host.
			ID: "chatgpt", Name: "ChatGPT", From: Internet, Revision: november,
			Redirect: "https://chatgpt.com/connector/oauth/switchboard-doctor",
		},
		{
			ID: "codex", Name: "Codex", Revision: june,
			Document: "https://chatgpt.com/oauth/codex/client.json", Redirect: "http://127.0.0.1:51763/callback",
		},
		{
			// All three or none: a server that refuses the private scheme refuses Cursor.
			ID: "cursor", Name: "Cursor", Revision: november, Redirect: "cursor://anysphere.cursor-mcp/oauth/callback",
			Register: map[string]any{
				"application_type": "web",
				"redirect_uris": []string{
					"cursor://anysphere.cursor-mcp/oauth/callback", "https://www.cursor.com/agents/mcp/oauth/callback", "http://localhost:8787/callback",
				},
			},
		},
		{
			// It registers one port and listens on another when that one is taken (RFC 8252 §7.3).
			ID: "vscode", Name: "VS Code", Revision: november, Redirect: "http://127.0.0.1:59656/",
			Register: map[string]any{
				"application_type": "native",
				"redirect_uris": []string{
					"https://insiders.vscode.dev/redirect", "https://vscode.dev/redirect", "http://127.0.0.1/", "http://127.0.0.1:33418/",
				},
			},
		},
		{
			ID: "inspector", Name: "MCP Inspector", From: Browser, Revision: modern, Page: "http://localhost:6274",
			Redirect: "http://localhost:6274/oauth/callback",
		},
		{ID: "mcp-remote", Name: "mcp-remote", Revision: june, Redirect: "http://localhost:51763/oauth/callback"},
		{ID: "sdk", Name: "Client of 2026-07-28", Revision: modern, Redirect: "http://127.0.0.1:51763/callback"},
		{ID: "2025-03-26", Name: "Client of 2025-03-26", Revision: first, Redirect: "http://localhost:51763/callback", Rooted: true},
		{ID: "key", Name: "CI with an API key", Revision: june, Key: true},
	}
}

// Named are the clients with these ids or names.
func Named(names []string) ([]Client, error) {
	all := Clients()
	if len(names) == 0 {
		return all, nil
	}
	var picked []Client
	for _, name := range names {
		i := slices.IndexFunc(all, func(c Client) bool { return strings.EqualFold(c.ID, name) || strings.EqualFold(c.Name, name) })
		if i < 0 {
			var ids []string
			for _, c := range all {
				ids = append(ids, c.ID)
			}
			return nil, fmt.Errorf("there is no client %q: use one of %s", name, strings.Join(ids, ", "))
		}
		picked = append(picked, all[i])
	}
	return picked, nil
}

// registration is the body of the client's registration (RFC 7591 §2). The name lets whoever reads the server's
// clients know where it is from.
func (c Client) registration() map[string]any {
	body := map[string]any{
		"redirect_uris": []string{c.Redirect}, "token_endpoint_auth_method": "none",
		"grant_types": []string{"authorization_code", "refresh_token"}, "response_types": []string{"code"},
	}
	for member, value := range c.Register {
		body[member] = value
	}
	body["client_name"] = "Switchboard doctor (" + c.Name + ")"
	return body
}

// opening is the client's first message and the headers that go with it.
func (c Client) opening() (message any, headers map[string]string) {
	info := map[string]string{"name": "switchboard-doctor", "version": "1"}
	if c.Revision == modern {
		return map[string]any{
				"jsonrpc": "2.0", "id": 1, "method": "server/discover",
				"params": map[string]any{"_meta": map[string]any{
					"io.modelcontextprotocol/protocolVersion":    modern,
					"io.modelcontextprotocol/clientCapabilities": map[string]any{},
					"io.modelcontextprotocol/clientInfo":         info,
				}},
			}, map[string]string{
				"Mcp-Protocol-Version": modern, "Mcp-Method": "server/discover",
			}
	}
	return map[string]any{
		"jsonrpc": "2.0", "id": 1, "method": "initialize",
		"params": map[string]any{"protocolVersion": c.Revision, "capabilities": map[string]any{}, "clientInfo": info},
	}, nil
}
