package kit

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/jsonschema-go/jsonschema"
	validator "github.com/santhosh-tekuri/jsonschema/v6"
)

// The schema of a tool is its input struct. Per field:
//
//	json:"limit"        the argument's name
//	doc:"…"             what it means, for a model; every argument has one
//	min:"1" max:"100"   bounds: of a number, of a text's characters, of a list's or a map's entries
//	pattern:"^…$"       for a text
//	format:"email"      for a text, enforced, not only stated
//	enum:"a,b"          for a text, a whole number or a truth value
//	default:"25"        JSON, or the bare text for a text
//	items:"min=1 max=64", keys:"max=64", values:"max=500"    the same rules for what a list or a map holds
//	says:"a time of day such as 09:00"                       how a refusal names what it expects
//
// An argument is required unless its type or a tag says that it may be absent. The types are a pointer and an Optional,
// which may also be null; the tags are a default, and omitzero or omitempty where nothing and the zero value mean the
// same.
//
// An embedded struct lends its fields. What many tools would have to repeat, such as Phone and Email, a type says itself
// by being a Described, and what is one of several things by being a Union. What a map holds may be anything (any or
// json.RawMessage); no argument and no item of a list may, because some hosts refuse a tool that has one without a type.
//
// reflect walks the types here, and not the inference of the jsonschema package, because that makes slices nullable,
// raw JSON a list of bytes and a time a text without a format, and knows no rule but the description.

// Described is a type that says its own schema. Its objects must be closed.
type Described interface {
	JSONSchema() *jsonschema.Schema
}

// Speaking is a Described type that says how a refusal names what it expects.
type Speaking interface {
	Says() string
}

// Union is a type that is one of several, for each of which OneOf returns a value: structs that differ in what they
// require or in a field whose enum has one word, or values of different kinds. Which one came, its own UnmarshalJSON
// finds out.
type Union interface{ OneOf() []any }

// Optional is an argument that may be absent, null or a value, which mean different things: leave it, clear it, set it.
type Optional[T any] struct {
	Set   bool // it was there
	Value *T   // nil when it was null
}

// UnmarshalJSON is called for null too, and not for an absent argument: that is what tells them apart.
func (o *Optional[T]) UnmarshalJSON(b []byte) error {
	o.Set, o.Value = true, nil
	return json.Unmarshal(b, &o.Value)
}

// MarshalJSON writes an absent argument as null; omitzero keeps it absent.
func (o Optional[T]) MarshalJSON() ([]byte, error) { return json.Marshal(o.Value) }

// IsZero makes an absent Optional disappear under omitzero.
func (o Optional[T]) IsZero() bool { return !o.Set }

func (Optional[T]) inner() reflect.Type { return reflect.TypeFor[T]() }

type optional interface{ inner() reflect.Type }

// closed is the schema that no value fits.
func closed() *jsonschema.Schema { return &jsonschema.Schema{Not: &jsonschema.Schema{}} }

// builder makes the schema of one input struct.
type builder struct {
	says map[*jsonschema.Schema]string
}

func (b *builder) object(t reflect.Type) (*jsonschema.Schema, error) {
	s := &jsonschema.Schema{Type: "object", Properties: map[string]*jsonschema.Schema{}, AdditionalProperties: closed()}
	return s, b.fields(s, t)
}

var argumentRule = regexp.MustCompile(`^[A-Za-z0-9_]{1,64}$`)

func (b *builder) fields(s *jsonschema.Schema, t reflect.Type) error {
	for i := range t.NumField() {
		f := t.Field(i)
		if f.Anonymous && f.Tag.Get("json") == "" {
			if err := b.fields(s, f.Type); err != nil {
				return err
			}
			continue
		}
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if !f.IsExported() || !argumentRule.MatchString(name) {
			return fmt.Errorf("field %s: its json tag must give a name that matches %s", f.Name, argumentRule)
		}
		if s.Properties[name] != nil {
			return fmt.Errorf("two arguments are called %q", name)
		}
		p, err := b.field(f)
		if err != nil {
			return fmt.Errorf("argument %s: %w", name, err)
		}
		s.Properties[name] = p
		s.PropertyOrder = append(s.PropertyOrder, name)
		if !mayBeAbsent(f.Type, options) && p.Default == nil {
			s.Required = append(s.Required, name)
		}
	}
	return nil
}

// mayBeAbsent reports whether a field of the type, with these options in its json tag, can do without an argument.
func mayBeAbsent(t reflect.Type, options string) bool {
	return t.Kind() == reflect.Pointer || t.Implements(reflect.TypeFor[optional]()) ||
		strings.Contains(options, "omitzero") || strings.Contains(options, "omitempty")
}

