package store

import (
	"context"
	"errors"
	"fmt"
	"reflect"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"
	"gorm.io/gorm/schema"

	"switchboard/internal/caller"
)

// OrgID is the type of the column that says which organization a row belongs to. The type is the fence: gorm asks
// a field's type for extra clauses, so every read, update, delete and upsert of a model with an OrgID field is cut
// to the caller's organization, whatever the query says, and every created row belongs to it. A context without
// a caller reads nothing and writes nothing.
//
// What a column cannot see (raw SQL, joins written as strings, subqueries) is refused by the plugin in fence.go.
type OrgID string

var (
	// ErrNoOrg is what a fenced query answers when nobody was authenticated.
	ErrNoOrg = errors.New("no organization in this context")
	// ErrForeignOrg is what creating a row for another organization answers.
	ErrForeignOrg = errors.New("row belongs to another organization")
	// ErrUnfenced is what a query answers that the fence cannot see through.
	ErrUnfenced = errors.New("query cannot be fenced to one organization")
)

type allKey struct{}

// AllOrgs returns a context in which the fence is open. The reason stands in the code for its reader: token
// look-ups, jobs over all organizations and public doors need it, nothing else does.
func AllOrgs(ctx context.Context, reason string) context.Context {
	return context.WithValue(ctx, allKey{}, reason)
}

func all(ctx context.Context) bool { return ctx.Value(allKey{}) != nil }

func orgOf(ctx context.Context) string {
	c, _ := caller.From(ctx)
	return c.Org
}

// Gorm's hooks for a field's type; the soft-delete column of gorm works the same way.
func (OrgID) QueryClauses(f *schema.Field) []clause.Interface { return fenced(f, opQuery) }

// UpdateClauses implements gorm's hook.
func (OrgID) UpdateClauses(f *schema.Field) []clause.Interface { return fenced(f, opUpdate) }

// DeleteClauses implements gorm's hook.
func (OrgID) DeleteClauses(f *schema.Field) []clause.Interface { return fenced(f, opDelete) }

// CreateClauses implements gorm's hook.
func (OrgID) CreateClauses(f *schema.Field) []clause.Interface { return fenced(f, opCreate) }

type op int

const (
	opQuery op = iota
	opUpdate
	opDelete
	opCreate
)

type orgClause struct {
	field *schema.Field
	op    op
}

func fenced(f *schema.Field, o op) []clause.Interface { return []clause.Interface{orgClause{f, o}} }

// Name, Build and MergeClause make an orgClause a clause that writes nothing itself.
func (orgClause) Name() string               { return "" }
func (orgClause) Build(clause.Builder)       {}
func (orgClause) MergeClause(*clause.Clause) {}

// nothing matches no row; gorm drops the errors of subqueries, so an error alone would not be enough.
var nothing = clause.Where{Exprs: []clause.Expression{clause.Expr{SQL: "1 = 0"}}}

func (c orgClause) ModifyStatement(stmt *gorm.Statement) {
	ctx := stmt.Context
	if ctx == nil {
		ctx = stmt.DB.Statement.Context // the ON part of a join
	}
	if all(ctx) {
		return
	}
	org := orgOf(ctx)
	if org == "" {
		_ = stmt.AddError(ErrNoOrg)
		stmt.AddClause(nothing)
		return
	}
	if c.op == opCreate {
		c.create(stmt, org)
		return
	}
	if c.op == opUpdate {
		stmt.Omits = append(stmt.Omits, c.field.DBName) // a row never changes hands
	}
	where, has := stmt.Clauses["WHERE"]
	if !has && c.op != opQuery && !c.keyed(stmt) {
		// Without a condition of its own this would change the whole organization.
		_ = stmt.AddError(gorm.ErrMissingWhereClause)
		stmt.AddClause(nothing)
		return
	}
	if w, ok := where.Expression.(clause.Where); ok && len(w.Exprs) > 0 {
		where.Expression = clause.Where{Exprs: []clause.Expression{clause.And(w.Exprs...)}} // keeps an OR inside
		stmt.Clauses["WHERE"] = where
	}
	stmt.AddClause(clause.Where{Exprs: []clause.Expression{c.mine(org)}})
}

func (c orgClause) mine(org string) clause.Expression {
	return clause.Eq{Column: clause.Column{Table: clause.CurrentTable, Name: c.field.DBName}, Value: org}
}

// keyed reports whether the statement's model carries a primary key, which gorm turns into a condition later.
func (c orgClause) keyed(stmt *gorm.Statement) bool {
	value := reflect.Indirect(stmt.ReflectValue)
	if value.Kind() != reflect.Struct || stmt.Schema == nil {
		return false
	}
	for _, f := range stmt.Schema.PrimaryFields {
		if _, zero := f.ValueOf(stmt.Context, value); !zero {
			return true
		}
	}
	return false
}

func (c orgClause) create(stmt *gorm.Statement, org string) {
	set := func(row reflect.Value) {
		if row.Kind() == reflect.Map {
			_ = stmt.AddError(fmt.Errorf("%w: create from a map", ErrUnfenced))
			return
		}
		if v, zero := c.field.ValueOf(stmt.Context, row); !zero && fmt.Sprint(v) != org {
			_ = stmt.AddError(ErrForeignOrg)
			return
		}
		_ = stmt.AddError(c.field.Set(stmt.Context, row, org))
	}
	switch value := reflect.Indirect(stmt.ReflectValue); value.Kind() {
	case reflect.Slice, reflect.Array:
		for i := range value.Len() {
			set(reflect.Indirect(value.Index(i)))
		}
	default:
		set(value)
	}
	if conflict, ok := stmt.Clauses["ON CONFLICT"]; ok {
		if on, ok := conflict.Expression.(clause.OnConflict); ok && !on.DoNothing {
			on.Where.Exprs = append(on.Where.Exprs, c.mine(org)) // an upsert never updates a foreign row
			conflict.Expression = on
			stmt.Clauses["ON CONFLICT"] = conflict
		}
	}
}
