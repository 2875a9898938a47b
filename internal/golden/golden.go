// Package golden is the one mechanism for derived files: a test renders what the file should hold and compares. Run
// the tests with UPDATE=1 to write it instead. What is rendered is sorted and holds no dates and no ids.
package golden

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Check compares a file with what it should hold, and writes it under UPDATE=1.
func Check(t testing.TB, path, want string) {
	t.Helper()
	if os.Getenv("UPDATE") != "" {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v (UPDATE=1 writes it)", err)
	}
	if diff := cmp.Diff(string(b), want); diff != "" {
		t.Errorf("%s is out of date (-file +now); look at the change, then run the test with UPDATE=1:\n%s", path, diff)
	}
}

// Section is Check for a part of a file that a person writes otherwise: what stands between the lines
// "<!-- name: begin -->" and "<!-- name: end -->".
func Section(t testing.TB, path, name, want string) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	begin, end := "<!-- "+name+": begin -->\n", "<!-- "+name+": end -->\n"
	before, rest, begun := strings.Cut(string(b), begin)
	_, after, ended := strings.Cut(rest, end)
	if !begun || !ended {
		t.Fatalf("%s has no lines %q and %q", path, begin, end)
	}
	Check(t, path, before+begin+"\n"+want+"\n"+end+after)
}
