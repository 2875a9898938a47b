package auth

import (
	"context"
	"strings"
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

func TestAKeyIsShownOnceAndListedWithoutItsSecret(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		admin := w.people[scope.Admin]
		now := time.Now().UTC()
		secret, made, err := w.auth.CreateKey(w.as(scope.Admin), NewKey{Name: " CI ", Scopes: scope.Of("people", "org:write"), Expires: time.Hour})
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(secret, "sb_live_") || len(secret) != len("sb_live_")+43 {
			t.Errorf("the key is %q", secret)
		}
		want := Key{
			ID: made.ID, Name: "CI", Hint: secret[:12], PersonID: admin.ID, PersonName: admin.Email, Scopes: scope.Of("contacts:read", "contacts:write", "org:write"),
			CreatedAt: now, ExpiresAt: now.Add(time.Hour),
		}
		if diff := cmp.Diff(want, made); diff != "" {
			t.Error(diff)
		}
		listed, err := w.auth.Keys(w.as(scope.Admin))
		if diff := cmp.Diff([]Key{want}, listed); err != nil || diff != "" {
			t.Errorf("%v\n%s", err, diff)
		}
		time.Sleep(time.Hour)
		want.Expired = true
		listed, err = w.auth.Keys(w.as(scope.Admin))
		if diff := cmp.Diff([]Key{want}, listed); err != nil || diff != "" {
			t.Errorf("when it has ended: %v\n%s", err, diff)
		}
		entries := []audit.Entry{{
			OrgID: store.OrgID(w.org.ID), Action: "key_create", Outcome: audit.OK, PersonID: admin.ID, PersonName: admin.Email, Via: caller.Browser, ViaName: "Web page",
			Subject: made.ID, Detail: audit.Detail{"name": "CI", "scopes": "contacts:read contacts:write org:write"},
		}}
		if diff := cmp.Diff(entries, w.recorded(w.as(scope.Owner))); diff != "" {
			t.Error(diff)
		}
	})
}

func TestAKeyThatWouldNotWorkIsNotMade(t *testing.T) {
	w := newWorld(t)
	for name, c := range map[string]struct {
		role  scope.Role
		key   NewKey
		code  fault.Code
		field string
	}{
		"no name":                 {scope.Owner, NewKey{Name: " ", Scopes: scope.Of("org:read")}, fault.InvalidRequest, "name"},
		"a long name":             {scope.Owner, NewKey{Name: strings.Repeat("é", 121), Scopes: scope.Of("org:read")}, fault.InvalidRequest, "name"},
		"a name that is no UTF-8": {scope.Owner, NewKey{Name: "\xff", Scopes: scope.Of("org:read")}, fault.InvalidRequest, "name"},
		"a name with a NUL":       {scope.Owner, NewKey{Name: "a\x00b", Scopes: scope.Of("org:read")}, fault.InvalidRequest, "name"},
		"a name that turns round": {scope.Owner, NewKey{Name: "CI \u202eIC", Scopes: scope.Of("org:read")}, fault.InvalidRequest, "name"},
		"a name of two lines":     {scope.Owner, NewKey{Name: "CI\u2028x", Scopes: scope.Of("org:read")}, fault.InvalidRequest, "name"},
		"no scope":                {scope.Owner, NewKey{Name: "CI"}, fault.InvalidRequest, "scope"},
		"an unknown scope":        {scope.Owner, NewKey{Name: "CI", Scopes: scope.Of("org:read", "nothing:here")}, fault.InvalidRequest, "scope"},
		"a scope no tool needs":   {scope.Owner, NewKey{Name: "CI", Scopes: scope.Of("people:delete")}, fault.InvalidRequest, "scope"},
		"a scope the role lacks":  {scope.Viewer, NewKey{Name: "CI", Scopes: scope.Of("org:read", "org:write")}, fault.Forbidden, "scope"},
		"one in a group of them":  {scope.Viewer, NewKey{Name: "CI", Scopes: scope.Of("people")}, fault.Forbidden, "scope"},
		"an end in the past":      {scope.Owner, NewKey{Name: "CI", Scopes: scope.Of("org:read"), Expires: -1}, fault.InvalidRequest, "expires"},
		"an end too far":          {scope.Owner, NewKey{Name: "CI", Scopes: scope.Of("org:read"), Expires: maxKeyLifetime + 1}, fault.InvalidRequest, "expires"},
	} {
		secret, _, err := w.auth.CreateKey(w.as(c.role), c.key)
		f, ok := fault.Of(err, "")
		if !ok || f.Code != c.code || f.Details["field"] != c.field || secret != "" {
			t.Errorf("%s: %v %v", name, err, f.Details)
		}
	}
	if _, _, err := w.auth.CreateKey(t.Context(), NewKey{Name: "CI", Scopes: scope.Of("org:read")}); err == nil {
		t.Error("nobody made a key")
	}
	for _, role := range scope.Roles() {
		if keys, err := w.auth.Keys(w.as(role)); err != nil || len(keys) != 0 {
			t.Errorf("%v %v", keys, err)
		}
	}
	if got := w.recorded(w.as(scope.Owner)); len(got) != 0 {
		t.Errorf("audited: %v", got)
	}
}

