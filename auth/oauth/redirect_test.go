package oauth

import (
	"encoding/json"
	"errors"
	"net/url"
	"slices"
	"strings"
	"testing"
)

var (
	claudeCode = []string{"http://localhost/callback", "http://127.0.0.1/callback"}
	cursor     = []string{"cursor://anysphere.cursor-mcp/oauth/callback", "https://www.cursor.com/agents/mcp/oauth/callback", "http://localhost:8787/callback"}
	vsCode     = []string{"https://insiders.vscode.dev/redirect", "https://vscode.dev/redirect", "http://127.0.0.1/", "http://127.0.0.1:33418/"}
	claude     = []string{"https://claude.ai/api/mcp/auth_callback", "https://claude.com/api/mcp/auth_callback"}
	chatGPT    = []string{"https://chatgpt.com/connector/oauth/abc", "https://chatgpt.com/connector_platform_oauth_redirect"}
	withQuery  = []string{"http://localhost/callback?app=1", "https://app.example/cb?x=1"}
)

func TestARedirectURIMatchesWhatWasRegisteredAndLoopbackPortsAreFree(t *testing.T) {
	for _, c := range []struct {
		registered []string
		requested  string
		want       bool
	}{
		{claudeCode, "http://localhost:51234/callback", true},
		{claudeCode, "http://127.0.0.1:51234/callback", true},
		{claudeCode, "http://localhost/callback", true},
		{vsCode, "http://127.0.0.1:59656/", true},
		{vsCode, "http://127.0.0.1:59656", true},
		{vsCode, "https://vscode.dev/redirect", true},
		{vsCode, "https://insiders.vscode.dev/redirect", true},
		{cursor, "cursor://anysphere.cursor-mcp/oauth/callback", true},
		{cursor, "https://www.cursor.com/agents/mcp/oauth/callback", true},
		{cursor, "http://localhost:8787/callback", true},
		{cursor, "http://localhost:1/callback", true},
		{claude, "https://claude.ai/api/mcp/auth_callback", true},
		{chatGPT, "https://chatgpt.com/connector/oauth/abc", true},
		{withQuery, "http://localhost:9/callback?app=1", true},
		{withQuery, "https://app.example/cb?x=1", true},
		{[]string{"http://[::1]/cb"}, "http://[::1]:7/cb", true},

		{claudeCode, "", false},
		{claudeCode, "http://localhost:51234/other", false},
		{claudeCode, "http://localhost:51234/callback/", false},
		{claudeCode, "http://localhost:51234/callback?x=1", false},
		{claudeCode, "http://localhost:51234/Callback", false},
		{claudeCode, "http://localhost:51234/call%62ack", false},
		{claudeCode, "http://localhost:51234/x/../callback", false},
		{claudeCode, "http://localhost:51234/callback#", false},
		{claudeCode, "http://localhost:51234/callback#f", false},
		{claudeCode, "http://localhost.evil.example:1/callback", false},
		{claudeCode, "http://127.0.0.1.evil.example/callback", false},
		{claudeCode, "http://localhost@evil.example/callback", false},
		{claudeCode, "http://evil.example@localhost:1/callback", false},
		{claudeCode, `http://localhost\@evil.example/callback`, false},
		{claudeCode, `http://evil.example\@localhost/callback`, false},
		{claudeCode, "http://localhost%2eevil.example/callback", false},
		{claudeCode, "http://localhost%00.evil.example/callback", false},
		{claudeCode, "http://localhost:80:80/callback", false},
		{claudeCode, "http://localhost:x/callback", false},
		{claudeCode, "http://localhost./callback", false},
		{claudeCode, "http://[::1]:1/callback", false},
		{claudeCode, "https://localhost:1/callback", false},
		{claudeCode, "http://LOCALHOST:1/callback", false},
		{claudeCode, "http://127.1:1/callback", false},
		{claudeCode, "http://2130706433/callback", false},
		{claudeCode, "http://127.0.0.2:1/callback", false},
		{claudeCode, "http://[::ffff:127.0.0.1]:1/callback", false},
		{claudeCode, "//localhost/callback", false},
		{claudeCode, "http:localhost/callback", false},
		{claudeCode, " http://localhost/callback", false},
		{claudeCode, "http://localhost/callback\n", false},
		{[]string{"http://127.0.0.1/cb"}, "http://localhost/cb", false},
		{[]string{"http://localhost/cb"}, "http://127.0.0.1/cb", false},
		{[]string{"http://127.0.0.1/cb"}, "http://[::1]/cb", false},
		{vsCode, "https://vscode.dev:8443/redirect", false},
		{vsCode, "https://vscode.dev:443/redirect", false},
		{vsCode, "https://vscode.dev/%72edirect", false},
		{vsCode, "https://vscode.dev%2Fredirect", false},
		{vsCode, "https://vscode.dev/./redirect", false},
		{vsCode, "https://vscode.dev/x/../redirect", false},
		{vsCode, "https://vscode.dev/x/%2e%2e/redirect", false},
		{vsCode, "https://vscode.dev//redirect", false},
		{vsCode, "https://vscode.dev/redirect;x", false},
		{vsCode, "https://vscode.dev/redirect?", false},
		{vsCode, "https://vscode.dev/redirect?next=https://evil.example", false},
		{vsCode, "https://vscode.dev/redirect&next=https://evil.example", false},
		{vsCode, "https://vscode.dev/redirect#", false},
		{vsCode, "https://vscode.dev@evil.example/redirect", false},
		{vsCode, "https://evil.example@vscode.dev/redirect", false},
		{vsCode, "https://vscode.dev:@evil.example/redirect", false},
		{vsCode, "https://vscode.dev./redirect", false},
		{vsCode, "https://vscode\u3002dev/redirect", false},
		{vsCode, "https://v\u0455code.dev/redirect", false},
		{vsCode, "https://xn--vcode-n2e.dev/redirect", false},
		{vsCode, "https://vscode.dev\u2044redirect", false},
		{vsCode, "https:vscode.dev/redirect", false},
		{vsCode, "https:/vscode.dev/redirect", false},
		{vsCode, `https:\\vscode.dev\redirect`, false},
		{vsCode, "HTTPS://vscode.dev/redirect", false},
		{vsCode, "http://vscode.dev/redirect", false},
		{vsCode, "https://vscode.dev/redirect/", false},
		{vsCode, "https://vscode.dev", false},
		{vsCode, "https://VSCODE.dev/redirect", false},
		{vsCode, "https://vscode.dev.evil.example/redirect", false},
		{cursor, "cursor://anysphere.cursor-mcp/oauth/callback/", false},
		{cursor, "cursor://evil/oauth/callback", false},
		{cursor, "CURSOR://anysphere.cursor-mcp/oauth/callback", false},
	} {
		if got := matchesAny(c.registered, c.requested); got != c.want {
			t.Errorf("%q matches %v: %v", c.requested, c.registered, got)
		}
	}
}

