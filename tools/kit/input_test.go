package kit

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/jsonschema-go/jsonschema"
)

type order struct {
	Phone  string            `json:"phone" pattern:"^\\+\\d+$" says:"a phone number such as +14155550123" doc:"Whom."`
	Second *Phone            `json:"second" doc:"Who else."`
	Note   Optional[string]  `json:"note" max:"10" doc:"Why."`
	Mail   Optional[string]  `json:"mail" format:"email" doc:"Where to."`
	Kind   string            `json:"kind,omitzero" enum:"small,large" doc:"How big."`
	Tags   []string          `json:"tags,omitzero" max:"3" items:"min=1 max=4" doc:"Labels."`
	Facts  map[string]string `json:"facts,omitzero" keys:"max=3" values:"max=5" doc:"Facts."`
	Window *window           `json:"window" doc:"When."`
	Big    int64             `json:"big,omitzero" doc:"A number."`
	Price  float64           `json:"price,omitzero" min:"0.5" doc:"How much."`
	After  *time.Time        `json:"after" doc:"Not before."`
	Rows   []window          `json:"rows,omitzero" max:"2" doc:"Several."`
	Words  []string          `json:"words" default:"[\"a\",\"b\"]" doc:"Words."`
	Any    map[string]any    `json:"any,omitzero" doc:"Anything."`
	Choice choice            `json:"choice,omitzero" doc:"One of two."`
	Page
}

type window struct {
	Days  []int `json:"days" min:"1" items:"min=0 max=6" doc:"Days."`
	Every int   `json:"every" default:"5" min:"1" doc:"How often."`
}

type choice struct{ Name string }

func (choice) JSONSchema() *jsonschema.Schema {
	word := any("word")
	return &jsonschema.Schema{Type: "object", Required: []string{"name"}, AdditionalProperties: closed(),
		Properties: map[string]*jsonschema.Schema{"name": {Type: "string", Const: &word, Description: "Its name."}}}
}

// ajar describes an object that takes more than it names.
type ajar struct{}

func (ajar) JSONSchema() *jsonschema.Schema {
	return &jsonschema.Schema{Type: "array", Items: &jsonschema.Schema{Type: "object", Properties: map[string]*jsonschema.Schema{"a": {Type: "string"}}}}
}

func orderInput(t *testing.T) *input {
	t.Helper()
	in, err := newInput[order](true)
	if err != nil {
		t.Fatal(err)
	}
	return in
}

