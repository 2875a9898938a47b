package auth

import (
	"errors"
	"fmt"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"switchboard/internal/caller"
	"switchboard/internal/scope"
	"switchboard/internal/seal"
	"switchboard/internal/trial"
)

func TestAnythingThatIsNoValidTokenIsUnauthorizedAndSaysWhy(t *testing.T) {
	w := newWorld(t)
	good := w.connect(w.people[scope.Owner], w.org.ID, w.client("App", `["https://app.example/cb"]`), "org:read")
	key, _ := w.key(scope.Owner, "org:read", 0)
	expired := w.connect(w.people[scope.Member], w.org.ID, w.client("App", `[]`), "org:read")
	w.exec(`UPDATE generations SET access_expires_at = 1 WHERE grant_id = ?`, expired.grant)
	revoked := w.connect(w.people[scope.Viewer], w.org.ID, w.client("App", `[]`), "org:read")
	w.exec(`UPDATE connections SET revoked_at = 1 WHERE id = ?`, revoked.id)
	ended := w.connect(w.people[scope.Admin], w.org.ID, w.client("App", `[]`), "org:read")
	w.exec(`UPDATE grants SET revoked_at = 1 WHERE id = ?`, ended.grant)
	keys := map[string]string{}
	for name, change := range map[string]string{"revoked key": "revoked_at = 1", "expired key": "expires_at = 1", "key of nobody here": "person_id = '" + w.neighbour.ID + "'"} {
		secret, k := w.key(scope.Owner, "org:read", 0)
		w.exec(`UPDATE api_keys SET `+change+` WHERE id = ?`, k.ID)
		keys[name] = secret
	}
	for name, c := range map[string]struct {
		headers []string
		reason  string // "" is no credentials at all
	}{
		"no header":            {nil, ""},
		"garbage":              {[]string{"Bearer garbage"}, "it is not known here"},
		"empty":                {[]string{"Bearer "}, "the bearer token is empty"},
		"only the scheme":      {[]string{"Bearer"}, "the bearer token is empty"},
		"two words":            {[]string{"Bearer a b"}, "the bearer token is malformed"},
		"a tab":                {[]string{"Bearer a\tb"}, "the bearer token is malformed"},
		"two tokens":           {[]string{"Bearer a,Bearer b"}, "the bearer token is malformed"},
		"Basic":                {[]string{"Basic x"}, "the Authorization header does not use the Bearer scheme"},
		"only a token":         {[]string{good.token}, "the Authorization header does not use the Bearer scheme"},
		"an empty header":      {[]string{""}, "the Authorization header does not use the Bearer scheme"},
		"10 kB":                {[]string{"Bearer " + strings.Repeat("x", 10<<10)}, "the bearer token is malformed"},
		"two headers":          {[]string{"Bearer " + good.token, "Bearer " + good.token}, "more than one Authorization header"},
		"a key and a token":    {[]string{"Bearer " + key, "Bearer " + good.token}, "more than one Authorization header"},
		"expired token":        {[]string{"Bearer " + expired.token}, "it has expired"},
		"revoked connection":   {[]string{"Bearer " + revoked.token}, "it has been revoked"},
		"revoked grant":        {[]string{"Bearer " + ended.token}, "it has been revoked"},
		"revoked key":          {[]string{"Bearer " + keys["revoked key"]}, "it has been revoked"},
		"expired key":          {[]string{"Bearer " + keys["expired key"]}, "it has expired"},
		"key of somebody gone": {[]string{"Bearer " + keys["key of nobody here"]}, "its person is no longer a member of the organization"},
		"token in other case":  {[]string{"Bearer " + strings.ToUpper(good.token)}, "it is not known here"},
		"key without prefix":   {[]string{"Bearer " + strings.TrimPrefix(key, KeyPrefix)}, "it is not known here"},
		"its hash":             {[]string{"Bearer " + w.auth.Secrets.Hash(good.token)}, "it is not known here"},
		"a NUL":                {[]string{"Bearer \x00"}, "it is not known here"},
	} {
		_, err := w.call(c.headers...)
		var got *Unauthorized
		if !errors.As(err, &got) || got.Reason != c.reason {
			t.Errorf("%s: %v", name, err)
		}
		rec := httptest.NewRecorder()
		w.auth.Challenge(rec, resource, err)
		challenges := rec.Header().Values("WWW-Authenticate")
		if rec.Code != 401 || len(challenges) != 1 {
			t.Errorf("%s: %d with the challenges %q", name, rec.Code, challenges)
			continue
		}
		said := parseChallenge(t, challenges[0])
		if code := map[bool]string{false: "invalid_token"}[c.reason == ""]; said["error"] != code || said["resource_metadata"] != issuer+"/.well-known/oauth-protected-resource/mcp" {
			t.Errorf("%s: the challenge %q", name, challenges[0])
		}
	}
	if _, err := w.call("Bearer " + good.token); err != nil {
		t.Errorf("the good one: %v", err)
	}
}

