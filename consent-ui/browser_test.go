package consentui

import (
	"bytes"
	"io"
	"maps"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"strings"
	"testing"

	"golang.org/x/net/html"

	"switchboard/auth/accounts"
	"switchboard/internal/trial"
)

// browser is a cookie jar that looks at pages and posts their forms, and does not follow redirects.
type browser struct {
	t      *testing.T
	base   string
	client *http.Client
	header http.Header // sent with everything
}

func newBrowser(t *testing.T, base string) *browser {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	return &browser{t: t, base: base, header: http.Header{}, client: &http.Client{
		Jar: jar, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

func (b *browser) signIn(p accounts.Person) {
	b.t.Helper()
	form := b.get("/sign-in").form("/sign-in")
	form.Set("email", p.Email)
	form.Set("password", passphrase)
	if got := b.post("/sign-in", form); got.status != http.StatusSeeOther {
		b.t.Fatalf("the sign-in answered %d", got.status)
	}
}

func (b *browser) cookie(name string) string {
	b.t.Helper()
	at, err := url.Parse(b.base)
	if err != nil {
		b.t.Fatal(err)
	}
	for _, c := range b.client.Jar.Cookies(at) {
		if c.Name == name {
			return c.Value
		}
	}
	return ""
}

func (b *browser) get(path string) *page {
	b.t.Helper()
	req, err := http.NewRequest(http.MethodGet, b.base+path, nil)
	if err != nil {
		b.t.Fatal(err)
	}
	return b.do(req)
}

func (b *browser) post(path string, form url.Values) *page {
	b.t.Helper()
	req, err := http.NewRequest(http.MethodPost, b.base+path, strings.NewReader(form.Encode()))
	if err != nil {
		b.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	return b.do(req)
}

func (b *browser) do(req *http.Request) *page {
	b.t.Helper()
	req.Header.Set("Accept", "text/html,application/xhtml+xml,*/*;q=0.8") // as browsers do
	maps.Copy(req.Header, b.header)
	resp, err := b.client.Do(req)
	if err != nil {
		b.t.Fatal(err)
	}
	return readPage(b.t, resp)
}

// page is an answer as a program reads it.
type page struct {
	t      *testing.T
	status int
	header http.Header
	body   string
	root   *html.Node
}

func readPage(t *testing.T, resp *http.Response) *page {
	t.Helper()
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	root, err := html.Parse(bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	return &page{t: t, status: resp.StatusCode, header: resp.Header, body: string(body), root: root}
}

// all finds the elements of a tag for which keep answers true.
func (p *page) all(tag string, keep func(*html.Node) bool) []*html.Node {
	return descendants(p.root, tag, keep)
}

func descendants(root *html.Node, tag string, keep func(*html.Node) bool) []*html.Node {
	out := []*html.Node{}
	for n := range root.Descendants() {
		if n.Type == html.ElementNode && n.Data == tag && (keep == nil || keep(n)) {
			out = append(out, n)
		}
	}
	return out
}

func textOf(n *html.Node) string {
	var b strings.Builder
	for d := range n.Descendants() {
		if d.Type == html.TextNode {
			b.WriteString(d.Data)
		}
	}
	return strings.Join(strings.Fields(b.String()), " ")
}

// form is what a browser would post with the form that goes to action, no button pressed.
func (p *page) form(action string) url.Values {
	p.t.Helper()
	forms := p.all("form", func(n *html.Node) bool { return trial.Attr(n, "action") == action })
	if len(forms) == 0 {
		p.t.Fatalf("no form goes to %s on a page with status %d", action, p.status)
	}
	return values(forms[0])
}

// formWith is the form that has a button of a name and value, with that button pressed.
func (p *page) formWith(name, value string) (action string, form url.Values) {
	p.t.Helper()
	for _, f := range p.all("form", nil) {
		for _, b := range descendants(f, "button", nil) {
			if trial.Attr(b, "name") == name && trial.Attr(b, "value") == value && trial.Attr(b, "type") != "button" {
				form = values(f)
				form.Set(name, value)
				return trial.Attr(f, "action"), form
			}
		}
	}
	p.t.Fatalf("no form has a button %s=%s", name, value)
	return "", nil
}

func values(form *html.Node) url.Values {
	v := url.Values{}
	for _, in := range descendants(form, "input", nil) {
		kind := trial.Attr(in, "type")
		if (kind == "checkbox" || kind == "radio") && !trial.HasAttr(in, "checked") {
			continue
		}
		if name := trial.Attr(in, "name"); name != "" {
			v.Add(name, trial.Attr(in, "value"))
		}
	}
	for _, sel := range descendants(form, "select", nil) {
		options := descendants(sel, "option", nil)
		for i, o := range options {
			if trial.HasAttr(o, "selected") || i == 0 {
				v.Set(trial.Attr(sel, "name"), trial.Attr(o, "value"))
			}
		}
	}
	return v
}

// marked are the lines below the fields that were refused, by id.
func (p *page) marked() []string {
	ids := []string{}
	for n := range p.root.Descendants() {
		if trial.Attr(n, "aria-invalid") == "true" {
			ids = append(ids, trial.Attr(n, "aria-describedby"))
		}
	}
	return ids
}