func TestTheSchemaIsTheStruct(t *testing.T) {
	in := orderInput(t)
	type forms struct{ full, portable string }
	same := func(s string) forms { return forms{s, s} }
	window := `{"type":"object","properties":{
		"days":{"type":"array","description":"Days.","minItems":1,"items":{"type":"integer","minimum":0,"maximum":6}},
		"every":{"type":"integer","description":"How often.","default":5,"minimum":1}},"required":["days"],"additionalProperties":false`
	want := map[string]forms{
		"phone":  same(`{"type":"string","description":"Whom.","pattern":"^\\+\\d+$"}`),
		"second": same(`{"type":"string","description":"Who else.","pattern":"^\\+[1-9]\\d{6,14}$"}`),
		"note":   same(`{"description":"Why.","anyOf":[{"type":"string","maxLength":10},{"type":"null"}]}`),
		"mail":   {`{"description":"Where to.","anyOf":[{"type":"string","format":"email"},{"type":"null"}]}`, `{"description":"Where to.","anyOf":[{"type":"string"},{"type":"null"}]}`},
		"kind":   same(`{"type":"string","description":"How big.","enum":["small","large"]}`),
		"tags":   same(`{"type":"array","description":"Labels.","maxItems":3,"items":{"type":"string","minLength":1,"maxLength":4}}`),
		"facts":  {`{"type":"object","description":"Facts.","propertyNames":{"type":"string","maxLength":3},"additionalProperties":{"type":"string","maxLength":5}}`, `{"type":"object","description":"Facts.","additionalProperties":{"type":"string","maxLength":5}}`},
		"window": same(window + `,"description":"When."}`),
		"big":    same(`{"type":"integer","description":"A number."}`),
		"price":  same(`{"type":"number","description":"How much.","minimum":0.5}`),
		"after":  same(`{"type":"string","description":"Not before.","format":"date-time"}`),
		"rows":   same(`{"type":"array","description":"Several.","maxItems":2,"items":` + window + `}}`),
		"words":  same(`{"type":"array","description":"Words.","default":["a","b"],"items":{"type":"string"}}`),
		"any":    same(`{"type":"object","description":"Anything.","additionalProperties":true}`),
		"choice": {`{"type":"object","description":"One of two.","required":["name"],"additionalProperties":false,"properties":{"name":{"type":"string","description":"Its name.","const":"word"}}}`,
			`{"type":"object","description":"One of two.","required":["name"],"additionalProperties":false,"properties":{"name":{"type":"string","description":"Its name.","enum":["word"]}}}`},
		"limit":   same(`{"type":"integer","description":"How many to return at most, 1 to 100. Large ones make a page end earlier.","default":25,"minimum":1,"maximum":100}`),
		"cursor":  same(`{"type":"string","description":"The nextCursor of the page before. Leave it out for the first page.","maxLength":200}`),
		"confirm": same(`{"type":"boolean","description":"true once the user has agreed to exactly this call.","default":false}`),
	}
	tree := func(text []byte) (v any) {
		if err := json.Unmarshal(text, &v); err != nil {
			t.Fatal(err)
		}
		return v
	}
	full, portable := tree(in.full).(map[string]any), tree(in.portable).(map[string]any)
	for name, w := range want {
		if diff := cmp.Diff(tree([]byte(w.full)), full["properties"].(map[string]any)[name]); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
		if diff := cmp.Diff(tree([]byte(w.portable)), portable["properties"].(map[string]any)[name]); diff != "" {
			t.Errorf("%s, portable: %s", name, diff)
		}
	}
	for _, root := range []map[string]any{full, portable} {
		if root["type"] != "object" || root["additionalProperties"] != false || len(root["properties"].(map[string]any)) != len(want) ||
			!cmp.Equal(root["required"], []any{"phone"}) {
			t.Errorf("the root is %v", root)
		}
	}
}

func TestTheSchemaIsTheSameBytesEveryTimeInTheOrderOfTheFields(t *testing.T) {
	in := orderInput(t)
	for range 20 {
		if again := orderInput(t); !bytes.Equal(again.portable, in.portable) || !bytes.Equal(again.full, in.full) {
			t.Fatal("the schema differs from one making to the next")
		}
	}
	last := 0
	for _, name := range in.root.PropertyOrder {
		at := bytes.Index(in.portable, []byte(`"`+name+`":{`))
		if at < last {
			t.Errorf("%s is out of order", name)
		}
		last = at
	}
}

func TestValidArgumentsArriveAsTheyWereMeant(t *testing.T) {
	in := orderInput(t)
	for args, want := range map[string]string{
		`{"phone":"+1"}`:                                `{"limit":25,"phone":"+1","words":["a","b"]}`,
		`{"phone":"+1","confirm":true}`:                 `{"limit":25,"phone":"+1","words":["a","b"]}`,
		` {"phone":"+2","phone":"+1","words":[]} `:      `{"limit":25,"phone":"+1","words":[]}`,
		`{"phone":"+1","big":9007199254740993}`:         `{"big":9007199254740993,"limit":25,"phone":"+1","words":["a","b"]}`,
		`{"phone":"+1","limit":1e1,"big":-2.0}`:         `{"big":-2,"limit":10,"phone":"+1","words":["a","b"]}`,
		`{"phone":"+1","window":{"days":[0,6.0]}}`:      `{"limit":25,"phone":"+1","window":{"days":[0,6],"every":5},"words":["a","b"]}`,
		`{"phone":"+1","rows":[{"days":[1]}]}`:          `{"limit":25,"phone":"+1","rows":[{"days":[1],"every":5}],"words":["a","b"]}`,
		`{"phone":"+1","note":null}`:                    `{"limit":25,"note":null,"phone":"+1","words":["a","b"]}`,
		`{"phone":"+1","note":"[\"a\"]"}`:               `{"limit":25,"note":"[\"a\"]","phone":"+1","words":["a","b"]}`,
		`{"phone":"+1","any":{"x":[1,null]}}`:           `{"any":{"x":[1,null]},"limit":25,"phone":"+1","words":["a","b"]}`,
		`{"phone":"+1","choice":{"name":"word"}}`:       `{"choice":{"name":"word"},"limit":25,"phone":"+1","words":["a","b"]}`,
		`{"phone":"+1","after":"2027-01-31T09:00:00Z"}`: `{"after":"2027-01-31T09:00:00Z","limit":25,"phone":"+1","words":["a","b"]}`,
	} {
		got, err := in.read([]byte(args))
		if err != nil || string(got.canonical) != want {
			t.Errorf("%s:\n got %s, %v\nwant %s", args, got.canonical, err, want)
		}
		if got.confirmed != strings.Contains(args, `"confirm":true`) {
			t.Errorf("%s: confirmed is %v", args, got.confirmed)
		}
	}
}