// Identifiers are compared as a whole: a prefix is another resource, and only the whole is good for its parts.
func TestATokenIsGoodWhereItWasIssuedForAndTheWholeForItsParts(t *testing.T) {
	w := newWorld(t)
	app := w.connect(w.people[scope.Member], w.org.ID, w.client("Desktop", `["https://app.example/cb"]`), "org:read")
	secret, _ := w.key(scope.Member, "org:read", time.Hour)
	mail, apps, v1 := resource+"/mail", resource+"/apps", issuer+"/v1"
	for _, c := range []struct {
		audience string
		good     []string
	}{
		{resource, []string{resource, mail, apps}},
		{mail, []string{mail}},
		{apps, []string{apps}},
		{v1, []string{v1}},
		{issuer, nil},
		{issuer + "/mc", nil},
		{resource + "/", nil},
		{resource + "/mail/more", nil},
		{"https://switch.example.evil.example/mcp", nil},
		{strings.ToUpper(resource), nil},
		{"", nil},
	} {
		w.exec(`UPDATE grants SET resource = ? WHERE id = ?`, c.audience, app.grant)
		for _, at := range []string{resource, mail, apps, v1, resource + "/unknown", resource + "x", issuer, ""} {
			_, err := w.callAt(at, "Bearer "+app.token)
			if good := slices.Contains(c.good, at) || at != "" && at == c.audience; good != (err == nil) {
				t.Errorf("a token for %q at %q: %v", c.audience, at, err)
			}
			if err != nil && !cmp.Equal(err, &Unauthorized{"the token was issued for another resource"}) {
				t.Errorf("a token for %q at %q: %v", c.audience, at, err)
			}
			if _, err := w.callAt(at, "Bearer "+secret); err != nil {
				t.Errorf("an API key at %q: %v", at, err)
			}
		}
	}
}

func TestATokenAndAKeySayOnWhoseBehalf(t *testing.T) {
	w := newWorld(t)
	member := w.people[scope.Member]
	app := w.connect(member, w.org.ID, w.client("Desktop", `["https://app.example/cb"]`), "contacts:read contacts:write")
	secret, key := w.key(scope.Member, "contacts:read", time.Hour)
	forever, lasting := w.key(scope.Member, "contacts:read", 0)
	want := caller.Caller{Org: w.org.ID, Person: member.ID, PersonName: member.Email, Role: scope.Member}
	byApp, byKey, byLasting := want, want, want
	byApp.Via, byApp.ID, byApp.Name, byApp.Scopes = caller.Connection, app.id, "Desktop", scope.Of("contacts:read", "contacts:write")
	byKey.Via, byKey.ID, byKey.Name, byKey.Scopes = caller.Key, key.ID, "CI", scope.Of("contacts:read")
	byLasting.Via, byLasting.ID, byLasting.Name, byLasting.Scopes = caller.Key, lasting.ID, "CI", scope.Of("contacts:read")
	narrowed := w.grant(app, "contacts:read contacts:write") // a refresh asked for less than was granted
	w.exec(`UPDATE generations SET scope = 'contacts:read' WHERE grant_id = ?`, narrowed.grant)
	byNarrowed := byApp
	byNarrowed.Scopes = scope.Of("contacts:read")
	byApp.Granted, byNarrowed.Granted, byKey.Granted, byLasting.Granted = byApp.Scopes, byApp.Scopes, byKey.Scopes, byLasting.Scopes
	for header, want := range map[string]caller.Caller{
		"Bearer " + narrowed.token: byNarrowed,
		"Bearer " + app.token:      byApp, "bearer " + app.token: byApp, "BEARER  " + app.token + " ": byApp, "Bearer " + secret: byKey, "Bearer " + forever: byLasting,
	} {
		got, err := w.call(header)
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("%.12s: %v\n%s", header, err, diff)
		}
	}
	if _, err := w.callAt(issuer+"/v1", "Bearer "+secret); err != nil {
		t.Errorf("a key is good on every resource: %v", err)
	}
}

func TestARoleThatWasLoweredCountsAtOnceAndLeavingEndsEverything(t *testing.T) {
	w := newWorld(t)
	admin := w.people[scope.Admin]
	app := w.connect(admin, w.org.ID, w.client("App", `[]`), "org:write")
	secret, _ := w.key(scope.Admin, "org:write", 0)
	w.exec(`UPDATE memberships SET role = 'viewer' WHERE person_id = ?`, admin.ID)
	for _, token := range []string{app.token, secret} {
		if c, err := w.call("Bearer " + token); err != nil || c.Role != scope.Viewer {
			t.Errorf("%+v %v", c, err)
		}
	}
	w.exec(`DELETE FROM memberships WHERE person_id = ?`, admin.ID)
	for _, token := range []string{app.token, secret} {
		if _, err := w.call("Bearer " + token); !cmp.Equal(err, &Unauthorized{"its person is no longer a member of the organization"}) {
			t.Errorf("after leaving: %v", err)
		}
	}
}

func TestAKeyEndsToTheSecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		secret, _ := w.key(scope.Owner, "org:read", time.Hour)
		time.Sleep(time.Hour - time.Second)
		if _, err := w.call("Bearer " + secret); err != nil {
			t.Error(err)
		}
		time.Sleep(2 * time.Second)
		if _, err := w.call("Bearer " + secret); !cmp.Equal(err, &Unauthorized{"it has expired"}) {
			t.Error(err)
		}
	})
}

func TestTheLastUseIsKeptToTheMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		app := w.connect(w.people[scope.Owner], w.org.ID, w.client("App", `[]`), "org:read")
		secret, _ := w.key(scope.Owner, "org:read", 0)
		used := func() [2]time.Time {
			connections, err := w.auth.Connections(w.as(scope.Owner))
			if err != nil || len(connections) != 1 {
				t.Fatal(connections, err)
			}
			keys, err := w.auth.Keys(w.as(scope.Owner))
			if err != nil || len(keys) != 1 {
				t.Fatal(keys, err)
			}
			return [2]time.Time{connections[0].UsedAt, keys[0].UsedAt}
		}
		call := func() {
			for _, token := range []string{app.token, secret} {
				if _, err := w.call("Bearer " + token); err != nil {
					t.Fatal(err)
				}
			}
		}
		if used() != [2]time.Time{} {
			t.Error("used before its first use")
		}
		call()
		first := time.Now().UTC()
		time.Sleep(59 * time.Second)
		call()
		if diff := cmp.Diff([2]time.Time{first, first}, used()); diff != "" {
			t.Errorf("within a minute: %s", diff)
		}
		time.Sleep(2 * time.Second)
		call()
		if now := time.Now().UTC(); used() != [2]time.Time{now, now} {
			t.Errorf("after a minute: %v", used())
		}
	})
}

func TestTokensOutliveAKeyRotation(t *testing.T) {
	w := newWorld(t)
	app := w.connect(w.people[scope.Owner], w.org.ID, w.client("App", `[]`), "org:read")
	secret, _ := w.key(scope.Owner, "org:read", 0)
	for ids, works := range map[string]bool{"k2 k1": true, "k1 k2": true, "k2": false} {
		w.auth.Secrets = trial.Ring(t, strings.Fields(ids)...)
		for _, token := range []string{app.token, secret} {
			if _, err := w.call("Bearer " + token); (err == nil) != works {
				t.Errorf("with the keys %s: %v", ids, err)
			}
		}
	}
}

func TestWhatIsRevokedIsDeadWithTheNextCallWhileOthersGoOn(t *testing.T) {
	w := newWorld(t)
	client := w.client("App", `[]`)
	doomed, other := w.connect(w.people[scope.Owner], w.org.ID, client, "org:read"), w.connect(w.people[scope.Member], w.org.ID, client, "org:read")
	var wg sync.WaitGroup
	stop := make(chan struct{})
	for range 4 {
		wg.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				if _, err := w.call("Bearer " + other.token); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	if err := w.auth.RevokeConnection(w.as(scope.Owner), doomed.id); err != nil {
		t.Error(err)
	}
	for range 20 {
		if _, err := w.call("Bearer " + doomed.token); !cmp.Equal(err, &Unauthorized{"it has been revoked"}) {
			t.Errorf("after revocation: %v", err)
		}
	}
	close(stop)
	wg.Wait()
}

func TestTroubleWithTheDatabaseIsNotTheTokensFault(t *testing.T) {
	w := newWorld(t)
	app := w.connect(w.people[scope.Owner], w.org.ID, w.client("App", `[]`), "org:read")
	if err := w.store.Close(); err != nil {
		t.Fatal(err)
	}
	for _, token := range []string{app.token, seal.NewToken(KeyPrefix), "garbage"} {
		_, err := w.call("Bearer " + token)
		rec := httptest.NewRecorder()
		w.auth.Challenge(rec, resource, err)
		got := fmt.Sprintf("%d %q %q %s", rec.Code, rec.Header().Get("WWW-Authenticate"), rec.Header().Get("Retry-After"), rec.Body)
		if !strings.HasPrefix(got, `503 "" "2" {"error":{"code":"temporarily_unavailable"`) {
			t.Error(got)
		}
	}
}
