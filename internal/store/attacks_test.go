package store_test

import (
	"errors"
	"fmt"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"
)

type attack = func(db *gorm.DB) (seen []string, err error)

func reads() map[string]attack {
	find := func(q func(db *gorm.DB) *gorm.DB) attack {
		return func(db *gorm.DB) ([]string, error) {
			var books []book
			err := q(db).Find(&books).Error
			return of(books), err
		}
	}
	pluck := func(q func(db *gorm.DB) *gorm.DB) attack {
		return func(db *gorm.DB) (ids []string, err error) {
			err = q(db).Pluck("id", &ids).Error
			return ids, err
		}
	}
	return map[string]attack{
		"everything":       find(func(db *gorm.DB) *gorm.DB { return db }),
		"by id":            find(func(db *gorm.DB) *gorm.DB { return db.Where("id = ?", "a1") }),
		"or":               find(func(db *gorm.DB) *gorm.DB { return db.Where("id = ?", "b1").Or("1 = 1") }),
		"or first":         find(func(db *gorm.DB) *gorm.DB { return db.Or("org_id = ?", "org_a") }),
		"or in text":       find(func(db *gorm.DB) *gorm.DB { return db.Where("1 = 1 OR org_id = 'org_a'") }),
		"or in a comment":  find(func(db *gorm.DB) *gorm.DB { return db.Where("1 = 1 OR 1 = 1 --") }),
		"not":              find(func(db *gorm.DB) *gorm.DB { return db.Not("org_id = ?", "org_b") }),
		"org in a map":     find(func(db *gorm.DB) *gorm.DB { return db.Where(map[string]any{"org_id": "org_a"}) }),
		"org in a struct":  find(func(db *gorm.DB) *gorm.DB { return db.Where(&book{OrgID: "org_a"}) }),
		"unscoped":         find(func(db *gorm.DB) *gorm.DB { return db.Unscoped() }),
		"a scope":          find(func(db *gorm.DB) *gorm.DB { return db.Scopes(func(db *gorm.DB) *gorm.DB { return db.Or("1 = 1") }) }),
		"group and having": find(func(db *gorm.DB) *gorm.DB { return db.Group("id").Having("1 = 1 OR org_id = 'org_a'") }),
		"table and model":  find(func(db *gorm.DB) *gorm.DB { return db.Table("books") }),
		"table alias":      find(func(db *gorm.DB) *gorm.DB { return db.Table("books AS b") }),
		"table of a query": find(func(db *gorm.DB) *gorm.DB {
			return db.Table("(?) AS books", db.Session(&gorm.Session{NewDB: true}).Model(&thief{}))
		}),
		"from": find(func(db *gorm.DB) *gorm.DB {
			return db.Clauses(clause.From{Tables: []clause.Table{{Name: "books", Raw: true}}})
		}),
		"raw":            find(func(db *gorm.DB) *gorm.DB { return db.Raw("SELECT * FROM books") }),
		"join as text":   find(func(db *gorm.DB) *gorm.DB { return db.Joins("JOIN books AS other ON 1 = 1") }),
		"cross join":     find(func(db *gorm.DB) *gorm.DB { return db.Joins("CROSS JOIN shelves") }),
		"union in where": find(func(db *gorm.DB) *gorm.DB { return db.Where("1 = 0 UNION SELECT * FROM books") }),
		"union in an argument": find(func(db *gorm.DB) *gorm.DB {
			return db.Where("id IN (?)", gorm.Expr("SELECT id FROM books")).Or("id IN (?)", gorm.Expr("SELECT id FROM books"))
		}),
		"select with a query":       find(func(db *gorm.DB) *gorm.DB { return db.Select("(SELECT id FROM books WHERE id = 'a1') AS id") }),
		"order by a query":          find(func(db *gorm.DB) *gorm.DB { return db.Order("(SELECT count(*) FROM books WHERE org_id = 'org_a')") }),
		"group by a query":          find(func(db *gorm.DB) *gorm.DB { return db.Group("id").Having("(SELECT count(*) FROM books) > 2") }),
		"a closing parenthesis":     find(func(db *gorm.DB) *gorm.DB { return db.Where("1 = 1) OR (1 = 1") }),
		"two closing parentheses":   find(func(db *gorm.DB) *gorm.DB { return db.Where("1 = 1)) OR ((1 = 1").Where("1 = 1") }),
		"a comment after":           find(func(db *gorm.DB) *gorm.DB { return db.Where("1 = 1) --").Where("1 = 1 OR 1 = 1") }),
		"a comment in a line break": find(func(db *gorm.DB) *gorm.DB { return db.Where("1 = 1 OR 1 = 1 /*") }),
		"order after a comment":     find(func(db *gorm.DB) *gorm.DB { return db.Order("1 --") }),
		"another type":              pluck(func(db *gorm.DB) *gorm.DB { return db.Model(&thief{}) }),
		"a table by name":           pluck(func(db *gorm.DB) *gorm.DB { return db.Table("books") }),
		"pluck":                     pluck(func(db *gorm.DB) *gorm.DB { return db.Model(&book{}) }),
		"distinct":                  pluck(func(db *gorm.DB) *gorm.DB { return db.Model(&book{}).Distinct() }),
		"a subquery": pluck(func(db *gorm.DB) *gorm.DB {
			return db.Model(&book{}).Where("id IN (?) OR 1 = 1", db.Session(&gorm.Session{NewDB: true}).Model(&book{}).Select("id"))
		}),
		"a subquery of a stranger": pluck(func(db *gorm.DB) *gorm.DB {
			return db.Model(&book{}).Where("EXISTS (?)", db.Session(&gorm.Session{NewDB: true}).Table("books").Select("1").Where("id = 'a1'"))
		}),
		"count": func(db *gorm.DB) ([]string, error) {
			var n int64
			err := db.Model(&book{}).Count(&n).Error
			if n > 1 {
				return []string{"a*"}, err
			}
			return nil, err
		},
		"first, take and last": func(db *gorm.DB) (seen []string, err error) {
			for _, f := range []func(any, ...any) *gorm.DB{db.First, db.Take, db.Last} {
				var b book
				err = errors.Join(err, f(&b, "id = ?", "a1").Error)
				seen = append(seen, b.ID)
			}
			return seen, err
		},
		"by primary key": func(db *gorm.DB) ([]string, error) {
			b := book{ID: "a1"}
			err := db.First(&b).Error
			if b.Title != "" {
				return []string{b.ID}, err
			}
			return nil, err
		},
		"rows": func(db *gorm.DB) (seen []string, err error) {
			rows, err := db.Model(&book{}).Select("id").Rows()
			if err != nil {
				return nil, err
			}
			defer rows.Close()
			for rows.Next() {
				var id string
				if err := rows.Scan(&id); err != nil {
					return seen, err
				}
				seen = append(seen, id)
			}
			return seen, rows.Err()
		},
		"raw rows": func(db *gorm.DB) (seen []string, err error) {
			rows, err := db.Raw("SELECT id FROM books").Rows()
			if err != nil {
				return nil, err
			}
			defer rows.Close()
			for rows.Next() {
				seen = append(seen, "a*")
			}
			return seen, rows.Err()
		},
		"raw scan": func(db *gorm.DB) (seen []string, err error) {
			err = db.Raw("SELECT id FROM books").Scan(&seen).Error
			return seen, err
		},
		"scan into a map": func(db *gorm.DB) (seen []string, err error) {
			var rows []map[string]any
			err = db.Model(&book{}).Find(&rows).Error
			for _, r := range rows {
				seen = append(seen, fmt.Sprint(r["id"]))
			}
			return seen, err
		},
		"scan into another type": func(db *gorm.DB) (seen []string, err error) {
			var rows []thief
			err = db.Model(&book{}).Scan(&rows).Error
			for _, r := range rows {
				seen = append(seen, r.ID)
			}
			return seen, err
		},
		"in batches": func(db *gorm.DB) (seen []string, err error) {
			var books []book
			err = db.FindInBatches(&books, 1, func(*gorm.DB, int) error { seen = append(seen, of(books)...); return nil }).Error
			return seen, err
		},
		"preload": func(db *gorm.DB) (seen []string, err error) {
			var shelves []shelf
			err = db.Preload("Books").Find(&shelves).Error
			for _, v := range shelves {
				seen = append(append(seen, v.ID), of(v.Books)...)
			}
			return seen, err
		},
		"preload with or": func(db *gorm.DB) (seen []string, err error) {
			var shelves []shelf
			err = db.Preload("Books", "1 = 1 OR org_id = ?", "org_a").Find(&shelves).Error
			for _, v := range shelves {
				seen = append(append(seen, v.ID), of(v.Books)...)
			}
			return seen, err
		},
		"association": func(db *gorm.DB) ([]string, error) {
			var books []book
			err := db.Model(&shelf{ID: "shelf_a"}).Association("Books").Find(&books)
			return of(books), err
		},
		"a relation joined": func(db *gorm.DB) (seen []string, err error) {
			var books []book
			err = db.Joins("Shelf").Find(&books).Error
			for _, b := range books {
				if b.Shelf != nil && b.Shelf.ID == "shelf_a" {
					seen = append(seen, b.Shelf.ID)
				}
			}
			return append(seen, of(books)...), err
		},
		"a relation joined with a condition": func(db *gorm.DB) ([]string, error) {
			var books []book
			err := db.Joins("Shelf", db.Where("1 = 1 OR 1 = 1")).Find(&books).Error
			return of(books), err
		},
	}
}

