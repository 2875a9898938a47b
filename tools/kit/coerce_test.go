package kit

import (
	"cmp"
	"encoding/json"
	"errors"
	"regexp"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"switchboard/internal/fault"
	"switchboard/internal/trial"
)

// everything has one argument of every kind that a tool can take.
type everything struct {
	Text     string                       `json:"text,omitzero" doc:"x"`
	Word     string                       `json:"word,omitzero" enum:"1,true,[]" doc:"x"`
	At       *time.Time                   `json:"at" doc:"x"`
	Phone    *Phone                       `json:"phone" doc:"x"`
	Note     Optional[string]             `json:"note" doc:"x"`
	Count    int64                        `json:"count,omitzero" doc:"x"`
	Small    int                          `json:"small,omitzero" min:"1" max:"100" doc:"x"`
	Choice   int                          `json:"choice,omitzero" enum:"30,60" doc:"x"`
	Share    float64                      `json:"share,omitzero" doc:"x"`
	Flag     *bool                        `json:"flag" doc:"x"`
	Always   *bool                        `json:"always" enum:"true" doc:"x"`
	Tags     []string                     `json:"tags,omitzero" doc:"x"`
	Numbers  []int                        `json:"numbers,omitzero" doc:"x"`
	Grid     [][]int                      `json:"grid,omitzero" doc:"x"`
	Facts    map[string]string            `json:"facts,omitzero" doc:"x"`
	Scores   map[string]int               `json:"scores,omitzero" doc:"x"`
	Anything map[string]any               `json:"anything,omitzero" doc:"x"`
	Objects  []map[string]any             `json:"objects,omitzero" doc:"x"`
	Hours    *hours                       `json:"hours" doc:"x"`
	Rows     []hours                      `json:"rows,omitzero" doc:"x"`
	Maybe    Optional[float64]            `json:"maybe" min:"0" doc:"x"`
	MaybeSet Optional[hours]              `json:"maybeHours" doc:"x"`
	Schema   Optional[map[string]any]     `json:"schema" keys:"max=64" doc:"x"`
	Since    *since                       `json:"since" doc:"x"`
	Or       *countOrFlag                 `json:"or" doc:"x"`
	OrNull   Optional[countOrFlag]        `json:"orNull" doc:"x"`
	Steps    []step                       `json:"steps,omitzero" max:"3" doc:"x"`
	ByName   map[string]step              `json:"byName,omitzero" doc:"x"`
	Lists    Optional[[]string]           `json:"lists" max:"2" doc:"x"`
	Deep     map[string]map[string][]bool `json:"deep,omitzero" doc:"x"`
}

type hours struct {
	Day  int    `json:"day" min:"0" max:"6" doc:"x"`
	Open string `json:"open" default:"09:00" doc:"x"`
}

// since is a time or a number of seconds.
type since struct{ raw json.RawMessage }

func (since) OneOf() []any                        { return []any{"", 0.0} }
func (s *since) UnmarshalJSON(b []byte) error     { s.raw = json.RawMessage(b); return nil }
func (s since) MarshalJSON() ([]byte, error)      { return s.raw, nil }
func (countOrFlag) OneOf() []any                  { return []any{0, false} }
func (step) OneOf() []any                         { return []any{builtin{}, integration{}} }
func (s *step) UnmarshalJSON(b []byte) error      { s.raw = json.RawMessage(b); return nil }
func (s *countOrFlag) UnmarshalJSON([]byte) error { return nil }

type countOrFlag struct{}

type step struct{ raw json.RawMessage }

type builtin struct {
	Kind  string `json:"kind" enum:"builtin" doc:"x"`
	Name  string `json:"name" enum:"transfer,end" doc:"x"`
	Times int    `json:"times" default:"1" doc:"x"`
}

type integration struct {
	Kind string `json:"kind" enum:"integration" doc:"x"`
	Slug string `json:"slug" min:"1" max:"5" doc:"x"`
}

func everyInput(t *testing.T) *input {
	t.Helper()
	in, err := newInput[everything](true)
	if err != nil {
		t.Fatal(err)
	}
	return in
}

