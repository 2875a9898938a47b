// Package scope holds the words of authorization: scopes, sets of them, the permission groups that a person
// sees, and the roles that cap what anybody can hand on. It is pure values; who holds what is decided in auth,
// and whether a call may run is decided in tools/kit.
package scope

import (
	"slices"
	"strings"
)

// Set is a sorted list of distinct scopes. The zero Set is empty and ready to use. Sets are values: every
// method returns a new one.
type Set []string

// Of makes a Set of the given scopes.
func Of(scopes ...string) Set {
	s := slices.DeleteFunc(slices.Clone(scopes), func(v string) bool { return v == "" })
	slices.Sort(s)
	return slices.Compact(s)
}

// Parse reads the wire form of RFC 6749 §3.3: scopes separated by spaces. Runs of white space are one separator.
func Parse(s string) Set { return Of(strings.Fields(s)...) }

// String is the wire form of RFC 6749 §3.3.
func (s Set) String() string { return strings.Join(s, " ") }

// Has reports whether one scope is in the set.
func (s Set) Has(scope string) bool {
	_, found := slices.BinarySearch(s, scope)
	return found
}

// Contains reports whether every scope of other is in s.
func (s Set) Contains(other Set) bool {
	return !slices.ContainsFunc(other, func(v string) bool { return !s.Has(v) })
}

// Union is what is in either set.
func (s Set) Union(other Set) Set { return Of(append(slices.Clone(s), other...)...) }

// Intersect is what is in both sets.
func (s Set) Intersect(other Set) Set { return s.Filter(other.Has) }

// Minus is what is in s and not in other.
func (s Set) Minus(other Set) Set { return s.Filter(func(v string) bool { return !other.Has(v) }) }

// Filter keeps the scopes for which keep answers true.
func (s Set) Filter(keep func(string) bool) Set {
	out := Set{}
	for _, v := range s {
		if keep(v) {
			out = append(out, v)
		}
	}
	return out
}

// Equal reports whether both sets hold the same scopes.
func (s Set) Equal(other Set) bool { return slices.Equal(s, other) }

// ReadOnly is the half of the set that cannot change anything: the scopes that end in ":read".
func (s Set) ReadOnly() Set { return s.Filter(IsRead) }

// IsRead reports whether a scope only lets its holder look.
func IsRead(scope string) bool { return strings.HasSuffix(scope, ":read") }
