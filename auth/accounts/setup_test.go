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
	"switchboard/internal/trial"
)

func (w *world) link() string {
	w.t.Helper()
	link, err := w.NewSetupLink(w.t.Context())
	if err != nil {
		w.t.Fatal(err)
	}
	return link
}

func first() Setup {
	return Setup{Organization: " Harbor ", Country: "DE", Timezone: "Europe/Berlin", Locale: "ar", Name: "Amira", Email: " Amira@Harbor.example ", Password: password}
}

func TestASetupLinkMakesTheOwnerAndIsUsedUp(t *testing.T) {
	w := newWorld(t)
	link, unused := w.link(), w.link()
	if err := w.SetupOpen(t.Context(), link); err != nil {
		t.Error(err)
	}
	amira, err := w.CompleteSetup(t.Context(), link, first())
	if diff := cmp.Diff(Person{ID: amira.ID, Email: "amira@harbor.example", Name: "Amira"}, amira); err != nil || diff != "" {
		t.Fatalf("%v\n%s", err, diff)
	}
	got, err := w.Memberships(t.Context(), amira.ID)
	if err != nil || len(got) != 1 {
		t.Fatal(got, err)
	}
	o := got[0].Organization
	want := Membership{Organization{ID: o.ID, Name: "Harbor", HomeCountry: "DE", Timezone: "Europe/Berlin", Locale: "ar", CreatedAt: o.CreatedAt}, scope.Owner}
	if diff := cmp.Diff(want, got[0]); diff != "" {
		t.Error(diff)
	}
	entries := []audit.Entry{{
		OrgID: store.OrgID(o.ID), Action: "user_create", Outcome: audit.OK, PersonID: amira.ID, PersonName: "Amira", Via: caller.Browser, ViaName: "Web page",
		Subject: amira.ID, Detail: audit.Detail{"role": "owner"},
	}}
	if diff := cmp.Diff(entries, w.recorded(o)); diff != "" {
		t.Error(diff)
	}
	if got := w.try("amira@harbor.example", password, "192.0.2.1"); got != "in" {
		t.Errorf("the owner cannot sign in: %s", got)
	}

	second := first()
	second.Organization, second.Email = "Quay", "noor@quay.example"
	for _, link := range []string{link, unused, "", "x"} {
		if err := w.SetupOpen(t.Context(), link); !errors.Is(err, ErrNoSetup) {
			t.Errorf("once there is an owner, %.12q opens: %v", link, err)
		}
		if _, err := w.CompleteSetup(t.Context(), link, second); !errors.Is(err, ErrNoSetup) {
			t.Errorf("once there is an owner, %.12q works: %v", link, err)
		}
	}
	if _, err := w.NewSetupLink(t.Context()); !errors.Is(err, ErrNoSetup) {
		t.Errorf("a new link once there is an owner: %v", err)
	}
}

func TestTwoSetupLinksAtOnceMakeOneOwner(t *testing.T) {
	for range 5 {
		w := newWorld(t)
		links := []string{w.link(), w.link(), w.link(), w.link()}
		won := 0
		for _, err := range trial.Parallel(8, func(i int) error {
			in := first()
			in.Organization, in.Email = "Harbor"+string(rune('A'+i)), string(rune('a'+i))+"@harbor.example"
			_, err := w.CompleteSetup(t.Context(), links[i/2], in)
			return err
		}) {
			if err == nil {
				won++
			} else if !errors.Is(err, ErrNoSetup) {
				t.Error(err)
			}
		}
		var owners, organizations int64
		if err := errors.Join(w.Store.DB(t.Context()).Model(&membership{}).Count(&owners).Error, w.Store.DB(t.Context()).Model(&organization{}).Count(&organizations).Error); err != nil {
			t.Fatal(err)
		}
		if won != 1 || owners != 1 || organizations != 1 {
			t.Errorf("%d answers, %d owners, %d organizations", won, owners, organizations)
		}
	}
}