func TestWhateverAToolTakesItsSchemaIsPortable(t *testing.T) {
	for name, form := range map[string]json.RawMessage{"everything": everyInput(t).portable, "order": orderInput(t).portable} {
		var s map[string]any
		if err := json.Unmarshal(form, &s); err != nil {
			t.Fatal(err)
		}
		for _, finding := range trial.LintSchema(name, s) {
			t.Error(finding)
		}
	}
}

func TestTheSchemaOfAUnionAndOfAllowedNumbers(t *testing.T) {
	in := everyInput(t)
	var full, portable struct{ Properties map[string]any }
	if err := errors.Join(json.Unmarshal(in.full, &full), json.Unmarshal(in.portable, &portable)); err != nil {
		t.Fatal(err)
	}
	builtin := `{"type":"object","additionalProperties":false,"required":["kind","name"],"properties":{"kind":{"type":"string","enum":["builtin"],"description":"x"},` +
		`"name":{"type":"string","enum":["transfer","end"],"description":"x"},"times":{"type":"integer","default":1,"description":"x"}}}`
	integration := `{"type":"object","additionalProperties":false,"required":["kind","slug"],"properties":{"kind":{"type":"string","enum":["integration"],"description":"x"},` +
		`"slug":{"type":"string","minLength":1,"maxLength":5,"description":"x"}}}`
	for name, want := range map[string][2]string{
		"choice":   {`{"type":"integer","enum":[30,60],"description":"x"}`, `{"type":"integer","description":"x Allowed: 30, 60."}`},
		"always":   {`{"type":"boolean","enum":[true],"description":"x"}`, `{"type":"boolean","description":"x Allowed: true."}`},
		"since":    {`{"description":"x","anyOf":[{"type":"string"},{"type":"number"}]}`, ""},
		"or":       {`{"description":"x","anyOf":[{"type":"integer"},{"type":"boolean"}]}`, ""},
		"orNull":   {`{"description":"x","anyOf":[{"type":"integer"},{"type":"boolean"},{"type":"null"}]}`, ""},
		"maybe":    {`{"description":"x","anyOf":[{"type":"number","minimum":0},{"type":"null"}]}`, ""},
		"anything": {`{"description":"x","type":"object","additionalProperties":true}`, ""},
		"objects":  {`{"description":"x","type":"array","items":{"type":"object","additionalProperties":true}}`, ""},
		"schema": {`{"description":"x","anyOf":[{"type":"object","propertyNames":{"type":"string","maxLength":64},"additionalProperties":true},{"type":"null"}]}`,
			`{"description":"x","anyOf":[{"type":"object","additionalProperties":true},{"type":"null"}]}`},
		"steps": {`{"description":"x","type":"array","maxItems":3,"items":{"anyOf":[` + builtin + `,` + integration + `]}}`, ""},
	} {
		for i, form := range []map[string]any{full.Properties, portable.Properties} {
			var wanted any
			if err := json.Unmarshal([]byte(cmp.Or(want[i], want[0])), &wanted); err != nil {
				t.Fatal(err)
			}
			if diff := gocmp.Diff(wanted, form[name]); diff != "" {
				t.Errorf("%s, form %d: %s", name, i, diff)
			}
		}
	}
}

