package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"switchboard/internal/audit"
	"switchboard/internal/caller"
	"switchboard/internal/fault"
	"switchboard/internal/scope"
	"switchboard/internal/store"
	"switchboard/internal/store/storetest"
	"switchboard/internal/trial"
	"switchboard/tools"
	"switchboard/tools/contacts"
	"switchboard/tools/kit"
	"switchboard/tools/org"
)

// The tools of the product are looked at here as they are served, because that is what hosts take or refuse.

// home stands in for the organizations that auth/accounts keeps.
type home struct{}

func (home) Organization(_ context.Context, id string) (org.Organization, error) {
	return org.Organization{ID: id, Name: "Home", HomeCountry: "AE", Timezone: "Asia/Dubai", Locale: "en"}, nil
}

func (home) SetTimezone(context.Context, string, string) error { return nil }

// toolsets are the lists of tools that are served, by name: all of them, and each toolset's.
func toolsets(s *store.Store) map[string]kit.Registry {
	all := tools.All(tools.Deps{Store: s, Organizations: home{}, URL: "http://localhost:8080"})
	served := map[string]kit.Registry{"everything": all}
	for _, set := range all.Toolsets() {
		served[string(set)] = all.Toolset(set)
	}
	return served
}

// serving is a world with other tools than its own. "all" may call every one of them.
func serving(t testing.TB, s *store.Store, registry kit.Registry) *world {
	t.Helper()
	return newWorld(t, func(cfg *Config) {
		d := newDoorman(registry.Needed())
		d.callers["all"] = caller.Caller{Org: "org_1", Person: "per_all", Role: scope.Owner, Via: caller.Connection, ID: "con_all",
			Scopes: registry.Needed(), Granted: registry.Needed()}
		cfg.Auth, cfg.Tools = d, registry
		cfg.Runner = kit.NewRunner(kit.RunnerConfig{Store: s, Audit: audit.New(s), Log: slog.New(slog.DiscardHandler)})
	})
}

// inside is a context that sees the rows of the organization of the callers.
func inside(t testing.TB) context.Context {
	return caller.With(t.Context(), caller.Caller{Org: "org_1", Person: "per_all"})
}

// listed fetches all pages of tools/list and how many bytes they had.
func (w *world) listed(t testing.TB, token string) (entries []json.RawMessage, bytes int) {
	t.Helper()
	params := `{}`
	for range 20 {
		r := w.post(t, token, `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":`+params+`}`)
		var page struct {
			Result struct {
				Tools      []json.RawMessage
				NextCursor string
			}
		}
		if err := json.Unmarshal([]byte(r.body), &page); err != nil {
			t.Fatalf("%s: %v", r.body, err)
		}
		entries, bytes = append(entries, page.Result.Tools...), bytes+len(r.body)
		if page.Result.NextCursor == "" {
			return entries, bytes
		}
		params = fmt.Sprintf(`{"cursor":%q}`, page.Result.NextCursor)
	}
	t.Fatal("the pages do not end")
	return nil, 0
}

func TestEveryHostTakesEveryListOfTools(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	for name, registry := range toolsets(s) {
		w := serving(t, s, registry)
		entries, bytes := w.listed(t, "all")
		for _, finding := range trial.LintTools(entries) {
			t.Errorf("%s: %s", name, finding)
		}
		if bytes > trial.MaxToolList {
			t.Errorf("%s: the list has %d bytes", name, bytes)
		}
		t.Logf("%s: %d tools, %d bytes", name, len(entries), bytes)
		if len(entries) != len(registry.Tools()) || len(entries) == 0 {
			t.Errorf("%s: %d tools of %d are listed", name, len(entries), len(registry.Tools()))
		}
		for _, entry := range entries {
			var said struct {
				Name        string
				Annotations struct{ ReadOnlyHint, DestructiveHint, IdempotentHint, OpenWorldHint bool }
			}
			if err := json.Unmarshal(entry, &said); err != nil {
				t.Fatal(err)
			}
			tool, _ := registry.Tool(said.Name)
			hints, spec := said.Annotations, tool.Spec()
			if hints.ReadOnlyHint != (spec.Effect == kit.Read) || hints.DestructiveHint != (spec.Effect == kit.Destroy) ||
				hints.IdempotentHint != spec.Idempotent || hints.OpenWorldHint != spec.External {
				t.Errorf("%s: %s says %+v and is %+v", name, said.Name, hints, spec)
			}
		}
	}
}

