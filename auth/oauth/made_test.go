package oauth

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"switchboard/internal/caller"
	"switchboard/internal/fault"
	"switchboard/internal/scope"
	"switchboard/internal/trial"
)

// as is a context of somebody of an organization at a page.
func (w *world) as(role scope.Role) context.Context {
	return caller.With(w.t.Context(), caller.Caller{Org: w.org.ID, Person: w.people[role].ID, Role: role, Via: caller.Browser})
}

// asNeighbour is a context of the other organization's owner.
func (w *world) asNeighbour() context.Context {
	return caller.With(w.t.Context(), caller.Caller{Org: w.otherOrg.ID, Person: w.neighbour.ID, Role: scope.Owner, Via: caller.Browser})
}

func (w *world) apps(ctx context.Context) []Client {
	w.t.Helper()
	apps, err := w.server.Clients(ctx)
	if err != nil {
		w.t.Fatal(err)
	}
	return apps
}

func TestAnAppThatAnAdministratorMakesSignsInPeopleOfTheirOrganizationOnly(t *testing.T) {
	w := newWorld(t)
	secret, app, err := w.server.MakeClient(w.as(scope.Admin), NewClient{Name: " Booking\u202e ", Redirects: []string{redirect}, Method: byPost})
	if err != nil {
		t.Fatal(err)
	}
	want := Client{ID: app.ID, Name: "Booking", Made: true, Method: byPost, Redirects: []string{redirect}}
	if diff := cmp.Diff(want, app, cmpopts.IgnoreFields(Client{}, "CreatedAt", "Mark")); diff != "" {
		t.Error(diff)
	}
	tokens := w.exchange(w.codeFor(app.ID, "org:read"), "client_id", app.ID, "client_secret", secret)
	if tokens.Status != http.StatusOK {
		t.Fatalf("%+v", tokens)
	}
	want.Connections = 1
	if diff := cmp.Diff([]Client{want}, w.apps(w.as(scope.Owner)), cmpopts.IgnoreFields(Client{}, "CreatedAt", "UsedAt", "Mark")); diff != "" {
		t.Error(diff)
	}
	if got := w.apps(w.asNeighbour()); len(got) != 0 {
		t.Errorf("the neighbours see %+v", got)
	}
	p, err := w.server.Pending(t.Context(), w.mustBegin(query(app.ID)), browser)
	if err != nil || p.OnlyOrg != w.org.ID {
		t.Errorf("%+v %v", p, err)
	}
	answer, err := w.decide(w.mustBegin(query(app.ID, "scope", "org:read")), Decision{Approve: true, PersonID: w.neighbour.ID, OrgID: w.otherOrg.ID, Scopes: scope.Of("org:read")})
	if err != nil || answer.Get("error") != "access_denied" || answer.Get("code") != "" {
		t.Errorf("in another organization: %v %v", answer, err)
	}
	if got := w.audited(); got[0] != "client_create ok" {
		t.Errorf("%v", got)
	}
}

func TestTheListOfAppsTellsWhenEachCameAndWasUsedLast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		came := time.Now().UTC()
		time.Sleep(time.Hour)
		w.codeFor(w.stranger, "org:read") // allowed, and never used
		tokens := w.tokens("org:read")
		used := time.Now().UTC()
		want := []Client{
			{ID: w.desktop, Name: "Desktop", Method: byNothing, Redirects: []string{"http://127.0.0.1/callback"}, Connections: 1, CreatedAt: came, UsedAt: used},
			{ID: w.stranger, Name: "Stranger", Method: byNothing, Redirects: []string{"http://127.0.0.1/callback"}, Connections: 1, CreatedAt: came},
		}
		if diff := cmp.Diff(want, w.apps(w.asOwner())); diff != "" {
			t.Error(diff)
		}
		time.Sleep(48 * time.Hour)
		w.refresh(tokens.Refresh)
		want[0].UsedAt = time.Now().UTC()
		if diff := cmp.Diff(want, w.apps(w.asOwner())); diff != "" {
			t.Errorf("after a refresh: %s", diff)
		}
	})
}

