package kit_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"switchboard/internal/caller"
	"switchboard/internal/fault"
	"switchboard/internal/store"
	"switchboard/tools/kit"
)

// paper is a row that is as large as the test makes it.
type paper struct {
	ID        string      `json:"id" gorm:"primaryKey"`
	OrgID     store.OrgID `json:"-"`
	Text      string      `json:"text"`
	CreatedAt store.Time  `json:"-" gorm:"autoCreateTime:false"`
}

var papers = kit.Listing[paper]{Tool: "list_papers", Position: func(p paper) kit.Position { return kit.Position{At: p.CreatedAt, ID: p.ID} }}

// newShelf is a bench with papers of the given texts, the first text the newest paper. Two of them have one time.
func newShelf(t *testing.T, texts ...string) *bench {
	b := newBench(t)
	err := b.store.Tx(store.AllOrgs(t.Context(), "a table for the test"), func(ctx context.Context) error {
		return b.store.DB(ctx).Exec("CREATE TABLE papers (id TEXT PRIMARY KEY, org_id TEXT NOT NULL, text TEXT NOT NULL, created_at BIGINT NOT NULL)").Error
	})
	if err != nil {
		t.Fatal(err)
	}
	at := time.Date(2027, 1, 31, 9, 0, 0, 0, time.UTC)
	for i, text := range texts {
		b.shelve(paper{ID: fmt.Sprintf("p%03d", 500-i), Text: text, CreatedAt: store.At(at.Add(-time.Duration(i/2) * time.Second))})
	}
	return b
}

func (b *bench) shelve(p paper) {
	b.Helper()
	if err := b.store.Tx(b.admin, func(ctx context.Context) error { return b.store.DB(ctx).Create(&p).Error }); err != nil {
		b.Fatal(err)
	}
}

// leafThrough reads all pages and says how many papers were on each.
func (b *bench) leafThrough(limit int) (ids []string, pages []int) {
	b.Helper()
	cursor := ""
	for range 100 {
		rows, next, err := papers.Read(b.admin, b.store.DB(b.admin), kit.Page{Limit: limit, Cursor: cursor})
		if err != nil {
			b.Fatal(err)
		}
		text, err := json.Marshal(rows)
		if err != nil {
			b.Fatal(err)
		}
		if alone, asText := kit.Size(text); len(rows) > 1 && alone+asText > kit.MaxResult-kit.Envelope {
			b.Errorf("a page of %d rows has %d bytes", len(rows), alone+asText)
		}
		for _, row := range rows {
			ids = append(ids, row.ID)
		}
		if pages = append(pages, len(rows)); next == "" {
			return ids, pages
		}
		cursor = next
	}
	b.Fatal("the pages do not end")
	return nil, nil
}