func TestKeysAreSeenAndRevokedAsConnectionsAre(t *testing.T) {
	w := newWorld(t)
	secrets, keys := map[scope.Role]string{}, map[scope.Role]Key{}
	for _, role := range scope.Roles() {
		secrets[role], keys[role] = w.key(role, "org:read", 0)
	}
	listed := func(ctx context.Context) []string {
		got, err := w.auth.Keys(ctx)
		if err != nil {
			t.Fatal(err)
		}
		out := []string{}
		for _, k := range got {
			out = append(out, k.ID)
		}
		return out
	}
	all := []string{keys[scope.Owner].ID, keys[scope.Admin].ID, keys[scope.Member].ID, keys[scope.Viewer].ID}
	for role, want := range map[scope.Role][]string{scope.Owner: all, scope.Admin: all, scope.Member: {keys[scope.Member].ID}, scope.Viewer: {keys[scope.Viewer].ID}} {
		if diff := cmp.Diff(want, listed(w.as(role))); diff != "" {
			t.Errorf("%s: %s", role, diff)
		}
	}
	if got := listed(w.asNeighbour()); len(got) != 0 {
		t.Errorf("the neighbour sees %v", got)
	}

	for _, c := range []struct {
		name    string
		ctx     context.Context
		of      scope.Role
		allowed bool
	}{
		{"neighbour, the owner's", w.asNeighbour(), scope.Owner, false},
		{"member, the owner's", w.as(scope.Member), scope.Owner, false},
		{"viewer, a member's", w.as(scope.Viewer), scope.Member, false},
		{"viewer, their own", w.as(scope.Viewer), scope.Viewer, true},
		{"viewer, their own once more", w.as(scope.Viewer), scope.Viewer, false},
		{"admin, a member's", w.as(scope.Admin), scope.Member, true},
		{"admin, the owner's", w.as(scope.Admin), scope.Owner, true},
	} {
		_, before := w.call("Bearer " + secrets[c.of])
		err := w.auth.RevokeKey(c.ctx, keys[c.of].ID)
		unknown := w.auth.RevokeKey(c.ctx, "key_nowhere").Error()
		if c.allowed != (err == nil) || !c.allowed && (!isFault(fault.NotFound)(err) || err.Error() != unknown) {
			t.Errorf("%s: %v, and of one that does not exist: %s", c.name, err, unknown)
		}
		if _, after := w.call("Bearer " + secrets[c.of]); c.allowed && !cmp.Equal(after, &Unauthorized{"it has been revoked"}) || !c.allowed && (before == nil) != (after == nil) {
			t.Errorf("%s: before %v, after %v", c.name, before, after)
		}
	}
	for _, id := range []string{"", "key_nowhere", "\x00"} {
		if err := w.auth.RevokeKey(w.as(scope.Owner), id); !isFault(fault.NotFound)(err) {
			t.Errorf("%q: %v", id, err)
		}
	}
	if diff := cmp.Diff([]string{keys[scope.Admin].ID}, listed(w.as(scope.Owner))); diff != "" {
		t.Error(diff)
	}
}

func TestAPersonHasABoundedNumberOfKeys(t *testing.T) {
	w := newWorld(t)
	var last Key
	for range mostKeys {
		_, last = w.key(scope.Member, "org:read", time.Hour)
	}
	if _, _, err := w.auth.CreateKey(w.as(scope.Member), NewKey{Name: "CI", Scopes: scope.Of("org:read")}); !fault.Is(err, fault.Forbidden) {
		t.Errorf("one more: %v", err)
	}
	w.key(scope.Owner, "org:read", time.Hour) // somebody else's are not counted
	w.exec(`UPDATE api_keys SET expires_at = ? WHERE id = ?`, store.Now().Add(-time.Hour), last.ID)
	_, last = w.key(scope.Member, "org:read", time.Hour) // nor are those that have ended
	if err := w.auth.RevokeKey(w.as(scope.Member), last.ID); err != nil {
		t.Fatal(err)
	}
	w.key(scope.Member, "org:read", time.Hour)
}
