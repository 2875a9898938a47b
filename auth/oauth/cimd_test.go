package oauth

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"switchboard/internal/scope"
)

func TestAClientOfADocumentSignsInAtAnyLocalhostPort(t *testing.T) {
	w := published(t)
	id := w.vendor.document("/code/client.json", "client_name", "Claude Code")
	for _, uri := range []string{"http://localhost:51234/callback", "http://127.0.0.1:8/callback"} {
		request := w.mustBegin(query(id, "redirect_uri", uri, "scope", "org:read"))
		got, err := w.server.Pending(t.Context(), request, browser)
		want := Pending{
			ID: request, ClientID: id, ClientName: "Claude Code", ClientHost: w.vendor.server.Listener.Addr().String(), RedirectURI: uri, Loopback: true,
			RedirectHost: strings.TrimSuffix(strings.TrimPrefix(uri, "http://"), "/callback"), Resource: resource, Requested: scope.Of("org:read"), BlockedIn: []string{},
		}
		if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(Pending{}, "ExpiresAt")); err != nil || diff != "" {
			t.Errorf("%v\n%s", err, diff)
		}
		answer, err := w.decide(request, w.yes("org:read"))
		if err != nil {
			t.Fatal(err)
		}
		tokens := w.exchange(answer.Get("code"), "client_id", id, "redirect_uri", uri)
		if tokens.Status != 200 {
			t.Fatalf("%s: %+v", uri, tokens)
		}
		w.alive(uri, tokens)
		if next := w.refresh(tokens.Refresh, "client_id", id); next.Status != 200 {
			t.Errorf("%s: %+v", uri, next)
		}
	}
	if n := w.vendor.count("/code/client.json"); n != 1 {
		t.Errorf("the document was fetched %d times", n)
	}
}

// The shape of ChatGPT: a document for each connector, with a callback of its own and a key.
func TestEachConnectorIsAClientWithACallbackOfItsOwn(t *testing.T) {
	w := published(t)
	callback := func(c string) string { return "https://chatgpt.example/connector/oauth/" + c }
	a := w.vendor.document("/oauth/a/client.json", "redirect_uris", []string{callback("a")})
	b := w.vendor.document("/oauth/b/client.json", "redirect_uris", []string{callback("b")})
	for _, c := range []struct {
		id, redirect string
		ok           bool
	}{{a, callback("a"), true}, {b, callback("b"), true}, {a, callback("b"), false}, {b, callback("a"), false}, {a, callback("a") + "/", false}} {
		request, err := w.begin(query(c.id, "redirect_uri", c.redirect))
		var page *PageError
		if !c.ok && (!errors.As(err, &page) || page.Reason != "bad_redirect") || c.ok && err != nil {
			t.Errorf("%s for %s: %v", c.redirect, c.id, err)
		}
		if c.ok {
			location, err := w.server.Decide(t.Context(), request, browser, w.yes("contacts:read"))
			if err != nil || !strings.HasPrefix(location, c.redirect+"?") {
				t.Errorf("%s: %s %v", c.id, location, err)
			}
		}
	}
}

