package contacts_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"switchboard/internal/caller"
	"switchboard/internal/fault"
	"switchboard/internal/store"
	"switchboard/internal/store/storetest"
	"switchboard/tools/contacts"
	"switchboard/tools/kit"
)

const sara = "+14155550123"

func as(t *testing.T, org string) context.Context {
	return caller.With(t.Context(), caller.Caller{Org: org, Person: "per_1"})
}

func open(t *testing.T) *contacts.Service {
	return contacts.New(contacts.Config{Store: storetest.Open(t)})
}

func ptr[T any](v T) *T { return &v }

func text(s string) kit.Optional[string] { return kit.Optional[string]{Set: true, Value: &s} }

func mail(s kit.Email) kit.Optional[kit.Email] { return kit.Optional[kit.Email]{Set: true, Value: &s} }

func phone(s kit.Phone) *kit.Phone { return &s }

func page() kit.Page { return kit.Page{Limit: 25} }

func upsert(t *testing.T, s *contacts.Service, ctx context.Context, in contacts.Upsert) contacts.Upserted {
	t.Helper()
	out, err := s.Upsert(ctx, in)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func phones(t *testing.T, s *contacts.Service, ctx context.Context, in contacts.List) []string {
	t.Helper()
	if in.Limit == 0 {
		in.Page = page()
	}
	out, err := s.List(ctx, in)
	if err != nil {
		t.Fatal(err)
	}
	found := []string{}
	for _, c := range out.Contacts {
		found = append(found, c.Phone)
	}
	return found
}

func TestAContactIsMadeOnceAndThenChanged(t *testing.T) {
	s, ctx := open(t), as(t, "org_a")
	first := upsert(t, s, ctx, contacts.Upsert{Phone: sara, Name: text("Sara Ahmed"), Tags: []string{"vip", "new", "vip"},
		Attributes: map[string]string{"plan": "pro", "city": "Dubai"}})
	want := contacts.Contact{ID: first.Contact.ID, Phone: sara, Name: ptr("Sara Ahmed"), Tags: []string{"vip", "new"},
		Attributes: contacts.Attributes{"plan": "pro", "city": "Dubai"}}
	ignore := cmpopts.IgnoreFields(contacts.Contact{}, "OrgID", "Search", "CreatedAt", "UpdatedAt")
	if diff := cmp.Diff(contacts.Upserted{Created: true, Contact: want}, first, ignore); diff != "" {
		t.Error(diff)
	}

	second := upsert(t, s, ctx, contacts.Upsert{Phone: sara, Email: mail("sara@example.com"), Tags: []string{"old"},
		Attributes: map[string]string{"plan": "", "tier": "2"}, Notes: ptr("calls back"), DoNotCall: ptr(true)})
	want.Email, want.Tags, want.Notes, want.DoNotCall = ptr("sara@example.com"), []string{"old"}, "calls back", true
	want.Attributes = contacts.Attributes{"city": "Dubai", "tier": "2"}
	if diff := cmp.Diff(contacts.Upserted{Contact: want}, second, ignore); diff != "" {
		t.Error(diff)
	}
	read, err := s.Contact(ctx, contacts.Which{ContactID: &first.Contact.ID})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(second.Contact, read, cmpopts.EquateEmpty()); diff != "" {
		t.Error("what upsert returned is not what is there:", diff)
	}

	third := upsert(t, s, ctx, contacts.Upsert{Phone: sara, Name: kit.Optional[string]{Set: true}, Tags: []string{}})
	if third.Contact.Name != nil || len(third.Contact.Tags) != 0 {
		t.Errorf("null and [] must clear: %v %v", third.Contact.Name, third.Contact.Tags)
	}
	again := upsert(t, s, ctx, contacts.Upsert{Phone: sara, Tags: []string{}})
	if again.Contact.UpdatedAt != third.Contact.UpdatedAt {
		t.Error("a change that changes nothing moved updatedAt")
	}
}

func TestAttributesAreBounded(t *testing.T) {
	s, ctx := open(t), as(t, "org_a")
	many := map[string]string{}
	for i := range 100 {
		many[fmt.Sprint("k", i)] = "v"
	}
	upsert(t, s, ctx, contacts.Upsert{Phone: sara, Attributes: many})
	_, err := s.Upsert(ctx, contacts.Upsert{Phone: sara, Attributes: map[string]string{"one more": "v"}})
	if !fault.Is(err, fault.InvalidRequest) {
		t.Errorf("101 attributes: %v", err)
	}
	upsert(t, s, ctx, contacts.Upsert{Phone: sara, Attributes: map[string]string{"k0": "", "one more": "v"}})

	large := map[string]string{}
	for i := range 19 {
		large[fmt.Sprintf("k%02d", i)] = strings.Repeat("v", 500)
	}
	upsert(t, s, ctx, contacts.Upsert{Phone: "+14155550124", Attributes: large})
	_, err = s.Upsert(ctx, contacts.Upsert{Phone: "+14155550124", Attributes: map[string]string{"one more": strings.Repeat("v", 500)}})
	if !fault.Is(err, fault.InvalidRequest) || !strings.Contains(err.Error(), "attributes: ") {
		t.Errorf("more than 10 kB: %v", err)
	}
	_, err = s.Upsert(ctx, contacts.Upsert{Phone: "+14155550125", Attributes: map[string]string{"a": strings.Repeat("<", 500), "b": strings.Repeat("<", 500),
		"c": strings.Repeat("<", 500), "d": strings.Repeat("<", 500)}})
	if !fault.Is(err, fault.InvalidRequest) {
		t.Errorf("2 000 signs that are sent as six bytes each: %v", err)
	}
}

func TestSearchFindsNamesAddressesAndBeginningsOfNumbers(t *testing.T) {
	s, ctx := open(t), as(t, "org_a")
	upsert(t, s, ctx, contacts.Upsert{Phone: sara, Name: text("Sara Ahmed"), Email: mail("S.Ahmed@Example.com")})
	upsert(t, s, ctx, contacts.Upsert{Phone: "+4930123456", Name: text("Jürgen GROẞ 100%_\\")})
	upsert(t, s, ctx, contacts.Upsert{Phone: "+971501234567", Name: text("Σίσυφος")})
	upsert(t, s, ctx, contacts.Upsert{Phone: "+201001234567"})
	for search, want := range map[string][]string{
		"sara":             {sara},
		"AHMED":            {sara},
		" s.ahmed@EXAMPLE": {sara},
		"jÜrgen":           {"+4930123456"},
		"gross":            {"+4930123456"},
		"JU\u0308RGEN":     {"+4930123456"}, // the umlaut as a letter of its own
		"ΣΊΣΥΦΟΣ":          {"+971501234567"},
		"100%":             {"+4930123456"},
		"%":                {"+4930123456"},
		"_":                {"+4930123456"},
		`\`:                {"+4930123456"},
		"+1 (415) 555":     {sara},
		"415":              {},
		"1":                {"+4930123456", sara}, // 100% and +1…
		"+20":              {"+201001234567"},
		"nobody":           {},
		"' OR 1=1 --":      {},
		"ahmed\ns.ahmed":   {},
		"":                 {"+201001234567", "+971501234567", "+4930123456", sara},
	} {
		if diff := cmp.Diff(want, phones(t, s, ctx, contacts.List{Search: search})); diff != "" {
			t.Errorf("search %q: %s", search, diff)
		}
	}
}

func TestFiltersAreExact(t *testing.T) {
	s, ctx := open(t), as(t, "org_a")
	upsert(t, s, ctx, contacts.Upsert{Phone: sara, Tags: []string{"vip"}, DoNotCall: ptr(true)})
	upsert(t, s, ctx, contacts.Upsert{Phone: "+14155550124", Tags: []string{"VIP", "vip customer"}})
	for name, c := range map[string]struct {
		in   contacts.List
		want []string
	}{
		"tag":          {contacts.List{Tag: ptr("vip")}, []string{sara}},
		"part of tag":  {contacts.List{Tag: ptr("vi%")}, []string{}},
		"phone":        {contacts.List{Phone: phone("+14155550124")}, []string{"+14155550124"}},
		"blocked":      {contacts.List{DoNotCall: ptr(true)}, []string{sara}},
		"not blocked":  {contacts.List{DoNotCall: ptr(false)}, []string{"+14155550124"}},
		"tag and flag": {contacts.List{Tag: ptr("vip"), DoNotCall: ptr(false)}, []string{}},
		"all of it":    {contacts.List{Search: "+1415", Tag: ptr("vip"), DoNotCall: ptr(true), Phone: phone(sara)}, []string{sara}},
	} {
		if diff := cmp.Diff(c.want, phones(t, s, ctx, c.in)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

func TestPagesYieldEachContactOnceWhileOthersAreAdded(t *testing.T) {
	s, ctx := open(t), as(t, "org_a")
	var want []string
	for i := range 23 {
		phone := fmt.Sprintf("+1415555%04d", i)
		upsert(t, s, ctx, contacts.Upsert{Phone: kit.Phone(phone), Tags: []string{"t"}})
		want = append([]string{phone}, want...)
	}
	var got []string
	in := contacts.List{Page: kit.Page{Limit: 5}}
	for round := range 10 {
		out, err := s.List(ctx, in)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range out.Contacts {
			got = append(got, c.Phone)
			if diff := cmp.Diff([]string{"t"}, c.Tags); diff != "" {
				t.Error(diff)
			}
		}
		upsert(t, s, ctx, contacts.Upsert{Phone: kit.Phone(fmt.Sprintf("+2010000%04d", round))})
		upsert(t, s, ctx, contacts.Upsert{Phone: kit.Phone(want[len(want)-1]), Notes: ptr(fmt.Sprint(round))}) // a change moves nothing
		if in.Cursor = out.NextCursor; in.Cursor == "" {
			break
		}
		if len(in.Cursor) > 200 {
			t.Errorf("a cursor of %d characters does not fit its own argument", len(in.Cursor))
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestAPageOfLargeContactsEndsEarlyAndGoesOn(t *testing.T) {
	s, ctx := open(t), as(t, "org_a")
	tags := []string{}
	for i := range 50 {
		tags = append(tags, fmt.Sprint(i, strings.Repeat("é", 60)))
	}
	for i := range 30 {
		upsert(t, s, ctx, contacts.Upsert{Phone: kit.Phone(fmt.Sprintf("+1415555%04d", i)), Notes: ptr(strings.Repeat("é", 4000)), Tags: tags})
	}
	seen := map[string]bool{}
	in := contacts.List{Page: page()}
	for range 30 {
		out, err := s.List(ctx, in)
		if err != nil {
			t.Fatal(err)
		}
		if b, err := json.Marshal(out); err != nil || len(b) > 60_000 || len(out.Contacts) == 0 {
			t.Fatalf("%d bytes, %d contacts, %v", len(b), len(out.Contacts), err)
		}
		for _, c := range out.Contacts {
			seen[c.ID] = true
		}
		if in.Cursor = out.NextCursor; in.Cursor == "" {
			break
		}
	}
	if len(seen) != 30 {
		t.Errorf("%d contacts", len(seen))
	}
}

func TestACursorOfElsewhereIsRefused(t *testing.T) {
	s, ctx := open(t), as(t, "org_a")
	for i := range 3 {
		upsert(t, s, ctx, contacts.Upsert{Phone: kit.Phone(fmt.Sprintf("+1415555%04d", i))})
	}
	out, err := s.List(ctx, contacts.List{Page: kit.Page{Limit: 1}})
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		ctx    context.Context
		cursor string
	}{
		"another organization": {as(t, "org_b"), out.NextCursor},
		"garbage":              {ctx, "garbage"},
		"not base64":           {ctx, "???"},
		"changed":              {ctx, out.NextCursor[:len(out.NextCursor)-2] + "AA"},
		"cut":                  {ctx, out.NextCursor[:8]},
	} {
		_, err := s.List(c.ctx, contacts.List{Page: kit.Page{Limit: 1, Cursor: c.cursor}})
		if !fault.Is(err, fault.InvalidRequest) || !strings.HasPrefix(err.Error(), "invalid_request: cursor: ") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestOneContactIsNamedByExactlyOneOfIDAndPhone(t *testing.T) {
	s, ctx := open(t), as(t, "org_a")
	id := upsert(t, s, ctx, contacts.Upsert{Phone: sara}).Contact.ID
	for name, in := range map[string]contacts.Which{"neither": {}, "both": {ContactID: &id, Phone: phone(sara)}} {
		_, err := s.Contact(ctx, in)
		_, err2 := s.SetDoNotCall(ctx, contacts.SetDoNotCall{ContactID: in.ContactID, Phone: in.Phone, DoNotCall: true})
		for _, err := range []error{err, err2} {
			if !fault.Is(err, fault.InvalidRequest) || !strings.Contains(err.Error(), "exactly one of contactId and phone") {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}

func TestDoNotCallSticksToANumberThatIsNoContactYet(t *testing.T) {
	s, ctx := open(t), as(t, "org_a")
	blocked, err := s.SetDoNotCall(ctx, contacts.SetDoNotCall{Phone: phone(sara), DoNotCall: true})
	if err != nil || !blocked.DoNotCall || blocked.Phone != sara {
		t.Fatalf("%+v, %v", blocked, err)
	}
	lifted, err := s.SetDoNotCall(ctx, contacts.SetDoNotCall{ContactID: &blocked.ID, DoNotCall: false})
	if err != nil || lifted.DoNotCall || lifted.ID != blocked.ID {
		t.Fatalf("%+v, %v", lifted, err)
	}
	_, err = s.SetDoNotCall(ctx, contacts.SetDoNotCall{ContactID: ptr("con_unknown"), DoNotCall: true})
	if !fault.Is(err, fault.NotFound) {
		t.Errorf("an unknown id: %v", err)
	}
}

func TestOrganizationsDoNotSeeEachOthersContacts(t *testing.T) {
	s := open(t)
	a, b := as(t, "org_a"), as(t, "org_b")
	mine := upsert(t, s, a, contacts.Upsert{Phone: sara, Tags: []string{"vip"}, Notes: ptr("a's")}).Contact
	theirs := upsert(t, s, b, contacts.Upsert{Phone: sara, Tags: []string{"vip"}})
	if !theirs.Created || theirs.Contact.ID == mine.ID || theirs.Contact.Notes != "" {
		t.Errorf("one number in two organizations is two contacts: %+v", theirs)
	}
	if _, err := s.Contact(b, contacts.Which{ContactID: &mine.ID}); !fault.Is(err, fault.NotFound) {
		t.Errorf("reading: %v", err)
	}
	if _, err := s.SetDoNotCall(b, contacts.SetDoNotCall{ContactID: &mine.ID}); !fault.Is(err, fault.NotFound) {
		t.Errorf("changing: %v", err)
	}
	if got := phones(t, s, b, contacts.List{Tag: ptr("vip")}); len(got) != 1 {
		t.Errorf("listing: %v", got)
	}
}

func TestParallelUpsertsOfOneNumberMakeOneContact(t *testing.T) {
	s, ctx := open(t), as(t, "org_a")
	var wait sync.WaitGroup
	results := make([]contacts.Upserted, 20)
	errs := make([]error, 20)
	for i := range results {
		wait.Go(func() {
			results[i], errs[i] = s.Upsert(ctx, contacts.Upsert{Phone: sara, Tags: []string{fmt.Sprint("t", i)},
				Attributes: map[string]string{fmt.Sprint("k", i): "v"}})
		})
	}
	wait.Wait()
	created := 0
	for i, r := range results {
		if errs[i] != nil {
			t.Fatal(errs[i])
		}
		if r.Created {
			created++
		}
		if r.Contact.ID != results[0].Contact.ID {
			t.Errorf("two contacts: %s and %s", r.Contact.ID, results[0].Contact.ID)
		}
	}
	c, err := s.Contact(ctx, contacts.Which{Phone: phone(sara)})
	if err != nil {
		t.Fatal(err)
	}
	if created != 1 || len(c.Attributes) != 20 || len(c.Tags) != 1 {
		t.Errorf("created %d times, %d attributes, tags %v", created, len(c.Attributes), c.Tags)
	}
}

func TestAContactOnTheWireHasEveryFieldAndNoOther(t *testing.T) {
	s, ctx := open(t), as(t, "org_a")
	b, err := json.Marshal(upsert(t, s, ctx, contacts.Upsert{Phone: sara}).Contact)
	if err != nil {
		t.Fatal(err)
	}
	var got map[string]any
	if err := json.Unmarshal(b, &got); err != nil {
		t.Fatal(err)
	}
	var names []string
	for name := range got {
		names = append(names, name)
	}
	want := []string{"id", "phone", "name", "email", "tags", "attributes", "notes", "doNotCall", "memory", "callCount", "createdAt", "updatedAt"}
	if diff := cmp.Diff(want, names, cmpopts.SortSlices(strings.Compare)); diff != "" {
		t.Error(diff)
	}
	if created := got["createdAt"].(string); !strings.HasSuffix(created, "Z") {
		t.Errorf("createdAt is not UTC: %s", created)
	}
}

func TestNobodyReadsNothing(t *testing.T) {
	s := open(t)
	if _, err := s.List(t.Context(), contacts.List{Page: page()}); err == nil || !strings.Contains(err.Error(), store.ErrNoOrg.Error()) {
		t.Errorf("listing without a caller: %v", err)
	}
}
