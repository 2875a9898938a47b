package kit

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/big"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
	validator "github.com/santhosh-tekuri/jsonschema/v6"

	"switchboard/internal/fault"
)

// input is what a tool takes: its schema in both forms, and the way from what a client sent to what the handler gets.
type input struct {
	root           *jsonschema.Schema
	says           map[*jsonschema.Schema]string
	alternatives   map[*jsonschema.Schema][]*validator.Schema // of each union
	rules          *validator.Schema
	full, portable json.RawMessage
	confirms       bool
}

const confirmArgument = "confirm"

func newInput[In any](confirms bool) (*input, error) {
	t := reflect.TypeFor[In]()
	if t.Kind() != reflect.Struct {
		return nil, fmt.Errorf("its input must be a struct")
	}
	b := builder{says: map[*jsonschema.Schema]string{}}
	root, err := b.object(t)
	if err != nil {
		return nil, err
	}
	if root.Properties[confirmArgument] != nil {
		return nil, fmt.Errorf("the argument %s is added by kit.Confirm", confirmArgument)
	}
	if confirms {
		root.Properties[confirmArgument] = &jsonschema.Schema{Type: "boolean", Default: json.RawMessage("false"),
			Description: "true once the user has agreed to exactly this call."}
		root.PropertyOrder = append(root.PropertyOrder, confirmArgument)
	}
	in := &input{root: root, says: b.says, confirms: confirms, alternatives: map[*jsonschema.Schema][]*validator.Schema{}}
	if err := alternativesOf(root, in.alternatives); err != nil {
		return nil, err
	}
	if in.full, err = json.Marshal(root); err != nil {
		return nil, err
	}
	if in.portable, err = json.Marshal(portable(root)); err != nil {
		return nil, err
	}
	in.rules, err = compile(in.full)
	return in, err
}

func compile(schema []byte) (*validator.Schema, error) {
	doc, err := validator.UnmarshalJSON(bytes.NewReader(schema))
	if err != nil {
		return nil, err
	}
	c := validator.NewCompiler()
	c.DefaultDraft(validator.Draft2020)
	c.AssertFormat()
	if err := c.AddResource("input.json", doc); err != nil {
		return nil, err
	}
	return c.Compile("input.json")
}

// arguments are what a client sent, checked and made canonical: texts that hold what is wanted are read, defaults
// filled in, keys sorted, a repeated key reduced to its last value, whole numbers written as digits and others as
// short as they go. Two calls that mean the same have the same bytes.
type arguments struct {
	canonical []byte // without `confirm`
	confirmed bool
	assented  string // the key of a Yes, "" where none was needed
}

// digest stands for the arguments where they are compared.
func (a arguments) digest() string { return digest(a.canonical) }

// read checks what a client sent. The error is a *fault.Error in words that never repeat a value.
func (in *input) read(args []byte) (arguments, error) {
	if args = bytes.TrimSpace(args); len(args) == 0 || string(args) == "null" {
		args = []byte("{}") // how clients send a call without arguments
	}
	tree, err := validator.UnmarshalJSON(bytes.NewReader(args))
	if err != nil {
		return arguments{}, invalid("", "must be a JSON object")
	}
	if err := in.sane(nil, tree); err != nil {
		return arguments{}, err
	}
	if tree, err = (&coercion{in, MaxValues}).coerce(in.root, tree, nil); err != nil {
		return arguments{}, err
	}
	if err := in.rules.Validate(tree); err != nil {
		var v *validator.ValidationError
		if !errors.As(err, &v) {
			return arguments{}, fmt.Errorf("validating arguments: %w", err)
		}
		return arguments{}, in.explain(v)
	}
	if tree, err = in.fill(in.root, tree, nil); err != nil {
		return arguments{}, err
	}
	object := tree.(map[string]any)
	a := arguments{}
	if in.confirms {
		a.confirmed, _ = object[confirmArgument].(bool)
		delete(object, confirmArgument)
	}
	a.canonical, err = json.Marshal(object)
	return a, err
}

// sane refuses what is valid JSON and no database or number can hold.
func (in *input) sane(path []string, v any) error {
	switch v := v.(type) {
	case string:
		if strings.ContainsRune(v, 0) {
			return invalid(in.place(path), "must not contain the character U+0000")
		}
	case json.Number:
		if !ordinary(string(v)) {
			return invalid(in.place(path), "must be a number of ordinary size")
		}
	case []any:
		for i, item := range v {
			if err := in.sane(below(path, strconv.Itoa(i)), item); err != nil {
				return err
			}
		}
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			if err := in.sane(path, key); err != nil {
				return err
			}
			if err := in.sane(below(path, key), v[key]); err != nil {
				return err
			}
		}
	}
	return nil
}

// ordinary reports whether a number fits into a float64, without a detour over a power of ten that would take minutes
// to write out: 3e-999999 is 0 as a float and a million digits as a fraction, which the schema library makes of it.
func ordinary(number string) bool {
	if _, err := strconv.ParseFloat(number, 64); err != nil || len(number) > 64 {
		return false
	}
	at := strings.IndexAny(number, "eE")
	if at < 0 {
		return true
	}
	exponent, err := strconv.Atoi(number[at+1:])
	return err == nil && exponent >= -400 && exponent <= 400
}

// below is the path of what path holds under a key.
func below(path []string, key string) []string { return append(path[:len(path):len(path)], key) }

// fill adds the defaults of what is absent, in nested objects too, and writes whole numbers as digits: 1e2 is valid
// where a whole number is asked for, and encoding/json would refuse it. Whole numbers stay text all the way, so that
// 9007199254740993 arrives as itself. Each call decodes its own defaults; nothing is shared between calls.
func (in *input) fill(s *jsonschema.Schema, v any, path []string) (any, error) {
	for i, alternative := range s.AnyOf {
		if in.alternatives[s][i].Validate(v) == nil {
			return in.fill(alternative, v, path)
		}
	}
	var err error
	switch v := v.(type) {
	case map[string]any:
		for key, p := range s.Properties {
			if _, there := v[key]; !there && p.Default != nil {
				if v[key], err = validator.UnmarshalJSON(bytes.NewReader(p.Default)); err != nil {
					return nil, err
				}
			}
		}
		for key := range v {
			p := s.Properties[key]
			if p == nil {
				p = s.AdditionalProperties
			}
			if p == nil {
				continue
			}
			if v[key], err = in.fill(p, v[key], below(path, key)); err != nil {
				return nil, err
			}
		}
	case []any:
		for i := range v {
			if s.Items == nil {
				break
			}
			if v[i], err = in.fill(s.Items, v[i], below(path, strconv.Itoa(i))); err != nil {
				return nil, err
			}
		}
	case json.Number:
		if s.Type == "integer" || s.Type == "number" {
			return in.number(s, v, path)
		}
	}
	return v, nil
}

// number writes a number the one way it is written in canonical arguments.
func (in *input) number(s *jsonschema.Schema, v json.Number, path []string) (any, error) {
	n, ok := new(big.Rat).SetString(string(v))
	switch {
	case ok && n.IsInt() && n.Num().IsInt64():
		return json.Number(n.Num().String()), nil
	case s.Type == "number":
		return v.Float64()
	}
	return nil, invalid(in.place(path), "must be "+in.expects(s))
}

// invalid refuses a field in one sentence, "" being the arguments as a whole.
func invalid(field, sentence string) *fault.Error {
	field = cmp.Or(field, "arguments")
	if !strings.HasSuffix(sentence, "?") {
		sentence += "."
	}
	return fault.New(fault.InvalidRequest, "%s: %s", field, sentence).With("field", field)
}
