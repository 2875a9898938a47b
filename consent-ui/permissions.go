package consentui

import (
	"cmp"
	"slices"
	"strings"

	"switchboard/consent-ui/text"
	"switchboard/internal/scope"
	"switchboard/tools/kit"
)

// permission is a group of scopes as a person reads it: what it is called, what it allows, and the tools behind it.
type permission struct {
	Slug        string // for ids in the page
	Name, About string
	Scopes      scope.Set
	Tools       []toolLine

	Money, Once    bool // some tool spends; some tool does what cannot be undone
	Reads, Changes bool // some scope reads; some scope does more
	Default        bool // part of what an app gets that asks for nothing in particular

	Ticked, New bool // on the consent page
}

type toolLine struct {
	Name        string
	Money, Once bool
}

// permissions describes scopes group by group, by consequence: what spends first, then what cannot be undone, what
// changes, what reads, and what is off by default last. Groups without a scope in the set are left out.
func (u *UI) permissions(p *text.Printer, scopes scope.Set) []permission {
	list := []permission{}
	for _, g := range u.Auth.Catalog().Groups() {
		if mine := g.Scopes.Intersect(scopes); len(mine) > 0 {
			list = append(list, describe(p, u.Tools, g, mine))
		}
	}
	slices.SortStableFunc(list, func(a, b permission) int { return cmp.Compare(a.rank(), b.rank()) })
	return list
}

func (p permission) rank() int {
	switch {
	case !p.Default:
		return 4
	case p.Money:
		return 0
	case p.Once:
		return 1
	case p.Changes:
		return 2
	}
	return 3
}

func describe(words *text.Printer, tools kit.Registry, g scope.Group, scopes scope.Set) permission {
	slug := strings.ReplaceAll(g.Name, " ", "-")
	p := permission{
		Slug: slug, Name: g.Name, Scopes: scopes, Default: g.Default,
		Reads: len(scopes.ReadOnly()) > 0, Changes: len(scopes.ReadOnly()) < len(scopes),
	}
	// A group that has no words yet goes by its plain name; a test wants words for every group that has a tool.
	if key := "group." + slug; words.Has(key + ".name") {
		p.Name, p.About = words.T(key+".name"), words.T(key+".about")
		if !p.Changes {
			p.About = words.T(key + ".look")
		} else if !p.Reads {
			p.About = words.T(key + ".change") // writing does not imply reading
		}
	}
	for _, s := range scopes {
		for _, t := range tools.ByScope(s) {
			spec := t.Spec()
			line := toolLine{Name: spec.Name, Money: spec.Spends, Once: spec.Effect == kit.Destroy}
			if slices.Contains(p.Tools, line) {
				continue
			}
			p.Tools = append(p.Tools, line)
			p.Money, p.Once = p.Money || line.Money, p.Once || line.Once
		}
	}
	slices.SortStableFunc(p.Tools, func(a, b toolLine) int { return cmp.Compare(a.weight(), b.weight()) })
	return p
}

// weight sorts the tools that matter to the top.
func (t toolLine) weight() int {
	switch {
	case t.Money:
		return 0
	case t.Once:
		return 1
	}
	return 2
}

func names(list []permission) []string {
	out := []string{}
	for _, p := range list {
		out = append(out, p.Name)
	}
	return out
}
