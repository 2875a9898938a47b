package oauth

import (
	"errors"
	"net/url"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"switchboard/internal/audit"
	"switchboard/internal/scope"
	"switchboard/internal/store"
	"switchboard/internal/trial"
)

func TestAPersonSeesWhoAsksForWhatAndWhereTheAnswerGoes(t *testing.T) {
	w := newWorld(t)
	app := w.client("Cursor", cursor...)
	for _, c := range []struct {
		redirect string
		want     Pending
	}{
		{"http://localhost:4711/callback", Pending{RedirectHost: "localhost:4711", Loopback: true}},
		{cursor[1], Pending{RedirectHost: "www.cursor.com"}},
		{cursor[0], Pending{RedirectHost: "cursor:", PrivateScheme: "cursor"}},
	} {
		id := w.mustBegin(query(app, "redirect_uri", c.redirect, "scope", "org:read"))
		c.want.ID, c.want.ClientID, c.want.ClientName, c.want.RedirectURI = id, app, "Cursor", c.redirect
		c.want.Resource, c.want.Requested, c.want.BlockedIn = resource, scope.Of("org:read"), []string{}
		got, err := w.server.Pending(t.Context(), id, browser)
		if diff := cmp.Diff(c.want, got, cmpopts.IgnoreFields(Pending{}, "ExpiresAt")); err != nil || diff != "" {
			t.Errorf("%s: %v\n%s", c.redirect, err, diff)
		}
	}
}

func TestWhatIsGrantedIsPostedAndAskedForAndAllowedToTheRole(t *testing.T) {
	w := newWorld(t)
	const everything = "apps:read apps:write billing:read contacts:read contacts:write org:read org:write"
	for _, c := range []struct {
		role                    scope.Role
		asked, posted, readOnly string
		want                    string // "" is access_denied
	}{
		{scope.Owner, everything, everything, "", everything},
		{scope.Admin, everything, everything, "", everything},
		{scope.Member, everything, everything, "", "apps:read contacts:read contacts:write org:read"},
		{scope.Viewer, everything, everything, "", "apps:read contacts:read org:read"},
		{scope.Owner, everything, everything, "yes", "apps:read billing:read contacts:read org:read"},
		{scope.Viewer, everything, everything, "yes", "apps:read contacts:read org:read"},
		{scope.Owner, "org:read", everything, "", "org:read"},
		{scope.Owner, everything, "org:read", "", "org:read"},
		{scope.Owner, "spocket", "spocket", "", "apps:read apps:write"},
		{scope.Owner, "org:read contacts:read", "org:read billing:read nothing:here", "", "org:read"},
		{scope.Owner, "org:read", "contacts:read", "", ""},
		{scope.Owner, "org:read", "", "", ""},
		{scope.Viewer, "org:write", "org:write", "", ""},
		{scope.Member, "org:write contacts:write", "org:write", "", ""},
		{scope.Owner, "org:write", "org:write", "yes", ""},
	} {
		d := Decision{Approve: true, PersonID: w.people[c.role].ID, OrgID: w.org.ID, Scopes: scope.Parse(c.posted), ReadOnly: c.readOnly != ""}
		got, err := w.decide(w.mustBegin(query(w.desktop, "scope", c.asked)), d)
		if err != nil {
			t.Fatal(err)
		}
		if c.want == "" {
			if got.Get("error") != "access_denied" || got.Has("code") {
				t.Errorf("%+v: %v", c, got)
			}
			continue
		}
		tokens := w.exchange(got.Get("code"))
		if tokens.Scope != c.want {
			t.Errorf("%+v: granted %q, %v", c, tokens.Scope, got)
		}
		if who, err := w.who(tokens.Access); err != nil || who.Scopes.String() != c.want || who.Role != c.role || who.Person != d.PersonID || who.Org != w.org.ID {
			t.Errorf("%+v: the token acts as %+v, %v", c, who, err)
		}
	}
}

