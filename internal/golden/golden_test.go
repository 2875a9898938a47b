package golden

import (
	"os"
	"path/filepath"
	"testing"
)

func TestASectionIsComparedAndRewrittenAndTheRestIsLeftAlone(t *testing.T) {
	path := filepath.Join(t.TempDir(), "page.md")
	const before, after = "# Page\n\n<!-- table: begin -->\n", "<!-- table: end -->\n\nMore.\n"
	if err := os.WriteFile(path, []byte(before+"old\n"+after), 0o644); err != nil {
		t.Fatal(err)
	}
	t.Setenv("UPDATE", "1")
	Section(t, path, "table", "new\n")
	if b, err := os.ReadFile(path); err != nil || string(b) != before+"\nnew\n\n"+after {
		t.Fatalf("%v: %q", err, b)
	}
	t.Setenv("UPDATE", "")
	Section(t, path, "table", "new\n")
}
