package kit

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"gorm.io/gorm"

	"switchboard/internal/caller"
	"switchboard/internal/fault"
	"switchboard/internal/store"
)

// Page is embedded, last, by the input of a tool that lists something.
type Page struct {
	Limit  int    `json:"limit" min:"1" max:"100" default:"25" doc:"How many to return at most, 1 to 100. Large ones make a page end earlier."`
	Cursor string `json:"cursor,omitzero" max:"200" doc:"The nextCursor of the page before. Leave it out for the first page."`
}

// Position is where a row stands in a list that is sorted newest first: neither changes as long as the row lives, so
// pages neither repeat nor skip rows while others are added.
type Position struct {
	At store.Time
	ID string
}

// maxPage is how many bytes a page may have before it ends early. Hosts refuse results that are too large as a whole,
// and 25 rows can be short or long.
const maxPage = 50_000

// Listing is how a tool lists rows, newest first by their columns created_at and id.
type Listing[Row any] struct {
	Tool     string // a cursor is good for this tool and the caller's organization only
	Position func(Row) Position
	Complete func(context.Context, []Row) error // reads what belongs to rows and is in other tables; may be nil
}

// Read reads one page of q and the cursor of the next one, "" at the end.
func (l Listing[Row]) Read(ctx context.Context, q *gorm.DB, p Page) (rows []Row, next string, err error) {
	if p.Cursor != "" {
		after, err := parseCursor(ctx, l.Tool, p.Cursor)
		if err != nil {
			return nil, "", err
		}
		q = q.Where("(created_at, id) < (?, ?)", after.At, after.ID)
	}
	if err := q.Order("created_at DESC, id DESC").Limit(p.Limit + 1).Find(&rows).Error; err != nil {
		return nil, "", fmt.Errorf("reading a page of %s: %w", l.Tool, err)
	}
	kept := min(len(rows), p.Limit)
	if l.Complete != nil && kept > 0 {
		if err := l.Complete(ctx, rows[:kept]); err != nil {
			return nil, "", err
		}
	}
	if kept, err = fitting(rows[:kept]); err != nil || kept == len(rows) {
		return rows, "", err
	}
	return rows[:kept], cursor(ctx, l.Tool, l.Position(rows[kept-1])), nil
}

// fitting is how many rows go on one page, one at least.
func fitting[Row any](rows []Row) (int, error) {
	size := 0
	for i, row := range rows {
		b, err := json.Marshal(row)
		if err != nil {
			return 0, fmt.Errorf("measuring a page: %w", err)
		}
		if size += len(b); size > maxPage && i > 0 {
			return i, nil
		}
	}
	return len(rows), nil
}

// A cursor is 8 bytes that tie it to its list and organization, and the position. It is no secret and grants
// nothing, the tenant fence stands behind it; the tie is there so that a wrong one is refused instead of followed.
func cursor(ctx context.Context, list string, p Position) string {
	text := strconv.FormatInt(p.At.UnixMicro(), 10) + " " + p.ID
	return base64.RawURLEncoding.EncodeToString(append(tie(ctx, list, text), text...))
}

const tieSize = 8

func tie(ctx context.Context, list, text string) []byte {
	c, _ := caller.From(ctx)
	sum := sha256.Sum256([]byte(c.Org + "\x00" + list + "\x00" + text))
	return sum[:tieSize]
}

// idPattern is what ids are made of; anything else never came from us, and Postgres refuses some of it with an error.
var idPattern = regexp.MustCompile(`^[a-z0-9_]+$`)

func parseCursor(ctx context.Context, list, s string) (Position, error) {
	wrong := fault.New(fault.InvalidRequest, "cursor: must be the nextCursor of a page of this list. Leave it out to start again.").With("field", "cursor")
	b, err := base64.RawURLEncoding.Strict().DecodeString(s)
	if err != nil || len(b) < tieSize || strings.ContainsAny(s, "\r\n") { // which the decoder passes over: a cursor has one spelling
		return Position{}, wrong
	}
	text := string(b[tieSize:])
	micros, id, ok := strings.Cut(text, " ")
	at, err := strconv.ParseInt(micros, 10, 64)
	if !ok || err != nil || !idPattern.MatchString(id) || string(b[:tieSize]) != string(tie(ctx, list, text)) {
		return Position{}, wrong
	}
	return Position{At: store.At(time.UnixMicro(at)), ID: id}, nil
}
