package consentui

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/a-h/templ"

	"switchboard/auth"
	"switchboard/internal/fault"
	"switchboard/internal/scope"
)

// keysPage lists the keys, makes new ones, and shows a new one this once.
type keysPage struct {
	frame
	Seal    seal
	List    []auth.Key
	Asking  *auth.Key // the question whether to revoke it is the page
	NextEnd time.Time // of the key that ends first, zero when none does
	Live    int       // keys that have not ended
	Forever int       // those of them that never end

	Offers   []offer
	Lifetime []string // what the form offers, "30d" and so on
	Name     string   // as it was typed
	Ticked   scope.Set
	Expires  string
	Wrong    string // the field that was refused

	Secret string // shown once
	Made   auth.Key
}

// offer is one checkbox: the reading or the changing half of a permission.
type offer struct {
	Label  string
	About  string
	Scopes scope.Set
	Money  bool
	Once   bool
}

var (
	lifetimes       = []string{"30d", "90d", "365d", "never"}
	defaultLifetime = "90d"
)

func (u *UI) showKeys(w http.ResponseWriter, r *http.Request, v *visit) error {
	return u.renderKeys(w, r, v, http.StatusOK, keysPage{Expires: defaultLifetime})
}

func (u *UI) renderKeys(w http.ResponseWriter, r *http.Request, v *visit, status int, p keysPage) error {
	list, err := u.Auth.Keys(r.Context())
	if err != nil {
		return err
	}
	p.frame = u.frame(r, v, v.words.T("keys.title"))
	if r.URL.Query().Get("done") == "revoked" {
		p.Toast = p.T("keys.revoked")
	}
	p.Seal, p.List, p.Offers, p.Lifetime = p.seals("keys"), list, u.offers(v), lifetimes
	for _, k := range list {
		switch {
		case k.Expired:
			continue
		case k.ExpiresAt.IsZero():
			p.Forever++
		case p.NextEnd.IsZero() || k.ExpiresAt.Before(p.NextEnd):
			p.NextEnd = k.ExpiresAt
		}
		p.Live++
	}
	if i := slices.IndexFunc(list, func(k auth.Key) bool { return k.ID == r.URL.Query().Get("ask") }); i >= 0 {
		p.Asking = &list[i]
	}
	u.render(w, r, status, keysView(p))
	return nil
}

// offers are the permissions that the person's role can give to a key, each cut in what reads and what changes.
func (u *UI) offers(v *visit) []offer {
	list := []offer{}
	for _, g := range u.Auth.Catalog().Groups() {
		mine := g.Scopes.Filter(v.here.Role.Allows)
		for _, half := range []scope.Set{mine.ReadOnly(), mine.Minus(mine.ReadOnly())} {
			if len(half) == 0 {
				continue
			}
			d := describe(v.words, u.Tools, g, half)
			key := "keys.scope.read"
			if d.Changes {
				key = "keys.scope.change"
			}
			list = append(list, offer{Label: v.words.T(key, "Name", d.Name), About: d.About, Scopes: half, Money: d.Money, Once: d.Once})
		}
	}
	return list
}

// changeKeys does what the pressed button says.
func (u *UI) changeKeys(w http.ResponseWriter, r *http.Request, v *visit) error {
	if id := r.PostForm.Get("revoke"); id != "" {
		return u.revokeKey(w, r, v, id)
	}
	return u.createKey(w, r, v)
}

func (u *UI) createKey(w http.ResponseWriter, r *http.Request, v *visit) error {
	p := keysPage{
		Name: strings.TrimSpace(r.PostForm.Get("name")), Expires: r.PostForm.Get("expires"),
		Ticked: scope.Parse(strings.Join(r.PostForm["scope"], " ")),
	}
	expires, err := lifetime(p.Expires)
	if err == nil {
		p.Secret, p.Made, err = u.Auth.CreateKey(r.Context(), auth.NewKey{Name: p.Name, Scopes: p.Ticked, Expires: expires})
	}
	if fault.Is(err, fault.InvalidRequest) || fault.Is(err, fault.Forbidden) {
		f, _ := fault.Of(err, "")
		p.Wrong, _ = f.Details["field"].(string)
		v.notice = notice{Kind: "bad", Title: v.words.T("keys.wrong"), Text: v.words.T("keys.wrong.more")}
		if p.Wrong == "count" {
			v.notice.Text = v.words.T("keys.many")
		}
		return u.renderKeys(w, r, v, http.StatusUnprocessableEntity, p)
	}
	if err != nil {
		return err
	}
	// The key is in this answer and nowhere else, so there is no redirect after this POST.
	p.Name, p.Ticked, p.Expires = "", nil, defaultLifetime
	return u.renderKeys(w, r, v, http.StatusOK, p)
}

func (u *UI) revokeKey(w http.ResponseWriter, r *http.Request, v *visit, id string) error {
	err := u.Auth.RevokeKey(r.Context(), id)
	if fault.Is(err, fault.NotFound) {
		v.notice = notice{Kind: "bad", Title: v.words.T("keys.gone"), Text: v.words.T("keys.gone.more")}
		return u.renderKeys(w, r, v, http.StatusNotFound, keysPage{Expires: defaultLifetime})
	}
	if err != nil {
		return err
	}
	redirect(w, "/keys?done=revoked")
	return nil
}

// lifetime reads how long a key lives. Nothing at all is an error: a key that never ends must be asked for.
func lifetime(s string) (time.Duration, error) {
	d, err := auth.ParseLifetime(s)
	if err != nil || s == "" {
		return 0, fault.New(fault.InvalidRequest, "A key ends after a number of days such as 90d, or never.").With("field", "expires")
	}
	return d, nil
}

// ends is how the form calls a lifetime.
func (p keysPage) ends(lifetime string) string {
	if lifetime == "never" {
		return p.T("keys.expires.never")
	}
	var n int
	if _, err := fmt.Sscanf(lifetime, "%dd", &n); err != nil {
		return lifetime
	}
	return p.N("keys.expires.days", n)
}

// ticks reports whether a checkbox comes ticked: it was, before something else was refused.
func (p keysPage) ticks(o offer) bool { return len(p.Ticked) > 0 && p.Ticked.Contains(o.Scopes) }

// marks are the attributes that tie a control to the line below it.
func (p keysPage) marks(field, hint string) templ.Attributes {
	return described(p.Wrong == field, field, hint)
}
