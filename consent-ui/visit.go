package consentui

import (
	"net/http"
	"time"

	"switchboard/auth/accounts"
	"switchboard/consent-ui/text"
	"switchboard/internal/caller"
)

// handler answers one request of a page. What it returns becomes an error page.
type handler func(w http.ResponseWriter, r *http.Request, v *visit) error

// endpoint is a page and what its form does.
type endpoint struct {
	name    string           // the form's purpose, and what `next` calls the page
	show    handler          // GET
	act     handler          // POST, with a form that passed the check
	take    http.HandlerFunc // POST instead, of a form that is none of ours
	open    bool             // works for people who are not signed in; its form is nobody's in particular
	orgless bool             // works for people without an organization
	consent bool             // the page is about the consent request in its path
	across  bool             // does the same whatever organization the person is in
}

// visit is what is known about a request before its page runs.
type visit struct {
	browser string // the browser's random name, see cookies.browser
	subject string // the consent request that the page is about
	name    string // the endpoint's

	session     accounts.Session
	memberships []accounts.Membership
	here        accounts.Membership // the organization that the page is about

	words  *text.Printer
	notice notice
}

func (v *visit) signedIn() bool { return v.session.ID != "" }

func (v *visit) membership(orgID string) (accounts.Membership, bool) {
	for _, m := range v.memberships {
		if m.Organization.ID == orgID {
			return m, true
		}
	}
	return accounts.Membership{}, false
}

// serve is the way into every page.
func (u *UI) serve(e endpoint) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		protect(w.Header(), e.consent)
		v := &visit{name: e.name, browser: u.cookies.browser(w, r), words: u.words.In(u.cookies.language(w, r), nil)}
		if e.consent {
			v.subject = r.PathValue("id")
		}
		r, err := u.identify(r, v)
		if err == nil {
			err = u.dispatch(w, r, v, e)
		}
		if err != nil {
			u.fail(w, r, v, err)
		}
	})
}

// dispatch is where a form is checked, for every page alike.
func (u *UI) dispatch(w http.ResponseWriter, r *http.Request, v *visit, e endpoint) error {
	posted := r.Method != http.MethodGet && r.Method != http.MethodHead
	if posted {
		if u.crossSite(r) {
			return errForged
		}
		if err := readForm(w, r); err != nil {
			return err
		}
	}
	if !e.open {
		if !v.signedIn() {
			redirect(w, signInPath(e, v))
			return nil
		}
		if len(v.memberships) == 0 && !e.orgless {
			return errNoOrganization
		}
	}
	if !posted || e.name == "" {
		return e.show(w, r, v)
	}
	as, ok := u.checkSeal(r, v.browser, e.name, v.subject)
	if !ok {
		return errForged
	}
	if !e.open && as != v.session.Person.ID {
		// Somebody else signed in since the page was opened. What they would do, they have not seen.
		v.notice = notice{Kind: "warn", Title: v.words.T("page.person_changed"), Text: v.words.T("page.person_changed.more", "Email", v.session.Person.Email)}
		return e.show(w, r, v)
	}
	if in := r.PostForm.Get("in"); !e.open && !e.orgless && !e.consent && !e.across && in != v.here.Organization.ID {
		// The person changed the organization in another tab since the page was opened.
		v.notice = notice{Kind: "warn", Title: v.words.T("page.organization_changed"), Text: v.words.T("page.organization_changed.more", "Org", v.here.Organization.Name)}
		return e.show(w, r, v)
	}
	return e.act(w, r, v)
}

// identify finds who is signed in, where, and in which language to speak to them.
func (u *UI) identify(r *http.Request, v *visit) (*http.Request, error) {
	_, found, err := u.session(r)
	if err != nil || found.ID == "" {
		return r, err
	}
	memberships, err := u.Accounts.Memberships(r.Context(), found.Person.ID)
	if err != nil {
		return r, err
	}
	v.session, v.memberships = found, memberships
	if len(memberships) == 0 {
		return r, nil
	}
	var ok bool
	if v.here, ok = v.membership(found.OrgID); !ok {
		v.here = memberships[0]
	}
	// The organization's language and zone win over the browser's: its people read the same page.
	zone, err := time.LoadLocation(v.here.Organization.Timezone)
	if err != nil {
		zone = time.UTC
	}
	v.words = u.words.In(v.here.Organization.Locale, zone)
	return r.WithContext(caller.With(r.Context(), v.caller())), nil
}

// caller is the person in the organization that the page is about. It is made of what was read already, so that page
// and caller cannot differ.
func (v *visit) caller() caller.Caller {
	p := v.session.Person
	return caller.Caller{Org: v.here.Organization.ID, Person: p.ID, PersonName: p.Display(), Role: v.here.Role}.InBrowser(v.session.ID)
}

// protect sets the headers that every page carries.
func protect(h http.Header, consent bool) {
	policy := "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self' data:; frame-ancestors 'none'; base-uri 'none'"
	if !consent {
		policy += "; form-action 'self'"
	}
	// The consent page goes without form-action. Chromium holds it against the whole chain of redirects after the
	// post, and that goes on to places nobody here can know: https://vendor.example/callback, then cursor://…
	// A list with the redirect's origin would still break there. The page posts to itself only, and its markup
	// holds nothing of the client's that could add a form.
	h.Set("Content-Security-Policy", policy)
	h.Set("Cache-Control", "no-store")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
}
