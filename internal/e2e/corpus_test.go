package e2e

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"switchboard/internal/golden"
	"switchboard/internal/trial"
)

const measurements = "../../docs/measurements.md"

func TestThePageSaysHowMuchBadInputThereIs(t *testing.T) {
	var table strings.Builder
	table.WriteString("| endpoint | requests | what is tried |\n|---|---|---|\n")
	total := 0
	for _, endpoint := range trial.Endpoints(t) {
		n := len(trial.Corpus(t, endpoint))
		b, err := os.ReadFile(trial.CorpusFile(t, endpoint))
		if err != nil {
			t.Fatal(err)
		}
		about, _, _ := strings.Cut(string(b), "\n\n")
		total += n
		fmt.Fprintf(&table, "| %s | %d | %s |\n", endpoint, n, strings.ReplaceAll(about, "\n", " "))
	}
	fmt.Fprintf(&table, "| all | %d | |\n", total)
	if total < 300 {
		t.Errorf("there are %d requests", total)
	}
	golden.Section(t, measurements, "bad input", table.String())
}

// Packages that read what others send; one without a target has a parser that nobody fuzzes.
var foreign = []string{
	"auth", "auth/accounts", "auth/oauth", "consent-ui", "consent-ui/text", "internal/audit", "internal/origin", "internal/scope", "internal/seal", "internal/web",
	"mcp", "tools", "tools/kit",
}

func TestThePageListsEveryFuzzTarget(t *testing.T) {
	found := map[string][]string{}
	err := filepath.WalkDir(trial.Root(t), func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() && (d.Name() == "node_modules" || d.Name() == "testdata" || strings.HasPrefix(d.Name(), ".")) {
			return fs.SkipDir
		}
		if d.IsDir() || !strings.HasSuffix(path, "_test.go") {
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments)
		if err != nil {
			return err
		}
		folder, err := filepath.Rel(trial.Root(t), filepath.Dir(path))
		for _, decl := range file.Decls {
			if f, ok := decl.(*ast.FuncDecl); ok && strings.HasPrefix(f.Name.Name, "Fuzz") && f.Recv == nil {
				about := strings.Join(strings.Fields(f.Doc.Text()), " ")
				if about == "" {
					t.Errorf("%s does not say what holds", f.Name.Name)
				}
				found[folder] = append(found[folder], fmt.Sprintf("| %s | %s | %s |\n", folder, f.Name.Name, strings.TrimPrefix(about, f.Name.Name+" ")))
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	lines := []string{}
	for _, folder := range foreign {
		if len(found[folder]) == 0 {
			t.Errorf("%s has no fuzz target", folder)
		}
	}
	for _, list := range found {
		lines = append(lines, list...)
	}
	slices.Sort(lines)
	golden.Section(t, measurements, "fuzzing", "| package | target | what holds |\n|---|---|---|\n"+strings.Join(lines, ""))
}
