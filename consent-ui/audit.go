package consentui

import (
	"cmp"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"time"

	"switchboard/internal/audit"
	"switchboard/internal/caller"
	"switchboard/tools/kit"
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

	tools kit.Registry
}

var (
	outcomes = []audit.Outcome{audit.OK, audit.Refused, audit.Failed, audit.Started}
	spans    = []string{"today", "week", "month"}
	filters  = []string{"who", "action", "outcome", "when"}
)

func (u *UI) showAudit(w http.ResponseWriter, r *http.Request, v *visit) error {
	if !seesAudit(v.here.Role) {
		return errForbidden
	}
	q := r.URL.Query()
	p := auditPage{frame: u.frame(r, v, v.words.T("audit.title")), Asked: q, Later: q.Get("cursor") != "", tools: u.Tools}
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

// does is what an action means in words: an event's sentence or a tool's title, "" for one that has neither.
func (p auditPage) does(action string) string {
	if key := "audit.does." + action; p.Has(key) {
		return p.T(key)
	}
	if t, ok := p.tools.Tool(action); ok && p.Lang == "en" {
		return t.Spec().Title
	}
	return ""
}

// about is the name of the app or key that an event was about; which one is what a reader looks for first.
func about(e audit.Entry) string {
	for _, key := range []string{"app", "name"} {
		if name, ok := e.Detail[key].(string); ok {
			return name
		}
	}
	return ""
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

// detailLine is one fact of an entry.
type detailLine struct{ Name, Value string }

// details are the entry's own facts, by name.
func details(e audit.Entry) []detailLine {
	lines := []detailLine{}
	for k, v := range e.Detail {
		lines = append(lines, detailLine{k, fmt.Sprint(v)})
	}
	slices.SortFunc(lines, func(a, b detailLine) int { return cmp.Compare(a.Name, b.Name) })
	return lines
}
