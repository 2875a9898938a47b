package tools_test

import (
	"bytes"
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"switchboard/internal/golden"
	"switchboard/internal/trial"
	"switchboard/tools/kit"
)

// What is served is looked at in mcp, as it is served; this names the tool where it is written.
func TestEverySchemaIsPortable(t *testing.T) {
	p := newProduct(t)
	for _, tool := range p.tools.Tools() {
		var root map[string]any
		if err := json.Unmarshal(tool.InputSchema(), &root); err != nil {
			t.Fatal(err)
		}
		for _, finding := range trial.LintSchema(tool.Name(), root) {
			t.Error(finding)
		}
	}
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