func TestATextThatHoldsWhatIsWantedIsReadAsThat(t *testing.T) {
	in := everyInput(t)
	for sent, meant := range map[string]string{
		`{"count":"10"}`:                               `{"count":10}`,
		`{"count":"-3"}`:                               `{"count":-3}`,
		`{"count":"-0"}`:                               `{"count":0}`,
		`{"count":"10.0"}`:                             `{"count":10}`,
		`{"count":"9007199254740993"}`:                 `{"count":9007199254740993}`,
		`{"count":"9223372036854775807"}`:              `{"count":9223372036854775807}`,
		`{"choice":"30"}`:                              `{"choice":30}`,
		`{"share":"0.25"}`:                             `{"share":0.25}`,
		`{"share":"2"}`:                                `{"share":2}`,
		`{"flag":"true"}`:                              `{"flag":true}`,
		`{"flag":"false","always":"true"}`:             `{"always":true,"flag":false}`,
		`{"tags":"[\"a\",\"b\"]"}`:                     `{"tags":["a","b"]}`,
		`{"tags":"[]"}`:                                `{"tags":[]}`,
		`{"tags":"[\n  \"a\",\n  \"5\"\n]"}`:           `{"tags":["a","5"]}`,
		`{"numbers":"[1,2]"}`:                          `{"numbers":[1,2]}`,
		`{"numbers":["1",2]}`:                          `{"numbers":[1,2]}`,
		`{"numbers":"[\"1\",2]"}`:                      `{"numbers":[1,2]}`,
		`{"grid":["[1]",[2]]}`:                         `{"grid":[[1],[2]]}`,
		`{"facts":"{\"a\":\"1\"}"}`:                    `{"facts":{"a":"1"}}`,
		`{"scores":{"a":"1"}}`:                         `{"scores":{"a":1}}`,
		`{"hours":"{\"day\":\"3\"}"}`:                  `{"hours":{"day":3}}`,
		`{"rows":"[{\"day\":1},\"{\\\"day\\\":2}\"]"}`: `{"rows":[{"day":1},{"day":2}]}`,
		`{"anything":"{\"a\":\"1\"}"}`:                 `{"anything":{"a":"1"}}`,
		`{"objects":"[{\"n\":1}]"}`:                    `{"objects":[{"n":1}]}`,
		`{"maybe":"1.5"}`:                              `{"maybe":1.5}`,
		`{"maybe":"null"}`:                             `{"maybe":null}`,
		`{"maybeHours":"{\"day\":1}"}`:                 `{"maybeHours":{"day":1}}`,
		`{"maybeHours":"null"}`:                        `{"maybeHours":null}`,
		`{"schema":"{}"}`:                              `{"schema":{}}`,
		`{"lists":"[\"a\"]"}`:                          `{"lists":["a"]}`,
		`{"or":"7"}`:                                   `{"or":7}`,
		`{"or":"true"}`:                                `{"or":true}`,
		`{"orNull":"null"}`:                            `{"orNull":null}`,
		`{"orNull":"7"}`:                               `{"orNull":7}`,
		`{"steps":"[{\"kind\":\"builtin\",\"name\":\"end\",\"times\":\"2\"}]"}`: `{"steps":[{"kind":"builtin","name":"end","times":2}]}`,
		`{"steps":["{\"kind\":\"integration\",\"slug\":\"5\"}"]}`:               `{"steps":[{"kind":"integration","slug":"5"}]}`,
		`{"byName":{"a":"{\"kind\":\"builtin\",\"name\":\"end\"}"}}`:            `{"byName":{"a":{"kind":"builtin","name":"end","times":1}}}`,
		`{"deep":"{\"a\":\"{\\\"b\\\":[\\\"true\\\"]}\"}"}`:                     `{"deep":{"a":{"b":[true]}}}`,
	} {
		got, err := in.read([]byte(sent))
		if err != nil {
			t.Errorf("%s: %v", sent, err)
			continue
		}
		want, err := in.read([]byte(meant))
		if err != nil {
			t.Errorf("%s: %v", meant, err)
			continue
		}
		// One call, so also one for the idempotency key.
		if diff := gocmp.Diff(string(want.canonical), string(got.canonical)); diff != "" {
			t.Errorf("%s: %s", sent, diff)
		}
	}
}