func TestABadDocumentIsAPageWithinSecondsAndNothingIsKept(t *testing.T) {
	w := published(t)
	text := func(kind, body string) http.HandlerFunc { return page(kind, "", body) }
	good := func(path string) string {
		return fmt.Sprintf(`{"client_id":%q,"client_name":"App","redirect_uris":["http://127.0.0.1/callback"]`, w.vendor.at(path))
	}
	for name, c := range map[string]struct {
		page   http.HandlerFunc
		status int
		reason string
	}{
		"HTML":         {text("text/html", "<html>"), 400, "document_invalid"},
		"JSON as HTML": {text("text/html", good("/JSON-as-HTML")+"}"), 400, "document_invalid"},
		"404":          {nil, 400, "document_invalid"},
		"500":          {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(500) }, 503, "document_unreachable"},
		"a redirect":   {func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/good", http.StatusFound) }, 400, "document_invalid"},
		"too long":     {text("application/json", good("/too-long")+`,"x":"`+strings.Repeat("x", 64<<10)+`"}`), 503, "document_unreachable"},
		"slow":         {func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, 503, "document_unreachable"},
		"cut off": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "99")
			fmt.Fprint(w, "{")
		}, 503, "document_unreachable"},
		"no UTF-8":       {text("application/json", good("/no-UTF-8")+",\"x\":\"\xff\"}"), 400, "document_invalid"},
		"no JSON":        {text("application/json", "{"), 400, "document_invalid"},
		"no object":      {text("application/json", "[]"), 400, "document_invalid"},
		"another id":     {text("application/json", good("/other")+"}"), 400, "document_invalid"},
		"an id in case":  {text("application/json", strings.Replace(good("/an-id-in-case"), "client_id", "Client_ID", 1)+"}"), 400, "document_invalid"},
		"no name":        {text("application/json", strings.Replace(good("/no-name"), "client_name", "x", 1)+"}"), 400, "document_invalid"},
		"no redirects":   {text("application/json", strings.Replace(good("/no-redirects"), "redirect_uris", "x", 1)+"}"), 400, "document_invalid"},
		"bad redirects":  {text("application/json", strings.Replace(good("/bad-redirects"), "http://127.0.0.1/callback", "javascript:1", 1)+"}"), 400, "document_invalid"},
		"a secret":       {text("application/json", good("/a-secret")+`,"client_secret":"x"}`), 400, "document_invalid"},
		"a secret's end": {text("application/json", good("/a-secret's-end")+`,"client_secret_expires_at":0}`), 400, "document_invalid"},
		"secret method":  {text("application/json", good("/secret-method")+`,"token_endpoint_auth_method":"client_secret_post"}`), 400, "document_invalid"},
		"no keys":        {text("application/json", good("/no-keys")+`,"token_endpoint_auth_method":"private_key_jwt"}`), 400, "document_invalid"},
		"private keys":   {text("application/json", good("/private-keys")+`,"token_endpoint_auth_method":"private_key_jwt","jwks":{"keys":[{"kty":"oct","k":"AAAA"}]}}`), 400, "document_invalid"},
	} {
		path := "/" + strings.ReplaceAll(name, " ", "-")
		w.vendor.serve(path, c.page)
		for range 2 {
			started := time.Now()
			_, err := w.begin(query(w.vendor.at(path)))
			var got *PageError
			if !errors.As(err, &got) || got.Status != c.status || got.Reason != c.reason || (got.Detail == "") != (got.Status == 503) {
				t.Errorf("%s: %+v", name, err)
			}
			if took := time.Since(started); took > 3*fetchTime {
				t.Errorf("%s: the person waited %s", name, took)
			}
		}
		if n := w.vendor.count(path); n != 2 {
			t.Errorf("%s: asked %d times: an error was kept", name, n)
		}
		if got := w.exchange("sb_ac_x", "client_id", w.vendor.at(path)); got != refusal(401, "invalid_client") {
			t.Errorf("%s at the token endpoint: %+v", name, got)
		}
	}
	if n := w.count(`SELECT count(*) FROM clients WHERE kind = 'document'`); n != 0 {
		t.Errorf("%d rows were kept", n)
	}
	if n := w.vendor.count("/good"); n != 0 {
		t.Error("a redirect was followed")
	}
}

func TestADocumentMaySayMoreThanWeRead(t *testing.T) {
	w := published(t)
	long := strings.Repeat("x", 6<<10)
	id := w.vendor.document("/more", "x_more", map[string]any{"a": []any{nil}}, "contacts", []any{}, "tos_uri", long, "token_endpoint_auth_method", nil,
		"grant_types", []string{"authorization_code"}, "redirect_uris", []string{"https://app.example/cb", "javascript:1", "http://evil.example/", redirect})
	for _, kind := range []string{"application/json; charset=utf-8", "application/oauth-client+json"} {
		w.exec(`UPDATE clients SET fresh_until = 1`)
		body := w.vendor.pages["/more"]
		w.vendor.serve("/more", func(rw http.ResponseWriter, r *http.Request) { body(&typed{rw, kind}, r) })
		w.mustBegin(query(id))
	}
	if _, err := w.begin(query(id, "redirect_uri", "http://evil.example/")); err == nil {
		t.Error("a redirect URI that cannot be served is served")
	}
}

// typed answers with another content type than it was told.
type typed struct {
	http.ResponseWriter
	kind string
}

