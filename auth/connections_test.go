package auth

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"switchboard/internal/audit"
	"switchboard/internal/caller"
	"switchboard/internal/fault"
	"switchboard/internal/scope"
	"switchboard/internal/store"
)

func idsOf(connections []Connection) []string {
	out := []string{}
	for _, c := range connections {
		out = append(out, c.ID)
	}
	return out
}

func TestAnAdminSeesEveryConnectionAndAnybodyElseTheirOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		client := w.client("App", `["https://app.example/cb"]`)
		of := map[scope.Role]connection{}
		for _, role := range scope.Roles() {
			of[role] = w.connect(w.people[role], w.org.ID, client, "org:read")
			time.Sleep(time.Minute)
		}
		foreign := w.connect(w.neighbour, w.otherOrg.ID, client, "org:read")
		if _, err := w.call("Bearer " + of[scope.Viewer].token); err != nil { // the last one used comes first
			t.Fatal(err)
		}
		all := []string{of[scope.Viewer].id, of[scope.Owner].id, of[scope.Admin].id, of[scope.Member].id}
		for _, c := range []struct {
			name string
			ctx  context.Context
			want []string
		}{
			{"owner", w.as(scope.Owner), all},
			{"admin", w.as(scope.Admin), all},
			{"member", w.as(scope.Member), []string{of[scope.Member].id}},
			{"viewer", w.as(scope.Viewer), []string{of[scope.Viewer].id}},
			{"neighbour", w.asNeighbour(), []string{foreign.id}},
			{"a role that does not exist", caller.With(t.Context(), caller.Caller{Org: w.org.ID, Role: "king"}), []string{}},
		} {
			got, err := w.auth.Connections(c.ctx)
			if diff := cmp.Diff(c.want, idsOf(got)); err != nil || diff != "" {
				t.Errorf("%s: %v\n%s", c.name, err, diff)
			}
		}
		if _, err := w.auth.Connections(t.Context()); err == nil {
			t.Error("nobody sees connections")
		}
	})
}

func TestAConnectionShowsWhatItsLiveGrantsHoldTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		member := w.people[scope.Member]
		began := time.Now().UTC()
		app := w.connect(member, w.org.ID, w.client("Desktop", `["https://app.example:8443/cb","http://localhost/cb"]`), "org:read")
		time.Sleep(time.Hour)
		stepUp := w.grant(app, "contacts:read org:read")
		w.exec(`UPDATE grants SET redirect_uri = 'http://localhost:4711/cb' WHERE id = ?`, stepUp.grant)
		gone := w.grant(app, "billing:read")
		w.exec(`UPDATE grants SET revoked_at = 1 WHERE id = ?`, gone.grant)
		want := Connection{
			ID: app.id, PersonID: member.ID, PersonName: member.Email, ClientName: "Desktop", RedirectHost: "localhost:4711",
			Scopes: scope.Of("contacts:read", "org:read"), CreatedAt: began,
			Grants: []Grant{
				{app.grant, scope.Of("org:read"), began, began.Add(24 * time.Hour)},
				{stepUp.grant, scope.Of("contacts:read", "org:read"), began.Add(time.Hour), began.Add(25 * time.Hour)},
			},
		}
		got, err := w.auth.Connections(w.as(scope.Member))
		if err != nil || len(got) != 1 {
			t.Fatal(got, err)
		}
		got[0].ClientID = ""
		if diff := cmp.Diff(want, got[0]); diff != "" {
			t.Error(diff)
		}
		time.Sleep(24*time.Hour + time.Second)
		if got, err := w.auth.Connections(w.as(scope.Member)); err != nil || len(got) != 0 {
			t.Errorf("a connection that can do nothing any more: %+v %v", got, err)
		}
	})
}