// oracles ask a question about rows of org_a; a row of org_b, or no error, would be the answer.
func oracles() map[string]func(db *gorm.DB) *gorm.DB {
	fresh := func(db *gorm.DB) *gorm.DB { return db.Session(&gorm.Session{NewDB: true}) }
	return map[string]func(db *gorm.DB) *gorm.DB{
		"exists in text":         func(db *gorm.DB) *gorm.DB { return db.Where("EXISTS (SELECT 1 FROM books WHERE id = 'a1')") },
		"exists in another case": func(db *gorm.DB) *gorm.DB { return db.Where("exists (seLect 1 from books where id = 'a1')") },
		"exists, an expression": func(db *gorm.DB) *gorm.DB {
			return db.Where("EXISTS (?)", gorm.Expr("SELECT 1 FROM books WHERE id = 'a1'"))
		},
		"exists, nested": func(db *gorm.DB) *gorm.DB {
			return db.Where(fresh(db).Where("1 = 0").Or("EXISTS (SELECT 1 FROM books WHERE id = 'a1')"))
		},
		"exists, raw": func(db *gorm.DB) *gorm.DB {
			return db.Where("EXISTS (?)", fresh(db).Raw("SELECT 1 FROM books WHERE id = 'a1'"))
		},
		"exists, named": func(db *gorm.DB) *gorm.DB {
			return db.Where("EXISTS (SELECT 1 FROM books WHERE id = @id)", map[string]any{"id": "a1"})
		},
		"exists, not":             func(db *gorm.DB) *gorm.DB { return db.Not("NOT EXISTS (SELECT 1 FROM books WHERE id = 'a1')") },
		"exists, a table by name": func(db *gorm.DB) *gorm.DB { return db.Where("EXISTS (?)", fresh(db).Table("books").Where("id = 'a1'")) },
		"exists, another type": func(db *gorm.DB) *gorm.DB {
			return db.Where("EXISTS (?)", fresh(db).Model(&thief{}).Where("id = 'a1'"))
		},
		"exists, its own type": func(db *gorm.DB) *gorm.DB { return db.Where("EXISTS (?)", fresh(db).Model(&book{}).Where("id = 'a1'")) },
		"in, an expression":    func(db *gorm.DB) *gorm.DB { return db.Where("'a1' IN (?)", gorm.Expr("SELECT id FROM books")) },
		"in, a clause": func(db *gorm.DB) *gorm.DB {
			return db.Clauses(clause.Where{Exprs: []clause.Expression{clause.Gt{Column: clause.Column{Name: "2", Raw: true}, Value: gorm.Expr("(SELECT 1 FROM books WHERE id = 'a1')")}}})
		},
		"a pointer to an expression": func(db *gorm.DB) *gorm.DB {
			return db.Where("EXISTS (?)", &clause.Expr{SQL: "SELECT 1 FROM books WHERE id = 'a1'"})
		},
		"the table of Postgres": func(db *gorm.DB) *gorm.DB { return db.Where("EXISTS (TABLE books)") },
		"order":                 func(db *gorm.DB) *gorm.DB { return db.Order("(SELECT 1 FROM books WHERE id = 'a1')") },
		"having":                func(db *gorm.DB) *gorm.DB { return db.Group("id").Having("(SELECT count(*) FROM books) > 2") },
		"a column":              func(db *gorm.DB) *gorm.DB { return db.Select("id, (SELECT title FROM books WHERE id = 'a1') AS title") },
		"a column, an expression": func(db *gorm.DB) *gorm.DB {
			return db.Select("id, (?) AS title", gorm.Expr("SELECT title FROM books WHERE id = 'a1'"))
		},
		"limit by a clause": func(db *gorm.DB) *gorm.DB {
			return db.Clauses(clause.OrderBy{Expression: gorm.Expr("(SELECT 1 FROM books WHERE id = 'a1')")})
		},
	}
}