func (w *typed) Write(b []byte) (int, error) {
	w.Header().Set("Content-Type", w.kind)
	return w.ResponseWriter.Write(b)
}

func TestAnIdThatIsNoDocumentURLIsAnUnknownClient(t *testing.T) {
	w := published(t)
	good := w.vendor.document("/d/client.json")
	at := w.vendor.server.URL
	for _, id := range []string{
		"http" + strings.TrimPrefix(good, "https"), at, at + "/", good + "#", good + "#x", "https://u@" + strings.TrimPrefix(good, "https://"),
		"https://u:p@" + strings.TrimPrefix(good, "https://"), at + "/d/./client.json", at + "/x/../d/client.json", at + "/x/%2e%2e/d/client.json", at + "/x/.%2E/d/client.json",
		good + " ", good + "\x00", good + "\u00e9", "https:/" + strings.TrimPrefix(good, "https://"), "https:///d/client.json", "HTTPS" + strings.TrimPrefix(good, "https"),
		at + "/" + strings.Repeat("a", 3000), "https://%EF%BD%85vil.example/client.json", "https://ex%C2%ADample.com/client.json", "https://example%E3%80%82com/x",
	} {
		_, err := w.begin(query(id))
		var got *PageError
		if !errors.As(err, &got) || got.Status != 400 || got.Reason != "unknown_client" {
			t.Errorf("%.100q: %v", id, err)
		}
	}
	if n := w.vendor.count("/d/client.json"); n != 0 {
		t.Errorf("the document was fetched %d times", n)
	}
	// What only looks the same is another client, which this document is not about.
	_, err := w.begin(query(good + "?"))
	var got *PageError
	if !errors.As(err, &got) || got.Reason != "document_invalid" {
		t.Errorf("another spelling: %v", err)
	}
}

func TestADocumentThatDisappearsBreaksNothingThatRuns(t *testing.T) {
	w := published(t)
	id := w.vendor.document("/client.json")
	begun := w.mustBegin(query(id))
	w.vendor.server.Close()
	answer, err := w.decide(begun, w.yes("org:read"))
	if err != nil {
		t.Fatal(err)
	}
	tokens := w.exchange(answer.Get("code"), "client_id", id)
	next := w.refresh(tokens.Refresh, "client_id", id)
	if tokens.Status != 200 || next.Status != 200 {
		t.Fatalf("with the document's server away: %+v, %+v", tokens, next)
	}
	w.mustBegin(query(id)) // fresh still
	w.exec(`UPDATE clients SET fresh_until = 1`)
	var page *PageError
	if _, err := w.begin(query(id)); !errors.As(err, &page) || page.Reason != "document_unreachable" || page.Status != 503 {
		t.Errorf("a new sign-in with a stale document: %v", err)
	}
	if again := w.refresh(next.Refresh, "client_id", id); again.Status != 200 {
		t.Errorf("and a refresh after it: %+v", again)
	}
}

func TestADocumentThatIsNoneAnyMoreStandsForNoNewSignIn(t *testing.T) {
	w := published(t)
	id := w.vendor.document("/client.json")
	w.mustBegin(query(id))
	due := func() { w.exec(`UPDATE clients SET fresh_until = ?`, time.Now().Add(-time.Minute).UnixMicro()) }
	due()
	w.vendor.serve("/client.json", func(rw http.ResponseWriter, _ *http.Request) { rw.WriteHeader(http.StatusBadGateway) })
	w.mustBegin(query(id)) // its server is in trouble
	w.vendor.serve("/client.json", nil)
	var page *PageError
	for range 10 { // also when we have asked too often to ask again
		if _, err := w.begin(query(id)); !errors.As(err, &page) || page.Status < 400 {
			t.Fatalf("a document that is gone: %v", err)
		}
	}
	if n := w.vendor.count("/client.json"); n > clientFetchesPerMinute {
		t.Errorf("asked %d times", n)
	}
}

