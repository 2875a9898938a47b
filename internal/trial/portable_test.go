package trial

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestTheLintFindsWhatHostsRefuse(t *testing.T) {
	argument := func(schema string) string {
		return `{"type":"object","properties":{"a":` + schema + `},"additionalProperties":false}`
	}
	for schema, want := range map[string]string{
		`{"type":"string"}`:                                                                       "no description",
		`{"description":"x"}`:                                                                     "no type",
		`{"description":"x","type":["string","null"]}`:                                            "no type, or several",
		`{"description":"x","type":"string","nullable":true}`:                                     "it has nullable",
		`{"description":"x","type":"array"}`:                                                      "a list of nothing",
		`{"description":"x","type":"array","items":true}`:                                         "items is no schema",
		`{"description":"x","type":"array","items":{}}`:                                           "no type",
		`{"description":"x","type":"integer","exclusiveMinimum":0}`:                               "exclusiveMinimum",
		`{"description":"x","type":"integer","enum":[1,2]}`:                                       "its enum holds 1",
		`{"description":"x","type":"string","const":"a"}`:                                         "it has const",
		`{"description":"x","type":"string","format":"uri"}`:                                      "its format is uri",
		`{"description":"x","type":"object","additionalProperties":true,"properties":{}}`:         "open",
		`{"description":"x","type":"object"}`:                                                     "open",
		`{"description":"x","type":"object","additionalProperties":{"type":["a"]}}`:               "no type",
		`{"description":"x","type":"object","additionalProperties":false,"required":["b"]}`:       "requires b",
		`{"description":"x","type":"object","patternProperties":{},"additionalProperties":false}`: "patternProperties",
		`{"description":"x","type":"object","propertyNames":{},"additionalProperties":true}`:      "propertyNames",
		`{"description":"x","$ref":"#/a"}`:                                                        "$ref",
		`{"description":"x","oneOf":[{"type":"string"}]}`:                                         "oneOf",
		`{"description":"x","anyOf":[{"type":"null"},{"type":"string"}]}`:                         "null is not the last",
		`{"description":"x","type":"string","anyOf":[{"type":"string"},{"type":"null"}]}`:         "beside its alternatives it has type",
		`{"description":"x","anyOf":[{"type":["string"]},{"type":"null"}]}`:                       "no type, or several",
		`{"description":"` + strings.Repeat("x", 1025) + `","type":"string"}`:                     "1025 bytes",
	} {
		var s map[string]any
		if err := json.Unmarshal([]byte(argument(schema)), &s); err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(LintSchema("t", s), "\n"); !strings.Contains(got, want) {
			t.Errorf("%s: found %q, want %q", schema, got, want)
		}
	}
	good := `{"name":"do_it","title":"Do","description":"Does.","inputSchema":{"type":"object","properties":{"a":{"type":"string","description":"x"},` +
		`"b":{"description":"x","anyOf":[{"type":"string"},{"type":"null"}]},"c":{"description":"x","type":"object","additionalProperties":true}},` +
		`"required":["a"],"additionalProperties":false},"annotations":{"title":"Do","readOnlyHint":true,"destructiveHint":false,"idempotentHint":true,"openWorldHint":false}}`
	if found := LintTools([]json.RawMessage{json.RawMessage(good)}); len(found) > 0 {
		t.Error(found)
	}
	for change, want := range map[[2]string]string{
		{`"do_it"`, `"Do.It"`}:                              "its name",
		{`"title":"Do","description"`, `"description"`}:     "its title",
		{`"Does."`, `""`}:                                   "its description has 0",
		{`"readOnlyHint":true,`, ``}:                        "readOnlyHint",
		{`"destructiveHint":false,`, ``}:                    "destructiveHint",
		{`"annotations":{"title":"Do",`, `"annotations":{`}: "no title",
		{`"inputSchema":{"type":"object",`, `"inputSchema":{"anyOf":[],"type":"object",`}:                      "alternatives",
		{`"inputSchema":{"type":"object",`, `"outputSchema":{"type":"array"},"inputSchema":{"type":"object",`}: "output schema",
		{`"b":{`, `"b c":{`}: "is called",
	} {
		changed := strings.Replace(good, change[0], change[1], 1)
		if got := strings.Join(LintTools([]json.RawMessage{json.RawMessage(changed)}), "\n"); !strings.Contains(got, want) {
			t.Errorf("%s: found %q, want %q", change[1], got, want)
		}
	}
	if got := LintTools([]json.RawMessage{json.RawMessage(good), json.RawMessage(good)}); len(got) != 1 {
		t.Errorf("one name twice: %v", got)
	}
}
