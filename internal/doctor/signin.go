package doctor

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"

	"switchboard/internal/origin"
)

// maxHops is more redirects than there are on the way to the sign-in page.
const maxHops = 8

// cimd reports whether the client identifies itself by its metadata document here.
func (r *replay) cimd() bool { return r.client.Document != "" && r.server.Documents }

// register is dynamic registration (RFC 7591 §3), or nothing for a client that has a document.
func (r *replay) register(ctx context.Context) *Finding {
	if r.cimd() {
		r.clientID = r.client.Document
		return nil
	}
	wanted := r.client.registration()
	body, err := json.Marshal(wanted)
	if err != nil {
		panic(fmt.Sprintf("encoding a registration of ours: %v", err))
	}
	headers := map[string]string{"Content-Type": "application/json", "Accept": "application/json"}
	a, f := r.send(ctx, http.MethodPost, r.server.Registration, body, headers, http.StatusCreated)
	if f != nil {
		return f
	}
	if a.status != http.StatusCreated || !a.isJSON() {
		return a.find("registration_refused", "clients expect 201 with JSON"+oauthError(a),
			"If Switchboard's log has no such request, a rule of the proxy or firewall refused it: exempt /oauth/register. Otherwise report the answer above as a bug.")
	}
	var got map[string]any
	_ = a.decode(&got) // an answer that is no object has no members
	r.clientID, _ = got["client_id"].(string)
	echoed, _ := got["redirect_uris"].([]any)
	for _, uri := range wanted["redirect_uris"].([]string) {
		if r.clientID == "" || !slices.Contains(echoed, any(uri)) {
			return a.find("registration_incomplete", "the answer lacks client_id or the redirect URI "+uri, "Let the proxy pass the answer on unchanged: no rewriting of bodies (in nginx, sub_filter).")
		}
	}
	for member, value := range got {
		if value == nil || value == "" {
			return a.find("registration_empty", fmt.Sprintf("the member %s is empty, which clients refuse", member), "Let the proxy pass the answer on unchanged; if it does, report this as a bug.")
		}
	}
	return nil
}

// oauthError is the error in an answer, as words to add.
func oauthError(a *answer) string {
	var e struct {
		Error       string `json:"error"`
		Description string `json:"error_description"`
	}
	if a.decode(&e) != nil || e.Error == "" {
		return ""
	}
	return ", it says " + e.Error + " (" + e.Description + ")"
}

// authorize opens the sign-in page as a person's browser would (RFC 6749 §4.1.1), and stops there.
func (r *replay) authorize(ctx context.Context) *Finding {
	address, err := url.Parse(r.server.Authorize)
	if err != nil {
		return &Finding{Code: "endpoint_unusable", Saw: "authorization_endpoint is no address: " + r.server.Authorize, Do: "Set SWITCHBOARD_URL to the server's public origin and restart it."}
	}
	sum := sha256.Sum256([]byte(verifier()))
	query := address.Query()
	for name, value := range map[string]string{
		"response_type": "code", "client_id": r.clientID, "redirect_uri": r.client.Redirect, "state": rand.Text(),
		"code_challenge": base64.RawURLEncoding.EncodeToString(sum[:]), "code_challenge_method": "S256",
	} {
		query.Set(name, value)
	}
	if !r.client.Rooted {
		query.Set("resource", r.target.String())
		if r.scope != "" {
			query.Set("scope", r.scope)
		}
	}
	address.RawQuery = query.Encode()
	cookies := 0
	for range maxHops {
		a, f := r.open(ctx, address)
		if f != nil {
			return f
		}
		cookies += len(a.header.Values("Set-Cookie"))
		if !a.redirects() {
			return r.signInPage(a, cookies)
		}
		to, err := address.Parse(a.header.Get("Location"))
		if err != nil {
			return a.find("redirected", "it leads to no address", "Let the proxy pass Location on as it is: in nginx, proxy_redirect off;")
		}
		if f := r.astray(a, to); f != nil {
			return f
		}
		address = to
	}
	return &Finding{Code: "redirect_loop", Saw: fmt.Sprintf("the browser is sent on more than %d times before there is a page", maxHops), Do: "Remove the proxy's own redirects: Switchboard needs two."}
}

