package org

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"gorm.io/gorm/clause"

	"switchboard/internal/fault"
	"switchboard/internal/places"
	"switchboard/internal/store"
)

// Outbound is the rules for calling out.
type Outbound struct {
	AllowedCountries []string `json:"allowedCountries"` // empty: defaultCountries apply
	DefaultCountries []string `json:"defaultCountries"`
	Window           Window   `json:"window"`
	Timezone         string   `json:"timezone"`
	ConsentText      string   `json:"consentText"` // empty: the agent's own
	Acknowledged     bool     `json:"acknowledged"`
}

// Window is when a campaign may call, in the local time of whoever is called.
type Window struct {
	Start string `json:"start" pattern:"^([01]\\d|2[0-3]):[0-5]\\d$" says:"a time of day such as 09:00" doc:"When calling may begin, HH:MM in the destination's local time."`
	End   string `json:"end" pattern:"^([01]\\d|2[0-3]):[0-5]\\d$" says:"a time of day such as 20:00" doc:"When calling must end, HH:MM, later than start on the same day."`
	Days  []int  `json:"days" min:"1" max:"7" items:"min=0 max=6" doc:"Days on which calling is allowed: 0 = Sunday to 6 = Saturday."`
}

// UpdateOutbound is the input of update_outbound_settings. What is absent stays as it is.
type UpdateOutbound struct {
	AllowedCountries []string `json:"allowedCountries,omitzero" max:"50" items:"min=2 max=2" doc:"ISO 3166-1 alpha-2 codes of the countries that calls may go to. An empty list means the default: the home country and the countries of the organization's numbers."`
	Window           *Window  `json:"window" doc:"Calling hours of campaigns, in the local time of each destination."`
	Timezone         *string  `json:"timezone" max:"64" doc:"IANA time zone of the organization, such as Asia/Dubai."`
	ConsentText      *string  `json:"consentText" max:"600" doc:"What agents say about consent and recording at the start of outbound calls. Empty means the agent's own words."`
}

// rules is an organization's row, or the defaults.
type rules struct {
	OrgID            store.OrgID `gorm:"primaryKey"`
	AllowedCountries []string    `gorm:"serializer:json"` // never nil
	WindowStart      string
	WindowEnd        string
	WindowDays       []int `gorm:"serializer:json"`
	ConsentText      string
	AcknowledgedAt   store.Time // a person's word, given in the browser only
	UpdatedAt        store.Time `gorm:"autoUpdateTime:false"`
}

// TableName is needed because the row and the table are named for different things.
func (rules) TableName() string { return "outbound_settings" }

// defaults are the rules of an organization that decided nothing: home country only, in office hours.
func defaults() rules {
	return rules{AllowedCountries: []string{}, WindowStart: "09:00", WindowEnd: "18:00", WindowDays: []int{1, 2, 3, 4, 5}}
}

func (r rules) outbound(o Organization) Outbound {
	return Outbound{
		AllowedCountries: r.AllowedCountries,
		DefaultCountries: []string{o.HomeCountry},
		Window:           Window{Start: r.WindowStart, End: r.WindowEnd, Days: r.WindowDays},
		Timezone:         o.Timezone,
		ConsentText:      r.ConsentText,
		Acknowledged:     !r.AcknowledgedAt.IsZero(),
	}
}

// rules reads the caller's organization's.
func (s *Service) rules(ctx context.Context) (rules, error) {
	var r rules
	err := s.Store.DB(ctx).Take(&r).Error
	if store.IsNotFound(err) {
		return defaults(), nil
	}
	if err != nil {
		return rules{}, fmt.Errorf("reading the outbound settings: %w", err)
	}
	return r, nil
}

// UpdateOutbound implements update_outbound_settings.
func (s *Service) UpdateOutbound(ctx context.Context, in UpdateOutbound) (Outbound, error) {
	if err := in.normalize(); err != nil {
		return Outbound{}, err
	}
	var out Outbound
	err := s.Store.Tx(ctx, func(ctx context.Context) error {
		o, err := s.organization(ctx)
		if err != nil {
			return err
		}
		if in.Timezone != nil {
			if err := s.Organizations.SetTimezone(ctx, o.ID, *in.Timezone); err != nil {
				return err
			}
			o.Timezone = *in.Timezone
		}
		r, err := s.change(ctx, in)
		out = r.outbound(o)
		return err
	})
	return out, err
}

// change writes what the input names and returns the row as it is then. A row says that the organization has decided,
// so an input that names none of its settings makes none. The row is made first and locked, so that two changes at once
// of different settings both stay.
func (s *Service) change(ctx context.Context, in UpdateOutbound) (rules, error) {
	if in.AllowedCountries == nil && in.Window == nil && in.ConsentText == nil {
		return s.rules(ctx)
	}
	db := s.Store.DB(ctx)
	fresh := defaults()
	fresh.UpdatedAt = store.Now()
	if err := db.Clauses(clause.OnConflict{DoNothing: true}).Create(&fresh).Error; err != nil {
		return rules{}, fmt.Errorf("making the outbound settings: %w", err)
	}
	var before rules
	if err := s.Store.Locked(ctx).Take(&before).Error; err != nil {
		return rules{}, fmt.Errorf("reading the outbound settings: %w", err)
	}
	r := before
	if in.AllowedCountries != nil {
		r.AllowedCountries = in.AllowedCountries
	}
	if in.Window != nil {
		r.WindowStart, r.WindowEnd, r.WindowDays = in.Window.Start, in.Window.End, in.Window.Days
	}
	if in.ConsentText != nil {
		r.ConsentText = *in.ConsentText
	}
	if r.same(before) {
		return before, nil
	}
	r.UpdatedAt = store.Now()
	if err := db.Select("*").Updates(&r).Error; err != nil {
		return rules{}, fmt.Errorf("changing the outbound settings: %w", err)
	}
	return r, nil
}

// same compares what a change can change.
func (r rules) same(o rules) bool {
	return slices.Equal(r.AllowedCountries, o.AllowedCountries) && r.WindowStart == o.WindowStart && r.WindowEnd == o.WindowEnd &&
		slices.Equal(r.WindowDays, o.WindowDays) && r.ConsentText == o.ConsentText
}

// normalize puts lists into one order and refuses what a schema cannot judge.
func (in *UpdateOutbound) normalize() error {
	if in.AllowedCountries != nil {
		countries := []string{}
		for i, code := range in.AllowedCountries {
			if code = strings.ToUpper(code); !places.IsCountry(code) {
				return invalid(fmt.Sprintf("allowedCountries[%d]", i), "must be an ISO 3166-1 alpha-2 country code such as AE")
			}
			if !slices.Contains(countries, code) {
				countries = append(countries, code)
			}
		}
		in.AllowedCountries = countries
	}
	if w := in.Window; w != nil {
		if w.Start >= w.End { // both are HH:MM, so text order is the order of time
			return invalid("window.end", "must be later than window.start on the same day")
		}
		slices.Sort(w.Days)
		w.Days = slices.Compact(w.Days)
	}
	if in.Timezone != nil && !places.IsTimezone(*in.Timezone) {
		return invalid("timezone", "must be an IANA time zone such as Asia/Dubai")
	}
	return nil
}

func invalid(field, sentence string) error {
	return fault.New(fault.InvalidRequest, "%s: %s.", field, sentence).With("field", field)
}
