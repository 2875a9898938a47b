package auth

import (
	"context"
	"encoding/base64"
	"fmt"
	"slices"

	"gorm.io/gorm/clause"

	"switchboard/internal/seal"
	"switchboard/internal/store"
)

type serverKey struct {
	ID        string `gorm:"primaryKey"`
	Proof     string
	CreatedAt store.Time
}

func (serverKey) TableName() string { return "server_keys" }

// ClaimKeys ties the key file to the database. A file that has never worked on this database is refused: with it no
// token would be found any more, and everybody would be signed out without a word.
func ClaimKeys(ctx context.Context, s *store.Store, ring *seal.Keyring) error {
	return s.Tx(ctx, func(ctx context.Context) error {
		var known []serverKey
		if err := s.DB(ctx).Find(&known).Error; err != nil {
			return fmt.Errorf("reading the server keys: %w", err)
		}
		shared := false
		for _, id := range ring.IDs() {
			proof := proof(ring, id)
			at := slices.IndexFunc(known, func(k serverKey) bool { return k.ID == id })
			switch {
			case at >= 0 && known[at].Proof != proof:
				return fmt.Errorf("key %s of the key file is not the key of that name that this database was used with; restore the right key file", id)
			case at >= 0:
				shared = true
			default: // a replica that starts at this moment may be doing the same
				if err := s.DB(ctx).Clauses(clause.OnConflict{DoNothing: true}).Create(&serverKey{id, proof, store.Now()}).Error; err != nil {
					return fmt.Errorf("keeping a server key: %w", err)
				}
			}
		}
		if len(known) > 0 && !shared {
			return fmt.Errorf("this key file does not belong to this database, which knows the keys %v; restore the key file that it was used with (SWITCHBOARD_KEY_FILE)", ids(known))
		}
		return nil
	})
}

func proof(ring *seal.Keyring, id string) string {
	mac, _ := ring.Derive(id, seal.KeyProof, id)
	return base64.RawURLEncoding.EncodeToString(mac)
}

func ids(keys []serverKey) []string {
	out := make([]string, len(keys))
	for i, k := range keys {
		out[i] = k.ID
	}
	return out
}
