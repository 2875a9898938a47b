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

func TestAHostThatIsMappedToAnotherIsNotPlain(t *testing.T) {
	for raw, want := range map[string]bool{
		"https://a-b_c.Example:8443/x": true, "https://[::1]:1/": true, "https://a.example./": true, "https://127.0.0.1/": true, "https://xn--e1afmkfd.example/": true,
		"https://%EF%BD%85vil.example/": false, "https://\uff45vil.example/": false, "https://ex%C2%ADample.com/": false, "https://example%E3%80%82com/": false,
		"https://\u212a.example/": false, "https:///x": false, "https://a%20b/": false, "https://[fe80::1%25lo]/": false,
	} {
		u, err := url.Parse(raw)
		if got := err == nil && IsPlain(u); got != want {
			t.Errorf("%s: %v", raw, got)
		}
	}
	if IsPlain(nil) {
		t.Error("nil is plain")
	}
}
