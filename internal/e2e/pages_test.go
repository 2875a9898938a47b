//go:build e2e

package e2e

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
)

// evaluate runs a line of script in the page.
func evaluate(expression string) chromedp.Action[chromedp.Void] {
	run := chromedp.Evaluate[any](expression + "; 0")
	return func(ctx context.Context, target *chromedp.Target) (chromedp.Void, error) {
		_, err := run(ctx, target)
		return chromedp.Void{}, err
	}
}

func TestPagesInEnglishAndArabic(t *testing.T) {
	onBothFor(t, func(t *testing.T, s *server, v *vendor) {
		const salma, clinic = "salma@clinic.example", "عيادة الميناء"
		s.user(t, salma, clinic, "owner", "--name", "سلمى حداد", "--country", "AE", "--timezone", "Asia/Dubai", "--language", "ar")
		s.user(t, owner, orgName, "owner", "--name", "Amira Nasser")
		s.user(t, owner, "Harbor Street Dental", "viewer")
		s.key(t, orgName, "org:read contacts:read", "--expires", "90d")
		client := s.register(t, "Harbor Assistant", redirect)

		b := newBrowser(t)
		b.open(s.url + "/sign-in?lang=ar")
		b.wait(`html[dir="rtl"] [name="email"]`)
		b.shoot("sign-in-arabic")
		b.open(s.attempt(client, "").url)
		b.shoot("sign-in-arabic-for-an-app")
		b.signIn(salma)
		b.wait(`html[dir="rtl"] [name="decision"]`)
		b.shoot("consent-arabic")
		newScript(t, s, salma).connect(client, "org:read")
		b.open(s.attempt(client, "org:read contacts:write").url)
		b.wait(`html[dir="rtl"] details [name="scope"]`)
		b.shoot("step-up-arabic")
		b.open(s.url + "/connections")
		b.wait(`html[dir="rtl"]`)
		b.shoot("connections-arabic")
		b.open(s.url + "/connect?app=codex")
		b.shoot("connect-arabic")
		b.open(s.url + "/clients")
		b.shoot("clients-arabic")
		b.open(s.url + "/audit")
		b.shoot("audit-arabic")
		if strings.Contains(b.text(), "Sign in") {
			t.Error("there is English on the Arabic pages")
		}

		b = newBrowser(t)
		b.open(s.url + "/sign-in")
		b.shoot("sign-in")
		b.fill("email", owner)
		b.fill("password", "not the password")
		b.click(`form button:not([name])`)
		b.wait(`[aria-invalid="true"], [role="alert"], .err, .note.bad`)
		b.shoot("sign-in-mistake")
		b.open(s.attempt(client, "").url)
		b.signIn(owner)
		b.wait(`[name="decision"]`)
		b.shoot("consent-two-organizations")
		newScript(t, s, owner).connect(client, "org:read")
		b.open(s.attempt(client, "org:read contacts:write").url)
		b.wait(`[name="decision"]`)
		b.shoot("step-up")
		b.open(s.url + "/connect")
		b.shoot("connect")
		b.open(s.url + "/connect?app=vscode")
		b.shoot("connect-vscode")
		b.open(s.url + "/keys")
		b.shoot("keys")
		b.fill("name", "Nightly tests")
		b.do("ticking a scope", evaluate(`document.querySelector('[name="scope"]').checked = true`))
		b.click(`[name="create"]`)
		b.wait("#key")
		b.shoot("key-shown-once")
		if key := b.eval(`document.querySelector("#key").textContent.trim()`); !strings.HasPrefix(key, "sb_live_") {
			t.Errorf("#key holds %q", key)
		}
		b.open(s.url + "/clients")
		b.fill("name", "Booking")
		b.do("typing redirects", evaluate(`document.querySelector("#redirects").value = "https://booking.example/signed-in\nhttp://localhost:3000/signed-in"`))
		b.click(`[name="create"]`)
		b.wait("#client-secret")
		b.shoot("client-secret-shown-once")
		b.open(s.url + "/clients?rotate=" + b.eval(`document.querySelector("#client-id").textContent.trim()`))
		b.shoot("client-rotate")
		b.open(s.url + "/clients?block=" + client)
		b.shoot("client-block")
		b.click(`button[name="block"]`)
		b.wait(".toast")
		b.shoot("clients")
		b.open(s.attempt(client, "org:read").url)
		b.wait(`[name="org"]`)
		b.shoot("consent-blocked-in-one-organization")
		b.open(s.url + "/nothing-here")
		b.shoot("not-found")
		b.open(s.url + "/oauth/authorize?client_id=unknown")
		b.shoot("unknown-app")
		b.open(s.attempt(v.URL+"/nothing.json", "").url)
		b.shoot("bad-document")
		b.open(s.attemptAt(v.publish("/client.json", "Claude Code", "http://localhost/callback"), "http://localhost:5000/callback", "").url)
		b.wait(`[name="decision"]`)
		b.shoot("consent-document")
		if broken := b.broken(); len(broken) > 0 {
			t.Errorf("pages broke their own policy: %v", broken)
		}
	})
}

func TestTheLastRedirectGetsThroughThePolicyOfTheConsentPage(t *testing.T) {
	onBoth(t, func(t *testing.T, s *server) {
		s.user(t, owner, orgName, "owner")
		arrived := make(chan *url.URL, 4)
		back := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if strings.HasPrefix(r.URL.Path, "/callback") {
				arrived <- r.URL
			}
			if r.URL.Path == "/callback/onward" { // a page that hands over to an app, as some vendors' do
				http.Redirect(w, r, "cursor://anysphere.cursor-mcp/oauth/callback?"+r.URL.RawQuery, http.StatusFound)
			}
		}))
		t.Cleanup(back.Close)
		for name, to := range map[string]string{
			"a port of this machine": back.URL + "/callback", "a page that goes on to an app": back.URL + "/callback/onward", "an app": "cursor://anysphere.cursor-mcp/oauth/callback",
		} {
			b := newBrowser(t)
			client := s.register(t, "Redirected to "+name, to)
			b.open(strings.Replace(s.attempt(client, "org:read").url, url.QueryEscape(redirect), url.QueryEscape(to), 1))
			b.signIn(owner)
			b.click(`[name="decision"][value="approve"]`)
			if to != back.URL+"/callback" && !b.wasSentTo("cursor://anysphere.cursor-mcp/oauth/callback?code=") {
				t.Errorf("%s: the browser did not try to open it", name)
			}
			if strings.HasPrefix(to, "http") {
				select {
				case u := <-arrived:
					if u.Query().Get("code") == "" {
						t.Errorf("%s: no code in %s", name, u)
					}
				case <-time.After(10 * time.Second):
					t.Errorf("%s: nothing arrived; the browser is at %s: %.500s", name, b.eval("location.href"), b.text())
				}
			}
			if broken := b.broken(); len(broken) > 0 {
				t.Errorf("%s: the policy stood in the way: %v", name, broken)
			}
		}
	})
}

// wasSentTo waits until the browser tries to open an address that starts like this.
func (b *browser) wasSentTo(prefix string) bool {
	for range 100 {
		b.mu.Lock()
		sent := slices.ContainsFunc(b.visited, func(u string) bool { return strings.HasPrefix(u, prefix) })
		b.mu.Unlock()
		if sent {
			return true
		}
		time.Sleep(50 * time.Millisecond)
	}
	return false
}
