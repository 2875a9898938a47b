// Package text holds every word that the web face says, in English and Arabic. Keys name the meaning, not the
// place or the wording. Plurals follow CLDR, numbers keep Latin digits in both languages so that they match the
// phone and the invoice, and dates are told in the organization's zone.
package text

import (
	"embed"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/nicksnyder/go-i18n/v2/i18n"
	"golang.org/x/text/language"
)

//go:embed en.json ar.json
var files embed.FS

// Languages lists what the product speaks, the default first.
func Languages() []string { return []string{"en", "ar"} }

// Speaks reports whether lang is one of Languages.
func Speaks(lang string) bool { return lang == "en" || lang == "ar" }

// Catalogue is the messages of all languages.
type Catalogue struct{ bundle *i18n.Bundle }

// Load reads the embedded messages.
func Load() (*Catalogue, error) {
	bundle := i18n.NewBundle(language.English)
	bundle.RegisterUnmarshalFunc("json", json.Unmarshal)
	for _, lang := range Languages() {
		if _, err := bundle.LoadMessageFileFS(files, lang+".json"); err != nil {
			return nil, fmt.Errorf("loading the messages of %q: %w", lang, err)
		}
	}
	return &Catalogue{bundle}, nil
}

// Match picks the language that an Accept-Language header (RFC 9110 §12.5.4) likes best.
func Match(accept string) string {
	want, _, err := language.ParseAcceptLanguage(accept)
	if err != nil || len(want) == 0 {
		return "en"
	}
	have := []language.Tag{language.English, language.Arabic}
	_, i, confidence := language.NewMatcher(have).Match(want...)
	if confidence == language.No {
		return "en"
	}
	return Languages()[i]
}

// In is the catalogue in one language and time zone. A nil zone is UTC.
func (c *Catalogue) In(lang string, zone *time.Location) *Printer {
	if !Speaks(lang) {
		lang = "en"
	}
	if zone == nil {
		zone = time.UTC
	}
	dir := "ltr"
	if lang == "ar" {
		dir = "rtl"
	}
	return &Printer{Lang: lang, Dir: dir, Zone: zone, localizer: i18n.NewLocalizer(c.bundle, lang)}
}

// Printer says messages in one language.
type Printer struct {
	Lang, Dir string
	Zone      *time.Location
	localizer *i18n.Localizer
}

// T is the message of a key. The pairs are the names and values of its placeholders.
func (p *Printer) T(key string, pairs ...string) string {
	return p.say(&i18n.LocalizeConfig{MessageID: key, TemplateData: data(pairs)})
}

// N is the form of a message that goes with the number n, its placeholder {{.N}}.
func (p *Printer) N(key string, n int, pairs ...string) string {
	return p.say(&i18n.LocalizeConfig{MessageID: key, PluralCount: n, TemplateData: data(append(pairs, "N", fmt.Sprint(n)))})
}

// Has reports whether the catalogue has a message, in this language or in English.
func (p *Printer) Has(key string) bool {
	_, err := p.localizer.Localize(&i18n.LocalizeConfig{MessageID: key})
	return err == nil
}

// say falls back to the key: a page with one odd word is better than no page. A test keeps the catalogue complete.
func (p *Printer) say(c *i18n.LocalizeConfig) string {
	s, err := p.localizer.Localize(c)
	if err != nil {
		return c.MessageID
	}
	return s
}

func data(pairs []string) map[string]string {
	m := map[string]string{}
	for i := 0; i+1 < len(pairs); i += 2 {
		m[pairs[i]] = pairs[i+1]
	}
	return m
}

// Piece is a stretch of a message: its words, or the name of the placeholder that stands there.
type Piece struct{ Text, Slot string }

// Pieces takes a message apart at the named placeholders, for pages that put markup there. With n < 0 the message
// has no number.
func (p *Printer) Pieces(key string, n int, slots []string, pairs ...string) []Piece {
	// Neither control character occurs in a message, so they mark the places.
	const open, shut = "\x02", "\x03"
	for _, s := range slots {
		pairs = append(pairs, s, open+s+shut)
	}
	whole := ""
	if n < 0 {
		whole = p.T(key, pairs...)
	} else {
		whole = p.N(key, n, pairs...)
	}
	pieces := []Piece{}
	for whole != "" {
		before, rest, found := strings.Cut(whole, open)
		if before != "" {
			pieces = append(pieces, Piece{Text: before})
		}
		if !found {
			break
		}
		name, after, _ := strings.Cut(rest, shut)
		pieces = append(pieces, Piece{Slot: name})
		whole = after
	}
	return pieces
}

// List joins names the way a sentence does.
func (p *Printer) List(names []string) string {
	switch len(names) {
	case 0:
		return ""
	case 1:
		return names[0]
	}
	last := len(names) - 1
	return p.T("list.and", "Rest", strings.Join(names[:last], p.T("list.comma")), "Last", names[last])
}
