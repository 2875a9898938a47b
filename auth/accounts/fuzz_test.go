package accounts

import (
	"net/mail"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

// An address that somebody may have is text that every database and every mail program takes for one address, and is
// found again however it was typed.
func FuzzAddresses(f *testing.F) {
	for _, seed := range []string{"", "a@b.example", " A@B.Example ", "a", "a@", "@b", "a@b@c", "Canary <a@b.example>", "a@b.example\r\nBcc: c@d.example", "a\x00@b.example", "\"a\x00\"@b.example", "\"a b\"@c.example", "a@[127.0.0.1]", "\xff@b.example", "ä@b.example", "a@xn--nxasmq6b", strings.Repeat("a", 400) + "@b.example", "İ@b.example"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, typed string) {
		email := normalizeEmail(typed)
		if normalizeEmail(email) != email {
			t.Errorf("%q becomes %q and then %q", typed, email, normalizeEmail(email))
		}
		if checkEmail(email) != nil {
			return
		}
		parsed, err := mail.ParseAddress(email)
		if err != nil || parsed.Name != "" || parsed.Address != email || len(email) > maxEmail || !utf8.ValidString(email) || strings.ContainsFunc(email, func(c rune) bool { return !unicode.IsGraphic(c) }) {
			t.Errorf("%q may be an address", email)
		}
	})
}

// A name of a person or an organization is one line of text, or refused.
func FuzzNames(f *testing.F) {
	for _, seed := range []string{"", " a ", "a\nb", "\x00", "\xff", "\u202e", strings.Repeat("é", 121), "\u2028"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, typed string) {
		name := OneLine(typed)
		if OneLine(name) != name {
			t.Errorf("%q becomes %q and then %q", typed, name, OneLine(name))
		}
		if checkText("name", name, 120) == nil && (name == "" || utf8.RuneCountInString(name) > 120 || !utf8.ValidString(name) || strings.ContainsFunc(name, unicode.IsControl)) {
			t.Errorf("%q may be a name", name)
		}
	})
}
