// Package audit keeps the append-only record of what was done, by whom, through what, and how it ended: every
// mutating tool call (refused, or started and then ok or failed) and every security event (sign_in, consent, revoke,
// key_create, refresh_reuse). A record is written in the transaction of its effect, so neither exists alone.
//
// Records name people, apps and ids. They never hold a token, a key, a phone number or the text of a message.
package audit

import (
	"context"
	"database/sql/driver"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"gorm.io/gorm"

	"switchboard/internal/caller"
	"switchboard/internal/fault"
	"switchboard/internal/store"
)

// Outcome says how an action ended.
type Outcome string

const (
	Started Outcome = "started" // accepted; a later record with the same call id says how it ended
	OK      Outcome = "ok"
	Refused Outcome = "refused" // by a rule: scope, role, input, confirmation, password
	Failed  Outcome = "failed"  // by an error; nothing in our database changed
)

// Security events. A tool call has the tool's name as its action.
const (
	SignIn       = "sign_in"
	Consent      = "consent"
	RefreshReuse = "refresh_reuse" // an old refresh token came back: the connection was revoked
	CodeReuse    = "code_reuse"    // an authorization code came back: its grant was revoked
	Revoke       = "revoke"
	KeyCreate    = "key_create"
	UserCreate   = "user_create"
	PasswordSet  = "password_set" // by the operator, for somebody who forgot theirs

	ClientCreate  = "client_create"  // an administrator made an app
	ClientRotate  = "client_rotate"  // and gave it a new secret
	ClientBlock   = "client_block"   // an app was kept out, and its connections ended
	ClientUnblock = "client_unblock" // and may ask again
)

// Record is what a writer knows; who and in which request comes from the context.
type Record struct {
	Action  string
	Outcome Outcome
	Code    fault.Code     // why it was refused or failed
	Subject string         // id of what was acted on
	CallID  string         // ties the records of one tool call
	Detail  map[string]any // facts for the reader
}

// Entry is a record as it is kept.
type Entry struct {
	ID         string `gorm:"primaryKey"`
	OrgID      store.OrgID
	At         store.Time
	Action     string
	Outcome    Outcome
	Code       string
	PersonID   string
	PersonName string
	Via        caller.Kind
	ViaID      string
	ViaName    string
	Subject    string
	CallID     string
	RequestID  string
	Detail     Detail
}

// TableName implements gorm's tabler.
func (Entry) TableName() string { return "audit" }

// Log is the audit log of all organizations; each call works on that of the caller's.
type Log struct{ store *store.Store }

// New returns the log that s keeps.
func New(s *store.Store) *Log { return &Log{s} }

// Append writes one record, in the transaction that ctx carries or in one of its own.
func (l *Log) Append(ctx context.Context, r Record) error {
	c, ok := caller.From(ctx)
	if !ok {
		return fmt.Errorf("auditing %s: %w", r.Action, store.ErrNoOrg)
	}
	e := Entry{
		ID: store.NewID("aud"), OrgID: store.OrgID(c.Org), At: store.Now(),
		Action: r.Action, Outcome: r.Outcome, Code: string(r.Code),
		PersonID: c.Person, PersonName: c.PersonName, Via: c.Via, ViaID: c.ID, ViaName: c.Name,
		Subject: r.Subject, CallID: r.CallID, RequestID: caller.Request(ctx), Detail: r.Detail,
	}
	err := l.store.Tx(ctx, func(ctx context.Context) error { return l.store.DB(ctx).Create(&e).Error })
	if err != nil {
		return fmt.Errorf("auditing %s: %w", r.Action, err)
	}
	return nil
}

// Filter narrows a listing; its zero value is everything but the started records, newest first.
type Filter struct {
	Action, Outcome string
	Actor           string // a person's, connection's or key's id
	Since, Until    time.Time
	Cursor          string // from the page before
	Limit           int    // 0 means 50, at most 200
}

// List reads one page of the caller's organization and the cursor of the next, "" at the end.
func (l *Log) List(ctx context.Context, f Filter) ([]Entry, string, error) {
	if err := mayRead(ctx); err != nil {
		return nil, "", err
	}
	if f.Limit <= 0 {
		f.Limit = 50
	}
	f.Limit = min(f.Limit, 200)
	q := l.where(ctx, f).Order("at DESC, id DESC").Limit(f.Limit + 1)
	if f.Cursor != "" {
		at, id, ok := parseCursor(f.Cursor)
		if !ok {
			return nil, "", fault.New(fault.InvalidRequest, "This page of the audit log does not exist. Start again from the first page.")
		}
		q = q.Where("at < ? OR (at = ? AND id < ?)", at, at, id)
	}
	entries := []Entry{}
	if err := q.Find(&entries).Error; err != nil {
		return nil, "", fmt.Errorf("reading the audit log: %w", err)
	}
	if len(entries) <= f.Limit {
		return entries, "", nil
	}
	entries = entries[:f.Limit]
	last := entries[f.Limit-1]
	return entries, fmt.Sprintf("%d.%s", last.At.UnixMicro(), last.ID), nil
}

