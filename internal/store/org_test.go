package store_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"gorm.io/gorm/clause"

	"switchboard/internal/caller"
	"switchboard/internal/store"
	"switchboard/internal/store/storetest"
)

// shelf and book are two fenced tables with a relation, plain ones without organization beside them.
type shelf struct {
	ID    string `gorm:"primaryKey"`
	OrgID store.OrgID
	Name  string
	Books []book `gorm:"foreignKey:ShelfID"`
}

type book struct {
	ID      string `gorm:"primaryKey"`
	OrgID   store.OrgID
	ShelfID string
	Shelf   *shelf
	Title   string
}

// thief reads the table of another model.
type thief struct {
	ID    string `gorm:"primaryKey"`
	Title string
}

func (thief) TableName() string { return "books" }

func as(ctx context.Context, org string) context.Context {
	return caller.With(ctx, caller.Caller{Org: org})
}

// library has a shelf and two books in org_a and a shelf and a book in org_b.
func library(t *testing.T) *store.Store {
	t.Helper()
	s := storetest.Open(t)
	all := store.AllOrgs(t.Context(), "making the library")
	err := s.Tx(all, func(ctx context.Context) error {
		for _, q := range []string{
			`CREATE TABLE shelves (id TEXT PRIMARY KEY, org_id TEXT NOT NULL, name TEXT NOT NULL)`,
			`CREATE TABLE books (id TEXT PRIMARY KEY, org_id TEXT NOT NULL, shelf_id TEXT NOT NULL, title TEXT NOT NULL)`,
			`CREATE UNIQUE INDEX books_title ON books (title)`,
			`INSERT INTO shelves VALUES ('shelf_a', 'org_a', 'A'), ('shelf_b', 'org_b', 'B')`,
			`INSERT INTO books VALUES ('a1', 'org_a', 'shelf_a', 'one'), ('a2', 'org_a', 'shelf_b', 'two'), ('b1', 'org_b', 'shelf_b', 'three')`,
		} {
			if err := s.DB(ctx).Exec(q).Error; err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// contents is everything in the library, whosever it is.
func contents(t *testing.T, s *store.Store) []string {
	t.Helper()
	all := store.AllOrgs(t.Context(), "looking whether an attack left traces")
	var shelves []shelf
	var books []book
	if err := errors.Join(s.DB(all).Order("id").Find(&shelves).Error, s.DB(all).Order("id").Find(&books).Error); err != nil {
		t.Fatal(err)
	}
	out := []string{}
	for _, v := range shelves {
		out = append(out, fmt.Sprint(v.ID, " ", v.OrgID, " ", v.Name))
	}
	for _, v := range books {
		out = append(out, fmt.Sprint(v.ID, " ", v.OrgID, " ", v.ShelfID, " ", v.Title))
	}
	return out
}

// of is what an attack got to see: the ids of rows. Those of org_a start with "a" or are "shelf_a".
func of(books []book) []string {
	ids := []string{}
	for _, b := range books {
		ids = append(ids, b.ID)
	}
	return ids
}

func TestNoQueryReadsAnotherOrganizationsRows(t *testing.T) {
	s := library(t)
	contents(t, s) // the fence learns whose tables these are from their models
	for name, a := range reads() {
		seen, err := a(s.DB(as(t.Context(), "org_b")))
		for _, id := range seen {
			if id != "b1" && id != "shelf_b" && id != "" {
				t.Errorf("%s: sees %v (%v)", name, seen, err)
				break
			}
		}
		seen, err = a(s.DB(t.Context()))
		for _, id := range seen {
			if id != "" {
				t.Errorf("%s: nobody sees %v (%v)", name, seen, err)
				break
			}
		}
	}
}

func TestNoQueryTellsWhetherAnotherOrganizationsRowExists(t *testing.T) {
	s := library(t)
	contents(t, s)
	for name, q := range oracles() {
		var books []book
		err := q(s.DB(as(t.Context(), "org_b")).Model(&book{})).Find(&books).Error
		if len(books) > 0 || (err == nil && name != "exists, its own type") {
			t.Errorf("%s: %v, %v", name, of(books), err)
		}
	}
}

func TestNoStatementWritesAnotherOrganizationsRows(t *testing.T) {
	s := library(t)
	want := theirs(contents(t, s))
	for name, a := range writes() {
		for who, ctx := range map[string]context.Context{"org_b": as(t.Context(), "org_b"), "nobody": t.Context()} {
			undo := errors.New("undo")
			var left []string
			err := s.Tx(ctx, func(ctx context.Context) error {
				err := a(s.DB(ctx))
				inside := store.AllOrgs(ctx, "looking at the transaction")
				var books []book
				var shelves []shelf
				if e := errors.Join(s.DB(inside).Order("id").Find(&shelves).Error, s.DB(inside).Order("id").Find(&books).Error); e != nil {
					if err == nil || s.Dialect == store.SQLite {
						t.Errorf("%s by %s: %v", name, who, e)
					}
					left = want // Postgres took back what a failed statement was part of
					return undo
				}
				for _, v := range shelves {
					left = append(left, fmt.Sprint(v.ID, " ", v.OrgID, " ", v.Name))
				}
				for _, v := range books {
					left = append(left, fmt.Sprint(v.ID, " ", v.OrgID, " ", v.ShelfID, " ", v.Title))
				}
				return undo
			})
			if !errors.Is(err, undo) {
				t.Errorf("%s by %s: %v", name, who, err)
			}
			if diff := cmp.Diff(want, theirs(left)); diff != "" {
				t.Errorf("%s by %s: %s", name, who, diff)
			}
			if slices.Contains(left, "b1 org_b shelf_b one!") {
				t.Errorf("%s by %s: copied a value of org_a", name, who)
			}
		}
	}
}

// theirs keeps the lines of org_a.
func theirs(lines []string) []string {
	out := []string{}
	for _, l := range lines {
		var id, org string
		if _, err := fmt.Sscan(l, &id, &org); err == nil && org == "org_a" {
			out = append(out, l)
		}
	}
	return out
}

func TestAnOrganizationWorksWithItsOwnRows(t *testing.T) {
	s := library(t)
	ctx := as(t.Context(), "org_b")
	err := s.Tx(ctx, func(ctx context.Context) error {
		db := s.DB(ctx)
		b := book{ID: "b2", ShelfID: "shelf_b", Title: "four"}
		if err := db.Create(&b).Error; err != nil {
			return err
		}
		if b.OrgID != "org_b" {
			t.Errorf("a new row belongs to %q", b.OrgID)
		}
		b.Title = "five"
		if err := db.Save(&b).Error; err != nil {
			return fmt.Errorf("save: %w", err)
		}
		if err := db.Clauses(clause.OnConflict{Columns: []clause.Column{{Name: "id"}}, DoUpdates: clause.AssignmentColumns([]string{"title"})}).
			Create(&book{ID: "b1", Title: "six"}).Error; err != nil {
			return fmt.Errorf("upsert: %w", err)
		}
		return db.Where("id = ?", "b2").Or("title = ?", "nothing").Delete(&book{}).Error
	})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"shelf_a org_a A", "shelf_b org_b B", "a1 org_a shelf_a one", "a2 org_a shelf_b two", "b1 org_b shelf_b six"}
	if diff := cmp.Diff(want, contents(t, s)); diff != "" {
		t.Error(diff)
	}
}

func TestTheFenceSaysWhyItRefuses(t *testing.T) {
	s := library(t)
	var books []book
	if err := s.DB(t.Context()).Find(&books).Error; !errors.Is(err, store.ErrNoOrg) {
		t.Errorf("nobody: %v", err)
	}
	db := s.DB(as(t.Context(), "org_b"))
	if err := db.Raw("SELECT * FROM books").Scan(&books).Error; !errors.Is(err, store.ErrUnfenced) {
		t.Errorf("raw: %v", err)
	}
	err := s.Tx(as(t.Context(), "org_b"), func(ctx context.Context) error {
		return s.DB(ctx).Create(&book{ID: "n", OrgID: "org_a"}).Error
	})
	if !errors.Is(err, store.ErrForeignOrg) {
		t.Errorf("foreign: %v", err)
	}
}