// open gets a page the way a browser does. A page of an error is an answer here.
func (r *replay) open(ctx context.Context, address *url.URL) (*answer, *Finding) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address.String(), nil)
	if err != nil {
		return nil, &Finding{Code: "redirected", Saw: "the browser is sent to " + address.Redacted() + ", which it cannot open", Do: "Remove the proxy's own redirects."}
	}
	req.Header.Set("Accept", "text/html,application/xhtml+xml;q=0.9,*/*;q=0.8")
	req.Header.Set("Accept-Language", "en")
	req.Header.Set("User-Agent", "Mozilla/5.0 (compatible; Switchboard-doctor/1)")
	a := fetch(r.http, req)
	switch {
	case a.err != nil:
		return a, a.unreached()
	case a.status >= http.StatusInternalServerError && !a.ours():
		return a, a.broken()
	}
	return a, nil
}

// astray is about a redirect that leaves the way to the sign-in page.
func (r *replay) astray(a *answer, to *url.URL) *Finding {
	query := to.Query()
	if word := query.Get("error"); word != "" && strings.HasPrefix(to.String(), r.client.Redirect) {
		return refusedAuthorization(a, word+" ("+query.Get("error_description")+")")
	}
	from, _ := origin.Of(a.url)
	there, ok := origin.Of(to)
	if ok && there.String() == from.String() {
		return nil
	}
	at := *to
	at.RawQuery, at.Fragment = "", ""
	if ok && there.Hostname() == from.Hostname() {
		return a.find("page_redirected", "the browser is sent to "+at.String()+", another origin than the one it is at",
			"Set SWITCHBOARD_URL to the address that people open, and let the proxy pass Location on as it is: in nginx, proxy_redirect off;")
	}
	return a.find("page_redirected", "the browser is sent away to "+at.String(), "If that is a sign-in of the proxy's own, exempt this whole host from it: Switchboard asks who is calling itself.")
}

func refusedAuthorization(a *answer, word string) *Finding {
	return a.find("authorize_refused", "the app is going to be sent an error instead of a code: "+word,
		"If the proxy changes or cuts queries, let it pass them on as they are. Otherwise report the error as a bug.")
}

// signInPage is where the doctor stops.
func (r *replay) signInPage(a *answer, cookies int) *Finding {
	seen := look(a.body)
	switch {
	case a.status == http.StatusOK && seen.password && seen.mistake != "":
		return refusedAuthorization(a, seen.mistake)
	case a.status == http.StatusOK && seen.password && cookies == 0:
		return a.find("cookies_lost", "the page sets no cookie, so no form on it can be sent", "Let the proxy pass Set-Cookie on: in nginx, remove proxy_hide_header Set-Cookie and proxy_ignore_headers Set-Cookie.")
	case a.status == http.StatusOK && seen.password:
		return nil
	case a.status == http.StatusTooManyRequests:
		return a.diagnose()
	case a.ours() && r.cimd() || r.cimd() && seen.heading != "" && a.status < http.StatusInternalServerError:
		host, _ := url.Parse(r.client.Document)
		return a.find("client_document", "the page says "+seen.said()+"; the server could not fetch or use the client's document "+r.client.Document,
			"Let the server reach https://"+host.Host+" (port 443, outgoing), or check SWITCHBOARD_CLIENTS_ALLOW and SWITCHBOARD_CLIENTS_DENY. Where it must not go out, set SWITCHBOARD_CLIENTS_DENY=*: clients register themselves then.")
	case a.status == http.StatusForbidden:
		return a.forbidden()
	case a.ours() && seen.heading != "":
		return a.find("error_page", "the page says "+seen.said(), "Look for request "+a.header.Get("X-Request-Id")+" in Switchboard's log.")
	}
	return a.find("no_sign_in", "the page is not Switchboard's sign-in page: "+seen.said(), "Pass /oauth/, /consent/, /sign-in and /assets/ on to Switchboard, and exempt them from bot checks and firewall rules.")
}

