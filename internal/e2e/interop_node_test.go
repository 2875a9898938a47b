//go:build interop

package e2e

import (
	"bufio"
	"encoding/json"
	"io"

	"switchboard/internal/trial"
)

// said is a line that a script prints; interop/talk.mjs is the other end.
type said struct {
	Step, Why, Open, Favour string
	OK                      bool
}

// runScript tries a library by the script that uses it, with one way of authenticating at the token endpoint.
func runScript(file, method string) func(*bench) {
	return func(b *bench) {
		setup, _ := json.Marshal(map[string]string{"issuer": b.s.url, "resource": b.s.url + "/mcp", "auth": method, "clientMetadataUrl": b.cimd})
		cmd := nodeCommand(b.t, b.home, file, string(setup))
		var trouble trial.Journal
		cmd.Stderr = &trouble
		stdin, err := cmd.StdinPipe()
		if err != nil {
			b.t.Fatal(err)
		}
		stdout, err := cmd.StdoutPipe()
		if err != nil {
			b.t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			b.t.Fatal(err)
		}
		lines := bufio.NewScanner(stdout)
		for lines.Scan() {
			var m said
			if err := json.Unmarshal(lines.Bytes(), &m); err != nil {
				b.t.Fatalf("%s printed %q: %s", file, lines.Text(), &trouble)
			}
			b.oblige(m, stdin)
		}
		_ = stdin.Close()
		if err := cmd.Wait(); err != nil {
			b.t.Fatalf("%s: %v: %s\nthe server says: %s", file, err, &trouble, b.s.logs)
		}
	}
}

// oblige records a step or does what the script asks for, and answers.
func (b *bench) oblige(m said, to io.Writer) {
	b.t.Helper()
	answer := map[string]any{}
	switch {
	case m.Step != "" && m.OK:
		b.yes(m.Step)
		return
	case m.Step != "":
		b.no(m.Step, m.Why)
		return
	case m.Open != "":
		answer["location"] = b.goTo(m.Open)
	case m.Favour == "revoke":
		b.revokeAll()
	case m.Favour == "end access tokens":
		b.endAccessTokens()
	case m.Favour == "count":
		answer["asked"] = b.asked
	default:
		b.t.Fatalf("the script asks for %+v", m)
	}
	if err := json.NewEncoder(to).Encode(answer); err != nil {
		b.t.Fatalf("the script is gone: %v", err)
	}
}
