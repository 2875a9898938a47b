package auth

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// ParseLifetime reads how long a key lives as people write it: days and Go's durations, "90d", "12h", "30d12h". "never"
// and "" are 0.
func ParseLifetime(s string) (time.Duration, error) {
	if s == "" || s == "never" {
		return 0, nil
	}
	wrong := fmt.Errorf("%q is not a time from now such as 90d or 12h", s)
	total, rest := time.Duration(0), s
	if days, hours, found := strings.Cut(s, "d"); found {
		n, err := strconv.Atoi(days)
		if err != nil || n < 0 || n > 3650 {
			return 0, wrong
		}
		total, rest = time.Duration(n)*24*time.Hour, hours
	}
	if rest != "" {
		d, err := time.ParseDuration(rest)
		if err != nil {
			return 0, wrong
		}
		total += d
	}
	if total <= 0 {
		return 0, wrong
	}
	return total, nil
}
