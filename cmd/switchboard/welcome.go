package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"switchboard/auth/accounts"
)

// welcome says where the server is and what to do next. The set-up link is a secret: it is shown to a person at a
// terminal, and goes into a file of its owner alone where the output may end up in a log.
func welcome(ctx context.Context, cfg *Config, p *product, origin *url.URL, io console) error {
	var b strings.Builder
	fmt.Fprintf(&b, "\nSwitchboard %s is running at %s\n", version, origin)
	switch link, err := p.accounts.NewSetupLink(ctx); {
	case err == nil && io.terminal:
		fmt.Fprintf(&b, "\nSet it up first. This link works once, for one hour:\n  %s\n", setupURL(origin, link))
	case err == nil:
		path, err := writeSetupLink(cfg, setupURL(origin, link))
		if err != nil {
			return err
		}
		fmt.Fprintf(&b, "\nSet it up first. A link that works once, for one hour, is in the file\n  %s\n", path)
	case !errors.Is(err, accounts.ErrNoSetup):
		return err
	default:
		// The file may still be there from before there was an owner; its link is worth nothing now.
		if err := os.Remove(setupLinkPath(cfg)); err != nil && !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("removing the old set-up link: %w", err)
		}
		fmt.Fprintf(&b, "\nSign in at %s/sign-in\n", origin)
	}
	mcp := origin.String() + "/mcp"
	fmt.Fprintf(&b, `
Then connect an AI app:
  Claude Code  claude mcp add --transport http switchboard %[1]s
  Cursor       put into .cursor/mcp.json: {"mcpServers":{"switchboard":{"url":"%[1]s"}}}
  VS Code      code --add-mcp '{"name":"switchboard","type":"http","url":"%[1]s"}'
`, mcp)
	if origin.Scheme != "https" {
		b.WriteString("  Claude on the web and ChatGPT call from the internet: they need a public https URL (SWITCHBOARD_URL).\n")
	} else {
		fmt.Fprintf(&b, "  Claude, ChatGPT  add a custom connector with the URL %s\n", mcp)
	}
	_, err := fmt.Fprintln(io.out, b.String())
	return err
}

func setupURL(origin *url.URL, link string) string { return origin.String() + "/setup?link=" + link }

func setupLinkPath(cfg *Config) string { return filepath.Join(filepath.Dir(cfg.KeyFile), "setup-link") }

// writeSetupLink puts the link beside the key file.
func writeSetupLink(cfg *Config, link string) (string, error) {
	path := setupLinkPath(cfg)
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return "", fmt.Errorf("replacing the set-up link: %w", err)
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return "", fmt.Errorf("writing the set-up link: %w", err)
	}
	_, err = fmt.Fprintln(f, link)
	if err := errors.Join(err, f.Close()); err != nil {
		return "", fmt.Errorf("writing the set-up link: %w", err)
	}
	return path, nil
}
