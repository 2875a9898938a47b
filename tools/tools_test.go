package tools_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"switchboard/internal/audit"
	"switchboard/internal/caller"
	"switchboard/internal/fault"
	"switchboard/internal/scope"
	"switchboard/internal/store"
	"switchboard/internal/store/storetest"
	"switchboard/tools"
	"switchboard/tools/kit"
	"switchboard/tools/org"
)

// The registry is the table of these tests: a new tool is under all of them the moment it is registered.

// accounts stands in for the organizations that auth/accounts keeps.
type accounts map[string]*org.Organization

func (a accounts) Organization(_ context.Context, id string) (org.Organization, error) {
	if a[id] == nil {
		return org.Organization{}, errors.New("no such organization")
	}
	return *a[id], nil
}

func (a accounts) SetTimezone(_ context.Context, id, timezone string) error {
	a[id].Timezone = timezone
	return nil
}

type product struct {
	testing.TB
	store    *store.Store
	accounts accounts
	tools    kit.Registry
	runner   *kit.Runner
	logged   bytes.Buffer
}

func newProduct(t testing.TB) *product {
	t.Helper()
	s := storetest.Open(t)
	known := accounts{}
	for _, id := range []string{"org_a", "org_b"} {
		known[id] = &org.Organization{ID: id, Name: id, HomeCountry: "AE", Timezone: "Asia/Dubai", Locale: "en"}
	}
	p := &product{TB: t, store: s, accounts: known, tools: tools.All(tools.Deps{Store: s, Organizations: known, URL: "http://localhost:8080"})}
	p.runner = kit.NewRunner(kit.RunnerConfig{Store: s, Audit: audit.New(s), Log: slog.New(slog.NewJSONHandler(&p.logged, nil))})
	return p
}

// as is a caller with every scope, so that the role alone decides.
func (p *product) as(org string, role scope.Role) context.Context {
	return caller.With(p.Context(), caller.Caller{Org: org, Person: "per_1", Role: role, Via: caller.Key, ID: "key_1", Scopes: p.tools.Needed()})
}

func (p *product) call(ctx context.Context, tool kit.Tool, args string) (json.RawMessage, error) {
	r, err := p.runner.Call(ctx, tool, json.RawMessage(args))
	return r.Value, err
}

func (p *product) must(ctx context.Context, name, args string) json.RawMessage {
	p.Helper()
	tool, ok := p.tools.Tool(name)
	if !ok {
		p.Fatalf("there is no tool %s", name)
	}
	value, err := p.call(ctx, tool, args)
	if err != nil {
		p.Fatalf("%s: %v", name, err)
	}
	return value
}

// outcomes are the audit records of one tool as "outcome code", oldest first.
func (p *product) outcomes(action string) []string {
	p.Helper()
	var entries []audit.Entry
	err := p.store.DB(p.as("org_a", scope.Owner)).Where("action = ?", action).Order("at, id").Find(&entries).Error
	if err != nil {
		p.Fatal(err)
	}
	out := []string{}
	for _, e := range entries {
		out = append(out, strings.TrimSpace(string(e.Outcome)+" "+e.Code))
	}
	return out
}

func TestEveryToolSaysWhatItIs(t *testing.T) {
	p := newProduct(t)
	for _, tool := range p.tools.Tools() {
		s := tool.Spec()
		if !strings.Contains(s.Doc, "Returns ") {
			t.Errorf("%s: its doc does not say what it returns", s.Name)
		}
		if d := tool.Description(); !strings.Contains(d, "Needs the permission "+s.Scope) || len(d) > 1024 || strings.Contains(d, "—") {
			t.Errorf("%s: %q", s.Name, d)
		}
		if err := tool.Validate(json.RawMessage(s.Example)); err != nil {
			t.Errorf("%s: its example: %v", s.Name, err)
		}
	}
}

func TestEveryScopeIsInOneGroupAndHasARole(t *testing.T) {
	p := newProduct(t)
	groups := map[string]int{}
	for _, g := range tools.Groups() {
		for _, s := range g.Scopes {
			groups[s]++
			if _, ok := scope.LeastRole(s); !ok {
				t.Errorf("no role has %s", s)
			}
		}
	}
	for s, n := range groups {
		if n != 1 {
			t.Errorf("%s is in %d groups", s, n)
		}
	}
	for _, s := range p.tools.Needed() {
		if groups[s] == 0 {
			t.Errorf("%s is in no group: nobody could grant it", s)
		}
	}
	for name, under := range tools.Umbrellas() {
		for _, s := range under {
			if _, nested := tools.Umbrellas()[s]; !nested && groups[s] == 0 {
				t.Errorf("%s stands for %s, which is in no group", name, s)
			}
		}
	}
	catalog := scope.NewCatalog(tools.Groups(), tools.Umbrellas(), p.tools.Needed())
	if !catalog.Default().Equal(p.tools.Needed()) {
		t.Errorf("the default is %v", catalog.Default())
	}
}

