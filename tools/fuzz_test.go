package tools_test

import (
	"encoding/json"
	"errors"
	"regexp"
	"testing"

	"switchboard/internal/fault"
	"switchboard/internal/scope"
	"switchboard/internal/trial"
)

// inside is what no answer to a program may speak of.
var inside = regexp.MustCompile(`goroutine |\.go:\d|runtime error|sql|json: |strconv|reflect\.|kit\.|map\[string\]|\bint64\b|\bfloat64\b`)

// Whatever a tool is called with, it answers with JSON or with a fault that a model can act on: never with trouble of ours,
// never with words of the inside.
func FuzzCallsOfTools(f *testing.F) {
	for _, seed := range trial.Seeds(f, func(name string) string { return map[string]string{"phone": "+14155550187"}[name] }, "tools") {
		var m struct {
			Params struct {
				Name      string
				Arguments json.RawMessage
			}
		}
		if json.Unmarshal([]byte(seed), &m) == nil {
			f.Add(m.Params.Name, string(m.Params.Arguments))
		}
	}
	p := newProduct(f)
	for _, tool := range p.tools.Tools() {
		f.Add(tool.Spec().Name, tool.Spec().Example)
	}
	ctx := p.as("org_a", scope.Owner)
	f.Fuzz(func(t *testing.T, name, args string) {
		tool, ok := p.tools.Tool(name)
		if !ok || !json.Valid([]byte(args)) { // what the endpoint refuses before
			return
		}
		value, err := p.call(ctx, tool, args)
		var refused *fault.Error
		switch {
		case err == nil && !json.Valid(value):
			t.Errorf("%s %s: %s", name, args, value)
		case err != nil && !errors.As(err, &refused):
			t.Errorf("%s %s: %v", name, args, err)
		case err != nil && (refused.Code == fault.Internal || refused.Message == "" || inside.MatchString(refused.Message)):
			t.Errorf("%s %s: %s %s", name, args, refused.Code, refused.Message)
		}
	})
}
