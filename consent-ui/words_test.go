package consentui

import (
	"encoding/json"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/a-h/templ/parser/v2"
	"github.com/a-h/templ/parser/v2/visitor"
	"github.com/google/go-cmp/cmp"

	"switchboard/consent-ui/text"
	"switchboard/internal/audit"
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
	want := []string{}
	for _, g := range scope.NewCatalog(tools.Groups(), tools.Umbrellas(), tools.All(tools.Deps{}).Needed()).Groups() {
		key := "group." + strings.ReplaceAll(g.Name, " ", "-")
		want = append(want, key+".name", key+".look")
		if len(g.Scopes.ReadOnly()) < len(g.Scopes) {
			want = append(want, key+".about", key+".change")
		}
	}
	slices.Sort(want)
	if diff := cmp.Diff(want, keysUnder(t, "group.")); diff != "" {
		t.Errorf("words of groups (-needed +there):\n%s", diff)
	}
}

func TestEveryActionHasItsWordsInTheLog(t *testing.T) {
	want := []string{}
	for _, action := range []string{audit.SignIn, audit.Consent, audit.RefreshReuse, audit.CodeReuse, audit.Revoke, audit.KeyCreate, audit.UserCreate, audit.PasswordSet,
		audit.ClientCreate, audit.ClientRotate, audit.ClientBlock, audit.ClientUnblock} {
		want = append(want, "audit.does."+action)
	}
	for _, tool := range tools.All(tools.Deps{}).Tools() {
		want = append(want, "audit.does."+tool.Name())
	}
	slices.Sort(want)
	if diff := cmp.Diff(want, keysUnder(t, "audit.does.")); diff != "" {
		t.Errorf("words of actions (-needed +there):\n%s", diff)
	}
}

// keysUnder are the keys of the English catalogue with a prefix, sorted. A test of text holds Arabic to the same keys.
func keysUnder(t *testing.T, prefix string) []string {
	t.Helper()
	b, err := os.ReadFile("text/en.json")
	if err != nil {
		t.Fatal(err)
	}
	messages := map[string]any{}
	if err := json.Unmarshal(b, &messages); err != nil {
		t.Fatal(err)
	}
	return slices.DeleteFunc(slices.Sorted(maps.Keys(messages)), func(k string) bool { return !strings.HasPrefix(k, prefix) })
}

// factRule finds the details of audit records in the source, and nameRule the names in them.
var (
	factRule = regexp.MustCompile(`Detail[^\n]*map\[string\]any\{([^}]*)\}`)
	nameRule = regexp.MustCompile(`"([a-z_]+)":`)
)

func TestEveryFactOfARecordHasItsNameInTheLog(t *testing.T) {
	words, err := text.Load()
	if err != nil {
		t.Fatal(err)
	}
	named := 0
	for _, root := range []string{"../auth", "../tools"} {
		err := filepath.WalkDir(root, func(file string, _ fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(file, ".go") || strings.HasSuffix(file, "_test.go") {
				return err
			}
			source, err := os.ReadFile(file)
			if err != nil {
				return err
			}
			for _, facts := range factRule.FindAllStringSubmatch(string(source), -1) {
				for _, name := range nameRule.FindAllStringSubmatch(facts[1], -1) {
					if named++; !words.In("en", nil).Has("audit.detail." + name[1]) {
						t.Errorf("%s: the log has no audit.detail.%s", file, name[1])
					}
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if named < 10 {
		t.Errorf("found only %d facts", named)
	}
}