func (b *builder) field(f reflect.StructField) (*jsonschema.Schema, error) {
	s, err := b.of(f.Type)
	if err != nil {
		return nil, err
	}
	value := notNull(s) // the rules are about the value, the words about the argument
	rules := map[string]string{}
	for _, k := range []string{"min", "max", "pattern", "format", "enum"} {
		if v, ok := f.Tag.Lookup(k); ok {
			rules[k] = v
		}
	}
	if err := constrain(value, rules); err != nil {
		return nil, err
	}
	for key, part := range map[string]**jsonschema.Schema{"items": &value.Items, "keys": &value.PropertyNames, "values": &value.AdditionalProperties} {
		if err := constrainPart(f.Tag.Get(key), key, part); err != nil {
			return nil, err
		}
	}
	if said := f.Tag.Get("says"); said != "" {
		b.says[value] = said
	}
	if s.Description = f.Tag.Get("doc"); s.Description == "" {
		return nil, fmt.Errorf("it has no doc tag")
	}
	if d, ok := f.Tag.Lookup("default"); ok {
		if value.Type == "string" {
			quoted, err := json.Marshal(d)
			if err != nil {
				return nil, err
			}
			d = string(quoted)
		}
		if !json.Valid([]byte(d)) {
			return nil, fmt.Errorf("its default is not JSON")
		}
		s.Default = json.RawMessage(d)
		return s, valid(s, s.Default)
	}
	return s, nil
}

// valid holds a default to its own schema.
func valid(s *jsonschema.Schema, value json.RawMessage) error {
	text, err := json.Marshal(s)
	if err != nil {
		return err
	}
	rules, err := compile(text)
	if err != nil {
		return err
	}
	v, err := validator.UnmarshalJSON(bytes.NewReader(value))
	if err != nil {
		return err
	}
	if rules.Validate(v) != nil {
		return fmt.Errorf("its default is not valid")
	}
	return nil
}

// constrainPart applies rules written as "min=1 max=64" to what a list or a map holds.
func constrainPart(text, key string, part **jsonschema.Schema) error {
	if text == "" {
		return nil
	}
	if *part == nil && key == "keys" {
		*part = &jsonschema.Schema{Type: "string"}
	}
	if *part == nil {
		return fmt.Errorf("it has the tag %q and holds no such thing", key)
	}
	rules := map[string]string{}
	for _, rule := range strings.Fields(text) {
		k, v, _ := strings.Cut(rule, "=")
		rules[k] = v
	}
	return constrain(*part, rules)
}

func constrain(s *jsonschema.Schema, rules map[string]string) error {
	for k, v := range rules {
		switch {
		case k == "min" || k == "max":
			if err := bound(s, k, v); err != nil {
				return err
			}
		case k == "enum":
			if err := enumerate(s, v); err != nil {
				return err
			}
		case s.Type != "string":
			return fmt.Errorf("the rule %s is for texts", k)
		case k == "pattern":
			if _, err := regexp.Compile(v); err != nil {
				return err
			}
			s.Pattern = v
		case k == "format":
			s.Format = v
		default:
			return fmt.Errorf("unknown rule %q", k)
		}
	}
	return nil
}

// enumerate sets the values that a schema allows, written side by side.
func enumerate(s *jsonschema.Schema, words string) error {
	for word := range strings.SplitSeq(words, ",") {
		var v any = word
		var err error
		switch s.Type {
		case "string":
		case "integer":
			v, err = strconv.ParseInt(word, 10, 64)
		case "boolean":
			v, err = strconv.ParseBool(word)
		default:
			err = fmt.Errorf("the rule enum is for texts, whole numbers and truth values")
		}
		if err != nil {
			return err
		}
		s.Enum = append(s.Enum, v)
	}
	return nil
}

func bound(s *jsonschema.Schema, side, text string) error {
	n, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return fmt.Errorf("its %s is not a number", side)
	}
	count := int(n)
	at := func(low, high **int) {
		if side == "min" {
			*low = &count
		} else {
			*high = &count
		}
	}
	switch s.Type {
	case "integer", "number":
		if side == "min" {
			s.Minimum = &n
		} else {
			s.Maximum = &n
		}
	case "string":
		at(&s.MinLength, &s.MaxLength)
	case "array":
		at(&s.MinItems, &s.MaxItems)
	case "object":
		at(&s.MinProperties, &s.MaxProperties)
	default:
		return fmt.Errorf("it has a %s and no size", side)
	}
	return nil
}