func TestATextStaysATextWhereOneMayStand(t *testing.T) {
	in := everyInput(t)
	for _, held := range []string{"10", "true", "null", "[]", `["a"]`, `{"a":1}`, " 10 "} {
		quoted, err := json.Marshal(held)
		if err != nil {
			t.Fatal(err)
		}
		for _, form := range []string{`{"text":%}`, `{"note":%}`, `{"tags":[%]}`, `{"facts":{"a":%}}`, `{"since":%}`,
			`{"anything":{"a":%}}`, `{"anything":{"a":[%]}}`, `{"objects":[{"a":%}]}`, `{"schema":{"a":%}}`, `{"lists":[%]}`} {
			sent := strings.Replace(form, "%", string(quoted), 1)
			got, err := in.read([]byte(sent))
			if err != nil || string(got.canonical) != sent {
				t.Errorf("%s became %s, %v", sent, got.canonical, err)
			}
		}
	}
	for _, word := range []string{`"1"`, `"true"`, `"[]"`} {
		if got, err := in.read([]byte(`{"word":` + word + `}`)); err != nil || string(got.canonical) != `{"word":`+word+`}` {
			t.Errorf("%s became %s, %v", word, got.canonical, err)
		}
	}
}

func TestWhatWouldTakeAGuessIsRefused(t *testing.T) {
	in := everyInput(t)
	number, flag, array, object := "must be a whole number, not text", "must be true or false, not text", "must be a list, not text", "must be an object"
	for field, try := range map[string]struct {
		texts []string
		want  string
	}{
		"count": {[]string{"", " 10 ", "10 ", "\\n10", "1e2", "1E2", "0x1", "0b1", "1_000", "1,000", "+5", "007", ".5", "5.", "--1", "ten", "١٠", "\uff11\uff10", "²", "NaN", "Infinity", "null", "true", "[10]", "10\\u0000", "5;6", strings.Repeat("9", 65) + "x"}, number},
		"flag":  {[]string{"", "True", "TRUE", "False", " true", "1", "0", "yes", "on", "null", "truе"}, flag},
		"tags":  {[]string{"", "a", "a,b", " []", "[] ", "[", "[]]", "[][]", "[a]", "['a']", "{}", "null", "[1", "[\\\"a\\\",]"}, array},
		"hours": {[]string{"", "3", " {}", "{", "{}}", "{}{}", "[]", "null", "day=3", "{day:3}", "{'day':3}"}, object},
	} {
		for _, text := range try.texts {
			_, err := in.read([]byte(`{"` + field + `":"` + text + `"}`))
			if err == nil || !strings.Contains(err.Error(), field+": "+try.want) && !strings.Contains(err.Error(), "U+0000") {
				t.Errorf("%s: %q: %v", field, text, err)
			}
		}
	}
	for args, want := range map[string]string{
		`{"count":"1.5"}`:                             "count: must be a whole number, not a number.",
		`{"count":"9223372036854775808"}`:             "count: must be a whole number.",
		`{"small":"101"}`:                             "small: must be a whole number from 1 to 100.",
		`{"choice":"45"}`:                             "choice: must be one of `30` or `60`.",
		`{"always":"false"}`:                          "always: must be `true`.",
		`{"share":"` + strings.Repeat("9", 65) + `"}`: "share: must be a number of ordinary size.",
		`{"maybe":"-1"}`:                              "maybe: must be a number of at least 0 or null.",
		`{"maybe":"one"}`:                             "maybe: must be a number of at least 0 or null.",
		`{"or":"1.5"}`:                                "or: must be a whole number or true or false.",
		`{"tags":"[\"a\\u0000\"]"}`:                   "tags[0]: must not contain the character U+0000.",
		`{"numbers":"[3e-999999]"}`:                   "numbers[0]: must be a number of ordinary size.",
		`{"hours":"{\"day\":1,\"Day\":2}"}`:           "hours: `Day` is not known; did you mean `day`?",
		`{"phone":5}`:                                 "phone: must be a phone number in E.164 form such as +14155550123, not a number.",
		`{"text":5}`:                                  "text: must be text, not a number.",
		`{"confirm":"true"}`:                          "confirm: must be true or false, not text.",
		`"{\"count\":1}"`:                             "not text.",
		`"{\"confirm\":true}"`:                        "not text.",
	} {
		_, err := in.read([]byte(args))
		if err == nil || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("%s:\n got %v\nwant %s", args, err, want)
		}
	}
}

