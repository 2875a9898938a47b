package oauth

import (
	"crypto/rand"
	"encoding/base64"

	"switchboard/auth"
	"switchboard/internal/seal"
)

// pair is an access token and the refresh token that came with it.
type pair struct{ access, refresh string }

// freshPair starts a chain: random tokens, handed out for a code.
func freshPair() pair {
	return pair{seal.NewToken(auth.AccessPrefix), seal.NewToken(auth.RefreshPrefix)}
}

// successor derives the pair that follows a refresh token. Whoever presents the same token again gets the same pair,
// though nothing of it is stored: the secret is the presented token itself, which the database does not have, under
// a key that is apart from the one that tokens are looked up with. The salt is wiped when the window has passed, so
// that an old token together with a stolen server key does not lead to the live end of the chain.
func (s *Server) successor(keyID, salt, presented string) (pair, bool) {
	access, ok := s.Secrets.Derive(keyID, seal.Successor, auth.AccessPrefix, presented, salt)
	refresh, _ := s.Secrets.Derive(keyID, seal.Successor, auth.RefreshPrefix, presented, salt)
	return pair{seal.Token(auth.AccessPrefix, access), seal.Token(auth.RefreshPrefix, refresh)}, ok
}

// code derives the authorization code of an answered consent request, so that a form posted twice gets one code: a
// browser that is told twice follows the second answer.
func (s *Server) code(keyID, requestID, grantID string) (string, bool) {
	secret, ok := s.Secrets.Derive(keyID, seal.Code, requestID, grantID)
	return seal.Token(auth.CodePrefix, secret), ok
}

func newSalt() string {
	b := make([]byte, 16)
	_, _ = rand.Read(b)
	return base64.RawURLEncoding.EncodeToString(b)
}
