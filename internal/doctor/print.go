package doctor

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
)

// Print writes the report for a person: a line for each client, and each finding once below, by number.
func (r *Report) Print(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "Switchboard at %s\n\n", r.Address)
	if r.Everyone != nil {
		fmt.Fprintf(&b, "Every client fails at %s.\n%s\n\n", r.Everyone.Step, r.Everyone.text(""))
	}
	var listed []Finding
	number := func(f Finding) int {
		i := slices.Index(listed, f)
		if i < 0 {
			i, listed = len(listed), append(listed, f)
		}
		return i + 1
	}
	table := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	for _, c := range r.Clients {
		state := "ok"
		if c.Finding != nil && r.Everyone != nil {
			state = "fails"
		} else if c.Finding == nil && len(c.Notes) > 0 {
			state = "ok from here"
		} else if c.Finding != nil {
			state = fmt.Sprintf("fails at %s [%d]", c.Finding.Step, number(*c.Finding))
		}
		for _, n := range c.Notes {
			state += fmt.Sprintf(", note [%d]", number(n))
		}
		fmt.Fprintf(table, "%s\t%s\n", c.Client, state)
	}
	_ = table.Flush() // a strings.Builder takes everything
	for i, f := range listed {
		fmt.Fprintf(&b, "\n[%d] %s\n", i+1, f.text("    "))
	}
	for _, f := range r.Warnings {
		fmt.Fprintf(&b, "\nWarning: %s\n", f.text("         "))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// text is the finding on two lines, the second one indented.
func (f Finding) text(indent string) string { return f.Saw + ".\n" + indent + "→ " + f.Do }