func TestOnlyTheBrowserThatBeganMayAnswer(t *testing.T) {
	w := newWorld(t)
	id := w.mustBegin(query(w.desktop))
	for _, c := range []struct{ id, browser string }{{id, "another browser"}, {id, ""}, {"unknown", browser}, {"", browser}, {id + "\x00", browser}} {
		if _, err := w.server.Pending(t.Context(), c.id, c.browser); !errors.Is(err, ErrGone) {
			t.Errorf("looking at %q from %q: %v", c.id, c.browser, err)
		}
		if _, err := w.server.Decide(t.Context(), c.id, c.browser, w.yes("org:read")); !errors.Is(err, ErrGone) {
			t.Errorf("answering %q from %q: %v", c.id, c.browser, err)
		}
	}
	if got, err := w.decide(id, w.yes("org:read")); err != nil || got.Get("code") == "" {
		t.Errorf("the right browser: %v %v", got, err)
	}
}

func TestARequestWaitsForAnHour(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		id := w.mustBegin(query(w.desktop))
		time.Sleep(requestLifetime - time.Second)
		if _, err := w.server.Pending(t.Context(), id, browser); err != nil {
			t.Error(err)
		}
		time.Sleep(2 * time.Second)
		if _, err := w.server.Pending(t.Context(), id, browser); !errors.Is(err, ErrGone) {
			t.Error(err)
		}
		if _, err := w.server.Decide(t.Context(), id, browser, w.yes("org:read")); !errors.Is(err, ErrGone) {
			t.Error(err)
		}
	})
}

func TestARequestOfAClientThatIsGoneIsGone(t *testing.T) {
	w := newWorld(t)
	id := w.mustBegin(query(w.desktop))
	w.exec(`UPDATE clients SET redirect_uris = '["https://elsewhere.example/cb"]' WHERE id = ?`, w.desktop)
	if _, err := w.server.Decide(t.Context(), id, browser, w.yes("org:read")); !errors.Is(err, ErrGone) {
		t.Error(err)
	}
}

func TestTheSameAnswerTwiceGivesTheSameLocationUntilItsCodeIsUsed(t *testing.T) {
	w := newWorld(t)
	id := w.mustBegin(query(w.desktop, "scope", "org:read"))
	first, err := w.server.Decide(t.Context(), id, browser, w.yes("org:read"))
	if err != nil {
		t.Fatal(err)
	}
	second, err := w.server.Decide(t.Context(), id, browser, w.yes("org:read"))
	if err != nil || second != first {
		t.Errorf("%s\n%s %v", first, second, err)
	}
	if p, err := w.server.Pending(t.Context(), id, browser); err != nil || p.Decision != "approved" {
		t.Errorf("%+v %v", p, err)
	}
	w.writeKeys("k2", "k1") // a restart with a new key in front
	w.serve(w.ring(), lifetimes)
	if third, err := w.server.Decide(t.Context(), id, browser, w.yes("org:read")); err != nil || third != first {
		t.Errorf("after a key rotation: %s %v", third, err)
	}
	if got := w.exchange(answerIn(t, first).Get("code")); got.Status != 200 {
		t.Fatalf("%+v", got)
	}
	if _, err := w.server.Decide(t.Context(), id, browser, w.yes("org:read")); !errors.Is(err, ErrGone) {
		t.Errorf("after the code was used: %v", err)
	}
	if diff := cmp.Diff([]string{"consent ok"}, w.audited()); diff != "" {
		t.Error(diff)
	}
}

func TestANoIsNeverAnsweredWithACode(t *testing.T) {
	w := newWorld(t)
	no := Decision{PersonID: w.owner.ID, OrgID: w.org.ID}
	id := w.mustBegin(query(w.desktop, "scope", "org:read"))
	denied, err := w.decide(id, no)
	if err != nil || denied.Get("error") != "access_denied" {
		t.Fatal(denied, err)
	}
	if then, err := w.decide(id, w.yes("org:read")); err != nil || !cmp.Equal(denied, then) {
		t.Errorf("deny, then approve: %v %v", then, err)
	}

	id = w.mustBegin(query(w.desktop, "scope", "org:read"))
	yes, err := w.decide(id, w.yes("org:read"))
	if err != nil {
		t.Fatal(err)
	}
	if then, err := w.decide(id, no); err != nil || then.Get("error") != "access_denied" || then.Has("code") {
		t.Errorf("approve, then deny: %v %v", then, err)
	}
	if got := w.exchange(yes.Get("code")); got.Error != "invalid_grant" {
		t.Errorf("the code of what was taken back: %+v", got)
	}

	id = w.mustBegin(query(w.desktop, "scope", "org:read"))
	if yes, err = w.decide(id, w.yes("org:read")); err != nil {
		t.Fatal(err)
	}
	tokens := w.exchange(yes.Get("code"))
	if _, err := w.decide(id, no); !errors.Is(err, ErrGone) {
		t.Errorf("a no after the code was used: %v", err)
	}
	w.alive("what was used before the no", tokens)
	if diff := cmp.Diff([]string{"consent refused", "consent ok", "consent refused", "consent ok"}, w.audited()); diff != "" {
		t.Error(diff)
	}
}