func writes() map[string]func(db *gorm.DB) error {
	upsert := clause.OnConflict{Columns: []clause.Column{{Name: "id"}}, DoUpdates: clause.AssignmentColumns([]string{"title"})}
	foreign := book{ID: "a1", OrgID: "org_a", ShelfID: "x", Title: "stolen"}
	return map[string]func(db *gorm.DB) error{
		"update by id":  func(db *gorm.DB) error { return db.Model(&book{}).Where("id = ?", "a1").Update("title", "x").Error },
		"update by key": func(db *gorm.DB) error { return db.Model(&book{ID: "a1"}).Update("title", "x").Error },
		"update with or": func(db *gorm.DB) error {
			return db.Model(&book{}).Where("1 = 0").Or("id = 'a1'").Update("title", "x").Error
		},
		"update a column":  func(db *gorm.DB) error { return db.Model(&book{ID: "a1"}).UpdateColumn("title", "x").Error },
		"update by struct": func(db *gorm.DB) error { return db.Updates(&book{ID: "a1", Title: "x"}).Error },
		"update all":       func(db *gorm.DB) error { return db.Model(&book{}).Update("title", "x").Error },
		"update all, allowed": func(db *gorm.DB) error {
			return db.Session(&gorm.Session{AllowGlobalUpdate: true}).Model(&book{}).Update("title", "x").Error
		},
		"give a row away": func(db *gorm.DB) error { return db.Model(&book{ID: "b1"}).Update("org_id", "org_a").Error },
		"give a row away, map": func(db *gorm.DB) error {
			return db.Model(&book{ID: "b1"}).Updates(map[string]any{"org_id": "org_a"}).Error
		},
		"give a row away, selected": func(db *gorm.DB) error {
			return db.Model(&book{ID: "b1"}).Select("org_id").Updates(&book{OrgID: "org_a"}).Error
		},
		"give a row away, everything selected": func(db *gorm.DB) error {
			return db.Select("*").Updates(&book{ID: "b1", OrgID: "org_a", ShelfID: "shelf_b", Title: "three"}).Error
		},
		"give a row away, column": func(db *gorm.DB) error { return db.Model(&book{ID: "b1"}).UpdateColumn("org_id", "org_a").Error },
		"update another type":     func(db *gorm.DB) error { return db.Model(&thief{ID: "a1"}).Update("title", "x").Error },
		"update a table":          func(db *gorm.DB) error { return db.Table("books").Where("id = 'a1'").Update("title", "x").Error },
		"update with a query": func(db *gorm.DB) error {
			return db.Model(&book{ID: "b1"}).Update("title", gorm.Expr("(SELECT title || '!' FROM books WHERE id = 'a1')")).Error
		},
		"update with a query in a struct": func(db *gorm.DB) error {
			return db.Model(&book{ID: "b1"}).Clauses(clause.Set{{Column: clause.Column{Name: "title"}, Value: gorm.Expr("(SELECT title || '!' FROM books WHERE id = 'a1')")}}).Updates(&book{}).Error
		},
		"save foreign":     func(db *gorm.DB) error { return db.Save(&foreign).Error },
		"save without org": func(db *gorm.DB) error { return db.Save(&book{ID: "a1", Title: "x"}).Error },
		"save many":        func(db *gorm.DB) error { return db.Save(&[]book{{ID: "a1", Title: "x"}, {ID: "a2", Title: "y"}}).Error },
		"create foreign":   func(db *gorm.DB) error { return db.Create(&book{ID: "new", OrgID: "org_a", Title: "x"}).Error },
		"create over":      func(db *gorm.DB) error { return db.Create(&book{ID: "a1", Title: "x"}).Error },
		"create many": func(db *gorm.DB) error {
			return db.Create(&[]book{{ID: "n1", Title: "n1"}, {ID: "n2", OrgID: "org_a", Title: "n2"}}).Error
		},
		"create from a map": func(db *gorm.DB) error {
			return db.Model(&book{}).Create(map[string]any{"id": "n", "org_id": "org_a", "shelf_id": "", "title": "n"}).Error
		},
		"create from maps": func(db *gorm.DB) error {
			return db.Model(&book{}).Create([]map[string]any{{"id": "n", "org_id": "org_a", "shelf_id": "", "title": "n"}}).Error
		},
		"upsert": func(db *gorm.DB) error { return db.Clauses(upsert).Create(&book{ID: "a1", Title: "x"}).Error },
		"upsert everything": func(db *gorm.DB) error {
			return db.Clauses(clause.OnConflict{UpdateAll: true}).Create(&book{ID: "a1", Title: "x"}).Error
		},
		"upsert by title": func(db *gorm.DB) error {
			return db.Clauses(clause.OnConflict{Columns: []clause.Column{{Name: "title"}}, DoUpdates: clause.Assignments(map[string]any{"org_id": "org_b"})}).Create(&book{ID: "n", Title: "one"}).Error
		},
		"upsert with a query": func(db *gorm.DB) error {
			return db.Clauses(clause.OnConflict{Columns: []clause.Column{{Name: "id"}}, DoUpdates: clause.Assignments(map[string]any{"title": gorm.Expr("(SELECT title || '!' FROM books WHERE id = 'a1')")})}).Create(&book{ID: "b1", Title: "x"}).Error
		},
		"first or create": func(db *gorm.DB) error { return db.Where("id = 'a1'").FirstOrCreate(&book{ID: "a1", Title: "x"}).Error },
		"first or assign": func(db *gorm.DB) error {
			return db.Where("id = 'a1'").Assign(book{Title: "x"}).FirstOrCreate(&book{ID: "a1"}).Error
		},
		"create with a foreign child": func(db *gorm.DB) error {
			return db.Create(&shelf{ID: "s", Name: "s", Books: []book{{ID: "n", OrgID: "org_a", Title: "n"}}}).Error
		},
		"create over a child": func(db *gorm.DB) error {
			return db.Session(&gorm.Session{FullSaveAssociations: true}).Create(&shelf{ID: "s", Name: "s", Books: []book{{ID: "a1", Title: "x"}}}).Error
		},
		"append a foreign child": func(db *gorm.DB) error {
			return db.Model(&shelf{ID: "shelf_b"}).Association("Books").Append(&book{ID: "a1", Title: "x"})
		},
		"replace children": func(db *gorm.DB) error { return db.Model(&shelf{ID: "shelf_b"}).Association("Books").Clear() },
		"delete by id":     func(db *gorm.DB) error { return db.Delete(&book{}, "id = ?", "a1").Error },
		"delete by key":    func(db *gorm.DB) error { return db.Delete(&book{ID: "a1"}).Error },
		"delete with or":   func(db *gorm.DB) error { return db.Where("1 = 0").Or("org_id = 'org_a'").Delete(&book{}).Error },
		"delete all": func(db *gorm.DB) error {
			return db.Session(&gorm.Session{AllowGlobalUpdate: true}).Delete(&book{}).Error
		},
		"delete unscoped":      func(db *gorm.DB) error { return db.Unscoped().Where("id = 'a1'").Delete(&book{}).Error },
		"delete other type":    func(db *gorm.DB) error { return db.Delete(&thief{ID: "a1"}).Error },
		"delete with children": func(db *gorm.DB) error { return db.Select("Books").Delete(&shelf{ID: "shelf_a"}).Error },
		"delete returning": func(db *gorm.DB) error {
			var gone []book
			return db.Clauses(clause.Returning{}).Where("1 = 1 OR 1 = 1").Delete(&gone, "org_id = ?", "org_a").Error
		},
		"exec":      func(db *gorm.DB) error { return db.Exec("DELETE FROM books").Error },
		"raw write": func(db *gorm.DB) error { var b []book; return db.Raw("DELETE FROM books RETURNING *").Scan(&b).Error },
	}
}
