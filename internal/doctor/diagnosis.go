package doctor

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"syscall"

	"switchboard/internal/origin"
)

// diagnose finds what is wrong with an answer whatever the step, nil for nothing. The statuses that the step expects
// are good.
func (a *answer) diagnose(expected ...int) *Finding {
	switch {
	case a.err != nil:
		return a.unreached()
	case a.redirects():
		return a.redirected()
	case a.status == http.StatusUnauthorized && strings.HasPrefix(strings.ToLower(a.header.Get("WWW-Authenticate")), "basic") && !a.isJSON():
		return a.find("password_asked", "something in front of Switchboard asks for a password of its own",
			"Take the proxy's own sign-in (in nginx, auth_basic) off the whole host: clients send Switchboard's tokens in the same header.")
	case slices.Contains(expected, a.status) && (a.status == http.StatusNotFound || !a.isHTML()):
		return nil
	case a.status == http.StatusTooManyRequests:
		return a.find("rate_limited", "the limit for one address is used up", "Wait a minute and examine again. If clients meet it too, raise the proxy's limit (in nginx, limit_req).")
	case a.status == http.StatusRequestEntityTooLarge:
		return a.find("too_large", "the proxy refuses the size of the request", "Raise the proxy's limit for request bodies: in nginx, client_max_body_size 1m;")
	case a.status == http.StatusForbidden:
		return a.forbidden()
	case a.status >= http.StatusInternalServerError:
		return a.broken()
	case a.isHTML() && !(a.status == http.StatusNotFound && a.ours()):
		return a.page()
	case a.status == http.StatusBadRequest && strings.Contains(string(a.body), "HTTPS server"):
		return a.find("https_here", "the port speaks https", "Use the address with https://, and set SWITCHBOARD_URL to it.")
	case a.status == http.StatusNotFound:
		return a.find("not_found", "there is nothing at this path",
			"Check the path: Switchboard needs a host of its own and answers at /mcp. Let the proxy pass paths on as they are: in nginx, location / { proxy_pass http://127.0.0.1:8080; } with no path after the port.")
	case a.status == http.StatusMethodNotAllowed || a.status == http.StatusNotImplemented:
		return a.find("method_refused", a.method+" is not let through", "Let the proxy pass every method on: in nginx, remove limit_except and the conditions on $request_method.")
	}
	return nil
}

// find is a Finding about the answer.
func (a *answer) find(code, wrong, do string) *Finding {
	return &Finding{Code: code, Saw: a.sawf("%s", wrong), Do: do}
}

// unreached says why there is no answer.
func (a *answer) unreached() *Finding {
	var dns *net.DNSError
	var unknown x509.UnknownAuthorityError
	var name x509.HostnameError
	var invalid x509.CertificateInvalidError
	host := a.url.Hostname()
	found := func(code, saw, do string) *Finding {
		return &Finding{Code: code, Saw: a.request() + ": " + saw, Do: do}
	}
	switch {
	case errors.As(a.err, &unknown):
		return found("certificate_untrusted", "the certificate is of no authority that clients trust, or its chain is not whole",
			"Get a certificate of a public authority (certbot, or let Caddy do it) and serve it with its chain: in nginx, ssl_certificate names fullchain.pem.")
	case errors.As(a.err, &name):
		return found("certificate_name", "the certificate is not for "+host, "Get a certificate for "+host+" and name it in the proxy's block for that host (in nginx, server_name).")
	case errors.As(a.err, &invalid):
		return found("certificate_invalid", "the certificate is refused: "+invalid.Error(), "Renew the certificate and reload the proxy; check the clock of this machine.")
	case errors.Is(a.err, http.ErrSchemeMismatch):
		return found("http_here", "the port speaks http, not https", "End TLS in the proxy: in nginx, listen 443 ssl;. On this machine alone, use http://localhost.")
	case a.timedOut():
		return found("hang", "no whole answer in time", "Look for what holds answers back: the proxy's upstream address, a firewall that drops packets, or buffering (in nginx, proxy_buffering off;).")
	case errors.As(a.err, &dns):
		return found("name_unknown", "the name "+host+" leads nowhere", "Make a DNS record for "+host+" that leads to the proxy, or correct the address.")
	case errors.Is(a.err, syscall.ECONNREFUSED):
		return found("refused", "nothing listens there", "Start Switchboard (or the proxy in front of it), and compare SWITCHBOARD_ADDR with the address used.")
	}
	return found("cut", "the connection broke: "+reason(a.err), "Look into the proxy's error log at this moment, then examine again.")
}

// reason is the error below the request that it names.
func reason(err error) string {
	var u *url.Error
	var alert tls.AlertError
	switch {
	case errors.As(err, &alert):
		return alert.Error()
	case errors.As(err, &u):
		return u.Err.Error()
	}
	return err.Error()
}