func TestWithoutItsScopeNoToolRuns(t *testing.T) {
	p := newProduct(t)
	for _, tool := range p.tools.Tools() {
		c := caller.Caller{Org: "org_a", Role: scope.Owner, Scopes: p.tools.Needed().Minus(tool.Needs())}
		_, err := p.call(caller.With(t.Context(), c), tool, tool.Spec().Example)
		var missing *kit.ScopeError
		if !errors.As(err, &missing) || !missing.Missing.Equal(tool.Needs()) {
			t.Errorf("%s: %v", tool.Name(), err)
		}
		want := []string{}
		if tool.Spec().Mutates() {
			want = []string{"refused insufficient_scope"}
		}
		if diff := cmp.Diff(want, p.outcomes(tool.Name())); diff != "" {
			t.Errorf("%s: %s", tool.Name(), diff)
		}
	}
}

func TestARoleBelowTheScopesIsForbidden(t *testing.T) {
	p := newProduct(t)
	for _, tool := range p.tools.Tools() {
		least, _ := scope.LeastRole(tool.Spec().Scope)
		for _, role := range append(scope.Roles(), "") {
			_, err := p.call(p.as("org_a", role), tool, tool.Spec().Example)
			if forbidden := fault.Is(err, fault.Forbidden); forbidden == role.AtLeast(least) {
				t.Errorf("%s as %q: %v", tool.Name(), role, err)
			}
			if e := (*kit.ScopeError)(nil); errors.As(err, &e) {
				t.Errorf("%s as %q: a challenge that no consent can answer", tool.Name(), role)
			}
		}
		if outcomes := p.outcomes(tool.Name()); tool.Spec().Mutates() && least != scope.Viewer && !slices.Contains(outcomes, "refused forbidden") {
			t.Errorf("%s: no record: %v", tool.Name(), outcomes)
		}
	}
}

func TestEveryChangeIsOnRecord(t *testing.T) {
	p := newProduct(t)
	admin := p.as("org_a", scope.Admin)
	for _, tool := range p.tools.Tools() {
		if _, err := p.call(admin, tool, `{"surelyUnknown":1}`); !fault.Is(err, fault.InvalidRequest) {
			t.Errorf("%s takes anything: %v", tool.Name(), err)
		}
		args := tool.Spec().Example
		if tool.Confirms() {
			args = strings.Replace(args, "{", `{"confirm":true,`, 1)
		}
		if _, err := p.call(admin, tool, args); err != nil && !fault.Is(err, fault.NotFound) {
			t.Errorf("%s: its example: %v", tool.Name(), err)
		}
		want := []string{}
		if tool.Spec().Mutates() {
			want = []string{"refused invalid_request", "started", "ok"}
		}
		if diff := cmp.Diff(want, p.outcomes(tool.Name())); diff != "" {
			t.Errorf("%s: %s", tool.Name(), diff)
		}
	}
}

// recorded are the tables that grow with every call, and the database's own.
var recorded = []string{"audit", "tool_calls", "goose_db_version", "sqlite_sequence"}

// stored is everything the domains have in the database, times of change included, and what they told accounts.
func (p *product) stored() map[string][]string {
	p.Helper()
	db := p.store.DB(store.AllOrgs(p.Context(), "comparing all rows"))
	tables, err := db.Migrator().GetTables()
	if err != nil {
		p.Fatal(err)
	}
	all := map[string][]string{}
	for id, o := range p.accounts {
		all["accounts"] = append(all["accounts"], fmt.Sprint(id, *o))
	}
	for _, table := range tables {
		if slices.Contains(recorded, table) {
			continue
		}
		var rows []map[string]any
		if err := db.Table(table).Find(&rows).Error; err != nil {
			p.Fatal(err)
		}
		for _, row := range rows {
			all[table] = append(all[table], fmt.Sprint(row)) // fmt sorts the columns
		}
	}
	for _, rows := range all {
		slices.Sort(rows)
	}
	return all
}

