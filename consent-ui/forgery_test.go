package consentui

import (
	"net/http"
	"net/url"
	"testing"

	"switchboard/auth"
	"switchboard/auth/accounts"
	"switchboard/internal/scope"
)

// A form that somebody else's page could post, by the path that it goes to, with what would make it do something.
func everyForm(b *browser) map[string]url.Values {
	at, consent := ask(b, "contacts:read")
	forms := map[string]url.Values{
		at:              consent.form(at),
		"/connections":  b.get("/connections").form("/connections"),
		"/keys":         b.get("/keys").form("/keys"),
		"/clients":      b.get("/clients").form("/clients"),
		"/organization": b.get("/keys").form("/organization"),
		"/sign-out":     b.get("/keys").form("/sign-out"),
	}
	forms[at].Set("decision", "approve")
	forms["/connections"].Set("revoke", "con_1")
	forms["/keys"].Set("revoke", "key_1")
	forms["/clients"].Set("unblock", "cli_3")
	forms["/organization"].Set("org", dental.ID)
	return forms
}

// signedIn is a world in which every page has a form, and two browsers of one person in it.
func signedIn(t *testing.T) (w *world, first, second *browser) {
	t.Helper()
	w = newWorld()
	w.members[amira.ID] = append(w.members[amira.ID], accounts.Membership{Organization: dental, Role: scope.Owner})
	w.apps, w.connections, w.keys = someApps(), []auth.Connection{connected("con_1", "Claude", amira, "contacts:read")}, []auth.Key{{ID: "key_1", Name: "Build"}}
	srv := serveWorld(t, w)
	first, second = newBrowser(t, srv.URL), newBrowser(t, srv.URL)
	first.signIn(amira)
	second.signIn(amira)
	return w, first, second
}

// untouched reports what a forged form did.
func (w *world) untouched(t *testing.T, what string, sessions int) {
	t.Helper()
	if len(w.decisions) != 0 || len(w.connections) != 1 || len(w.keys) != 1 || w.apps[2].BlockedAt.IsZero() || len(w.sessions) != sessions {
		t.Errorf("%s did something: %d decisions, %d connections, %d keys, %d sessions", what, len(w.decisions), len(w.connections), len(w.keys), len(w.sessions))
	}
	for _, s := range w.sessions {
		if s.OrgID != clinic.ID {
			t.Errorf("%s changed the organization", what)
		}
	}
}

// Cross-site request forgery with a token of the attacker's own: they are signed in too, even as the same person.
func TestNoFormIsGoodInAnotherBrowser(t *testing.T) {
	w, attacker, victim := signedIn(t)
	for path, form := range everyForm(attacker) {
		if got := victim.post(path, form); got.status != http.StatusForbidden {
			t.Errorf("%s: %d", path, got.status)
		}
		w.untouched(t, path, 2)
	}
}

func TestNoFormIsGoodForAnotherPage(t *testing.T) {
	w, b, _ := signedIn(t)
	forms := everyForm(b)
	for path, form := range forms {
		for other := range forms {
			if other == path {
				continue
			}
			forged := url.Values{}
			for name, values := range forms[other] {
				forged[name] = values
			}
			forged.Set("csrf", form.Get("csrf"))
			if got := b.post(other, forged); got.status != http.StatusForbidden {
				t.Errorf("the token of %s at %s: %d", path, other, got.status)
			}
		}
	}
	w.untouched(t, "a token of another page", 2)
}

// Login CSRF (RFC 9700 §4.7, for the sign-in here): the attacker has the victim's browser sign in as the attacker, whose
// account then collects what the victim does.
func TestNobodyIsSignedInByAFormOfSomebodyElse(t *testing.T) {
	w := newWorld()
	srv := serveWorld(t, w)
	attacker, victim := newBrowser(t, srv.URL), newBrowser(t, srv.URL)
	form := attacker.get("/sign-in").form("/sign-in")
	form.Set("email", jonas.Email)
	form.Set("password", passphrase)
	for what, prepare := range map[string]func(){
		"in a browser that was never here":    func() {},
		"in a browser with the sign-in open":  func() { victim.get("/sign-in") },
		"in a browser where somebody else is": func() { victim.signIn(amira) },
		"without a token":                     func() { form.Del("csrf") },
	} {
		prepare()
		before := victim.cookie(sessionCookie)
		signIns := len(w.signIns)
		if got := victim.post("/sign-in", form); got.status != http.StatusForbidden || victim.cookie(sessionCookie) != before || len(w.signIns) != signIns {
			t.Errorf("%s: %d", what, got.status)
		}
	}
}

// The page of a request that began in the attacker's browser shows the victim nothing and takes no answer, though the
// victim has a good form of their own.
func TestTheRequestOfAnotherBrowserCannotBeAnswered(t *testing.T) {
	w, attacker, victim := signedIn(t)
	at, _ := ask(attacker, "contacts:read")
	own, page := ask(victim, "contacts:read")
	if got := victim.get(at); got.status != http.StatusGone {
		t.Errorf("looking at it: %d", got.status)
	}
	form := page.form(own)
	form.Set("decision", "approve")
	if got := victim.post(at, form); got.status != http.StatusForbidden {
		t.Errorf("answering it: %d", got.status)
	}
	w.untouched(t, "the request of another browser", 2)
}

// Consent is never remembered: the app holds all that it asks for, and the person is asked all the same, also by a page
// that is opened with parameters of an answer.
func TestAnAppThatHoldsAllItAsksForIsAskedAboutAgain(t *testing.T) {
	w, b, _ := signedIn(t)
	w.held[amira.ID+clinic.ID] = scope.Of("contacts:read", "contacts:write")
	for _, more := range []string{"", "&prompt=none", "&decision=approve", "&prompt=consent&decision=approve&org=" + clinic.ID} {
		at := b.get("/oauth/authorize?scope=contacts%3Aread" + more).header.Get("Location")
		if got := b.get(at + "?decision=approve"); got.status != http.StatusOK || got.form(at).Get("csrf") == "" {
			t.Errorf("%q: %d to %q", more, got.status, got.header.Get("Location"))
		}
	}
	w.untouched(t, "a request", 2)
}