func TestADocumentThatChangesCountsForNewSignInsOnly(t *testing.T) {
	w := published(t)
	id := w.vendor.document("/client.json", "client_name", "Before")
	answer, err := w.decide(w.mustBegin(query(id)), w.yes("org:read"))
	if err != nil {
		t.Fatal(err)
	}
	tokens := w.exchange(answer.Get("code"), "client_id", id)
	w.vendor.document("/client.json", "client_name", "After", "redirect_uris", []string{"https://app.example/cb"},
		"token_endpoint_auth_method", "private_key_jwt", "jwks", parsed(t, ecKeys))
	w.mustBegin(query(id)) // it is fresh, so the old one stands
	w.exec(`UPDATE clients SET fresh_until = 1`)
	var page *PageError
	if _, err := w.begin(query(id)); !errors.As(err, &page) || page.Reason != "bad_redirect" {
		t.Errorf("the redirect URI that is gone: %v", err)
	}
	request := w.mustBegin(query(id, "redirect_uri", "https://app.example/cb"))
	if p, err := w.server.Pending(t.Context(), request, browser); err != nil || p.ClientName != "After" {
		t.Errorf("%+v %v", p, err)
	}
	next := w.refresh(tokens.Refresh, "client_id", id)
	if next.Status != 200 {
		t.Errorf("a grant from before the keys: %+v", next)
	}
	w.alive("from before the keys", next)
	// What is allowed from now on needs the key.
	answer, err = w.decide(request, w.yes("org:read"))
	if err != nil {
		t.Fatal(err)
	}
	if got := w.exchange(answer.Get("code"), "client_id", id, "redirect_uri", "https://app.example/cb"); got != refusal(401, "invalid_client") {
		t.Errorf("a grant from after the keys, without one: %+v", got)
	}
}

func TestCachingHeadersCountWithinBounds(t *testing.T) {
	now := time.Now()
	for header, want := range map[string]time.Duration{
		"":                                      noDocumentLife,
		"Cache-Control: max-age=7200":           2 * time.Hour,
		"Cache-Control: max-age=5":              minDocumentLife,
		"Cache-Control: max-age=0":              minDocumentLife,
		"Cache-Control: no-store":               minDocumentLife,
		"Cache-Control: no-cache":               minDocumentLife,
		"Cache-Control: max-age=99999999999999": maxDocumentLife,
		"Cache-Control: public, max-age=31536000, immutable":             maxDocumentLife,
		"Cache-Control: s-maxage=3600, max-age=60":                       time.Hour,
		"Cache-Control: \"broken":                                        noDocumentLife,
		"Expires: 0":                                                     minDocumentLife,
		"Expires: " + now.Add(-time.Hour).UTC().Format(http.TimeFormat):  minDocumentLife,
		"Expires: " + now.Add(3*time.Hour).UTC().Format(http.TimeFormat): 3 * time.Hour,
	} {
		h := http.Header{}
		if name, value, ok := strings.Cut(header, ": "); ok {
			h.Set(name, value)
		}
		if got := documentLife(h); (got - want).Abs() > 2*time.Second {
			t.Errorf("%q: %s, want %s", header, got, want)
		}
	}
}

func TestADocumentIsFetchedAgainWithinADayWhateverItsServerSays(t *testing.T) {
	w := published(t)
	id := w.vendor.document("/client.json")
	body := w.vendor.pages["/client.json"]
	w.vendor.serve("/client.json", func(rw http.ResponseWriter, r *http.Request) { body(&cached{rw, "max-age=31536000, immutable"}, r) })
	w.mustBegin(query(id))
	w.age(maxDocumentLife - time.Minute)
	w.mustBegin(query(id))
	if n := w.vendor.count("/client.json"); n != 1 {
		t.Errorf("asked %d times within a day", n)
	}
	w.vendor.document("/client.json", "redirect_uris", []string{"https://app.example/cb"})
	w.age(2 * time.Minute)
	var page *PageError
	if _, err := w.begin(query(id)); !errors.As(err, &page) || page.Reason != "bad_redirect" {
		t.Errorf("the redirect URI of the day before: %v", err)
	}
	w.mustBegin(query(id, "redirect_uri", "https://app.example/cb"))
}

// cached answers with another Cache-Control than it was told.
type cached struct {
	http.ResponseWriter
	control string
}

func (w *cached) Write(b []byte) (int, error) {
	w.Header().Set("Cache-Control", w.control)
	return w.ResponseWriter.Write(b)
}

