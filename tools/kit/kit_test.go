package kit_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"switchboard/internal/fault"
	"switchboard/internal/scope"
	"switchboard/tools/kit"
)

func TestASpecThatBreaksARuleStartsNoServer(t *testing.T) {
	handler := func(context.Context, note) (noted, error) { return noted{}, nil }
	asks := kit.Confirm(kit.Always, func(context.Context, note) (kit.Preview, error) { return kit.Preview{}, nil })
	for name, c := range map[string]struct {
		change  func(*kit.Spec)
		options []kit.Option[note]
	}{
		"a name with a dash":    {func(s *kit.Spec) { s.Name = "a-b" }, nil},
		"a long name":           {func(s *kit.Spec) { s.Name = strings.Repeat("a", 41) }, nil},
		"no title":              {func(s *kit.Spec) { s.Title = "" }, nil},
		"no doc":                {func(s *kit.Spec) { s.Doc = "" }, nil},
		"no scope":              {func(s *kit.Spec) { s.Scope = "" }, nil},
		"a scope without role":  {func(s *kit.Spec) { s.Scope = "moon:write" }, nil},
		"no example":            {func(s *kit.Spec) { s.Example = "" }, nil},
		"a bad example":         {func(s *kit.Spec) { s.Example = `{}` }, nil},
		"a long timeout":        {func(s *kit.Spec) { s.Timeout = kit.MaxTimeout + 1 }, nil},
		"a negative timeout":    {func(s *kit.Spec) { s.Timeout = -1 }, nil},
		"nothing too long":      {func(s *kit.Spec) { s.Timeout = kit.MaxTimeout }, nil},
		"unconfirmed spending":  {func(s *kit.Spec) { s.Spends = true }, nil},
		"unconfirmed deletion":  {func(s *kit.Spec) { s.Effect = kit.Destroy }, nil},
		"reading that spends":   {func(s *kit.Spec) { s.Effect, s.Spends, s.Unconfirmed = kit.Read, true, "x" }, nil},
		"reading that asks":     {func(s *kit.Spec) { s.Effect = kit.Read }, []kit.Option[note]{asks}},
		"an effect of no kind":  {func(s *kit.Spec) { s.Effect = 7 }, nil},
		"nothing wrong":         {func(*kit.Spec) {}, nil},
		"confirmed deletion":    {func(s *kit.Spec) { s.Effect = kit.Destroy }, []kit.Option[note]{asks}},
		"deletion with a cause": {func(s *kit.Spec) { s.Effect, s.Unconfirmed = kit.Destroy, "It can be had again." }, nil},
	} {
		s := spec()
		c.change(&s)
		good := strings.HasPrefix(name, "nothing") || strings.HasPrefix(name, "confirmed") || strings.HasPrefix(name, "deletion")
		func() {
			defer func() {
				if v := recover(); (v == nil) != good {
					t.Errorf("%s: %v", name, v)
				}
			}()
			kit.New(s, handler, c.options...)
		}()
	}
}

func TestARegistryListsByNameAndRefusesTwins(t *testing.T) {
	b := newBench(t)
	s := spec()
	s.Name, s.Scope, s.Effect = "a_look", "contacts:read", kit.Read
	look := kit.New(s, func(context.Context, note) (noted, error) { return noted{}, nil })
	r := kit.NewRegistry(kit.Area{Name: "x", Tools: []kit.Tool{b.noter(), look}})
	names := []string{}
	for _, tool := range r.Tools() {
		names = append(names, tool.Name())
	}
	if diff := cmp.Diff([]string{"a_look", "note_it"}, names); diff != "" {
		t.Error(diff)
	}
	if !r.Needed().Equal(scope.Of("contacts:read", "contacts:write")) || len(r.ByScope("contacts:read")) != 1 {
		t.Errorf("%v, %v", r.Needed(), r.ByScope("contacts:read"))
	}
	if _, ok := r.Tool("A_look"); ok {
		t.Error("a name is found in another case")
	}
	defer func() {
		if recover() == nil {
			t.Error("two tools of one name")
		}
	}()
	kit.NewRegistry(kit.Area{Name: "x", Tools: []kit.Tool{b.noter(), b.noter()}})
}

func TestAResultIsAnObject(t *testing.T) {
	declare := func(name, want string, declaration func()) {
		defer func() {
			if v := recover(); (v == nil) != (want == "") || v != nil && !strings.Contains(v.(string), want) {
				t.Errorf("%s: %v, want %q", name, v, want)
			}
		}()
		declaration()
	}
	const want = "its result must be a struct or a map"
	declare("a struct", "", func() { kit.New(spec(), returning(noted{})) })
	declare("a pointer to one", "", func() { kit.New(spec(), returning(&noted{})) })
	declare("a map", "", func() { kit.New(spec(), returning(map[string]int{})) })
	declare("a list", want, func() { kit.New(spec(), returning([]noted{})) })
	declare("a text", want, func() { kit.New(spec(), returning("x")) })
	declare("anything", want, func() { kit.New(spec(), returning[any](noted{})) })
	declare("raw JSON", want, func() { kit.New(spec(), returning(json.RawMessage(`{}`))) })
	declare("what writes itself", want, func() { kit.New(spec(), returning(time.Time{})) })

	b := newBench(t)
	if got, err := b.runner.Call(b.admin, kit.New(spec(), returning[*noted](nil)), json.RawMessage(`{"text":"a"}`)); !fault.Is(err, fault.Internal) {
		t.Errorf("neither a result nor an error: %s, %v", got.Value, err)
	}
	if !strings.Contains(b.logged.String(), "note_it returned neither a result nor an error") {
		t.Error(b.logged.String())
	}
	got, err := b.runner.Call(b.admin, kit.New(spec(), returning[map[string]int](nil)), json.RawMessage(`{"text":"a"}`))
	if err != nil || string(got.Value) != `{}` {
		t.Errorf("a map that was never made: %s, %v", got.Value, err)
	}
}

func returning[Out any](out Out) func(context.Context, note) (Out, error) {
	return func(context.Context, note) (Out, error) { return out, nil }
}

func TestAToolsetHoldsItsToolsAndThoseThatAreInEach(t *testing.T) {
	named := func(name string) []kit.Tool {
		s := spec()
		s.Name = name
		return []kit.Tool{kit.New(s, func(context.Context, note) (noted, error) { return noted{}, nil })}
	}
	r := kit.NewRegistry(
		kit.Area{Name: "org", Tools: named("where")}, kit.Area{Name: "mail", Toolset: kit.Mail, Tools: named("read_mail")},
		kit.Area{Name: "voices", Toolset: kit.Voice, Tools: named("speak")}, kit.Area{Name: "calls", Toolset: kit.Voice, Tools: named("call")},
		kit.Area{Name: "hosting", Toolset: kit.Apps},
	)
	if diff := cmp.Diff([]kit.Toolset{kit.Voice, kit.Mail}, r.Toolsets()); diff != "" {
		t.Error(diff)
	}
	for set, want := range map[kit.Toolset][]string{kit.Voice: {"call", "speak", "where"}, kit.Mail: {"read_mail", "where"}, kit.Apps: {"where"}} {
		var got []string
		for _, tool := range r.Toolset(set).Tools() {
			got = append(got, tool.Name())
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", set, diff)
		}
	}
}
