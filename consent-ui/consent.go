package consentui

import (
	"cmp"
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"

	"switchboard/auth/accounts"
	"switchboard/auth/oauth"
	"switchboard/internal/scope"
)

// consentPage asks a person about an app. It is a step-up when the app is connected already and asks for more: then
// what is new stands first, and what it has comes folded but ticked, so that the answer holds both.
type consentPage struct {
	frame
	Seal        seal
	ID          string
	App         string // what the app calls itself
	Destination string // where the answer goes
	Return      string // the same, in full

	Pending oauth.Pending
	Choices []choice
	Chosen  choice

	StepUp  bool
	Again   bool // connected already, asks for nothing new
	Since   time.Time
	New     []permission // on a step-up
	Held    []permission // on a step-up
	Panels  []panel      // otherwise
	Money   bool         // some permission offered can spend
	Changes bool         // some permission offered can change things
	Mixed   bool         // reading is a part of what can be added, not all of it

	Days int // without use, after which it ends by itself
}

// choice is an organization that the app could work in.
type choice struct {
	accounts.Membership
	Line     string // what the person's role means for what was asked
	OnlyRead bool   // the role leaves only reading
	Nothing  bool   // the role leaves nothing
	Blocked  bool   // an administrator keeps the app out
	Less     bool   // the role leaves less than was asked
	allowed  scope.Set
	held     scope.Set
	since    time.Time
}

// panel is permissions of one kind.
type panel struct {
	ID, Title, Fact string
	List            []permission
}

// Empty reports that the person has nothing to give.
func (p consentPage) Empty() bool { return len(p.New) == 0 && len(p.Held) == 0 && len(p.Panels) == 0 }

// authorizeByPost turns a request that came as a form (RFC 6749 §3.1) into one that came by link. A cross-site POST
// brings no Lax cookies; the GET after it does, and it changes nothing that could be forged. Only the form counts:
// parameters of the address beside it would make a request that nobody sent.
func (u *UI) authorizeByPost(w http.ResponseWriter, r *http.Request) {
	protect(w.Header(), false)
	r.Body = http.MaxBytesReader(w, r.Body, maxForm)
	if r.ParseForm() != nil {
		u.fail(w, r, &visit{words: u.words.In(u.cookies.language(w, r), nil)}, errBadForm)
		return
	}
	redirect(w, "/oauth/authorize?"+r.PostForm.Encode())
}

// authorize takes an app's request in and leads to the page about it.
func (u *UI) authorize(w http.ResponseWriter, r *http.Request, v *visit) error {
	id, err := u.OAuth.Begin(r, v.browser)
	var elsewhere *oauth.RedirectError
	if errors.As(err, &elsewhere) && v.signedIn() {
		redirect(w, elsewhere.Location)
		return nil
	}
	if elsewhere != nil { // an error waits for the sign-in like a question does
		id, err = u.OAuth.Wait(r.Context(), v.browser, elsewhere)
	}
	if err != nil {
		return err
	}
	redirect(w, "/consent/"+id)
	return nil
}

func (u *UI) showConsent(w http.ResponseWriter, r *http.Request, v *visit) error {
	return u.renderConsent(w, r, v, http.StatusOK)
}

func (u *UI) renderConsent(w http.ResponseWriter, r *http.Request, v *visit, status int) error {
	pending, err := u.OAuth.Pending(r.Context(), v.subject, v.browser)
	var elsewhere *oauth.RedirectError
	if errors.As(err, &elsewhere) {
		redirect(w, elsewhere.Location)
		return nil
	}
	if err != nil {
		return err
	}
	if pending.Decision != "" {
		return errGone
	}
	p := consentPage{
		ID: v.subject, Pending: pending, App: clientName(v.words, pending.ClientName),
		Destination: destination(pending), Return: inertAddress(pending.RedirectURI),
		Days: int(u.IdleEnd / (24 * time.Hour)),
	}
	p.frame = u.frame(r, v, v.words.T("consent.title", "App", isolated(p.App)))
	p.Seal, p.next = p.seals("consent"), v.subject
	if err := u.choices(r, v, &p); err != nil {
		return err
	}
	u.offer(&p)
	u.render(w, r, status, consentView(p))
	return nil
}

// choices works out what each organization would mean, and which one is picked before the person picks: one where there
// is something to give, of these the one that the app is connected to, else the one that the person looked at last.
func (u *UI) choices(r *http.Request, v *visit, p *consentPage) error {
	for _, m := range v.memberships {
		if only := p.Pending.OnlyOrg; only != "" && only != m.Organization.ID {
			continue
		}
		held, since, err := u.OAuth.Held(r.Context(), p.Pending, v.session.Person.ID, m.Organization.ID)
		if err != nil {
			return err
		}
		c := choice{Membership: m, held: held, since: since, allowed: p.Pending.Requested.Filter(m.Role.Allows)}
		if c.Blocked = !p.Pending.Admits(m.Organization.ID); c.Blocked {
			c.allowed = scope.Set{}
		}
		c.Nothing, c.Less = len(c.allowed) == 0, len(c.allowed) < len(p.Pending.Requested)
		c.OnlyRead = len(c.allowed.ReadOnly()) == len(c.allowed)
		c.Line = u.roleLine(p, c)
		p.Choices = append(p.Choices, c)
	}
	if len(p.Choices) == 0 {
		return errOtherOrganization
	}
	p.Chosen = slices.MaxFunc(p.Choices, func(a, b choice) int { return cmp.Compare(a.weight(v), b.weight(v)) })
	return nil
}

