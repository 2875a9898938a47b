package kit

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
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

// maxPage is how many bytes the rows of a page may take as they are sent before it ends early: 25 rows can be short or
// long. What is left of MaxResult is for what a list says beside its rows.
const maxPage = MaxResult - Envelope - 3_000

// Listing is how a tool lists rows, newest first by their columns created_at and id.
type Listing[Row any] struct {
	Tool     string // a cursor is good for this tool and the caller's organization only
	Position func(Row) Position
	Complete func(context.Context, []Row) error // reads what belongs to rows and is in other tables; may be nil
}

// Read reads one page of q and the cursor of the next one, "" at the end. A page has one row at least: a row that is too
// large for a page beside its own copy as text is sent with that copy cut, as a face does with any such value, and one
// that is too large without it is an error with the cursor that leads past it, so that no row bars the way to the others.
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
	fit, err := fitting(rows[:kept])
	if err != nil {
		return nil, "", err
	}
	if fit == 0 && kept > 0 {
		return nil, "", l.tooLarge(ctx, l.Position(rows[0]), len(rows) > 1)
	}
	if fit == len(rows) {
		return rows, "", nil
	}
	return rows[:fit], cursor(ctx, l.Tool, l.Position(rows[fit-1])), nil
}

// fitting is how many rows go on one page: none when the first is too large even without its copy as text.
func fitting[Row any](rows []Row) (int, error) {
	size := 0
	for i, row := range rows {
		b, err := encode(row)
		if err != nil {
			return 0, fmt.Errorf("measuring a page: %w", err)
		}
		alone, asText := Size(b)
		if size += alone + asText + 2; size <= maxPage {
			continue
		}
		if i == 0 && alone <= maxPage {
			return 1, nil
		}
		return i, nil
	}
	return len(rows), nil
}

// tooLarge is the answer where the first row of a page cannot be sent at all.
func (l Listing[Row]) tooLarge(ctx context.Context, p Position, more bool) error {
	f := fault.New(fault.ResultTooLarge, "The next entry, %s, is too large for a list, and there are none after it. Read it by itself.", p.ID)
	if more {
		f = fault.New(fault.ResultTooLarge, "The next entry, %s, is too large for a list. Read it by itself; details.nextCursor goes on with the entries after it.", p.ID).
			With("nextCursor", cursor(ctx, l.Tool, p))
	}
	return f.With("id", p.ID)
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
