package consentui

import (
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"switchboard/auth/oauth"
	"switchboard/internal/trial"
)

// Where a person goes on after signing in is a page of ours, however the link was written.
func FuzzWhereASignInLeads(f *testing.F) {
	for _, seed := range []string{"", "keys", "https://evil.example", "//evil.example", `\evil.example`, "/keys", "..", "keys\r\nX: y", "a", "javascript:alert(1)", strings.Repeat("a", 129), "keys?x", "%2f%2fevil.example"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, next string) {
		checkPlace(t, next, after(next))
		checkPlace(t, next, signInPath(endpoint{name: "consent", consent: true}, &visit{subject: next}))
	})
}

// checkPlace holds for every address that our own pages lead to.
func checkPlace(t *testing.T, sent, to string) {
	t.Helper()
	at, err := url.Parse("https://switch.example")
	if err == nil {
		at, err = at.Parse(to)
	}
	if err != nil || at.Host != "switch.example" || at.User != nil || at.Scheme != "https" || to[0] != '/' || len(to) > 1 && strings.ContainsRune(`/\`, rune(to[1])) ||
		strings.ContainsFunc(to, func(c rune) bool { return c <= ' ' || c > '~' }) {
		t.Errorf("%q leads to %q", sent, to)
	}
}

// A form that we did not make does nothing. One that we made, filled in with anything, ends in a page, in a page that says
// what is wrong, or in another page of ours; never in trouble.
func FuzzForms(f *testing.F) {
	paths := []string{"/keys", "/clients", "/connections", "/organization", "/sign-in", "/consent/req_1", "/setup", "/sign-out"}
	for i, file := range []string{"keys", "clients", "connections", "organization", "signin", "consent", "setup", "signin"} {
		for _, seed := range trial.Seeds(f, nil, file) {
			f.Add(uint8(i), seed)
		}
	}
	f.Add(uint8(0), "create=key&name=a&scope=contacts%3Aread&expires=30d")
	f.Add(uint8(5), "decision=approve&scope=contacts%3Aread&org="+clinic.ID)
	w := newWorld()
	ui := newUI(f, w, "http://localhost")
	mux := http.NewServeMux()
	ui.Routes(mux)
	cookies := signInCookies(f, ui, ui.cookies.name(browserCookie))
	browser := cookies[0].Value
	signedIn := w.sessions
	f.Fuzz(func(t *testing.T, at uint8, body string) {
		path := paths[int(at)%len(paths)]
		purpose, subject, as := strings.TrimPrefix(path, "/"), "", amira.ID
		switch {
		case strings.HasPrefix(path, "/consent/"):
			purpose, subject = "consent", "req_1"
		case path == "/sign-in" || path == "/setup":
			as = ""
		}
		own := ui.seal(browser, purpose, as, subject)
		ours := url.Values{"csrf": {own.Token}, "as": {own.As}, "in": {clinic.ID}}.Encode()
		for _, sealed := range []bool{false, true} {
			w.sessions, w.pending, w.browsers = maps.Clone(signedIn), map[string]oauth.Pending{}, map[string]string{}
			_, _ = w.Begin(httptest.NewRequest(http.MethodGet, "/", nil), browser)
			before := len(w.newKeys) + len(w.decisions) + len(w.setups)
			sent := body
			if sealed {
				sent = ours + "&" + body
			}
			r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, path, strings.NewReader(sent))
			r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
			for _, c := range cookies {
				r.AddCookie(&http.Cookie{Name: c.Name, Value: c.Value})
			}
			rec := httptest.NewRecorder()
			mux.ServeHTTP(rec, r)
			to := rec.Header().Get("Location")
			if rec.Code >= 500 || !utf8.ValidString(rec.Body.String()) {
				t.Errorf("%s %q: %d", path, sent, rec.Code)
			}
			if to != "" && to != w.location {
				checkPlace(t, sent, to)
			}
			changed := len(w.newKeys)+len(w.decisions)+len(w.setups) != before
			if !sealed && !strings.Contains(body, own.Token) && (changed || rec.Code != http.StatusForbidden && rec.Code != http.StatusBadRequest) {
				t.Errorf("%s %q without a seal: %d to %q", path, sent, rec.Code, to)
			}
		}
	})
}

// An authorization request that comes as a form goes on as the same request, here.
func FuzzAuthorizationForms(f *testing.F) {
	for _, seed := range trial.Seeds(f, nil, "authorize") {
		f.Add(seed)
	}
	ui := newUI(f, newWorld(), "http://localhost")
	mux := http.NewServeMux()
	ui.Routes(mux)
	f.Fuzz(func(t *testing.T, body string) {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/oauth/authorize?client_id=of-the-address", strings.NewReader(body))
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		rec := httptest.NewRecorder()
		mux.ServeHTTP(rec, r)
		to := rec.Header().Get("Location")
		if rec.Code == http.StatusBadRequest && to == "" {
			return
		}
		want, _ := url.ParseQuery(body)
		_, query, _ := strings.Cut(to, "?")
		got, err := url.ParseQuery(query)
		same := err == nil && len(got) == len(want)
		for name, values := range want {
			same = same && slices.Equal(got[name], values)
		}
		if rec.Code != http.StatusSeeOther || !strings.HasPrefix(to, "/oauth/authorize?") || !same {
			t.Errorf("%q: %d to %q", body, rec.Code, to)
		}
		checkPlace(t, body, to)
	})
}
