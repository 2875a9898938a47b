package oauth

import (
	"context"
	"crypto/rsa"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/go-jose/go-jose/v4"
	"github.com/ory/fosite"

	"switchboard/internal/store"
)

// Bounds of the keys of a client.
const (
	maxKeys       = 10        // more are passed over
	maxCandidates = 4         // keys that one signature is tried with
	maxRSABits    = 4096      // checking a signature must not be work
	maxKeysAge    = time.Hour // then a set at an address is fetched again, so that one that was withdrawn ends
	staleKeys     = 24 * time.Hour
)

// parseKeys reads a set of public keys (RFC 7517 §5). Kinds of keys that we do not know are passed over; a private or
// symmetric one is a leak, and refused so that its owner notices.
func parseKeys(raw []byte) ([]jose.JSONWebKey, error) {
	set := map[string]json.RawMessage{} // by exact names, as in parseMembers
	var published []json.RawMessage
	if len(raw) > maxMetadata || !utf8.Valid(raw) || json.Unmarshal(raw, &set) != nil || set["keys"] != nil && json.Unmarshal(set["keys"], &published) != nil {
		return nil, invalidKeys("jwks is not a set of keys (RFC 7517 section 5).")
	}
	keys := []jose.JSONWebKey{}
	for _, one := range published {
		if holdsSecret(one) { // before the library, which computes with what it finds in a private key
			return nil, invalidKeys("jwks holds a private or symmetric key. It is no secret any more: replace it, and publish public keys only.")
		}
		var key jose.JSONWebKey
		if len(keys) < maxKeys && key.UnmarshalJSON(one) == nil && key.Valid() && usable(key) {
			keys = append(keys, jose.JSONWebKey{Key: key.Key, KeyID: key.KeyID, Algorithm: key.Algorithm, Use: key.Use})
		}
	}
	if len(keys) == 0 {
		return nil, invalidKeys("jwks holds no public key that signatures could be checked with (RSA of 2048 to 4096 bits, P-256, P-384, P-521, Ed25519).")
	}
	return keys, nil
}

// keySet writes keys as they are kept: what of a set is of use, and nothing else of what a stranger sent.
func keySet(keys []jose.JSONWebKey) json.RawMessage {
	b, _ := json.Marshal(jose.JSONWebKeySet{Keys: keys}) // they were read, so they can be written
	return b
}

// holdsSecret reports whether a key has a member that only private and symmetric keys have (RFC 7518 §6).
func holdsSecret(key []byte) bool {
	var members map[string]json.RawMessage
	if json.Unmarshal(key, &members) != nil {
		return false
	}
	return slices.ContainsFunc([]string{"d", "p", "q", "dp", "dq", "qi", "oth", "k", "priv"}, func(name string) bool {
		_, ok := members[name]
		return ok
	})
}

// usable reports whether signatures can be checked with a key: it is meant for that, it is long enough to mean
// something, and not so long that checking is work.
func usable(key jose.JSONWebKey) bool {
	if k, ok := key.Key.(*rsa.PublicKey); ok && (k.N.BitLen() < 2048 || k.N.BitLen() > maxRSABits || k.E > 65537) {
		return false
	}
	return key.IsPublic() && (key.Use == "" || key.Use == "sig") && len(key.KeyID) <= 256 && len(key.Algorithm) <= 16
}

// candidates are the keys that a signature may have been made with, by what its header says.
func candidates(keys []jose.JSONWebKey, header jose.Header) []jose.JSONWebKey {
	fitting := slices.DeleteFunc(slices.Clone(keys), func(k jose.JSONWebKey) bool {
		return header.KeyID != "" && k.KeyID != "" && k.KeyID != header.KeyID || k.Algorithm != "" && k.Algorithm != header.Algorithm
	})
	return fitting[:min(len(fitting), maxCandidates)]
}

