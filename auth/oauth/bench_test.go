package oauth

import (
	"context"
	"net/http"
	"testing"

	"switchboard/internal/store"
)

// BenchmarkRefresh compares a refresh through the HTTP handler with the floor that it stands on: one durable
// transaction that marks a row as used and adds the next one. Both run on the same database, in one run.
func BenchmarkRefresh(b *testing.B) {
	b.Run("floor", func(b *testing.B) {
		w := newWorld(b)
		hash := w.server.Secrets.Hash(w.tokens("contacts:read contacts:write").Refresh)
		var grant string
		if err := w.store.QueryRow(b.Context(), `SELECT grant_id FROM generations WHERE refresh_hash = ?`, []any{hash}, &grant); err != nil {
			b.Fatal(err)
		}
		for b.Loop() {
			next := generation{refreshHash: store.NewID("r"), accessHash: store.NewID("a"), grantID: grant, issuedAt: store.Now(), accessExpires: store.Now(), refreshExpires: store.Now()}
			err := w.store.Tx(b.Context(), func(ctx context.Context) error {
				if _, err := w.store.Exec(ctx, `UPDATE generations SET used_at = ?, next_hash = ? WHERE refresh_hash = ? AND used_at IS NULL`, store.Now(), next.refreshHash, hash); err != nil {
					return err
				}
				return w.server.insertGeneration(ctx, next)
			})
			if err != nil {
				b.Fatal(err)
			}
			hash = next.refreshHash
		}
	})
	b.Run("full", func(b *testing.B) {
		w := newWorld(b)
		token := w.tokens("contacts:read contacts:write").Refresh
		for b.Loop() {
			a := w.refresh(token)
			if a.Status != http.StatusOK {
				b.Fatalf("%+v", a)
			}
			token = a.Refresh
		}
	})
}
