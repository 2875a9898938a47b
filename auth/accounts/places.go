package accounts

import (
	"slices"

	"switchboard/internal/places"
)

// Locales lists the languages that the product speaks.
func Locales() []string { return []string{"en", "ar"} }

// Countries lists the countries that an organization can be at home in.
func Countries() []string { return places.Countries() }

// Timezones lists the zones that a person picks from.
func Timezones() []string { return places.Timezones() }

func checkCountry(code string) *Invalid {
	return unless(places.IsCountry(code), "country")
}

func checkTimezone(name string) *Invalid {
	return unless(places.IsTimezone(name), "timezone")
}

func checkLocale(locale string) *Invalid {
	return unless(slices.Contains(Locales(), locale), "locale")
}

func unless(valid bool, field string) *Invalid {
	if valid {
		return nil
	}
	return &Invalid{field, field}
}
