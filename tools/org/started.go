package org

import (
	"context"
	"fmt"
)

// Started is the result of get_started. Counts are zero and lists empty where nothing of the kind exists here.
type Started struct {
	Organization Identity     `json:"organization"`
	Plan         string       `json:"plan"`
	Balance      Balance      `json:"balance"`
	Agents       Agents       `json:"agents"`
	Numbers      Numbers      `json:"numbers"`
	Integrations Integrations `json:"integrations"`
	RecentCalls  []RecentCall `json:"recentCalls"`
	Onboarding   Onboarding   `json:"onboarding"`
	NextSteps    []NextStep   `json:"nextSteps"`

	GuidedAgentBuilderURL string `json:"guidedAgentBuilderUrl"` // "" as long as there is no such page
}

// Identity names the organization.
type Identity struct {
	ID          string `json:"id"`
	Name        string `json:"name"`
	Locale      string `json:"locale"`
	HomeCountry string `json:"homeCountry"`
	Timezone    string `json:"timezone"`
}

// Balance is the prepaid money, in units of the currency.
type Balance struct {
	Amount   int64  `json:"amount"`
	Currency string `json:"currency"`
}

// Agents counts the voice agents.
type Agents struct {
	Total     int `json:"total"`
	Published int `json:"published"`
}

// Numbers counts the phone numbers.
type Numbers struct {
	Total  int `json:"total"`
	Active int `json:"active"`
}

// Integrations counts the links to calendars and CRMs.
type Integrations struct {
	Connected int `json:"connected"`
}

// RecentCall is one of the last calls.
type RecentCall struct {
	ID        string `json:"id"`
	Direction string `json:"direction"`
	Status    string `json:"status"`
}

// Onboarding is how far the setting up has come.
type Onboarding struct {
	Done     int  `json:"done"`
	Total    int  `json:"total"`
	Complete bool `json:"complete"`
}

// NextStep is one thing to do next.
type NextStep struct {
	Step         string `json:"step"`
	Why          string `json:"why"`
	Tool         string `json:"tool"`
	DashboardURL string `json:"dashboardUrl"` // "" where only the tool does it
}

// Started implements get_started.
func (s *Service) Started(ctx context.Context, _ None) (Started, error) {
	o, err := s.organization(ctx)
	if err != nil {
		return Started{}, err
	}
	out := Started{
		Organization: Identity{ID: o.ID, Name: o.Name, Locale: o.Locale, HomeCountry: o.HomeCountry, Timezone: o.Timezone},
		Plan:         planID,
		Balance:      Balance{Currency: "USD"},
	}
	for _, g := range append([]Guide{s.callingRules()}, s.Guides...) {
		done, err := g.Done(ctx)
		if err != nil {
			return Started{}, fmt.Errorf("looking how far the setting up is: %w", err)
		}
		out.Onboarding.Total++
		if done {
			out.Onboarding.Done++
			continue
		}
		step := NextStep{Step: g.Step, Why: g.Why, Tool: g.Tool}
		if g.Page != "" {
			step.DashboardURL = s.URL + g.Page
		}
		out.NextSteps = append(out.NextSteps, step)
	}
	out.Onboarding.Complete = out.Onboarding.Done == out.Onboarding.Total
	return out, nil
}

// callingRules is this package's own step.
func (s *Service) callingRules() Guide {
	return Guide{
		Step: "Set the calling rules",
		Why:  "Calls go out only to allowed countries and within calling hours. Until you decide, these are the home country and office hours.",
		Tool: "update_outbound_settings",
		Done: func(ctx context.Context) (bool, error) {
			r, err := s.rules(ctx)
			return !r.UpdatedAt.IsZero(), err
		},
	}
}
