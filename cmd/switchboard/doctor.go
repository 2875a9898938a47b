package main

import (
	"context"
	"encoding/json"
	"fmt"

	"switchboard/internal/doctor"
)

type doctorCommand struct {
	Address string   `arg:"" optional:"" help:"Origin of the server, or the URL that people paste. By default SWITCHBOARD_URL."`
	Client  []string `placeholder:"NAME" help:"Replay these clients alone, such as claude-code or cursor, separated by commas."`
	JSON    bool     `help:"Print the findings as JSON."`
}

// Run examines a server from the outside, without its database or keys. It fails when a client would.
func (c doctorCommand) Run(ctx context.Context, cfg *Config, io console) error {
	if c.Address == "" {
		public, err := cfg.origin()
		if err != nil {
			return err
		}
		c.Address = public.String()
	}
	clients, err := doctor.Named(c.Client)
	if err != nil {
		return err
	}
	report, err := doctor.New(doctor.Config{Clients: clients}).Examine(ctx, c.Address)
	if err != nil {
		return err
	}
	if c.JSON {
		pretty := json.NewEncoder(io.out)
		pretty.SetEscapeHTML(false)
		pretty.SetIndent("", "  ")
		err = pretty.Encode(report)
	} else {
		err = report.Print(io.out)
	}
	if n := report.Failing(); n > 0 && err == nil {
		return fmt.Errorf("%d of %d clients would not connect", n, len(report.Clients))
	}
	return err
}