// of is the schema of a type without its tags.
func (b *builder) of(t reflect.Type) (*jsonschema.Schema, error) {
	if t.Kind() == reflect.Pointer {
		return b.of(t.Elem())
	}
	switch v := reflect.Zero(t).Interface().(type) {
	case Described:
		s := v.JSONSchema()
		if open := openIn(s); open {
			return nil, fmt.Errorf("%s describes an object that is not closed", t)
		}
		if speaks, ok := v.(Speaking); ok {
			b.says[s] = speaks.Says()
		}
		return s, nil
	case optional:
		s, err := b.of(v.inner())
		if err != nil || len(s.AnyOf) == 0 {
			return &jsonschema.Schema{AnyOf: []*jsonschema.Schema{s, {Type: "null"}}}, err
		}
		s.AnyOf = append(s.AnyOf, &jsonschema.Schema{Type: "null"})
		return s, nil
	case Union:
		s := &jsonschema.Schema{}
		for _, alternative := range v.OneOf() {
			one, err := b.of(reflect.TypeOf(alternative))
			if err != nil {
				return nil, err
			}
			s.AnyOf = append(s.AnyOf, one)
		}
		return s, nil
	case time.Time:
		return &jsonschema.Schema{Type: "string", Format: "date-time"}, nil
	case json.RawMessage:
		return nil, fmt.Errorf("only what a map holds can be anything")
	}
	switch t.Kind() {
	case reflect.Bool:
		return &jsonschema.Schema{Type: "boolean"}, nil
	case reflect.String:
		return &jsonschema.Schema{Type: "string"}, nil
	case reflect.Int, reflect.Int64:
		return &jsonschema.Schema{Type: "integer"}, nil
	case reflect.Float64:
		return &jsonschema.Schema{Type: "number"}, nil
	case reflect.Struct:
		return b.object(t)
	case reflect.Slice:
		items, err := b.of(t.Elem())
		return &jsonschema.Schema{Type: "array", Items: items}, err
	case reflect.Map:
		if t.Key().Kind() == reflect.String {
			if e := t.Elem(); e.Kind() == reflect.Interface || e == reflect.TypeFor[json.RawMessage]() {
				return &jsonschema.Schema{Type: "object", AdditionalProperties: &jsonschema.Schema{}}, nil
			}
			values, err := b.of(t.Elem())
			return &jsonschema.Schema{Type: "object", AdditionalProperties: values}, err
		}
	}
	return nil, fmt.Errorf("no argument can be a %s", t)
}

// openIn reports whether a schema has an object with named properties that also takes others. A name in other letters
// would pass it unseen, and encoding/json would fold it onto the property.
func openIn(s *jsonschema.Schema) bool {
	if s == nil {
		return false
	}
	more := s.AdditionalProperties
	if len(s.Properties) > 0 && (more == nil || more.Not == nil) || slices.ContainsFunc(s.AnyOf, openIn) || openIn(s.Items) || openIn(more) {
		return true
	}
	for _, p := range s.Properties {
		if openIn(p) {
			return true
		}
	}
	return false
}

// portable copies a schema without what some hosts refuse a whole list of tools for: names of map keys, formats
// other than date-time, constants, exclusive bounds, enums of anything but texts, which the description then lists.
// Validation enforces those anyway.
//
// A value or null stays `anyOf` with the type null, below the root and with nothing but words beside it. Every host that
// is known to refuse a nullable argument refuses the other ways to say it: a list of types (Gemini by way of Copilot and
// of its own command line), `nullable` (which is OpenAPI and says nothing to JSON Schema, so that a client which checks
// its own calls would not let null through), or a type beside the alternatives.
func portable(s *jsonschema.Schema) *jsonschema.Schema {
	if s == nil {
		return nil
	}
	c := *s
	c.PropertyNames, c.ExclusiveMinimum, c.ExclusiveMaximum, c.Const = nil, nil, nil, nil
	if c.Format != "date-time" {
		c.Format = ""
	}
	if s.Const != nil && c.Enum == nil {
		c.Enum = []any{*s.Const}
	}
	for _, v := range c.Enum {
		if _, text := v.(string); !text {
			c.Description = strings.TrimSpace(c.Description + " Allowed: " + words(c.Enum) + ".")
			c.Enum = nil
			break
		}
	}
	if s.Properties != nil {
		c.Properties = make(map[string]*jsonschema.Schema, len(s.Properties))
		for name, p := range s.Properties {
			c.Properties[name] = portable(p)
		}
	}
	c.Items, c.AdditionalProperties = portable(s.Items), portable(s.AdditionalProperties)
	c.AnyOf = nil
	for _, alternative := range s.AnyOf {
		c.AnyOf = append(c.AnyOf, portable(alternative))
	}
	return &c
}

// words writes allowed values as 30, 60.
func words(values []any) string {
	var out []string
	for _, v := range values {
		out = append(out, fmt.Sprint(v))
	}
	return strings.Join(out, ", ")
}
