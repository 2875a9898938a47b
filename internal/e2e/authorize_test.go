//go:build e2e

package e2e

import (
	"cmp"
	"context"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
)

// under is a person whose browser finds the server under any name.
func under(t *testing.T, s *server, issuer string) *script {
	at := *s
	at.url = issuer
	p := newScript(t, &at, owner)
	p.client.Transport = &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, strings.TrimPrefix(s.url, "http://"))
	}}
	return p
}

// reword is the same attempt at another address, with changes of its parameters: pairs of name and value, "" takes one away.
func (a attempt) reword(t *testing.T, at string, changes ...string) attempt {
	t.Helper()
	_, query, _ := strings.Cut(a.url, "?")
	q, err := url.ParseQuery(query)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(changes); i += 2 {
		if q.Set(changes[i], changes[i+1]); changes[i+1] == "" {
			q.Del(changes[i])
		}
	}
	a.state, a.url = q.Get("state"), at+"?"+q.Encode()
	return a
}

func TestEveryRedirectToAClientNamesTheIssuerAndItsState(t *testing.T) {
	for name, c := range map[string]struct {
		issuer string // "" is the address that the server listens on
		env    []string
		bases  []string
	}{
		"on this machine":      {"", nil, []string{"http://127.0.0.1", "http://[::1]", "http://localhost"}},
		"under a further name": {"http://switch.example", []string{"SWITCHBOARD_URL=http://switch.example", "SWITCHBOARD_INSECURE=1", "SWITCHBOARD_HOSTS=alias.example"}, []string{"http://switch.example", "http://alias.example:8443", "http://127.0.0.1"}},
	} {
		t.Run(name, func(t *testing.T) {
			onBoth(t, func(t *testing.T, s *server) {
				s.user(t, owner, orgName, "owner")
				client := s.register(t, "Redirected", redirect)
				for _, base := range c.bases {
					redirectsNameTheIssuer(t, under(t, s, cmp.Or(c.issuer, s.url)), base, client)
				}
			}, append(c.env, "SWITCHBOARD_RATE_PER_MINUTE=0")...)
		})
	}
}

func redirectsNameTheIssuer(t *testing.T, p *script, base, client string) {
	issuer := p.s.url
	metadata := p.get(base + "/.well-known/oauth-authorization-server").json(t)
	resource := p.get(base + "/.well-known/oauth-protected-resource/mcp").json(t)
	if metadata["issuer"] != issuer || metadata["authorization_response_iss_parameter_supported"] != true || !slices.Equal(resource["authorization_servers"].([]any), []any{issuer}) {
		t.Fatalf("at %s: %v %v", base, metadata, resource)
	}
	for i, state := range []string{strings.Repeat("s", 32), strings.Repeat("S", 512), "a+b/=&é… %2B#?"} {
		at := base + []string{"/oauth/authorize", "/authorize", "/oauth/authorize"}[i]
		good := p.s.attempt(client, "org:read")
		for decision, want := range map[string]string{"approve": "code", "deny": "error"} {
			a := good.reword(t, at, "state", state)
			if q := p.decide(p.consent(a), a, decision, nil); !q.Has(want) { // decide looks at state and iss
				t.Errorf("%s at %s: %v", decision, at, q)
			}
		}
		for want, changes := range map[string][]string{
			"invalid_scope":             {"scope", "nothing:here"},
			"unsupported_response_type": {"response_type", "token"},
			"invalid_request":           {"code_challenge", ""},
			"invalid_target":            {"resource", "https://other.example/mcp"},
			"interaction_required":      {"prompt", "none"},
			"request_not_supported":     {"request", "e30.e30."},
		} {
			next := good.reword(t, at, append(changes, "state", state)...).url
			page := p.get(next)
			if to := page.header.Get("Location"); strings.HasPrefix(to, issuer+"/") && page.status == http.StatusTemporaryRedirect {
				page = p.get(to) // from another name of this machine to the canonical one
			}
			q := url.Values{}
			if to, err := url.Parse(page.header.Get("Location")); err == nil && strings.HasPrefix(to.String(), redirect+"?") {
				q = to.Query()
			}
			if q.Get("error") != want || q.Get("iss") != issuer || q.Get("state") != state || q.Has("code") {
				t.Errorf("%s: %d to %q, want %s", next, page.status, page.header.Get("Location"), want)
			}
		}
	}
}

