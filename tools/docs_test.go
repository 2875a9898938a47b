package tools

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"switchboard/internal/golden"
	"switchboard/internal/scope"
	"switchboard/tools/kit"
)

func TestDocsOfToolsAreUpToDate(t *testing.T) {
	var b strings.Builder
	b.WriteString("# Tools\n\nWhat an assistant can call, made from the registry. A tool marked *write* changes something and leaves records in the\naudit log; *confirm* means that it does nothing until a person has agreed and the call says `confirm: true`.\nA number, a truth value, a list or an object may also come as a text that holds exactly its JSON, as some hosts send it, but for\n`confirm`. Unknown arguments are refused, naming the nearest known one.\n\n| tool | permission | kind |\n|---|---|---|\n")
	registry := All(Deps{})
	for _, tool := range registry.Tools() {
		fmt.Fprintf(&b, "| [%s](#%s) | `%s` | %s |\n", tool.Name(), tool.Name(), tool.Spec().Scope, kind(tool))
	}
	b.WriteString("\n## Toolsets\n\nThe endpoint `/mcp` has every tool. A host that works better with fewer can be given the endpoint of one toolset; it has metadata\n" +
		"of its own, and a token that was asked for there is good there alone. A token for `/mcp` and an API key are good on all of them.\n\n| endpoint | tools |\n|---|---|\n")
	for _, set := range registry.Toolsets() {
		names := []string{}
		for _, tool := range registry.Toolset(set).Tools() {
			names = append(names, "`"+tool.Name()+"`")
		}
		fmt.Fprintf(&b, "| `/mcp/%s` | %s |\n", set, strings.Join(names, ", "))
	}
	for _, tool := range registry.Tools() {
		spec := tool.Spec()
		fmt.Fprintf(&b, "\n## %s\n\n%s. %s\n\nExample: `%s`\n\n<details><summary>Arguments</summary>\n\n```json\n%s\n```\n\n</details>\n",
			spec.Name, spec.Title, tool.Description(), spec.Example, indent(t, tool.InputSchema()))
	}
	golden.Check(t, "../docs/tools.md", b.String())
}

func TestDocsOfScopesAreUpToDate(t *testing.T) {
	registry := All(Deps{})
	catalog := scope.NewCatalog(Groups(), Umbrellas(), registry.Needed())
	var b strings.Builder
	b.WriteString("# Permissions\n\nA permission is a scope. People see them in groups on the consent page; API keys name them one by one. What a connection or\nkey may do is its scopes and, on every call, what the role of its person allows: a refusal for want of a scope is HTTP 403\nwith a challenge, a refusal by role is the tool error `forbidden`, since no consent could change it. Write does not imply\nread.\n\n")
	b.WriteString("| group | scopes | given by default |\n|---|---|---|\n")
	for _, g := range catalog.Groups() {
		fmt.Fprintf(&b, "| %s | %s | %s |\n", g.Name, ticked(g.Scopes), map[bool]string{true: "yes", false: "no"}[g.Default])
	}
	b.WriteString("\n| scope |")
	for _, r := range scope.Roles() {
		fmt.Fprintf(&b, " %s |", r)
	}
	b.WriteString(" tools |\n|---|" + strings.Repeat("---|", len(scope.Roles())) + "---|\n")
	for _, s := range catalog.Known() {
		fmt.Fprintf(&b, "| `%s` |", s)
		for _, r := range scope.Roles() {
			fmt.Fprintf(&b, " %s |", map[bool]string{true: "yes", false: ""}[r.Allows(s)])
		}
		names := []string{}
		for _, tool := range registry.ByScope(s) {
			names = append(names, "`"+tool.Name()+"`")
		}
		slices.Sort(names)
		fmt.Fprintf(&b, " %s |\n", strings.Join(names, ", "))
	}
	golden.Check(t, "../docs/scopes.md", b.String())
}

func kind(tool kit.Tool) string {
	spec := tool.Spec()
	words := []string{map[bool]string{true: "write", false: "read"}[spec.Mutates()]}
	if spec.Spends {
		words = append(words, "costs money")
	}
	if spec.Effect == kit.Destroy {
		words = append(words, "cannot be undone")
	}
	if tool.Confirms() {
		words = append(words, "confirm")
	}
	return strings.Join(words, ", ")
}

func ticked(s scope.Set) string {
	out := []string{}
	for _, v := range s {
		out = append(out, "`"+v+"`")
	}
	return strings.Join(out, " ")
}

func indent(t *testing.T, raw []byte) string {
	t.Helper()
	var b bytes.Buffer
	if err := json.Indent(&b, raw, "", "  "); err != nil {
		t.Fatal(err)
	}
	return b.String()
}
