// Command switchboard is one server that lets AI assistants act under a person's control: an OAuth 2.1
// authorization server, an MCP server, and the tools behind it. See README.md.
package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"runtime"
	"syscall"

	"github.com/alecthomas/kong"
	"golang.org/x/term"
)

// version is the release.
const version = "0.1.0"

// commands is the command line.
type commands struct {
	Config

	Serve   serveCommand   `cmd:"" default:"withargs" help:"Run the server (the default)."`
	Migrate migrateCommand `cmd:"" help:"Bring the database up to date and stop."`
	User    struct {
		Create   userCommand     `cmd:"" help:"Let a person into an organization, or change their role there."`
		Password passwordCommand `cmd:"" help:"Set a person's password, and sign them out everywhere."`
	} `cmd:"" help:"People."`
	Key struct {
		Create keyCommand `cmd:"" help:"Make an API key."`
	} `cmd:"" help:"API keys."`
	Doctor  doctorCommand  `cmd:"" help:"Find out which AI apps would connect to a running server, and what stops the others."`
	Version versionCommand `cmd:"" help:"Print the version."`
}

// console is where a command reads and writes.
type console struct {
	in          io.Reader
	out, errors io.Writer
	terminal    bool // out is one
}

func main() { os.Exit(new(commands).main()) }

// main runs what the arguments of the process say and returns its exit code.
func (cli *commands) main() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second Ctrl-C does not wait for what is under way
	io := console{os.Stdin, os.Stdout, os.Stderr, term.IsTerminal(int(os.Stdout.Fd()))}
	if err := cli.run(ctx, os.Args[1:], io); err != nil {
		fmt.Fprintln(os.Stderr, "switchboard:", err)
		return 1
	}
	return 0
}

// run parses the command line and runs the command.
func (cli *commands) run(ctx context.Context, args []string, io console) error {
	parser, err := newParser(cli, io)
	if err != nil {
		return err
	}
	parsed, err := parser.Parse(args)
	if err != nil {
		return err
	}
	if err := cli.check(); err != nil {
		return err
	}
	parsed.BindTo(ctx, (*context.Context)(nil))
	return parsed.Run(&cli.Config, io, newLog(cli.LogLevel, io.errors))
}

func newParser(cli *commands, io console) (*kong.Kong, error) {
	return kong.New(cli, kong.Name("switchboard"), kong.UsageOnError(), kong.Writers(io.out, io.errors),
		kong.Description("Lets AI assistants act in the real world under a person's control."))
}

// newLog writes JSON lines, and plain ones to a person.
func newLog(level string, w io.Writer) *slog.Logger {
	var least slog.Level
	_ = least.UnmarshalText([]byte(level)) // kong has checked it
	options := &slog.HandlerOptions{Level: least}
	if f, ok := w.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		return slog.New(slog.NewTextHandler(w, options))
	}
	return slog.New(slog.NewJSONHandler(w, options))
}

type versionCommand struct{}

// Run prints the version.
func (versionCommand) Run(io console) error {
	_, err := fmt.Fprintf(io.out, "switchboard %s (%s %s/%s)\n", version, runtime.Version(), runtime.GOOS, runtime.GOARCH)
	return err
}

type migrateCommand struct{}

// Run opens the database, which migrates it.
func (migrateCommand) Run(ctx context.Context, cfg *Config, io console, log *slog.Logger) error {
	p, err := open(ctx, cfg, log)
	if err != nil {
		return err
	}
	defer p.close()
	_, err = fmt.Fprintln(io.out, "The database is up to date.")
	return err
}
