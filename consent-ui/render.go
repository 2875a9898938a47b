package consentui

import (
	"bytes"
	"context"
	"net/http"
	"time"

	"github.com/a-h/templ"

	"switchboard/auth/accounts"
	"switchboard/consent-ui/text"
	"switchboard/internal/caller"
	"switchboard/internal/scope"
)

// frame is what every page knows: the words, who reads it, and what stands around its content.
type frame struct {
	*text.Printer
	Title   string
	Host    string // of this Switchboard
	Version string
	Notice  notice
	Toast   string

	Person        accounts.Person // zero when nobody is signed in
	Here          accounts.Membership
	Memberships   []accounts.Membership
	Page          string // the endpoint's name
	OtherLanguage string // address of this page in the other language; "" where the organization's language holds

	seals  func(purpose string) seal
	assets assets
	next   string // where to go on after signing in as somebody else
}

// notice is a message on top of a page. Kind is its class: warn or bad.
type notice struct{ Kind, Title, Text string }

func (u *UI) frame(r *http.Request, v *visit, title string) frame {
	f := frame{
		Printer: v.words, Title: v.words.T("page.title", "Page", title), Host: u.Issuer.Host, Version: u.Version,
		Notice: v.notice, Person: v.session.Person, Here: v.here, Memberships: v.memberships, Page: v.name, assets: u.assets,
		seals: func(purpose string) seal {
			if purpose == "sign-in" || purpose == "setup" {
				return u.seal(v.browser, purpose, "", "")
			}
			if purpose != "consent" {
				s := u.seal(v.browser, purpose, v.session.Person.ID, "")
				s.In = v.here.Organization.ID
				return s
			}
			return u.seal(v.browser, purpose, v.session.Person.ID, v.subject)
		},
	}
	if !v.signedIn() && r.Method == http.MethodGet {
		q := r.URL.Query()
		q.Set("lang", f.otherLang())
		f.OtherLanguage = "?" + q.Encode()
	}
	return f
}

func (f frame) asset(name string) string { return f.assets.named[name] }

// otherLang is the language that OtherLanguage leads to.
func (f frame) otherLang() string {
	if f.Lang == "ar" {
		return "en"
	}
	return "ar"
}

func (f frame) role(r scope.Role) string { return f.T("role." + string(r)) }

// aRole is a role within a sentence.
func (f frame) aRole(r scope.Role) string { return f.T("role.a." + string(r)) }

// render writes a page whole or not at all.
func (u *UI) render(w http.ResponseWriter, r *http.Request, status int, page templ.Component) {
	var b bytes.Buffer
	// A page is in memory, so it is rendered also for a request that broke off: its sender may still read.
	if err := page.Render(context.WithoutCancel(r.Context()), &b); err != nil {
		u.Log.ErrorContext(r.Context(), "page failed", "request", caller.Request(r.Context()), "err", err)
		http.Error(w, "internal error", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write(b.Bytes()) // a reader that went away is nobody's error
}

// slot puts markup at a placeholder of a message.
type slot struct {
	name string
	put  templ.Component
}

// rich is a message with markup at its placeholders, so that a language can put them where it wants.
func rich(p *text.Printer, key string, slots ...slot) templ.Component {
	return richN(p, key, -1, slots...)
}

// richN is rich for a message with a number.
func richN(p *text.Printer, key string, n int, slots ...slot) templ.Component {
	names, put := []string{}, map[string]templ.Component{}
	for _, s := range slots {
		names, put[s.name] = append(names, s.name), s.put
	}
	out := []templ.Component{}
	for _, piece := range p.Pieces(key, n, names) {
		if piece.Slot != "" {
			out = append(out, put[piece.Slot])
		} else {
			out = append(out, words(piece.Text))
		}
	}
	return templ.Join(out...)
}

// moment is a time for a <time> element.
func moment(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// resource is the address that people paste into an app.
func (u *UI) resource() string { return u.Issuer.JoinPath("mcp").String() }

// noteRole is how a screen reader takes a note: one about what just failed at once, any other in its turn.
func noteRole(kind string) string {
	if kind == "bad" {
		return "alert"
	}
	return "note"
}
