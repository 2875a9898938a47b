package seal

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

func TestAKeyFileIsMadeOnceForItsOwnerAlone(t *testing.T) {
	path := filepath.Join(t.TempDir(), "data", "keys")
	var wg sync.WaitGroup
	ids := make([]string, 8)
	for i := range ids {
		wg.Go(func() {
			ring, err := Load(path)
			if err != nil {
				t.Error(err)
				return
			}
			ids[i] = ring.Current()
		})
	}
	wg.Wait()
	for _, id := range ids {
		if id != ids[0] {
			t.Fatalf("eight starts at once read different keys: %v", ids)
		}
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Fatalf("mode %v, %v", info.Mode(), err)
	}
	if err := os.Chmod(path, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := Load(path); err == nil || !strings.Contains(err.Error(), "chmod 600") {
		t.Fatalf("a key file that others can read was accepted: %v", err)
	}
}

func TestKeysVerifyAfterANewOneWasPutOnTop(t *testing.T) {
	line := func(id, c string) string { return id + " " + strings.Repeat(c, 42) + "A=\n" }
	before, err := parse(line("k1", "B"))
	if err != nil {
		t.Fatal(err)
	}
	after, err := parse("# rotated\n" + line("k2", "C") + line("k1", "B"))
	if err != nil {
		t.Fatal(err)
	}
	old := before.Hash("token")
	if got := after.Hashes("token"); got[1] != old || got[0] == old {
		t.Fatalf("hashes %v do not hold %s second", got, old)
	}
	x, _ := before.Derive("k1", Successor, "a", "bc")
	y, _ := after.Derive("k1", Successor, "a", "bc")
	z, _ := after.Derive("k1", Successor, "ab", "c")
	if string(x) != string(y) || string(x) == string(z) {
		t.Fatal("derivation is not stable over rotation, or mixes its parts up")
	}
	if _, ok := before.Derive("k2", Successor, "a"); ok {
		t.Fatal("derived with a key that is not there")
	}
}

func TestABrokenKeyFileIsRefused(t *testing.T) {
	for _, content := range []string{"", "# only a comment", "k1", "k1 !!!", "k1 QUJD", "a:b " + strings.Repeat("B", 42) + "A="} {
		if _, err := parse(content); err == nil {
			t.Errorf("accepted %q", content)
		}
	}
}
