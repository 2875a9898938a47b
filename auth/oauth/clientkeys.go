package oauth

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/ory/fosite"

	"switchboard/internal/store"
)

// Which keys of a client are good enough, and how soon the same client's may be fetched again.
const (
	maxKeysAge   = time.Hour   // then they are fetched again, so that one that was withdrawn ends
	minKeysAge   = time.Minute // the least time between two fetches, whatever assertions arrive
	keysTooStale = 7 * 24 * time.Hour
)

// keysOf is the keys that a client signs with. With again the caller has tried those that we have: they are fetched
// anew if that was not just done. Keys that cannot be fetched stay good for a week.
func (s *Server) keysOf(ctx context.Context, c *client, again bool) ([]jose.JSONWebKey, error) {
	age := time.Since(c.row.JWKSAt.Time)
	known, err := parseKeys([]byte(c.row.JWKS))
	published := c.row.JWKSURI != "" || c.row.Kind == kindDocument
	due := err != nil || c.row.JWKSURI != "" && age > maxKeysAge || again && age > minKeysAge
	if !published || !due {
		return known, keysMissing(err)
	}
	fetched, errFetch := s.fetchKeys(ctx, c)
	if errFetch != nil {
		s.Log.InfoContext(ctx, "a client's keys were not fetched", "client", c.row.ID, "err", errFetch)
		if err == nil && age < keysTooStale {
			return known, nil
		}
		return nil, keysMissing(errFetch)
	}
	return fetched, nil
}

func keysMissing(err error) error {
	if err == nil {
		return nil
	}
	return fosite.ErrInvalidClient.WithHint("The client's keys could not be read from where it publishes them.").WithWrap(err)
}

// fetchKeys fetches the keys that a client publishes, at an address of their own or in its document.
func (s *Server) fetchKeys(ctx context.Context, c *client) ([]jose.JSONWebKey, error) {
	if c.row.JWKSURI == "" {
		if err := s.fetchDocument(ctx, c.row.ID); err != nil {
			return nil, err
		}
		fresh, err := s.find(ctx, c.row.ID)
		if err != nil {
			return nil, err
		}
		return parseKeys([]byte(fresh.row.JWKS))
	}
	keys, err, _ := s.fetches.Do("keys "+c.row.ID, func() (any, error) {
		ctx := context.WithoutCancel(ctx)
		resp, err := s.fetch(ctx, c.row.JWKSURI)
		if err != nil {
			return nil, err
		}
		if resp.Status != http.StatusOK {
			return nil, errors.New("the address of the keys answers " + http.StatusText(resp.Status))
		}
		keys, err := parseKeys(resp.Body)
		if err != nil {
			return nil, err
		}
		_, err = s.Store.Exec(ctx, `UPDATE clients SET jwks = ?, jwks_at = ? WHERE id = ? AND jwks_uri = ?`, string(resp.Body), store.Now(), c.row.ID, c.row.JWKSURI)
		if err != nil {
			return nil, &trouble{fmt.Errorf("keeping a client's keys: %w", err)}
		}
		return keys, nil
	})
	if err != nil {
		return nil, err
	}
	return keys.([]jose.JSONWebKey), nil
}
