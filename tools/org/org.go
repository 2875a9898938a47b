// Package org is the organization as its people and their assistants see it: who it is, what is set up, and the
// rules for calling out.
//
// The organization's name, country, zone and language belong to auth/accounts and are read through the interface
// Organizations. This package owns the table outbound_settings: one row per organization once it has decided
// anything, the defaults until then.
//
// In results a text that is not there, a link to a page that does not exist for example, is "".
package org

import (
	"context"
	"time"

	"switchboard/internal/caller"
	"switchboard/internal/store"
)

// Organization is what accounts knows about one.
type Organization struct {
	ID, Name    string
	HomeCountry string // ISO 3166-1 alpha-2
	Timezone    string // IANA
	Locale      string // "en" or "ar"
	CreatedAt   time.Time
}

// Organizations is the part of auth/accounts that this package needs.
type Organizations interface {
	Organization(ctx context.Context, id string) (Organization, error)
	SetTimezone(ctx context.Context, id, timezone string) error
}

// Guide is a step of setting up that a domain contributes to get_started.
type Guide struct {
	Step string // what to do, in a few words
	Why  string
	Tool string // the registered tool that does it
	Page string // path of the page where a person does it, "" when there is none
	Done func(ctx context.Context) (bool, error)
}

// Config is given by tools.All, the only place that knows which domains there are.
type Config struct {
	Store         *store.Store
	Organizations Organizations
	URL           string  // public origin, for links to pages
	Guides        []Guide // in the order in which they are best done, after those of this package
}

// Service has the handlers of this package's tools as its methods, see tools.go.
type Service struct {
	Config
}

// New takes a Config as it is: a Service keeps nothing in memory, and any number may run side by side.
func New(cfg Config) *Service { return &Service{cfg} }

// What is the same for every organization until billing exists.
const (
	planID = "self_hosted"
	status = "active"
)

// None is the input of a tool that takes no arguments.
type None struct{}

// Settings is the result of get_organization.
type Settings struct {
	ID               string   `json:"id"`
	Name             string   `json:"name"`
	LogoURL          *string  `json:"logoUrl"` // null when none is set
	Locale           string   `json:"locale"`
	Status           string   `json:"status"`
	PlanID           string   `json:"planId"`
	HomeCountry      string   `json:"homeCountry"`
	ConcurrencyLimit int      `json:"concurrencyLimit"` // 0 as long as nothing here can place a call
	Outbound         Outbound `json:"outbound"`
}

// Settings implements get_organization.
func (s *Service) Settings(ctx context.Context, _ None) (Settings, error) {
	o, err := s.organization(ctx)
	if err != nil {
		return Settings{}, err
	}
	rules, err := s.rules(ctx)
	if err != nil {
		return Settings{}, err
	}
	return Settings{
		ID: o.ID, Name: o.Name, Locale: o.Locale, Status: status, PlanID: planID, HomeCountry: o.HomeCountry,
		Outbound: rules.outbound(o),
	}, nil
}

// organization is the caller's own.
func (s *Service) organization(ctx context.Context) (Organization, error) {
	c, ok := caller.From(ctx)
	if !ok {
		return Organization{}, store.ErrNoOrg
	}
	return s.Organizations.Organization(ctx, c.Org)
}
