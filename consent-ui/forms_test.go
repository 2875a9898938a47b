package consentui

import (
	"bufio"
	"bytes"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"switchboard/auth"
	"switchboard/auth/accounts"
	"switchboard/internal/scope"
	"testing"
)

func TestAFormIsGoodInItsOwnJarAndNowhereElse(t *testing.T) {
	type visit struct{ first, other *browser }
	open := func(b *browser) string { return b.get("/oauth/authorize").header.Get("Location") }
	answer := func(f url.Values) url.Values {
		f.Set("decision", "approve")
		return f
	}
	tests := []struct {
		name string
		do   func(v visit) *page
		want int
	}{
		{"the page just opened", func(v visit) *page {
			at := open(v.first)
			return v.first.post(at, answer(v.first.get(at).form(at)))
		}, http.StatusSeeOther},
		{"the first of two tabs", func(v visit) *page {
			one := open(v.first)
			form := v.first.get(one).form(one)
			two := open(v.first)
			v.first.get(two)
			return v.first.post(one, answer(form))
		}, http.StatusSeeOther},
		{"a page that was loaded again since", func(v visit) *page {
			at := open(v.first)
			form := v.first.get(at).form(at)
			v.first.get(at)
			return v.first.post(at, answer(form))
		}, http.StatusSeeOther},
		{"a form from before signing in again", func(v visit) *page {
			at := open(v.first)
			form := v.first.get(at).form(at)
			v.first.post("/sign-out", v.first.get(at).form("/sign-out"))
			v.first.signIn(amira)
			return v.first.post(at, answer(form))
		}, http.StatusSeeOther},
		{"twice", func(v visit) *page {
			at := open(v.first)
			form := answer(v.first.get(at).form(at))
			v.first.post(at, form)
			return v.first.post(at, form)
		}, http.StatusSeeOther},
		{"from another cookie jar", func(v visit) *page {
			at := open(v.first)
			return v.other.post(at, answer(v.first.get(at).form(at)))
		}, http.StatusForbidden},
		{"the form of another request", func(v visit) *page {
			one, two := open(v.first), open(v.first)
			return v.first.post(two, answer(v.first.get(one).form(one)))
		}, http.StatusForbidden},
		{"the form of another page", func(v visit) *page {
			at := open(v.first)
			form := v.first.get(at).form("/sign-out")
			return v.first.post(at, answer(form))
		}, http.StatusForbidden},
		{"without a token", func(v visit) *page {
			at := open(v.first)
			form := answer(v.first.get(at).form(at))
			form.Del("csrf")
			return v.first.post(at, form)
		}, http.StatusForbidden},
		{"in the name of somebody else", func(v visit) *page {
			at := open(v.first)
			form := answer(v.first.get(at).form(at))
			form.Set("as", jonas.ID)
			return v.first.post(at, form)
		}, http.StatusForbidden},
		{"by a page of another site", func(v visit) *page {
			at := open(v.first)
			form := answer(v.first.get(at).form(at))
			v.first.header.Set("Sec-Fetch-Site", "cross-site")
			return v.first.post(at, form)
		}, http.StatusForbidden},
		{"by a page of another origin, in a browser without Sec-Fetch-Site", func(v visit) *page {
			at := open(v.first)
			form := answer(v.first.get(at).form(at))
			v.first.header.Set("Origin", "https://evil.example")
			return v.first.post(at, form)
		}, http.StatusForbidden},
		{"from our page as browsers send it under no-referrer", func(v visit) *page {
			at := open(v.first)
			form := answer(v.first.get(at).form(at))
			v.first.header.Set("Origin", "null")
			v.first.header.Set("Sec-Fetch-Site", "same-origin")
			return v.first.post(at, form)
		}, http.StatusSeeOther},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld()
			srv := serveWorld(t, w)
			v := visit{newBrowser(t, srv.URL), newBrowser(t, srv.URL)}
			v.first.signIn(amira)
			v.other.signIn(amira)
			got := tt.do(v)
			if got.status != tt.want {
				t.Fatalf("status %d, want %d", got.status, tt.want)
			}
			if accepted := len(w.decisions) > 0; accepted != (tt.want == http.StatusSeeOther) {
				t.Errorf("%d decisions were made", len(w.decisions))
			}
			if tt.want == http.StatusSeeOther && got.header.Get("Location") != w.location {
				t.Errorf("Location %q, want %q to the letter", got.header.Get("Location"), w.location)
			}
		})
	}
}

