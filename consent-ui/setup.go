package consentui

import (
	"cmp"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/a-h/templ"
	"golang.org/x/text/language"
	"golang.org/x/text/language/display"

	"switchboard/auth/accounts"
)

type setupPage struct {
	frame
	Seal  seal
	Link  string
	In    accounts.Setup // as it was typed, without the password
	Wrong *accounts.Invalid
	Fresh bool // nothing was typed yet

	Countries []country
	Zones     []zoneArea
	Data      string // where the data lies
}

type country struct{ Code, Name string }

// zoneArea is the time zones of a part of the world.
type zoneArea struct {
	Name  string
	Zones []string
}

// wrong is what is wrong with a field, "" when nothing is.
func (p setupPage) wrong(field string) string {
	if p.Wrong == nil || p.Wrong.Field != field {
		return ""
	}
	return p.T("setup.invalid."+p.Wrong.Reason, "Least", p.least())
}

// least is the length of the shortest password, for the page to name.
func (setupPage) least() string { return strconv.Itoa(accounts.MinPassword) }

// marks are the attributes that tie a control to the line below it.
func (p setupPage) marks(field string) templ.Attributes {
	switch {
	case p.wrong(field) != "":
		return templ.Attributes{"aria-invalid": "true", "aria-describedby": field + "-error", "autofocus": true}
	case p.Has("setup." + field + ".hint"):
		return templ.Attributes{"aria-describedby": field + "-hint"}
	}
	return nil
}

func (u *UI) showSetup(w http.ResponseWriter, r *http.Request, v *visit) error {
	link := r.URL.Query().Get("link")
	if err := u.Accounts.SetupOpen(r.Context(), link); err != nil {
		return err
	}
	return u.renderSetup(w, r, v, http.StatusOK, setupPage{
		Link: link, Fresh: true, In: accounts.Setup{Timezone: "UTC", Locale: v.words.Lang},
	})
}

func (u *UI) renderSetup(w http.ResponseWriter, r *http.Request, v *visit, status int, p setupPage) error {
	if p.Wrong != nil {
		v.notice = notice{Kind: "bad", Title: v.words.T("setup.wrong"), Text: v.words.T("setup.wrong.more")}
	}
	p.frame = u.frame(r, v, v.words.T("setup.title"))
	p.Seal = p.seals("setup")
	p.Countries, p.Zones, p.Data = countries(p.Lang), zoneAreas(), u.DatabaseNote
	u.render(w, r, status, setupView(p))
	return nil
}

// setUp uses the link up, makes the organization and its owner, and signs the owner in.
func (u *UI) setUp(w http.ResponseWriter, r *http.Request, v *visit) error {
	link, in := r.PostForm.Get("link"), accounts.Setup{
		Organization: r.PostForm.Get("org"), Country: r.PostForm.Get("country"), Timezone: r.PostForm.Get("timezone"),
		Locale: r.PostForm.Get("locale"), Name: r.PostForm.Get("name"), Email: r.PostForm.Get("email"), Password: r.PostForm.Get("password"),
	}
	person, err := u.Accounts.CompleteSetup(r.Context(), link, in)
	var wrong *accounts.Invalid
	if errors.As(err, &wrong) {
		in.Password = ""
		return u.renderSetup(w, r, v, http.StatusUnprocessableEntity, setupPage{Link: link, In: in, Wrong: wrong})
	}
	if err != nil {
		return err
	}
	if err := u.startSession(w, r, person.ID); err != nil {
		return err
	}
	redirect(w, "/connections")
	return nil
}

// countries lists the countries by their names in a language.
func countries(lang string) []country {
	names := display.Regions(language.Make(lang))
	list := []country{}
	for _, code := range accounts.Countries() {
		list = append(list, country{code, names.Name(language.MustParseRegion(code))})
	}
	slices.SortFunc(list, func(a, b country) int { return cmp.Compare(a.Name, b.Name) })
	return list
}

// zoneAreas groups the time zones by the first part of their names, the order of the list kept.
func zoneAreas() []zoneArea {
	areas := []zoneArea{}
	for _, zone := range accounts.Timezones() {
		name, _, _ := strings.Cut(zone, "/")
		i := slices.IndexFunc(areas, func(a zoneArea) bool { return a.Name == name })
		if i < 0 {
			i = len(areas)
			areas = append(areas, zoneArea{Name: name})
		}
		areas[i].Zones = append(areas[i].Zones, zone)
	}
	return areas
}