func TestBadInputNamesTheFieldAndLeavesTheLink(t *testing.T) {
	w := newWorld(t)
	link := w.link()
	for _, c := range []struct {
		change func(*Setup)
		want   Invalid
	}{
		{func(s *Setup) { s.Organization = " " }, Invalid{"org", "required"}},
		{func(s *Setup) { s.Organization = "\x00" }, Invalid{"org", "required"}},
		{func(s *Setup) { s.Organization = strings.Repeat("ü", 121) }, Invalid{"org", "too_long"}},
		{func(s *Setup) { s.Country = "Germany" }, Invalid{"country", "country"}},
		{func(s *Setup) { s.Country = "" }, Invalid{"country", "country"}},
		{func(s *Setup) { s.Timezone = "Mars/Olympus" }, Invalid{"timezone", "timezone"}},
		{func(s *Setup) { s.Timezone = "../../etc/passwd" }, Invalid{"timezone", "timezone"}},
		{func(s *Setup) { s.Timezone = "" }, Invalid{"timezone", "timezone"}},
		{func(s *Setup) { s.Locale = "fr" }, Invalid{"locale", "locale"}},
		{func(s *Setup) { s.Name = "" }, Invalid{"name", "required"}},
		{func(s *Setup) { s.Name = strings.Repeat("n", 121) }, Invalid{"name", "too_long"}},
		{func(s *Setup) { s.Email = "" }, Invalid{"email", "required"}},
		{func(s *Setup) { s.Email = "amira" }, Invalid{"email", "email"}},
		{func(s *Setup) { s.Email = "Amira <amira@harbor.example>" }, Invalid{"email", "email"}},
		{func(s *Setup) { s.Email = "a@b.example, c@d.example" }, Invalid{"email", "email"}},
		{func(s *Setup) { s.Email = "a@b\x00.example" }, Invalid{"email", "email"}},
		{func(s *Setup) { s.Email = strings.Repeat("a", 250) + "@b.example" }, Invalid{"email", "email"}},
		{func(s *Setup) { s.Password = "" }, Invalid{"password", "required"}},
		{func(s *Setup) { s.Password = "elevenchars" }, Invalid{"password", "too_short"}},
		{func(s *Setup) { s.Password = strings.Repeat("é", 513) }, Invalid{"password", "too_long"}},
		{func(s *Setup) { s.Password = "amira@harbor.example" }, Invalid{"password", "common"}},
		{func(s *Setup) { s.Password = strings.Repeat("a", 12) }, Invalid{"password", "common"}},
		{func(s *Setup) { s.Password = strings.Repeat("é", 12) }, Invalid{"password", "common"}},
	} {
		in := first()
		c.change(&in)
		_, err := w.CompleteSetup(t.Context(), link, in)
		var got *Invalid
		if !errors.As(err, &got) || *got != c.want || got.Problem() == "" {
			t.Errorf("want %+v, got %v", c.want, err)
		}
	}
	in := first()
	in.Name = "Amira\x00\n Al-Sayed"
	if p, err := w.CompleteSetup(t.Context(), link, in); err != nil || p.Name != "Amira Al-Sayed" {
		t.Errorf("the link does not work any more: %+v %v", p, err)
	}
}

func TestASetupLinkWorksForAnHour(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		link := w.link()
		time.Sleep(SetupLifetime - time.Second)
		if err := w.SetupOpen(t.Context(), link); err != nil {
			t.Error(err)
		}
		time.Sleep(2 * time.Second)
		if err := w.SetupOpen(t.Context(), link); !errors.Is(err, ErrNoSetup) {
			t.Error(err)
		}
		if _, err := w.CompleteSetup(t.Context(), link, first()); !errors.Is(err, ErrNoSetup) {
			t.Error(err)
		}
		if err := w.Sweep(t.Context()); err != nil {
			t.Error(err)
		}
		if _, err := w.CompleteSetup(t.Context(), w.link(), first()); err != nil {
			t.Errorf("a new link: %v", err)
		}
	})
}

func TestSetupTakesOverWhatTheCommandLineMadeWithoutAnOwner(t *testing.T) {
	w := newWorld(t)
	made := w.user("amira@harbor.example", "harbor", scope.Viewer)
	old, _, err := w.StartSession(t.Context(), made.Person.ID)
	if err != nil {
		t.Fatal(err)
	}
	in := first()
	want := made.Organization
	want.HomeCountry, want.Timezone, want.Locale = in.Country, in.Timezone, in.Locale
	in.Password = "another horse battery"
	amira, err := w.CompleteSetup(t.Context(), w.link(), in)
	if err != nil || amira.ID != made.Person.ID || amira.Name != in.Name {
		t.Fatal(amira, err)
	}
	got, err := w.Memberships(t.Context(), amira.ID)
	if diff := cmp.Diff([]Membership{{want, scope.Owner}}, got); err != nil || diff != "" {
		t.Errorf("%v\n%s", err, diff)
	}
	if got := w.try("amira@harbor.example", in.Password, "192.0.2.1"); got != "in" {
		t.Errorf("with the password of the set-up: %s", got)
	}
	if _, err := w.Session(t.Context(), old); !errors.Is(err, ErrNoSession) {
		t.Errorf("a session under the old password: %v", err)
	}
}
