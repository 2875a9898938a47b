package consentui

import (
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"time"

	"switchboard/internal/audit"
	"switchboard/internal/caller"
	"switchboard/internal/scope"
)

// auditPage is one page of the log, and the filters that made it.
type auditPage struct {
	frame
	Entries []audit.Entry
	Total   int64
	Actors  []audit.Actor
	Actions []string
	Asked   url.Values // the filters as they came
	Older   string     // address of the next page, "" at the end
	Later   bool       // this is not the first page
}

var (
	outcomes = []audit.Outcome{audit.OK, audit.Refused, audit.Failed, audit.Started}
	spans    = []string{"today", "week", "month"}
	filters  = []string{"who", "action", "outcome", "when"}
)

func (u *UI) showAudit(w http.ResponseWriter, r *http.Request, v *visit) error {
	if !v.here.Role.SeesAll() {
		return errForbidden
	}
	q := r.URL.Query()
	p := auditPage{frame: u.frame(r, v, v.words.T("audit.title")), Asked: q, Later: q.Get("cursor") != ""}
	filter := audit.Filter{Action: q.Get("action"), Outcome: q.Get("outcome"), Actor: q.Get("who"), Cursor: q.Get("cursor")}
	filter.Since = since(q.Get("when"), time.Now().In(v.words.Zone))
	next := ""
	var err error
	if p.Entries, next, err = u.Audit.List(r.Context(), filter); err != nil {
		return err
	}
	if p.Total, err = u.Audit.Count(r.Context(), filter); err != nil {
		return err
	}
	if p.Actors, err = u.Audit.Actors(r.Context()); err != nil {
		return err
	}
	if p.Actions, err = u.Audit.Actions(r.Context()); err != nil {
		return err
	}
	if next != "" {
		p.Older = p.address("cursor", next)
	}
	u.render(w, r, http.StatusOK, auditView(p))
	return nil
}

// since is the first moment of a span, told by days of the organization's zone.
func since(span string, now time.Time) time.Time {
	y, m, d := now.Date()
	switch span {
	case "today":
		return time.Date(y, m, d, 0, 0, 0, 0, now.Location())
	case "week":
		return time.Date(y, m, d-6, 0, 0, 0, 0, now.Location())
	case "month":
		return time.Date(y, m, d-29, 0, 0, 0, 0, now.Location())
	}
	return time.Time{}
}

// address is this page with its filters and one more value.
func (p auditPage) address(key, value string) string {
	q := url.Values{}
	for _, f := range filters {
		if p.Asked.Get(f) != "" {
			q.Set(f, p.Asked.Get(f))
		}
	}
	if value != "" {
		q.Set(key, value)
	}
	if len(q) == 0 {
		return "/audit"
	}
	return "/audit?" + q.Encode()
}

// Filtered reports whether any filter is set.
func (p auditPage) Filtered() bool {
	return slices.ContainsFunc(filters, func(f string) bool { return p.Asked.Get(f) != "" })
}

// does is what an action means in words, "" for one that has none: a tool of an earlier version.
func (p auditPage) does(action string) string {
	if key := "audit.does." + action; p.Has(key) {
		return p.T(key)
	}
	return ""
}

// about is the name of the app or key that an event was about; which one is what a reader looks for first.
func (p auditPage) about(e audit.Entry) string {
	if app, ok := e.Detail["app"].(string); ok {
		return clientName(p.Printer, app)
	}
	name, _ := e.Detail["name"].(string)
	return inert(name)
}

// via is what somebody acted through.
func (p auditPage) via(e audit.Entry) string {
	switch e.Via {
	case caller.Connection:
		return clientName(p.Printer, e.ViaName)
	case caller.Key:
		return p.T("audit.via.key", "Name", isolated(inert(e.ViaName)))
	case caller.System:
		return p.T("audit.via.system")
	}
	return p.T("audit.via.browser")
}

// knot is how an entry hangs on the cord.
func knot(o audit.Outcome) string {
	switch o {
	case audit.OK:
		return "ok"
	case audit.Started:
		return "wait"
	}
	return "bad"
}

// fact is one detail of an entry. Its value is words, or an identifier.
type fact struct {
	Name, Value string
	Words       bool
}

// facts are the details of an entry, in the order of the names that they are kept under.
func (p auditPage) facts(e audit.Entry) []fact {
	list := []fact{}
	for _, name := range slices.Sorted(maps.Keys(e.Detail)) {
		list = append(list, p.fact(name, fmt.Sprint(e.Detail[name])))
	}
	return list
}

func (p auditPage) fact(name, value string) fact {
	f := fact{Name: name, Value: value, Words: true}
	if key := "audit.detail." + name; p.Has(key) {
		f.Name = p.T(key)
	}
	said := "audit.detail." + name + "." + value
	switch {
	case name == "app":
		f.Value = clientName(p.Printer, value)
	case name == "name" || name == "person":
		f.Value = inert(value)
	case name == "role":
		f.Value = p.role(scope.Role(value))
	case p.Has(said):
		f.Value = p.T(said)
	default:
		f.Words = false
	}
	return f
}
