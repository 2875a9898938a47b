// Package doctor finds out whether the clients that people name would connect to a server, and what stops the first
// of them that would not. It sends what each client sends up to the sign-in page, in shapes written down here, and
// never signs in: it needs no secret and learns none. What it registers is named for it, is never used, and is
// therefore swept by the server after a day.
//
// A client is one value in clients.go, a step is one method in steps.go and signin.go. What is wrong with an answer
// whatever the step is found in diagnosis.go, because proxies break all steps in the same few ways.
package doctor

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"switchboard/internal/origin"
)

const (
	// patience is how long a client waits for one answer. Some wait less, none much longer.
	patience = 10 * time.Second
	// allTogether bounds an examination: every client has a handful of requests, and they run side by side.
	allTogether = 2 * time.Minute
)

// Config is what a Doctor works with; the zero value is what the command uses.
type Config struct {
	// Clients are replayed; nil means Clients().
	Clients []Client
	// HTTP decides whose certificates are trusted and how to dial; nil means the defaults of this machine. Its
	// redirects and cookies are the doctor's.
	HTTP *http.Client
	// Lookup finds the addresses of a host; nil asks the resolver of this machine.
	Lookup func(ctx context.Context, host string) ([]netip.Addr, error)
	// Now is the clock that certificates and Date headers are held against; nil means time.Now.
	Now func() time.Time
	// Patience is how long to wait for one answer; 0 means 10 s.
	Patience time.Duration
}

// Doctor examines servers.
type Doctor struct{ Config }

// New returns a Doctor.
func New(cfg Config) *Doctor {
	if cfg.Clients == nil {
		cfg.Clients = Clients()
	}
	if cfg.HTTP == nil {
		cfg.HTTP = &http.Client{}
	}
	if cfg.Lookup == nil {
		cfg.Lookup = func(ctx context.Context, host string) ([]netip.Addr, error) {
			return net.DefaultResolver.LookupNetIP(ctx, "ip", host)
		}
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Patience == 0 {
		cfg.Patience = patience
	}
	return &Doctor{cfg}
}

// Finding is something that a person should mend.
type Finding struct {
	Code string `json:"code"`           // a word for programs
	Step string `json:"step,omitempty"` // of the replay; empty for what no step depends on
	Saw  string `json:"saw"`
	Do   string `json:"do"` // the next step, with the setting or the line of a proxy
}

// Result is how one client fared.
type Result struct {
	ID      string    `json:"id"`
	Client  string    `json:"client"`
	Passed  []string  `json:"passed"`            // steps that worked
	Finding *Finding  `json:"finding,omitempty"` // the first one that would not; nil when the client would connect
	Notes   []Finding `json:"notes,omitempty"`   // what holds for this client and cannot be seen from here
}

// Report is an examination.
type Report struct {
	Address  string    `json:"address"` // what people paste
	Everyone *Finding  `json:"everyone,omitempty"`
	Clients  []Result  `json:"clients"`
	Warnings []Finding `json:"warnings,omitempty"` // what stops nobody today
}

// Failing counts the clients that would not connect.
func (r *Report) Failing() int {
	n := 0
	for _, c := range r.Clients {
		if c.Finding != nil {
			n++
		}
	}
	return n
}

// Examine replays every client against a server. The address is its origin or the URL that people paste.
func (d *Doctor) Examine(ctx context.Context, address string) (*Report, error) {
	target, err := parseAddress(address)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, allTogether)
	defer cancel()
	defer d.HTTP.CloseIdleConnections()
	report := &Report{Address: target.String(), Clients: make([]Result, len(d.Clients))}
	var work sync.WaitGroup
	var distant *Finding
	work.Go(func() { report.Warnings, distant = d.surroundings(ctx, target) })
	for i, c := range d.Clients {
		work.Go(func() { report.Clients[i] = d.replay(ctx, target, c) })
	}
	work.Wait()
	for i, c := range d.Clients {
		if distant != nil && c.From == Internet {
			report.Clients[i].keepAway(distant)
		}
	}
	report.Everyone = report.shared()
	return report, nil
}

// keepAway tells a client of the internet what lies between. A name may have another address out there, so a private
// one proves nothing; that the client refuses http is certain.
func (r *Result) keepAway(f *Finding) {
	switch {
	case f.Code == "not_public":
		r.Notes = append(r.Notes, *f)
	case r.Finding == nil:
		r.Finding = f
	}
}

// shared is what every client fails at, when there is more than one and it is the same for all.
func (r *Report) shared() *Finding {
	if len(r.Clients) < 2 || r.Clients[0].Finding == nil {
		return nil
	}
	first := *r.Clients[0].Finding
	if slices.ContainsFunc(r.Clients, func(c Result) bool { return c.Finding == nil || *c.Finding != first }) {
		return nil
	}
	return &first
}

// parseAddress is the URL that people paste, from what a person typed.
func parseAddress(typed string) (*url.URL, error) {
	unusable := fmt.Errorf("%q is not the address of a server: give its origin such as https://switchboard.example.com, or that with /mcp at the end", typed)
	raw := strings.TrimSpace(typed)
	if !strings.Contains(raw, "://") {
		raw = "https://" + raw
		if u, err := url.Parse(raw); err == nil && origin.IsLoopback(u.Hostname()) {
			u.Scheme = "http"
			raw = u.String()
		}
	}
	u, err := url.Parse(raw)
	if err != nil || u.RawQuery != "" || u.Fragment != "" {
		return nil, unusable
	}
	target, ok := origin.Of(u)
	if !ok {
		return nil, unusable
	}
	target.Path = strings.TrimRight(u.Path, "/")
	if target.Path == "" {
		target.Path = "/mcp"
	}
	return target, nil
}

// client is an HTTP client that shows redirects instead of following them, with cookies of its own.
func (d *Doctor) client() *http.Client {
	c := *d.HTTP
	c.Timeout = d.Patience
	c.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	c.Jar, _ = cookiejar.New(nil) // never fails without options
	return &c
}
