package kit

import (
	"encoding/json"
	"testing"
)

type leaf struct {
	List []int          `json:"list"`
	Map  map[string]int `json:"map"`
}

// silent is never written when its list was never made.
type silent struct {
	List []int `json:"list"`
}

func (s silent) IsZero() bool { return s.List == nil }

// spoken writes its own JSON.
type spoken []int

func (s spoken) MarshalJSON() ([]byte, error) { return json.Marshal(len(s)) }

type hidden struct {
	Inner []int `json:"inner"`
}

func TestListsAndMapsThatWereNeverMadeAreEmptyAtEveryDepth(t *testing.T) {
	const empty = `{"list":[],"map":{}}`
	for name, c := range map[string]struct {
		out  any
		want string
	}{
		"a list itself":          {[]int(nil), `[]`},
		"a map itself":           {map[string]int(nil), `{}`},
		"a struct":               {leaf{}, empty},
		"a pointer":              {&leaf{}, empty},
		"in a list":              {[]leaf{{}}, `[` + empty + `]`},
		"in a list of pointers":  {[]*leaf{{}, nil}, `[` + empty + `,null]`},
		"in a list of lists":     {[][]int{nil}, `[[]]`},
		"in an array":            {[1]leaf{}, `[` + empty + `]`},
		"in a map":               {map[string]leaf{"m": {}}, `{"m":` + empty + `}`},
		"in a map of lists":      {map[string][]int{"m": nil}, `{"m":[]}`},
		"in a map of pointers":   {map[string]*leaf{"m": {}, "n": nil}, `{"m":` + empty + `,"n":null}`},
		"in a map of anything":   {map[string]any{"m": map[string]any{"a": []int(nil)}, "n": nil}, `{"m":{"a":[]},"n":null}`},
		"in anything":            {struct{ A, B any }{leaf{}, &leaf{}}, `{"A":` + empty + `,"B":` + empty + `}`},
		"in a list of anything":  {[]any{[]string(nil), 1, "x", nil}, `[[],1,"x",null]`},
		"in an embedded struct":  {struct{ hidden }{}, `{"inner":[]}`},
		"in an embedded pointer": {struct{ *hidden }{&hidden{}}, `{"inner":[]}`},
		"in what can be left out": {struct {
			A []leaf `json:"a,omitempty"`
			B *leaf  `json:"b,omitzero"`
		}{[]leaf{{}}, &leaf{}}, `{"a":[` + empty + `],"b":` + empty + `}`},
		"what is left out": {struct {
			A []int  `json:"a,omitempty"`
			B leaf   `json:"b,omitzero"`
			C []int  `json:"c,omitzero"`
			D silent `json:"d,omitzero"`
		}{}, `{}`},
		"what nobody sees": {struct {
			A []int `json:"-"`
			b []int
		}{}, `{}`},
		"what writes its own JSON": {struct {
			A spoken
			B json.RawMessage
		}{}, `{"A":0,"B":null}`},
	} {
		got, err := encode(c.out)
		if err != nil || string(got) != c.want {
			t.Errorf("%s:\n got %s, %v\nwant %s", name, got, err, c.want)
		}
	}
}

func TestAResultThatContainsItselfIsAnError(t *testing.T) {
	loop := map[string]any{}
	loop["self"] = loop
	if got, err := encode(loop); err == nil {
		t.Errorf("%.100s", got)
	}
}
