package mcp

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"switchboard/internal/golden"

	"golang.org/x/tools/txtar"
)

// TestTranscripts plays the requests in testdata/*.txtar, in order, and compares the answers. In an archive every
// section "answer" belongs to the request above it. UPDATE=1 rewrites the answers.
func TestTranscripts(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no transcripts: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			t.Parallel()
			archive, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			w := newWorld(t)
			played := &txtar.Archive{Comment: archive.Comment}
			for _, section := range archive.Files {
				if section.Name == "answer" {
					continue
				}
				answer := render(w.play(t, section.Data))
				played.Files = append(played.Files, section, txtar.File{Name: "answer", Data: answer})
			}
			golden.Check(t, file, string(txtar.Format(played)))
		})
	}
}

// play sends a request that is written as on the wire, without Host and Content-Length. The last line break is the
// file's, not the body's.
func (w *world) play(t *testing.T, text []byte) reply {
	t.Helper()
	head, body, _ := bytes.Cut(text, []byte("\n\n"))
	raw := strings.ReplaceAll(strings.TrimRight(string(head), "\n"), "\n", "\r\n")
	first, rest, _ := strings.Cut(raw, "\r\n")
	parsed, err := http.ReadRequest(bufio.NewReader(strings.NewReader(first + " HTTP/1.1\r\nHost: test\r\n" + rest + "\r\n\r\n")))
	if err != nil {
		t.Fatalf("%s: %v", first, err)
	}
	body = expand(bytes.TrimSuffix(body, []byte("\n")))
	req, err := http.NewRequestWithContext(t.Context(), parsed.Method, w.url+parsed.URL.RequestURI(), bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header = parsed.Header
	if host := parsed.Header.Get("Test-Host"); host != "" {
		req.Host = host
		req.Header.Del("Test-Host")
	}
	return send(t, req)
}

var repetition = regexp.MustCompile(`\{\{(\d+) x (.)\}\}`)

// expand writes out {{1000000 x a}}.
func expand(body []byte) []byte {
	return repetition.ReplaceAllFunc(body, func(m []byte) []byte {
		var n int
		var what string
		if _, err := fmt.Sscanf(string(m), "{{%d x %1s", &n, &what); err != nil {
			return m
		}
		return bytes.Repeat([]byte(what), n)
	})
}

var requestID = regexp.MustCompile(`req_[0-9a-z]{26}`)

// render writes an answer with its headers sorted and its JSON indented, and without what differs every time.
func render(r reply) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "%d %s\n", r.status, http.StatusText(r.status))
	boring := []string{"Date", "Content-Length", "X-Content-Type-Options", "Referrer-Policy", "Strict-Transport-Security"}
	var names []string
	for name := range r.header {
		if !slices.Contains(boring, name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	for _, name := range names {
		for _, v := range r.header[name] {
			fmt.Fprintf(&b, "%s: %s\n", name, requestID.ReplaceAllString(v, "req_…"))
		}
	}
	if r.body != "" {
		b.WriteByte('\n')
		var indented bytes.Buffer
		if json.Indent(&indented, []byte(strings.TrimSpace(r.body)), "", "  ") == nil {
			r.body = indented.String()
		}
		b.WriteString(requestID.ReplaceAllString(strings.TrimSpace(r.body), "req_…") + "\n")
	}
	return b.Bytes()
}