func TestAnAnswerIsRepeatedToThePersonWhoGaveItOnly(t *testing.T) {
	w := newWorld(t)
	other := w.user("olga@elsewhere.example", "Elsewhere", scope.Owner)
	id := w.mustBegin(query(w.desktop, "scope", "org:read"))
	yes, err := w.decide(id, w.yes("org:read"))
	if err != nil {
		t.Fatal(err)
	}
	for _, approve := range []bool{true, false} {
		d := Decision{Approve: approve, PersonID: other.Person.ID, OrgID: other.Organization.ID, Scopes: scope.Of("org:read")}
		if got, err := w.decide(id, d); !errors.Is(err, ErrGone) {
			t.Errorf("somebody else in the same browser, approve=%v: %v %v", approve, got, err)
		}
	}
	if got := w.exchange(yes.Get("code")); got.Status != 200 {
		t.Errorf("the code of the one who approved: %+v", got)
	}
}

func TestAFormPostedManyTimesAtOnceMakesOneCode(t *testing.T) {
	w := newWorld(t)
	id := w.mustBegin(query(w.desktop, "scope", "org:read"))
	type outcome struct {
		location string
		err      error
	}
	got := trial.Parallel(12, func(int) outcome {
		location, err := w.server.Decide(t.Context(), id, browser, w.yes("org:read"))
		return outcome{location, err}
	})
	for _, o := range got {
		if o.err != nil || o.location != got[0].location {
			t.Errorf("%s %v", o.location, o.err)
		}
	}
	if n := w.count(`SELECT count(*) FROM codes`) + w.count(`SELECT count(*) FROM grants`) + w.count(`SELECT count(*) FROM connections`); n != 3 {
		t.Errorf("%d rows, want one code, one grant, one connection", n)
	}
	if diff := cmp.Diff([]string{"consent ok"}, w.audited()); diff != "" {
		t.Error(diff)
	}
}

func TestTwoRequestsApprovedAtOnceShareAConnection(t *testing.T) {
	w := newWorld(t)
	ids := []string{}
	for range 8 {
		ids = append(ids, w.mustBegin(query(w.desktop, "scope", "org:read")))
	}
	for i, got := range trial.Parallel(8, func(i int) url.Values {
		answer, err := w.decide(ids[i], w.yes("org:read"))
		if err != nil {
			t.Error(err)
		}
		return answer
	}) {
		if got := w.exchange(got.Get("code")); got.Status != 200 {
			t.Errorf("code %d: %+v", i, got)
		}
	}
	if c, g := w.count(`SELECT count(*) FROM connections`), w.count(`SELECT count(*) FROM grants`); c != 1 || g != 8 {
		t.Errorf("%d connections, %d grants", c, g)
	}
}

func TestSomebodyWhoIsNotAMemberCanAllowNothing(t *testing.T) {
	w := newWorld(t)
	for _, d := range []Decision{
		{Approve: true, PersonID: w.neighbour.ID, OrgID: w.org.ID, Scopes: scope.Of("org:read")},
		{Approve: true, PersonID: w.owner.ID, OrgID: w.otherOrg.ID, Scopes: scope.Of("org:read")},
		{Approve: true, PersonID: w.owner.ID, OrgID: "org_nowhere", Scopes: scope.Of("org:read")},
		{Approve: true, PersonID: w.owner.ID, OrgID: "", Scopes: scope.Of("org:read")},
	} {
		got, err := w.decide(w.mustBegin(query(w.desktop, "scope", "org:read")), d)
		if err != nil || got.Get("error") != "access_denied" || got.Has("code") {
			t.Errorf("%+v: %v %v", d, got, err)
		}
	}
	if n := w.count(`SELECT count(*) FROM grants`); n != 0 {
		t.Errorf("%d grants", n)
	}
}

