// Package consentui is the web face: the pages on which a person signs in, answers an app, and sees and revokes
// what can act in their name. It is the sole importer of templ and gorilla/sessions.
//
// One page is one handler file and one .templ file, joined by one struct. Every page passes through serve, which
// is where the rules live that all of them share: security headers, the browser binding, the session, the
// language, and the check of forms. A page cannot opt out of the form check: it has no other way to get a POST.
package consentui

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"time"

	"switchboard/consent-ui/text"
	"switchboard/internal/web"
	"switchboard/tools/kit"
)

// Config is what the pages work with.
type Config struct {
	Issuer   *url.URL // the public origin
	Accounts Accounts
	Auth     Auth
	OAuth    OAuth
	Audit    Audit
	Tools    kit.Registry
	Log      *slog.Logger
	Version  string

	FormKeys     [][]byte      // sign forms, 32 bytes or more each; the current one first, and all are accepted
	IdleEnd      time.Duration // after this long without use a connection ends by itself; 0 leaves it unsaid
	DatabaseNote string        // path of the database file, told on the set-up page; "" leaves it unsaid
}

// UI serves the pages.
type UI struct {
	Config
	words    *text.Catalogue
	assets   assets
	cookies  cookies
	sessions *sessionStore
	origins  *http.CrossOriginProtection
}

// New returns the pages.
func New(cfg Config) (*UI, error) {
	words, err := text.Load()
	if err != nil {
		return nil, err
	}
	files, err := loadAssets()
	if err != nil {
		return nil, err
	}
	if len(cfg.FormKeys) == 0 {
		return nil, errors.New("there is no key to sign forms with")
	}
	for i, key := range cfg.FormKeys {
		if len(key) < 32 {
			return nil, fmt.Errorf("key %d of those that sign forms has %d bytes, it needs 32", i+1, len(key))
		}
	}
	origins := http.NewCrossOriginProtection()
	if err := origins.AddTrustedOrigin(cfg.Issuer.Scheme + "://" + cfg.Issuer.Host); err != nil {
		return nil, fmt.Errorf("trusting the public origin: %w", err)
	}
	c := cookies{secure: cfg.Issuer.Scheme == "https"}
	return &UI{
		Config: cfg, words: words, assets: files, cookies: c, origins: origins,
		sessions: &sessionStore{accounts: cfg.Accounts, cookies: c},
	}, nil
}

// Routes adds the pages to a mux, and the page that says that there is none.
func (u *UI) Routes(mux *http.ServeMux) {
	mux.HandleFunc("GET /assets/{file}", u.serveAsset)
	mux.Handle("/assets/{file}", u.refuses(errMethod("GET, HEAD")))
	u.add(mux, "/oauth/authorize", endpoint{open: true, show: u.authorize, take: u.authorizeByPost})
	// A client of the 2025-03-26 revision comes here when it found no metadata.
	u.add(mux, "/authorize", endpoint{open: true, show: u.authorize, take: u.authorizeByPost})
	u.add(mux, "/consent/{id}", endpoint{name: "consent", consent: true, show: u.showConsent, act: u.answerConsent})
	u.add(mux, "/sign-in", endpoint{name: "sign-in", open: true, show: u.showSignIn, act: u.signIn})
	u.add(mux, "/sign-out", endpoint{name: "sign-out", orgless: true, show: u.home, act: u.signOut})
	u.add(mux, "/setup", endpoint{name: "setup", open: true, show: u.showSetup, act: u.setUp})
	u.add(mux, "/connections", endpoint{name: "connections", show: u.showConnections, act: u.revokeConnection})
	u.add(mux, "/connect", endpoint{name: "connect", show: u.showConnect})
	u.add(mux, "/keys", endpoint{name: "keys", show: u.showKeys, act: u.changeKeys})
	u.add(mux, "/clients", endpoint{name: "clients", show: u.showClients, act: u.changeClients})
	u.add(mux, "/audit", endpoint{name: "audit", show: u.showAudit})
	u.add(mux, "/organization", endpoint{name: "organization", across: true, show: u.home, act: u.useOrganization})
	u.add(mux, "/{$}", endpoint{open: true, show: u.home})
	mux.Handle("/", u.NotFound())
}

func (u *UI) add(mux *http.ServeMux, path string, e endpoint) {
	allow := "GET, HEAD"
	mux.Handle("GET "+path, u.serve(e))
	switch {
	case e.take != nil:
		mux.HandleFunc("POST "+path, e.take)
	case e.act != nil:
		mux.Handle("POST "+path, u.serve(e))
	}
	if e.take != nil || e.act != nil {
		allow += ", POST"
	}
	mux.Handle(path, u.refuses(errMethod(allow)))
}

// NotFound answers at addresses that nothing is at.
func (u *UI) NotFound() http.Handler { return u.refuses(errNotFound) }

// refuses answers every request with an error: a page for somebody who is looking at one, JSON for a program, which
// would try to read a page as what it was looking for.
func (u *UI) refuses(p *problem) http.Handler {
	page := u.serve(endpoint{open: true, show: func(http.ResponseWriter, *http.Request, *visit) error { return p }})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if p.allow != "" {
			w.Header().Set("Allow", p.allow)
		}
		if web.WantsPage(r) {
			asked := *r // the access log has the other one
			asked.Method = http.MethodGet
			page.ServeHTTP(w, &asked) // whatever was sent along is not looked at
			return
		}
		web.Refuse(w, p.status, p.forPrograms())
	})
}

// home has no page of its own: it leads to the first one that there is.
func (u *UI) home(w http.ResponseWriter, r *http.Request, v *visit) error {
	if v.signedIn() {
		redirect(w, "/connections")
	} else {
		redirect(w, "/sign-in")
	}
	return nil
}

// redirect answers 303, so that the browser goes on with GET whatever it came with, and sends location as it is:
// http.Redirect would rewrite what belongs to the client.
func redirect(w http.ResponseWriter, location string) {
	w.Header().Set("Location", location)
	w.WriteHeader(http.StatusSeeOther)
}
