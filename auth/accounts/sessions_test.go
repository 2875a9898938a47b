package accounts

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"switchboard/internal/caller"
	"switchboard/internal/scope"
)

func TestASessionIsFoundByItsTokenUntilItEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		made := w.user("amira@harbor.example", "Harbor", scope.Owner)
		now := time.Now().UTC()
		token, started, err := w.StartSession(t.Context(), made.Person.ID)
		want := Session{ID: started.ID, Person: made.Person, OrgID: made.Organization.ID, CreatedAt: now, ExpiresAt: now.Add(SessionLifetime)}
		if diff := cmp.Diff(want, started); err != nil || diff != "" {
			t.Errorf("%v\n%s", err, diff)
		}
		another, _, err := w.StartSession(t.Context(), made.Person.ID)
		if err != nil {
			t.Fatal(err)
		}
		found, err := w.Session(t.Context(), token)
		if diff := cmp.Diff(want, found); err != nil || diff != "" {
			t.Errorf("%v\n%s", err, diff)
		}
		for _, unknown := range []string{"", "x", token + "x", token[1:], started.ID, w.Secrets.Hash(token), "\x00"} {
			if _, err := w.Session(t.Context(), unknown); !errors.Is(err, ErrNoSession) {
				t.Errorf("%q: %v", unknown, err)
			}
		}

		for range 2 { // signing out twice is no error
			if err := w.EndSession(t.Context(), started.ID); err != nil {
				t.Error(err)
			}
		}
		if _, err := w.Session(t.Context(), token); !errors.Is(err, ErrNoSession) {
			t.Errorf("after signing out: %v", err)
		}
		time.Sleep(SessionLifetime - time.Second)
		if err := w.Sweep(t.Context()); err != nil {
			t.Error(err)
		}
		if _, err := w.Session(t.Context(), another); err != nil {
			t.Errorf("another browser: %v", err)
		}
		time.Sleep(2 * time.Second)
		if _, err := w.Session(t.Context(), another); !errors.Is(err, ErrNoSession) {
			t.Errorf("after its time: %v", err)
		}
		if err := w.Sweep(t.Context()); err != nil {
			t.Error(err)
		}
		var n int64
		if err := w.Store.DB(t.Context()).Model(&browserSession{}).Count(&n).Error; err != nil || n != 0 {
			t.Errorf("%d sessions after sweeping, %v", n, err)
		}
	})
}

func TestASessionLooksAtOrganizationsOfItsPersonOnly(t *testing.T) {
	w := newWorld(t)
	quay := w.user("amira@harbor.example", "Quay", scope.Viewer)
	harbor := w.user("amira@harbor.example", "harbor", scope.Owner)
	dock := w.user("noor@dock.example", "Dock", scope.Owner)
	token, s, err := w.StartSession(t.Context(), quay.Person.ID)
	if err != nil || s.OrgID != quay.Organization.ID && s.OrgID != harbor.Organization.ID {
		t.Fatal(s, err)
	}
	if err := w.UseOrganization(t.Context(), s.ID, harbor.Organization.ID); err != nil {
		t.Error(err)
	}
	for _, foreign := range []string{dock.Organization.ID, "org_nowhere", "", "\x00"} {
		if err := w.UseOrganization(t.Context(), s.ID, foreign); !errors.Is(err, ErrNoMember) {
			t.Errorf("%q: %v", foreign, err)
		}
	}
	if err := w.UseOrganization(t.Context(), "ses_nowhere", harbor.Organization.ID); !errors.Is(err, ErrNoSession) {
		t.Error(err)
	}
	s, err = w.Session(t.Context(), token)
	if err != nil || s.OrgID != harbor.Organization.ID {
		t.Fatal(s, err)
	}
	want := caller.Caller{Org: harbor.Organization.ID, Person: s.Person.ID, PersonName: "amira@harbor.example", Role: scope.Owner}
	got, err := w.Member(t.Context(), s.Person, harbor.Organization.ID)
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v\n%s", err, diff)
	}
	want.Org, want.Role = quay.Organization.ID, scope.Viewer
	got, err = w.Member(t.Context(), s.Person, quay.Organization.ID)
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v\n%s", err, diff)
	}
	if _, err := w.Member(t.Context(), s.Person, dock.Organization.ID); !errors.Is(err, ErrNoMember) {
		t.Error(err)
	}
	memberships, err := w.Memberships(t.Context(), s.Person.ID)
	if err != nil || len(memberships) != 2 {
		t.Fatal(memberships, err)
	}
	if _, err := w.Store.Exec(t.Context(), `DELETE FROM memberships WHERE person_id = ?`, s.Person.ID); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Member(t.Context(), s.Person, harbor.Organization.ID); !errors.Is(err, ErrNoMember) {
		t.Errorf("after leaving: %v", err)
	}
	if _, s, err := w.StartSession(t.Context(), s.Person.ID); err != nil || s.OrgID != "" {
		t.Errorf("somebody without an organization: %+v %v", s, err)
	}
}

func TestMembershipsAreListedByNameWithTheirRoles(t *testing.T) {
	w := newWorld(t)
	b, a := w.user("amira@harbor.example", "Beta", scope.Viewer), w.user("amira@harbor.example", "Alpha", scope.Admin)
	w.user("noor@harbor.example", "Alpha", scope.Member)
	got, err := w.Memberships(t.Context(), a.Person.ID)
	want := []Membership{{a.Organization, scope.Admin}, {b.Organization, scope.Viewer}}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v\n%s", err, diff)
	}
}
