package main

import (
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"switchboard/auth"
	"switchboard/auth/oauth"
	"switchboard/internal/origin"
	"switchboard/internal/outbound"
	"switchboard/internal/web"
)

// Config is what an operator decides. Every setting is a flag and an environment variable; docs/config.md is made
// from the tags.
type Config struct {
	Addr     string `env:"SWITCHBOARD_ADDR" default:"localhost:8080" help:"Where to listen. localhost listens on 127.0.0.1 and [::1]."`
	URL      string `env:"SWITCHBOARD_URL" help:"Public origin, which is also the OAuth issuer. By default http://localhost with the port of SWITCHBOARD_ADDR."`
	Database string `env:"SWITCHBOARD_DATABASE" default:"data/switchboard.db" help:"Path of an SQLite file, or a postgres:// URL."`
	KeyFile  string `env:"SWITCHBOARD_KEY_FILE" default:"data/switchboard.key" help:"File with the server's keys, made at the first start. Back it up apart from the database."`

	CodeTTL      time.Duration `env:"SWITCHBOARD_CODE_TTL" default:"60s" help:"How long an authorization code is good."`
	AccessTTL    time.Duration `env:"SWITCHBOARD_ACCESS_TTL" default:"1h" help:"How long an access token is good."`
	RefreshTTL   time.Duration `env:"SWITCHBOARD_REFRESH_TTL" default:"720h" help:"How long an unused refresh token is good. After six times that a person is asked again in any case."`
	RefreshGrace time.Duration `env:"SWITCHBOARD_REFRESH_GRACE" default:"60s" help:"How long a repeated refresh gets the same answer, as long as that answer is unused."`

	RatePerMinute  int      `env:"SWITCHBOARD_RATE_PER_MINUTE" default:"60" help:"Requests a minute of one connection or key. A person has 5 times, an organization 20 times as many. 0 turns this and the limits for each IP off."`
	TrustedProxies string   `env:"SWITCHBOARD_TRUSTED_PROXIES" help:"Addresses and CIDRs of reverse proxies whose X-Forwarded-* headers count, separated by commas."`
	Hosts          []string `env:"SWITCHBOARD_HOSTS" help:"Further host names that requests may arrive under, separated by commas."`
	Origins        []string `env:"SWITCHBOARD_ORIGINS" help:"Further origins whose pages may call /mcp, separated by commas. The own one and loopback ones may."`
	ClientsAllow   []string `env:"SWITCHBOARD_CLIENTS_ALLOW" help:"Hosts whose Client ID Metadata Documents and keys are accepted, separated by commas; *.example.com is every host below. By default all."`
	ClientsDeny    []string `env:"SWITCHBOARD_CLIENTS_DENY" help:"Hosts whose Client ID Metadata Documents and keys are refused, separated by commas. Wins over SWITCHBOARD_CLIENTS_ALLOW. Their apps cannot refresh either. * is for a server that cannot reach the internet: apps register themselves then."`
	OutboundAllow  string   `env:"SWITCHBOARD_OUTBOUND_ALLOW" help:"Addresses and CIDRs that the server may fetch from although they are private, separated by commas: an intranet, a test."`
	Insecure       bool     `env:"SWITCHBOARD_INSECURE" help:"Start with an http:// URL that is not on this machine. Tokens then travel in clear."`
	LogLevel       string   `env:"SWITCHBOARD_LOG_LEVEL" default:"info" enum:"debug,info,warn,error" help:"Least level of what is logged: debug, info, warn or error."`
}

// Bounds outside of which nobody could sign in, or a code or an old token would be good for too long.
const (
	minTTL   = time.Second
	maxCode  = 10 * time.Minute
	maxGrace = 10 * time.Minute
)