// keysOf is the keys that a client signs with. With again the caller has tried those that we have: a set at an address is
// fetched anew then, since the one that is missing may be a new one. With reread so is the document, if the client is
// one. The row of c is brought up to date. Keys that could not be
// fetched stay good for a while: they come together with the reason, for when they do not fit.
func (s *Server) keysOf(r *http.Request, c *client, again, reread bool) (keys []jose.JSONWebKey, unsure, err error) {
	lasts := staleKeys
	if reread {
		unsure = s.rereadDocument(r, c)
	}
	known, err := parseKeys([]byte(c.row.JWKS))
	age := time.Since(c.row.JWKSAt.Time)
	switch {
	case c.row.JWKSURI != "" && (err != nil || age >= maxKeysAge || again):
		fetched, errFetch := s.fetchKeys(r, c, err == nil)
		if errFetch == nil {
			return fetched, nil, nil
		}
		s.Log.InfoContext(r.Context(), "a client's keys were not fetched", "client", c.label(), "err", errFetch)
		unsure = errFetch
	case c.row.Kind == kindDocument && c.row.JWKSURI == "":
		lasts += maxDocumentLife // they came with the document, and were good for as long as it was
	}
	var bad *badMetadata
	switch {
	case err != nil && unsure == nil:
		return nil, nil, keysMissing(err)
	case err != nil || unsure != nil && age > lasts || errors.As(unsure, &bad) && bad.keys:
		return nil, nil, keysMissing(unsure)
	}
	return known, unsure, nil
}

// keysMissing tells a client that its keys are not there: a set that is bad is its own affair, one that could not be
// had is for later. invalid_client would make it give its registration up.
func keysMissing(err error) error {
	var bad *badMetadata
	switch {
	case err == nil:
		return nil
	case errors.As(err, &bad) && bad.keys:
		return fosite.ErrInvalidClient.WithHintf("The client's keys are of no use: %s", bad.problem)
	}
	return fosite.ErrTemporarilyUnavailable.WithHint("The client's keys could not be fetched from where it publishes them. Try again in a minute.").WithWrap(err)
}

// fetchKeys fetches the keys that a client publishes at an address of their own.
func (s *Server) fetchKeys(r *http.Request, c *client, known bool) ([]jose.JSONWebKey, error) {
	keys, err, _ := s.fetches.Do("keys "+c.row.ID+" "+c.row.JWKSURI, func() (any, error) {
		resp, err := s.fetch(r, s.keyLane, c.row.ID, c.row.JWKSURI, known)
		if err != nil {
			return nil, err
		}
		if resp.Status != http.StatusOK {
			return nil, fmt.Errorf("the address of the keys answers %d", resp.Status)
		}
		keys, err := parseKeys(resp.Body)
		if err != nil {
			return nil, err
		}
		_, err = s.Store.Exec(context.WithoutCancel(r.Context()), `UPDATE clients SET jwks = ?, jwks_at = ? WHERE id = ? AND jwks_uri = ?`,
			string(keySet(keys)), store.Now(), c.row.ID, c.row.JWKSURI)
		if err != nil {
			return nil, &trouble{fmt.Errorf("keeping a client's keys: %w", err)}
		}
		return keys, nil
	})
	if err != nil {
		return nil, err
	}
	fetched := keys.([]jose.JSONWebKey)
	c.row.JWKS = string(keySet(fetched))
	return fetched, nil
}

// rereadDocument fetches the document of a client that authenticates, because it is due or a key is missing, and brings
// its row up to date.
func (s *Server) rereadDocument(r *http.Request, c *client) error {
	if c.row.Kind != kindDocument {
		return nil
	}
	if err := s.fetchDocument(r, c.row.ID, true); err != nil {
		return err
	}
	fresh, err := s.find(r.Context(), c.row.ID)
	if err != nil {
		return err
	}
	c.row, c.redirects = fresh.row, fresh.redirects
	return nil
}
