package tools_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"switchboard/internal/golden"

	"switchboard/tools/kit"
)

func TestEverySchemaIsPortable(t *testing.T) {
	p := newProduct(t)
	size := 0
	for _, tool := range p.tools.Tools() {
		var root map[string]any
		if err := json.Unmarshal(tool.InputSchema(), &root); err != nil {
			t.Fatal(err)
		}
		size += len(tool.InputSchema()) + len(tool.Description()) + 600 // names, hints and framing
		if root["type"] != "object" {
			t.Errorf("%s: the root is no object", tool.Name())
		}
		for _, word := range []string{"anyOf", "oneOf", "allOf", "not", "if", "$ref"} {
			if _, there := root[word]; there {
				t.Errorf("%s: the root has %s", tool.Name(), word)
			}
		}
		for _, finding := range lint(tool.Name(), root, false) {
			t.Error(finding)
		}
	}
	if size > 100_000 {
		t.Errorf("the list of tools is %d bytes", size)
	}
}

var property = regexp.MustCompile(`^[A-Za-z0-9_]{1,64}$`)

// lint finds what some hosts refuse a tool, or a whole list, for.
func lint(at string, s map[string]any, isArgument bool) (findings []string) {
	say := func(format string, args ...any) { findings = append(findings, at+": "+fmt.Sprintf(format, args...)) }
	for _, word := range []string{"exclusiveMinimum", "exclusiveMaximum", "const", "patternProperties", "propertyNames", "$ref", "oneOf", "allOf", "not", "if"} {
		if _, there := s[word]; there {
			say("it has %s", word)
		}
	}
	if _, several := s["type"].([]any); several {
		say("its type is a list")
	}
	if s["type"] == "array" && s["items"] == nil {
		say("it is a list of nothing")
	}
	if f, there := s["format"]; there && f != "date-time" {
		say("its format is %v", f)
	}
	if isArgument && s["description"] == nil {
		say("it has no description")
	}
	for _, v := range asList(s["enum"]) {
		if _, text := v.(string); !text {
			say("its enum holds %v", v)
		}
	}
	properties, _ := s["properties"].(map[string]any)
	if s["type"] == "object" {
		if _, isMap := s["additionalProperties"].(map[string]any); !isMap && s["additionalProperties"] != false {
			say("it is open")
		}
	}
	for name, p := range properties {
		if !property.MatchString(name) {
			say("a property is called %q", name)
		}
		findings = append(findings, lint(at+"."+name, p.(map[string]any), true)...)
	}
	for _, word := range []string{"items", "additionalProperties"} {
		if inner, ok := s[word].(map[string]any); ok {
			findings = append(findings, lint(at+"/"+word, inner, false)...)
		}
	}
	for _, alternative := range asList(s["anyOf"]) {
		findings = append(findings, lint(at+"/anyOf", alternative.(map[string]any), false)...)
	}
	return findings
}

func asList(v any) []any {
	l, _ := v.([]any)
	return l
}

// Some hosts send every argument as a text. All that kit can know about is whether the text holds what is wanted.
func TestEveryToolReadsWhatHostsWriteAsText(t *testing.T) {
	p := newProduct(t)
	examples := map[string]json.RawMessage{}
	for _, promise := range contract(t) {
		examples[promise.Name] = promise.Example
	}
	for _, tool := range p.tools.Tools() {
		for _, example := range []json.RawMessage{json.RawMessage(tool.Spec().Example), examples[tool.Name()]} {
			var args map[string]json.RawMessage
			if err := json.Unmarshal(example, &args); err != nil {
				t.Fatal(err)
			}
			for name, value := range args {
				quoted, err := json.Marshal(string(value))
				if err != nil {
					t.Fatal(err)
				}
				if value[0] == '"' || name == "confirm" {
					continue
				}
				args[name] = quoted
				sent, err := json.Marshal(args)
				if err != nil {
					t.Fatal(err)
				}
				if err := tool.Validate(sent); err != nil {
					t.Errorf("%s: %s as a text: %v", tool.Name(), name, err)
				}
				args[name] = value
			}
		}
		if !tool.Confirms() {
			continue
		}
		for _, word := range []string{"true", "false"} {
			args := strings.Replace(tool.Spec().Example, "{", `{"confirm":"`+word+`",`, 1)
			if err := tool.Validate(json.RawMessage(args)); err == nil || !strings.Contains(err.Error(), "confirm: must be true or false") {
				t.Errorf("%s: confirm as the text %s: %v", tool.Name(), word, err)
			}
		}
	}
}

func TestTheWireFormIsReviewed(t *testing.T) {
	p := newProduct(t)
	type entry struct {
		Name        string          `json:"name"`
		Title       string          `json:"title"`
		Description string          `json:"description"`
		Scope       string          `json:"scope"`
		ReadOnly    bool            `json:"readOnly"`
		Destructive bool            `json:"destructive"`
		Idempotent  bool            `json:"idempotent"`
		External    bool            `json:"external"`
		Spends      bool            `json:"spends"`
		InputSchema json.RawMessage `json:"inputSchema"`
	}
	entries := []entry{}
	for _, tool := range p.tools.Tools() {
		s := tool.Spec()
		entries = append(entries, entry{s.Name, s.Title, tool.Description(), s.Scope, !s.Mutates(), s.Effect == kit.Destroy,
			s.Idempotent, s.External, s.Spends, tool.InputSchema()})
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(entries); err != nil {
		t.Fatal(err)
	}
	golden.Check(t, filepath.Join("testdata", "tools.json"), b.String())
}
