package kit

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
	validator "github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"

	"switchboard/internal/fault"
)

// explain turns what the validator found into one sentence: the first problem, an unknown name before anything else,
// because a misspelt argument is also a missing one.
func (in *input) explain(v *validator.ValidationError) *fault.Error {
	found := leaves(v)
	rank := func(e *validator.ValidationError) int {
		switch e.ErrorKind.(type) {
		case *kind.AdditionalProperties:
			return 0
		case *kind.Required:
			return 1
		}
		return 2
	}
	first := slices.MinFunc(found, func(a, b *validator.ValidationError) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), slices.Compare(a.InstanceLocation, b.InstanceLocation), strings.Compare(a.SchemaURL, b.SchemaURL))
	})
	at := first.InstanceLocation
	if _, names := first.ErrorKind.(*kind.PropertyNames); names {
		at = in.stated(first.SchemaURL)
	}
	node := in.part(first.SchemaURL)
	switch k := first.ErrorKind.(type) {
	case *kind.AdditionalProperties:
		return in.unknown(at, node, slices.Min(k.Properties))
	case *kind.Required:
		missing := k.Missing[0]
		for _, known := range names(node) {
			if slices.Contains(k.Missing, known) {
				missing = known
				break
			}
		}
		return invalid(in.place(below(at, missing)), "is required: "+in.expects(node.Properties[missing]))
	case *kind.PropertyNames:
		return invalid(in.place(at), "each name in it must be "+in.expects(node.PropertyNames))
	case *kind.Type:
		return invalid(in.place(at), "must be "+in.expects(node)+", not "+jsonWord(k.Got))
	}
	return invalid(in.place(at), "must be "+in.expects(node))
}

// leaves are the problems themselves, without the keywords that only say that something below them failed.
func leaves(v *validator.ValidationError) []*validator.ValidationError {
	switch v.ErrorKind.(type) {
	case *kind.PropertyNames:
		return []*validator.ValidationError{v}
	case *kind.AnyOf:
		if found := meant(v); found != nil {
			return found
		}
		return []*validator.ValidationError{v}
	}
	if len(v.Causes) == 0 {
		return []*validator.ValidationError{v}
	}
	var out []*validator.ValidationError
	for _, cause := range v.Causes {
		out = append(out, leaves(cause)...)
	}
	return out
}

// meant is what is wrong with the alternative that was meant: the one whose kind of value came, with the word in it
// that tells it from the others. It is nil where no single alternative was, or where its only fault is the value as a
// whole: then the value is none of them.
func meant(v *validator.ValidationError) (found []*validator.ValidationError) {
	for _, alternative := range v.Causes {
		wrong, other := leaves(alternative), false
		whole := len(wrong) > 0
		for _, leaf := range wrong {
			here := len(leaf.InstanceLocation) == len(v.InstanceLocation)
			switch k := leaf.ErrorKind.(type) {
			case *kind.Type:
				other = other || here
			case *kind.Enum:
				other = other || len(k.Want) == 1
			case *kind.Const:
				other = true
			case *kind.Required, *kind.AdditionalProperties, *kind.PropertyNames:
				here = false
			}
			whole = whole && here
		}
		if other || whole {
			continue
		}
		if found != nil {
			return nil
		}
		found = wrong
	}
	return found
}

// part is the part of the schema that an error of the validator points at.
func (in *input) part(url string) *jsonschema.Schema {
	_, pointer, _ := strings.Cut(url, "#")
	tokens := strings.Split(strings.TrimPrefix(pointer, "/"), "/")
	s := in.root
	for i := 0; i < len(tokens) && s != nil; i++ {
		switch tokens[i] {
		case "properties":
			i++
			s = s.Properties[tokens[i]]
		case "anyOf":
			i++
			n, err := strconv.Atoi(tokens[i])
			if err != nil || n >= len(s.AnyOf) {
				return &jsonschema.Schema{}
			}
			s = s.AnyOf[n]
		case "items":
			s = s.Items
		case "additionalProperties":
			s = s.AdditionalProperties
		}
	}
	if s == nil {
		return &jsonschema.Schema{}
	}
	return s
}

// names are the arguments that an object has, in the order of its fields where they are known.
func names(s *jsonschema.Schema) []string {
	if len(s.PropertyOrder) > 0 {
		return s.PropertyOrder
	}
	return slices.Sorted(maps.Keys(s.Properties))
}

// node finds the schema of a place in the arguments. Where the schema does not say, it is the empty one.
func (in *input) node(path []string) *jsonschema.Schema {
	s := in.root
	for _, key := range path {
		s = holding(s, key)
		switch p := s.Properties[key]; {
		case p != nil:
			s = p
		case s.Items != nil:
			s = s.Items
		case s.AdditionalProperties != nil:
			s = s.AdditionalProperties
		default:
			return &jsonschema.Schema{}
		}
	}
	return s
}

// holding is the alternative of a schema that knows a key, the first where none does.
func holding(s *jsonschema.Schema, key string) *jsonschema.Schema {
	if len(s.AnyOf) == 0 {
		return s
	}
	for _, alternative := range s.AnyOf {
		if alternative.Properties[key] != nil {
			return alternative
		}
	}
	return s.AnyOf[0]
}

