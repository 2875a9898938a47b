package store

import (
	"database/sql/driver"
	"fmt"
	"time"
)

// Time is a moment as the database keeps it: microseconds since 1970 in a BIGINT. Text and timestamp columns
// order and round differently in SQLite and Postgres; integers do not. The zero Time is NULL.
type Time struct{ time.Time }

// Now is the present moment, cut to what the database can hold.
func Now() Time { return At(time.Now()) }

// At is t in UTC, cut to the microsecond.
func At(t time.Time) Time {
	if t.IsZero() {
		return Time{}
	}
	return Time{t.UTC().Truncate(time.Microsecond)}
}

// Add is the moment d later.
func (t Time) Add(d time.Duration) Time { return At(t.Time.Add(d)) }

// Value implements driver.Valuer.
func (t Time) Value() (driver.Value, error) {
	if t.IsZero() {
		return nil, nil
	}
	return t.UnixMicro(), nil
}

// Scan implements sql.Scanner.
func (t *Time) Scan(v any) error {
	switch v := v.(type) {
	case nil:
		*t = Time{}
	case int64:
		*t = At(time.UnixMicro(v))
	default:
		return fmt.Errorf("reading a time: unexpected %T", v)
	}
	return nil
}

// GormDataType names the column type.
func (Time) GormDataType() string { return "bigint" }
