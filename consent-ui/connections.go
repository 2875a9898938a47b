package consentui

import (
	"net/http"
	"slices"

	"switchboard/auth"
	"switchboard/internal/fault"
	"switchboard/internal/origin"
)

// connectionsPage lists the apps that can act, with one of them in full.
type connectionsPage struct {
	frame
	Seal     seal
	List     []connection
	Open     *connection // the one in full, nil when there is none
	Asking   bool        // the question whether to revoke it is the page
	Everyone bool        // the list is the whole organization's
	Spenders int

	Address string // to paste into an app
	Local   bool   // only programs on this computer reach it
}

// connection is an app as the page tells of it.
type connection struct {
	auth.Connection
	App   string // what it calls itself
	Money bool
	May   []held
}

// held is a permission of a connection and since when it has it.
type held struct {
	permission
	Grant auth.Grant
}

func (u *UI) showConnections(w http.ResponseWriter, r *http.Request, v *visit) error {
	return u.renderConnections(w, r, v, http.StatusOK)
}

func (u *UI) renderConnections(w http.ResponseWriter, r *http.Request, v *visit, status int) error {
	list, err := u.Auth.Connections(r.Context())
	if err != nil {
		return err
	}
	p := connectionsPage{
		Everyone: v.here.Role.SeesAll(), Asking: r.URL.Query().Get("ask") == "revoke",
		Address: u.resource(), Local: origin.IsLoopback(u.Issuer.Hostname()),
	}
	p.frame = u.frame(r, v, v.words.T("connections.title"))
	p.Seal = p.seals("connections")
	if r.URL.Query().Get("done") == "revoked" {
		p.Toast = p.T("connections.revoked")
	}
	for _, c := range list {
		line := connection{Connection: c, App: clientName(v.words, c.ClientName), May: u.heldBy(&p, c)}
		line.Money = slices.ContainsFunc(line.May, func(h held) bool { return h.Money })
		if line.Money {
			p.Spenders++
		}
		p.List = append(p.List, line)
	}
	app := r.URL.Query().Get("app")
	p.Open = pick(p.List, app)
	if p.Asking && (p.Open == nil || p.Open.ID != app) {
		// Asked from a page that is older than a revocation. The first of the list is not what was meant.
		p.Asking, status = false, http.StatusNotFound
		p.Notice = connectionGone(v)
	}
	u.render(w, r, status, connectionsView(p))
	return nil
}

// heldBy tells a connection's permissions, each with the first sign-in that brought it.
func (u *UI) heldBy(p *connectionsPage, c auth.Connection) []held {
	list := []held{}
	for _, g := range u.permissions(p.Printer, c.Scopes) {
		h := held{permission: g}
		if i := slices.IndexFunc(c.Grants, func(gr auth.Grant) bool { return len(gr.Scopes.Intersect(g.Scopes)) > 0 }); i >= 0 {
			h.Grant = c.Grants[i]
		}
		list = append(list, h)
	}
	return list
}

// pick is the connection that was asked for, else the first.
func pick(list []connection, id string) *connection {
	if len(list) == 0 {
		return nil
	}
	i := slices.IndexFunc(list, func(c connection) bool { return c.ID == id })
	return &list[max(i, 0)]
}

func connectionGone(v *visit) notice {
	return notice{Kind: "bad", Title: v.words.T("connections.gone"), Text: v.words.T("connections.gone.more")}
}

func (u *UI) revokeConnection(w http.ResponseWriter, r *http.Request, v *visit) error {
	err := u.Auth.RevokeConnection(r.Context(), r.PostForm.Get("revoke"))
	if fault.Is(err, fault.NotFound) {
		v.notice = connectionGone(v)
		return u.renderConnections(w, r, v, http.StatusNotFound)
	}
	if err != nil {
		return err
	}
	redirect(w, "/connections?done=revoked")
	return nil
}