func TestAConfirmationIsOneValueAndNothingElse(t *testing.T) {
	in := everyInput(t)
	for args, want := range map[string]bool{`{"confirm":true}`: true, `{"confirm":false}`: false, `{}`: false} {
		if got, err := in.read([]byte(args)); err != nil || got.confirmed != want {
			t.Errorf("%s: %v, %v", args, got.confirmed, err)
		}
	}
	for _, args := range []string{`{"confirm":"true"}`, `{"confirm":"false"}`, `{"confirm":1}`, `{"confirm":null}`, `{"confirm":[true]}`, `{"Confirm":true}`, `{"ſconfirm":true}`} {
		if got, err := in.read([]byte(args)); err == nil || got.confirmed {
			t.Errorf("%s: %v, %v", args, got.confirmed, err)
		}
	}
	// A tool may have an argument of that name deeper down, which is an argument like any other.
	type inner struct {
		Confirm bool `json:"confirm" doc:"x"`
	}
	deep, err := newInput[struct {
		Inner inner `json:"inner" doc:"x"`
	}](true)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := deep.read([]byte(`{"inner":{"confirm":"true"}}`)); err != nil || got.confirmed || string(got.canonical) != `{"inner":{"confirm":true}}` {
		t.Errorf("%s, %v", got.canonical, err)
	}
}

func TestARefusalInAUnionIsAboutTheAlternativeThatWasMeant(t *testing.T) {
	in := everyInput(t)
	for args, want := range map[string]string{
		`{"steps":[{"kind":"builtin"}]}`:                         "steps[0].name: is required: one of `transfer` or `end`.",
		`{"steps":[{"kind":"integration"}]}`:                     "steps[0].slug: is required: text of 1 to 5 characters.",
		`{"steps":[{"kind":"integration","slug":"secret"}]}`:     "steps[0].slug: must be text of 1 to 5 characters.",
		`{"steps":[{"kind":"integration","slug":"a","slag":1}]}`: "steps[0]: `slag` is not known; did you mean `slug`?",
		`{"steps":[{"kind":"builtin","name":"END"}]}`:            "steps[0].name: must be one of `transfer` or `end`.",
		`{"steps":[{"kind":"secret"}]}`:                          "steps[0]: must be an object with `kind`, `name` and `times` or an object with `kind` and `slug`.",
		`{"steps":[5]}`:                                          "steps[0]: must be an object with `kind`, `name` and `times` or an object with `kind` and `slug`.",
		`{"maybeHours":{}}`:                                      "maybeHours.day: is required: a whole number from 0 to 6.",
		`{"maybeHours":{"day":7}}`:                               "maybeHours.day: must be a whole number from 0 to 6.",
		`{"maybeHours":{"dai":7}}`:                               "maybeHours: `dai` is not known; did you mean `day`?",
		`{"maybeHours":[]}`:                                      "maybeHours: must be an object with `day` and `open` or null.",
		`{"schema":{"` + strings.Repeat("x", 65) + `":1}}`:       "schema: each name in it must be text of at most 64 characters.",
		`{"lists":["a","b","c"]}`:                                "lists: must be a list of at most 2 items or null.",
		`{"lists":[5]}`:                                          "lists[0]: must be text, not a number.",
		`{"byName":{"a":{"kind":"integration"}}}`:                "byName.a.slug: is required: text of 1 to 5 characters.",
		`{"since":true}`:                                         "since: must be text or a number.",
	} {
		_, err := in.read([]byte(args))
		if err == nil || !strings.HasSuffix(err.Error(), "invalid_request: "+want) {
			t.Errorf("%s:\n got %v\nwant %s", args, err, want)
		}
	}
}

func TestNumbersThatAreTheSameAreTheSameCall(t *testing.T) {
	in := everyInput(t)
	for _, same := range [][]string{
		{`{"share":2}`, `{"share":2.0}`, `{"share":"2"}`, `{"share":2e0}`, `{"share":20e-1}`},
		{`{"share":0.1}`, `{"share":1e-1}`, `{"share":0.10}`, `{"share":"0.1"}`},
		{`{"maybe":1}`, `{"maybe":1.0}`, `{"maybe":"1"}`},
		{`{"since":5}`, `{"since":5.0}`},
		{`{"steps":[{"kind":"builtin","name":"end"}]}`, `{"steps":[{"kind":"builtin","name":"end","times":1.0}]}`},
	} {
		first, err := in.read([]byte(same[0]))
		if err != nil {
			t.Fatal(err)
		}
		for _, args := range same[1:] {
			if got, err := in.read([]byte(args)); err != nil || string(got.canonical) != string(first.canonical) {
				t.Errorf("%s is %s, %v; want %s", args, got.canonical, err, first.canonical)
			}
		}
	}
}