func TestACodeGoesWhereItWasAskedForAndTheExchangeSaysTheSame(t *testing.T) {
	w := newWorld(t)
	public := func(uris []string) string {
		listed, _ := json.Marshal(uris)
		_, got := w.register(`{"token_endpoint_auth_method":"none","redirect_uris":` + string(listed) + `}`)
		return got["client_id"].(string)
	}
	terminal, editor := public(claudeCode), public(vsCode)
	number, name := public(claudeCode[1:]), public(claudeCode[:1])
	for _, c := range []struct{ client, uri, other string }{
		{terminal, "http://localhost:51234/callback", "http://localhost/callback"},
		{terminal, "http://127.0.0.1:51234/callback", "http://localhost:51234/callback"},
		{editor, "http://127.0.0.1:59656/", "http://127.0.0.1:59656"},
		{editor, "http://127.0.0.1:59656", "http://127.0.0.1:59656/"},
		{editor, "http://127.0.0.1:33418/", "http://127.0.0.1/"},
		{editor, "https://vscode.dev/redirect", "https://insiders.vscode.dev/redirect"},
	} {
		location, err := w.server.Decide(t.Context(), w.mustBegin(query(c.client, "redirect_uri", c.uri)), browser, w.yes("contacts:read"))
		if err != nil || !strings.HasPrefix(location, c.uri+"?") {
			t.Errorf("%s: sent to %s, %v", c.uri, location, err)
			continue
		}
		code := answerIn(t, location).Get("code")
		if got := w.exchange(code, "client_id", c.client, "redirect_uri", c.other); got != refusal(400, "invalid_grant") {
			t.Errorf("%s, exchanged for %s: %+v", c.uri, c.other, got)
		}
		if got := w.exchange(code, "client_id", c.client, "redirect_uri", c.uri); got.Status != 200 {
			t.Errorf("%s: %+v", c.uri, got)
		}
	}
	for _, c := range []struct{ client, uri string }{
		{terminal, "http://localhost:51234/other"},
		{terminal, "http://localhost.evil.example:1/callback"},
		{terminal, "http://127.0.0.1.evil.example/callback"},
		{terminal, "http://localhost@evil.example/callback"},
		{terminal, "http://[::1]:1/callback"},
		{terminal, "https://localhost:1/callback"},
		{editor, "https://vscode.dev:8443/redirect"},
		{number, "http://localhost:51234/callback"},
		{name, "http://127.0.0.1:51234/callback"},
	} {
		_, err := w.begin(query(c.client, "redirect_uri", c.uri))
		var page *PageError
		if !errors.As(err, &page) || page.Status != 400 || page.Reason != "bad_redirect" {
			t.Errorf("%s: %v", c.uri, err)
		}
	}
}