// A list is the same whoever asks, and being on it lets nobody in.
func TestAListedToolOutsideTheScopesIsRefused(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	for name, registry := range toolsets(s) {
		w := serving(t, s, registry)
		full, _ := w.listed(t, "all")
		short, _ := w.listed(t, "low")
		if diff := cmp.Diff(full, short); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
		refused := 0
		for _, tool := range registry.Tools() {
			if scope.Of("org:read").Has(tool.Spec().Scope) {
				continue
			}
			refused++
			r := w.post(t, "low", call(tool.Name(), tool.Spec().Example))
			challenge := r.header.Get("WWW-Authenticate")
			if r.status != 403 || !strings.Contains(challenge, `error="insufficient_scope"`) ||
				!strings.Contains(challenge, tool.Spec().Scope) || !strings.Contains(challenge, "org:read") {
				t.Errorf("%s: %s: %d %s", name, tool.Name(), r.status, challenge)
			}
		}
		if refused == 0 {
			t.Errorf("%s: nothing was refused", name)
		}
	}
}

// A tool that is switched off, or in another toolset, is not told from one that never was: no scope, no challenge.
func TestAToolThatIsNotServedIsOneThatDoesNotExist(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	all := toolsets(s)["everything"]
	off := slices.DeleteFunc(all.Tools(), func(tool kit.Tool) bool { return tool.Name() == "upsert_contact" })
	w := serving(t, s, kit.NewRegistry(kit.Area{Tools: off}))
	for _, token := range []string{"low", "viewer", "all"} {
		for _, version := range revisions {
			answer := func(name string) string {
				headers := []string{"MCP-Protocol-Version", version}
				body := call(name, `{"phone":"+14155550123"}`)
				if version == modern {
					headers = append(headers, "Mcp-Method", "tools/call", "Mcp-Name", name)
					body = strings.Replace(body, `"arguments"`, modernMeta+`,"arguments"`, 1)
				}
				r := w.post(t, token, body, headers...)
				if want := map[bool]int{true: 400, false: 200}[version == modern]; r.status != want || r.header.Get("WWW-Authenticate") != "" {
					t.Errorf("%s as %s in %s: %d %q", name, token, version, r.status, r.header.Get("WWW-Authenticate"))
				}
				r.header.Del("X-Request-Id")
				r.header.Del("Date")
				r.header.Del("Content-Length")
				return fmt.Sprint(r.status, r.header, strings.ReplaceAll(r.body, name, "THIS"))
			}
			never := answer("never_was")
			if !strings.Contains(never, `"code":-32602`) {
				t.Errorf("%s in %s: %s", token, version, never)
			}
			for _, name := range []string{"upsert_contact", "Get_contact", "get_contact ", "contacts/get_contact"} {
				if diff := cmp.Diff(never, answer(name)); diff != "" && !(version == modern && strings.HasSuffix(name, " ")) {
					t.Errorf("%s as %s in %s: %s", name, token, version, diff)
				}
			}
		}
	}
}

// seed makes contacts that are made of what grows on its way, some of them as large as a contact can be. Each ten
// were made in one microsecond.
func seed(t testing.TB, s *store.Store, n int) (ids []string) {
	t.Helper()
	units := slices.Sorted(func(yield func(string) bool) {
		for _, unit := range contents {
			if !yield(strings.ToValidUTF8(unit, "?")) {
				return
			}
		}
	})
	rows := make([]contacts.Contact, n)
	began := time.Date(2027, 1, 31, 9, 0, 0, 0, time.UTC)
	for i := range rows {
		unit, size := units[i%len(units)], 200
		if i%500 == 7 {
			size = 4000 // as many characters as notes may have
		}
		name := "Sara \"" + unit + "\""
		at := store.At(began.Add(time.Duration(i/10) * time.Second))
		rows[i] = contacts.Contact{ID: fmt.Sprintf("con_%06d", i), Phone: fmt.Sprintf("+1415%07d", i), Name: &name, Attributes: contacts.Attributes{"plan": unit},
			Notes: strings.Repeat(unit, size/len([]rune(unit))), CreatedAt: at, UpdatedAt: at}
		ids = append(ids, rows[i].ID)
	}
	err := s.Tx(inside(t), func(ctx context.Context) error { return s.DB(ctx).CreateInBatches(rows, 500).Error })
	if err != nil {
		t.Fatal(err)
	}
	return ids
}

