package org_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"switchboard/internal/caller"
	"switchboard/internal/fault"
	"switchboard/internal/store/storetest"
	"switchboard/tools/org"
)

// registry holds the organizations that accounts would.
type registry struct {
	mu   sync.Mutex
	orgs map[string]org.Organization
}

func (r *registry) Organization(_ context.Context, id string) (org.Organization, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	o, ok := r.orgs[id]
	if !ok {
		return o, errors.New("no such organization")
	}
	return o, nil
}

func (r *registry) SetTimezone(_ context.Context, id, timezone string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	o := r.orgs[id]
	o.Timezone = timezone
	r.orgs[id] = o
	return nil
}

func open(t *testing.T, guides ...org.Guide) (s *org.Service, a, b context.Context) {
	t.Helper()
	s = org.New(org.Config{Store: storetest.Open(t), URL: "http://localhost:8080", Guides: guides, Organizations: &registry{orgs: map[string]org.Organization{
		"org_a": {ID: "org_a", Name: "Northwind", HomeCountry: "AE", Timezone: "Asia/Dubai", Locale: "ar"},
		"org_b": {ID: "org_b", Name: "Other", HomeCountry: "US", Timezone: "UTC", Locale: "en"},
	}}})
	as := func(id string) context.Context { return caller.With(t.Context(), caller.Caller{Org: id}) }
	return s, as("org_a"), as("org_b")
}

func ptr[T any](v T) *T { return &v }

func defaults() org.Outbound {
	return org.Outbound{AllowedCountries: []string{}, DefaultCountries: []string{"AE"}, Timezone: "Asia/Dubai",
		Window: org.Window{Start: "09:00", End: "18:00", Days: []int{1, 2, 3, 4, 5}}}
}

func TestAFreshOrganizationHasDefaults(t *testing.T) {
	s, ctx, _ := open(t)
	got, err := s.Settings(ctx, org.None{})
	if err != nil {
		t.Fatal(err)
	}
	want := org.Settings{ID: "org_a", Name: "Northwind", Locale: "ar", Status: "active", PlanID: "self_hosted", HomeCountry: "AE", Outbound: defaults()}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestWhatIsNotNamedStaysAsItIs(t *testing.T) {
	s, ctx, other := open(t)
	want := defaults()
	for _, step := range []struct {
		in     org.UpdateOutbound
		change func()
	}{
		{org.UpdateOutbound{}, func() {}},
		{org.UpdateOutbound{AllowedCountries: []string{"ae", "SA", "AE", "us"}}, func() { want.AllowedCountries = []string{"AE", "SA", "US"} }},
		{org.UpdateOutbound{Window: &org.Window{Start: "08:30", End: "20:00", Days: []int{4, 0, 4}}}, func() { want.Window = org.Window{Start: "08:30", End: "20:00", Days: []int{0, 4}} }},
		{org.UpdateOutbound{Timezone: ptr("Europe/Berlin")}, func() { want.Timezone = "Europe/Berlin" }},
		{org.UpdateOutbound{ConsentText: ptr("This call is recorded.")}, func() { want.ConsentText = "This call is recorded." }},
		{org.UpdateOutbound{ConsentText: ptr(""), AllowedCountries: []string{}}, func() { want.ConsentText, want.AllowedCountries = "", []string{} }},
	} {
		step.change()
		got, err := s.UpdateOutbound(ctx, step.in)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%+v: %s", step.in, diff)
		}
		read, err := s.Settings(ctx, org.None{})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, read.Outbound); diff != "" {
			t.Errorf("read after %+v: %s", step.in, diff)
		}
	}
	untouched, err := s.Settings(other, org.None{})
	if err != nil || untouched.Outbound.Timezone != "UTC" || untouched.Outbound.Window.Start != "09:00" {
		t.Errorf("another organization changed: %+v, %v", untouched, err)
	}
}

func TestPlacesAndTimesThatDoNotExistAreRefused(t *testing.T) {
	s, ctx, _ := open(t)
	for want, in := range map[string]org.UpdateOutbound{
		"allowedCountries[1]: ": {AllowedCountries: []string{"AE", "XX"}},
		"allowedCountries[0]: ": {AllowedCountries: []string{"UK"}},
		"window.end: must":      {Window: &org.Window{Start: "20:00", End: "09:00", Days: []int{1}}},
		"window.end: ":          {Window: &org.Window{Start: "09:00", End: "09:00", Days: []int{1}}},
		"timezone: ":            {Timezone: ptr("Local")},
		"timezone: must":        {Timezone: ptr("")},
		"timezone: must be":     {Timezone: ptr("../../etc/passwd")},
	} {
		in.ConsentText = ptr("must not stay")
		_, err := s.UpdateOutbound(ctx, in)
		if !fault.Is(err, fault.InvalidRequest) || !strings.HasPrefix(err.Error(), "invalid_request: "+want) {
			t.Errorf("%s: %v", want, err)
		}
	}
	got, err := s.Settings(ctx, org.None{})
	if err != nil || got.Outbound.ConsentText != "" {
		t.Errorf("a refused change left something: %+v, %v", got, err)
	}
}

