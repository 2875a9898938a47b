// Package store opens the database, migrates it, and is the only way to it: reads through DB, writes inside Tx.
//
// Two things are decided here for everybody. On SQLite there is one writing connection, and the pool for reading
// refuses to write: two writers that poll for a lock halve each other's throughput. And every row that has a
// column of type OrgID is fenced to the caller's organization, see org.go.
package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	_ "github.com/jackc/pgx/v5/stdlib" // the driver "pgx"
	"github.com/libtnb/sqlite"
	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"
	"gorm.io/driver/postgres"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"
)

// Dialect is the kind of database.
type Dialect string

const (
	SQLite   Dialect = "sqlite"
	Postgres Dialect = "postgres"
)

// Config says which database to open.
type Config struct {
	// URL is a postgres:// URL or the path of an SQLite file, made with its folder if it does not exist.
	URL string
	// MaxConnections bounds the Postgres pool; every replica takes that many. 0 means 20.
	MaxConnections int
}

// Store is an open database.
type Store struct {
	Dialect Dialect

	read, write *gorm.DB // the same handle on Postgres
	readSQL     *sql.DB
	writeSQL    *sql.DB
	fence       fence
	prepared    prepared
}

// Open connects to the database. It does not migrate it.
func Open(ctx context.Context, cfg Config) (*Store, error) {
	for attempt := 0; ; attempt++ {
		s := &Store{}
		err := s.open(ctx, cfg)
		if err == nil {
			return s, nil
		}
		_ = s.Close()
		if attempt == 20 || !s.mayRetry(err) {
			return nil, fmt.Errorf("opening the database: %w", err)
		}
		// Another process is making the same SQLite file; the switch to WAL does not wait for it.
		time.Sleep(50 * time.Millisecond)
	}
}

func (s *Store) open(ctx context.Context, cfg Config) error {
	var err error
	if strings.HasPrefix(cfg.URL, "postgres://") || strings.HasPrefix(cfg.URL, "postgresql://") {
		s.Dialect = Postgres
		err = s.openPostgres(cfg)
	} else {
		s.Dialect = SQLite
		err = s.openSQLite(cfg)
	}
	if err != nil {
		return err
	}
	return s.Ping(ctx)
}

func (s *Store) openPostgres(cfg Config) (err error) {
	if s.readSQL, err = sql.Open("pgx", cfg.URL); err != nil {
		// The parser's message can repeat the URL with its password.
		return errors.New("SWITCHBOARD_DATABASE is not a postgres:// URL that can be read")
	}
	s.writeSQL = s.readSQL
	connections := cfg.MaxConnections
	if connections == 0 {
		connections = 20
	}
	s.readSQL.SetMaxOpenConns(connections)
	s.readSQL.SetMaxIdleConns(connections)
	s.readSQL.SetConnMaxLifetime(time.Hour)
	s.read, err = s.handle(postgres.New(postgres.Config{Conn: s.readSQL}))
	s.write = s.read
	return err
}

