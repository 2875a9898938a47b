package house

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// landed lists the migrations that databases out there have run, with their hashes.
const landed = "migrations/landed.txt"

func TestEveryMigrationExistsInBothDialects(t *testing.T) {
	names := map[string][]string{}
	walk(t, func(path string) {
		parts := strings.Split(path, "/")
		if len(parts) == 3 && parts[0] == "migrations" && filepath.Ext(path) == ".sql" {
			names[parts[1]] = append(names[parts[1]], parts[2])
		}
	})
	if !slices.Equal(names["sqlite"], names["postgres"]) || len(names["sqlite"]) == 0 {
		t.Errorf("sqlite has %v, postgres has %v", names["sqlite"], names["postgres"])
	}
}

// UPDATE=1 adds new files; a landed one can only be changed by hand, which a reviewer sees.
func TestLandedMigrationsAreNeverEdited(t *testing.T) {
	known := map[string]string{}
	for _, line := range strings.Split(strings.TrimSpace(read(t, landed)), "\n") {
		if path, sum, ok := strings.Cut(line, " "); ok {
			known[path] = sum
		}
	}
	var lines []string
	walk(t, func(path string) {
		if !strings.HasPrefix(path, "migrations/") || filepath.Ext(path) != ".sql" {
			return
		}
		sum := fmt.Sprintf("%x", sha256.Sum256([]byte(read(t, path))))
		switch before, ok := known[path]; {
		case ok && before != sum:
			t.Errorf("%s has landed and was edited: write a new migration", path)
		case !ok && os.Getenv("UPDATE") == "":
			t.Errorf("%s is not in %s: run UPDATE=1 go test ./internal/house", path, landed)
		}
		lines = append(lines, path+" "+sum)
	})
	if os.Getenv("UPDATE") != "" && !t.Failed() {
		if err := os.WriteFile(filepath.Join(root, landed), []byte(strings.Join(lines, "\n")+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}
