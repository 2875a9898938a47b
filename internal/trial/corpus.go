package trial

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"text/template"
)

// Request is one request of the corpus of bad input, internal/e2e/testdata/badinput, and the answer that it must get.
// A file there is one endpoint; the README beside them says how they are written.
type Request struct {
	Name string   // a sentence
	As   []string // who sends it, and what goes with every request of a kind
	Text string   // request line, headers, an empty line and the body, each line as it stands; a template
	Want string   // a template
}

const (
	nameMark   = "== "
	actorsMark = "as "
	whyMark    = "; "
	wantMark   = "-> "
)

// Corpus reads one file of the corpus, wherever the test runs.
func Corpus(t testing.TB, endpoint string) []Request {
	t.Helper()
	b, err := os.ReadFile(CorpusFile(t, endpoint))
	if err != nil {
		t.Fatal(err)
	}
	list, err := parseCorpus(string(b))
	if err != nil {
		t.Fatalf("%s.txt: %v", endpoint, err)
	}
	return list
}

// Endpoints are the names of the files of the corpus.
func Endpoints(t testing.TB) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(corpusFolder(t), "*.txt"))
	if err != nil || len(files) == 0 {
		t.Fatalf("there is no corpus: %v", err)
	}
	names := []string{}
	for _, f := range files {
		names = append(names, strings.TrimSuffix(filepath.Base(f), ".txt"))
	}
	slices.Sort(names)
	return names
}

// CorpusFile is where a file of the corpus lies.
func CorpusFile(t testing.TB, endpoint string) string {
	t.Helper()
	return filepath.Join(corpusFolder(t), endpoint+".txt")
}

// Root is the root of the project.
func Root(t testing.TB) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
		if filepath.Dir(dir) == dir {
			t.Fatal("the test does not run inside the project")
		}
		dir = filepath.Dir(dir)
	}
}

func corpusFolder(t testing.TB) string {
	return filepath.Join(Root(t), "internal", "e2e", "testdata", "badinput")
}

func parseCorpus(text string) ([]Request, error) {
	list := []Request{}
	names := map[string]bool{}
	for i, block := range strings.Split("\n"+text, "\n"+nameMark) {
		if i == 0 {
			continue // what a file says about itself
		}
		r, err := parseRequest(block)
		if err != nil {
			return nil, fmt.Errorf("%q: %w", r.Name, err)
		}
		if names[r.Name] {
			return nil, fmt.Errorf("%q is there twice", r.Name)
		}
		names[r.Name] = true
		list = append(list, r)
	}
	return list, nil
}

func parseRequest(block string) (r Request, err error) {
	lines := strings.Split(block, "\n")
	r.Name, lines = lines[0], lines[1:]
	sent := []string{}
	for _, line := range lines {
		switch {
		case r.Want != "" && line != "" && !strings.HasPrefix(line, whyMark):
			return r, fmt.Errorf("after the answer comes %q", line)
		case strings.HasPrefix(line, wantMark):
			r.Want = strings.TrimPrefix(line, wantMark)
		case r.Want != "" || len(sent) == 0 && strings.HasPrefix(line, whyMark):
		case len(sent) == 0 && strings.HasPrefix(line, actorsMark):
			r.As = strings.Split(strings.TrimPrefix(line, actorsMark), ", ")
		default:
			sent = append(sent, line)
		}
	}
	if r.Text = strings.Join(sent, "\n"); r.Text == "" || r.Want == "" {
		return r, fmt.Errorf("it needs a request and an answer")
	}
	return r, nil
}

// Is reports whether a word stands behind "as".
func (r Request) Is(word string) bool { return slices.Contains(r.As, word) }

// Head and Body are the parts of a request that has been filled in.
func (r Request) Head() string {
	head, _, _ := strings.Cut(r.Text, "\n\n")
	return head
}

// Body is what follows the first empty line.
func (r Request) Body() string {
	_, body, _ := strings.Cut(r.Text, "\n\n")
	return body
}

// Fill replaces the directives of a request: {{repeat "a" 2000}}, {{bytes "00ff"}}, and {{the "token"}}, which asks
// the world that the request goes to.
func (r Request) Fill(the func(string) (string, error)) (Request, error) {
	for _, part := range []*string{&r.Text, &r.Want} {
		tmpl, err := template.New(r.Name).Funcs(template.FuncMap{"repeat": strings.Repeat, "bytes": fromHex, "the": the}).Parse(*part)
		if err != nil {
			return r, err
		}
		var b bytes.Buffer
		if err := tmpl.Execute(&b, nil); err != nil {
			return r, err
		}
		*part = b.String()
	}
	return r, nil
}

func fromHex(digits string) (string, error) {
	b, err := hex.DecodeString(digits)
	return string(b), err
}

// Seeds are the bodies and, where there is one, the queries of requests to endpoints, for the fuzz targets of what reads
// them. What only a running server knows is asked of known, and stands there by its name where that answers "". Seeds
// are short: what is long is long in the corpus.
func Seeds(t testing.TB, known func(string) string, endpoints ...string) []string {
	t.Helper()
	list := []string{}
	for _, endpoint := range endpoints {
		for _, r := range Corpus(t, endpoint) {
			filled, err := r.Fill(func(name string) (string, error) {
				if known != nil {
					if v := known(name); v != "" {
						return v, nil
					}
				}
				return strings.ReplaceAll(name, " ", "-") + strings.Repeat("-", 210), nil // long enough to be cut
			})
			if err != nil {
				t.Fatalf("%s: %v", r.Name, err)
			}
			line, _, _ := strings.Cut(filled.Head(), "\n")
			_, target, _ := strings.Cut(line, " ")
			target, _, _ = strings.Cut(target, " HTTP/")
			_, query, _ := strings.Cut(target, "?")
			for _, seed := range []string{filled.Body(), query} {
				if seed != "" && len(seed) < maxSeed {
					list = append(list, seed)
				}
			}
		}
	}
	if len(list) == 0 {
		t.Fatalf("there are no seeds in %v", endpoints)
	}
	return list
}

const maxSeed = 4 << 10