func TestWhatIsIdempotentChangesNothingTheSecondTime(t *testing.T) {
	p := newProduct(t)
	admin := p.as("org_a", scope.Admin)
	for _, tool := range p.tools.Tools() {
		if !tool.Spec().Idempotent {
			continue
		}
		args := tool.Spec().Example
		if tool.Confirms() {
			args = strings.Replace(args, "{", `{"confirm":true,`, 1)
		}
		before := p.stored()
		p.must(admin, tool.Name(), args)
		first := p.stored()
		if cmp.Equal(before, first) {
			t.Errorf("%s: its example changes nothing, so this test sees nothing", tool.Name())
		}
		second := p.must(admin, tool.Name(), args)
		if diff := cmp.Diff(first, p.stored()); diff != "" {
			t.Errorf("%s changes something the second time: %s", tool.Name(), diff)
		}
		if diff := cmp.Diff(string(second), string(p.must(admin, tool.Name(), args))); diff != "" {
			t.Errorf("%s: %s", tool.Name(), diff)
		}
	}
}

func TestAnotherOrganizationsIDsAreNotFound(t *testing.T) {
	p := newProduct(t)
	// One foreign thing of each kind that an argument can name.
	var made struct{ Contact struct{ ID string } }
	if err := json.Unmarshal(p.must(p.as("org_b", scope.Admin), "upsert_contact", `{"phone":"+14155550123"}`), &made); err != nil {
		t.Fatal(err)
	}
	foreign := map[string]string{"contactId": made.Contact.ID}
	for _, tool := range p.tools.Tools() {
		var s struct{ Properties map[string]any }
		if err := json.Unmarshal(tool.InputSchema(), &s); err != nil {
			t.Fatal(err)
		}
		for name := range s.Properties {
			if !strings.HasSuffix(name, "Id") && !strings.HasSuffix(name, "_id") {
				continue
			}
			if foreign[name] == "" {
				t.Errorf("%s: this test makes no foreign %s", tool.Name(), name)
				continue
			}
			unknown := strings.Repeat("x", len(foreign[name]))
			says := map[string]string{}
			for _, id := range []string{foreign[name], unknown} {
				_, err := p.call(p.as("org_a", scope.Admin), tool, fmt.Sprintf(`{%q:%q}`, name, id))
				if !fault.Is(err, fault.NotFound) {
					t.Errorf("%s with a foreign %s: %v", tool.Name(), name, err)
					continue
				}
				says[id] = strings.ReplaceAll(err.Error(), id, "it")
			}
			if says[foreign[name]] != says[unknown] {
				t.Errorf("%s tells a foreign %s from an unknown one: %q", tool.Name(), name, says)
			}
		}
	}
}

func TestNoLogLineOrRecordHoldsWhatPeopleSaid(t *testing.T) {
	p := newProduct(t)
	admin := p.as("org_a", scope.Admin)
	canaries := []string{"+14155550177", "14155550177", "canaryname", "canarynote", "canary@example.com", "canaryfact", "canarytag", "canaryconsent"}
	for _, call := range [][2]string{
		{"upsert_contact", `{"phone":"+14155550177","name":"canaryname","notes":"canarynote","email":"canary@example.com","tags":["canarytag"],"attributes":{"canaryfact":"canaryfact"}}`},
		{"upsert_contact", `{"phone":"+1415 5550177 x14155550177","name":5}`},
		{"upsert_contact", `{"phone":"+14155550177","+14155550177":"canarynote"}`},
		{"upsert_contact", `{"phone":"+14155550177","attributes":{"+14155550177":5}}`},
		{"set_do_not_call", `{"phone":"+14155550177"}`},
		{"get_contact", `{"phone":"+14155550177"}`},
		{"get_contact", `{"contactId":"+14155550177"}`},
		{"list_contacts", `{"search":"canaryname","tag":"canarytag","cursor":"canaryname"}`},
		{"update_outbound_settings", `{"consentText":"canaryconsent","timezone":"canaryname"}`},
		{"update_outbound_settings", `{"consentText":"canaryconsent"}`},
	} {
		tool, _ := p.tools.Tool(call[0])
		if _, err := p.call(admin, tool, call[1]); err != nil {
			for _, c := range canaries {
				if strings.Contains(err.Error(), c) {
					t.Errorf("%s %s: the error repeats %s: %v", call[0], call[1], c, err)
				}
			}
		}
	}
	var entries []audit.Entry
	var calls []map[string]any
	all := store.AllOrgs(t.Context(), "looking for canaries")
	if err := errors.Join(p.store.DB(all).Find(&entries).Error, p.store.DB(all).Table("tool_calls").Find(&calls).Error); err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal([]any{entries, calls})
	if err != nil || len(entries) == 0 || len(calls) == 0 {
		t.Fatalf("%d records, %d calls, %v", len(entries), len(calls), err)
	}
	for _, c := range canaries {
		if strings.Contains(p.logged.String(), c) || strings.Contains(string(text), c) {
			t.Errorf("%s is in a log line or a record", c)
		}
	}
}

