package doctor

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"switchboard/internal/origin"
)

// replay is one client connecting.
type replay struct {
	client Client
	target *url.URL // what was pasted
	http   *http.Client

	metadataURL string // of the resource, from the challenge
	scope       string // from the challenge
	issuer      string
	server      serverMetadata
	clientID    string
}

// serverMetadata is the part of RFC 8414 that clients use.
type serverMetadata struct {
	Issuer       string   `json:"issuer"`
	Authorize    string   `json:"authorization_endpoint"`
	Token        string   `json:"token_endpoint"`
	Registration string   `json:"registration_endpoint"`
	Methods      []string `json:"code_challenge_methods_supported"`
	Documents    bool     `json:"client_id_metadata_document_supported"`
}

// step is a part of connecting. Its name goes behind "fails at".
type step struct {
	name string
	run  func(*replay, context.Context) *Finding
}

// steps are in the order in which the client meets them.
func (c Client) steps() []step {
	challenge := step{"the first request", (*replay).challenge}
	bearer := step{"a request with a token", (*replay).bearer}
	if c.Key {
		return []step{challenge, bearer}
	}
	all := []step{challenge, {"the resource metadata", (*replay).resource}}
	if c.Rooted {
		all = []step{challenge}
	}
	return append(all,
		step{"the server metadata", (*replay).metadata},
		step{"GET on the endpoint", (*replay).stream},
		step{"the registration", (*replay).register},
		step{"the sign-in page", (*replay).authorize},
		step{"the token endpoint", (*replay).token},
		bearer,
	)
}

// replay runs the steps of a client up to the first that fails.
func (d *Doctor) replay(ctx context.Context, target *url.URL, c Client) Result {
	r := &replay{client: c, target: target, http: d.client()}
	result := Result{ID: c.ID, Client: c.Name, Passed: []string{}}
	for _, s := range c.steps() {
		if f := s.run(r, ctx); f != nil {
			f.Step = s.name
			result.Finding = f
			break
		}
		result.Passed = append(result.Passed, s.name)
	}
	return result
}

