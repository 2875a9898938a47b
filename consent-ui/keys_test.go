package consentui

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/net/html"

	"switchboard/auth"
	"switchboard/internal/scope"
	"switchboard/internal/trial"
)

func TestAScriptCanMakeAndRevokeAKey(t *testing.T) {
	w := newWorld()
	b := newBrowser(t, serveWorld(t, w).URL)
	b.signIn(amira)
	action, form := b.get("/keys").formWith("create", "key")
	form.Set("name", " Build ")
	form["scope"] = []string{"contacts:read contacts:write", "org:read"}
	form.Set("expires", "30d")
	p := b.post(action, form)
	shown := p.all("code", func(n *html.Node) bool { return trial.Attr(n, "id") == "key" })
	if p.status != http.StatusOK || len(shown) != 1 || !strings.HasPrefix(textOf(shown[0]), "sb_live_") {
		t.Fatalf("status %d, %d keys shown", p.status, len(shown))
	}
	want := []auth.NewKey{{Name: "Build", Scopes: scope.Of("contacts:read", "contacts:write", "org:read"), Expires: 30 * 24 * time.Hour}}
	if diff := cmp.Diff(want, w.newKeys); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if strings.Contains(b.get("/keys").body, textOf(shown[0])) {
		t.Error("the key is shown a second time")
	}
	action, form = b.get("/keys").formWith("revoke", "key_1")
	if got := b.post(action, form); got.status != http.StatusSeeOther || len(w.keys) != 0 {
		t.Errorf("status %d, %d keys are left", got.status, len(w.keys))
	}
}

func TestAKeyThatIsRefusedMarksTheField(t *testing.T) {
	for field, change := range map[string]func(url.Values){
		"name": func(f url.Values) { f.Set("name", "") }, "scope": func(f url.Values) { f.Del("scope") },
		"expires": func(f url.Values) { f.Set("expires", "soon") },
	} {
		w := newWorld()
		b := newBrowser(t, serveWorld(t, w).URL)
		b.signIn(amira)
		form := url.Values{"name": {"Build"}, "scope": {"contacts:read"}, "expires": {"never"}}
		for k, v := range b.get("/keys").form("/keys") {
			if form[k] == nil {
				form[k] = v
			}
		}
		change(form)
		p := b.post("/keys", form)
		if diff := cmp.Diff([]string{field + "-error"}, p.marked()); diff != "" || p.status != http.StatusUnprocessableEntity || len(w.newKeys) != 0 {
			t.Errorf("%s: status %d (-want +got):\n%s", field, p.status, diff)
		}
	}
}

func TestAKeyEndsWhenItWasAskedTo(t *testing.T) {
	for in, want := range map[string]time.Duration{"never": 0, "30d": 720 * time.Hour, "30d12h": 732 * time.Hour, "12h": 12 * time.Hour, "": -1, "0d": -1, "-1d": -1, "soon": -1} {
		got, err := lifetime(in)
		if err != nil {
			got = -1
		}
		if got != want {
			t.Errorf("lifetime(%q) = %v, want %v", in, got, want)
		}
	}
}

func TestAKeyIsOfferedWhatTheRoleHas(t *testing.T) {
	b := newBrowser(t, serveWorld(t, newWorld()).URL)
	b.signIn(jonas) // a member
	got, _ := boxes(b.get("/keys"))
	_, unticked := boxes(b.get("/keys"))
	want := []string{"calls:read", "calls:write", "contacts:read", "contacts:write", "numbers:read", "usage:read", "webhooks:read", "org:read"}
	if diff := cmp.Diff(want, append(got, unticked...)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