func TestWhatMayBeAbsentIsSaidByTheTypeOrTheTag(t *testing.T) {
	in, err := newInput[struct {
		Text     string            `json:"text" doc:"x"`
		List     []string          `json:"list" doc:"x"`
		Pointer  *int              `json:"pointer" doc:"x"`
		Optional Optional[string]  `json:"optional" doc:"x"`
		Behind   *Optional[string] `json:"behind" doc:"x"`
		Zero     string            `json:"zero,omitzero" doc:"x"`
		Empty    []string          `json:"empty,omitempty" doc:"x"`
		Default  int               `json:"default" default:"1" doc:"x"`
	}](true)
	if err != nil {
		t.Fatal(err)
	}
	for name, form := range map[string]json.RawMessage{"full": in.full, "portable": in.portable} {
		var s struct{ Required []string }
		if err := json.Unmarshal(form, &s); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]string{"text", "list"}, s.Required); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
	if _, err := in.read([]byte(`{"text":"a","list":[]}`)); err != nil {
		t.Error(err)
	}
}

func TestDefaultsAreNotSharedBetweenCalls(t *testing.T) {
	in := orderInput(t)
	read := func() order {
		a, err := in.read([]byte(`{"phone":"+1"}`))
		if err != nil {
			t.Fatal(err)
		}
		var o order
		if err := json.Unmarshal(a.canonical, &o); err != nil {
			t.Fatal(err)
		}
		return o
	}
	read().Words[0] = "changed"
	if diff := cmp.Diff([]string{"a", "b"}, read().Words); diff != "" {
		t.Error(diff)
	}
}

func TestAbsentNullAndAValueDiffer(t *testing.T) {
	for text, want := range map[string]Optional[string]{`{}`: {}, `{"note":null}`: {Set: true}, `{"note":""}`: {Set: true, Value: new(string)}} {
		var o order
		if err := json.Unmarshal([]byte(text), &o); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, o.Note); diff != "" {
			t.Errorf("%s: %s", text, diff)
		}
	}
}

