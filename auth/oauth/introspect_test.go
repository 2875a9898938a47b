package oauth

import (
	"encoding/json"
	"net/http"
	"net/url"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"switchboard/internal/caller"
	"switchboard/internal/scope"
)

func (w *world) introspect(authorization, token string, more ...string) (int, map[string]any) {
	w.t.Helper()
	rec := w.send("POST", "/oauth/introspect", with(url.Values{"token": {token}}, more...).Encode(), "Content-Type", "application/x-www-form-urlencoded", "Authorization", authorization)
	if rec.Header().Get("Cache-Control") != "no-store" || rec.Header().Get("Access-Control-Allow-Origin") != "" {
		w.t.Errorf("headers %v", rec.Header())
	}
	var got map[string]any
	if err := json.Unmarshal(rec.Body.Bytes(), &got); err != nil {
		w.t.Fatalf("%d %s", rec.Code, rec.Body)
	}
	noneIsEmpty(w.t, rec.Body.String())
	return rec.Code, got
}

// made is a client that an administrator of an organization made.
func (w *world) made(org, person string) (id, secret string) {
	w.t.Helper()
	ctx := caller.With(w.t.Context(), caller.Caller{Org: org, Person: person, Role: scope.Admin, Via: caller.Browser})
	secret, app, err := w.server.MakeClient(ctx, NewClient{Name: "Gateway", Redirects: []string{"https://gateway.example/cb"}, Method: byBasic})
	if err != nil {
		w.t.Fatal(err)
	}
	return app.ID, secret
}

func TestATokenIsTheBusinessOfItsClientAndOfItsOrganizationsOwnApps(t *testing.T) {
	w := newWorld(t)
	id, secret := w.confidential("client_secret_basic")
	stranger, strangersSecret := w.confidential("client_secret_basic")
	gateway, gatewaysSecret := w.made(w.org.ID, w.owner.ID)
	neighbours, neighboursSecret := w.made(w.otherOrg.ID, w.neighbour.ID)
	tokens := w.ask("/oauth/token", basic(id, secret), w.exchangeForm(w.codeFor(id, "org:read contacts:read"), "client_id", ""))
	public := w.tokens("org:read")
	dead := map[string]any{"active": false}
	active := func(client, scopes, kind string) map[string]any {
		m := map[string]any{"active": true, "scope": scopes, "client_id": client, "sub": w.owner.ID, "aud": resource, "iss": issuer}
		if kind != "" {
			m["token_type"] = kind
		}
		return m
	}
	for name, c := range map[string]struct {
		who, token string
		want       map[string]any
	}{
		"its own":                       {basic(id, secret), tokens.Access, active(id, "contacts:read org:read", "Bearer")},
		"its own refresh token":         {basic(id, secret), tokens.Refresh, active(id, "contacts:read org:read", "")},
		"a stranger":                    {basic(stranger, strangersSecret), tokens.Access, dead},
		"a stranger, refresh":           {basic(stranger, strangersSecret), tokens.Refresh, dead},
		"the organization's gateway":    {basic(gateway, gatewaysSecret), tokens.Access, active(id, "contacts:read org:read", "Bearer")},
		"and about a public client's":   {basic(gateway, gatewaysSecret), public.Access, active(w.desktop, "org:read", "Bearer")},
		"another organization's":        {basic(neighbours, neighboursSecret), tokens.Access, dead},
		"nobody's":                      {basic(gateway, gatewaysSecret), "sb_at_nobody", dead},
		"no token at all":               {basic(gateway, gatewaysSecret), "\x00", dead},
		"a client secret":               {basic(gateway, gatewaysSecret), gatewaysSecret, dead},
		"the hash of a token":           {basic(gateway, gatewaysSecret), w.server.Secrets.Hash(tokens.Access), dead},
		"a public client":               {basic(w.desktop, ""), public.Access, nil},
		"nobody in particular":          {"", public.Access, nil},
		"a token instead of a secret":   {"Bearer " + tokens.Access, tokens.Access, nil},
		"its own with another's secret": {basic(id, strangersSecret), tokens.Access, nil},
	} {
		status, got := w.introspect(c.who, c.token)
		if c.want == nil {
			if (status != 401 && status != 400) || got["active"] != nil {
				t.Errorf("%s: %d %v", name, status, got)
			}
			continue
		}
		for _, member := range []string{"exp", "iat"} {
			if at, ok := got[member].(float64); ok != (c.want["active"] == true) || ok && at <= 0 {
				t.Errorf("%s: %s is %v", name, member, got[member])
			}
			delete(got, member)
		}
		if diff := cmp.Diff(c.want, got); status != http.StatusOK || diff != "" {
			t.Errorf("%s: %d\n%s", name, status, diff)
		}
	}
}

func TestABlockedAppAsksInVain(t *testing.T) {
	w := newWorld(t)
	id, secret := w.made(w.org.ID, w.owner.ID)
	tokens := w.tokens("org:read")
	for _, want := range []bool{true, false} {
		if status, got := w.introspect(basic(id, secret), tokens.Access); status != http.StatusOK || got["active"] != want {
			t.Errorf("%d %v, want %v", status, got, want)
		}
		if err := w.server.BlockClient(w.asOwner(), id); err != nil {
			t.Fatal(err)
		}
	}
	if apps := w.apps(w.asOwner()); len(apps) != 2 || apps[0].UsedAt.IsZero() && apps[1].UsedAt.IsZero() {
		t.Errorf("asking is no use of an app: %+v", apps)
	}
}

func TestIntrospectionTellsWhatATokenIsWorthNow(t *testing.T) {
	w := newWorld(t)
	gateway, secret := w.made(w.org.ID, w.owner.ID)
	state := func(token string) any {
		_, got := w.introspect(basic(gateway, secret), token)
		if got["active"] == true {
			return got["scope"]
		}
		return got["active"]
	}
	tokens := w.tokens("contacts:write org:read billing:read")
	if got := state(tokens.Access); got != "billing:read contacts:write org:read" {
		t.Errorf("%v", got)
	}
	w.exec(`UPDATE memberships SET role = 'viewer' WHERE person_id = ?`, w.owner.ID)
	if got := state(tokens.Access); got != "org:read" {
		t.Errorf("of a viewer: %v", got)
	}
	w.exec(`DELETE FROM memberships WHERE person_id = ? AND org_id = ?`, w.owner.ID, w.org.ID)
	if got := state(tokens.Access); got != false {
		t.Errorf("of somebody who left: %v", got)
	}
	w.user("owner@harbor.example", "Harbor", scope.Owner)
	next := w.refresh(tokens.Refresh)
	if got := []any{state(tokens.Refresh), state(next.Refresh)}; got[0] != false || got[1] == false {
		t.Errorf("a used refresh token and its successor: %v", got)
	}
	w.exec(`UPDATE generations SET access_expires_at = ?`, time.Now().Add(-time.Second).UnixMicro())
	if got := []any{state(next.Access), state(next.Refresh)}; got[0] != false || got[1] == false {
		t.Errorf("an access token that ended: %v", got)
	}
	w.post("/oauth/revoke", url.Values{"token": {next.Refresh}, "client_id": {w.desktop}})
	if got := state(next.Refresh); got != false {
		t.Errorf("a revoked one: %v", got)
	}
}
