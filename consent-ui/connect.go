package consentui

import (
	"bytes"
	"encoding/json"
	"net/http"
	"regexp"
	"slices"
	"strings"

	"switchboard/internal/origin"
)

// connectPage tells how to connect one app, and leads to the others.
type connectPage struct {
	frame
	App     app
	Address string // to paste into it
	Cut     bool   // the app calls from the internet, and the address is none that it reaches
}

// app is one that people connect. What is said of it is in the catalogue; what is pasted is in the table below.
type app struct {
	ID   string // in the page's address
	Name string // as its maker spells it, in every language
	Kind string // what the page lists it under, one of appKinds
	Away bool   // it calls from its maker's servers, which reach public https addresses only
	Wide bool   // what to paste has lines too long for two columns
	Only string // the key of a sentence that says why there is one way only
	Ways []way
}

// way is how to connect an app.
type way struct {
	Kind  string // signIn, withKey or everyone
	Steps []step
}

const (
	signIn   = "signin"
	withKey  = "key"
	everyone = "everyone"
)

// step is one thing to do: a sentence, and what to paste for it.
type step struct {
	Say   string // its key
	Lang  syntax // of what to paste
	Paste string // has the word ADDRESS for the server's
}

// syntax is how the address is quoted where it is pasted.
type syntax struct {
	Name  string // as Markdown knows it
	quote func(string) string
}

var (
	inText       = syntax{"text", func(s string) string { return s }}
	inShell      = syntax{"sh", shellWord}
	inJSON       = syntax{"json", quoted}
	inShellJSON  = syntax{"sh", func(s string) string { return strings.ReplaceAll(quoted(s), `'`, `'\''`) }} // JSON between ' and '
	inTOML       = syntax{"toml", quoted}                                                                    // its basic strings escape as JSON's do
	inTypeScript = syntax{"ts", quoted}
)

// code is what to paste for a server at address.
func (s step) code(address string) string {
	if s.Paste == "" {
		return ""
	}
	return strings.ReplaceAll(s.Paste, "ADDRESS", s.Lang.quote(address))
}

var wordRule = regexp.MustCompile(`^[A-Za-z0-9_@%+=:,./-]+$`)

