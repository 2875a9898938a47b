//go:build e2e

package e2e

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"switchboard/internal/store"
)

func TestATokenWorksHoweverTheResourceAndTheEndpointAreSpelled(t *testing.T) {
	onBoth(t, func(t *testing.T, s *server) {
		s.user(t, owner, orgName, "owner")
		p := newScript(t, s, owner)
		client := s.register(t, "Speller", redirect)
		spellings := []string{"", s.url + "/mcp", s.url + "/mcp/"}
		for _, authorize := range spellings {
			for _, exchange := range spellings {
				a := s.attempt(client, "org:read").reword(t, s.url+"/oauth/authorize", "resource", authorize)
				form := url.Values{"grant_type": {"authorization_code"}, "client_id": {client}, "code": {p.decide(p.consent(a), a, "approve", nil).Get("code")}, "code_verifier": {a.verifier}, "redirect_uri": {redirect}}
				if exchange != "" {
					form.Set("resource", exchange)
				}
				got := readTokens(t, p.post(s.url+"/oauth/token", form))
				for _, path := range slashed("/mcp") {
					if a := s.request(t, "POST", path, initialize, append([]string{"Authorization", "Bearer " + got.access}, asJSON...)...); a.status != http.StatusOK {
						t.Errorf("authorized for %q, exchanged for %q, at %s: %d %s", authorize, exchange, path, a.status, a.body)
					}
				}
			}
		}
	}, "SWITCHBOARD_RATE_PER_MINUTE=0")
}

func TestEightRefreshesAtOnceTwentyTimesInARowAreNoTheft(t *testing.T) {
	onBoth(t, func(t *testing.T, s *server) {
		s.user(t, owner, orgName, "owner")
		p := newScript(t, s, owner)
		client := s.register(t, "Eight at once", redirect)
		now := p.connect(client, "")
		for i := range 20 {
			next := refreshTogether(t, s, client, now.refresh, 8)
			if next.refresh == now.refresh || next.scope != now.scope {
				t.Fatalf("round %d: %+v after %+v", i+1, next, now)
			}
			if a := s.call(t, next.access, "tools/list", nil); a.status != http.StatusOK {
				t.Fatalf("round %d: %d %s", i+1, a.status, a.body)
			}
			now = next
		}
		if log := p.get(s.url + "/audit"); log.status != http.StatusOK || !strings.Contains(log.body, `data-action="consent"`) || strings.Contains(log.body, `data-action="refresh_reuse"`) {
			t.Errorf("the audit log: %d, or it tells of a theft", log.status)
		}
	}, "SWITCHBOARD_RATE_PER_MINUTE=0")
}

func TestRevokingOneOfSeveralConnectionsOfOneNameEndsThatOneAlone(t *testing.T) {
	const admin, member = "admin@harborstreet.example", "member@harborstreet.example"
	onBoth(t, func(t *testing.T, s *server) {
		s.user(t, owner, orgName, "owner")
		s.user(t, admin, orgName, "admin")
		s.user(t, member, orgName, "member")
		first, second := s.register(t, "Claude", redirect), s.register(t, "Claude", redirect)
		p := newScript(t, s, owner)
		doomed, sibling, colleague := p.connect(first, "org:read"), p.connect(second, "org:read"), newScript(t, s, member).connect(first, "org:read")

		id, ctx := "", store.AllOrgs(t.Context(), "the test looks up an id")
		err := s.database(t).QueryRow(ctx, `SELECT c.id FROM connections c JOIN people p ON p.id = c.person_id WHERE c.client_id = ? AND p.email = ?`, []any{first, owner}, &id)
		if err != nil {
			t.Fatal(err)
		}
		boss := newScript(t, s, admin)
		boss.signIn(boss.get(s.url + "/sign-in"))
		f := formWith(t, boss.get(s.url+"/connections?app="+id+"&ask=revoke"), "revoke")
		f.values.Set("revoke", f.fields["revoke"])
		if a := boss.post(f.action, f.values); f.fields["revoke"] != id || a.status != http.StatusSeeOther {
			t.Fatalf("revoking %s of %s: %d", f.fields["revoke"], id, a.status)
		}
		dead := func(when string) {
			t.Helper()
			if a := s.call(t, doomed.access, "tools/list", nil); a.status != http.StatusUnauthorized || !strings.Contains(a.header.Get("WWW-Authenticate"), `error="invalid_token"`) {
				t.Errorf("%s: the access token: %d %s", when, a.status, a.header.Get("WWW-Authenticate"))
			}
			if a := s.refresh(t, first, doomed.refresh); a.status != http.StatusBadRequest || a.json(t)["error"] != "invalid_grant" {
				t.Errorf("%s: the refresh token: %d %s", when, a.status, a.body)
			}
		}
		dead("after the revocation")
		if a := boss.post(f.action, f.values); a.status != http.StatusNotFound {
			t.Errorf("the same form again: %d", a.status)
		}
		for name, c := range map[string]struct {
			client string
			tokens tokens
		}{"another app of that name": {second, sibling}, "a colleague with the same app": {first, colleague}} {
			if a := s.call(t, c.tokens.access, "tools/list", nil); a.status != http.StatusOK {
				t.Errorf("%s: %d", name, a.status)
			}
			readTokens(t, s.refresh(t, c.client, c.tokens.refresh))
		}
		again := p.connect(first, "org:read") // through the consent page, as the first time
		if a := s.call(t, again.access, "tools/list", nil); a.status != http.StatusOK {
			t.Errorf("connected anew: %d", a.status)
		}
		dead("after connecting anew")
	}, "SWITCHBOARD_RATE_PER_MINUTE=0")
}
