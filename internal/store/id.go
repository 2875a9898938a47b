package store

import (
	"strings"

	"github.com/oklog/ulid/v2"
)

// NewID makes an id that sorts by the time of its making and cannot be guessed: "<prefix>_" and a ULID in lower
// case. It is 26 characters after the prefix.
func NewID(prefix string) string {
	return prefix + "_" + strings.ToLower(ulid.Make().String())
}
