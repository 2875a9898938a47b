package places

import "testing"

func TestThereAreAsManyCountriesAsISONames(t *testing.T) {
	if n := len(Countries()); n != 249 {
		t.Errorf("%d countries, ISO 3166-1 has 249: %v", n, Countries())
	}
	for _, code := range []string{"", "us", "USA", "UK", "ZZ", "XK", "AN", "SU", "EU", "1A"} {
		if IsCountry(code) {
			t.Errorf("%q passes for a country", code)
		}
	}
}

func TestEveryZoneOfThePickerLoads(t *testing.T) {
	if len(Timezones()) < 300 {
		t.Errorf("only %d zones", len(Timezones()))
	}
	for _, z := range Timezones() {
		if !IsTimezone(z) {
			t.Errorf("%s does not load", z)
		}
	}
	for _, z := range []string{"", "Local", "Mars/Olympus", "../etc/passwd", "europe berlin"} {
		if IsTimezone(z) {
			t.Errorf("%q passes for a zone", z)
		}
	}
}