func TestWhatOneCallIsMadeOfIsNotSharedWithAnother(t *testing.T) {
	in := everyInput(t)
	for range 2 {
		got, err := in.read([]byte(`{"steps":["{\"kind\":\"builtin\",\"name\":\"end\"}"],"hours":{"day":"1"}}`))
		if err != nil || string(got.canonical) != `{"hours":{"day":1,"open":"09:00"},"steps":[{"kind":"builtin","name":"end","times":1}]}` {
			t.Errorf("%s, %v", got.canonical, err)
		}
	}
}

// encoding/json takes a key in other letters for the field of nearly that name: Day and DAY, the long ſ for s and the
// sign of the kelvin for k. The last of two wins. Neither must reach it, at any depth, in a text that is read either.
func TestAKeyInOtherLettersIsAnotherKey(t *testing.T) {
	in := everyInput(t)
	twins := func(name string) (all []string) {
		for _, twin := range []string{strings.ToUpper(name), strings.ToUpper(name[:1]) + name[1:], name[:1] + strings.ToUpper(name[1:]),
			strings.Replace(name, "s", "\u017f", 1), strings.Replace(name, "k", "\u212a", 1), name + " ", name + "\\u200b"} {
			if twin != name {
				all = append(all, twin)
			}
		}
		return all
	}
	for _, try := range []struct{ form, name, value string }{
		{`{%}`, "text", `"a"`},
		{`{%}`, "tags", `[]`},
		{`{%}`, "confirm", `true`},
		{`{"hours":{"day":1,%}}`, "day", `2`},
		{`{"hours":{%}}`, "day", `2`},
		{`{"rows":[{"day":1},{"day":1,%}]}`, "open", `"a"`},
		{`{"maybeHours":{"day":1,%}}`, "day", `2`},
		{`{"steps":[{"kind":"builtin","name":"end",%}]}`, "kind", `"integration"`},
		{`{"steps":[{"kind":"integration",%}]}`, "slug", `"a"`},
		{`{"byName":{"a":{"kind":"integration","slug":"a",%}}}`, "slug", `"b"`},
	} {
		for _, twin := range twins(try.name) {
			args := strings.Replace(try.form, "%", `"`+twin+`":`+try.value, 1)
			got, err := in.read([]byte(args))
			if err == nil {
				t.Errorf("%s became %s", args, got.canonical)
			}
			// And in a text that holds the JSON of the value around it.
			var outer map[string]json.RawMessage
			if err := json.Unmarshal([]byte(args), &outer); err != nil {
				t.Fatal(err)
			}
			for name, value := range outer {
				text, err := json.Marshal(string(value))
				if err != nil {
					t.Fatal(err)
				}
				if got, err := in.read([]byte(`{"` + name + `":` + string(text) + `}`)); err == nil && try.form != `{%}` {
					t.Errorf("%s as a text became %s", args, got.canonical)
				}
			}
		}
	}
	for args, want := range map[string]string{
		`{"hours":{"day":1,"day":2}}`:                                    `{"hours":{"day":2,"open":"09:00"}}`,
		`{"hours":"{\"day\":1,\"day\":2}"}`:                              `{"hours":{"day":2,"open":"09:00"}}`,
		`{"hours":{"d\u0061y":2}}`:                                       `{"hours":{"day":2,"open":"09:00"}}`,
		`{"text":"a","text":"b"}`:                                        `{"text":"b"}`,
		`{"facts":{"a":"1","A":"2"}}`:                                    `{"facts":{"A":"2","a":"1"}}`,
		`{"steps":[{"kind":"builtin","kind":"integration","slug":"a"}]}`: `{"steps":[{"kind":"integration","slug":"a"}]}`,
	} {
		if got, err := in.read([]byte(args)); err != nil || string(got.canonical) != want {
			t.Errorf("%s became %s, %v", args, got.canonical, err)
		}
	}
	if got, err := in.read([]byte(`{"confirm":true,"confirm":false}`)); err != nil || got.confirmed {
		t.Errorf("a confirmation that was taken back: %v, %v", got.confirmed, err)
	}
}