// sight is what a person sees of a page.
type sight struct {
	heading, more string
	mistake       string // of the app's request, which goes back to it after the sign-in
	password      bool   // it asks for one and sends it to our sign-in
}

func (s sight) said() string {
	if s.heading == "" {
		return "nothing"
	}
	if s.more == "" {
		return fmt.Sprintf("%q", s.heading)
	}
	return fmt.Sprintf("%q (%s)", s.heading, s.more)
}

// look reads a page: its heading, the paragraph after it, and whether it is the sign-in.
func look(body []byte) (s sight) {
	doc, err := html.Parse(bytes.NewReader(body))
	if err != nil {
		return s
	}
	form, field := false, false
	for n := range doc.Descendants() {
		switch {
		case n.DataAtom == atom.H1 && s.heading == "":
			s.heading = words(n)
		case n.DataAtom == atom.P && s.heading != "" && s.more == "":
			s.more = words(n)
		case n.DataAtom == atom.Code && attribute(n, "id") == "mistake":
			s.mistake = words(n)
		case n.DataAtom == atom.Form:
			form = form || attribute(n, "action") == "/sign-in"
		case n.DataAtom == atom.Input:
			field = field || attribute(n, "type") == "password"
		}
	}
	s.password = form && field
	return s
}

func attribute(n *html.Node, name string) string {
	for _, a := range n.Attr {
		if a.Key == name {
			return a.Val
		}
	}
	return ""
}

// words are the text of a node, with a bound: a page of somebody else may hold anything.
func words(n *html.Node) string {
	var b strings.Builder
	for c := range n.Descendants() {
		if c.Type == html.TextNode {
			b.WriteString(c.Data + " ")
		}
	}
	runes := []rune(strings.Join(strings.Fields(b.String()), " "))
	return string(runes[:min(len(runes), 200)])
}

// verifier is that of PKCE (RFC 7636 §4.1): 43 characters or more.
func verifier() string { return rand.Text() + rand.Text() }

// token exchanges a code that nobody issued. The answer must be an error that clients understand.
func (r *replay) token(ctx context.Context) *Finding {
	form := url.Values{
		"grant_type": {"authorization_code"}, "code": {"sb_ac_this-is-the-doctor"}, "client_id": {r.clientID},
		"redirect_uri": {r.client.Redirect}, "code_verifier": {verifier()},
	}
	if !r.client.Rooted {
		form.Set("resource", r.target.String())
	}
	headers := map[string]string{"Content-Type": "application/x-www-form-urlencoded", "Accept": "application/json"}
	a, f := r.send(ctx, http.MethodPost, r.server.Token, []byte(form.Encode()), headers, http.StatusBadRequest, http.StatusUnauthorized)
	if f != nil {
		return f
	}
	var e struct {
		Error string `json:"error"`
	}
	if a.status != http.StatusBadRequest || !a.isJSON() || a.decode(&e) != nil || e.Error != "invalid_grant" {
		return a.find("token_answer", "clients expect 400 with the JSON error invalid_grant for an unknown code"+oauthError(a),
			"Let the proxy pass POST /oauth/token and its answer on unchanged, errors too: in nginx, proxy_intercept_errors off;")
	}
	if !strings.Contains(strings.ToLower(a.header.Get("Cache-Control")), "no-store") {
		return a.find("token_cacheable", "the answer lacks Cache-Control: no-store, so tokens could be kept on the way",
			"Let the proxy pass Cache-Control on as it is: in nginx, remove expires and proxy_hide_header Cache-Control.")
	}
	return nil
}