func TestTheOperatorSaysWhichHostsMayPublish(t *testing.T) {
	for _, c := range []struct {
		allow, deny []string
		id          string
		want        bool
	}{
		{nil, nil, "https://claude.ai/x", true},
		{[]string{"claude.ai"}, nil, "https://claude.ai/x", true},
		{[]string{"claude.ai"}, nil, "https://CLAUDE.ai:8443/x", true},
		{[]string{"claude.ai"}, nil, "https://claude.ai./x", true},
		{[]string{"claude.ai"}, nil, "https://evil-claude.ai/x", false},
		{[]string{"claude.ai"}, nil, "https://claude.ai.evil.example/x", false},
		{[]string{"claude.ai"}, nil, "https://www.claude.ai/x", false},
		{[]string{"*.example.com"}, nil, "https://a.b.example.com/x", true},
		{[]string{"*.example.com"}, nil, "https://example.com/x", false},
		{[]string{"*.example.com"}, nil, "https://evilexample.com/x", false},
		{[]string{" Claude.AI "}, nil, "https://claude.ai/x", true},
		{nil, []string{"*.example.com"}, "https://a.example.com/x", false},
		{nil, []string{"evil.example"}, "https://evil.example./x", false},
		{[]string{"a.example"}, []string{"a.example"}, "https://a.example/x", false},
		{[]string{"*"}, nil, "https://a.example/x", true},
		{nil, []string{" * "}, "https://a.example/x", false},
		{nil, []string{"evil.example"}, "https://%EF%BD%85vil.example/x", false},
		{nil, nil, "https://%zz/x", false},
	} {
		if got := (HostPolicy{c.allow, c.deny}).admits(c.id); got != c.want {
			t.Errorf("allow %v, deny %v, %s: %v", c.allow, c.deny, c.id, got)
		}
	}
	w := published(t)
	for pattern, offered := range map[string]bool{"*": false, "*.example": true} {
		w.hosts.Deny = []string{pattern}
		w.serve(w.ring(), lifetimes)
		if got := w.server.serverMetadata().DocumentsSupported; got != offered {
			t.Errorf("with %s denied, documents are offered: %v", pattern, got)
		}
	}
	w.hosts.Deny = nil
	w.serve(w.ring(), lifetimes)
	id := w.vendor.document("/client.json")
	answer, err := w.decide(w.mustBegin(query(id)), w.yes("org:read"))
	if err != nil {
		t.Fatal(err)
	}
	tokens := w.exchange(answer.Get("code"), "client_id", id)
	w.hosts.Deny = []string{"127.0.0.1"}
	w.serve(w.ring(), lifetimes)
	var page *PageError
	if _, err := w.begin(query(id)); !errors.As(err, &page) || page.Reason != "document_refused" || page.Status != 403 {
		t.Errorf("a denied host: %v", err)
	}
	if got := w.refresh(tokens.Refresh, "client_id", id); got != refusal(401, "invalid_client") {
		t.Errorf("a refresh of a denied host's app: %+v", got)
	}
}

func TestALinkCannotMakeTheServerFloodAHost(t *testing.T) {
	w := published(t)
	asked, told := 0, 0
	for i := range 400 {
		path := fmt.Sprintf("/flood/%d", i)
		_, err := w.begin(query(w.vendor.at(path))) // each from another address
		var page *PageError
		if errors.As(err, &page) && page.Reason == "document_unreachable" {
			told++
		}
		asked += w.vendor.count(path)
	}
	if asked > hostFetchesPerMinute+20 || asked+told != 400 {
		t.Errorf("the host was asked %d times, and %d people were told", asked, told)
	}
}

func TestManyAtOnceShareOneFetch(t *testing.T) {
	w := published(t)
	id := w.vendor.document("/client.json")
	body := w.vendor.pages["/client.json"]
	var here sync.WaitGroup // everybody is on the way
	here.Add(20)
	w.vendor.serve("/client.json", func(rw http.ResponseWriter, r *http.Request) {
		here.Wait()
		body(rw, r)
	})
	done := make(chan error, 20)
	for range cap(done) {
		go func() {
			here.Done()
			_, err := w.begin(query(id))
			done <- err
		}()
	}
	for range cap(done) {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	if n := w.vendor.count("/client.json"); n > clientFetchesPerMinute/2 { // one may look at the row while another writes it
		t.Errorf("%d fetches for 20 requests at once", n)
	}
}
