package consentui

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"net/http"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/a-h/templ"
)

// maxForm bounds what a form may send. The largest page posts a few dozen scopes.
const maxForm = 64 << 10

// seal is what a form carries to prove where it came from: whose page it was on, and a MAC over the browser, the endpoint,
// the person and the consent request. The organization is beside it: it guards a person with two tabs against themselves. Nothing is stored, so any number of tabs, reloads and forms of yesterday work, and a
// form from another cookie jar does not.
type seal struct {
	Token, As string
	In        string // the organization that the page was about: what a person sees of one is not done in another
}

// seal makes the seal of a form: purpose is the endpoint's name, subject the consent request, if it is about one.
// Forms that do not depend on who is signed in leave as empty.
func (u *UI) seal(browser, purpose, as, subject string) seal {
	return seal{Token: base64.RawURLEncoding.EncodeToString(mac(u.FormKeys[0], browser, purpose, as, subject)), As: as}
}

func mac(key []byte, parts ...string) []byte {
	h := hmac.New(sha256.New, key)
	h.Write([]byte("switchboard form v1"))
	for _, p := range parts {
		// The length in front keeps "ab","c" and "a","bc" apart.
		h.Write(binary.BigEndian.AppendUint32(nil, uint32(len(p))))
		h.Write([]byte(p))
	}
	return h.Sum(nil)
}

// checkSeal reports whether a posted form was made by us for this browser, endpoint and consent request, and for
// which person. Any of the keys may have made it: while they are rotated, replicas differ in which is the current one.
func (u *UI) checkSeal(r *http.Request, browser, purpose, subject string) (as string, ok bool) {
	as = r.PostForm.Get("as")
	sent, err := base64.RawURLEncoding.DecodeString(r.PostForm.Get("csrf"))
	return as, err == nil && slices.ContainsFunc(u.FormKeys, func(key []byte) bool {
		return hmac.Equal(sent, mac(key, browser, purpose, as, subject))
	})
}

// crossSite reports whether a browser says that a POST came from another site. Pages here are sent with
// Referrer-Policy: no-referrer, which makes browsers send "Origin: null" with our own forms too (Fetch §3.2); where
// there is no Sec-Fetch-Site beside it (plain http away from localhost) it says nothing, and the seal decides alone.
func (u *UI) crossSite(r *http.Request) bool {
	if r.Header.Get("Sec-Fetch-Site") == "" && r.Header.Get("Origin") == "null" {
		return false
	}
	return u.origins.Check(r) != nil
}

// readForm reads a form. Pages are UTF-8, and so is what browsers send from them: anything else would stand on the next page
// as bytes that are no text.
func readForm(w http.ResponseWriter, r *http.Request) error {
	r.Body = http.MaxBytesReader(w, r.Body, maxForm)
	if r.ParseForm() != nil {
		return errBadForm
	}
	for _, values := range r.PostForm {
		if !utf8.ValidString(strings.Join(values, "")) {
			return errBadForm
		}
	}
	return nil
}

// described is the attributes that tie a control to the line below it: what was wrong with it, or else its hint, if it
// has one.
func described(wrong bool, field, hint string) templ.Attributes {
	switch {
	case wrong:
		return templ.Attributes{"aria-invalid": "true", "aria-describedby": field + "-error", "autofocus": true}
	case hint != "":
		return templ.Attributes{"aria-describedby": hint}
	}
	return nil
}
