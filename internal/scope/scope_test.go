package scope

import (
	"slices"
	"testing"
)

func TestSetsAreSortedAndDistinctAndNeverChange(t *testing.T) {
	s := Parse("  b:read a:read\tb:read ")
	if s.String() != "a:read b:read" || !s.Has("a:read") || s.Has("a") || s.Has("") {
		t.Errorf("%q", s)
	}
	u := s.Union(Of("c:write", "", "a:read"))
	if u.String() != "a:read b:read c:write" || s.String() != "a:read b:read" {
		t.Errorf("%q %q", u, s)
	}
	if got := u.Minus(s).String(); got != "c:write" {
		t.Errorf("minus: %q", got)
	}
	if got := u.Intersect(Of("c:write", "d:read")).String(); got != "c:write" {
		t.Errorf("intersect: %q", got)
	}
	if !u.Contains(s) || s.Contains(u) || !s.Contains(Set{}) || !u.ReadOnly().Equal(s) {
		t.Error("contains or read-only is wrong")
	}
}

func TestEachRoleHasWhatTheOneBelowHasAndAnUnknownOneHasNothing(t *testing.T) {
	for scope, least := range map[string]Role{
		"contacts:read": Viewer, "org:read": Viewer, "calls:read": Viewer, "usage:read": Viewer, "webhooks:read": Viewer,
		"contacts:write": Member, "agents:write": Member, "campaigns:write": Member, "files:write": Member, "mocks:call": Member,
		"billing:read": Admin, "numbers:write": Admin, "webhooks:write": Admin, "org:write": Admin, "mail:send": Admin, "authenticators:use": Admin, "apps:delete": Admin,
	} {
		for _, r := range Roles() {
			if want := r.AtLeast(least); r.Allows(scope) != want {
				t.Errorf("%s %s: %v", r, scope, !want)
			}
		}
	}
	for _, r := range append(Roles(), "", "king") {
		if r.Allows("spaceships:launch") {
			t.Errorf("%s may do what nobody may", r)
		}
	}
	for _, r := range []Role{"", "king", "OWNER"} {
		if r.Allows("contacts:read") || r.SeesAll() || r.AtLeast(Viewer) {
			t.Errorf("%q is a role", r)
		}
		if _, ok := ParseRole(string(r)); ok {
			t.Errorf("%q parses", r)
		}
	}
	if !slices.Equal([]bool{Viewer.SeesAll(), Member.SeesAll(), Admin.SeesAll(), Owner.SeesAll()}, []bool{false, false, true, true}) {
		t.Error("who sees everybody's things")
	}
}

func TestACatalogKnowsWhatToolsNeedAndExpandsUmbrellas(t *testing.T) {
	c := NewCatalog(
		[]Group{{Name: "mail", Scopes: Of("mail:read", "mail:write"), Default: true}, {Name: "apps", Scopes: Of("apps:write")}, {Name: "none", Scopes: Of("calls:read"), Default: true}},
		map[string]Set{"all:read": Of("mail:read", "hooks:read"), "all:write": Of("all:read", "mail:write", "all:write"), "nothing": Of("calls:read")},
		Of("mail:read", "mail:write", "apps:write"),
	)
	if got := c.Default().String(); got != "mail:read mail:write" {
		t.Errorf("default: %q", got)
	}
	names := []string{}
	for _, g := range c.Groups() {
		names = append(names, g.Name)
	}
	if !slices.Equal(names, []string{"mail", "apps"}) {
		t.Errorf("groups: %v", names)
	}
	for asked, want := range map[string]string{
		"mail:read": "mail:read", "all:read": "mail:read", "all:write": "mail:read mail:write", "all:write apps:write": "apps:write mail:read mail:write",
		"nothing": "", "hooks:read": "", "unknown:read": "", "": "",
	} {
		if got := c.Expand(Parse(asked)).String(); got != want {
			t.Errorf("%q expands to %q, want %q", asked, got, want)
		}
	}
}
