package store

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"
)

// fence is the gorm plugin that refuses what an OrgID column cannot see: statements and parts of them that are text,
// and tables that a model without the column reaches for. It is there for our own mistakes. What a client sends is
// always a parameter and never part of a text.
type fence struct {
	// owned is the tables whose rows belong to organizations, learned from the models that say so.
	owned sync.Map
}

func (*fence) Name() string { return "organization fence" }

func (f *fence) Initialize(db *gorm.DB) error {
	cb := db.Callback()
	return errors.Join(
		cb.Query().Before("gorm:query").Register("fence", f.model),
		cb.Create().Before("gorm:create").Register("fence", f.model),
		cb.Update().Before("gorm:update").Register("fence", f.model),
		cb.Delete().Before("gorm:delete").Register("fence", f.model),
		cb.Row().Before("gorm:row").Register("fence", f.model),
		cb.Raw().Before("gorm:raw").Register("fence", f.raw),
	)
}

func refuse(db *gorm.DB, what string) { _ = db.AddError(fmt.Errorf("%w: %s", ErrUnfenced, what)) }

func (f *fence) raw(db *gorm.DB) {
	if !all(db.Statement.Context) {
		refuse(db, "raw SQL")
	}
}

func (f *fence) model(db *gorm.DB) {
	stmt := db.Statement
	strange := f.strange(stmt)
	if all(stmt.Context) {
		return
	}
	if stmt.SQL.Len() > 0 { // db.Raw(…).Find
		refuse(db, "raw SQL")
		return
	}
	if stmt.Schema == nil || stmt.TableExpr != nil || stmt.Table != stmt.Schema.Table {
		refuse(db, "a table without its model")
		return
	}
	if strange {
		refuse(db, "a table of organizations through a model without OrgID")
		return
	}
	if _, ok := stmt.Clauses["FROM"]; ok {
		refuse(db, "FROM")
	}
	for _, j := range stmt.Joins {
		if j.On != nil || stmt.Schema.Relationships.Relations[j.Name] == nil {
			refuse(db, "a join that is not a relation")
		}
	}
	for _, text := range stmt.Selects {
		f.text(db, text)
	}
	for _, c := range stmt.Clauses {
		f.part(db, c)
	}
	if changes, ok := stmt.Dest.(map[string]any); ok {
		for _, v := range changes {
			f.part(db, v)
		}
	}
}

// strange reports whether a model without an OrgID column reads a table that has one. It learns from what it sees.
func (f *fence) strange(stmt *gorm.Statement) bool {
	if stmt.Schema == nil {
		return false
	}
	for _, field := range stmt.Schema.Fields {
		if field.FieldType == reflect.TypeFor[OrgID]() {
			f.owned.Store(stmt.Table, true)
			return false
		}
	}
	_, owned := f.owned.Load(stmt.Table)
	return owned
}

// part looks for text in a part of a statement, at every depth.
func (f *fence) part(db *gorm.DB, v any) {
	switch v := v.(type) {
	case nil:
		return
	case clause.Expr:
		f.text(db, v.SQL)
		f.part(db, v.Vars)
		return
	case clause.NamedExpr:
		f.text(db, v.SQL)
		f.part(db, v.Vars)
		return
	case clause.Column:
		if v.Raw {
			f.text(db, v.Name)
		}
		return
	case *gorm.DB:
		// A subquery with a model goes through this fence itself, one that is text does not.
		if v.Statement != nil && v.Statement.SQL.Len() > 0 {
			refuse(db, "a subquery as text")
		}
		return
	case []any:
		for _, item := range v {
			f.part(db, item)
		}
		return
	}
	switch value := reflect.ValueOf(v); value.Kind() {
	case reflect.Pointer:
		if !value.IsNil() {
			f.part(db, value.Elem().Interface())
		}
	case reflect.Struct:
		if value.Type().PkgPath() != reflect.TypeFor[clause.Expr]().PkgPath() {
			return // a value of ours, a parameter
		}
		for i := range value.NumField() {
			if value.Type().Field(i).IsExported() {
				f.part(db, value.Field(i).Interface())
			}
		}
	case reflect.Slice:
		if e := value.Type().Elem(); e.Kind() == reflect.Struct || e.Kind() == reflect.Interface {
			for i := range value.Len() {
				f.part(db, value.Index(i).Interface())
			}
		}
	}
}

// text refuses SQL that brings its own query, or that could close the parentheses which the fence puts around it.
func (f *fence) text(db *gorm.DB, sql string) {
	depth, quote := 0, byte(0)
	for i := range len(sql) {
		c := sql[i]
		switch {
		case quote != 0:
			if c == quote {
				quote = 0
			}
		case c == '\'' || c == '"' || c == '`':
			quote = c
		case c == '(':
			depth++
		case c == ')':
			depth--
		case c == ';' || strings.HasPrefix(sql[i:], "--") || strings.HasPrefix(sql[i:], "/*"):
			refuse(db, "a comment or a second statement")
			return
		}
		if depth < 0 {
			break
		}
	}
	if depth != 0 || quote != 0 {
		refuse(db, "parentheses or quotes that do not match")
	}
	words := strings.FieldsFunc(strings.ToLower(sql), func(r rune) bool { return (r < 'a' || r > 'z') && r != '_' })
	for _, w := range words {
		if w == "select" || w == "table" {
			refuse(db, "a subquery as text")
		}
	}
}
