package trial

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// MaxToolList is how many bytes a list of tools may have as it is sent: it stands in a model's context all the time.
const MaxToolList = 100_000

var (
	toolName     = regexp.MustCompile(`^[a-z][a-z0-9_]{0,39}$`)
	propertyName = regexp.MustCompile(`^[A-Za-z0-9_]{1,64}$`)
)

// portable are the words of JSON Schema that every known host takes. What is not here makes some host drop a tool, or
// refuse each chat that has it in its list: alternatives at the root, lists of types, exclusive bounds, constants,
// references, names of map keys, formats.
var portable = []string{"type", "description", "default", "enum", "minimum", "maximum", "minLength", "maxLength", "pattern",
	"format", "items", "minItems", "maxItems", "properties", "required", "additionalProperties", "minProperties", "maxProperties", "anyOf"}

// LintTools finds what hosts refuse the entries of tools/list for, or the whole list.
func LintTools(entries []json.RawMessage) (findings []string) {
	seen := map[string]bool{}
	for _, entry := range entries {
		var tool struct {
			Name, Title, Description  string
			InputSchema, OutputSchema map[string]any
			Annotations               map[string]any
		}
		if err := json.Unmarshal(entry, &tool); err != nil {
			return append(findings, err.Error())
		}
		say := func(format string, args ...any) {
			findings = append(findings, tool.Name+": "+fmt.Sprintf(format, args...))
		}
		if !toolName.MatchString(tool.Name) {
			say("its name is %q", tool.Name)
		}
		if seen[tool.Name] {
			say("two tools are called so")
		}
		seen[tool.Name] = true
		if tool.Title == "" || tool.Description == "" || len(tool.Description) > 1024 {
			say("its title is %q and its description has %d bytes", tool.Title, len(tool.Description))
		}
		if title, _ := tool.Annotations["title"].(string); title == "" {
			say("its hints have no title")
		}
		for _, hint := range []string{"readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"} {
			if _, said := tool.Annotations[hint].(bool); !said {
				say("it does not say its %s", hint)
			}
		}
		if tool.InputSchema["type"] != "object" || tool.InputSchema["properties"] == nil {
			say("the root of its schema is no object with properties")
		}
		if _, there := tool.InputSchema["anyOf"]; there {
			say("the root of its schema has alternatives")
		}
		if tool.OutputSchema != nil && tool.OutputSchema["type"] != "object" {
			say("the root of its output schema is no object")
		}
		findings = append(findings, LintSchema(tool.Name, tool.InputSchema)...)
	}
	return findings
}

// LintSchema finds what hosts refuse a schema for.
func LintSchema(at string, s map[string]any) (findings []string) {
	say := func(format string, args ...any) { findings = append(findings, at+": "+fmt.Sprintf(format, args...)) }
	inner := func(where string, schema any) {
		object, ok := schema.(map[string]any)
		if !ok {
			say("%s is no schema", where)
			return
		}
		findings = append(findings, LintSchema(at+"/"+where, object)...)
	}
	for _, word := range slices.Sorted(maps.Keys(s)) {
		if !slices.Contains(portable, word) {
			say("it has %s", word)
		}
	}
	kind, _ := s["type"].(string)
	alternatives, union := s["anyOf"].([]any)
	switch {
	case union:
		for _, word := range slices.Sorted(maps.Keys(s)) {
			if !slices.Contains([]string{"anyOf", "description", "default"}, word) {
				say("beside its alternatives it has %s", word)
			}
		}
	case kind == "":
		say("it has no type, or several")
	case kind == "array" && s["items"] == nil:
		say("it is a list of nothing")
	case kind == "object":
		findings = append(findings, lintObject(at, s)...)
	}
	if f, there := s["format"]; there && f != "date-time" {
		say("its format is %v", f)
	}
	values, _ := s["enum"].([]any)
	for _, v := range values {
		if _, text := v.(string); !text {
			say("its enum holds %v", v)
		}
	}
	if text, _ := s["description"].(string); len(text) > 1024 {
		say("its description has %d bytes", len(text))
	}
	for _, word := range []string{"items", "additionalProperties"} {
		if _, closed := s[word].(bool); s[word] != nil && !(closed && word == "additionalProperties") {
			inner(word, s[word])
		}
	}
	for i, alternative := range alternatives {
		if a, ok := alternative.(map[string]any); ok && a["type"] == "null" {
			if len(a) > 1 || i == 0 || i+1 < len(alternatives) {
				say("null is not the last of its alternatives, or has rules")
			}
			continue
		}
		inner("anyOf", alternative)
	}
	return findings
}

// lintObject looks at what only objects have. A map of anything is open and has no properties; all others are closed.
func lintObject(at string, s map[string]any) (findings []string) {
	say := func(format string, args ...any) { findings = append(findings, at+": "+fmt.Sprintf(format, args...)) }
	properties, _ := s["properties"].(map[string]any)
	switch more := s["additionalProperties"].(type) {
	case bool:
		if more && properties != nil {
			say("it is open")
		}
	case nil:
		say("it is open")
	}
	required, _ := s["required"].([]any)
	for _, name := range required {
		if text, _ := name.(string); properties[text] == nil {
			say("it requires %v, which it does not have", name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		if !propertyName.MatchString(name) {
			say("a property is called %q", name)
		}
		p, ok := properties[name].(map[string]any)
		if !ok {
			say("%s is no schema", name)
			continue
		}
		if text, _ := p["description"].(string); strings.TrimSpace(text) == "" {
			say("%s has no description", name)
		}
		findings = append(findings, LintSchema(at+"."+name, p)...)
	}
	return findings
}