// nullable is where a result may have null, because the contract says so.
var nullable = map[string][]string{
	"get_organization": {".logoUrl"},
	"list_contacts":    {".contacts[].name", ".contacts[].email"},
	"get_contact":      {".name", ".email"},
	"upsert_contact":   {".contact.email"},
	"set_do_not_call":  {".name", ".email"},
}

func TestFreshResultsHaveNoNullAndAreSmall(t *testing.T) {
	p := newProduct(t)
	admin := p.as("org_a", scope.Admin)
	fresh := func(tool kit.Tool, args string) {
		value, err := p.call(admin, tool, args)
		if fault.Is(err, fault.NotFound) || fault.Is(err, fault.InvalidRequest) && args == onlyRequired(t, tool) {
			return // one of two must be given, say
		}
		if err != nil {
			t.Errorf("%s: %v", tool.Name(), err)
			return
		}
		var v any
		if err := json.Unmarshal(value, &v); err != nil {
			t.Fatal(err)
		}
		for _, path := range nulls("", v) {
			if !slices.Contains(nullable[tool.Name()], path) {
				t.Errorf("%s: %s is null", tool.Name(), path)
			}
		}
		if len(value) > 60_000 {
			t.Errorf("%s: %d bytes", tool.Name(), len(value))
		}
	}
	read := 0
	for _, tool := range p.tools.Tools() {
		if tool.Spec().Mutates() {
			continue
		}
		fresh(tool, tool.Spec().Example)
		fresh(tool, onlyRequired(t, tool))
		read++
	}
	if read < 3 {
		t.Errorf("%d tools were read", read)
	}
	p.must(admin, "set_do_not_call", `{"phone":"+14155550199"}`)
	for i := range 40 {
		p.must(admin, "upsert_contact", fmt.Sprintf(`{"phone":"+1415555%04d","notes":%q}`, i, strings.Repeat("n", 1000)))
	}
	for _, tool := range p.tools.Tools() {
		fresh(tool, tool.Spec().Example)
	}
	list, _ := p.tools.Tool("list_contacts")
	fresh(list, `{}`)
}

// onlyRequired is the example of a tool without what may be left out.
func onlyRequired(t *testing.T, tool kit.Tool) string {
	t.Helper()
	var schema struct{ Required []string }
	var args map[string]json.RawMessage
	if err := errors.Join(json.Unmarshal(tool.InputSchema(), &schema), json.Unmarshal([]byte(tool.Spec().Example), &args)); err != nil {
		t.Fatal(err)
	}
	maps.DeleteFunc(args, func(name string, _ json.RawMessage) bool { return !slices.Contains(schema.Required, name) })
	text, err := json.Marshal(args)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func nulls(at string, v any) (paths []string) {
	switch v := v.(type) {
	case nil:
		return []string{at}
	case map[string]any:
		for k, inner := range v {
			paths = append(paths, nulls(at+"."+k, inner)...)
		}
	case []any:
		for _, inner := range v {
			paths = append(paths, nulls(at+"[]", inner)...)
		}
	}
	return paths
}

func TestNextStepsNameToolsAndPagesThatExist(t *testing.T) {
	p := newProduct(t)
	admin := p.as("org_a", scope.Admin)
	var got org.Started
	if err := json.Unmarshal(p.must(admin, "get_started", ``), &got); err != nil {
		t.Fatal(err)
	}
	if len(got.NextSteps) != 2 {
		t.Errorf("%+v", got.NextSteps)
	}
	for _, step := range got.NextSteps {
		tool, ok := p.tools.Tool(step.Tool)
		if !ok {
			t.Errorf("a step names %s", step.Tool)
			continue
		}
		p.must(admin, tool.Name(), tool.Spec().Example)
	}
	if err := json.Unmarshal(p.must(admin, "get_started", `null`), &got); err != nil || !got.Onboarding.Complete || len(got.NextSteps) != 0 {
		t.Errorf("when all is done: %+v, %v", got, err)
	}
}