// inside are words of decoders and of Go that no client should meet.
var inside = regexp.MustCompile(`json:|unmarshal|Go (value|struct|type)|float64|int64|map\[|interface|nil pointer|jsonschema|validat|0x|%!`)

// Whatever arrives, it is refused in words of the schema, or read: and what was read, read again, is the same.
func FuzzArguments(f *testing.F) {
	for _, seed := range []string{
		``, `null`, `{}`, `[]`, `"x"`, `{`, `{"count":"10"}`, `{"count":1e400}`, `{"share":"0.1"}`, `{"share":1e21}`, `{"share":-0.0}`, `{"maybe":"null"}`, `{"flag":"true"}`,
		`{"tags":"[\"a\"]"}`, `{"hours":"{\"day\":\"3\"}"}`, `{"steps":["{\"kind\":\"builtin\",\"name\":\"end\"}"]}`, `{"since":5,"or":"7","orNull":null}`,
		`{"anything":{"a":[1,null,{"b":"c"}]},"schema":{"x":true}}`, `{"deep":{"a":{"b":["true",false]}}}`, `{"Count":1}`, `{"text":"\u0000"}`, `{"grid":[["1"]],"scores":{"a":"2"}}`,
		`{"steps":[{"kind":"x"}],"byName":{"a":5}}`, `{"at":"2027-01-31T09:00:00Z","phone":"+14155550123"}`, `{"confirm":"true"}`, `{"choice":"30","always":"true"}`,
	} {
		f.Add([]byte(seed))
	}
	for _, seed := range trial.Seeds(f, nil, "tools") {
		var m struct {
			Params struct{ Arguments json.RawMessage }
		}
		if json.Unmarshal([]byte(seed), &m) == nil {
			f.Add([]byte(m.Params.Arguments))
		}
	}
	in, err := newInput[everything](true)
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, args []byte) {
		got, err := in.read(args)
		if err != nil {
			refusal, known := fault.Of(err, "")
			if !known || refusal.Code != fault.InvalidRequest || refusal.Details["field"] == nil {
				t.Fatalf("%q: %v", args, err)
			}
			// What the schema does not name is what the client wrote, and is not looked at.
			if found := inside.FindString(refusal.Message); found != "" && !strings.Contains(string(args), found) {
				t.Errorf("%q: the refusal says %q: %s", args, found, refusal.Message)
			}
			return
		}
		again, err := in.read(got.canonical)
		if err != nil || string(again.canonical) != string(got.canonical) {
			t.Errorf("%q is %s, and that is %s, %v", args, got.canonical, again.canonical, err)
		}
		var decoded everything
		if err := json.Unmarshal(got.canonical, &decoded); err != nil {
			t.Errorf("%q is %s, which the handler does not get: %v", args, got.canonical, err)
		}
	})
}

// A text can hold many small values, and there can be many texts: what they become together has the bound of a message.
func TestTextsTogetherHoldNoMoreValuesThanAMessageMay(t *testing.T) {
	in, err := newInput[everything](true)
	if err != nil {
		t.Fatal(err)
	}
	row, err := json.Marshal("[" + strings.Repeat("1,", 999) + "1]")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		rows int
		good bool
	}{{15, true}, {25, false}} { // of 1,000 values each
		args := `{"grid":[` + strings.TrimSuffix(strings.Repeat(string(row)+",", c.rows), ",") + `]}`
		if _, err := in.read([]byte(args)); (err == nil) != c.good {
			t.Errorf("%d rows: %v", c.rows, err)
		}
	}
}
