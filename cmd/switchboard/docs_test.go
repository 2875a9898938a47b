package main

import (
	"fmt"
	"io"
	"strings"
	"testing"

	"switchboard/internal/golden"
)

// TestTheSettingsAreDocumented keeps docs/config.md equal to what the command line says of itself.
func TestTheSettingsAreDocumented(t *testing.T) {
	clearEnv(t)
	var cli commands
	parser, err := newParser(&cli, console{out: io.Discard, errors: io.Discard})
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	b.WriteString(`# Settings

Every setting is an environment variable and a flag; the flag wins. Durations are written as Go writes them: 90s, 15m, 720h.
This page is derived from the settings in cmd/switchboard/config.go: change them there and run the tests with UPDATE=1.

| Variable | Flag | Default | What it decides |
|---|---|---|---|
`)
	for _, flag := range parser.Model.Flags {
		if len(flag.Envs) == 0 {
			continue // --help
		}
		byDefault := ""
		if flag.HasDefault {
			byDefault = "`" + flag.Default + "`"
		}
		fmt.Fprintf(&b, "| `%s` | `--%s` | %s | %s |\n", flag.Envs[0], flag.Name, byDefault, strings.ReplaceAll(flag.Help, "|", `\|`))
		if flag.Help == "" || !strings.HasSuffix(flag.Help, ".") {
			t.Errorf("--%s has no help, or none that is a sentence: %q", flag.Name, flag.Help)
		}
	}
	golden.Check(t, "../../docs/config.md", b.String())
}
