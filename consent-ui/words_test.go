package consentui

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode"

	"github.com/a-h/templ/parser/v2"
	"github.com/a-h/templ/parser/v2/visitor"

	"switchboard/consent-ui/text"
	"switchboard/internal/scope"
	"switchboard/tools"
)

// spoken are the attributes that a person reads or hears.
var spoken = map[string]bool{"title": true, "alt": true, "placeholder": true, "aria-label": true, "aria-description": true}

func TestNoTemplateHasWordsOfItsOwn(t *testing.T) {
	files, err := filepath.Glob("*.templ")
	if err != nil || len(files) < 8 {
		t.Fatalf("found %d templates: %v", len(files), err)
	}
	for _, file := range files {
		parsed, err := parser.Parse(file)
		if err != nil {
			t.Fatal(err)
		}
		v := visitor.New()
		v.Text = func(n *parser.Text) error {
			if strings.ContainsFunc(n.Value, unicode.IsLetter) {
				t.Errorf("%s says %q without the catalogue", file, n.Value)
			}
			return nil
		}
		v.ConstantAttribute = func(n *parser.ConstantAttribute) error {
			if key := n.Key.String(); spoken[key] && strings.ContainsFunc(n.Value, unicode.IsLetter) {
				t.Errorf("%s says %s=%q without the catalogue", file, key, n.Value)
			}
			return nil
		}
		if err := parsed.Visit(v); err != nil {
			t.Fatal(err)
		}
	}
}

// keyRule finds the keys that the source names whole, as in T("page.skip").
var keyRule = regexp.MustCompile(`"([a-z_]+(?:\.[a-z_]+)+)"`)

func TestEveryKeyThatIsSaidExists(t *testing.T) {
	words, err := text.Load()
	if err != nil {
		t.Fatal(err)
	}
	en := words.In("en", nil)
	sources := []string{}
	for _, pattern := range []string{"*.templ", "*.go", "text/*.go"} {
		found, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		sources = append(sources, found...)
	}
	named := 0
	for _, file := range sources {
		if strings.HasSuffix(file, "_templ.go") || strings.HasSuffix(file, "_test.go") {
			continue
		}
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range keyRule.FindAllStringSubmatch(string(b), -1) {
			key := m[1]
			if strings.HasPrefix(key, "app.") || strings.HasPrefix(key, "mark.") {
				continue // assets
			}
			if named++; !en.Has(key) {
				t.Errorf("%s says %q, which is not in the catalogue", file, key)
			}
		}
	}
	if named < 150 {
		t.Errorf("found only %d keys", named)
	}
}

func TestEveryGroupWithAToolHasItsWords(t *testing.T) {
	words, err := text.Load()
	if err != nil {
		t.Fatal(err)
	}
	en := words.In("en", nil)
	for _, g := range scope.NewCatalog(tools.Groups(), tools.Umbrellas(), tools.All(tools.Deps{}).Needed()).Groups() {
		slug := strings.ReplaceAll(g.Name, " ", "-")
		need := []string{"name", "look"}
		if len(g.Scopes.ReadOnly()) < len(g.Scopes) {
			need = append(need, "about", "change")
		}
		for _, n := range need {
			if !en.Has("group." + slug + "." + n) {
				t.Errorf("the group %q has no group.%s.%s", g.Name, slug, n)
			}
		}
	}
}
