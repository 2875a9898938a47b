package store_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5/pgconn"

	"switchboard/internal/store"
	"switchboard/internal/store/storetest"
	"switchboard/migrations"
)

func TestBothDialectsHaveTheSameMigrations(t *testing.T) {
	names := func(dialect string) []string {
		files, err := fs.Glob(migrations.FS, dialect+"/*.sql")
		if err != nil {
			t.Fatal(err)
		}
		for i := range files {
			files[i] = filepath.Base(files[i])
		}
		return files
	}
	if diff := cmp.Diff(names("sqlite"), names("postgres")); diff != "" {
		t.Error(diff)
	}
}

func TestMigratingTwiceOrAtOnceIsMigratingOnce(t *testing.T) {
	url := storetest.URL(t)
	var wait sync.WaitGroup
	errs := make([]error, 3)
	for i := range errs {
		wait.Go(func() {
			s, err := store.Open(t.Context(), store.Config{URL: url, MaxConnections: 4})
			if err == nil {
				err = s.Migrate(t.Context(), migrations.FS)
				err = errors.Join(err, s.Migrate(t.Context(), migrations.FS), s.Close())
			}
			errs[i] = err
		})
	}
	wait.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Error(err)
	}
}

func TestAnErrorTakesTheWholeTransactionBack(t *testing.T) {
	s := library(t)
	ctx := as(t.Context(), "org_b")
	before := contents(t, s)
	stop := errors.New("stop")
	err := s.Tx(ctx, func(ctx context.Context) error {
		if err := s.DB(ctx).Create(&book{ID: "b2", Title: "outer"}).Error; err != nil {
			return err
		}
		// A transaction inside is the same one.
		if err := s.Tx(ctx, func(ctx context.Context) error { return s.DB(ctx).Create(&book{ID: "b3", Title: "inner"}).Error }); err != nil {
			return err
		}
		return stop
	})
	if !errors.Is(err, stop) {
		t.Errorf("%v", err)
	}
	if diff := cmp.Diff(before, contents(t, s)); diff != "" {
		t.Error(diff)
	}
}

func TestATransactionThatTheDatabaseGaveUpRunsAgain(t *testing.T) {
	s := library(t)
	gaveUp := error(&pgconn.PgError{Code: "40P01"})
	if s.Dialect == store.SQLite {
		gaveUp = errors.New("database is locked (5) (SQLITE_BUSY)")
	}
	runs := 0
	err := s.Tx(as(t.Context(), "org_b"), func(ctx context.Context) error {
		if runs++; runs < 3 {
			return errors.Join(s.DB(ctx).Create(&book{ID: fmt.Sprint("b", runs+1), Title: fmt.Sprint(runs)}).Error, gaveUp)
		}
		return s.DB(ctx).Create(&book{ID: "b9", Title: "nine"}).Error
	})
	if err != nil || runs != 3 {
		t.Errorf("%d runs, %v", runs, err)
	}
	if got := contents(t, s); len(got) != 6 || !slices.Contains(got, "b9 org_b  nine") {
		t.Errorf("%v", got)
	}

	runs = 0
	err = s.Tx(as(t.Context(), "org_b"), func(context.Context) error { runs++; return gaveUp })
	if !errors.Is(err, gaveUp) || runs < 2 || runs > 20 {
		t.Errorf("for ever: %d runs, %v", runs, err)
	}
	runs = 0
	_ = s.Tx(as(t.Context(), "org_b"), func(context.Context) error { runs++; return errors.New("other") })
	if runs != 1 {
		t.Errorf("another error was tried %d times", runs)
	}
}

func TestParallelChangesOfOneRowAllCount(t *testing.T) {
	s := library(t)
	ctx := as(t.Context(), "org_b")
	var wait sync.WaitGroup
	errs := make([]error, 20)
	for i := range errs {
		wait.Go(func() {
			errs[i] = s.Tx(ctx, func(ctx context.Context) error {
				var b book
				if err := s.Locked(ctx).Take(&b, "id = ?", "b1").Error; err != nil {
					return err
				}
				return s.DB(ctx).Model(&b).Update("title", b.Title+"+").Error
			})
		})
	}
	wait.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	var b book
	if err := s.DB(ctx).Take(&b, "id = ?", "b1").Error; err != nil || b.Title != "three++++++++++++++++++++" {
		t.Errorf("%q, %v", b.Title, err)
	}
}

func TestWritingNeedsATransactionOnSQLite(t *testing.T) {
	s := library(t)
	if s.Dialect != store.SQLite {
		return // the pools are one on Postgres
	}
	if err := s.DB(as(t.Context(), "org_b")).Create(&book{ID: "b2", Title: "x"}).Error; err == nil {
		t.Error("the pool for reading wrote")
	}
}

