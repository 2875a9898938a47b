package oauth

import (
	"errors"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"switchboard/internal/scope"
)

// backToClient is the query of the location to which Begin sends a refused request. The request waits for a sign-in
// meanwhile, for its own browser, and leads to the same place afterwards; no answer to it is taken.
func (w *world) backToClient(q url.Values) (url.Values, error) {
	_, err := w.begin(q)
	var back *RedirectError
	if !errors.As(err, &back) {
		return nil, err
	}
	if want := q.Get("redirect_uri") + "?"; !strings.HasPrefix(back.Location, want) {
		w.t.Errorf("sent to %s, want %s", back.Location, want)
	}
	var later *RedirectError
	waits, err := w.server.Wait(w.t.Context(), browser, back)
	if err != nil {
		w.t.Fatal(err)
	}
	if _, err := w.server.Pending(w.t.Context(), waits, browser); !errors.As(err, &later) || later.Location != back.Location {
		w.t.Errorf("after the sign-in it is %v, and not sent to %s", err, back.Location)
	}
	if _, err := w.server.Pending(w.t.Context(), waits, "another browser"); !errors.Is(err, ErrGone) {
		w.t.Errorf("in another browser: %v", err)
	}
	if to, err := w.server.Decide(w.t.Context(), waits, browser, w.yes("org:read")); !errors.Is(err, ErrGone) {
		w.t.Errorf("an answer to it leads to %s, %v", to, err)
	}
	answer := answerIn(w.t, back.Location)
	if d := answer.Get("error_description"); !readable(d) {
		w.t.Errorf("the description %.200q is not what RFC 6749 §4.1.2.1 lets through", d)
	}
	return answer, nil
}

// readable reports whether a description keeps to the characters of RFC 6749 §4.1.2.1 and §5.2, and to a length
// that a header can bear.
func readable(description string) bool {
	return len(description) < 1000 && !strings.ContainsFunc(description, func(c rune) bool { return c < ' ' || c > '~' || c == '"' || c == '\\' })
}

