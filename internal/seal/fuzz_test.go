package seal

import (
	"strings"
	"testing"
)

// A hash fits its token and no other, whatever bytes either has.
func FuzzHashes(f *testing.F) {
	for _, seed := range []string{"", "sb_at_x", "\x00", "a:b", "\xff\xfe", strings.Repeat("t", 1000)} {
		f.Add(seed, "other")
	}
	ring, err := parse("k1 " + strings.Repeat("A", 43) + "=\nk2 " + strings.Repeat("B", 42) + "A=\n")
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, token, other string) {
		for _, hash := range ring.Hashes(token) {
			if !ring.Matches(token, hash) || ring.Matches(other, hash) != (token == other) || len(token) > 8 && strings.Contains(hash, token) {
				t.Errorf("%q and %q at %q", token, other, hash)
			}
		}
		if ring.Matches(token, other) {
			t.Errorf("%q passes for a hash of %q", other, token)
		}
		one, ok := ring.Derive("k1", Form, token, other)
		if two, _ := ring.Derive("k1", Form, token+other, ""); !ok || other != "" && string(one) == string(two) {
			t.Errorf("%q and %q are one part", token, other)
		}
	})
}

// A key file is read whole or refused, and never quoted in what is said about it.
func FuzzKeyFiles(f *testing.F) {
	good := "k1 " + strings.Repeat("A", 43) + "=\n"
	for _, seed := range []string{"", good, good + good, "# a\n\n" + good, "k1", "a:b " + good[3:], strings.Repeat("x", 70_000), "\x00 " + good} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, content string) {
		ring, err := parse(content)
		if err != nil {
			for _, word := range strings.Fields(content) {
				if len(word) >= 40 && strings.Contains(err.Error(), word) {
					t.Errorf("the error says the secret: %v", err)
				}
			}
			return
		}
		for _, id := range ring.IDs() {
			if _, ok := ring.Derive(id, Form); !ok || strings.Contains(id, ":") {
				t.Errorf("%q has the key %q", content, id)
			}
		}
		if token := "sb_at_x"; len(ring.IDs()) == 0 || !ring.Matches(token, ring.Hash(token)) {
			t.Errorf("%q is read as %v", content, ring.IDs())
		}
	})
}
