package doctor

import (
	"context"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"

	"switchboard/internal/origin"
)

const (
	// renewal is how long before its end a certificate is late: automatic renewals come weeks earlier.
	renewal = 7 * 24 * time.Hour
	// skew is how far two clocks may differ before tokens and certificates end at another time than people think.
	skew = time.Minute
)

// surroundings looks at what no step depends on today: the certificate's end, the clock, clear text. It also says
// why nobody on the internet gets to the server, nil when that is not plain from here.
func (d *Doctor) surroundings(ctx context.Context, target *url.URL) (warnings []Finding, distant *Finding) {
	loopback := origin.IsLoopback(target.Hostname()) || strings.HasSuffix(target.Hostname(), ".localhost")
	if target.Scheme == "http" && !loopback {
		warnings = append(warnings, Finding{
			Code: "clear_text", Saw: target.Scheme + "://" + target.Host + " is not encrypted: passwords and tokens travel in clear",
			Do: "Put a proxy with TLS in front and set SWITCHBOARD_URL to its https:// address; see docs/deploy.md.",
		})
	}
	distant = d.distance(ctx, target)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, target.String(), nil)
	if err != nil {
		return warnings, distant
	}
	began := d.Now()
	a := fetch(d.client(), req)
	if a.header == nil {
		return warnings, distant // nothing came, and every client says why
	}
	// The answer was written at some time while we waited for it.
	if date, err := http.ParseTime(a.header.Get("Date")); err == nil {
		early, late := date.Sub(began), d.Now().Sub(date)
		if early > skew || late > skew {
			warnings = append(warnings, Finding{
				Code: "clock", Saw: fmt.Sprintf("the server's clock says %s, this machine's %s", date.UTC().Format(time.RFC3339), d.Now().UTC().Format(time.RFC3339)),
				Do: "Set both clocks by NTP (timedatectl set-ntp true): what the server issues ends by its clock, certificates by the clients'.",
			})
		}
	}
	if a.tls != nil && len(a.tls.PeerCertificates) > 0 {
		if end := a.tls.PeerCertificates[0].NotAfter; end.Sub(d.Now()) < renewal {
			warnings = append(warnings, Finding{
				Code: "certificate_ends", Saw: "the certificate of " + target.Host + " ends on " + end.UTC().Format(time.DateOnly),
				Do: "Renew it now and find out why that did not happen by itself (certbot renew, then reload the proxy).",
			})
		}
	}
	return warnings, distant
}

// shared address space of providers (RFC 6598), which netip does not count as private.
var carrier = netip.MustParsePrefix("100.64.0.0/10")

// distance says why a vendor's servers do not get to this one.
func (d *Doctor) distance(ctx context.Context, target *url.URL) *Finding {
	host := target.Hostname()
	addresses := []netip.Addr{}
	if ip, err := netip.ParseAddr(host); err == nil {
		addresses = append(addresses, ip)
	} else if found, err := d.Lookup(ctx, host); err == nil {
		addresses = found
	}
	local := func(ip netip.Addr) bool {
		ip = ip.Unmap()
		return ip.IsLoopback() || ip.IsPrivate() || ip.IsLinkLocalUnicast() || ip.IsUnspecified() || carrier.Contains(ip)
	}
	i := slices.IndexFunc(addresses, local)
	switch {
	case i >= 0:
		where := host
		if ip := addresses[i].Unmap().String(); ip != host {
			where += " is " + ip
		}
		return &Finding{
			Code: "not_public", Saw: "Not reachable from the internet, where this client calls from: " + where + ", an address of this machine or network",
			Do: "Give the server a public https:// address and set SWITCHBOARD_URL to it (docs/deploy.md). If the name has another address outside, run the doctor there.",
		}
	case target.Scheme == "http":
		return &Finding{
			Code: "not_https", Step: "the address", Saw: "This client calls from the internet and takes https:// addresses only",
			Do: "Put a proxy with TLS in front and set SWITCHBOARD_URL to its https:// address (docs/deploy.md).",
		}
	}
	return nil
}