func (s *Store) openSQLite(cfg Config) (err error) {
	if cfg.URL == "" || strings.HasPrefix(cfg.URL, ":memory:") || strings.Contains(cfg.URL, "://") {
		return fmt.Errorf("SWITCHBOARD_DATABASE must be a file path or a postgres:// URL")
	}
	if err := os.MkdirAll(filepath.Dir(cfg.URL), 0o700); err != nil {
		return err
	}
	// The file holds people's data: nobody but the operator reads it. SQLite gives its WAL the same mode.
	f, err := os.OpenFile(cfg.URL, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	dsn := func(pragmas ...string) string {
		q := url.Values{"_txlock": {"immediate"}, "_pragma": append(pragmas,
			"busy_timeout(10000)", "journal_mode(WAL)", "foreign_keys(1)", "temp_store(memory)", "cache_size(-20000)")}
		return "file:" + (&url.URL{Path: cfg.URL}).EscapedPath() + "?" + q.Encode()
	}
	// synchronous=FULL: an acknowledged commit survives a power cut, not only a crash of the process.
	if s.writeSQL, err = sql.Open(sqlite.DriverName, dsn("synchronous(FULL)")); err != nil {
		return err
	}
	s.writeSQL.SetMaxOpenConns(1)
	if s.write, err = s.handle(sqlite.New(sqlite.Config{Conn: s.writeSQL})); err != nil {
		return err
	}
	if s.readSQL, err = sql.Open(sqlite.DriverName, dsn("query_only(1)")); err != nil {
		return err
	}
	readers := max(4, 2*runtime.GOMAXPROCS(0))
	s.readSQL.SetMaxOpenConns(readers)
	s.readSQL.SetMaxIdleConns(readers)
	s.read, err = s.handle(sqlite.New(sqlite.Config{Conn: s.readSQL}))
	return err
}

func (s *Store) handle(d gorm.Dialector) (*gorm.DB, error) {
	db, err := gorm.Open(d, &gorm.Config{
		TranslateError:         true,
		SkipDefaultTransaction: true, // every write is in Tx already
		// PrepareStmt stays off: it starts a goroutine that never ends, and hot paths prepare their own.
		Logger: logger.Discard, // every error is returned, and queries hold people's data
	})
	if err != nil {
		return nil, err
	}
	return db, db.Use(&s.fence)
}

// Close closes the pools.
func (s *Store) Close() error {
	var errs []error
	for _, db := range []*sql.DB{s.readSQL, s.writeSQL} {
		if db != nil {
			errs = append(errs, db.Close())
		}
	}
	return errors.Join(errs...)
}

// Ping asks the database for an answer. On SQLite the readers are asked: the one writer may be busy, which is not
// the same as gone.
func (s *Store) Ping(ctx context.Context) error { return s.readSQL.PingContext(ctx) }

// Migrate brings the schema up to date. The files hold a folder per dialect. Several replicas may do it at once:
// Postgres lets one at a time through, SQLite has one writer.
func (s *Store) Migrate(ctx context.Context, files fs.FS) error {
	sub, err := fs.Sub(files, string(s.Dialect))
	if err != nil {
		return err
	}
	dialect, options := goose.DialectSQLite3, []goose.ProviderOption(nil)
	if s.Dialect == Postgres {
		// One lock for each schema: installations that share a database do not wait for each other.
		var id int64
		if err := s.writeSQL.QueryRowContext(ctx, `SELECT hashtextextended(coalesce(current_schema(), ''), 0)`).Scan(&id); err != nil {
			return fmt.Errorf("finding the schema: %w", err)
		}
		locker, err := lock.NewPostgresSessionLocker(lock.WithLockID(id), lock.WithLockTimeout(1, 300))
		if err != nil {
			return err
		}
		dialect, options = goose.DialectPostgres, append(options, goose.WithSessionLocker(locker))
	}
	provider, err := goose.NewProvider(dialect, s.writeSQL, sub, options...)
	if err != nil {
		return fmt.Errorf("reading the migrations: %w", err)
	}
	for attempt := 0; ; attempt++ {
		if _, err = provider.Up(ctx); err == nil || s.Dialect == Postgres || attempt == 20 || attempt >= 5 && !s.mayRetry(err) {
			break
		}
		// Another process may be migrating the same SQLite file: what we saw undone it has done meanwhile, and the
		// statement fails in any of many ways. Looking again finds its result.
		time.Sleep(100 * time.Millisecond)
	}
	if err != nil {
		return fmt.Errorf("migrating the database: %w", err)
	}
	return nil
}

type txKey struct{}

// DB is a handle for reading: the transaction that ctx carries, or else the pool for reading.
func (s *Store) DB(ctx context.Context) *gorm.DB {
	if tx, ok := ctx.Value(txKey{}).(*gorm.DB); ok {
		return tx.WithContext(ctx)
	}
	return s.read.WithContext(ctx)
}

// Tx runs f in a transaction, and in the one that ctx already carries if there is one. It commits when f returns
// nil. When the database gave up on the transaction in favour of another one, f runs again: it must not have
// effects outside of the database. An outer transaction is the one that runs again, so what an inner f returned
// is void then.
func (s *Store) Tx(ctx context.Context, f func(ctx context.Context) error) error {
	if _, ok := ctx.Value(txKey{}).(*gorm.DB); ok {
		return f(ctx)
	}
	for attempt := 0; ; attempt++ {
		err := s.write.WithContext(ctx).Transaction(func(tx *gorm.DB) error {
			return f(context.WithValue(ctx, txKey{}, tx))
		})
		if err == nil || attempt == 10 || !s.mayRetry(err) {
			return err
		}
	}
}

// InTx reports whether ctx carries a transaction.
func InTx(ctx context.Context) bool {
	_, ok := ctx.Value(txKey{}).(*gorm.DB)
	return ok
}

// mayRetry reports whether the database rolled back a transaction that would go through if run again.
func (s *Store) mayRetry(err error) bool {
	var pg *pgconn.PgError
	if errors.As(err, &pg) {
		return pg.Code == "40001" || pg.Code == "40P01" // serialization failure, deadlock
	}
	return s.Dialect == SQLite && strings.Contains(err.Error(), "SQLITE_BUSY")
}

// IsNotFound reports whether a query for one row found none. Postgres does not look for text that it cannot hold,
// which is a NUL or broken UTF-8 in what a client sent: no row has it.
func IsNotFound(err error) bool {
	var pg *pgconn.PgError
	return errors.Is(err, gorm.ErrRecordNotFound) || errors.Is(err, sql.ErrNoRows) || errors.As(err, &pg) && pg.Code == "22021"
}

// IsDuplicate reports whether a write ran into a unique index.
func IsDuplicate(err error) bool { return errors.Is(err, gorm.ErrDuplicatedKey) }
