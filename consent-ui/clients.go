package consentui

import (
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/a-h/templ"

	"switchboard/auth/oauth"
	"switchboard/internal/fault"
)

// clientsPage lists the apps that an organization has to do with, makes one for a server of its own, and shows a new
// secret this once. It is for administrators.
type clientsPage struct {
	frame
	Seal    seal
	List    []client
	Asking  *client // the question about it is the page
	Rotates bool    // and is whether it gets a new secret, not whether it is blocked
	Blocked int

	Methods []string
	Form    oauth.NewClient
	Lines   string // the redirect URIs as they were typed
	Wrong   string // the field that was refused
	Why     string // and why, in English, where that says more than the hint below it

	Made      *client // shown with its secret, if it has one
	Secret    string
	Discovery string // where its program finds the rest
}

// client is an app as the page tells of it.
type client struct {
	oauth.Client
	Called string // what it calls itself, or was called
}

func (u *UI) showClients(w http.ResponseWriter, r *http.Request, v *visit) error {
	return u.renderClients(w, r, v, http.StatusOK, clientsPage{})
}

func (u *UI) renderClients(w http.ResponseWriter, r *http.Request, v *visit, status int, p clientsPage) error {
	list, err := u.OAuth.Clients(r.Context())
	if err != nil {
		return err
	}
	p.frame = u.frame(r, v, v.words.T("clients.title"))
	if done := r.URL.Query().Get("done"); slices.Contains([]string{"blocked", "unblocked"}, done) {
		p.Toast = p.T("clients." + done)
	}
	p.Seal, p.Methods, p.Discovery = p.seals("clients"), oauth.AuthMethods(), u.Issuer.String()+"/.well-known/oauth-authorization-server"
	if p.Form.Method == "" {
		p.Form.Method = p.Methods[0]
	}
	for _, a := range list {
		if !a.BlockedAt.IsZero() {
			p.Blocked++
		}
		p.List = append(p.List, client{a, clientName(v.words, a.Name)})
	}
	asked := r.URL.Query().Get("block")
	if id := r.URL.Query().Get("rotate"); id != "" {
		asked, p.Rotates = id, true
	}
	if i := slices.IndexFunc(p.List, func(c client) bool { return c.ID == asked && (!p.Rotates || c.Made && c.HasSecret()) }); i >= 0 && r.Method == http.MethodGet {
		p.Asking = &p.List[i]
	}
	u.render(w, r, status, clientsView(p))
	return nil
}

// changeClients does what the pressed button says.
func (u *UI) changeClients(w http.ResponseWriter, r *http.Request, v *visit) error {
	form := r.PostForm
	switch {
	case form.Get("block") != "":
		return u.answerClients(w, r, v, u.OAuth.BlockClient(r.Context(), form.Get("block")), "/clients?done=blocked")
	case form.Get("unblock") != "":
		return u.answerClients(w, r, v, u.OAuth.UnblockClient(r.Context(), form.Get("unblock")), "/clients?done=unblocked")
	case form.Get("rotate") != "":
		secret, app, err := u.OAuth.RotateSecret(r.Context(), form.Get("rotate"), form.Get("mark"), form.Get("leaked") == "yes")
		if errors.Is(err, oauth.ErrSecretChanged) {
			v.notice = notice{Kind: "warn", Title: v.words.T("clients.rotated_already"), Text: v.words.T("clients.rotated_already.more")}
			return u.renderClients(w, r, v, http.StatusConflict, clientsPage{})
		}
		if err != nil {
			return u.answerClients(w, r, v, err, "")
		}
		return u.showSecret(w, r, v, secret, app)
	}
	return u.makeClient(w, r, v)
}

// answerClients leads on after a change, or shows the list as it is where the app is gone.
func (u *UI) answerClients(w http.ResponseWriter, r *http.Request, v *visit, err error, next string) error {
	if fault.Is(err, fault.NotFound) {
		v.notice = notice{Kind: "bad", Title: v.words.T("clients.gone"), Text: v.words.T("clients.gone.more")}
		return u.renderClients(w, r, v, http.StatusNotFound, clientsPage{})
	}
	if err != nil {
		return err
	}
	redirect(w, next)
	return nil
}

func (u *UI) makeClient(w http.ResponseWriter, r *http.Request, v *visit) error {
	p := clientsPage{Lines: strings.TrimSpace(r.PostForm.Get("redirects")), Form: oauth.NewClient{
		Name: strings.TrimSpace(r.PostForm.Get("name")), Redirects: strings.Fields(r.PostForm.Get("redirects")),
		Method: r.PostForm.Get("method"), JWKSURI: r.PostForm.Get("jwks_uri"),
	}}
	secret, app, err := u.OAuth.MakeClient(r.Context(), p.Form)
	if fault.Is(err, fault.InvalidRequest) {
		f, _ := fault.Of(err, "")
		if p.Wrong, _ = f.Details["field"].(string); p.Wrong == "redirects" || p.Wrong == "jwks_uri" {
			p.Why = inert(f.Message)
		}
		v.notice = notice{Kind: "bad", Title: v.words.T("clients.wrong"), Text: v.words.T("keys.wrong.more")}
		return u.renderClients(w, r, v, http.StatusUnprocessableEntity, p)
	}
	if err != nil {
		return err
	}
	return u.showSecret(w, r, v, secret, app)
}

// showSecret shows an app with its secret. It is in this answer and nowhere else, so there is no redirect after the POST.
func (u *UI) showSecret(w http.ResponseWriter, r *http.Request, v *visit, secret string, app oauth.Client) error {
	return u.renderClients(w, r, v, http.StatusOK, clientsPage{
		Made: &client{app, clientName(v.words, app.Name)}, Secret: secret,
	})
}

// marks are the attributes that tie a control to the line below it.
func (p clientsPage) marks(field string) templ.Attributes {
	return described(p.Wrong == field, field, field+"-hint")
}

// question is the page that asks whether to do something to an app, whose id may be an address of its own.
func question(what, id string) string { return "/clients?" + url.Values{what: {id}}.Encode() }