// redirected tells the ways apart in which a redirect comes about. Clients drop the body or the token in one, so they
// must never meet any.
func (a *answer) redirected() *Finding {
	to, err := a.url.Parse(a.header.Get("Location"))
	if err != nil {
		return a.find("redirected", "it leads to no address", "Remove the redirect from the proxy for /mcp, /.well-known/ and /oauth/.")
	}
	at := *to
	at.RawQuery, at.Fragment = "", ""
	wrong := "it sends the client to " + at.String() + ", and clients lose their message or their token on the way"
	switch {
	case a.url.Scheme == "http" && to.Scheme == "https":
		return a.find("redirected", wrong, "Paste the https:// address, and set SWITCHBOARD_URL to its origin.")
	case a.url.Scheme == "https" && to.Scheme == "http":
		return a.find("redirected", wrong, "Something behind the proxy takes the request for plain http. Remove that redirect: Switchboard has none. In nginx, pass on with proxy_pass http://127.0.0.1:8080; alone.")
	case to.Hostname() != a.url.Hostname() && strings.TrimPrefix(to.Hostname(), "www.") == strings.TrimPrefix(a.url.Hostname(), "www."):
		return a.find("redirected", wrong, "Paste the address with "+to.Hostname()+" and set SWITCHBOARD_URL to https://"+to.Host+", or remove the redirect from the proxy.")
	case to.Host != a.url.Host:
		return a.find("redirected", wrong, "If that is a sign-in of the proxy's own, exempt this whole host from it: Switchboard asks who is calling itself.")
	case strings.TrimSuffix(to.Path, "/") == strings.TrimSuffix(a.url.Path, "/"):
		return a.find("redirected", wrong, "Remove the rule about slashes at the end: in nginx, use one location / for everything, not location /mcp/.")
	}
	return a.find("redirected", wrong, "Remove the redirect from the proxy: every path is for Switchboard to answer.")
}

// refusal is an error of Switchboard outside of OAuth.
type refusal struct {
	Error struct {
		Code    string `json:"code"`
		Message string `json:"message"`
	} `json:"error"`
}

// canonicalPattern is how the edge names the address that it does answer to.
var canonicalPattern = regexp.MustCompile(`Use (https?://[^\s,]+),`)

func (a *answer) forbidden() *Finding {
	var r refusal
	_ = a.decode(&r) // what is none has no message
	switch message := r.Error.Message; {
	case strings.Contains(message, "host name"):
		return a.otherHost(message)
	case strings.Contains(message, "origin"):
		return a.find("origin_refused", "pages of this origin may not call the server", "Add the page's origin to SWITCHBOARD_ORIGINS and restart, and let the proxy pass the Origin header on as it is.")
	}
	return a.find("blocked", "something in front of Switchboard refuses the request",
		"Exempt /mcp, /.well-known/ and /oauth/ from its firewall rules, bot checks and blocks of countries or programs: clients are programs and cannot solve a challenge.")
}

// otherHost is about a request that arrived under a name that Switchboard is not configured for.
func (a *answer) otherHost(message string) *Finding {
	used, _ := origin.Of(a.url)
	canonical := canonicalPattern.FindStringSubmatch(message)
	if canonical != nil && canonical[1] != used.String() {
		return a.find("host_unknown", "Switchboard is configured for "+canonical[1]+" and refuses this host name", oneAddress(used, canonical[1]))
	}
	return a.find("host_rewritten", "the proxy passes the request on under another host name, which Switchboard refuses",
		"Have the proxy pass the name on: in nginx, proxy_set_header Host $host;")
}

// oneAddress says how the address that people use and the one that the server is configured for become the same. One
// of this machine, or in clear beside an encrypted one, is nothing to configure a server for.
func oneAddress(used *url.URL, configured string) string {
	its, err := url.Parse(configured)
	if err == nil && (origin.IsLoopback(used.Hostname()) || used.Scheme == "http" && its.Scheme == "https") {
		return "Use " + configured + "/mcp, which is the address to paste; if that is no longer right, change SWITCHBOARD_URL and restart."
	}
	return "Set SWITCHBOARD_URL=" + used.String() + " and restart, or paste " + configured + "/mcp."
}

func (a *answer) broken() *Finding {
	switch {
	case a.status == http.StatusServiceUnavailable && a.isJSON() && a.ours():
		return a.find("database_down", "Switchboard runs and its database does not answer", "See GET /readyz and the log, and check SWITCHBOARD_DATABASE.")
	case a.ours():
		return a.find("server_error", "Switchboard failed", "Look for request "+a.header.Get("X-Request-Id")+" in Switchboard's log.")
	case a.status == http.StatusServiceUnavailable:
		return a.find("bad_gateway", "the proxy does not reach Switchboard, or has a limit that is used up",
			"Start Switchboard and let the proxy lead to SWITCHBOARD_ADDR. If it runs, raise the proxy's limit, which answers 503 too: in nginx, limit_req with a larger burst.")
	case a.status == http.StatusGatewayTimeout:
		return a.find("bad_gateway", "the proxy waited for Switchboard in vain", "Check that Switchboard answers GET /healthz at SWITCHBOARD_ADDR, and raise the proxy's patience: in nginx, proxy_read_timeout 90s;")
	}
	return a.find("bad_gateway", "the proxy does not reach Switchboard",
		"Start Switchboard and let the proxy lead to SWITCHBOARD_ADDR: in nginx, proxy_pass http://127.0.0.1:8080; (http, not https).")
}

// page is about HTML where clients parse JSON.
func (a *answer) page() *Finding {
	if strings.HasPrefix(a.url.Path, "/.well-known/") {
		return a.find("well_known_page", "a page where clients read JSON; something in front of Switchboard answers /.well-known/ itself",
			"Pass /.well-known/ on as well: in nginx, location /.well-known/ { proxy_pass http://127.0.0.1:8080; }, with /.well-known/acme-challenge/ as the only exception.")
	}
	return a.find("page", "a page where clients read JSON; something in front of Switchboard answers this path itself",
		"Pass every path on: in nginx, one location / { proxy_pass http://127.0.0.1:8080; }, and no error_page or try_files.")
}