func TestEveryReadToolAnswersWithinWhatHostsTakeAndPagesYieldEachRowOnce(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	w := serving(t, s, toolsets(s)["everything"])
	want := seed(t, s, 5_000)
	largest := 0
	ask := func(tool, args string) toolResult {
		r := w.post(t, "all", call(tool, args))
		if largest = max(largest, len(r.body)); len(r.body) > kit.MaxResult {
			t.Errorf("%s %s: %d bytes", tool, args, len(r.body))
		}
		return r.result(t)
	}
	for _, tool := range toolsets(s)["everything"].Tools() {
		if tool.Spec().Effect == kit.Read {
			ask(tool.Name(), tool.Spec().Example)
			ask(tool.Name(), `{}`)
		}
	}
	seen := map[string]int{}
	args, pages := `{}`, 0
	for {
		var page struct {
			Contacts   []struct{ ID string }
			NextCursor string
		}
		got := ask("list_contacts", args)
		if err := json.Unmarshal(got.StructuredContent, &page); err != nil || len(page.Contacts) == 0 {
			t.Fatalf("%s: %v", got.Content[0].Text, err)
		}
		for _, c := range page.Contacts {
			seen[c.ID]++
		}
		if pages++; page.NextCursor == "" || pages > 5_000 {
			break
		}
		args = fmt.Sprintf(`{"cursor":%q}`, page.NextCursor)
		if pages%10 == 0 {
			ask("upsert_contact", fmt.Sprintf(`{"phone":"+20%09d","name":"Newcomer"}`, pages))
		}
	}
	for _, id := range want {
		if seen[id] != 1 {
			t.Fatalf("%s was on %d pages", id, seen[id])
		}
	}
	t.Logf("%d pages, the largest answer %d bytes", pages, largest)
	if largest < kit.MaxResult/2 {
		t.Errorf("the largest answer has %d bytes: that tries nothing", largest)
	}
}

func TestTheLargestContactThereCanBeIsReadAndListedWhole(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	w := serving(t, s, toolsets(s)["everything"])
	for i, unit := range []string{"<", "\x01", "😀", `"`, "\u2028"} {
		quoted := func(n int) string {
			b, err := json.Marshal(strings.Repeat(unit, n))
			if err != nil {
				t.Fatal(err)
			}
			return string(b)
		}
		var tags []string
		for j := range 50 {
			tags = append(tags, fmt.Sprintf(`"%02d%s"`, j, strings.Trim(quoted(62), `"`)))
		}
		if unit == `"` {
			tags = nil
		}
		phone := fmt.Sprintf("+1415555000%d", i)
		args := fmt.Sprintf(`{"phone":%q,"name":%s,"notes":%s,"tags":[%s],"attributes":{"a":%s,"b":%s,"c":%s}}`,
			phone, quoted(120), quoted(4000), strings.Join(tags, ","), quoted(500), quoted(500), quoted(500))
		for _, asked := range [][2]string{{"upsert_contact", args}, {"get_contact", fmt.Sprintf(`{"phone":%q}`, phone)},
			{"list_contacts", `{}`}, {"set_do_not_call", fmt.Sprintf(`{"phone":%q}`, phone)}} {
			r := w.post(t, "all", call(asked[0], asked[1]))
			if len(r.body) > kit.MaxResult {
				t.Errorf("%q: %s: %d bytes", unit, asked[0], len(r.body))
			}
			got := r.result(t)
			if got.IsError || strings.Count(string(got.StructuredContent), phone) != 1 || strings.Contains(string(got.StructuredContent), "truncated") {
				t.Errorf("%q: %s: %.300s", unit, asked[0], got.Content[0].Text)
			}
		}
	}
}

func TestACursorOfElsewhereIsRefusedOnTheWire(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	w := serving(t, s, toolsets(s)["everything"])
	seed(t, s, 3)
	for _, args := range []string{`{"cursor":"bm90IG9uZQ"}`, `{"cursor":"%%%"}`, `{"cursor":""}`} {
		got := w.post(t, "all", call("list_contacts", args)).result(t)
		if args == `{"cursor":""}` {
			if got.IsError {
				t.Errorf("an empty cursor is the first page: %s", got.Content[0].Text)
			}
			continue
		}
		if !got.IsError || got.code(t) != fault.InvalidRequest || !strings.Contains(got.Content[0].Text, "cursor: ") {
			t.Errorf("%s: %+v", args, got)
		}
	}
}