// stated is where in the arguments a part of the schema applies. The validator reports a wrong place for the names in
// a map (it does not copy the path), but the right part of the schema.
func (in *input) stated(url string) []string {
	_, pointer, _ := strings.Cut(url, "#/")
	tokens := strings.Split(pointer, "/")
	var path []string
	for i := 0; i+1 < len(tokens); i++ {
		switch tokens[i] {
		case "properties":
			i++
			path = append(path, tokens[i])
		case "anyOf":
			i++
		case "items":
			path = append(path, "*") // which one is not known
		}
	}
	return path
}

// place writes a path as a reader would: window.days[0]. Keys that the schema does not know are what the client
// wrote, so they are repeated only where they look like a name.
func (in *input) place(path []string) string {
	var b strings.Builder
	for i, key := range path {
		parent := holding(in.node(path[:i]), key)
		switch {
		case parent.Type == "array":
			n, err := strconv.Atoi(key)
			if err != nil {
				return b.String()
			}
			fmt.Fprintf(&b, "[%d]", n)
		case parent.Properties[key] != nil || plain.MatchString(key):
			if b.Len() > 0 {
				b.WriteByte('.')
			}
			b.WriteString(key)
		default:
			return b.String()
		}
	}
	return b.String()
}

// plain is a name that may be repeated in a message: no phone number, address or sentence looks like it.
var plain = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_]{0,39}$`)

// unknown refuses an argument that does not exist and names the one that was probably meant.
func (in *input) unknown(at []string, node *jsonschema.Schema, name string) *fault.Error {
	subject := "one of the names"
	if plain.MatchString(name) {
		subject = "`" + name + "`"
	}
	known := names(node)
	hint := "it takes " + list(known, "and")
	if near := nearest(name, known); near != "" {
		hint = "did you mean `" + near + "`?"
	} else if len(known) == 0 {
		hint = "it takes none"
	}
	return invalid(cmp.Or(in.place(at), "arguments"), subject+" is not known; "+hint)
}

// expects says in words what a schema wants.
func (in *input) expects(s *jsonschema.Schema) string {
	if said := in.says[s]; said != "" {
		return said
	}
	if len(s.AnyOf) > 0 {
		var words []string
		for _, alternative := range s.AnyOf {
			words = append(words, in.expects(alternative))
		}
		return strings.Join(words, " or ")
	}
	if s.Const != nil {
		return fmt.Sprintf("the word `%v`", *s.Const)
	}
	if len(s.Enum) > 0 {
		var words []string
		for _, v := range s.Enum {
			words = append(words, fmt.Sprint(v))
		}
		if len(words) == 1 {
			return list(words, "or")
		}
		return "one of " + list(words, "or")
	}
	switch s.Type {
	case "integer":
		return "a whole number" + between(s.Minimum, s.Maximum)
	case "number":
		return "a number" + between(s.Minimum, s.Maximum)
	case "boolean":
		return "true or false"
	case "null":
		return "null"
	case "array":
		return "a list" + size(s.MinItems, s.MaxItems, "item")
	case "object":
		if known := names(s); len(known) > 0 {
			return "an object with " + list(known, "and")
		}
		return "an object" + size(s.MinProperties, s.MaxProperties, "name")
	case "string":
		return text(s)
	}
	return "something else"
}

func text(s *jsonschema.Schema) string {
	switch s.Format {
	case "email":
		return "an e-mail address" + size(nil, s.MaxLength, "character")
	case "uri":
		return "a URL" + size(nil, s.MaxLength, "character")
	case "date-time":
		return "a date and time such as 2027-01-31T09:00:00Z"
	}
	words := "text" + size(s.MinLength, s.MaxLength, "character")
	if s.Pattern != "" {
		words += " that matches " + s.Pattern
	}
	return words
}

func between(low, high *float64) string {
	number := func(n float64) string { return strconv.FormatFloat(n, 'f', -1, 64) }
	switch {
	case low != nil && high != nil:
		return " from " + number(*low) + " to " + number(*high)
	case low != nil:
		return " of at least " + number(*low)
	case high != nil:
		return " of at most " + number(*high)
	}
	return ""
}

func size(low, high *int, unit string) string {
	count := func(n int) string {
		if n == 1 {
			return "1 " + unit
		}
		return strconv.Itoa(n) + " " + unit + "s"
	}
	switch {
	case low != nil && high != nil && *low == *high:
		return " of " + count(*low)
	case low != nil && *low > 0 && high != nil:
		return " of " + strconv.Itoa(*low) + " to " + count(*high)
	case high != nil:
		return " of at most " + count(*high)
	case low != nil && *low > 0:
		return " of at least " + count(*low)
	}
	return ""
}

func jsonWord(t string) string {
	switch t {
	case "string":
		return "text"
	case "array":
		return "a list"
	case "object":
		return "an object"
	case "number":
		return "a number"
	case "boolean":
		return "true or false"
	}
	return t
}

// list writes names as `a`, `b` or `c`.
func list(names []string, conjunction string) string {
	quoted := make([]string, len(names))
	for i, n := range names {
		quoted[i] = "`" + n + "`"
	}
	if len(quoted) < 2 {
		return strings.Join(quoted, "")
	}
	last := len(quoted) - 1
	return strings.Join(quoted[:last], ", ") + " " + conjunction + " " + quoted[last]
}

// nearest is the name that is one or two slips away from what was written, "" when none is.
func nearest(written string, names []string) string {
	best, slips := "", 3
	for _, n := range names {
		if d := distance(strings.ToLower(written), strings.ToLower(n)); d < slips && d < len(n) {
			best, slips = n, d
		}
	}
	return best
}

// distance counts the insertions, deletions and replacements between two words.
func distance(a, b string) int {
	if len(a) > 64 {
		return len(a)
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
