package kit

import (
	"fmt"
	"slices"
	"strings"

	"switchboard/internal/scope"
)

// Registry is every tool of the product. It does not change after it was made.
type Registry struct {
	areas  []Area
	tools  []Tool // sorted by name
	byName map[string]Tool
	needed scope.Set
}

// NewRegistry collects the tools of the areas. It panics when two tools share a name.
func NewRegistry(areas ...Area) Registry {
	r := Registry{areas: areas, byName: map[string]Tool{}}
	for _, a := range areas {
		for _, t := range a.Tools {
			if _, taken := r.byName[t.Name()]; taken {
				panic(fmt.Sprintf("two tools are called %q, one of them in %s", t.Name(), a.Name))
			}
			r.byName[t.Name()] = t
			r.tools = append(r.tools, t)
			r.needed = r.needed.Union(t.Needs())
		}
	}
	slices.SortFunc(r.tools, func(a, b Tool) int { return strings.Compare(a.Name(), b.Name()) })
	return r
}

// Toolsets are the toolsets that have a tool of their own.
func (r Registry) Toolsets() []Toolset {
	return slices.DeleteFunc([]Toolset{Voice, Testing, Mail, Apps}, func(t Toolset) bool {
		return !slices.ContainsFunc(r.areas, func(a Area) bool { return a.Toolset == t && len(a.Tools) > 0 })
	})
}

// Toolset is the part of the registry that a toolset holds, with the areas that are in each.
func (r Registry) Toolset(t Toolset) Registry {
	return NewRegistry(slices.DeleteFunc(slices.Clone(r.areas), func(a Area) bool { return a.Toolset != t && a.Toolset != "" })...)
}

// Tools is a copy in the order of names, the same on every call: clients cache the list and compare it.
func (r Registry) Tools() []Tool { return slices.Clone(r.tools) }

// Tool finds a tool by its exact name; another case is another name, and unknown.
func (r Registry) Tool(name string) (Tool, bool) {
	t, ok := r.byName[name]
	return t, ok
}

// Needed is every scope that some tool needs. Scopes beyond these cannot be asked for, there is nothing behind them.
func (r Registry) Needed() scope.Set { return r.needed }

// ByScope lists the tools that a scope unlocks, by name.
func (r Registry) ByScope(s string) []Tool {
	return slices.DeleteFunc(r.Tools(), func(t Tool) bool { return !t.Needs().Has(s) })
}