func TestAnAnswerIsAddedToTheRedirectURIAsItWasRegistered(t *testing.T) {
	for _, c := range []struct{ uri, want string }{
		{"https://app.example/cb", "https://app.example/cb?code=a%2Bb"},
		{"https://app.example/cb?x=1", "https://app.example/cb?x=1&code=a%2Bb"},
		{"https://app.example/c%2Fb?x=%20", "https://app.example/c%2Fb?x=%20&code=a%2Bb"},
		{"cursor://anysphere.cursor-mcp/oauth/callback", "cursor://anysphere.cursor-mcp/oauth/callback?code=a%2Bb"},
		{"http://127.0.0.1:5", "http://127.0.0.1:5?code=a%2Bb"},
	} {
		if got := location(c.uri, url.Values{"code": {"a+b"}}); got != c.want {
			t.Errorf("%s became %s, want %s", c.uri, got, c.want)
		}
	}
}

// FuzzARedirectNeverLeavesTheRegisteredHosts holds for every string: what matches either is registered as it
// stands, or leads to a host, scheme and path that are registered, read by a parser that knows what browsers know.
func FuzzARedirectNeverLeavesTheRegisteredHosts(f *testing.F) {
	registered := slices.Concat(claudeCode, cursor, vsCode, withQuery, []string{"http://[::1]/cb"})
	for _, uri := range registered {
		f.Add(uri)
	}
	for _, uri := range []string{"http://localhost:1/callback", `http://localhost\@evil.example/callback`, "http://localhost@evil/callback", "http://127.0.0.1:/", "http://[::1%25x]/cb", "http://localhost:80@evil/callback", "httP://127.0.0.1"} {
		f.Add(uri)
	}
	f.Fuzz(func(t *testing.T, requested string) {
		if !matchesAny(registered, requested) || slices.Contains(registered, requested) {
			return
		}
		scheme, rest, _ := strings.Cut(requested, "://")
		if !strings.EqualFold(scheme, "http") {
			t.Fatalf("%q matched and is not http", requested)
		}
		authority := rest
		for i, c := range rest {
			if c == '/' || c == '?' || c == '#' || c == '\\' { // where a browser ends the authority
				authority = rest[:i]
				break
			}
		}
		host, ok := "", false
		for _, name := range []string{"localhost", "127.0.0.1", "[::1]"} {
			if after, found := strings.CutPrefix(authority, name); found && (after == "" || after[0] == ':' && digits(after[1:])) {
				host, ok = name, true
			}
		}
		if !ok {
			t.Fatalf("%q matched and a browser would go to %q", requested, authority)
		}
		if !slices.ContainsFunc(registered, func(r string) bool { _, found := strings.CutPrefix(r, "http://"+host); return found }) {
			t.Fatalf("%q matched and %s is not registered", requested, host)
		}
	})
}

func digits(s string) bool {
	for _, c := range s {
		if c < '0' || c > '9' {
			return false
		}
	}
	return true
}