func TestAFormIsGoodOnEveryReplicaWhileKeysAreRotated(t *testing.T) {
	was, will := bytes.Repeat([]byte("a"), 32), bytes.Repeat([]byte("b"), 32)
	replica := func(keys ...[]byte) string {
		mux := http.NewServeMux()
		srv := httptest.NewServer(mux)
		t.Cleanup(srv.Close)
		ui := newUI(t, newWorld(), srv.URL)
		ui.FormKeys = keys
		ui.Routes(mux)
		return srv.URL
	}
	behind, ahead, done := replica(was, will), replica(will, was), replica(will)
	for name, tt := range map[string]struct {
		opened, posted string
		want           int
	}{
		"opened on one that is behind": {behind, ahead, http.StatusSeeOther}, "opened on one that is ahead": {ahead, behind, http.StatusSeeOther},
		"of a key that is current": {ahead, done, http.StatusSeeOther}, "of a key that is gone": {behind, done, http.StatusForbidden},
	} {
		b := newBrowser(t, tt.opened) // cookies do not tell ports apart (RFC 6265 §8.5)
		form := b.get("/sign-in").form("/sign-in")
		form.Set("email", amira.Email)
		form.Set("password", passphrase)
		b.base = tt.posted
		if got := b.post("/sign-in", form); got.status != tt.want {
			t.Errorf("a form %s: status %d, want %d", name, got.status, tt.want)
		}
	}
}