func TestARefusalIsOneSentenceThatNamesTheField(t *testing.T) {
	in := orderInput(t)
	for args, want := range map[string]string{
		`{`:       "arguments: must be a JSON object.",
		`{} {}`:   "arguments: must be a JSON object.",
		`[]`:      "arguments: must be an object with `phone`, `second`, `note`, `mail`, `kind`, `tags`, `facts`, `window`, `big`, `price`, `after`, `rows`, `words`, `any`, `choice`, `limit`, `cursor` and `confirm`, not a list.",
		`"hello"`: "arguments: must be an object with `phone`, `second`, `note`, `mail`, `kind`, `tags`, `facts`, `window`, `big`, `price`, `after`, `rows`, `words`, `any`, `choice`, `limit`, `cursor` and `confirm`, not text.",
		``:        "phone: is required: a phone number such as +14155550123.",
		`null`:    "phone: is required: a phone number such as +14155550123.",

		`{"phone":"+1","limit":"ten"}`:                      "limit: must be a whole number from 1 to 100, not text.",
		`{"phone":"+1","limit":0}`:                          "limit: must be a whole number from 1 to 100.",
		`{"phone":"+1","limit":1e9}`:                        "limit: must be a whole number from 1 to 100.",
		`{"phone":"+1","limit":1.5}`:                        "limit: must be a whole number from 1 to 100, not a number.",
		`{"phone":"+1","limit":null}`:                       "limit: must be a whole number from 1 to 100, not null.",
		`{"phone":"+1","big":1e30}`:                         "big: must be a whole number.",
		`{"phone":"+1","big":1e400}`:                        "big: must be a number of ordinary size.",
		`{"phone":"+1","big":3e-999999}`:                    "big: must be a number of ordinary size.", // a float of 0 and a fraction of a million digits
		`{"phone":"+1","big":0e-999999999}`:                 "big: must be a number of ordinary size.",
		`{"phone":"+1","price":0.1}`:                        "price: must be a number of at least 0.5.",
		`{"phone":"+1","second":"secret"}`:                  "second: must be a phone number in E.164 form such as +14155550123.",
		`{"phone":"secret"}`:                                "phone: must be a phone number such as +14155550123.",
		`{"phone":"+1","note":"secretsecret"}`:              "note: must be text of at most 10 characters or null.",
		`{"phone":"+1","note":5}`:                           "note: must be text of at most 10 characters or null.",
		`{"phone":"+1","mail":"secret"}`:                    "mail: must be an e-mail address or null.",
		`{"phone":"+1","note":"a\u0000b"}`:                  "note: must not contain the character U+0000.",
		`{"phone":"+1","any":{"x\u0000":1}}`:                "any: must not contain the character U+0000.",
		`{"phone":"+1","kind":"Small"}`:                     "kind: must be one of `small` or `large`.",
		`{"phone":"+1","tags":"[\"a\",5]"}`:                 "tags[1]: must be text of 1 to 4 characters, not a number.",
		`{"phone":"+1","tags":["a",""]}`:                    "tags[1]: must be text of 1 to 4 characters.",
		`{"phone":"+1","tags":["a","b","c","d"]}`:           "tags: must be a list of at most 3 items.",
		`{"phone":"+1","tags":null}`:                        "tags: must be a list of at most 3 items, not null.",
		`{"phone":"+1","facts":{"secret":"x"}}`:             "facts: each name in it must be text of at most 3 characters.",
		`{"phone":"+1","facts":{"abc":"secret"}}`:           "facts.abc: must be text of at most 5 characters.",
		`{"phone":"+1","facts":{"+49":"secret"}}`:           "facts: must be text of at most 5 characters.",
		`{"phone":"+1","facts":"{}{}"}`:                     "facts: must be an object, not text.",
		`{"phone":"+1","window":{}}`:                        "window.days: is required: a list of at least 1 item.",
		`{"phone":"+1","window":{"days":[7]}}`:              "window.days[0]: must be a whole number from 0 to 6.",
		`{"phone":"+1","window":{"days":[1],"dais":1}}`:     "window: `dais` is not known; did you mean `days`?",
		`{"phone":"+1","rows":[{"days":[1]},{"Days":[1]}]}`: "rows[1]: `Days` is not known; did you mean `days`?",
		`{"phone":"+1","limt":10}`:                          "arguments: `limt` is not known; did you mean `limit`?",
		`{"phone":"+1","Limit":10}`:                         "arguments: `Limit` is not known; did you mean `limit`?",
		`{"phone":"+1","limit":10,"LIMIT":10}`:              "arguments: `LIMIT` is not known; did you mean `limit`?",
		`{"fone":"+1"}`:                                     "arguments: `fone` is not known; did you mean `phone`?",
		`{"phone":"+1","+14155550123":1}`:                   "arguments: one of the names is not known; it takes `phone`, `second`, `note`, `mail`, `kind`, `tags`, `facts`, `window`, `big`, `price`, `after`, `rows`, `words`, `any`, `choice`, `limit`, `cursor` and `confirm`.",
		`{"phone":"+1","after":"tomorrow"}`:                 "after: must be a date and time such as 2027-01-31T09:00:00Z.",
		`{"phone":"+1","choice":{"name":"secret"}}`:         "choice.name: must be the word `word`.",
		`{"phone":"+1","confirm":"true"}`:                   "confirm: must be true or false, not text.",
	} {
		_, err := in.read([]byte(args))
		if err == nil {
			t.Errorf("%s was accepted", args)
			continue
		}
		if got := strings.TrimPrefix(err.Error(), "invalid_request: "); got != want {
			t.Errorf("%s:\n got %s\nwant %s", args, got, want)
		}
	}
}

