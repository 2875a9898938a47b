package text

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// messages reads a catalogue: the forms of each key, "other" alone for a message without a number.
func messages(t *testing.T, lang string) map[string]map[string]string {
	t.Helper()
	b, err := files.ReadFile(lang + ".json")
	if err != nil {
		t.Fatal(err)
	}
	raw := map[string]json.RawMessage{}
	if err := json.Unmarshal(b, &raw); err != nil {
		t.Fatal(err)
	}
	out := map[string]map[string]string{}
	for key, v := range raw {
		forms := map[string]string{}
		if v[0] == '"' {
			var s string
			err = json.Unmarshal(v, &s)
			forms["other"] = s
		} else {
			err = json.Unmarshal(v, &forms)
		}
		if err != nil {
			t.Fatalf("%s: %s: %v", lang, key, err)
		}
		out[key] = forms
	}
	return out
}

func keysOf[V any](m map[string]V) []string {
	keys := []string{}
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

var slotRule = regexp.MustCompile(`\{\{\.\w+\}\}`)

func TestBothLanguagesSayEverything(t *testing.T) {
	en, ar := messages(t, "en"), messages(t, "ar")
	if diff := cmp.Diff(keysOf(en), keysOf(ar)); diff != "" {
		t.Errorf("keys (-English +Arabic):\n%s", diff)
	}
	for key, forms := range en {
		want := slotRule.FindAllString(forms["other"], -1)
		slices.Sort(want)
		got := slotRule.FindAllString(ar[key]["other"], -1)
		slices.Sort(got)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: placeholders (-English +Arabic):\n%s", key, diff)
		}
		if plural := len(forms) > 1; plural != (len(ar[key]) > 1) {
			t.Errorf("%s has a number in one language only", key)
		}
	}
}

func TestANumberHasTheFormsOfItsLanguage(t *testing.T) {
	forms := map[string][]string{"en": {"one", "other"}, "ar": {"few", "many", "one", "other", "two", "zero"}}
	for lang, want := range forms {
		for key, have := range messages(t, lang) {
			if len(have) == 1 {
				continue
			}
			if diff := cmp.Diff(want, keysOf(have)); diff != "" {
				t.Errorf("%s: %s (-want +got):\n%s", lang, key, diff)
			}
		}
	}
}

func TestWordsFollowTheStyle(t *testing.T) {
	for _, lang := range Languages() {
		for key, forms := range messages(t, lang) {
			for _, s := range forms {
				if s == "" || strings.TrimSpace(s) != s && key != "list.comma" || strings.ContainsAny(s, "—–!<>٠١٢٣٤٥٦٧٨٩") || strings.Contains(strings.ToLower(s), "please") {
					t.Errorf("%s: %s says %q", lang, key, s)
				}
			}
		}
	}
}

func TestPluralsFollowTheNumber(t *testing.T) {
	c := load(t)
	for n, want := range map[int]string{0: "لا أدوات", 1: "أداة واحدة", 2: "أداتان", 3: "3 أدوات", 11: "11 أداة", 100: "100 أداة"} {
		if got := c.In("ar", nil).N("consent.tools", n); got != want {
			t.Errorf("%d: %q, want %q", n, got, want)
		}
	}
	for n, want := range map[int]string{0: "0 tools", 1: "1 tool", 2: "2 tools"} {
		if got := c.In("en", nil).N("consent.tools", n); got != want {
			t.Errorf("%d: %q, want %q", n, got, want)
		}
	}
}

func TestPiecesPutMarkupWhereTheLanguageWantsIt(t *testing.T) {
	got := load(t).In("en", nil).Pieces("consent.stepup.stays", -1, []string{"Org"})
	want := []Piece{{Text: "The rest of its connection to "}, {Slot: "Org"}, {Text: " stays as it is, whatever you answer."}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestDatesAreToldAsPeopleDo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // starts at midnight UTC of 1 January 2000, a Saturday
		zone, err := time.LoadLocation("Asia/Amman")
		if err != nil {
			t.Fatal(err)
		}
		now := time.Now()
		c := load(t)
		for _, tt := range []struct {
			at          time.Time
			en, ar, day string
		}{
			{now.Add(-time.Hour), "01:00", "01:00", "Today"}, // 2:00 in Amman, an hour earlier
			{now.Add(-3 * time.Hour), "Friday 23:00", "الجمعة 23:00", "Friday"},
			{now.AddDate(0, 0, -6), "Sunday 02:00", "الأحد 02:00", "Sunday"},
			{now.AddDate(0, 0, -7), "25 December 1999, 02:00", "25 ديسمبر 1999، 02:00", "25 December 1999"},
			{now.AddDate(0, 0, 1), "2 January 2000, 02:00", "2 يناير 2000، 02:00", "2 January 2000"},
		} {
			if got := c.In("en", zone).When(tt.at); got != tt.en {
				t.Errorf("%v: %q, want %q", tt.at, got, tt.en)
			}
			if got := c.In("ar", zone).When(tt.at); got != tt.ar {
				t.Errorf("%v: %q, want %q", tt.at, got, tt.ar)
			}
			if got := c.In("en", zone).ShortDay(tt.at); got != tt.day {
				t.Errorf("%v: day %q, want %q", tt.at, got, tt.day)
			}
		}
	})
}

func TestListsReadLikeSentences(t *testing.T) {
	c := load(t)
	if got := c.In("en", nil).List([]string{"a", "b", "c"}); got != "a, b and c" {
		t.Errorf("got %q", got)
	}
	if got := c.In("ar", nil).List([]string{"أ", "ب"}); got != "أ وب" {
		t.Errorf("got %q", got)
	}
}

func load(t *testing.T) *Catalogue {
	t.Helper()
	c, err := Load()
	if err != nil {
		t.Fatal(err)
	}
	return c
}
