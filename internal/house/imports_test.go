package house

import (
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "switchboard"

// rooms says which of our packages a package may import. The longest prefix that fits a package counts. "<domain>" in
// a key is any single folder.
var rooms = map[string][]string{
	"cmd": {""},

	"auth":          {"auth", "internal"},
	"auth/accounts": {"internal"},
	"auth/oauth":    {"auth", "auth/accounts", "internal"},

	"mcp":        {"tools/kit", "internal"},
	"consent-ui": {"consent-ui", "auth", "tools/kit", "tools/<domain>", "internal"},

	"tools":          {"tools", "internal"},
	"tools/kit":      {"internal"},
	"tools/<domain>": {"tools/kit", "internal"},

	"migrations":        {},
	"internal":          {"internal"},
	"internal/scope":    {},
	"internal/fault":    {},
	"internal/caller":   {"internal/scope"},
	"internal/seal":     {},
	"internal/places":   {},
	"internal/origin":   {},
	"internal/outbound": {"internal/origin"},
	"internal/store":    {"internal/caller"},
	"internal/doctor":   {"internal/origin"},

	// Test rooms.
	"internal/store/storetest": {"internal", "migrations"},
	"internal/e2e":             {""},
	"internal/house":           {""},
	"internal/mutants":         {""},
}

// homes are the heavy libraries and the rooms that may import them.
var homes = map[string][]string{
	"github.com/ory/fosite":                  {"auth/oauth"},
	"github.com/modelcontextprotocol/go-sdk": {"mcp", "internal/e2e"},
	"github.com/a-h/templ":                   {"consent-ui"},
	"github.com/gorilla/sessions":            {"consent-ui"},
	"github.com/gorilla/securecookie":        {"consent-ui"},
	"github.com/nicksnyder/go-i18n":          {"consent-ui/text"},
	"github.com/libtnb/sqlite":               {"internal/store"},
	"gorm.io/driver/postgres":                {"internal/store"},
	"github.com/jackc/pgx":                   {"internal/store"},
	"github.com/pressly/goose":               {"internal/store"},
	"gorm.io/gorm":                           {"internal/store", "internal/audit", "auth", "tools"},
	"database/sql":                           {"internal/store", "internal/audit", "auth"},
	"github.com/santhosh-tekuri/jsonschema":  {"tools"},
	"github.com/alecthomas/kong":             {"cmd"},
	"github.com/alexedwards/argon2id":        {"auth/accounts"},
	"github.com/rs/cors":                     {"internal/web"},
	"github.com/chromedp/chromedp":           {"internal/e2e", "consent-ui"},
	"golang.org/x/time":                      {"internal/web"},
	"code.dny.dev/ssrf":                      {"internal/outbound"},
	"github.com/go-jose/go-jose/v4":          {"auth/oauth"},
	"github.com/KimMachineGun/automemlimit":  {"cmd"},
}

type file struct {
	path    string // from the root of the project
	pkg     string // its folder
	test    bool
	imports []string
}

func TestEveryImportStaysInsideItsRoom(t *testing.T) {
	for _, f := range goFiles(t) {
		if f.test {
			continue // tests may build a world around their package
		}
		allowed, ok := rooms[room(f.pkg)]
		if !ok {
			t.Errorf("%s: the folder has no room; add it to rooms and to docs/architecture.md", f.path)
			continue
		}
		for _, path := range f.imports {
			ours, is := strings.CutPrefix(path, module+"/")
			if is && ours != f.pkg && !slices.ContainsFunc(allowed, func(a string) bool { return admits(a, ours) }) {
				t.Errorf("%s imports %s; its room may import %v", f.path, ours, allowed)
			}
		}
	}
}

func TestEveryHeavyLibraryHasOneHome(t *testing.T) {
	for _, f := range goFiles(t) {
		for _, path := range f.imports {
			for library, where := range homes {
				inside := slices.ContainsFunc(where, func(h string) bool { return f.pkg == h || strings.HasPrefix(f.pkg, h+"/") })
				if (path == library || strings.HasPrefix(path, library+"/")) && !inside && !f.test {
					t.Errorf("%s imports %s, whose home is %v", f.path, library, where)
				}
			}
		}
	}
}

// room is the longest key of rooms that fits a package.
func room(pkg string) string {
	best := ""
	for key := range rooms {
		if fits(key, pkg) && len(key) > len(best) && !(strings.Contains(key, "<domain>") && rooms[pkg] != nil) {
			best = key
		}
	}
	return best
}

// fits reports whether pkg is the folder of a key or below it.
func fits(key, pkg string) bool {
	k, p := strings.Split(key, "/"), strings.Split(pkg, "/")
	if len(p) < len(k) {
		return false
	}
	for i := range k {
		if k[i] != p[i] && k[i] != "<domain>" {
			return false
		}
	}
	return true
}

// admits reports whether an entry of a room's list lets a package in: a folder with all below it for internal and
// for the own tree, one folder deep otherwise.
func admits(entry, pkg string) bool {
	switch {
	case entry == "":
		return true
	case entry == "tools/kit" || entry == "tools/<domain>":
		return fits(entry, pkg) && strings.Count(pkg, "/") == 1
	}
	return pkg == entry || strings.HasPrefix(pkg, entry+"/")
}

// goFiles reads the imports of every Go file of the project.
func goFiles(t *testing.T) []file {
	t.Helper()
	var files []file
	walk(t, func(path string) {
		if !strings.HasSuffix(path, ".go") {
			return
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), filepath.Join(root, path), nil, parser.ImportsOnly)
		if err != nil {
			t.Errorf("%s: %v", path, err)
			return
		}
		f := file{path: path, pkg: filepath.ToSlash(filepath.Dir(path)), test: forTests(path)}
		for _, i := range parsed.Imports {
			p, _ := strconv.Unquote(i.Path.Value)
			f.imports = append(f.imports, p)
		}
		files = append(files, f)
	})
	if len(files) < 50 {
		t.Fatalf("found only %d Go files", len(files))
	}
	return files
}

// root is the project from here.
const root = "../.."

// walk visits the files of the project, by their path from its root.
func walk(t *testing.T, visit func(path string)) {
	t.Helper()
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, _ := filepath.Rel(root, path)
		if d.IsDir() {
			if slices.Contains([]string{".git", "data", "bin", ".cache", "node_modules", "screenshots"}, d.Name()) {
				return fs.SkipDir
			}
			return nil
		}
		visit(filepath.ToSlash(name))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(root, path))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
