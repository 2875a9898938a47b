package tools_test

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	validator "github.com/santhosh-tekuri/jsonschema/v6"

	"switchboard/tools/kit"
)

// promised is what testdata/contract.json says about a tool: the public promise that our own declarations must keep.
type promised struct {
	Name        string
	Scope       string
	ReadOnly    bool
	Destructive bool
	Idempotent  bool
	External    bool
	Money       bool
	Confirm     bool
	Example     json.RawMessage
	InputSchema json.RawMessage
}

func contract(t *testing.T) []promised {
	t.Helper()
	text, err := os.ReadFile("testdata/contract.json")
	if err != nil {
		t.Fatal(err)
	}
	var all []promised
	if err := json.Unmarshal(text, &all); err != nil {
		t.Fatal(err)
	}
	return all
}

func TestTheContractIsKept(t *testing.T) {
	p := newProduct(t)
	all := contract(t)
	if len(all) != len(p.tools.Tools()) {
		t.Errorf("%d tools in the contract, %d registered", len(all), len(p.tools.Tools()))
	}
	for _, want := range all {
		tool, ok := p.tools.Tool(want.Name)
		if !ok {
			t.Errorf("%s is not registered", want.Name)
			continue
		}
		s := tool.Spec()
		got := promised{s.Name, s.Scope, !s.Mutates(), s.Effect == kit.Destroy, s.Idempotent, s.External, s.Spends, tool.Confirms(), nil, nil}
		fact := want
		fact.Example, fact.InputSchema = nil, nil
		if diff := cmp.Diff(fact, got); diff != "" {
			t.Errorf("%s: %s", want.Name, diff)
		}
		if err := tool.Validate(want.Example); err != nil {
			t.Errorf("%s: the example of the contract: %v", want.Name, err)
		}
		accepts(t, tool, want)
	}
}

// accepts gives one tool 200 argument lists, some valid and some not, and compares its verdict with the contract's.
func accepts(t *testing.T, tool kit.Tool, want promised) {
	t.Helper()
	doc, err := validator.UnmarshalJSON(bytes.NewReader(want.InputSchema))
	if err != nil {
		t.Fatal(err)
	}
	c := validator.NewCompiler()
	c.DefaultDraft(validator.Draft2020)
	c.AssertFormat()
	if err := c.AddResource("contract.json", doc); err != nil {
		t.Fatal(err)
	}
	rules, err := c.Compile("contract.json")
	if err != nil {
		t.Fatal(err)
	}
	g := generator{rand.New(rand.NewPCG(1, uint64(len(want.Name))))}
	verdicts := map[bool]int{}
	for range 200 {
		args, err := json.Marshal(g.value(doc, 0.15))
		if err != nil {
			t.Fatal(err)
		}
		tree, err := validator.UnmarshalJSON(bytes.NewReader(args))
		if err != nil {
			t.Fatal(err)
		}
		theirs, ours := rules.Validate(tree) == nil, tool.Validate(args) == nil
		if string(args) == "null" {
			theirs = true // clients send null for no arguments
			theirs = theirs && rules.Validate(map[string]any{}) == nil
		}
		if theirs != ours {
			t.Errorf("%s: %s: the contract says %v, we say %v", want.Name, args, theirs, tool.Validate(args))
		}
		verdicts[ours]++
	}
	if verdicts[true] < 20 || verdicts[false] < 10 {
		t.Errorf("%s: %d accepted, %d refused: that proves little", want.Name, verdicts[true], verdicts[false])
	}
}

type generator struct{ *rand.Rand }

// value makes a value for a schema that fits it, but for a share of its parts that are anything.
func (g generator) value(schema any, wild float64) any {
	s, _ := schema.(map[string]any)
	if g.Float64() < wild {
		return g.anything()
	}
	if alternatives, ok := s["anyOf"].([]any); ok {
		return g.value(alternatives[g.IntN(len(alternatives))], wild)
	}
	switch s["type"] {
	case "object":
		return g.object(s, wild)
	case "array":
		items := make([]any, g.IntN(9))
		for i := range items {
			items[i] = g.value(s["items"], wild/4)
		}
		return items
	case "string":
		return g.text(s, wild)
	case "integer":
		return []any{0, 1, 3, 6, 7, 25, 100, 101, 5.0, 1e1}[g.IntN(10)]
	case "boolean":
		return g.IntN(2) == 0
	}
	return nil
}

func (g generator) object(s map[string]any, wild float64) map[string]any {
	out := map[string]any{}
	properties, _ := s["properties"].(map[string]any)
	required, _ := json.Marshal(s["required"])
	for name, p := range properties {
		if strings.Contains(string(required), `"`+name+`"`) && g.Float64() > wild/2 || g.IntN(3) == 0 {
			out[name] = g.value(p, wild/2)
		}
	}
	if values, isMap := s["additionalProperties"].(map[string]any); isMap {
		for range g.IntN(4) {
			out[g.text(nil, 1).(string)] = g.value(values, wild/2)
		}
	} else if g.Float64() < wild/2 {
		out["unknown"] = 1
	}
	return out
}

// texts are values for every pattern in the contract, and lengths around every limit.
func texts() []string {
	out := []string{"", "+14155550123", "+0123", "+1234567", "+123456", "+123456789012345", "+1234567890123456", "14155550123",
		"09:00", "23:59", "24:00", "9:00", "09:60", "sara@example.com", "a@b", "a..b@example.com", "x'y+z@a.b-c.org", "sara@exam ple.com",
		"US", "USA", "U", "مصر", "é", "Asia/Dubai"}
	for _, n := range []int{2, 64, 65, 120, 121, 200, 201, 320, 321, 500, 501, 600, 601, 4000, 4001} {
		out = append(out, strings.Repeat("é", n), strings.Repeat("x", n))
	}
	return out
}

func (g generator) text(s map[string]any, wild float64) any {
	all := texts()
	if s["pattern"] != nil && g.Float64() > wild {
		all = all[1:18] // mostly what looks like a phone number, a time or an address
		switch pattern := s["pattern"].(string); {
		case strings.Contains(pattern, "@"):
			all = all[12:17]
		case strings.HasPrefix(pattern, `^\+`):
			all = all[:3]
		default:
			all = all[7:9]
		}
	}
	return all[g.IntN(len(all))]
}

// anything has no texts that hold the JSON of something else: those are read where the contract has no place for a text,
// which TestEveryToolReadsWhatHostsWriteAsText is about.
func (g generator) anything() any {
	return []any{nil, true, "ten", "[]]", "{", 1.5, -1, 1e300, 10, []any{}, []any{nil}, map[string]any{}, map[string]any{"x": 1}}[g.IntN(13)]
}