func TestParallelChangesOfDifferentSettingsAllStay(t *testing.T) {
	s, ctx, _ := open(t)
	changes := []org.UpdateOutbound{
		{AllowedCountries: []string{"SA"}}, {ConsentText: ptr("x")}, {Window: &org.Window{Start: "10:00", End: "11:00", Days: []int{6}}}, {Timezone: ptr("UTC")},
	}
	var wait sync.WaitGroup
	errs := make([]error, len(changes))
	for i, in := range changes {
		wait.Go(func() { _, errs[i] = s.UpdateOutbound(ctx, in) })
	}
	wait.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	got, err := s.Settings(ctx, org.None{})
	want := org.Outbound{AllowedCountries: []string{"SA"}, DefaultCountries: []string{"AE"}, Timezone: "UTC", ConsentText: "x",
		Window: org.Window{Start: "10:00", End: "11:00", Days: []int{6}}}
	if diff := cmp.Diff(want, got.Outbound); diff != "" || err != nil {
		t.Error(diff, err)
	}
}

func TestNextStepsAreWhatIsNotDone(t *testing.T) {
	done := false
	s, ctx, _ := open(t, org.Guide{Step: "Connect an app", Why: "Because.", Tool: "some_tool", Page: "/connections",
		Done: func(context.Context) (bool, error) { return done, nil }})
	first, err := s.Started(ctx, org.None{})
	if err != nil {
		t.Fatal(err)
	}
	if len(first.NextSteps) != 2 || first.NextSteps[0].Tool != "update_outbound_settings" || first.NextSteps[0].DashboardURL != "" {
		t.Errorf("%+v", first.NextSteps)
	}
	want := org.NextStep{Step: "Connect an app", Why: "Because.", Tool: "some_tool", DashboardURL: "http://localhost:8080/connections"}
	if diff := cmp.Diff(want, first.NextSteps[1]); diff != "" {
		t.Error(diff)
	}
	done = true
	if _, err := s.UpdateOutbound(ctx, org.UpdateOutbound{Timezone: ptr("UTC"), ConsentText: ptr("")}); err != nil {
		t.Fatal(err)
	}
	second, err := s.Started(ctx, org.None{})
	wantDone := org.Onboarding{Done: 2, Total: 2, Complete: true}
	if err != nil || second.Onboarding != wantDone || len(second.NextSteps) != 0 || second.Organization.Timezone != "UTC" {
		t.Errorf("%+v, %v", second, err)
	}
}

func TestCallingRulesAreDecidedByNamingOneOfThem(t *testing.T) {
	for name, c := range map[string]struct {
		in      org.UpdateOutbound
		decided bool
	}{
		"nothing":                      {org.UpdateOutbound{}, false},
		"the time zone":                {org.UpdateOutbound{Timezone: ptr("UTC")}, false},
		"the countries":                {org.UpdateOutbound{AllowedCountries: []string{"SA"}}, true},
		"the window":                   {org.UpdateOutbound{Window: &org.Window{Start: "10:00", End: "11:00", Days: []int{1}}}, true},
		"the consent text":             {org.UpdateOutbound{ConsentText: ptr("x")}, true},
		"the default in so many words": {org.UpdateOutbound{AllowedCountries: []string{}}, true},
	} {
		s, ctx, _ := open(t)
		if _, err := s.UpdateOutbound(ctx, c.in); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		got, err := s.Started(ctx, org.None{})
		if err != nil || got.Onboarding.Complete != c.decided {
			t.Errorf("%s: %+v, %v", name, got.Onboarding, err)
		}
	}
}

func TestNobodyHasNoOrganization(t *testing.T) {
	s, _, _ := open(t)
	if _, err := s.Settings(t.Context(), org.None{}); err == nil {
		t.Error("settings of nobody")
	}
	if _, err := s.Started(t.Context(), org.None{}); err == nil {
		t.Error("get_started of nobody")
	}
}
