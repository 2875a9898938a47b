package origin

import (
	"net/url"
	"strings"
	"testing"
)

// The origin of an origin is itself, and an origin is what a browser would call the host of the address.
func FuzzOriginsOfAddresses(f *testing.F) {
	for _, seed := range []string{"https://a.example", "HTTP://A.Example:80/x?y#z", "https://a.example:443", "https://[::1]:1", "//a.example", "https://u@a.example", "javascript:alert(1)", "https://", "http://a.example:", "http://a.example:080"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		u, _ := url.Parse(raw)
		o, ok := Of(u)
		if !ok {
			return
		}
		again, _ := url.Parse(o.String())
		if twice, ok := Of(again); !ok || twice.String() != o.String() || twice.User != nil || twice.Path != "" || twice.RawQuery != "" {
			t.Errorf("%q has the origin %q and that has %q", raw, o, twice)
		}
		if port := o.Port(); port == "443" && o.Scheme == "https" || port == "80" && o.Scheme == "http" {
			t.Errorf("%q has the origin %q, which browsers write without the port", raw, o)
		}
		if !strings.EqualFold(o.Hostname(), u.Hostname()) || IsLoopback(Host(o)) != IsLoopback(Host(u)) {
			t.Errorf("%q has the origin %q", raw, o)
		}
	})
}
