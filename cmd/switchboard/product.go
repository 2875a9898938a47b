package main

import (
	"context"
	"errors"
	"log/slog"
	"os"

	"switchboard/auth"
	"switchboard/auth/accounts"
	"switchboard/internal/audit"
	"switchboard/internal/scope"
	"switchboard/internal/seal"
	"switchboard/internal/store"
	"switchboard/migrations"
	"switchboard/tools"
	"switchboard/tools/kit"
	"switchboard/tools/org"
)

// product is what every command works with: an open, migrated database and the two cores on it.
type product struct {
	store    *store.Store
	secrets  *seal.Keyring
	audit    *audit.Log
	accounts *accounts.Accounts
	auth     *auth.Auth
	tools    kit.Registry
	scopes   *scope.Catalog
	// resources are the MCP endpoint, and then its parts, one for each toolset.
	resources []auth.Resource
	log       *slog.Logger
}

func open(ctx context.Context, cfg *Config, log *slog.Logger) (*product, error) {
	public, err := cfg.origin()
	if err != nil {
		return nil, err
	}
	p := &product{log: log}
	if file := cfg.databaseNote(); file != "" {
		if _, err := os.Stat(file); errors.Is(err, os.ErrNotExist) {
			log.Info("making a new database", "file", file) // started in another directory, that is a surprise
		}
	}
	if p.store, err = store.Open(ctx, store.Config{URL: cfg.Database}); err != nil {
		return nil, err
	}
	err = p.store.Migrate(ctx, migrations.FS)
	if err == nil {
		p.secrets, err = seal.Load(cfg.KeyFile)
	}
	if err == nil {
		err = auth.ClaimKeys(ctx, p.store, p.secrets)
	}
	if err != nil {
		p.close()
		return nil, err
	}
	p.audit = audit.New(p.store)
	p.accounts = accounts.New(accounts.Config{Store: p.store, Secrets: p.secrets, Audit: p.audit, Log: log})
	p.tools = tools.All(tools.Deps{Store: p.store, Organizations: organizations{p.accounts}, URL: public.String()})
	p.offer(public.String())
	p.auth = auth.New(auth.Config{
		Store: p.store, Secrets: p.secrets, Accounts: p.accounts, Audit: p.audit, Scopes: p.scopes, Resources: p.resources, Log: log, Issuer: public.String(),
	})
	return p, nil
}

// offer works out what can be asked for at which endpoint.
func (p *product) offer(issuer string) {
	catalog := func(r kit.Registry) *scope.Catalog {
		return scope.NewCatalog(tools.Groups(), tools.Umbrellas(), r.Needed())
	}
	p.scopes = catalog(p.tools)
	whole := auth.Resource{URL: issuer + "/mcp", Name: "Switchboard", Scopes: p.scopes}
	p.resources = []auth.Resource{whole}
	for _, set := range p.tools.Toolsets() {
		p.resources = append(p.resources, auth.Resource{
			URL: whole.URL + "/" + string(set), Name: "Switchboard " + string(set), Scopes: catalog(p.tools.Toolset(set)), Whole: whole.URL,
		})
	}
}

// formKeys are the keys that pages sign their forms with, the current one first: a replica that has another key on top
// still knows a form that was opened here.
func (p *product) formKeys() [][]byte {
	keys := [][]byte{}
	for _, id := range p.secrets.IDs() {
		key, _ := p.secrets.Derive(id, seal.Form)
		keys = append(keys, key)
	}
	return keys
}

func (p *product) close() {
	if err := p.store.Close(); err != nil {
		p.log.Error("database not closed", "err", err)
	}
}

// organizations shows the organizations of auth/accounts to tools/org, which must not know auth.
type organizations struct{ accounts *accounts.Accounts }

// Organization implements org.Organizations.
func (o organizations) Organization(ctx context.Context, id string) (org.Organization, error) {
	found, err := o.accounts.Organization(ctx, id)
	return org.Organization(found), err
}

// SetTimezone implements org.Organizations.
func (o organizations) SetTimezone(ctx context.Context, id, timezone string) error {
	return o.accounts.SetTimezone(ctx, id, timezone)
}