func TestKeysThatCannotProtectAFormAreRefused(t *testing.T) {
	cfg := newUI(t, newWorld(), "http://localhost").Config
	long, short := bytes.Repeat([]byte("a"), 32), bytes.Repeat([]byte("a"), 31)
	for name, keys := range map[string][][]byte{"none": nil, "a short one": {short}, "a short one behind a good one": {long, short}} {
		cfg.FormKeys = keys
		if _, err := New(cfg); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

func TestAFormOfSomebodyElseShowsThePageAgainAndDoesNothing(t *testing.T) {
	w := newWorld()
	srv := serveWorld(t, w)
	b := newBrowser(t, srv.URL)
	b.signIn(amira)
	at := b.get("/oauth/authorize").header.Get("Location")
	form := b.get(at).form(at)
	form.Set("decision", "approve")
	b.post("/sign-out", b.get("/connections").form("/sign-out"))
	b.signIn(jonas)

	got := b.post(at, form)
	if got.status != http.StatusOK || len(w.decisions) != 0 {
		t.Fatalf("status %d with %d decisions, want the page again and none", got.status, len(w.decisions))
	}
	if !strings.Contains(got.body, jonas.Email) || got.form(at).Get("as") != jonas.ID {
		t.Error("the page that is shown again is not for the person who is signed in now")
	}
}

func TestAFormOfAnotherOrganizationShowsThePageAgainAndDoesNothing(t *testing.T) {
	w := newWorld()
	w.members[amira.ID] = append(w.members[amira.ID], accounts.Membership{Organization: dental, Role: scope.Owner})
	w.apps, w.connections, w.keys = someApps(), []auth.Connection{connected("con_1", "Claude", amira, "contacts:read")}, []auth.Key{{ID: "key_1", Name: "Build"}}
	b := newBrowser(t, serveWorld(t, w).URL)
	b.signIn(amira)
	forms := map[string]url.Values{}
	for path, button := range map[string]string{"/clients": "unblock", "/connections": "revoke", "/keys": "revoke"} {
		forms[path] = b.get(path).form(path)
		forms[path].Set(button, "x")
	}
	across := b.get("/keys").form("/organization")
	across.Set("org", dental.ID)
	if got := b.post("/organization", across); got.status != http.StatusSeeOther {
		t.Fatalf("changing the organization: %d", got.status)
	}
	before := len(w.callers)
	for path, form := range forms {
		if got := b.post(path, form); got.status != http.StatusOK || !strings.Contains(got.body, "another organization now") {
			t.Errorf("%s: %d", path, got.status)
		}
		form.Del("in")
		if got := b.post(path, form); got.status != http.StatusOK || !strings.Contains(got.body, "another organization now") {
			t.Errorf("%s, without a word of where: %d", path, got.status)
		}
	}
	if len(w.keys) != 1 || len(w.connections) != 1 || w.apps[2].BlockedAt.IsZero() {
		t.Errorf("something was done: %v", w.callers[before:])
	}
}

func TestAnOldSignInFormStillWorksAndEndsTheSessionBefore(t *testing.T) {
	w := newWorld()
	srv := serveWorld(t, w)
	b := newBrowser(t, srv.URL)
	form := b.get("/sign-in").form("/sign-in")
	b.signIn(amira)
	before := b.cookie(sessionCookie)
	form.Set("email", jonas.Email)
	form.Set("password", passphrase)
	if got := b.post("/sign-in", form); got.status != http.StatusSeeOther {
		t.Fatalf("status %d", got.status)
	}
	if got := b.get("/connections"); !strings.Contains(got.body, jonas.Email) {
		t.Error("the person of the last sign-in is not signed in")
	}
	if b.cookie(sessionCookie) == before || len(w.sessions) != 1 {
		t.Errorf("the token did not change, or %d sessions are live", len(w.sessions))
	}
}

func TestAFormThatIsTooLargeIsRefused(t *testing.T) {
	b := newBrowser(t, serveWorld(t, newWorld()).URL)
	form := b.get("/sign-in").form("/sign-in")
	form.Set("email", strings.Repeat("a", maxForm))
	if got := b.post("/sign-in", form); got.status != http.StatusBadRequest {
		t.Errorf("status %d, want 400", got.status)
	}
}

func TestAFormThatBreaksOffGetsAPage(t *testing.T) {
	server := serveWorld(t, newWorld())
	for path, want := range map[string]int{"/sign-in": http.StatusBadRequest, "/connections": http.StatusBadRequest, "/nothing": http.StatusNotFound} {
		conn, err := net.Dial("tcp", server.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: localhost\r\nAccept: text/html\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: 100\r\n\r\na=b", path)
		if err := conn.(*net.TCPConn).CloseWrite(); err != nil {
			t.Fatal(err)
		}
		answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil || answer.StatusCode != want || !strings.HasPrefix(answer.Header.Get("Content-Type"), "text/html") {
			t.Errorf("%s: %+v %v", path, answer, err)
		}
		_ = conn.Close()
	}
}

func TestTheCookiesFollowTheScheme(t *testing.T) {
	for _, tt := range []struct {
		issuer string
		names  []string
		secure bool
	}{
		{"http://localhost:8080", []string{"sb_browser", "sb_session"}, false},
		{"https://switchboard.example", []string{"__Host-sb_browser", "__Host-sb_session"}, true},
	} {
		t.Run(tt.issuer, func(t *testing.T) {
			ui := newUI(t, newWorld(), tt.issuer)
			c := ui.cookies
			for i, base := range []string{browserCookie, sessionCookie} {
				if got := c.name(base); got != tt.names[i] {
					t.Errorf("cookie %q, want %q", got, tt.names[i])
				}
			}
			for _, got := range signInCookies(t, ui, tt.names[0]) {
				if got.Secure != tt.secure || !got.HttpOnly || got.SameSite != http.SameSiteLaxMode || got.Path != "/" || got.Domain != "" {
					t.Errorf("cookie %+v", got)
				}
			}
		})
	}
}