func TestAPageEndsWhereItWouldBeTooLargeAsItIsSent(t *testing.T) {
	for name, c := range map[string]struct {
		text  string
		pages []int
	}{
		"a letter is sent twice as one byte":          {strings.Repeat("a", 10_000), []int{2, 2, 2, 2}},
		"a quotation mark as two bytes and four":      {strings.Repeat(`"`, 4_000), []int{2, 2, 2, 2}},
		"a < twice as six":                            {strings.Repeat("<", 2_000), []int{2, 2, 2, 2}},
		"a control sign as six and seven":             {strings.Repeat("\x01", 2_000), []int{2, 2, 2, 2}},
		"what fits only without its copy comes alone": {strings.Repeat("a", 50_000), []int{1, 1, 1, 1, 1, 1, 1, 1}},
		"small ones": {"a", []int{5, 3}},
	} {
		texts := make([]string, 8)
		for i := range texts {
			texts[i] = c.text
		}
		b := newShelf(t, texts...)
		ids, pages := b.leafThrough(5)
		if diff := cmp.Diff(c.pages, pages); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
		if diff := cmp.Diff([]string{"p500", "p499", "p498", "p497", "p496", "p495", "p494", "p493"}, ids); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

func TestARowThatNoPageHoldsDoesNotBarTheWayToTheOthers(t *testing.T) {
	huge := strings.Repeat("a", kit.MaxResult)
	b := newShelf(t, "a", huge, "b", huge)
	read := func(cursor string) ([]paper, string, *fault.Error) {
		rows, next, err := papers.Read(b.admin, b.store.DB(b.admin), kit.Page{Limit: 25, Cursor: cursor})
		f, _ := fault.Of(err, "")
		if err == nil {
			f = nil
		}
		return rows, next, f
	}
	rows, next, f := read("")
	if f != nil || len(rows) != 1 || rows[0].ID != "p500" {
		t.Fatalf("%d rows, %v", len(rows), f)
	}
	_, _, f = read(next)
	if f == nil || f.Code != fault.ResultTooLarge || f.Details["id"] != "p499" || !strings.Contains(f.Message, "p499") {
		t.Fatalf("the large one: %v", f)
	}
	past, _ := f.Details["nextCursor"].(string)
	rows, next, f = read(past)
	if f != nil || len(rows) != 1 || rows[0].ID != "p498" {
		t.Fatalf("past it: %d rows, %v", len(rows), f)
	}
	_, _, f = read(next)
	if f == nil || f.Code != fault.ResultTooLarge || f.Details["id"] != "p497" || f.Details["nextCursor"] != nil {
		t.Errorf("the large one at the end: %v", f)
	}
}

func TestPagesYieldEachRowOnceWhileOthersAreShelved(t *testing.T) {
	b := newShelf(t, make([]string, 30)...)
	var want, got []string
	for i := range 30 {
		want = append(want, fmt.Sprintf("p%03d", 500-i))
	}
	cursor := ""
	for round := range 30 {
		rows, next, err := papers.Read(b.admin, b.store.DB(b.admin), kit.Page{Limit: 3, Cursor: cursor})
		if err != nil {
			t.Fatal(err)
		}
		for _, row := range rows {
			got = append(got, row.ID)
		}
		b.shelve(paper{ID: fmt.Sprintf("q%03d", round), CreatedAt: store.At(time.Date(2027, 2, 1, 0, 0, round, 0, time.UTC))})
		if cursor = next; cursor == "" {
			break
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestACursorIsGoodForItsListAndOrganizationOnly(t *testing.T) {
	b := newShelf(t, "a", "b", "c")
	_, next, err := papers.Read(b.admin, b.store.DB(b.admin), kit.Page{Limit: 1})
	if err != nil || next == "" {
		t.Fatal(next, err)
	}
	other := papers
	other.Tool = "list_notes"
	elsewhere := caller.With(b.Context(), caller.Caller{Org: "org_b"})
	for name, try := range map[string]struct {
		ctx     context.Context
		listing kit.Listing[paper]
		cursor  string
	}{
		"another list":         {b.admin, other, next},
		"another organization": {elsewhere, papers, next},
		"one bit changed":      {b.admin, papers, string(next[0]^1) + next[1:]},
		"a bit at its end":     {b.admin, papers, next[:len(next)-2] + string(next[len(next)-2]^1) + next[len(next)-1:]},
		"cut":                  {b.admin, papers, next[:len(next)-4]},
		"twice":                {b.admin, papers, next + next},
		"another alphabet":     {b.admin, papers, next + "="},
		"a position alone":     {b.admin, papers, "MTc5OTk5OTk5OTk5OTk5OSBwNTAw"},
	} {
		rows, _, err := try.listing.Read(try.ctx, b.store.DB(try.ctx), kit.Page{Limit: 1, Cursor: try.cursor})
		if f, _ := fault.Of(err, ""); err == nil || f.Code != fault.InvalidRequest || f.Details["field"] != "cursor" {
			t.Errorf("%s: %d rows, %v", name, len(rows), err)
		}
	}
	// Of a colleague it is good: what is listed is the organization's.
	colleague := caller.With(b.Context(), caller.Caller{Org: "org_a", Person: "per_2"})
	if rows, _, err := papers.Read(colleague, b.store.DB(colleague), kit.Page{Limit: 1, Cursor: next}); err != nil || rows[0].ID != "p499" {
		t.Errorf("a colleague: %v, %v", rows, err)
	}
}
