// Package trial has what the tests of several packages share.
package trial

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"golang.org/x/net/html"

	"switchboard/internal/seal"
)

// Journal is a log that a test can read while others still write.
type Journal struct {
	mu sync.Mutex
	b  bytes.Buffer
}

// Write implements io.Writer.
func (j *Journal) Write(p []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.b.Write(p)
}

// String is what was written so far.
func (j *Journal) String() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.b.String()
}

// Parallel runs f n times at once and collects what it returns.
func Parallel[T any](n int, f func(i int) T) []T {
	out := make([]T, n)
	start := make(chan struct{})
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			<-start
			out[i] = f(i)
		})
	}
	close(start)
	wg.Wait()
	return out
}

// Ring is a keyring of these keys, the current one first.
func Ring(t testing.TB, ids ...string) *seal.Keyring {
	t.Helper()
	path, content := filepath.Join(t.TempDir(), "keys"), ""
	for _, id := range ids {
		secret := sha256.Sum256([]byte(id))
		content += id[:2] + " " + base64.StdEncoding.EncodeToString(secret[:]) + "\n"
	}
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	ring, err := seal.Load(path)
	if err != nil {
		t.Fatal(err)
	}
	return ring
}

// Attr is an attribute of an element, "" when it has none of that name.
func Attr(n *html.Node, name string) string {
	value, _ := attribute(n, name)
	return value
}

// HasAttr reports whether an element has an attribute.
func HasAttr(n *html.Node, name string) bool {
	_, ok := attribute(n, name)
	return ok
}

func attribute(n *html.Node, name string) (string, bool) {
	for _, a := range n.Attr {
		if a.Key == name {
			return a.Val, true
		}
	}
	return "", false
}