func TestAToolWithoutArgumentsTakesNothingInEveryForm(t *testing.T) {
	in, err := newInput[struct{}](false)
	if err != nil {
		t.Fatal(err)
	}
	if got := string(in.portable); got != `{"type":"object","properties":{},"additionalProperties":false}` {
		t.Error(got)
	}
	for _, args := range []string{"", "null", " null ", "{}", " {\n}"} {
		if a, err := in.read([]byte(args)); err != nil || string(a.canonical) != "{}" {
			t.Errorf("%q: %s, %v", args, a.canonical, err)
		}
	}
	if _, err := in.read([]byte(`{"a":1}`)); err == nil || !strings.HasSuffix(err.Error(), "arguments: `a` is not known; it takes none.") {
		t.Error(err)
	}
}

func TestAnInputThatBreaksARuleMakesNoSchema(t *testing.T) {
	check := func(name string, err error, want string) {
		t.Helper()
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", name, err, want)
		}
	}
	_, err := newInput[struct {
		A string `json:"a"`
	}](false)
	check("no doc", err, "no doc tag")
	_, err = newInput[struct {
		A string `doc:"x"`
	}](false)
	check("no name", err, "json tag")
	_, err = newInput[struct {
		A string `json:"a-b" doc:"x"`
	}](false)
	check("a name with a dash", err, "json tag")
	_, err = newInput[struct {
		A bool `json:"a" doc:"x" min:"1"`
	}](false)
	check("a bound without a size", err, "no size")
	_, err = newInput[struct {
		A string `json:"a" doc:"x" items:"min=1"`
	}](false)
	check("items of no list", err, "holds no such thing")
	_, err = newInput[struct {
		A []chan int `json:"a" doc:"x"`
	}](false)
	check("a channel", err, "no argument can be")
	_, err = newInput[struct {
		A any `json:"a" doc:"x"`
	}](false)
	check("anything", err, "no argument can be")
	_, err = newInput[struct {
		A json.RawMessage `json:"a" doc:"x"`
	}](false)
	check("any JSON", err, "can be anything")
	_, err = newInput[struct {
		A ajar `json:"a" doc:"x"`
	}](false)
	check("an object that is not closed", err, "not closed")
	_, err = newInput[struct {
		A []any `json:"a" doc:"x"`
	}](false)
	check("a list of anything", err, "no argument can be")
	_, err = newInput[struct {
		A int `json:"a" enum:"1,two" doc:"x"`
	}](false)
	check("a word among numbers", err, "two")
	_, err = newInput[struct {
		A float64 `json:"a" enum:"1.5" doc:"x"`
	}](false)
	check("an enum of fractions", err, "whole numbers")
	_, err = newInput[struct {
		Confirm bool `json:"confirm" doc:"x"`
	}](false)
	check("its own confirm", err, "added by kit.Confirm")
	_, err = newInput[struct {
		A int `json:"limit" doc:"x"`
		Page
	}](false)
	check("a name twice", err, "two arguments")
	_, err = newInput[struct {
		A int `json:"a" default:"x" doc:"x"`
	}](false)
	check("a default that is no JSON", err, "not JSON")
	_, err = newInput[struct {
		A int `json:"a" default:"5" max:"4" doc:"x"`
	}](false)
	check("a default that is not valid", err, "default")
	_, err = newInput[string](false)
	check("no struct", err, "struct")
}