// origin is the public origin.
func (c *Config) origin() (*url.URL, error) {
	raw := c.URL
	if raw == "" {
		_, port, err := net.SplitHostPort(c.Addr)
		if err != nil {
			return nil, fmt.Errorf("SWITCHBOARD_ADDR %q is not host:port", c.Addr)
		}
		raw = "http://localhost:" + port
	}
	u, _ := url.Parse(raw)
	o, ok := origin.Of(u)
	if !ok || strings.Trim(u.Path, "/") != "" || u.RawQuery != "" || u.Fragment != "" {
		return nil, fmt.Errorf("SWITCHBOARD_URL %q is not an origin such as https://switchboard.example.com", raw)
	}
	o.Host = strings.TrimSuffix(o.Host, ":") // a colon without a port
	if o.Scheme == "http" && !origin.IsLoopback(o.Hostname()) && !c.Insecure {
		return nil, fmt.Errorf("SWITCHBOARD_URL %s would send tokens over the network in clear: use https://, or set SWITCHBOARD_INSECURE=1 on a network that you trust", o)
	}
	return o, nil
}

// databaseNote says where people's data is kept, where that is a file on this machine.
func (c *Config) databaseNote() string {
	if strings.Contains(c.Database, "://") {
		return ""
	}
	return c.Database
}

// check refuses settings that cannot work, before anything is opened.
func (c *Config) check() error {
	for _, d := range []struct {
		name        string
		value       time.Duration
		least, most time.Duration
	}{
		{"SWITCHBOARD_CODE_TTL", c.CodeTTL, minTTL, maxCode},
		{"SWITCHBOARD_ACCESS_TTL", c.AccessTTL, minTTL, 24 * time.Hour},
		{"SWITCHBOARD_REFRESH_TTL", c.RefreshTTL, minTTL, 365 * 24 * time.Hour},
		{"SWITCHBOARD_REFRESH_GRACE", c.RefreshGrace, 0, maxGrace},
	} {
		if d.value < d.least || d.value > d.most {
			return fmt.Errorf("%s is %s, it must be from %s to %s", d.name, d.value, d.least, d.most)
		}
	}
	if c.RatePerMinute < 0 {
		return fmt.Errorf("SWITCHBOARD_RATE_PER_MINUTE is %d, it must not be negative", c.RatePerMinute)
	}
	if _, err := c.proxies(); err != nil {
		return err
	}
	if _, err := c.outboundAllow(); err != nil {
		return err
	}
	_, err := c.origin()
	return err
}

func (c *Config) proxies() ([]netip.Prefix, error) {
	return prefixes("SWITCHBOARD_TRUSTED_PROXIES", c.TrustedProxies)
}

func (c *Config) outboundAllow() ([]netip.Prefix, error) {
	return prefixes("SWITCHBOARD_OUTBOUND_ALLOW", c.OutboundAllow)
}

// prefixes reads a setting that lists addresses and CIDRs.
func prefixes(name, list string) ([]netip.Prefix, error) {
	p, err := web.ParsePrefixes(list)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return p, nil
}

// outbound is how the server fetches from addresses that clients choose. It never fetches from itself.
func (c *Config) outbound(public *url.URL) (*outbound.Client, error) {
	allow, err := c.outboundAllow()
	if err != nil {
		return nil, err
	}
	port, err := outbound.PortOf(c.Addr)
	if err != nil {
		return nil, fmt.Errorf("SWITCHBOARD_ADDR %q: %w", c.Addr, err)
	}
	return outbound.New(outbound.Config{
		Allow: allow, Ports: []uint16{port}, Names: append([]string{public.Hostname()}, c.Hosts...), UserAgent: "Switchboard/" + version,
	}), nil
}

func (c *Config) lifetimes() oauth.Lifetimes {
	return oauth.Lifetimes{Code: c.CodeTTL, Access: c.AccessTTL, Refresh: c.RefreshTTL, Grace: c.RefreshGrace}
}

// expiry is how long a key lives, as auth.ParseLifetime reads it.
type expiry time.Duration

// UnmarshalText implements encoding.TextUnmarshaler.
func (e *expiry) UnmarshalText(text []byte) error {
	d, err := auth.ParseLifetime(string(text))
	*e = expiry(d)
	return err
}