func (c choice) weight(v *visit) int {
	w := 0
	if !c.Nothing {
		w += 4
	}
	if len(c.held) > 0 {
		w += 2
	}
	if c.Organization.ID == v.here.Organization.ID {
		w++
	}
	return w
}

// roleLine says what the person's role in an organization leaves of what was asked.
func (u *UI) roleLine(p *consentPage, c choice) string {
	role := p.aRole(c.Role)
	lacking := names(u.permissions(p.Printer, p.Pending.Requested.Minus(c.allowed)))
	switch {
	case c.Blocked:
		return p.T("consent.org.blocked")
	case c.Nothing:
		return p.T("consent.org.nothing", "Role", role)
	case len(lacking) > 0 && c.OnlyRead:
		return p.T("consent.org.only_read", "Role", role)
	case len(lacking) > 0:
		return p.T("consent.org.less", "Role", role, "Names", p.List(lacking))
	}
	return p.T("consent.org.role", "Role", role)
}

// offer sets out what can be ticked: what was asked for and what the person may give in some organization. What
// they may give in the chosen one is decided when the answer arrives, in auth/oauth.
func (u *UI) offer(p *consentPage) {
	offered := scope.Set{}
	for _, c := range p.Choices {
		offered = offered.Union(c.allowed)
	}
	held := offered.Intersect(p.Chosen.held)
	fresh := offered.Minus(held)
	p.Since = p.Chosen.since
	p.StepUp = len(p.Chosen.held) > 0 && len(fresh) > 0
	p.Again = len(p.Chosen.held) > 0 && len(fresh) == 0

	list := u.permissions(p.Printer, offered)
	onlyOff := !slices.ContainsFunc(list, func(g permission) bool { return g.Default })
	for i, g := range list {
		list[i].Ticked = g.Default || onlyOff || p.Again
		p.Money, p.Changes = p.Money || g.Money, p.Changes || g.Changes
	}
	if p.Mixed = mixed(offered); p.StepUp {
		p.Mixed = mixed(fresh)
	}
	if p.StepUp {
		p.New, p.Held = ticked(u.permissions(p.Printer, fresh), true), ticked(u.permissions(p.Printer, held), false)
		return
	}
	p.Panels = panels(p, list)
}

// mixed reports whether reading is a part of a set and not all of it.
func mixed(s scope.Set) bool {
	n := len(s.ReadOnly())
	return n > 0 && n < len(s)
}

func ticked(list []permission, fresh bool) []permission {
	for i := range list {
		list[i].Ticked, list[i].New = true, fresh
	}
	return list
}

// panels sorts permissions under the headings of what they can lead to.
func panels(p *consentPage, list []permission) []panel {
	kinds := []panel{
		{ID: "money", Title: p.T("consent.money"), Fact: p.T("consent.money.fact")},
		{ID: "once", Title: p.T("consent.once"), Fact: p.T("consent.money.fact")},
		{ID: "change", Title: p.T("consent.change"), Fact: p.T("consent.change.fact")},
		{ID: "read", Title: p.T("consent.read"), Fact: p.T("consent.read.fact")},
	}
	for _, g := range list {
		kind := 3
		switch {
		case g.Money:
			kind = 0
		case g.Once:
			kind = 1
		case g.Changes:
			kind = 2
		}
		kinds[kind].List = append(kinds[kind].List, g)
	}
	return slices.DeleteFunc(kinds, func(k panel) bool { return len(k.List) == 0 })
}

// answerConsent hands the person's answer over and sends the browser where the server says.
func (u *UI) answerConsent(w http.ResponseWriter, r *http.Request, v *visit) error {
	decision := r.PostForm.Get("decision")
	org, ok := v.membership(r.PostForm.Get("org"))
	if !slices.Contains([]string{"approve", "approve_read", "deny"}, decision) || !ok && decision != "deny" {
		v.notice = notice{Kind: "bad", Title: v.words.T("consent.unanswered"), Text: v.words.T("consent.unanswered.more")}
		return u.renderConsent(w, r, v, http.StatusUnprocessableEntity)
	}
	location, err := u.OAuth.Decide(r.Context(), v.subject, v.browser, oauth.Decision{
		Approve: decision != "deny", ReadOnly: decision == "approve_read",
		PersonID: v.session.Person.ID, OrgID: org.Organization.ID,
		Scopes: scope.Parse(strings.Join(r.PostForm["scope"], " ")),
	})
	if err != nil {
		return err
	}
	redirect(w, location)
	return nil
}

// destination is where the answer goes, as short as it can be said without hiding who gets it. Of a private scheme
// that is the scheme alone: whatever app is installed claims it, and what stands where a host would be says nothing.
func destination(p oauth.Pending) string { return inertAddress(p.RedirectHost) }

// inertAddress is an address without anything that could change how the rest of it reads.
func inertAddress(s string) string {
	return strings.Map(func(r rune) rune {
		if r <= ' ' || r > '~' {
			return '\uFFFD'
		}
		return r
	}, s)
}

// loopback heads the warning about an app that answers on a person's own machine. One that a website publishes is known,
// but whoever listens there may still be another.
func (p consentPage) loopback() string {
	if p.Pending.ClientHost != "" {
		return "consent.loopback.published"
	}
	return "consent.loopback"
}

// back is the sentence about where the browser goes, whatever the answer.
func (p consentPage) back() string {
	switch {
	case p.Pending.Loopback:
		return "consent.back.computer"
	case p.Pending.PrivateScheme != "":
		return "consent.back.program"
	}
	return "consent.back"
}
