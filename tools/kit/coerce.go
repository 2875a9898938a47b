package kit

import (
	"bytes"
	"encoding/json"
	"regexp"
	"strconv"

	"github.com/google/jsonschema-go/jsonschema"
	validator "github.com/santhosh-tekuri/jsonschema/v6"
)

// coercion is one reading of arguments.
type coercion struct {
	*input
	room int // how many values the texts of the arguments may still turn into
}

// coerce undoes what some hosts do to arguments: they send a number, a truth value, a list or an object as a text that
// holds its JSON ("10", "true", "[\"a\"]"), because their models write all arguments as text. Such a text is read only
// where the schema has no place for a text and wants exactly what the text holds; a text stays a text wherever one may
// stand. What is read is read like the rest of the arguments, so that "10" and 10 are one call. Anything that would
// take a guess ("ten", "True", "1", " 10 ", "1e2", a lone word for a list of one) is left to be refused.
//
// The argument `confirm` is never read from a text: whoever watches calls for a person, a hook of a host or a proxy,
// looks for the value true, and there must be no other way to write it.
func (in *coercion) coerce(s *jsonschema.Schema, v any, path []string) (any, error) {
	if len(s.AnyOf) > 0 {
		return in.coerceUnion(s, v, path)
	}
	var err error
	if text, ok := v.(string); ok && s.Type != "string" && s != in.root {
		if v, ok = in.parsed(text, s.Type); !ok {
			return text, nil
		}
		if err := in.sane(path, v); err != nil {
			return nil, err
		}
	}
	switch v := v.(type) {
	case map[string]any:
		for key := range v {
			p := s.Properties[key]
			if p == nil {
				p = s.AdditionalProperties
			}
			if p == nil || in.confirms && s == in.root && key == confirmArgument {
				continue
			}
			if v[key], err = in.coerce(p, v[key], below(path, key)); err != nil {
				return nil, err
			}
		}
	case []any:
		for i := 0; i < len(v) && s.Items != nil; i++ {
			if v[i], err = in.coerce(s.Items, v[i], below(path, strconv.Itoa(i))); err != nil {
				return nil, err
			}
		}
	}
	return v, nil
}

// coerceUnion leaves a value alone that fits as it is, and else takes the first alternative that it can be made to fit.
func (in *coercion) coerceUnion(s *jsonschema.Schema, v any, path []string) (any, error) {
	if value := notNull(s); value != s && (v == nil || value.Type == "string") {
		return v, nil
	} else if value != s && v != "null" {
		return in.coerce(value, v, path)
	}
	_, isText := v.(string)
	for i, alternative := range s.AnyOf {
		if isText && alternative.Type == "string" || in.alternatives[s][i].Validate(v) == nil {
			return v, nil
		}
	}
	room := in.room
	for i, alternative := range s.AnyOf {
		in.room = room // what did not fit is not kept
		c, err := in.coerce(alternative, clone(v), path)
		if err != nil {
			return nil, err
		}
		if in.alternatives[s][i].Validate(c) == nil {
			return c, nil
		}
	}
	return v, nil
}

// decimal is a number as JSON has it, without an exponent: no host writes one out that way.
var decimal = regexp.MustCompile(`^-?(0|[1-9][0-9]*)(\.[0-9]+)?$`)

// parsed is the value whose JSON a text is, where a value of the type is wanted.
func (in *coercion) parsed(text, wanted string) (any, bool) {
	switch wanted {
	case "integer", "number":
		return json.Number(text), decimal.MatchString(text)
	case "boolean":
		return text == "true", text == "true" || text == "false"
	case "null":
		return nil, text == "null"
	case "array", "object":
		opens, closes := "{", "}"
		if wanted == "array" {
			opens, closes = "[", "]"
		}
		if len(text) < 2 || text[:1] != opens || text[len(text)-1:] != closes {
			return nil, false
		}
		n, depth := Values([]byte(text))
		if in.room -= n; in.room < 0 || depth > MaxDepth {
			return nil, false
		}
		v, err := validator.UnmarshalJSON(bytes.NewReader([]byte(text)))
		return v, err == nil
	}
	return nil, false
}

// clone copies what coerce changes in its place.
func clone(v any) any {
	switch v := v.(type) {
	case map[string]any:
		c := make(map[string]any, len(v))
		for key, inner := range v {
			c[key] = clone(inner)
		}
		return c
	case []any:
		c := make([]any, len(v))
		for i, inner := range v {
			c[i] = clone(inner)
		}
		return c
	}
	return v
}

// alternativesOf compiles the alternatives of every union in a schema, for which one a value means is a question of
// its own. A value or null is no such question.
func alternativesOf(s *jsonschema.Schema, into map[*jsonschema.Schema][]*validator.Schema) error {
	if s == nil {
		return nil
	}
	for _, alternative := range s.AnyOf {
		text, err := json.Marshal(alternative)
		if err != nil {
			return err
		}
		rules, err := compile(text)
		if err != nil {
			return err
		}
		into[s] = append(into[s], rules)
		if err := alternativesOf(alternative, into); err != nil {
			return err
		}
	}
	for _, p := range s.Properties {
		if err := alternativesOf(p, into); err != nil {
			return err
		}
	}
	if err := alternativesOf(s.Items, into); err != nil {
		return err
	}
	return alternativesOf(s.AdditionalProperties, into)
}

// notNull is the schema of the value where a schema is of a value or null, and else the schema itself.
func notNull(s *jsonschema.Schema) *jsonschema.Schema {
	if len(s.AnyOf) == 2 && s.AnyOf[1].Type == "null" {
		return s.AnyOf[0]
	}
	return s
}
