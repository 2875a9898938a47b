// Package places knows the countries and time zones that may be named: ISO 3166-1 alpha-2 and IANA.
package places

import (
	_ "embed"
	"slices"
	"strings"
	"time"
	_ "time/tzdata" // a minimal container has no zone files

	"golang.org/x/text/language"
)

// The zones of the IANA database that are not aliases (zone1970.tab), and UTC.
//
//go:embed zones.txt
var zones string

// reserved are codes that CLDR takes for countries and ISO 3166-1 reserves or has withdrawn.
var reserved = []string{"AC", "AN", "CP", "CQ", "CS", "DG", "EA", "EZ", "FQ", "IC", "NT", "PC", "SU", "TA", "UN", "XK", "YU"}

// Countries lists the 249 country codes in order.
func Countries() []string {
	codes := []string{}
	for a := 'A'; a <= 'Z'; a++ {
		for b := 'A'; b <= 'Z'; b++ {
			if code := string(a) + string(b); IsCountry(code) {
				codes = append(codes, code)
			}
		}
	}
	return codes
}

// IsCountry reports whether code is an ISO 3166-1 alpha-2 code in capitals.
func IsCountry(code string) bool {
	region, err := language.ParseRegion(code)
	return len(code) == 2 && err == nil && region.IsCountry() && region.String() == code &&
		region.Canonicalize() == region && !slices.Contains(reserved, code)
}

// Timezones lists the zones that a person picks from.
func Timezones() []string { return strings.Fields(zones) }

// IsTimezone reports whether name is a zone of the IANA database, aliases included.
func IsTimezone(name string) bool {
	if name == "" || name == "Local" || len(name) > 64 {
		return false
	}
	_, err := time.LoadLocation(name)
	return err == nil
}
