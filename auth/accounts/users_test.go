package accounts

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"switchboard/internal/audit"
	"switchboard/internal/caller"
	"switchboard/internal/scope"
	"switchboard/internal/store"
)

func TestCreateUserMakesWhatIsMissingAndKeepsWhatIsThere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		now := time.Now().UTC()
		amira := Person{Email: "amira@harbor.example", Name: "Amira"}
		harbor := Organization{Name: "Harbor", HomeCountry: "US", Timezone: "UTC", Locale: "en", CreatedAt: now}
		quay := Organization{Name: "Quay", HomeCountry: "EG", Timezone: "Africa/Cairo", Locale: "ar", CreatedAt: now}
		for _, c := range []struct {
			name string
			in   NewUser
			want CreatedUser
		}{
			{"somebody new in a new organization", NewUser{Email: " Amira@Harbor.example", Name: " Amira ", Password: password, Organization: " Harbor ", Role: scope.Owner},
				CreatedUser{Person: amira, Organization: harbor, NewPerson: true, NewOrganization: true, Role: scope.Owner}},
			{"the same again", NewUser{Email: "amira@harbor.example", Organization: "harbor", Role: scope.Owner},
				CreatedUser{Person: amira, Organization: harbor, Role: scope.Owner, PreviousRole: scope.Owner}},
			{"another owner", NewUser{Email: "olga@harbor.example", Password: password, Organization: "Harbor", Role: scope.Owner},
				CreatedUser{Person: Person{Email: "olga@harbor.example"}, Organization: harbor, NewPerson: true, Role: scope.Owner}},
			{"another role", NewUser{Email: "amira@harbor.example", Password: "a password that is ignored", Organization: "HARBOR", Role: scope.Admin},
				CreatedUser{Person: amira, Organization: harbor, Role: scope.Admin, PreviousRole: scope.Owner}},
			{"a known address elsewhere", NewUser{Email: "amira@harbor.example", Organization: "Quay", Role: scope.Viewer, Country: "EG", Timezone: "Africa/Cairo", Locale: "ar"},
				CreatedUser{Person: amira, Organization: quay, NewOrganization: true, Role: scope.Viewer}},
			{"settings of a known organization stay", NewUser{Email: "noor@quay.example", Password: password, Organization: "quay", Role: scope.Member, Country: "FR"},
				CreatedUser{Person: Person{Email: "noor@quay.example"}, Organization: quay, NewPerson: true, Role: scope.Member}},
		} {
			got, err := w.CreateUser(t.Context(), c.in)
			id := got.Organization.ID
			got.Person.ID, got.Organization.ID = "", ""
			if diff := cmp.Diff(c.want, got); err != nil || diff != "" {
				t.Errorf("%s: %v\n%s", c.name, err, diff)
			}
			if byID, err := w.FindOrganization(t.Context(), id); err != nil || byID.Name != c.want.Organization.Name {
				t.Errorf("%s: by id %+v %v", c.name, byID, err)
			}
		}
		if got := w.try("amira@harbor.example", password, "192.0.2.1"); got != "in" {
			t.Errorf("the first password is gone: %s", got)
		}
	})
}

func TestASetPasswordSignsInAndOutEverywhereElse(t *testing.T) {
	w := newWorld(t)
	made := w.user("amira@harbor.example", "Harbor", scope.Owner)
	old, _, err := w.StartSession(t.Context(), made.Person.ID)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.SetPassword(t.Context(), "amira@harbor.example", "short"); err == nil {
		t.Error("a password that is too short")
	}
	if _, err := w.SetPassword(t.Context(), "nobody@harbor.example", "another horse battery"); !store.IsNotFound(err) {
		t.Errorf("an unknown address: %v", err)
	}
	if _, err := w.SetPassword(t.Context(), " Amira@harbor.example", "another horse battery"); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Session(t.Context(), old); !errors.Is(err, ErrNoSession) {
		t.Errorf("the old session: %v", err)
	}
	if got := w.try("amira@harbor.example", password, "192.0.2.1"); got != "mismatch" {
		t.Errorf("the old password: %s", got)
	}
	if got := w.try("amira@harbor.example", "another horse battery", "192.0.2.1"); got != "in" {
		t.Errorf("the new password: %s", got)
	}
	if entries := w.recorded(made.Organization); entries[1].Action != audit.PasswordSet || entries[1].Via != caller.System {
		t.Errorf("%+v", entries[1])
	}
}

