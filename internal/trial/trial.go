// Package trial has what the tests of several packages share.
package trial

import (
	"bytes"
	"sync"

	"golang.org/x/net/html"
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