func TestReadersDoNotWaitForTheWriter(t *testing.T) {
	s := library(t)
	ctx := as(t.Context(), "org_b")
	err := s.Tx(ctx, func(inside context.Context) error {
		if err := s.DB(inside).Create(&book{ID: "b2", Title: "x"}).Error; err != nil {
			return err
		}
		var outside, within int64
		err := errors.Join(s.DB(ctx).Model(&book{}).Count(&outside).Error, s.DB(inside).Model(&book{}).Count(&within).Error)
		if outside != 1 || within != 2 {
			t.Errorf("outside %d, within %d", outside, within)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

func TestTheDatabaseFileIsTheOperatorsAlone(t *testing.T) {
	s := library(t)
	if s.Dialect != store.SQLite {
		return
	}
	path := filepath.Join(t.TempDir(), "new", "switch board?.db")
	other, err := store.Open(t.Context(), store.Config{URL: path})
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	if err := other.Migrate(t.Context(), migrations.FS); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{path, path + "-wal"} {
		info, err := os.Stat(name)
		if err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", name, info.Mode(), err)
		}
	}
}

func TestWhatWasFoundOrDuplicateIsRecognized(t *testing.T) {
	s := library(t)
	ctx := as(t.Context(), "org_b")
	var b book
	if err := s.DB(ctx).Take(&b, "id = ?", "none").Error; !store.IsNotFound(err) {
		t.Errorf("not found: %v", err)
	}
	err := s.Tx(ctx, func(ctx context.Context) error { return s.DB(ctx).Create(&book{ID: "b1", Title: "x"}).Error })
	if !store.IsDuplicate(err) {
		t.Errorf("duplicate: %v", err)
	}
}

// moment is a row with a time.
type moment struct {
	ID string `gorm:"primaryKey"`
	At store.Time
}

func TestTimesKeepTheirOrderAndTheirMicroseconds(t *testing.T) {
	s := storetest.Open(t)
	dubai := time.FixedZone("+04", 4*3600)
	times := []time.Time{
		time.Date(1969, 12, 31, 23, 59, 59, 999_999_000, time.UTC),
		time.Date(2026, 11, 30, 20, 0, 0, 0, time.UTC),
		time.Date(2026, 12, 1, 0, 0, 0, 1_999, dubai), // one microsecond later, and 999 ns that no database keeps
		time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC),
	}
	all := store.AllOrgs(t.Context(), "a table without organizations")
	err := s.Tx(all, func(ctx context.Context) error {
		if err := s.DB(ctx).Exec("CREATE TABLE moments (id TEXT PRIMARY KEY, at BIGINT)").Error; err != nil {
			return err
		}
		rows := []moment{{ID: "none"}}
		for i, at := range times {
			rows = append(rows, moment{ID: fmt.Sprint(i), At: store.At(at)})
		}
		return s.DB(ctx).Create(&rows).Error
	})
	if err != nil {
		t.Fatal(err)
	}
	var rows []moment
	if err := s.DB(all).Where("at IS NOT NULL").Order("at").Find(&rows).Error; err != nil {
		t.Fatal(err)
	}
	for i, r := range rows {
		want := times[i].UTC().Truncate(time.Microsecond)
		if r.ID != fmt.Sprint(i) || !r.At.Equal(want) || r.At.Location() != time.UTC {
			t.Errorf("%s is %v, want %v", r.ID, r.At, want)
		}
	}
	var none moment
	if err := s.DB(all).Take(&none, "at IS NULL").Error; err != nil || !none.At.IsZero() {
		t.Errorf("no time is %v, %v", none.At, err)
	}
}

func TestIDsSortByTheirMaking(t *testing.T) {
	var ids []string
	for range 1000 {
		ids = append(ids, store.NewID("x"))
	}
	if !slices.IsSorted(ids) || len(slices.Compact(slices.Clone(ids))) != len(ids) {
		t.Error("ids repeat or are out of order")
	}
}

// BenchmarkReadingOneRow is what the fence costs: the same read with it and with it open.
func BenchmarkReadingOneRow(b *testing.B) {
	s := storetest.Open(b)
	all := store.AllOrgs(b.Context(), "the measure")
	err := s.Tx(all, func(ctx context.Context) error {
		return s.DB(ctx).Exec("CREATE TABLE books (id TEXT PRIMARY KEY, org_id TEXT, shelf_id TEXT, title TEXT)").Error
	})
	if err != nil {
		b.Fatal(err)
	}
	for name, ctx := range map[string]context.Context{"fenced": as(b.Context(), "org_b"), "open": all} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				var found []book
				if err := s.DB(ctx).Where("id = ?", "b1").Order("id").Limit(1).Find(&found).Error; err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