func TestARequestWhoseRedirectCannotBeTrustedIsAPage(t *testing.T) {
	w := newWorld(t)
	type page struct {
		Status       int
		Code, Reason string
	}
	unknown, badRedirect, badRequest := page{400, "invalid_client", "unknown_client"}, page{400, "invalid_request", "bad_redirect"}, page{400, "invalid_request", "bad_request"}
	twice := func(name string) url.Values {
		q := query(w.desktop)
		q.Add(name, q.Get(name))
		return q
	}
	for name, c := range map[string]struct {
		q    url.Values
		want page
	}{
		"no client":                    {query(""), unknown},
		"unknown client":               {query("cli_nobody"), unknown},
		"a client id with a NUL":       {query("cli\x00"), unknown},
		"a client id that is no UTF-8": {query("cli\xff"), unknown},
		"a URL as client":              {query("https://app.example"), unknown},
		"foreign redirect":             {query(w.desktop, "redirect_uri", "https://evil.example/cb"), badRedirect},
		"other loopback name":          {query(w.desktop, "redirect_uri", "http://localhost/callback"), badRedirect},
		"other path":                   {query(w.desktop, "redirect_uri", "http://127.0.0.1/other"), badRedirect},
		"with a fragment":              {query(w.desktop, "redirect_uri", redirect+"#x"), badRedirect},
		"two clients":                  {twice("client_id"), badRequest},
		"two redirects":                {twice("redirect_uri"), badRequest},
		"two states":                   {twice("state"), badRequest},
		"too long":                     {query(w.desktop, "x", strings.Repeat("x", maxAuthorizeForm)), badRequest},
		"an error beside":              {query(w.desktop, "redirect_uri", "https://evil.example/cb", "response_type", "token"), badRedirect},
	} {
		_, err := w.begin(c.q)
		var got *PageError
		if !errors.As(err, &got) {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if diff := cmp.Diff(c.want, page{got.Status, got.Code, got.Reason}); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
	many := w.client("Two redirects", "http://127.0.0.1/a", "http://127.0.0.1/b")
	var got *PageError
	if _, err := w.begin(query(many, "redirect_uri", "")); !errors.As(err, &got) || got.Reason != "bad_redirect" {
		t.Errorf("no redirect_uri where there are two: %v", err)
	}
	if n := w.count(`SELECT count(*) FROM consent_requests`); n != 0 {
		t.Errorf("%d requests were kept", n)
	}
}

func TestARequestWithTheOnlyRedirectMayLeaveItOut(t *testing.T) {
	w := newWorld(t)
	location, err := w.server.Decide(t.Context(), w.mustBegin(query(w.desktop, "redirect_uri", "")), browser, w.yes("org:read"))
	if err != nil || !strings.HasPrefix(location, "http://127.0.0.1/callback?") {
		t.Errorf("%s %v", location, err)
	}
}

func TestAnErrorGoesBackToATrustedRedirect(t *testing.T) {
	w := newWorld(t)
	twice := func(name string) url.Values {
		q := query(w.desktop, "scope", "org:read")
		q.Add(name, q.Get(name))
		return q
	}
	for name, c := range map[string]struct {
		q    url.Values
		want string
	}{
		"response_type missing":  {query(w.desktop, "response_type", ""), "invalid_request"},
		"response_type token":    {query(w.desktop, "response_type", "token"), "unsupported_response_type"},
		"response_type hybrid":   {query(w.desktop, "response_type", "code id_token"), "unsupported_response_type"},
		"response_mode fragment": {query(w.desktop, "response_mode", "fragment"), "invalid_request"},
		"response_mode form":     {query(w.desktop, "response_mode", "form_post"), "invalid_request"},
		"prompt none":            {query(w.desktop, "prompt", "none"), "interaction_required"},
		"request":                {query(w.desktop, "request", "e30.e30."), "request_not_supported"},
		"request_uri":            {query(w.desktop, "request_uri", "https://app.example/r"), "request_uri_not_supported"},
		"no challenge":           {query(w.desktop, "code_challenge", ""), "invalid_request"},
		"challenge plain":        {query(w.desktop, "code_challenge_method", "plain"), "invalid_request"},
		"challenge method gone":  {query(w.desktop, "code_challenge_method", ""), "invalid_request"},
		"challenge method s256":  {query(w.desktop, "code_challenge_method", "s256"), "invalid_request"},
		"challenge short":        {query(w.desktop, "code_challenge", "abc"), "invalid_request"},
		"challenge padded":       {query(w.desktop, "code_challenge", query("").Get("code_challenge")+"="), "invalid_request"},
		"two challenges":         {twice("code_challenge"), "invalid_request"},
		"two methods":            {twice("code_challenge_method"), "invalid_request"},
		"two response types":     {twice("response_type"), "invalid_request"},
		"two scopes":             {twice("scope"), "invalid_request"},
		"two of anything":        {url.Values(with(query(w.desktop), "x", "1")), "invalid_request"},
		"unknown resource":       {query(w.desktop, "resource", "https://other.example/mcp"), "invalid_target"},
		"resource of the origin": {query(w.desktop, "resource", issuer), "invalid_target"},
		"resource fragment":      {query(w.desktop, "resource", resource+"#f"), "invalid_target"},
		"resource empty frag":    {query(w.desktop, "resource", resource+"#"), "invalid_target"},
		"resource over http":     {query(w.desktop, "resource", "http://switch.example/mcp"), "invalid_target"},
		"resource with user":     {query(w.desktop, "resource", "https://u@switch.example/mcp"), "invalid_target"},
		"resource in other case": {query(w.desktop, "resource", issuer+"/MCP"), "invalid_target"},
		"resource port":          {query(w.desktop, "resource", "https://switch.example:8443/mcp"), "invalid_target"},
		"resource relative":      {query(w.desktop, "resource", "/mcp"), "invalid_target"},
		"resource broken":        {query(w.desktop, "resource", "https://%zz"), "invalid_target"},
		"two resources":          {url.Values(with(query(w.desktop), "resource", "")), ""},
		"unknown scope":          {query(w.desktop, "scope", "nothing:here"), "invalid_scope"},
		"unknown scope, openid":  {query(w.desktop, "scope", "openid nothing:here"), "invalid_scope"},
	} {
		switch name {
		case "two resources":
			c.q["resource"], c.want = []string{resource, mail}, "invalid_target"
		case "two of anything":
			c.q[strings.Repeat("é\"\\\n", 200)] = []string{"1", "2"}
		}
		got, err := w.backToClient(c.q)
		if got.Get("error_description") == "" {
			t.Errorf("%s: no description in %v, %v", name, got, err)
		}
		got.Del("error_description")
		if diff := cmp.Diff(url.Values{"error": {c.want}, "iss": {issuer}, "state": {"xyz"}}, got); diff != "" {
			t.Errorf("%s: %v\n%s", name, err, diff)
		}
	}
}

func TestStateComesBackUnchangedOnSuccessAndOnErrors(t *testing.T) {
	w := newWorld(t)
	for _, state := range []string{"", "x", strings.Repeat("s", 32), strings.Repeat("S", 512), "a+b/=&é… %2B#?", "\x00\n\t", strings.Repeat("long", 1500)} {
		want := []string{state}
		if state == "" {
			want = nil
		}
		success, err := w.decide(w.mustBegin(query(w.desktop, "state", state)), w.yes("org:read"))
		if err != nil || success.Get("code") == "" || success.Get("iss") != issuer || !cmp.Equal(want, success["state"]) {
			t.Errorf("state %.40q on success: %.200v %v", state, success, err)
		}
		no, err := w.decide(w.mustBegin(query(w.desktop, "state", state)), Decision{PersonID: w.owner.ID, OrgID: w.org.ID})
		if err != nil || no.Get("error") != "access_denied" || no.Get("iss") != issuer || !cmp.Equal(want, no["state"]) {
			t.Errorf("state %.40q on denial: %.200v %v", state, no, err)
		}
		failed, err := w.backToClient(query(w.desktop, "state", state, "response_type", "token"))
		if err != nil || failed.Get("error") == "" || failed.Get("iss") != issuer || !cmp.Equal(want, failed["state"]) {
			t.Errorf("state %.40q on an error: %.200v %v", state, failed, err)
		}
	}
}

func TestSpellingsOfAResourceAreOneAndNoneIsTheDefault(t *testing.T) {
	w := newWorld(t)
	for _, c := range []struct {
		resources []string
		want      string
	}{
		{nil, resource},
		{[]string{""}, resource},
		{[]string{resource}, resource},
		{[]string{resource + "/"}, resource},
		{[]string{"HTTPS://Switch.EXAMPLE/mcp"}, resource},
		{[]string{"https://switch.example:443/mcp"}, resource},
		{[]string{resource + "?x=1"}, resource},
		{[]string{resource, resource + "/"}, resource},
		{[]string{mail}, mail},
		{[]string{mail + "/"}, mail},
	} {
		q := query(w.desktop)
		q["resource"] = c.resources
		p, err := w.server.Pending(t.Context(), w.mustBegin(q), browser)
		if err != nil || p.Resource != c.want {
			t.Errorf("%q is %q, %v", c.resources, p.Resource, err)
		}
	}
}

func TestScopesThatAreAskedForBecomeThoseThatExist(t *testing.T) {
	w := newWorld(t)
	byDefault := scope.Of("contacts:read", "contacts:write", "org:read", "org:write")
	for _, c := range []struct {
		raw  string
		want scope.Set
	}{
		{"", byDefault},
		{" ", byDefault},
		{"openid profile email offline_access", byDefault},
		{"offline_access", byDefault},
		{"org:read", scope.Of("org:read")},
		{"org:read offline_access openid", scope.Of("org:read")},
		{"org:read org:read  contacts:read", scope.Of("contacts:read", "org:read")},
		{"org:read nothing:here", scope.Of("org:read")},
		{"ORG:READ org:read", scope.Of("org:read")},
		{"spocket", scope.Of("apps:read", "apps:write")},
		{"spocket org:read", scope.Of("apps:read", "apps:write", "org:read")},
		{catalog().Known().String() + " offline_access", catalog().Known()},
	} {
		p, err := w.server.Pending(t.Context(), w.mustBegin(query(w.desktop, "scope", c.raw)), browser)
		if diff := cmp.Diff(c.want, p.Requested); err != nil || diff != "" {
			t.Errorf("%q: %v\n%s", c.raw, err, diff)
		}
	}
}

func TestWhateverScopeIsAskedForTheTokensSayWhatWasGranted(t *testing.T) {
	w := newWorld(t)
	status, narrow := w.register(`{"redirect_uris":["http://127.0.0.1/callback"],"scope":"contacts:read"}`)
	if status != 201 {
		t.Fatal(narrow)
	}
	all := catalog().Known().String()
	const byDefault = "contacts:read contacts:write org:read org:write"
	for _, client := range []string{w.desktop, narrow["client_id"].(string)} {
		for asked, want := range map[string]string{"": byDefault, all: all, all + " offline_access": all, "org:read": "org:read", "offline_access": byDefault} {
			request := w.mustBegin(query(client, "scope", asked))
			p, err := w.server.Pending(t.Context(), request, browser)
			if err != nil {
				t.Fatal(err)
			}
			answer, err := w.decide(request, w.yes(p.Requested.String()))
			if err != nil {
				t.Fatal(err)
			}
			got := w.exchange(answer.Get("code"), "client_id", client)
			if who, err := w.who(got.Access); err != nil || who.Scopes.String() != want {
				t.Errorf("%q: the token may do %v, %v", asked, who.Scopes, err)
			}
			if got.Status != 200 || got.Refresh == "" || got.Expires != 3600 || got.Scope != want {
				t.Errorf("%q: %+v", asked, got)
			}
		}
	}
}

func TestSignInAttemptsOfOneAddressAreBounded(t *testing.T) {
	w := newWorld(t)
	var page *PageError
	for i := range authorizePerMinute + 1 {
		r := httptest.NewRequest("GET", "/oauth/authorize?client_id=nobody", nil)
		_, err := w.server.Begin(r, browser)
		if !errors.As(err, &page) || (page.Reason == "rate_limited") != (i == authorizePerMinute) {
			t.Fatalf("attempt %d: %v", i+1, err)
		}
	}
	if page.Status != 429 || page.RetryAfter <= 0 {
		t.Errorf("%+v", page)
	}
}
