package origin

import (
	"net/url"
	"testing"
)

func TestOneOriginHasOneSpelling(t *testing.T) {
	for raw, want := range map[string]string{
		"http://localhost:8080/mcp?a=b#c": "http://localhost:8080",
		"HTTPS://Switchboard.Example:443": "https://switchboard.example",
		"http://switchboard.example:80/":  "http://switchboard.example",
		"http://switchboard.example:443":  "http://switchboard.example:443",
		"http://[::1]:80":                 "http://[::1]",
		"https://a.example:4430":          "https://a.example:4430",
		"https://me@switchboard.example":  "",
		"ftp://switchboard.example":       "",
		"//switchboard.example":           "",
		"https:///mcp":                    "",
		"null":                            "",
		"https://a.example:x":             "", // no URL at all
	} {
		u, _ := url.Parse(raw)
		got := ""
		if o, ok := Of(u); ok {
			got = o.String()
		}
		if got != want {
			t.Errorf("Of(%q) = %q, want %q", raw, got, want)
		}
	}
}

func TestOnlyThisMachineIsLoopback(t *testing.T) {
	for name, want := range map[string]bool{
		"localhost": true, "127.0.0.1": true, "127.9.9.9": true, "::1": true, "::ffff:127.0.0.1": true,
		"": false, "localhost.evil.example": false, "evil.localhost": false, "127.0.0.1.evil.example": false,
		"0.0.0.0": false, "::": false, "10.0.0.1": false, "[::1]": false, "127.1": false,
	} {
		if IsLoopback(name) != want {
			t.Errorf("IsLoopback(%q) = %t", name, !want)
		}
	}
}
