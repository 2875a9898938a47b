//go:build prove

package mutants

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// Every planted bug builds, and the test that is named beside it, which passes without the bug, fails with it. A panic or
// a package that does not build is no catch.
func TestEveryPlantedBugIsCaught(t *testing.T) {
	all := bugs()
	tests := map[string][]string{}
	for _, b := range all {
		if !slices.Contains(tests[b.in], b.caught) {
			tests[b.in] = append(tests[b.in], b.caught)
		}
	}
	sound := map[string]bool{}
	for _, b := range all {
		t.Run(b.name, func(t *testing.T) {
			if !sound[b.in] {
				failed, out := run(t, b.in, build(t, b.in, nil), tests[b.in])
				if passed := strings.Count(out, "\n--- PASS"); len(failed) > 0 || passed != len(tests[b.in]) {
					t.Fatalf("%s without a bug: %d of %d tests pass\n%s", b.in, passed, len(tests[b.in]), out)
				}
				sound[b.in] = true
			}
			failed, out := run(t, b.in, build(t, b.in, plant(t, b.edits)), []string{b.caught})
			switch {
			case strings.Contains(out, "panic: "):
				t.Errorf("a panic is no catch:\n%s", out)
			case !slices.Contains(failed, b.caught):
				t.Errorf("not caught by %s.%s:\n%s", b.in, b.caught, out)
			default:
				fmt.Printf("caught  %-62s  %s.%s\n", b.name, b.in, b.caught)
			}
		})
	}
}

// build makes the test program of a package and returns its path.
func build(t *testing.T, pkg string, overlay map[string]string) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), "tests")
	args := []string{"test", "-c", "-o", program}
	if overlay != nil {
		at := filepath.Join(t.TempDir(), "overlay.json")
		b, err := json.Marshal(map[string]any{"Replace": overlay})
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(at, b, 0o600); err != nil {
			t.Fatal(err)
		}
		args = append(args, "-overlay", at)
	}
	cmd := exec.CommandContext(t.Context(), "go", append(args, "./"+pkg)...)
	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("it does not build, which is no catch: %v\n%s", err, out)
	}
	return program
}

var failure = regexp.MustCompile(`(?m)^--- FAIL: (\w+)`)

// run runs tests of a package with its program and returns which failed, and what was printed.
func run(t *testing.T, pkg, program string, tests []string) (failed []string, out string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), program, "-test.v", "-test.timeout=3m", "-test.run=^("+strings.Join(tests, "|")+")$")
	cmd.Dir = filepath.Join(root, pkg)
	var b bytes.Buffer
	cmd.Stdout, cmd.Stderr = &b, &b
	err := cmd.Run()
	for _, m := range failure.FindAllStringSubmatch(b.String(), -1) {
		failed = append(failed, m[1])
	}
	if (err != nil) != (len(failed) > 0) {
		t.Fatalf("%s ended with %v and the failures %v:\n%s", pkg, err, failed, &b)
	}
	return failed, b.String()
}
