package house

import (
	"bytes"
	"go/ast"
	"go/printer"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// security is the page whose tables say what is promised, by whom it is asked for, and which test keeps it.
const security = "docs/security.md"

// standards are the rows of what the page answers to: RFC 9700 (sections 2 and 4), chapter 10 of OWASP ASVS 5.0, and the
// headings of MCP's Security Best Practices of 2026-07-28. Each row has a promise or a reason why there is none.
var standards = map[string][]string{
	"RFC 9700 §": strings.Fields(`2.1 2.1.1 2.1.2 2.2.1 2.2.2 2.3 2.4 2.5 2.6
		4.1 4.2 4.3 4.4 4.5 4.6 4.7 4.8 4.9 4.10 4.11 4.12 4.13 4.14 4.15 4.16 4.17`),
	"ASVS ": strings.Fields(`10.1.1 10.1.2 10.2.1 10.2.2 10.2.3 10.3.1 10.3.2 10.3.3 10.3.4 10.3.5
		10.4.1 10.4.2 10.4.3 10.4.4 10.4.5 10.4.6 10.4.7 10.4.8 10.4.9 10.4.10 10.4.11 10.4.12 10.4.13 10.4.14 10.4.15 10.4.16
		10.5.1 10.5.2 10.5.3 10.5.4 10.5.5 10.6.1 10.6.2 10.7.1 10.7.2 10.7.3`),
	"MCP ": {
		"confused deputy problem", "token passthrough", "server-side request forgery", "state handle hijacking", "local MCP server compromise",
		"OAuth authorization URL validation", "stdio transport security in proxy scenarios", "mix-up attacks",
		"localhost redirect URI impersonation", "CIMD trust policies", "scope minimization",
	},
}

// attacks are the words of the ones that the product was asked to stand up to by name. Each is in the text of a promise.
var attacks = []string{
	"mix-up", "injected", "downgrade", "userinfo", "dot segments", "unicode", "duplicate parameters", "impersonat", "consent bypass", "confused deputy",
	"cross-site request", "login CSRF", "framed", "open redirect", "another audience", "passed on", "introspect", "flood", "two parsers",
	"header against body", "cache", "lowered role", "another organization", "unknown address", "enumerat",
}

// promise is a row of the page.
type promise struct {
	text, sources string
	tests         []string
}

func TestEveryPromiseNamesATestThatExists(t *testing.T) {
	all := testSources(t)
	for _, p := range promises(t) {
		if len(p.tests) == 0 {
			t.Errorf("%q names no test", p.text)
		}
		for _, name := range p.tests {
			m := regexp.MustCompile(`^([\w/.-]+)\.((?:Test|Fuzz)\w+)(?:/(.+))?$`).FindStringSubmatch(name)
			if m == nil {
				t.Errorf("%q: %q is not written as folder.TestName or folder.TestName/subtest", p.text, name)
				continue
			}
			source, ok := all[m[1]+"."+m[2]]
			if !ok {
				t.Errorf("%q: there is no test %s in %s", p.text, m[2], m[1])
			}
			if sub := m[3]; ok && sub != "" && !strings.Contains(source, `"`+sub+`"`) {
				if _, err := os.Stat(filepath.Join(root, m[1], "testdata", sub+".txtar")); err != nil {
					t.Errorf("%q: %s has no subtest %q", p.text, m[2], sub)
				}
			}
		}
	}
}

// A row without a test is a hole, and one that is promised and waived at once is a contradiction.
func TestEveryRowOfTheStandardsHasAPromiseOrAReason(t *testing.T) {
	promised, waived := map[string]bool{}, map[string]bool{}
	for _, p := range promises(t) {
		for _, source := range strings.Split(p.sources, "; ") {
			if source != "ours" && !known(source) {
				t.Errorf("%q: %q is no row of RFC 9700, ASVS chapter 10 or MCP's page, nor \"ours\"", p.text, source)
			}
			promised[source] = true
		}
	}
	for _, row := range tables(t, "## What does not apply") {
		if len(row) != 2 || row[1] == "" {
			t.Errorf("%q has no reason", row)
			continue
		}
		for _, source := range strings.Split(row[0], "; ") {
			if !known(source) {
				t.Errorf("%q does not apply and does not exist either", source)
			}
			waived[source] = true
		}
	}
	for standard, rows := range standards {
		for _, row := range rows {
			if source := standard + row; promised[source] == waived[source] {
				t.Errorf("%s: promised %t, waived %t", source, promised[source], waived[source])
			}
		}
	}
}

func TestEveryAttackThatWasNamedIsInAPromise(t *testing.T) {
	all := promises(t)
	for _, attack := range attacks {
		if !slices.ContainsFunc(all, func(p promise) bool { return strings.Contains(p.text, attack) }) {
			t.Errorf("no promise speaks of %q", attack)
		}
	}
}

func known(source string) bool {
	for standard, rows := range standards {
		if row, ok := strings.CutPrefix(source, standard); ok && slices.Contains(rows, row) {
			return true
		}
	}
	return false
}

func promises(t *testing.T) []promise {
	t.Helper()
	var all []promise
	quoted := regexp.MustCompile("`([^`]+)`")
	for _, row := range tables(t, "## Promises and the tests that keep them") {
		if len(row) != 3 {
			t.Errorf("%s: a row has %d cells, want promise, source and test: %q", security, len(row), row)
			continue
		}
		p := promise{text: row[0], sources: row[1]}
		for _, m := range quoted.FindAllStringSubmatch(row[2], -1) {
			p.tests = append(p.tests, m[1])
		}
		all = append(all, p)
	}
	if len(all) < 50 {
		t.Fatalf("found only %d promises", len(all))
	}
	return all
}

// tables are the rows of the tables below a heading, up to the next heading of its rank.
func tables(t *testing.T, heading string) [][]string {
	t.Helper()
	_, below, ok := strings.Cut(read(t, security), heading+"\n")
	if !ok {
		t.Fatalf("%s has no heading %q", security, heading)
	}
	below, _, _ = strings.Cut(below, "\n## ")
	var rows [][]string
	lines := strings.Split(below, "\n")
	for i, line := range lines {
		head := i+1 < len(lines) && strings.HasPrefix(lines[i+1], "|--")
		if !strings.HasPrefix(line, "|") || strings.HasPrefix(line, "|--") || head {
			continue
		}
		cells := strings.Split(strings.Trim(line, "| "), "|")
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		rows = append(rows, cells)
	}
	return rows
}

// testSources are the tests of the project by folder and name, each with its source and with that of the functions and
// variables of its file that it names: a table beside it counts as its own.
func testSources(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{}
	each(t, func(path string, set *token.FileSet, f *ast.File) {
		if !strings.HasSuffix(path, "_test.go") {
			return
		}
		beside := map[string]ast.Node{}
		for _, d := range f.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				beside[d.Name.Name] = d
			case *ast.GenDecl:
				for _, s := range d.Specs {
					if v, ok := s.(*ast.ValueSpec); ok && len(v.Names) > 0 {
						beside[v.Names[0].Name] = v
					}
				}
			}
		}
		for name, d := range beside {
			fn, ok := d.(*ast.FuncDecl)
			if !ok || fn.Recv != nil || !strings.HasPrefix(name, "Test") && !strings.HasPrefix(name, "Fuzz") {
				continue
			}
			var b bytes.Buffer
			for _, n := range append(named(fn, beside), fn) {
				if err := printer.Fprint(&b, set, n); err != nil {
					t.Errorf("%s: %v", path, err)
				}
			}
			all[filepath.ToSlash(filepath.Dir(path))+"."+name] = b.String()
		}
	})
	return all
}

// named are the declarations that a function names.
func named(fn ast.Node, beside map[string]ast.Node) []ast.Node {
	var found []ast.Node
	ast.Inspect(fn, func(n ast.Node) bool {
		if id, ok := n.(*ast.Ident); ok && beside[id.Name] != nil && beside[id.Name] != fn && !slices.Contains(found, beside[id.Name]) {
			found = append(found, beside[id.Name])
		}
		return true
	})
	return found
}