func TestAnotherRegistrationOfTheSameNameInheritsNothing(t *testing.T) {
	w := newWorld(t)
	w.tokens("contacts:read org:read")
	_, registered := w.register(`{"client_name":"Desktop","token_endpoint_auth_method":"none","redirect_uris":["https://imitation.example/cb"]}`)
	imitation := registered["client_id"].(string)
	request := w.mustBegin(query(imitation, "redirect_uri", "https://imitation.example/cb", "scope", "org:read"))
	p, err := w.server.Pending(t.Context(), request, browser)
	if err != nil || p.ClientName != "Desktop" || p.RedirectHost != "imitation.example" {
		t.Fatalf("%+v %v", p, err)
	}
	held, since, err := w.server.Held(t.Context(), p, w.owner.ID, w.org.ID)
	if err != nil || len(held) != 0 || !since.IsZero() {
		t.Errorf("it holds %v since %s, %v", held, since, err)
	}
	for _, token := range []string{"sb_ac_x", p.ID} { // nothing is worth a code before the person answers
		if got := w.exchange(token, "client_id", imitation); got != refusal(400, "invalid_grant") {
			t.Errorf("%+v", got)
		}
	}
	if n := w.count(`SELECT count(*) FROM connections c JOIN clients cl ON cl.id = c.client_id WHERE cl.id = ?`, imitation); n != 0 {
		t.Errorf("%d connections before anybody answered", n)
	}
}

func TestAStepUpIsASecondGrantUnderTheSameConnection(t *testing.T) {
	w := newWorld(t)
	held := func(what, want string) {
		t.Helper()
		p, err := w.server.Pending(t.Context(), w.mustBegin(query(w.desktop)), browser)
		if err != nil {
			t.Fatal(err)
		}
		got, since, err := w.server.Held(t.Context(), p, w.owner.ID, w.org.ID)
		if err != nil || got.String() != want || since.IsZero() != (want == "") {
			t.Errorf("%s the connection holds %q since %s, %v; want %q", what, got, since, err, want)
		}
	}
	held("before", "")
	code := w.code("org:read")
	held("while the code is unused", "")
	first := w.exchange(code)
	held("after one sign-in", "org:read")
	second := w.tokens("contacts:read org:read")
	held("after the step-up", "contacts:read org:read")
	w.alive("the grant before the step-up", first)
	w.alive("the step-up", second)
	one, _ := w.who(first.Access)
	two, _ := w.who(second.Access)
	if one.ID != two.ID || one.Scopes.String() != "org:read" || two.Scopes.String() != "contacts:read org:read" {
		t.Errorf("%+v\n%+v", one, two)
	}

	if err := w.auth.RevokeConnection(w.asOwner(), one.ID); err != nil {
		t.Fatal(err)
	}
	w.dead("after revocation", first)
	w.dead("after revocation", second)
	held("after revocation", "")
	third := w.tokens("org:read")
	again, err := w.who(third.Access)
	if err != nil || again.ID == one.ID {
		t.Errorf("reconnecting revived the connection: %+v %v", again, err)
	}
	w.dead("after reconnecting", first)
}

func TestACodeOfARevokedConnectionIsWorthNothing(t *testing.T) {
	w := newWorld(t)
	w.tokens("org:read")
	code := w.code("org:read")
	who := ""
	if err := w.store.QueryRow(t.Context(), `SELECT id FROM connections`, nil, &who); err != nil {
		t.Fatal(err)
	}
	if err := w.auth.RevokeConnection(w.asOwner(), who); err != nil {
		t.Fatal(err)
	}
	if got := w.exchange(code); got != refusal(400, "invalid_grant") {
		t.Errorf("%+v", got)
	}
}

func TestConsentIsAuditedWithTheAppAndWhatItGot(t *testing.T) {
	w := newWorld(t)
	w.tokens("org:read")
	entries, _, err := w.audit.List(w.asOwner(), audit.Filter{Action: audit.Consent})
	if err != nil || len(entries) != 1 {
		t.Fatal(entries, err)
	}
	got := entries[0]
	got.ID, got.At, got.Subject = "", store.Time{}, ""
	want := audit.Entry{
		OrgID: store.OrgID(w.org.ID), Action: "consent", Outcome: audit.OK, PersonID: w.owner.ID, PersonName: "owner@harbor.example", Via: "browser", ViaName: "Web page",
		Detail: audit.Detail{"app": "Desktop", "scopes": "org:read"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
