package consentui

import (
	"crypto/rand"
	"encoding/base64"
	"net/http"
	"regexp"

	"switchboard/consent-ui/text"
)

// The cookies, without the prefix that they get on https.
const (
	browserCookie  = "sb_browser"
	sessionCookie  = "sb_session"
	languageCookie = "sb_lang"
)

const year = 365 * 24 * 60 * 60

// cookies names and shapes them. On https they carry the prefix __Host-, which makes browsers refuse one that a
// neighbouring subdomain planted (RFC 6265bis §4.1.3.2). It needs Secure, which plain http cannot keep.
type cookies struct{ secure bool }

func (c cookies) name(base string) string {
	if c.secure {
		return "__Host-" + base
	}
	return base
}

func (c cookies) set(w http.ResponseWriter, base, value string, maxAge int) {
	http.SetCookie(w, &http.Cookie{
		Name: c.name(base), Value: value, Path: "/", MaxAge: maxAge,
		// Lax: an app opens the authorize page from elsewhere, and the person should be found signed in there.
		Secure: c.secure, HttpOnly: true, SameSite: http.SameSiteLaxMode,
	})
}

func (c cookies) get(r *http.Request, base string) string {
	found, err := r.Cookie(c.name(base))
	if err != nil {
		return ""
	}
	return found.Value
}

var browserRule = regexp.MustCompile(`^[A-Za-z0-9_-]{22,64}$`)

// browser is a random name for this browser, made at its first page. It proves nobody's identity: it ties forms
// and consent requests to the cookie jar that they were made in, signed in or not.
func (c cookies) browser(w http.ResponseWriter, r *http.Request) string {
	if id := c.get(r, browserCookie); browserRule.MatchString(id) {
		return id
	}
	b := make([]byte, 24)
	rand.Read(b) //nolint:errcheck // never fails, see crypto/rand
	id := base64.RawURLEncoding.EncodeToString(b)
	c.set(w, browserCookie, id, year)
	return id
}

// language is the one chosen by the link at the foot of a page, else earlier, else by the browser.
func (c cookies) language(w http.ResponseWriter, r *http.Request) string {
	if chosen := r.URL.Query().Get("lang"); text.Speaks(chosen) {
		c.set(w, languageCookie, chosen, year)
		return chosen
	}
	if kept := c.get(r, languageCookie); text.Speaks(kept) {
		return kept
	}
	return text.Match(r.Header.Get("Accept-Language"))
}
