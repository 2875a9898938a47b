package consentui

import (
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"time"

	"switchboard/auth"
	"switchboard/auth/accounts"
	"switchboard/auth/oauth"
	"switchboard/internal/web"
)

type signInPage struct {
	frame
	Seal seal
	Next string
	App  *asker // who waits behind this sign-in, nil when nobody does
	// Mistake is what is wrong with the request of an app that waits to be told at MistakeTo, in English for its maker.
	Mistake, MistakeTo string

	Email     string
	SignedOut bool
	Unowned   bool // nobody has set this Switchboard up, so nobody can sign in
	Mismatch  bool
	Pause     time.Duration // until the next try is allowed
}

// asker is an app as the sign-in page names it.
type asker struct {
	Name, Host string
	Nameless   bool // Name is not its own
}

// start is the pause as a clock shows it.
func (p signInPage) start() string {
	s := p.pauseSeconds()
	return fmt.Sprintf("%d:%02d", s/60, s%60)
}

func (p signInPage) pauseSeconds() int { return int(math.Ceil(p.Pause.Seconds())) }

// describe names what says more about the password field.
func (p signInPage) describe() string {
	if p.Mismatch || p.Pause > 0 {
		return "password-error"
	}
	return ""
}

var (
	pages       = []string{"connections", "connect", "keys", "clients", "audit"}
	requestRule = regexp.MustCompile(`^[A-Za-z0-9_-]{1,128}$`)
)

// after is where a person goes once signed in. next names one of our pages or a consent request and is never an
// address, so there is nothing to redirect to that is not ours.
func after(next string) string {
	switch {
	case slices.Contains(pages, next):
		return "/" + next
	case requestRule.MatchString(next):
		return "/consent/" + next
	}
	return "/connections"
}

// signInPath is the sign-in that leads back to the page that was asked for.
func signInPath(e endpoint, v *visit) string {
	next := e.name
	if e.consent {
		next = v.subject
	}
	if e.consent || slices.Contains(pages, next) {
		return "/sign-in?next=" + url.QueryEscape(next)
	}
	return "/sign-in"
}

func (u *UI) showSignIn(w http.ResponseWriter, r *http.Request, v *visit) error {
	if v.signedIn() {
		redirect(w, after(r.URL.Query().Get("next")))
		return nil
	}
	return u.renderSignIn(w, r, v, http.StatusOK, signInPage{
		Next: r.URL.Query().Get("next"), SignedOut: r.URL.Query().Get("done") == "signed_out",
	})
}

func (u *UI) renderSignIn(w http.ResponseWriter, r *http.Request, v *visit, status int, p signInPage) error {
	if !requestRule.MatchString(p.Next) {
		p.Next = ""
	}
	if p.Next != "" && !slices.Contains(pages, p.Next) {
		pending, err := u.OAuth.Pending(r.Context(), p.Next, v.browser)
		if elsewhere := (*oauth.RedirectError)(nil); errors.As(err, &elsewhere) {
			p.Mistake, p.MistakeTo = elsewhere.Mistake, inertAddress(auth.RedirectHost(elsewhere.Location))
		} else if err != nil && !errors.Is(err, oauth.ErrGone) {
			return err
		}
		if err == nil {
			p.App = &asker{clientName(v.words, pending.ClientName), destination(pending), inert(pending.ClientName) == ""}
		}
	}
	owned, err := u.Accounts.HasOwner(r.Context())
	if err != nil {
		return err
	}
	p.Unowned = !owned
	p.frame = u.frame(r, v, v.words.T("signin.title"))
	p.Seal = p.seals("sign-in")
	u.render(w, r, status, signInView(p))
	return nil
}

func (u *UI) signIn(w http.ResponseWriter, r *http.Request, v *visit) error {
	p := signInPage{Next: r.PostForm.Get("next"), Email: r.PostForm.Get("email")}
	person, err := u.Accounts.SignIn(r.Context(), p.Email, r.PostForm.Get("password"), web.ClientIP(r))
	var throttled *accounts.Throttled
	switch {
	case errors.As(err, &throttled):
		p.Pause = throttled.RetryAfter
		w.Header().Set("Retry-After", fmt.Sprint(p.pauseSeconds()))
		return u.renderSignIn(w, r, v, http.StatusTooManyRequests, p)
	case errors.Is(err, accounts.ErrMismatch):
		p.Mismatch = true
		return u.renderSignIn(w, r, v, http.StatusUnprocessableEntity, p)
	case err != nil:
		return err
	}
	if err := u.startSession(w, r, person.ID); err != nil {
		return err
	}
	redirect(w, after(p.Next))
	return nil
}

// signOut also serves "Not you?", which leads to the sign-in that leads back.
func (u *UI) signOut(w http.ResponseWriter, r *http.Request, _ *visit) error {
	if err := u.endSession(w, r); err != nil {
		return err
	}
	if next := r.PostForm.Get("next"); requestRule.MatchString(next) {
		redirect(w, "/sign-in?next="+url.QueryEscape(next))
	} else {
		redirect(w, "/sign-in?done=signed_out")
	}
	return nil
}

// useOrganization makes another of the person's organizations the one that the pages are about.
func (u *UI) useOrganization(w http.ResponseWriter, r *http.Request, v *visit) error {
	m, ok := v.membership(r.PostForm.Get("org"))
	if !ok {
		return errNotFound
	}
	if err := u.Accounts.UseOrganization(r.Context(), v.session.ID, m.Organization.ID); err != nil {
		return err
	}
	redirect(w, "/connections")
	return nil
}
