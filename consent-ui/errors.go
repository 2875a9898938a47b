package consentui

import (
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net/http"
	"time"

	"switchboard/auth/accounts"
	"switchboard/auth/oauth"
	"switchboard/internal/caller"
	"switchboard/internal/fault"
)

// problem is an error that has a page: what did not happen, and the next step.
type problem struct {
	status     int
	key        string // of the title; the next step is key + ".more"
	moreKey    string // where the next step has a key of its own
	detail     string // for the maker of an app, in English
	retryAfter time.Duration
	allow      string // the methods that there are, where the one of the request is none of them
	elsewhere  bool   // the cause is another server, not ours
}

func (p *problem) Error() string { return "page " + p.key }

var (
	errNotFound          = &problem{status: http.StatusNotFound, key: "error.not_found"}
	errForged            = &problem{status: http.StatusForbidden, key: "error.forged"}
	errBadForm           = &problem{status: http.StatusBadRequest, key: "error.bad_form"}
	errForbidden         = &problem{status: http.StatusForbidden, key: "error.forbidden"}
	errNoOrganization    = &problem{status: http.StatusForbidden, key: "error.no_organization"}
	errOtherOrganization = &problem{status: http.StatusForbidden, key: "error.other_organization"}

	errGone      = &problem{status: http.StatusGone, key: "error.gone"}
	errSetupOver = &problem{status: http.StatusGone, key: "error.setup_over"}
)

// errMethod is the answer to a method that a page does not take (RFC 9110 §15.5.6). No browser sends one, so a person who
// gets here is told that there is nothing.
func errMethod(allow string) *problem {
	return &problem{status: http.StatusMethodNotAllowed, key: "error.not_found", allow: allow}
}

// forPrograms is a problem in words for a program.
func (p *problem) forPrograms() *fault.Error {
	if p.allow != "" {
		return fault.New(fault.InvalidRequest, "This address does not take this method. Use one of %s.", p.allow)
	}
	return fault.New(fault.NotFound, "There is nothing at this address. The MCP endpoint is /mcp, its metadata is /.well-known/oauth-protected-resource/mcp.")
}

type errorPage struct {
	frame
	Heading, More string
	Detail        string // for the maker of an app, in English
	RequestID     string
	SignIn        bool // the sign-in is a next step for somebody who is signed out
}

// fail shows the page of an error. What has no page of its own is trouble with the database or a bug: the log gets
// the cause, the person the request id.
func (u *UI) fail(w http.ResponseWriter, r *http.Request, v *visit, err error) {
	p := problemOf(err)
	if (p == nil || p.status >= http.StatusInternalServerError) && r.Context().Err() == nil {
		level := slog.LevelError
		if p != nil && p.elsewhere {
			level = slog.LevelWarn // anybody can send a link about a document that is not there
		}
		u.Log.Log(r.Context(), level, "page failed", "request", caller.Request(r.Context()), "err", err)
	}
	if p == nil {
		p = &problem{status: http.StatusServiceUnavailable, key: "error.unavailable", retryAfter: 5 * time.Second}
	}
	if p.retryAfter > 0 {
		w.Header().Set("Retry-After", fmt.Sprint(int(math.Ceil(p.retryAfter.Seconds()))))
	}
	more := p.key + ".more"
	if p.moreKey != "" && v.words.Has(p.moreKey) {
		more = p.moreKey
	}
	heading := v.words.T(p.key)
	u.render(w, r, p.status, errorView(errorPage{
		frame: u.frame(r, v, heading), Heading: heading,
		More:      v.words.T(more, "Org", v.here.Organization.Name),
		Detail:    p.detail,
		RequestID: caller.Request(r.Context()),
		SignIn:    p == errNotFound || p == errForged || p == errSetupOver,
	}))
}

// ErrorPage is what a person sees instead of the JSON of the server's edge: after a panic, under a host name that is
// not ours, and at a path that is not written as it means. It looks nobody up, since that may be what broke.
func (u *UI) ErrorPage(w http.ResponseWriter, r *http.Request, status int) {
	protect(w.Header(), false)
	v := &visit{words: u.words.In(u.cookies.language(w, r), nil)}
	key := "error.unavailable"
	switch status {
	case http.StatusForbidden:
		key = "error.host"
	case http.StatusNotFound:
		key = "error.not_found"
	}
	heading := v.words.T(key)
	u.render(w, r, status, errorView(errorPage{
		frame: u.frame(r, v, heading), Heading: heading, More: v.words.T(key+".more", "Address", u.Issuer.String()), RequestID: caller.Request(r.Context()),
	}))
}

// problemOf finds the page that goes with an error, nil when there is none.
func problemOf(err error) *problem {
	var p *problem
	var page *oauth.PageError
	switch {
	case errors.As(err, &p):
		return p
	case errors.As(err, &page):
		return &problem{status: page.Status, key: "error.oauth", moreKey: "error.oauth." + page.Reason, detail: page.Detail, retryAfter: page.RetryAfter,
			elsewhere: page.Reason == "document_unreachable"}
	case errors.Is(err, oauth.ErrGone):
		return errGone
	case errors.Is(err, accounts.ErrNoSetup):
		return errSetupOver
	case fault.Is(err, fault.NotFound):
		return errNotFound
	case fault.Is(err, fault.Forbidden):
		return errForbidden
	case fault.Is(err, fault.InvalidRequest):
		return errBadForm
	}
	return nil
}