func TestOnlyAnAdministratorManagesApps(t *testing.T) {
	w := newWorld(t)
	id, _ := w.made(w.org.ID, w.owner.ID)
	theirs, _ := w.made(w.otherOrg.ID, w.neighbour.ID)
	for _, ctx := range []context.Context{t.Context(), w.as(scope.Member), w.as(scope.Viewer)} {
		_, list := w.server.Clients(ctx)
		_, _, make := w.server.MakeClient(ctx, NewClient{Name: "x", Redirects: []string{redirect}, Method: byBasic})
		_, _, rotate := w.server.RotateSecret(ctx, id, "", false)
		for _, err := range []error{list, make, rotate, w.server.BlockClient(ctx, id), w.server.UnblockClient(ctx, id)} {
			if !fault.Is(err, fault.Forbidden) {
				t.Errorf("%v", err)
			}
		}
	}
	_, _, err := w.server.RotateSecret(w.asOwner(), id, "", false)
	if !errors.Is(err, ErrSecretChanged) {
		t.Errorf("of a secret that is not the present one: %v", err)
	}
	changes := func(id string) []error {
		_, _, rotate := w.server.RotateSecret(w.asOwner(), id, "", true)
		return []error{rotate, w.server.BlockClient(w.asOwner(), id), w.server.UnblockClient(w.asOwner(), id)}
	}
	unknown := changes("cli_nobody")
	for _, foreign := range []string{theirs, w.desktop, "cli_nobody", ""} {
		for i, err := range changes(foreign) {
			if !fault.Is(err, fault.NotFound) || err.Error() != unknown[i].Error() {
				t.Errorf("%q: %v, and of one that does not exist: %v", foreign, err, unknown[i])
			}
		}
	}
}

func TestAnAppThatIsTypedWrongIsRefusedWithItsField(t *testing.T) {
	w := newWorld(t)
	for _, c := range []struct {
		app   NewClient
		field string
	}{
		{NewClient{Name: " \u202e", Redirects: []string{redirect}, Method: byBasic}, "name"},
		{NewClient{Name: "x", Method: byNothing}, "redirects"},
		{NewClient{Name: "x", Redirects: []string{"javascript:1"}, Method: byBasic}, "redirects"},
		{NewClient{Name: "x", Redirects: make([]string, 21), Method: byBasic}, "redirects"},
		{NewClient{Name: "x", Redirects: []string{redirect}, Method: "x"}, "method"},
		{NewClient{Name: "x", Redirects: []string{redirect}}, "method"},
		{NewClient{Name: "x", Redirects: []string{redirect}, Method: byKey}, "jwks_uri"},
		{NewClient{Name: "x", Redirects: []string{redirect}, Method: byKey, JWKSURI: "http://x.example"}, "jwks_uri"},
	} {
		_, _, err := w.server.MakeClient(w.asOwner(), c.app)
		var f *fault.Error
		if !errors.As(err, &f) || f.Code != fault.InvalidRequest || f.Details["field"] != c.field {
			t.Errorf("%+v: %v", c.app, err)
		}
	}
	if n := w.count(`SELECT count(*) FROM clients WHERE kind = 'made'`); n != 0 {
		t.Errorf("%d were made", n)
	}
}

func TestARotatedSecretWorksAtOnceAndTheOldOneForADayUnlessItLeaked(t *testing.T) {
	w := newWorld(t)
	id, first := w.made(w.org.ID, w.owner.ID)
	works := func(secret string) bool {
		return w.ask("/oauth/token", basic(id, secret), url.Values{"grant_type": {"refresh_token"}, "refresh_token": {"sb_rt_x"}}) == refusal(400, "invalid_grant")
	}
	mark := w.apps(w.asOwner())[0].Mark
	second, app, err := w.server.RotateSecret(w.asOwner(), id, mark, false)
	if err != nil || time.Until(app.OldUntil) < 23*time.Hour {
		t.Fatalf("%+v %v", app, err)
	}
	if _, _, err := w.server.RotateSecret(w.asOwner(), id, mark, true); !errors.Is(err, ErrSecretChanged) {
		t.Errorf("the same form again: %v", err)
	}
	if !works(first) || !works(second) {
		t.Error("one of the two does not work")
	}
	w.exec(`UPDATE clients SET old_secret_until = ?`, time.Now().Add(-time.Second).UnixMicro())
	if works(first) || !works(second) {
		t.Error("after a day")
	}
	if err := w.server.Sweep(t.Context()); err != nil || w.count(`SELECT count(*) FROM clients WHERE old_secret_hash <> ''`) != 0 {
		t.Errorf("an old secret's hash is kept, %v", err)
	}
	third, app, err := w.server.RotateSecret(w.asOwner(), id, app.Mark, true)
	if err != nil || !app.OldUntil.IsZero() || works(second) || !works(third) || works("") {
		t.Errorf("after a leak: %+v %v", app, err)
	}
	if got := w.audited(); got[len(got)-1] != "client_rotate ok" {
		t.Errorf("%v", got)
	}
}

