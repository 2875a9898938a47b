// Package migrations embeds the database schema: one goose file per step, under the same name in both dialects.
// A file that has landed is never edited; a change is a new file on both sides.
package migrations

import "embed"

// FS holds the folders sqlite and postgres.
//
//go:embed sqlite/*.sql postgres/*.sql
var FS embed.FS
