package doctor

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestAnAddressIsReadInEverySpelling(t *testing.T) {
	for typed, want := range map[string]string{
		"https://sb.example":          "https://sb.example/mcp",
		"https://sb.example/":         "https://sb.example/mcp",
		"https://sb.example/mcp":      "https://sb.example/mcp",
		"https://sb.example/mcp/":     "https://sb.example/mcp",
		" HTTPS://SB.Example:443/mcp": "https://sb.example/mcp",
		"sb.example":                  "https://sb.example/mcp",
		"sb.example:8443/mcp":         "https://sb.example:8443/mcp",
		"localhost:8080":              "http://localhost:8080/mcp",
		"127.0.0.1:8080/mcp":          "http://127.0.0.1:8080/mcp",
		"http://[::1]:8080":           "http://[::1]:8080/mcp",
		"https://sb.example/at/mcp":   "https://sb.example/at/mcp",
	} {
		if got, err := parseAddress(typed); err != nil || got.String() != want {
			t.Errorf("%q: %v %v, want %s", typed, got, err, want)
		}
	}
	for _, typed := range []string{"", " ", "/mcp", "ftp://sb.example", "https://", "https://u:p@sb.example", "https://sb.example/mcp?x=1", "https://sb.example/#x", "https://sb example"} {
		if got, err := parseAddress(typed); err == nil || !strings.Contains(err.Error(), "give its origin") {
			t.Errorf("%q: %v %v", typed, got, err)
		}
	}
}

func TestClientsAreFoundByIDAndByName(t *testing.T) {
	got, err := Named([]string{"Claude Code", "VSCODE"})
	if err != nil || len(got) != 2 || got[0].ID != "claude-code" || got[1].ID != "vscode" {
		t.Error(got, err)
	}
	if all, err := Named(nil); err != nil || len(all) != len(Clients()) {
		t.Error(all, err)
	}
}

// Who reads the server's clients must see where these are from, and the redirect that is then asked for must be one
// of those that were registered, whatever its port.
func TestEveryRegistrationNamesTheDoctorAndCoversItsRedirect(t *testing.T) {
	for _, c := range Clients() {
		if c.Key {
			continue
		}
		body := c.registration()
		if name := body["client_name"]; name != "Switchboard doctor ("+c.Name+")" {
			t.Errorf("%s calls itself %v", c.ID, name)
		}
		uris := body["redirect_uris"].([]string)
		if !slices.ContainsFunc(uris, func(uri string) bool { return uri == c.Redirect || withoutPort(uri) == withoutPort(c.Redirect) }) {
			t.Errorf("%s asks for %s and registers %v", c.ID, c.Redirect, uris)
		}
	}
}

func withoutPort(uri string) string {
	u, err := url.Parse(uri)
	if err != nil || u.Scheme != "http" {
		return uri
	}
	u.Host = u.Hostname()
	return u.String()
}

func TestWhatNobodyOutsideReachesIsKnownByItsAddress(t *testing.T) {
	for _, c := range []struct{ address, ip, code string }{
		{"https://sb.example", "203.0.113.7", ""},
		{"https://sb.example", "2001:db8::7", ""},
		{"https://203.0.113.7", "", ""},
		{"https://sb.example", "10.0.0.1", "not_public"},
		{"https://sb.example", "192.168.1.7", "not_public"},
		{"https://sb.example", "172.16.0.1", "not_public"},
		{"https://sb.example", "100.64.0.1", "not_public"},
		{"https://sb.example", "169.254.1.1", "not_public"},
		{"https://sb.example", "fd00::1", "not_public"},
		{"https://sb.example", "::ffff:10.0.0.1", "not_public"},
		{"http://localhost:8080", "127.0.0.1", "not_public"},
		{"http://127.0.0.1:8080", "", "not_public"},
		{"http://sb.example", "203.0.113.7", "not_https"},
	} {
		target, err := url.Parse(c.address)
		if err != nil {
			t.Fatal(err)
		}
		d := New(Config{Lookup: func(context.Context, string) ([]netip.Addr, error) {
			if c.ip == "" {
				return nil, errors.New("an address needs no lookup")
			}
			return []netip.Addr{netip.MustParseAddr(c.ip)}, nil
		}})
		got := ""
		if f := d.distance(t.Context(), target); f != nil {
			got = f.Code
		}
		if got != c.code {
			t.Errorf("%s at %s: %q, want %q", c.address, c.ip, got, c.code)
		}
	}
}

func TestAServerThatCannotBeReachedIsToldApart(t *testing.T) {
	plain := httptest.NewServer(http.NotFoundHandler())
	defer plain.Close()
	broken := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }))
	defer broken.Close()
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_ = closed.Close()
	secure := httptest.NewTLSServer(http.NotFoundHandler())
	defer secure.Close()
	unknown := &http.Client{Transport: &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) {
		return nil, &net.OpError{Op: "dial", Err: &net.DNSError{Err: "no such host", Name: "sb.example", IsNotFound: true}}
	}}}
	elsewhere := secure.Client().Transport.(*http.Transport).Clone()
	elsewhere.DialContext = func(ctx context.Context, network, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, secure.Listener.Addr().String())
	}
	for _, c := range []struct {
		address string
		http    *http.Client
		code    string
	}{
		{"https://sb.example", unknown, "name_unknown"},
		{"http://" + closed.Addr().String(), nil, "refused"},
		{broken.URL, nil, "cut"},
		{strings.Replace(plain.URL, "http:", "https:", 1), nil, "http_here"},
		{strings.Replace(secure.URL, "https:", "http:", 1), nil, "https_here"},
		{secure.URL, nil, "certificate_untrusted"},
		{"https://sb.other", &http.Client{Transport: elsewhere}, "certificate_name"},
		{plain.URL, nil, "not_found"},
	} {
		report, err := New(Config{HTTP: c.http}).Examine(t.Context(), c.address)
		if err != nil || report.Everyone == nil || report.Everyone.Code != c.code || report.Failing() != len(Clients()) {
			t.Errorf("%s: want %s, got %+v %v", c.address, c.code, report.Clients, err)
		}
	}
}

func TestAReportReadsWell(t *testing.T) {
	one, two, note := Finding{"a", "the registration", "This was seen", "Do this."}, Finding{"b", "the sign-in page", "That was seen", "Do that."}, Finding{Code: "c", Saw: "It is far", Do: "Go there."}
	r := &Report{
		Address: "https://sb.example/mcp",
		Clients: []Result{
			{Client: "Claude", Notes: []Finding{note}}, {Client: "Cursor", Finding: &one}, {Client: "VS Code", Finding: &two},
			{Client: "Codex", Finding: &one}, {Client: "CI"},
		},
		Warnings: []Finding{{Code: "d", Saw: "It ends soon", Do: "Renew it."}},
	}
	want := `Switchboard at https://sb.example/mcp

Claude   ok from here, note [1]
Cursor   fails at the registration [2]
VS Code  fails at the sign-in page [3]
Codex    fails at the registration [2]
CI       ok

[1] It is far.
    → Go there.

[2] This was seen.
    → Do this.

[3] That was seen.
    → Do that.

Warning: It ends soon.
         → Renew it.
`
	var b strings.Builder
	if err := r.Print(&b); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, b.String()); diff != "" {
		t.Error(diff)
	}
}