// Count is how many records the filter lets through, whatever its cursor and limit.
func (l *Log) Count(ctx context.Context, f Filter) (int64, error) {
	if err := mayRead(ctx); err != nil {
		return 0, err
	}
	var n int64
	if err := l.where(ctx, f).Count(&n).Error; err != nil {
		return 0, fmt.Errorf("counting the audit log: %w", err)
	}
	return n, nil
}

// Actor is somebody who can be asked for in a filter.
type Actor struct{ ID, Name string }

// Actors lists the people, apps and keys that have records, by name and once each, whatever they were called.
func (l *Log) Actors(ctx context.Context) ([]Actor, error) {
	if err := mayRead(ctx); err != nil {
		return nil, err
	}
	var people, vias []Actor
	err := l.store.DB(ctx).Model(&Entry{}).Select("person_id AS id, max(person_name) AS name").Where("person_id <> ''").Group("person_id").Order("name").Limit(200).Scan(&people).Error
	if err == nil {
		err = l.store.DB(ctx).Model(&Entry{}).Select("via_id AS id, max(via_name) AS name").
			Where("via_id <> '' AND via IN ?", []caller.Kind{caller.Connection, caller.Key}).Group("via_id").Order("name").Limit(200).Scan(&vias).Error
	}
	if err != nil {
		return nil, fmt.Errorf("reading the audit log's actors: %w", err)
	}
	return append(people, vias...), nil
}

// Actions lists the actions that have records.
func (l *Log) Actions(ctx context.Context) ([]string, error) {
	if err := mayRead(ctx); err != nil {
		return nil, err
	}
	actions := []string{}
	if err := l.store.DB(ctx).Model(&Entry{}).Distinct().Order("action").Pluck("action", &actions).Error; err != nil {
		return nil, fmt.Errorf("reading the audit log's actions: %w", err)
	}
	return actions, nil
}

// mayRead lets those read the log who see everybody's things.
func mayRead(ctx context.Context) error {
	if c, ok := caller.From(ctx); !ok || !c.Role.SeesAll() {
		return fault.New(fault.Forbidden, "The audit log is for administrators. Ask one of them.")
	}
	return nil
}

// where is the query that the filter describes, fenced to the caller's organization.
func (l *Log) where(ctx context.Context, f Filter) *gorm.DB {
	q := l.store.DB(ctx).Model(&Entry{})
	for _, asked := range []string{f.Action, f.Outcome, f.Actor} {
		if !storable(asked) {
			return q.Where("1 = 0") // no record can have it, and Postgres would call it an error
		}
	}
	if f.Outcome == "" {
		q = q.Where("outcome <> ?", Started)
	} else {
		q = q.Where("outcome = ?", f.Outcome)
	}
	if f.Action != "" {
		q = q.Where("action = ?", f.Action)
	}
	if f.Actor != "" {
		q = q.Where("person_id = ? OR via_id = ?", f.Actor, f.Actor)
	}
	if !f.Since.IsZero() {
		q = q.Where("at >= ?", store.At(f.Since))
	}
	if !f.Until.IsZero() {
		q = q.Where("at < ?", store.At(f.Until))
	}
	return q
}

func parseCursor(s string) (at int64, id string, ok bool) {
	left, id, _ := strings.Cut(s, ".")
	at, err := strconv.ParseInt(left, 10, 64)
	return at, id, err == nil && strings.HasPrefix(id, "aud_") && storable(id)
}

// storable reports whether a text can be in the database at all.
func storable(s string) bool { return utf8.ValidString(s) && !strings.ContainsRune(s, 0) }

// Detail is a JSON object in a TEXT column.
type Detail map[string]any

// Value implements driver.Valuer.
func (d Detail) Value() (driver.Value, error) {
	if d == nil {
		return "{}", nil
	}
	b, err := json.Marshal(map[string]any(d))
	return string(b), err
}

// Scan implements sql.Scanner.
func (d *Detail) Scan(v any) error {
	s, ok := v.(string)
	if !ok {
		return fmt.Errorf("reading an audit detail: unexpected %T", v)
	}
	return json.Unmarshal([]byte(s), (*map[string]any)(d))
}
