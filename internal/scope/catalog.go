package scope

import "slices"

// Group is a permission as a person reads it on the consent screen: a name and the scopes behind it. Default
// groups make up what a client gets that asks for nothing in particular.
type Group struct {
	Name    string
	Scopes  Set
	Default bool
}

// Catalog knows which scopes exist. A scope exists once a registered tool needs it, so metadata, consent and
// key creation never offer a permission that would unlock nothing.
type Catalog struct {
	groups    []Group
	umbrellas map[string]Set
	known     Set
}

// NewCatalog makes a catalog of the groups, cut down to the scopes that tools need. Umbrellas are scopes that
// stand for others and are expanded wherever scopes come in; one of them is known once anything under it is.
func NewCatalog(groups []Group, umbrellas map[string]Set, needed Set) *Catalog {
	c := &Catalog{umbrellas: map[string]Set{}, known: needed}
	for _, g := range groups {
		if g.Scopes = g.Scopes.Intersect(needed); len(g.Scopes) > 0 {
			c.groups = append(c.groups, g)
		}
	}
	for name := range umbrellas {
		if under := leaves(name, umbrellas, nil).Intersect(needed); len(under) > 0 {
			c.umbrellas[name] = under
		}
	}
	return c
}

// leaves is everything that a scope stands for, umbrellas within umbrellas included.
func leaves(name string, umbrellas map[string]Set, seen []string) Set {
	out := Set{}
	for _, s := range umbrellas[name] {
		if _, nested := umbrellas[s]; nested && !slices.Contains(seen, s) {
			out = out.Union(leaves(s, umbrellas, append(seen, name)))
		} else if !nested {
			out = out.Union(Of(s))
		}
	}
	return out
}

// Known is every scope that a registered tool needs.
func (c *Catalog) Known() Set { return c.known }

// Groups lists the permission groups that have a known scope, in the order they were declared.
func (c *Catalog) Groups() []Group { return slices.Clone(c.groups) }

// Default is what a client gets that asks for no scope.
func (c *Catalog) Default() Set {
	out := Set{}
	for _, g := range c.groups {
		if g.Default {
			out = out.Union(g.Scopes)
		}
	}
	return out
}

// Expand replaces umbrella scopes by what they stand for and leaves out what does not exist.
func (c *Catalog) Expand(s Set) Set {
	out := s.Intersect(c.known)
	for _, v := range s {
		out = out.Union(c.umbrellas[v])
	}
	return out
}
