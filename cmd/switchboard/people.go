package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"time"

	"switchboard/auth"
	"switchboard/auth/accounts"
	"switchboard/internal/caller"
	"switchboard/internal/fault"
	"switchboard/internal/scope"
	"switchboard/internal/store"
)

type userCommand struct {
	Email         string `required:"" help:"Address to sign in with. A known one gets another membership and keeps its password."`
	Org           string `required:"" help:"Name or id of the organization. An unknown name is made."`
	Role          string `required:"" enum:"owner,admin,member,viewer" help:"owner, admin, member or viewer."`
	Name          string `help:"The person's name."`
	PasswordStdin bool   `help:"Read the password from the first line of standard input."`
	Country       string `help:"Home country of a new organization, ISO 3166-1 alpha-2 (US)."`
	Timezone      string `help:"Time zone of a new organization, IANA (UTC)."`
	Language      string `help:"Language of a new organization, en or ar (en)."`
}

// Run lets somebody in.
func (c *userCommand) Run(ctx context.Context, cfg *Config, io console, log *slog.Logger) error {
	password := ""
	if c.PasswordStdin {
		line, err := firstLine(io.in)
		if err != nil {
			return fmt.Errorf("reading the password from standard input: %w", err)
		}
		password = line
	}
	p, err := open(ctx, cfg, log)
	if err != nil {
		return err
	}
	defer p.close()
	made, err := p.accounts.CreateUser(ctx, accounts.NewUser{
		Email: c.Email, Name: c.Name, Password: password, Organization: c.Org, Role: scope.Role(c.Role),
		Country: c.Country, Timezone: c.Timezone, Locale: c.Language,
	})
	var invalid *accounts.Invalid
	if errors.As(err, &invalid) {
		return userProblem(invalid)
	}
	if err != nil {
		return err
	}
	if made.NewOrganization {
		fmt.Fprintf(io.out, "Made the organization %s (%s).\n", made.Organization.Name, made.Organization.ID)
	}
	switch {
	case made.NewPerson:
		fmt.Fprintf(io.out, "%s can sign in and is %s of %s.\n", made.Person.Email, made.Role, made.Organization.Name)
	case made.PreviousRole == "":
		fmt.Fprintf(io.out, "%s, who keeps their password, is now also %s of %s.\n", made.Person.Email, made.Role, made.Organization.Name)
	default:
		fmt.Fprintf(io.out, "%s, who keeps their password, is now %s of %s (before: %s).\n", made.Person.Email, made.Role, made.Organization.Name, made.PreviousRole)
	}
	return nil
}

type passwordCommand struct {
	Email         string `required:"" help:"Address of the person."`
	PasswordStdin bool   `required:"" help:"Read the password from the first line of standard input."`
}

// Run sets the password of somebody who forgot theirs.
func (c *passwordCommand) Run(ctx context.Context, cfg *Config, io console, log *slog.Logger) error {
	password, err := firstLine(io.in)
	if err != nil {
		return fmt.Errorf("reading the password from standard input: %w", err)
	}
	p, err := open(ctx, cfg, log)
	if err != nil {
		return err
	}
	defer p.close()
	person, err := p.accounts.SetPassword(ctx, c.Email, password)
	var invalid *accounts.Invalid
	switch {
	case store.IsNotFound(err):
		return fmt.Errorf("nobody has the address %q", c.Email)
	case errors.As(err, &invalid):
		return userProblem(invalid)
	case err != nil:
		return err
	}
	_, err = fmt.Fprintf(io.out, "%s has a new password and is signed out everywhere.\n", person.Email)
	return err
}

func userProblem(i *accounts.Invalid) error {
	flag := map[string]string{"locale": "--language", "password": "the password"}[i.Field]
	if flag == "" {
		flag = "--" + i.Field
	}
	if i.Field == "password" && i.Reason == "required" {
		return errors.New("a new person needs a password: pass --password-stdin and write it to standard input")
	}
	return fmt.Errorf("%s %s", flag, i.Problem())
}

func firstLine(r io.Reader) (string, error) {
	line, err := bufio.NewReader(io.LimitReader(r, 64<<10)).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return "", err
	}
	if line = strings.TrimRight(line, "\r\n"); line == "" {
		return "", errors.New("it is empty")
	}
	return line, nil
}

type keyCommand struct {
	Org     string `required:"" help:"Name or id of the organization."`
	Name    string `required:"" help:"What the key is for."`
	Scopes  string `required:"" help:"Scopes, separated by spaces."`
	As      string `help:"Address of the member that the key acts as. By default the first owner."`
	Expires expiry `help:"When it ends: 90d, 12h. By default never."`
}

// Run makes a key and prints it on the last line, where a script finds it.
func (c *keyCommand) Run(ctx context.Context, cfg *Config, io console, log *slog.Logger) error {
	p, err := open(ctx, cfg, log)
	if err != nil {
		return err
	}
	defer p.close()
	who, organization, err := c.actor(ctx, p)
	if err != nil {
		return err
	}
	secret, key, err := p.auth.CreateKey(caller.With(ctx, who), auth.NewKey{Name: c.Name, Scopes: scope.Parse(c.Scopes), Expires: time.Duration(c.Expires)})
	var refused *fault.Error
	if errors.As(err, &refused) {
		return errors.New(refused.Message)
	}
	if err != nil {
		return err
	}
	ends := "never ends by itself"
	if !key.ExpiresAt.IsZero() {
		ends = "ends " + key.ExpiresAt.Format(time.RFC3339)
	}
	if lacking := key.Scopes.Filter(func(s string) bool { return !who.Role.Allows(s) }); len(lacking) > 0 {
		fmt.Fprintf(io.out, "Note: a %s does not have %s, so calls that need it are refused as long as that is their role.\n", who.Role, lacking)
	}
	fmt.Fprintf(io.out, "Key %q acts as %s (%s) in %s and %s.\nScopes: %s\nThis is the only time it is shown:\n%s\n",
		key.Name, who.PersonName, who.Role, organization, ends, key.Scopes, secret)
	return nil
}

// actor is the member that the key acts as.
func (c *keyCommand) actor(ctx context.Context, p *product) (caller.Caller, string, error) {
	o, err := p.accounts.FindOrganization(ctx, c.Org)
	if store.IsNotFound(err) {
		return caller.Caller{}, "", fmt.Errorf("there is no organization %q", c.Org)
	}
	if err != nil {
		return caller.Caller{}, "", err
	}
	find := func() (accounts.Person, error) { return p.accounts.FirstOwner(ctx, o.ID) }
	missing := fmt.Sprintf("%s has no owner yet: say whom the key acts as with --as", o.Name)
	if c.As != "" {
		find = func() (accounts.Person, error) { return p.accounts.FindPerson(ctx, c.As) }
		missing = fmt.Sprintf("nobody has the address %q", c.As)
	}
	person, err := find()
	if store.IsNotFound(err) {
		return caller.Caller{}, "", errors.New(missing)
	}
	if err != nil {
		return caller.Caller{}, "", err
	}
	who, err := p.accounts.Operator(ctx, person, o.ID)
	if errors.Is(err, accounts.ErrNoMember) {
		return caller.Caller{}, "", fmt.Errorf("%s is not a member of %s", person.Email, o.Name)
	}
	return who, o.Name, err
}
