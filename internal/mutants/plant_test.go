package mutants

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// bug is one that a test has to catch.
type bug struct {
	name   string
	edits  []edit
	in     string // the package whose tests have to catch it, from the root of the project
	caught string // the test that does
}

// edit changes a file: before is there exactly once.
type edit struct{ file, before, after string }

const root = "../.."

// A change that moves the place of a planted bug is told so at once, and not by the long run.
func TestEveryPlantedBugHasItsPlace(t *testing.T) {
	for _, b := range bugs() {
		t.Run(b.name, func(t *testing.T) { plant(t, b.edits) })
	}
}

// plant writes the changed files elsewhere and returns the overlay that puts them in place.
func plant(t *testing.T, edits []edit) map[string]string {
	t.Helper()
	changed := map[string]string{}
	for _, e := range edits {
		at, err := filepath.Abs(filepath.Join(root, e.file))
		if err != nil {
			t.Fatal(err)
		}
		if _, ok := changed[at]; !ok {
			b, err := os.ReadFile(at)
			if err != nil {
				t.Fatal(err)
			}
			changed[at] = string(b)
		}
		if n := strings.Count(changed[at], e.before); n != 1 {
			t.Fatalf("%s has %d of %q, want one: plant the bug anew", e.file, n, e.before)
		}
		changed[at] = strings.Replace(changed[at], e.before, e.after, 1)
	}
	overlay := map[string]string{}
	for at, content := range changed {
		overlay[at] = filepath.Join(t.TempDir(), filepath.Base(at))
		if err := os.WriteFile(overlay[at], []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return overlay
}