// post sends a message to the endpoint.
func (r *replay) post(ctx context.Context, token string) (*answer, *Finding) {
	message, headers := r.client.opening()
	all := map[string]string{"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
	for name, value := range headers {
		all[name] = value
	}
	if token != "" {
		all["Authorization"] = "Bearer " + token
	}
	body, err := json.Marshal(message)
	if err != nil {
		panic(fmt.Sprintf("encoding a message of ours: %v", err))
	}
	return r.send(ctx, http.MethodPost, r.target.String(), body, all, http.StatusUnauthorized)
}

// bearerPattern finds challenges by their scheme, and parameterPattern their parameters (RFC 9110 §11.6.1).
var (
	bearerPattern    = regexp.MustCompile(`(?i)(^|,)\s*Bearer(\s|,|$)`)
	parameterPattern = regexp.MustCompile(`([A-Za-z_]+)="([^"]*)"`)
	quotedPattern    = regexp.MustCompile(`"[^"]*"`)
)

// challenge is the first request, which nobody has signed in for: 401 with the one challenge of RFC 9728 §5.1.
func (r *replay) challenge(ctx context.Context) *Finding {
	a, f := r.post(ctx, "")
	if f != nil {
		return f
	}
	if a.status != http.StatusUnauthorized {
		return a.find("not_asked", "a request without a token was not met with 401",
			"Make sure that this is the address of Switchboard, and that the proxy sends no Authorization of its own (in nginx, proxy_set_header Authorization).")
	}
	if !a.isJSON() {
		return a.find("not_json", "the 401 is not JSON, so something in front of Switchboard wrote it", "Let the proxy pass /mcp on with whatever status it gets: in nginx, proxy_intercept_errors off;")
	}
	challenges := a.header.Values("WWW-Authenticate")
	all := strings.Join(challenges, ", ")
	params := map[string][]string{}
	for _, m := range parameterPattern.FindAllStringSubmatch(all, -1) {
		params[m[1]] = append(params[m[1]], m[2])
	}
	switch count := len(bearerPattern.FindAllString(quotedPattern.ReplaceAllString(all, `""`), -1)); {
	case len(challenges) == 0:
		return a.find("challenge_missing", "the 401 has no WWW-Authenticate, which tells clients where to sign in", "Let the proxy pass the header on: in nginx, remove proxy_hide_header WWW-Authenticate.")
	case count != 1 || len(challenges) != 1 || len(params["resource_metadata"]) > 1:
		return a.find("challenge_many", fmt.Sprintf("WWW-Authenticate has %d values with %d Bearer challenges, clients want one: %s", len(challenges), count, all),
			"Let only Switchboard write WWW-Authenticate: in nginx, remove add_header WWW-Authenticate and auth_basic.")
	case len(params["resource_metadata"]) == 0:
		return a.find("challenge_bare", "the challenge names no resource_metadata: "+all, "Let the proxy pass Switchboard's WWW-Authenticate on as it is: in nginx, remove add_header WWW-Authenticate.")
	case len(params["error"]) > 0:
		return a.find("authorization_added", "the request had no token and the answer speaks of a bad one: something on the way added an Authorization header",
			"Remove it from the proxy: in nginx, proxy_set_header Authorization and auth_basic.")
	}
	if exposed := strings.ToLower(strings.Join(a.header.Values("Access-Control-Expose-Headers"), ",")); r.client.From == Browser && !allows(exposed, "www-authenticate") {
		return a.find("cors_hidden", "Access-Control-Expose-Headers does not name WWW-Authenticate, so the page cannot see where to sign in",
			"Let the proxy keep Switchboard's Access-Control-… headers: in nginx, remove proxy_hide_header and add_header for them.")
	}
	r.metadataURL, r.scope = params["resource_metadata"][0], strings.Join(params["scope"], " ")
	return r.otherAddress(a, "resource_metadata", r.metadataURL)
}

// otherAddress is the finding when the server names itself by another origin than the one that was pasted. A client
// of revision 2025-03-26 compares nothing and only follows, one with a key does not even follow.
func (r *replay) otherAddress(a *answer, member, named string) *Finding {
	used, _ := origin.Of(r.target)
	u, _ := url.Parse(named)
	its, ok := origin.Of(u)
	if r.client.Rooted || r.client.Key || ok && its.String() == used.String() {
		return nil
	}
	at := named
	if ok {
		at = its.String()
	}
	return a.find("other_address", fmt.Sprintf("%s is at %s, the address used is at %s, and clients refuse the difference", member, at, used),
		oneAddress(used, at))
}

// passUnchanged mends metadata that is not as Switchboard wrote it.
const passUnchanged = "Let the proxy pass /.well-known/ on to Switchboard unchanged and empty its cache."

// resource reads the metadata that the challenge names (RFC 9728 §3). Its resource must be what was pasted.
func (r *replay) resource(ctx context.Context) *Finding {
	a, f := r.read(ctx, r.metadataURL)
	if f != nil {
		return f
	}
	var m struct {
		Resource string   `json:"resource"`
		Servers  []string `json:"authorization_servers"`
	}
	if err := a.decode(&m); err != nil || len(m.Servers) == 0 || m.Servers[0] == "" {
		return a.find("metadata_incomplete", "it names no authorization server", passUnchanged)
	}
	if m.Resource != r.target.String() {
		if f := r.otherAddress(a, "resource", m.Resource); f != nil {
			return f
		}
		return a.find("resource_mismatch", fmt.Sprintf("it is about %q, what was pasted is %q, and clients refuse the difference", m.Resource, r.target),
			"Paste "+m.Resource+". Switchboard needs a host of its own: it does not work below a path that the proxy adds.")
	}
	r.issuer = m.Servers[0]
	return nil
}

// read gets a document in JSON.
func (r *replay) read(ctx context.Context, address string, expected ...int) (*answer, *Finding) {
	headers := map[string]string{"Accept": "application/json", "Mcp-Protocol-Version": r.client.Revision}
	a, f := r.send(ctx, http.MethodGet, address, nil, headers, append(expected, http.StatusOK)...)
	if f == nil && !slices.Contains(expected, a.status) && (a.status != http.StatusOK || !a.isJSON()) {
		f = a.find("not_json", "clients expect 200 with application/json", "Let the proxy pass /.well-known/ on to Switchboard unchanged: no other types, no pages of its own for errors.")
	}
	return a, f
}

// metadata reads that of the authorization server (RFC 8414 §3). A client of revision 2025-03-26 looks at the root of
// the host and, where there is none, takes endpoints at fixed paths.
func (r *replay) metadata(ctx context.Context) *Finding {
	var absent []int
	if r.client.Rooted {
		root, _ := origin.Of(r.target)
		r.issuer, absent = root.String(), []int{http.StatusNotFound}
	}
	u, err := url.Parse(r.issuer)
	if err != nil || u.Host == "" {
		return &Finding{Code: "issuer_unusable", Saw: fmt.Sprintf("authorization_servers names %q, which is no address", r.issuer), Do: "Set SWITCHBOARD_URL to the server's public origin and restart it."}
	}
	a, f := r.read(ctx, u.Scheme+"://"+u.Host+"/.well-known/oauth-authorization-server"+strings.TrimSuffix(u.Path, "/"), absent...)
	if f != nil {
		return f
	}
	if a.status == http.StatusNotFound {
		r.server = serverMetadata{
			Issuer: r.issuer, Authorize: r.issuer + "/authorize", Token: r.issuer + "/token", Registration: r.issuer + "/register", Methods: []string{"S256"},
		}
		return nil
	}
	if err := a.decode(&r.server); err != nil {
		return a.find("metadata_incomplete", "it is no metadata of an authorization server", passUnchanged)
	}
	return r.judge(a)
}

// judge compares the metadata with what clients insist on.
func (r *replay) judge(a *answer) *Finding {
	m := r.server
	if m.Issuer != r.issuer && !r.client.Rooted {
		return a.find("issuer_mismatch", fmt.Sprintf("the issuer is %q and was announced as %q; clients compare every character", m.Issuer, r.issuer),
			"Let the proxy rewrite no bodies (in nginx, sub_filter) and empty its cache, which may hold an answer from before SWITCHBOARD_URL changed.")
	}
	for _, endpoint := range [][2]string{{"authorization_endpoint", m.Authorize}, {"token_endpoint", m.Token}, {"registration_endpoint", m.Registration}} {
		member, address := endpoint[0], endpoint[1]
		if address == "" {
			return a.find("endpoint_missing", member+" is missing", passUnchanged)
		}
		u, err := url.Parse(address)
		if err != nil || u.Scheme != r.target.Scheme {
			return a.find("endpoint_scheme", fmt.Sprintf("%s is %s and the address used is %s://; clients refuse to go from one to the other", member, address, r.target.Scheme),
				"Set SWITCHBOARD_URL to the address that people paste and let the proxy rewrite no bodies (in nginx, sub_filter).")
		}
	}
	if !slices.Contains(m.Methods, "S256") {
		return a.find("no_s256", "code_challenge_methods_supported does not have S256, without which clients must stop", passUnchanged)
	}
	return nil
}

// stream is the GET with which clients ask for a stream. There is none, and they must hear that at once.
func (r *replay) stream(ctx context.Context) *Finding {
	a, f := r.send(ctx, http.MethodGet, r.target.String(), nil, map[string]string{"Accept": "text/event-stream"}, http.StatusUnauthorized, http.StatusMethodNotAllowed)
	switch {
	case f != nil && a != nil && a.timedOut():
		f.Code, f.Do = "stream_hangs", "Let the proxy hand answers on at once and open no stream by itself: in nginx, proxy_buffering off; and no rule for text/event-stream."
		return f
	case f != nil:
		return f
	case a.status != http.StatusUnauthorized && a.status != http.StatusMethodNotAllowed:
		return a.find("stream", "clients expect 401 or 405", "Let the proxy pass GET /mcp on to Switchboard like POST.")
	}
	return nil
}

// bearer sends a token that nobody issued. The answer shows whether tokens arrive: only to one that came does
// Switchboard say invalid_token (RFC 6750 §3.1).
func (r *replay) bearer(ctx context.Context) *Finding {
	token := "sb_at_this-is-the-doctor"
	if r.client.Key {
		token = "sb_live_this-is-the-doctor"
	}
	a, f := r.post(ctx, token)
	if f != nil {
		return f
	}
	if challenge := a.header.Get("WWW-Authenticate"); a.status != http.StatusUnauthorized || !strings.Contains(challenge, `error="invalid_token"`) {
		return a.find("authorization_stripped", "a token was sent and the server saw none, so nobody could ever call a tool",
			"Let the proxy pass Authorization on: in nginx, proxy_set_header Authorization $http_authorization; (Apache: CGIPassAuth On).")
	}
	return nil
}
