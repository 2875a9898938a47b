package scope

import (
	"slices"
	"strings"
	"testing"
)

// What is read is sorted, distinct, and reads the same when it is written again.
func FuzzScopes(f *testing.F) {
	for _, seed := range []string{"", "org:read", "  b  a b ", "a\tb\nc", "a\u00a0b", "\x00", "*", "a,b", strings.Repeat("a ", 500)} {
		f.Add(seed, "a b")
	}
	f.Fuzz(func(t *testing.T, one, other string) {
		a, b := Parse(one), Parse(other)
		if !slices.IsSorted(a) || len(slices.Compact(slices.Clone(a))) != len(a) || !Parse(a.String()).Equal(a) {
			t.Errorf("%q is read as %q", one, a)
		}
		if !a.Union(b).Contains(a) || !a.Contains(a.Intersect(b)) || !a.Minus(b).Union(a.Intersect(b)).Equal(a) || len(a.Minus(b).Intersect(b)) != 0 {
			t.Errorf("%q and %q: %q %q %q", a, b, a.Union(b), a.Intersect(b), a.Minus(b))
		}
		if !a.Union(b).Equal(b.Union(a)) || !a.Contains(a.ReadOnly()) {
			t.Errorf("%q and %q", a, b)
		}
	})
}
