package store

import (
	"context"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"
)

// Locked is DB for rows that the transaction in ctx reads in order to change them: nobody else changes them before
// it ends. SQLite has one writer and knows no such clause.
func (s *Store) Locked(ctx context.Context) *gorm.DB {
	db := s.DB(ctx)
	if s.Dialect == Postgres {
		return db.Clauses(clause.Locking{Strength: "UPDATE"})
	}
	return db
}
