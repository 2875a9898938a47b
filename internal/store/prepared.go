package store

import (
	"context"
	"database/sql"
	"fmt"
	"strconv"
	"strings"
	"sync"

	"gorm.io/gorm"
)

// prepared keeps the queries of the hot paths for the reading pool of SQLite, one for each text; there are as many
// as there are texts in the code. Postgres needs none of it: its driver keeps prepared statements for each
// connection by itself.
type prepared struct{ statements sync.Map }

func (p *prepared) get(ctx context.Context, db *sql.DB, query string) (*sql.Stmt, error) {
	if s, ok := p.statements.Load(query); ok {
		return s.(*sql.Stmt), nil
	}
	s, err := db.PrepareContext(ctx, query)
	if err != nil {
		return nil, err
	}
	if earlier, raced := p.statements.LoadOrStore(query, s); raced {
		_ = s.Close()
		return earlier.(*sql.Stmt), nil
	}
	return s, nil
}

// QueryRow runs a query for one row, with "?" for its arguments on both dialects, and scans it. It is not fenced
// to an organization: only auth, which has to find out who calls, may use it. It answers an error for which
// IsNotFound holds when there is no row.
func (s *Store) QueryRow(ctx context.Context, query string, args []any, into ...any) error {
	query = s.rebind(query)
	if tx := sqlTx(ctx); tx != nil {
		return tx.QueryRowContext(ctx, query, args...).Scan(into...)
	}
	if s.Dialect == Postgres {
		return s.readSQL.QueryRowContext(ctx, query, args...).Scan(into...)
	}
	stmt, err := s.prepared.get(ctx, s.readSQL, query)
	if err != nil {
		return fmt.Errorf("preparing a query: %w", err)
	}
	// A point read ends by itself within microseconds, and watching for a cancellation would cost as much again.
	return stmt.QueryRowContext(context.WithoutCancel(ctx), args...).Scan(into...)
}

// Exec runs a statement, in the transaction that ctx carries or else on its own, and returns how many rows it
// changed. What holds for QueryRow holds for it.
func (s *Store) Exec(ctx context.Context, query string, args ...any) (int64, error) {
	exec := s.writeSQL.ExecContext
	if tx := sqlTx(ctx); tx != nil {
		exec = tx.ExecContext
	}
	result, err := exec(ctx, s.rebind(query), args...)
	if err != nil {
		return 0, err
	}
	return result.RowsAffected()
}

// sqlTx is the database/sql transaction under the one that ctx carries.
func sqlTx(ctx context.Context) *sql.Tx {
	tx, ok := ctx.Value(txKey{}).(*gorm.DB)
	if !ok {
		return nil
	}
	raw, _ := tx.Statement.ConnPool.(*sql.Tx)
	return raw
}

// rebind writes "?" as Postgres has it. The queries of auth have no question mark in a literal.
func (s *Store) rebind(query string) string {
	if s.Dialect == SQLite {
		return query
	}
	var b strings.Builder
	for n := 1; ; n++ {
		before, after, more := strings.Cut(query, "?")
		b.WriteString(before)
		if !more {
			return b.String()
		}
		b.WriteString("$" + strconv.Itoa(n))
		query = after
	}
}

// In is a list for the operator IN: its placeholders, "(?, ?)", and the arguments for them.
func In(values []string) (placeholders string, args []any) {
	args = make([]any, len(values))
	for i, v := range values {
		args[i] = v
	}
	return "(" + strings.TrimSuffix(strings.Repeat("?, ", len(values)), ", ") + ")", args
}
