package doctor

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
)

// maxAnswer is more than any answer on the way has.
const maxAnswer = 1 << 20

// answer is what came back for a request, or why nothing did.
type answer struct {
	method string
	url    *url.URL
	status int
	header http.Header
	body   []byte
	tls    *tls.ConnectionState
	err    error
}

func fetch(client *http.Client, req *http.Request) *answer {
	a := &answer{method: req.Method, url: req.URL}
	began := time.Now()
	resp, err := client.Do(req)
	if err != nil {
		a.err = err
		return a
	}
	defer resp.Body.Close()
	a.status, a.header, a.tls = resp.StatusCode, resp.Header, resp.TLS
	a.body, a.err = io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if a.err == nil && time.Since(began) >= client.Timeout {
		// Giving up closes the connection, and a server may still see that and end its answer properly.
		a.err = context.DeadlineExceeded
	}
	return a
}

// request names the request without its query, which is long and random.
func (a *answer) request() string {
	u := *a.url
	u.RawQuery, u.Fragment = "", ""
	return a.method + " " + u.String()
}

// saw says what came back.
func (a *answer) saw() string {
	kind := a.header.Get("Content-Type")
	if kind == "" {
		kind = "no Content-Type"
	}
	return fmt.Sprintf("%s answered %d (%s)", a.request(), a.status, kind)
}

// sawf is what came back and what is wrong with it.
func (a *answer) sawf(format string, args ...any) string {
	return a.saw() + ": " + fmt.Sprintf(format, args...)
}

func (a *answer) isHTML() bool {
	kind, _, _ := mime.ParseMediaType(a.header.Get("Content-Type"))
	return kind == "text/html" || kind == "application/xhtml+xml" || bytes.HasPrefix(bytes.TrimSpace(a.body), []byte("<"))
}

// isJSON reports whether a client would read the answer as JSON: many look at the type, all at the body.
func (a *answer) isJSON() bool {
	kind, _, _ := mime.ParseMediaType(a.header.Get("Content-Type"))
	return kind == "application/json" && json.Valid(a.body)
}

// ours reports whether Switchboard wrote the answer, as far as the id that it gives each request tells.
func (a *answer) ours() bool { return strings.HasPrefix(a.header.Get("X-Request-Id"), "req_") }

func (a *answer) redirects() bool {
	return a.status >= 300 && a.status < 400 && a.status != http.StatusNotModified
}

func (a *answer) timedOut() bool {
	var timeout interface{ Timeout() bool }
	return errors.Is(a.err, context.DeadlineExceeded) || errors.As(a.err, &timeout) && timeout.Timeout()
}

// decode reads the answer; it is JSON by then.
func (a *answer) decode(into any) error { return json.Unmarshal(a.body, into) }

// ask sends a request the way the client does and says what no step could live with. A page in a browser asks first
// whether it may (the preflight of CORS), and may read an answer only when that allows it, errors too. The statuses
// that the step expects are good whatever they look like to others.
func (r *replay) ask(req *http.Request, expected ...int) (*answer, *Finding) {
	var no *Finding
	if r.client.From == Browser {
		no = r.preflight(req)
		req.Header.Set("Origin", r.client.Page)
	}
	req.Header.Set("User-Agent", "Switchboard-doctor/1 ("+r.client.Name+")")
	a := fetch(r.http, req)
	f := a.diagnose(expected...)
	// What is wrong for programs too is the cause of a preflight that failed, and the thing to mend.
	if f == nil {
		f = no
	}
	if f == nil && r.client.From == Browser {
		f = a.readable(r.client.Page)
	}
	return a, f
}

// send makes a request with a body and headers and asks.
func (r *replay) send(ctx context.Context, method, address string, body []byte, headers map[string]string, expected ...int) (*answer, *Finding) {
	req, err := http.NewRequestWithContext(ctx, method, address, bytes.NewReader(body))
	if err != nil {
		return nil, &Finding{
			Code: "address_unusable", Saw: fmt.Sprintf("the server names the address %q, which is none", address),
			Do: "Set SWITCHBOARD_URL to the server's public origin, such as https://switchboard.example.com, and restart it.",
		}
	}
	for name, value := range headers {
		req.Header.Set(name, value)
	}
	return r.ask(req, expected...)
}

// simple are the headers that a page may send unasked, in the values that we send.
var simple = []string{"Accept", "Accept-Language", "Origin", "User-Agent"}

// preflight asks for leave as a browser does before a request that is not simple.
func (r *replay) preflight(req *http.Request) *Finding {
	var names []string
	for name := range req.Header {
		if form := name == "Content-Type" && strings.HasPrefix(req.Header.Get(name), "application/x-www-form-urlencoded"); !form && !slices.Contains(simple, name) {
			names = append(names, strings.ToLower(name))
		}
	}
	if len(names) == 0 {
		return nil
	}
	slices.Sort(names)
	asking, err := http.NewRequestWithContext(req.Context(), http.MethodOptions, req.URL.String(), nil)
	if err != nil {
		return nil // the request itself says what is wrong with the address
	}
	asking.Header.Set("Origin", r.client.Page)
	asking.Header.Set("Access-Control-Request-Method", req.Method)
	asking.Header.Set("Access-Control-Request-Headers", strings.Join(names, ","))
	a := fetch(r.http, asking)
	if a.err != nil {
		return a.unreached()
	}
	unreadable := a.readable(r.client.Page)
	if unreadable != nil && unreadable.Code == "cors_twice" {
		return unreadable
	}
	allowed := strings.ToLower(strings.Join(a.header.Values("Access-Control-Allow-Headers"), ","))
	missing := slices.DeleteFunc(names, func(n string) bool { return allows(allowed, n) })
	if a.status/100 == 2 && len(missing) == 0 && unreadable == nil {
		return nil
	}
	return &Finding{
		Code: "preflight", Saw: a.sawf("a browser takes that for a no (it wanted to send %s) and the page sends nothing", strings.Join(names, ", ")),
		Do: "Let the proxy pass OPTIONS on: Switchboard answers it without a sign-in. In nginx, remove the block for $request_method = OPTIONS and limit_except.",
	}
}

// allows reads a list of header names. A star does not stand for Authorization (Fetch standard, §4.9).
func allows(list, name string) bool {
	for _, item := range strings.Split(list, ",") {
		if item = strings.TrimSpace(item); item == name || item == "*" && name != "authorization" {
			return true
		}
	}
	return false
}

// readable says what keeps a page from reading an answer, nil for nothing.
func (a *answer) readable(page string) *Finding {
	allowed := a.header.Values("Access-Control-Allow-Origin")
	switch {
	case len(allowed) > 1 || strings.Contains(strings.Join(allowed, ""), ","):
		return &Finding{
			Code: "cors_twice", Saw: a.sawf("Access-Control-Allow-Origin is there more than once, which browsers refuse"),
			Do: "Remove the proxy's own CORS headers (in nginx, add_header Access-Control-…): Switchboard sends them.",
		}
	case len(allowed) == 0 || allowed[0] != "*" && allowed[0] != page:
		return &Finding{
			Code: "cors_missing", Saw: a.sawf("no Access-Control-Allow-Origin for %s, so the page may not read it", page),
			Do: "Let the proxy keep Switchboard's Access-Control-… headers, on errors too: in nginx, remove proxy_hide_header Access-Control-Allow-Origin.",
		}
	}
	return nil
}