func TestTheLastOwnerStaysOne(t *testing.T) {
	w := newWorld(t)
	w.user("amira@harbor.example", "Harbor", scope.Owner)
	_, err := w.CreateUser(t.Context(), NewUser{Email: "amira@harbor.example", Organization: "Harbor", Role: scope.Viewer})
	if owned, ownedErr := w.HasOwner(t.Context()); !errors.Is(err, ErrLastOwner) || !owned || ownedErr != nil {
		t.Errorf("%v, owned %v %v", err, owned, ownedErr)
	}
}

func TestCreateUserIsAudited(t *testing.T) {
	w := newWorld(t)
	made := w.user("amira@harbor.example", "Harbor", scope.Owner)
	want := []audit.Entry{{
		OrgID: store.OrgID(made.Organization.ID), Action: "user_create", Outcome: audit.OK, Via: caller.System, ViaName: "Command line",
		Subject: made.Person.ID, Detail: audit.Detail{"role": "owner"},
	}}
	if diff := cmp.Diff(want, w.recorded(made.Organization)); diff != "" {
		t.Error(diff)
	}
}

func TestAUserThatCannotBeIsRefusedAndNothingIsMade(t *testing.T) {
	w := newWorld(t)
	good := NewUser{Email: "amira@harbor.example", Password: password, Organization: "Harbor", Role: scope.Owner}
	for _, c := range []struct {
		change func(*NewUser)
		want   Invalid
	}{
		{func(n *NewUser) { n.Password = "" }, Invalid{"password", "required"}},
		{func(n *NewUser) { n.Password = "short" }, Invalid{"password", "too_short"}},
		{func(n *NewUser) { n.Password = " Amira@Harbor.example "[1:21] }, Invalid{"password", "common"}},
		{func(n *NewUser) { n.Role = "king" }, Invalid{"role", "role"}},
		{func(n *NewUser) { n.Role = "" }, Invalid{"role", "role"}},
		{func(n *NewUser) { n.Organization = "" }, Invalid{"org", "required"}},
		{func(n *NewUser) { n.Email = "amira" }, Invalid{"email", "email"}},
		{func(n *NewUser) { n.Name = strings.Repeat("x", 121) }, Invalid{"name", "too_long"}},
		{func(n *NewUser) { n.Country = "USA" }, Invalid{"country", "country"}},
		{func(n *NewUser) { n.Timezone = "CET+1" }, Invalid{"timezone", "timezone"}},
		{func(n *NewUser) { n.Locale = "de" }, Invalid{"locale", "locale"}},
	} {
		n := good
		c.change(&n)
		_, err := w.CreateUser(t.Context(), n)
		var got *Invalid
		if !errors.As(err, &got) || *got != c.want {
			t.Errorf("want %+v, got %v", c.want, err)
		}
	}
	var n int64
	if err := w.Store.DB(t.Context()).Model(&organization{}).Count(&n).Error; err != nil || n != 0 {
		t.Errorf("%d organizations, %v", n, err)
	}
}

func TestTheFirstOwnerIsTheOneWhoHasBeenItLongest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		org := w.user("viewer@harbor.example", "Harbor", scope.Viewer).Organization
		if _, err := w.FirstOwner(t.Context(), org.ID); !store.IsNotFound(err) {
			t.Errorf("an organization without an owner: %v", err)
		}
		want := ""
		for _, email := range []string{"z@harbor.example", "a@harbor.example"} {
			made := w.user(email, "Harbor", scope.Owner)
			if want == "" {
				want = made.Person.ID
			}
			time.Sleep(time.Second)
		}
		got, err := w.FirstOwner(t.Context(), org.ID)
		if err != nil || got.ID != want {
			t.Errorf("%+v %v", got, err)
		}
		operator, err := w.Operator(t.Context(), got, org.ID)
		if diff := cmp.Diff(caller.Caller{
			Org: org.ID, Person: got.ID, PersonName: "z@harbor.example", Role: scope.Owner, Via: caller.System, Name: "Command line",
		}, operator); err != nil || diff != "" {
			t.Errorf("%v\n%s", err, diff)
		}
	})
}

func TestATimeZoneIsChanged(t *testing.T) {
	w := newWorld(t)
	harbor, quay := w.user("a@harbor.example", "Harbor", scope.Owner).Organization, w.user("a@harbor.example", "Quay", scope.Owner).Organization
	if err := w.SetTimezone(t.Context(), harbor.ID, "Asia/Dubai"); err != nil {
		t.Fatal(err)
	}
	harbor.Timezone = "Asia/Dubai"
	for _, want := range []Organization{harbor, quay} {
		got, err := w.Organization(t.Context(), want.ID)
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("%v\n%s", err, diff)
		}
	}
}