func TestWhatIsAskedForIsWhatThePageOffersAndTheTokensSay(t *testing.T) {
	onBoth(t, func(t *testing.T, s *server) {
		s.user(t, owner, orgName, "owner")
		p := newScript(t, s, owner)
		client := s.register(t, "Asks for everything", redirect)
		scopes := func(path string) []string {
			out := []string{}
			for _, v := range s.request(t, "GET", path, "").json(t)["scopes_supported"].([]any) {
				out = append(out, v.(string))
			}
			return out
		}
		all, byDefault := scopes("/.well-known/oauth-authorization-server"), scopes("/.well-known/oauth-protected-resource/mcp")
		for _, d := range byDefault {
			if !slices.Contains(all, d) {
				t.Errorf("the resource supports %s, the server does not", d)
			}
		}
		for asked, want := range map[string][]string{
			"": byDefault, strings.Join(byDefault, " "): byDefault, strings.Join(byDefault, " ") + " offline_access": byDefault, "contacts:read": {"contacts:read"},
		} {
			if got := p.connect(client, asked); got.scope != strings.Join(want, " ") || got.refresh == "" {
				t.Errorf("asked for %q, granted %q", asked, got.scope)
			}
		}
		for _, asked := range []string{strings.Join(all, " "), strings.Join(all, " ") + " offline_access"} {
			got := strings.Fields(p.connect(client, asked).scope)
			for _, d := range byDefault {
				if !slices.Contains(got, d) {
					t.Errorf("asked for %q, granted %v", asked, got)
				}
			}
			if slices.Contains(got, "offline_access") {
				t.Errorf("offline_access was granted: %v", got)
			}
		}
	}, "SWITCHBOARD_RATE_PER_MINUTE=0")
}

func TestConsentIsAskedForEveryAppAndBoundToItsBrowser(t *testing.T) {
	onBoth(t, func(t *testing.T, s *server) {
		s.user(t, owner, orgName, "owner")
		p, other, nobody := newScript(t, s, owner), newScript(t, s, owner), newScript(t, s, owner)
		known := s.register(t, "Claude", redirect)
		p.connect(known, "org:read contacts:read")

		const elsewhere = "https://imitation.example/cb"
		a := s.postJSON(t, "/oauth/register", map[string]any{"client_name": "Claude", "redirect_uris": []string{elsewhere}, "token_endpoint_auth_method": "none"})
		imitation := s.attempt(a.json(t)["client_id"].(string), "org:read").reword(t, s.url+"/oauth/authorize", "redirect_uri", elsewhere)
		if page := p.consent(imitation); !strings.Contains(page.body, "imitation.example") {
			t.Error("the page does not say where the answer goes")
		}
		again := s.attempt(known, "org:read contacts:read")
		page := p.consent(again) // asked again though nothing is new

		other.consent(s.attempt(known, "org:read")) // signed in, in a jar of its own
		f := formWith(t, page, "decision")
		f.values.Set("decision", "approve")
		without := url.Values{}
		for name, values := range f.values {
			if name != "csrf" {
				without[name] = values
			}
		}
		for what, c := range map[string]struct {
			who    *script
			values url.Values
			header string
			want   int
		}{
			"another jar": {other, f.values, "", 403}, "a jar that is empty": {nobody, f.values, "", 303}, "no token": {p, without, "", 403},
			"a page elsewhere": {p, f.values, "cross-site", 403}, "a page elsewhere without a token": {p, without, "cross-site", 403},
		} {
			req := formPost(t, f.action, c.values)
			if c.header != "" {
				req.Header.Set("Sec-Fetch-Site", c.header)
			}
			got := do(t, c.who.client, req)
			if to := got.header.Get("Location"); got.status != c.want || to != "" && !strings.HasPrefix(to, "/sign-in?") {
				t.Errorf("%s: %d to %q", what, got.status, to)
			}
		}
		q := p.decide(page, again, "approve", func(v url.Values) {
			v["scope"] = slices.DeleteFunc(v["scope"], func(box string) bool { return strings.Contains(box, "contacts:") })
		})
		if got := readTokens(t, s.exchange(t, again, q.Get("code"))); got.scope != "org:read" {
			t.Errorf("with a box unticked it got %q", got.scope)
		}
	})
}

func TestADocumentThatNeverComesIsAPageAndNoHang(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0") // it takes connections and says nothing
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = silent.Close() })
	s := start(t, "sqlite", "SWITCHBOARD_OUTBOUND_ALLOW=127.0.0.0/8")
	id := "https://" + silent.Addr().String() + "/client.json"
	page := newScript(t, s, owner).get(s.attempt(id, "").url)
	if page.status != http.StatusServiceUnavailable || !strings.HasPrefix(page.header.Get("Content-Type"), "text/html") || page.header.Get("Location") != "" || !strings.Contains(page.body, "could not fetch it") {
		t.Errorf("%d to %q: %.500s", page.status, page.header.Get("Location"), page.body)
	}
	if a := s.refresh(t, id, "sb_rt_x"); a.status != http.StatusUnauthorized || a.json(t)["error"] != "invalid_client" {
		t.Errorf("at the token endpoint: %d %s", a.status, a.body)
	}
}