func TestTheRedirectOfAConnectionIsAHostOnlyWhereItIsOne(t *testing.T) {
	w := newWorld(t)
	for redirect, want := range map[string]string{
		"https://claude.ai/api/mcp/auth_callback": "claude.ai",
		"http://127.0.0.1:33418/":                 "127.0.0.1:33418",
		"cursor://claude.ai/oauth/callback":       "cursor:",
		"com.example.app:/cb":                     "com.example.app:",
	} {
		app := w.connect(w.people[scope.Member], w.org.ID, w.client("App", `[]`), "org:read")
		w.exec(`UPDATE grants SET redirect_uri = ? WHERE id = ?`, redirect, app.grant)
		got, err := w.auth.Connections(w.as(scope.Member))
		if err != nil || len(got) != 1 || got[0].RedirectHost != want {
			t.Errorf("%s: %+v %v", redirect, got, err)
		}
		if err := w.auth.RevokeConnection(w.as(scope.Member), app.id); err != nil {
			t.Error(err)
		}
	}
}

func TestOnlyWhoSeesAConnectionMayRevokeIt(t *testing.T) {
	w := newWorld(t)
	client := w.client("Desktop", `["https://app.example/cb"]`)
	for _, c := range []struct {
		name    string
		owner   scope.Role
		ctx     context.Context
		allowed bool
	}{
		{"admin, a member's", scope.Member, w.as(scope.Admin), true},
		{"owner, an admin's", scope.Admin, w.as(scope.Owner), true},
		{"admin, the owner's", scope.Owner, w.as(scope.Admin), true},
		{"member, their own", scope.Member, w.as(scope.Member), true},
		{"viewer, their own", scope.Viewer, w.as(scope.Viewer), true},
		{"member, a viewer's", scope.Viewer, w.as(scope.Member), false},
		{"viewer, the owner's", scope.Owner, w.as(scope.Viewer), false},
		{"neighbour, an owner's", scope.Owner, w.asNeighbour(), false},
	} {
		w.exec(`UPDATE connections SET revoked_at = 1 WHERE revoked_at IS NULL`)
		app := w.connect(w.people[c.owner], w.org.ID, client, "org:read")
		err := w.auth.RevokeConnection(c.ctx, app.id)
		if c.allowed != (err == nil) || !c.allowed && !w.saysNothingOf(err) {
			t.Errorf("%s: %v", c.name, err)
		}
		if _, err := w.call("Bearer " + app.token); c.allowed != (err != nil) {
			t.Errorf("%s: then the token %v", c.name, err)
		}
		if err := w.auth.RevokeConnection(w.as(scope.Owner), app.id); c.allowed != isFault(fault.NotFound)(err) {
			t.Errorf("%s, once more: %v", c.name, err)
		}
	}
	for _, id := range []string{"", "con_nowhere", "con\x00", w.people[scope.Owner].ID} {
		if err := w.auth.RevokeConnection(w.as(scope.Owner), id); !isFault(fault.NotFound)(err) {
			t.Errorf("%q: %v", id, err)
		}
	}
}

// saysNothingOf reports whether a refusal is, to the letter, that of a connection that does not exist.
func (w *world) saysNothingOf(err error) bool {
	return isFault(fault.NotFound)(err) && err.Error() == w.auth.RevokeConnection(w.as(scope.Owner), "con_nowhere").Error()
}

func TestRevokingIsAudited(t *testing.T) {
	w := newWorld(t)
	app := w.connect(w.people[scope.Member], w.org.ID, w.client("Desktop", `["https://app.example/cb"]`), "org:read")
	if err := w.auth.RevokeConnection(w.as(scope.Admin), app.id); err != nil {
		t.Fatal(err)
	}
	admin := w.people[scope.Admin]
	want := []audit.Entry{{
		OrgID: store.OrgID(w.org.ID), Action: "revoke", Outcome: audit.OK, PersonID: admin.ID, PersonName: admin.Email, Via: caller.Browser, ViaName: "Web page",
		Subject: app.id, Detail: audit.Detail{"kind": "connection", "app": "Desktop", "person": "member@harbor.example"},
	}}
	if diff := cmp.Diff(want, w.recorded(w.as(scope.Owner))); diff != "" {
		t.Error(diff)
	}
	if got := w.recorded(w.asNeighbour()); len(got) != 0 {
		t.Errorf("the neighbour reads %v", got)
	}
}
