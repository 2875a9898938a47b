//go:build interop

package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/auth"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/modelcontextprotocol/go-sdk/oauthex"
	"golang.org/x/oauth2"
)

func asJSONText(v any) string {
	b, _ := json.Marshal(v)
	return string(b)
}

// tryGoSDK connects the Go SDK's client.
func tryGoSDK(b *bench) {
	config := &auth.AuthorizationCodeHandlerConfig{
		RedirectURL: redirect,
		AuthorizationCodeFetcher: func(_ context.Context, args *auth.AuthorizationArgs) (*auth.AuthorizationResult, error) {
			q, err := b.backFrom(args.URL)
			return &auth.AuthorizationResult{Code: q.Get("code"), State: q.Get("state"), Iss: q.Get("iss")}, err
		},
	}
	if b.cimd != "" {
		config.ClientIDMetadataDocumentConfig = &auth.ClientIDMetadataDocumentConfig{URL: b.cimd}
	} else {
		config.DynamicClientRegistrationConfig = &auth.DynamicClientRegistrationConfig{Metadata: &oauthex.ClientRegistrationMetadata{
			ClientName: "Go SDK", RedirectURIs: []string{redirect}, GrantTypes: []string{"authorization_code", "refresh_token"},
		}}
	}
	handler, err := auth.NewAuthorizationCodeHandler(config)
	if err != nil {
		b.t.Fatal(err)
	}
	var session *sdk.ClientSession
	b.must("connecting", func() error {
		client := sdk.NewClient(&sdk.Implementation{Name: "interop", Version: "1"}, nil)
		session, err = client.Connect(b.t.Context(), &sdk.StreamableClientTransport{Endpoint: b.s.url + "/mcp", OAuthHandler: handler, DisableStandaloneSSE: true}, nil)
		return err
	})
	b.t.Cleanup(func() { _ = session.Close() })
	b.signedIn()
	call := func(tool string, arguments map[string]any) error { return callTool(b, session, tool, arguments) }
	b.exercise(call)
	b.asksAgainOnceRevoked("has no revocation call", call)
}

// callTool calls a tool; one that refuses is an error too.
func callTool(b *bench, session *sdk.ClientSession, tool string, arguments map[string]any) error {
	result, err := session.CallTool(b.t.Context(), &sdk.CallToolParams{Name: tool, Arguments: arguments})
	if err == nil && result.IsError {
		err = fmt.Errorf("%s is refused: %v", tool, result.Content)
	}
	return err
}

// backFrom has the person go to an authorization URL and reads what they bring back.
func (b *bench) backFrom(rawURL string) (url.Values, error) {
	location, err := b.open(rawURL)
	if err != nil {
		return nil, err
	}
	u, err := url.Parse(location)
	if err != nil {
		return nil, err
	}
	return u.Query(), nil
}

// tryOAuth2 uses x/oauth2, which most Go programs that sign in anywhere are made with. What it does not do is done
// here by hand, as such a program would.
func tryOAuth2(b *bench) {
	b.no("discover", "has no discovery")
	b.no("register", "has no registration")
	config := &oauth2.Config{
		ClientID: b.s.register(b.t, "x/oauth2", redirect), RedirectURL: redirect, Scopes: []string{"contacts:read"},
		Endpoint: oauth2.Endpoint{AuthURL: b.s.url + "/oauth/authorize", TokenURL: b.s.url + "/oauth/token", AuthStyle: oauth2.AuthStyleInParams},
	}
	var client *http.Client
	b.must("signing in", func() (err error) { client, err = b.oauth2Client(config); return err })
	b.yes("sign in")
	if status, header, err := b.post(client, listContacts, map[string]any{}); err != nil || status != http.StatusOK {
		b.t.Fatalf("a call: %d %s %v", status, header, err)
	}
	b.yes("call")

	status, header, err := b.post(client, upsertContact, sara())
	challenge := regexp.MustCompile(`error="insufficient_scope", scope="([^"]*)"`).FindStringSubmatch(header)
	if err != nil || status != http.StatusForbidden || challenge == nil {
		b.t.Fatalf("a call without its permission: %d %s %v", status, header, err)
	}
	config.Scopes = strings.Fields(challenge[1])
	b.must("signing in anew", func() (err error) { client, err = b.oauth2Client(config); return err })
	if status, header, err := b.post(client, upsertContact, sara()); err != nil || status != http.StatusOK {
		b.t.Fatalf("after the second sign-in: %d %s %v", status, header, err)
	}
	b.no("step-up", "reads no challenges; a program that does signs in anew and gets on")

	before, asked := b.refreshes(), b.asked
	if status, header, err := b.post(client, listContacts, map[string]any{}); err != nil || status != http.StatusOK {
		b.t.Fatalf("a call after the token ended: %d %s %v", status, header, err)
	}
	if b.refreshes() == before || b.asked != asked {
		b.t.Fatalf("%d refreshes, and the person was asked %d times", b.refreshes()-before, b.asked-asked)
	}
	b.yes("refresh")

	b.revokeAll()
	_, _, err = b.post(client, listContacts, map[string]any{})
	var refused *oauth2.RetrieveError
	if !errors.As(err, &refused) || refused.ErrorCode != "invalid_grant" {
		b.t.Fatalf("after the revocation: %v", err)
	}
	b.no("revoke", "has no revocation call; once an administrator revoked, its next refresh ends in invalid_grant")
}

// oauth2Client signs in and returns an HTTP client that carries the token and refreshes it.
func (b *bench) oauth2Client(config *oauth2.Config) (*http.Client, error) {
	verifier, state := oauth2.GenerateVerifier(), oauth2.GenerateVerifier()
	resource := oauth2.SetAuthURLParam("resource", b.s.url+"/mcp")
	q, err := b.backFrom(config.AuthCodeURL(state, oauth2.S256ChallengeOption(verifier), resource))
	if err != nil {
		return nil, err
	}
	if q.Get("state") != state || q.Get("iss") != b.s.url {
		return nil, fmt.Errorf("back came %v", q)
	}
	token, err := config.Exchange(b.t.Context(), q.Get("code"), oauth2.VerifierOption(verifier), resource)
	if err != nil {
		return nil, err
	}
	return config.Client(b.t.Context(), token), nil
}

// post calls a tool and returns the status and the challenge.
func (b *bench) post(client *http.Client, tool string, arguments map[string]any) (int, string, error) {
	body := asJSONText(map[string]any{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": map[string]any{"name": tool, "arguments": arguments}})
	req, err := http.NewRequestWithContext(b.t.Context(), http.MethodPost, b.s.url+"/mcp", strings.NewReader(body))
	if err != nil {
		return 0, "", err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	resp, err := client.Do(req)
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	_, err = io.Copy(io.Discard, resp.Body)
	return resp.StatusCode, resp.Header.Get("WWW-Authenticate"), err
}
