package consentui

import (
	"strings"
	"unicode"

	"switchboard/consent-ui/text"
)

const (
	longestName = 48 // runes of a client's name that are shown
	mostMarks   = 2  // combining marks in a row that are shown
)

// inert makes words that a client or somebody else chose harmless to read: on one line, no control or formatting
// characters (they can turn the reading order of what is ours around), no piles of accents over other lines, no
// more than fits. The template escapes them; this is about what a person sees.
func inert(s string) string {
	var b strings.Builder
	runes, marks := 0, 0
	for _, r := range strings.Join(strings.Fields(strings.ToValidUTF8(s, "")), " ") {
		if unicode.In(r, unicode.Cc, unicode.Cf, unicode.Co, unicode.Zl, unicode.Zp) || r == '\u115f' || r == '\u1160' || r == '\u3164' || r == '\u2800' {
			continue
		}
		if unicode.In(r, unicode.Mn, unicode.Me) {
			if marks++; marks > mostMarks {
				continue
			}
		} else {
			marks = 0
		}
		if runes == longestName {
			b.WriteRune('…')
			break
		}
		b.WriteRune(r)
		runes++
	}
	return strings.TrimSpace(b.String())
}

// clientName is what a client calls itself, or words that say that it does not.
func clientName(p *text.Printer, name string) string {
	if name = inert(name); name == "" {
		return p.T("client.nameless")
	}
	return name
}

// isolated is words of unknown direction for places without markup, such as a title: FSI and PDI keep them from
// turning the words around them (Unicode UAX #9).
func isolated(s string) string { return "\u2068" + s + "\u2069" }

// monogram is the letters on a tile: we never draw the logo of somebody else.
func monogram(name string) string {
	letters := []rune{}
	for _, word := range strings.FieldsFunc(name, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }) {
		letters = append(letters, unicode.ToUpper([]rune(word)[0]))
		if len(letters) == 2 {
			break
		}
	}
	if len(letters) == 0 {
		return "?"
	}
	return string(letters)
}