// shellWord is s as one word of a POSIX shell. An address such as http://[::1]:8080 would be a pattern otherwise.
func shellWord(s string) string {
	if wordRule.MatchString(s) {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// quoted is s as a string of JSON, without the escapes that are only for HTML.
func quoted(s string) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(s) // a string always encodes
	return strings.TrimSpace(b.String())
}

// stretch is a part of a message: words, code, or the label of a button or menu.
type stretch struct{ kind, text string }

var markRule = regexp.MustCompile("`([^`]+)`|\\*\\*([^*]+)\\*\\*")

// marks takes a message apart at its marks, which are Markdown's, so that docs/connect.md can have it as it is.
func marks(s string) []stretch {
	list, from := []stretch{}, 0
	for _, m := range markRule.FindAllStringSubmatchIndex(s, -1) {
		if m[0] > from {
			list = append(list, stretch{"", s[from:m[0]]})
		}
		if m[2] >= 0 {
			list = append(list, stretch{"code", s[m[2]:m[3]]})
		} else {
			list = append(list, stretch{"label", s[m[4]:m[5]]})
		}
		from = m[1]
	}
	if from < len(s) {
		list = append(list, stretch{"", s[from:]})
	}
	return list
}

func (u *UI) showConnect(w http.ResponseWriter, r *http.Request, v *visit) error {
	p := connectPage{App: pickApp(r.URL.Query().Get("app")), Address: u.resource()}
	p.frame = u.frame(r, v, v.words.T("connect.title"))
	p.Cut = p.App.Away && (origin.IsLoopback(u.Issuer.Hostname()) || u.Issuer.Scheme != "https")
	u.render(w, r, http.StatusOK, connectView(p))
	return nil
}

// pickApp is the app that was asked for, else the first.
func pickApp(id string) app {
	return apps[max(0, slices.IndexFunc(apps, func(a app) bool { return a.ID == id }))]
}

// appsOf are the apps of a kind.
func appsOf(kind string) []app {
	return slices.DeleteFunc(slices.Clone(apps), func(a app) bool { return a.Kind != kind })
}

// appKinds are the groups of apps, in the order of the page. connect.kind.* names them.
var appKinds = []string{"chat", "code", "tool"}

// The table. docs/connect.md and the list in README.md are made from it, so all three say the same.
var apps = []app{
	{ID: "claude", Name: "Claude", Kind: "chat", Away: true, Only: "connect.only.signin", Ways: []way{
		{signIn, []step{
			{Say: "connect.claude.open"}, {"connect.claude.add", inText, "ADDRESS"}, {Say: "connect.claude.connect"}, {Say: "connect.claude.devices"},
		}},
		{everyone, []step{
			{"connect.claude.owner", inText, "ADDRESS"}, {Say: "connect.claude.members"}, {Say: "connect.claude.each"},
		}},
	}},
	{ID: "chatgpt", Name: "ChatGPT", Kind: "chat", Away: true, Only: "connect.only.signin", Ways: []way{
		{signIn, []step{
			{Say: "connect.chatgpt.mode"}, {"connect.chatgpt.create", inText, "ADDRESS"}, {Say: "connect.allow"}, {Say: "connect.chatgpt.chat"},
		}},
	}},
	{ID: "claude-code", Name: "Claude Code", Kind: "code", Ways: []way{
		{signIn, []step{
			{"connect.run", inShell, "claude mcp add --transport http switchboard ADDRESS"},
			{Say: "connect.claude_code.authenticate"}, {Say: "connect.allow"}, {Say: "connect.claude_code.scope"},
		}},
		{withKey, []step{
			{Say: "connect.key.make"},
			{"connect.run", inShell, "claude mcp add --transport http switchboard ADDRESS \\\n  --header 'Authorization: Bearer ${SWITCHBOARD_KEY}'"},
			{Say: "connect.key.restart"},
		}},
	}},
	{ID: "cursor", Name: "Cursor", Kind: "code", Ways: []way{
		{signIn, []step{
			{"connect.cursor.file", inJSON, "{\n  \"mcpServers\": {\n    \"switchboard\": {\n      \"url\": ADDRESS\n    }\n  }\n}"},
			{Say: "connect.cursor.start"}, {Say: "connect.allow"},
		}},
		{withKey, []step{
			{Say: "connect.key.make"},
			{"connect.cursor.file", inJSON, "{\n  \"mcpServers\": {\n    \"switchboard\": {\n      \"url\": ADDRESS,\n      \"headers\": {\n        \"Authorization\": \"Bearer ${env:SWITCHBOARD_KEY}\"\n      }\n    }\n  }\n}"},
			{Say: "connect.key.restart"},
		}},
	}},
	{ID: "vscode", Name: "VS Code", Kind: "code", Ways: []way{
		{signIn, []step{
			{"connect.run", inShellJSON, `code --add-mcp '{"name":"switchboard","type":"http","url":ADDRESS}'`},
			{"connect.vscode.file", inJSON, "{\n  \"servers\": {\n    \"switchboard\": {\n      \"type\": \"http\",\n      \"url\": ADDRESS\n    }\n  }\n}"},
			{Say: "connect.vscode.start"}, {Say: "connect.allow"},
		}},
		{withKey, []step{
			{Say: "connect.key.make_for_prompt"},
			{"connect.vscode.key_file", inJSON, "{\n  \"inputs\": [\n    {\n      \"type\": \"promptString\",\n      \"id\": \"switchboard-key\",\n      \"description\": \"Switchboard API key\",\n      \"password\": true\n    }\n  ],\n" +
				"  \"servers\": {\n    \"switchboard\": {\n      \"type\": \"http\",\n      \"url\": ADDRESS,\n      \"headers\": {\n        \"Authorization\": \"Bearer ${input:switchboard-key}\"\n      }\n    }\n  }\n}"},
			{Say: "connect.vscode.prompt"},
		}},
	}},
	{ID: "codex", Name: "Codex", Kind: "code", Ways: []way{
		{signIn, []step{
			{"connect.run", inShell, "codex mcp add switchboard --url ADDRESS"},
			{"connect.codex.login", inShell, "codex mcp login switchboard"},
			{Say: "connect.allow"},
			{"connect.codex.file", inTOML, "[mcp_servers.switchboard]\nurl = ADDRESS"},
		}},
		{withKey, []step{
			{Say: "connect.key.make"},
			{"connect.run", inShell, "codex mcp add switchboard --url ADDRESS \\\n  --bearer-token-env-var SWITCHBOARD_KEY"},
			{"connect.codex.file", inTOML, "[mcp_servers.switchboard]\nurl = ADDRESS\nbearer_token_env_var = \"SWITCHBOARD_KEY\""},
			{Say: "connect.key.restart"},
		}},
	}},
	{ID: "gemini-cli", Name: "Gemini CLI", Kind: "code", Ways: []way{
		{signIn, []step{
			{"connect.run", inShell, "gemini mcp add --scope user --transport http switchboard ADDRESS"},
			{Say: "connect.gemini.auth"}, {Say: "connect.allow"},
		}},
		{withKey, []step{
			{Say: "connect.key.make"},
			{"connect.run", inShell, "gemini mcp add --scope user --transport http switchboard ADDRESS \\\n  --header 'Authorization: Bearer $SWITCHBOARD_KEY'"},
			{"connect.gemini.file", inJSON, "{\n  \"mcpServers\": {\n    \"switchboard\": {\n      \"httpUrl\": ADDRESS,\n      \"headers\": {\n        \"Authorization\": \"Bearer $SWITCHBOARD_KEY\"\n      }\n    }\n  }\n}"},
			{Say: "connect.key.restart"},
		}},
	}},
	{ID: "windsurf", Name: "Windsurf", Kind: "code", Ways: []way{
		{signIn, []step{
			{"connect.windsurf.file", inJSON, "{\n  \"mcpServers\": {\n    \"switchboard\": {\n      \"serverUrl\": ADDRESS\n    }\n  }\n}"},
			{Say: "connect.windsurf.refresh"}, {Say: "connect.allow"},
		}},
		{withKey, []step{
			{Say: "connect.key.make"},
			{"connect.windsurf.file", inJSON, "{\n  \"mcpServers\": {\n    \"switchboard\": {\n      \"serverUrl\": ADDRESS,\n      \"headers\": {\n        \"Authorization\": \"Bearer ${env:SWITCHBOARD_KEY}\"\n      }\n    }\n  }\n}"},
			{Say: "connect.key.restart"},
		}},
	}},
	{ID: "add-mcp", Name: "add-mcp", Kind: "tool", Ways: []way{
		{signIn, []step{
			{"connect.addmcp.run", inShell, "npx add-mcp ADDRESS --name switchboard"},
			{Say: "connect.addmcp.choose"}, {Say: "connect.addmcp.allow"},
		}},
		{withKey, []step{
			{Say: "connect.key.make"},
			{"connect.run", inShell, "npx add-mcp ADDRESS --name switchboard \\\n  --header \"Authorization: Bearer $SWITCHBOARD_KEY\""},
			{Say: "connect.addmcp.written"},
		}},
	}},
	{ID: "inspector", Name: "MCP Inspector", Kind: "tool", Ways: []way{
		{signIn, []step{
			{"connect.run", inShell, "npx @modelcontextprotocol/inspector \\\n  --transport http --server-url ADDRESS"},
			{Say: "connect.inspector.connect"}, {Say: "connect.allow"},
		}},
		{withKey, []step{
			{Say: "connect.key.make"},
			{"connect.inspector.list", inShell, "npx @modelcontextprotocol/inspector --cli ADDRESS \\\n  --transport http --method tools/list \\\n  --header \"Authorization: Bearer $SWITCHBOARD_KEY\""},
		}},
	}},
	{ID: "sdk", Name: "TypeScript SDK", Kind: "tool", Wide: true, Ways: []way{
		{signIn, []step{
			{"connect.sdk.install", inShell, "npm install @modelcontextprotocol/sdk"},
			{"connect.sdk.signin", inTypeScript, sdkSignIn}, {Say: "connect.sdk.provider"}, {Say: "connect.allow"},
		}},
		{withKey, []step{
			{"connect.sdk.install", inShell, "npm install @modelcontextprotocol/sdk"},
			{Say: "connect.key.make"}, {"connect.sdk.key", inTypeScript, sdkKey},
		}},
	}},
	{ID: "curl", Name: "curl", Kind: "tool", Only: "connect.only.key", Ways: []way{
		{withKey, []step{
			{Say: "connect.key.make"},
			{"connect.run", inShell, `curl -sS --fail-with-body ADDRESS \
  -H "Authorization: Bearer $SWITCHBOARD_KEY" \
  -H "Content-Type: application/json" -H "Accept: application/json, text/event-stream" \
  -d '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"get_started","arguments":{}}}'`},
			{Say: "connect.curl.answer"},
		}},
	}},
}

const sdkKey = `import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";

const transport = new StreamableHTTPClientTransport(new URL(ADDRESS), {
  requestInit: { headers: { Authorization: ` + "`Bearer ${process.env.SWITCHBOARD_KEY}`" + ` } },
});
const client = new Client({ name: "my-agent", version: "1.0.0" });
await client.connect(transport);
console.log(await client.callTool({ name: "get_started", arguments: {} }));
await client.close();`

const sdkSignIn = `import { UnauthorizedError } from "@modelcontextprotocol/sdk/client/auth.js";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { provider, nextCode } from "./sign-in.js"; // yours

const address = new URL(ADDRESS);
const open = () => new StreamableHTTPClientTransport(address, { authProvider: provider });
const client = new Client({ name: "my-agent", version: "1.0.0" });
const first = open();
try {
  await client.connect(first);
} catch (err) {
  if (!(err instanceof UnauthorizedError)) throw err;
  await first.finishAuth(await nextCode()); // the browser came back
  await client.connect(open());
}`
