// Package outbound is how the server fetches from addresses that somebody else chose: a client's metadata document,
// its keys. The guard judges the address that is dialled, after the name was looked up and for every address that is
// tried, so that neither the spelling of an address nor a name whose answer changes leads into a private network.
// Redirects are not followed, no proxy of the environment is used, and an answer has a size and a time.
package outbound

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"code.dny.dev/ssrf"

	"switchboard/internal/origin"
)

// Config is what a Client works with.
type Config struct {
	// Allow are networks that may be reached although the guard refuses them: an intranet, a test's loopback.
	Allow []netip.Prefix
	// Ports are those that this server listens on. On this machine's addresses they are refused whatever Allow says:
	// a fetch must not come back to the server from inside.
	Ports []uint16
	// Names are the server's own host names, refused too. Behind a proxy its address is not this machine's.
	Names []string
	// UserAgent is what the fetched server sees.
	UserAgent string
	// Timeout bounds a whole exchange; 0 means 5 s.
	Timeout time.Duration

	// Roots are the certificate authorities, nil for those of the system; Resolver looks names up, nil for the system's.
	Roots    *x509.CertPool
	Resolver *net.Resolver
}

// ErrRefused is the answer for an address that the guard does not let through.
var ErrRefused = errors.New("the address is not one that this server may reach")

// ErrTooLarge is the answer when a body is longer than was asked for.
var ErrTooLarge = errors.New("the answer is too long")

const (
	defaultTimeout = 5 * time.Second
	maxHeaderBytes = 64 << 10
)

// Client fetches under the guard.
type Client struct {
	cfg   Config
	guard *ssrf.Guardian
	http  *http.Client
}

// azureHost is how a virtual machine at Azure reaches its host: a public address with a metadata service behind it.
const azureHost = "168.63.129.16/32"

// New returns a Client.
func New(cfg Config) *Client {
	c := &Client{cfg: cfg}
	var v4, v6 []netip.Prefix
	for _, p := range cfg.Allow {
		if p.Addr().Is4() {
			v4 = append(v4, p)
		} else {
			v6 = append(v6, p)
		}
	}
	c.guard = ssrf.New(ssrf.WithAnyPort(), ssrf.WithAllowedV4Prefixes(v4...), ssrf.WithAllowedV6Prefixes(v6...),
		ssrf.WithDeniedV4Prefixes(netip.MustParsePrefix(azureHost)))
	if c.cfg.Timeout == 0 {
		c.cfg.Timeout = defaultTimeout
	}
	dialer := &net.Dialer{Timeout: c.cfg.Timeout, Control: c.control, Resolver: cfg.Resolver}
	c.http = &http.Client{
		Transport: &http.Transport{
			Proxy:                  nil, // a proxy would do the dialling, and the guard would judge the proxy
			DialContext:            dialer.DialContext,
			TLSClientConfig:        &tls.Config{RootCAs: cfg.Roots, MinVersion: tls.VersionTLS12},
			MaxResponseHeaderBytes: maxHeaderBytes,
			DisableCompression:     true, // the size is that of what is read
			DisableKeepAlives:      true, // nobody is asked twice in a row
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return c
}

// control is called with each address that is about to be dialled.
func (c *Client) control(network, address string, raw syscall.RawConn) error {
	to, err := netip.ParseAddrPort(address)
	if err != nil {
		return ErrRefused
	}
	ip := to.Addr().Unmap().WithZone("")
	if here := onThisMachine(ip); here && (slices.Contains(c.cfg.Ports, to.Port()) || !c.allows(ip)) {
		return ErrRefused
	}
	if err := c.guard.Safe(network, netip.AddrPortFrom(ip, to.Port()).String(), raw); err != nil {
		return fmt.Errorf("%w: %w", ErrRefused, err)
	}
	return nil
}

func (c *Client) allows(ip netip.Addr) bool {
	return slices.ContainsFunc(c.cfg.Allow, func(p netip.Prefix) bool { return p.Contains(ip) })
}

// onThisMachine reports whether an address leads back to this machine. A public address of ours is reached without
// the firewall in front of it, so services that only listen for neighbours would answer.
func onThisMachine(ip netip.Addr) bool {
	if ip.IsLoopback() || ip.IsUnspecified() {
		return true
	}
	own, err := net.InterfaceAddrs()
	if err != nil {
		return true // nobody could tell
	}
	return slices.ContainsFunc(own, func(a net.Addr) bool {
		p, err := netip.ParsePrefix(a.String())
		return err == nil && p.Addr().Unmap() == ip
	})
}

// Response is an answer that has been read.
type Response struct {
	Status int
	Header http.Header
	Body   []byte
}

// Get fetches an https URL. Whoever reads an error must not pass it on to who chose the URL: it tells what is reachable.
func (c *Client) Get(ctx context.Context, address, accept string, maxBytes int64) (*Response, error) {
	ctx, stop := context.WithTimeout(ctx, c.cfg.Timeout)
	defer stop()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, errors.New("the address is not a URL")
	}
	if req.URL.Scheme != "https" || req.URL.User != nil || !origin.IsPlain(req.URL) || c.isOwnName(origin.Host(req.URL)) {
		return nil, ErrRefused
	}
	req.Header.Set("Accept", accept)
	req.Header.Set("User-Agent", c.cfg.UserAgent)
	resp, err := c.http.Do(req)
	if err != nil {
		if wrapped := (*url.Error)(nil); errors.As(err, &wrapped) {
			err = wrapped.Err // it repeats the URL, whose query is nobody's business
		}
		return nil, fmt.Errorf("fetching from %s: %w", req.URL.Host, err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxBytes+1))
	if err != nil {
		return nil, fmt.Errorf("reading the answer of %s: %w", req.URL.Host, err)
	}
	if err := ctx.Err(); err != nil {
		// We hang up with a TLS alert, and a server that takes it for the end of its work may still finish its answer
		// before the connection is closed: it looks whole and is not.
		return nil, fmt.Errorf("waiting for %s: %w", req.URL.Host, err)
	}
	if int64(len(body)) > maxBytes {
		return nil, ErrTooLarge
	}
	return &Response{resp.StatusCode, resp.Header, body}, nil
}

func (c *Client) isOwnName(host string) bool {
	return slices.ContainsFunc(c.cfg.Names, func(n string) bool {
		return strings.EqualFold(strings.TrimSuffix(n, "."), host)
	})
}

// PortOf is the port of a host:port to listen on, for Config.Ports.
func PortOf(addr string) (uint16, error) {
	_, port, err := net.SplitHostPort(addr)
	if err != nil {
		return 0, fmt.Errorf("reading a port: %w", err)
	}
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil {
		return 0, fmt.Errorf("reading a port: %w", err)
	}
	return uint16(n), nil
}