func TestABlockedAppIsDeadAtOnceAndAsksInVain(t *testing.T) {
	w := newWorld(t)
	tokens := w.tokens("org:read")
	open := w.mustBegin(query(w.desktop, "scope", "org:read"))
	unused := w.code("org:read")
	replica := w.replica()
	if err := w.server.BlockClient(w.as(scope.Admin), w.desktop); err != nil {
		t.Fatal(err)
	}
	w.dead("blocked", tokens)
	if _, err := replica.who(tokens.Access); err == nil {
		t.Error("it lives on another server")
	}
	if got := w.exchange(unused); got != refusal(400, "invalid_grant") {
		t.Errorf("a code from before: %+v", got)
	}
	for _, request := range []string{open, w.mustBegin(query(w.desktop, "scope", "org:read"))} {
		if p, err := w.server.Pending(t.Context(), request, browser); err != nil || len(p.BlockedIn) != 1 || p.BlockedIn[0] != w.org.ID {
			t.Errorf("%+v %v", p, err)
		}
		if answer, err := w.decide(request, w.yes("org:read")); err != nil || answer.Get("error") != "access_denied" {
			t.Errorf("%v %v", answer, err)
		}
	}
	elsewhere := Decision{Approve: true, PersonID: w.neighbour.ID, OrgID: w.otherOrg.ID, Scopes: scope.Of("org:read")}
	if answer, err := w.decide(w.mustBegin(query(w.desktop, "scope", "org:read")), elsewhere); err != nil || answer.Get("code") == "" {
		t.Errorf("another organization: %v %v", answer, err)
	}
	if apps := w.apps(w.asOwner()); len(apps) != 1 || apps[0].BlockedAt.IsZero() || apps[0].Connections != 0 {
		t.Errorf("%+v", apps)
	}
	if apps := w.apps(w.asNeighbour()); len(apps) != 1 || !apps[0].BlockedAt.IsZero() || apps[0].Connections != 1 {
		t.Errorf("the neighbours see %+v", apps)
	}
	for range 2 { // again is fine, and says nothing
		if err := w.server.BlockClient(w.asOwner(), w.desktop); err != nil {
			t.Fatal(err)
		}
	}
	w.exec(`UPDATE clients SET used_at = 1, created_at = 1`)
	w.exec(`DELETE FROM consent_requests`)
	w.exec(`DELETE FROM codes`)
	w.exec(`DELETE FROM generations`)
	w.exec(`DELETE FROM grants`)
	w.exec(`DELETE FROM connections`)
	if err := w.server.Sweep(t.Context()); err != nil || w.count(`SELECT count(*) FROM clients`) != 1 {
		t.Errorf("a block was swept with its client: %v", err)
	}
	if err := w.server.UnblockClient(w.asOwner(), w.desktop); err != nil {
		t.Fatal(err)
	}
	w.tokens("org:read")
	got := w.audited()
	want := []string{"consent ok", "consent ok", "client_block ok", "consent refused", "consent refused", "client_unblock ok", "consent ok"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestABlockAndAConsentAtOnceLeaveNothingAlive(t *testing.T) {
	w := newWorld(t)
	w.tokens("org:read")
	for i := range 10 {
		request := w.mustBegin(query(w.desktop, "scope", "org:read"))
		codes := trial.Parallel(2, func(i int) string {
			if i == 0 {
				if err := w.server.BlockClient(w.asOwner(), w.desktop); err != nil {
					t.Error(err)
				}
				return ""
			}
			answer, err := w.decide(request, w.yes("org:read"))
			if err != nil {
				t.Error(err)
			}
			return answer.Get("code")
		})
		if n := w.count(`SELECT count(*) FROM connections WHERE revoked_at IS NULL`); n != 0 {
			t.Fatalf("round %d: %d connections of a blocked app live", i, n)
		}
		if codes[1] != "" {
			if got := w.exchange(codes[1]); got != refusal(400, "invalid_grant") {
				t.Errorf("round %d: %+v", i, got)
			}
		}
		if err := w.server.UnblockClient(w.asOwner(), w.desktop); err != nil {
			t.Fatal(err)
		}
	}
}
