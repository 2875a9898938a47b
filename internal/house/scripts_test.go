package house

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Of a chain with && set -e sees the last command alone, so that a check before it would fail in silence.
func TestScriptsChainNoChecks(t *testing.T) {
	scripts, err := filepath.Glob("../../.ci/*")
	if err != nil || len(scripts) < 3 {
		t.Fatalf("%v, %v", scripts, err)
	}
	for _, path := range scripts {
		content, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for i, line := range strings.Split(string(content), "\n") {
			if line = strings.TrimSpace(line); strings.HasPrefix(line, "go ") && strings.Contains(line, "&&") {
				t.Errorf("%s:%d chains checks: %s", path, i+1, line)
			}
		}
	}
}
