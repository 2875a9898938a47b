// Package seal keeps the server's secret keys and everything that is done with them: the keyed hashes under which
// tokens, codes, keys and links are stored, and the derivation of refresh successors. Each use has its own HKDF
// label, so that a value made for one can never stand in for another.
package seal

import (
	"bufio"
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Label names what a key is used for.
type Label string

const (
	TokenHash Label = "token hash"         // how tokens, codes, API keys and links are stored
	Successor Label = "refresh successor"  // the tokens that follow a refresh token
	Code      Label = "authorization code" // the code of an answered consent request
	Form      Label = "form token"         // what shows that a form came from the browser it was shown in
	KeyProof  Label = "key proof"          // shows that a key file belongs to a database
	Asked     Label = "question asked"     // what a client brings back with the answer to a question of a tool
)

// Keyring holds the server keys. The first is the one that new values are made with; the others still verify. A
// key is replaced in two steps on all replicas: add the new one below, then move it to the top.
type Keyring struct{ keys []serverKey }

type serverKey struct {
	id     string
	secret []byte
	used   map[Label][]byte // HKDF output per label, made once
}

const keyBytes = 32

// Load reads a key file: a line per key, "<id> <base64 of 32 bytes>", the current key first. A file that does not
// exist is made with one new key, readable by its owner alone.
func Load(path string) (*Keyring, error) {
	content, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		if content, err = create(path); err != nil {
			return nil, fmt.Errorf("making the key file: %w", err)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("reading the key file: %w", err)
	}
	if info, err := os.Stat(path); err == nil && info.Mode().Perm()&0o077 != 0 {
		return nil, fmt.Errorf("the key file %s can be read by others: run chmod 600 on it", path)
	}
	ring, err := parse(string(content))
	if err != nil {
		return nil, fmt.Errorf("reading the key file %s: %w", path, err)
	}
	return ring, nil
}

// create writes a new key file. Another process may do the same at this moment: the file that is in place first
// wins and both read it.
func create(path string) ([]byte, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, err
	}
	draft, err := os.CreateTemp(filepath.Dir(path), ".key-*") // 0600
	if err != nil {
		return nil, err
	}
	defer os.Remove(draft.Name())
	id := make([]byte, 4)
	secret := make([]byte, keyBytes)
	_, _ = rand.Read(id)
	_, _ = rand.Read(secret)
	_, err = fmt.Fprintf(draft, "# Switchboard's keys. Whoever has this file and the database can forge sign-ins: back it up apart from the database.\n%s %s\n",
		hex.EncodeToString(id), base64.StdEncoding.EncodeToString(secret))
	if err := errors.Join(err, draft.Sync(), draft.Close()); err != nil {
		return nil, err
	}
	if err := os.Link(draft.Name(), path); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	return os.ReadFile(path)
}

func parse(content string) (*Keyring, error) {
	ring := &Keyring{}
	lines := bufio.NewScanner(strings.NewReader(content))
	for n := 1; lines.Scan(); n++ {
		line := strings.TrimSpace(lines.Text())
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		id, encoded, _ := strings.Cut(line, " ")
		secret, err := base64.StdEncoding.DecodeString(strings.TrimSpace(encoded))
		if err != nil || len(secret) != keyBytes || strings.Contains(id, ":") {
			return nil, fmt.Errorf("line %d is not \"<id> <base64 of %d bytes>\"", n, keyBytes)
		}
		if err := ring.add(id, secret); err != nil {
			return nil, err
		}
	}
	if len(ring.keys) == 0 {
		return nil, errors.New("it holds no key")
	}
	return ring, nil
}

func (k *Keyring) add(id string, secret []byte) error {
	key := serverKey{id: id, secret: secret, used: map[Label][]byte{}}
	for _, label := range []Label{TokenHash, Successor, Code, Form, KeyProof, Asked} {
		derived, err := hkdf.Key(sha256.New, secret, nil, "switchboard "+string(label), keyBytes)
		if err != nil {
			return err
		}
		key.used[label] = derived
	}
	k.keys = append(k.keys, key)
	return nil
}

// Current is the id of the key that new values are made with.
func (k *Keyring) Current() string { return k.keys[0].id }

// IDs lists the ids of all keys, the current one first.
func (k *Keyring) IDs() []string {
	ids := make([]string, len(k.keys))
	for i, key := range k.keys {
		ids[i] = key.id
	}
	return ids
}

// Hash is the form in which a token is stored: "<key id>:<keyed hash>" under the current key.
func (k *Keyring) Hash(token string) string { return k.keys[0].hash(token) }

// Hashes are the forms under which a token may be stored, one for each key, the current one first.
func (k *Keyring) Hashes(token string) []string {
	out := make([]string, len(k.keys))
	for i, key := range k.keys {
		out[i] = key.hash(token)
	}
	return out
}

// Matches reports, in constant time for each key, whether a hash is that of a token.
func (k *Keyring) Matches(token, hash string) bool {
	found := 0
	for _, h := range k.Hashes(token) {
		found |= subtle.ConstantTimeCompare([]byte(h), []byte(hash))
	}
	return found == 1
}

func (s serverKey) hash(token string) string {
	return s.id + ":" + base64.RawURLEncoding.EncodeToString(s.mac(TokenHash, token))
}

// Derive makes 32 bytes from the parts under one key. ok is false when the key is gone.
func (k *Keyring) Derive(id string, label Label, parts ...string) (derived []byte, ok bool) {
	for _, key := range k.keys {
		if key.id == id {
			return key.mac(label, parts...), true
		}
	}
	return nil, false
}

// mac authenticates the parts; each is preceded by its length, so no two lists of parts look alike.
func (s serverKey) mac(label Label, parts ...string) []byte {
	m := hmac.New(sha256.New, s.used[label])
	for _, p := range parts {
		m.Write(binary.BigEndian.AppendUint64(nil, uint64(len(p))))
		m.Write([]byte(p))
	}
	return m.Sum(nil)
}

// NewToken makes a secret of 256 random bits behind a prefix that tells people and scanners what it is.
func NewToken(prefix string) string {
	secret := make([]byte, keyBytes)
	_, _ = rand.Read(secret)
	return Token(prefix, secret)
}

// Token writes secret bytes as a token.
func Token(prefix string, secret []byte) string {
	return prefix + base64.RawURLEncoding.EncodeToString(secret)
}
