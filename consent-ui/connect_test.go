package consentui

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/BurntSushi/toml"
	"github.com/google/go-cmp/cmp"
	"golang.org/x/net/html"

	"switchboard/auth/accounts"
	"switchboard/consent-ui/text"
	"switchboard/internal/golden"
	"switchboard/internal/scope"
	"switchboard/internal/trial"
)

const exampleAddress = "https://switchboard.example.com/mcp"

// at signs Amira in at a server whose public origin is issuer, and returns a way to look at its pages.
func at(t *testing.T, issuer, locale string) func(path string) *page {
	t.Helper()
	w := newWorld()
	here := clinic
	here.Locale = locale
	w.members[amira.ID] = []accounts.Membership{{Organization: here, Role: scope.Owner}}
	ui, mux := newUI(t, w, issuer), http.NewServeMux()
	ui.Routes(mux)
	signedIn := signInCookies(t, ui, ui.cookies.name(browserCookie))
	return func(path string) *page {
		req := httptest.NewRequest(http.MethodGet, path, nil)
		for _, c := range signedIn {
			req.AddCookie(c)
		}
		answer := httptest.NewRecorder()
		mux.ServeHTTP(answer, req)
		return readPage(t, answer.Result())
	}
}

// blocks are what a page has to paste.
func blocks(p *page) []string {
	list := []string{}
	for _, pre := range p.all("pre", nil) {
		var b strings.Builder
		for n := range pre.Descendants() {
			if n.Type == html.TextNode {
				b.WriteString(n.Data)
			}
		}
		list = append(list, b.String())
	}
	return list
}

func TestEveryAppHasItsStepsInBothLanguages(t *testing.T) {
	words, err := text.Load()
	if err != nil {
		t.Fatal(err)
	}
	for _, lang := range text.Languages() {
		look, p := at(t, "https://switchboard.example.com", lang), words.In(lang, nil)
		for _, a := range apps {
			got := look("/connect?app=" + a.ID)
			if got.status != http.StatusOK || textOf(got.all("h2", func(n *html.Node) bool { return trial.Attr(n, "id") == "h-app" })[0]) != a.Name {
				t.Fatalf("%s: %s has status %d", lang, a.ID, got.status)
			}
			if current := got.all("a", func(n *html.Node) bool { return trial.Attr(n, "aria-current") == "true" }); len(current) != 1 || textOf(current[0]) != a.Name {
				t.Errorf("%s: %s is not marked as the app that is shown", lang, a.ID)
			}
			want, steps := []string{}, got.all("li", func(n *html.Node) bool { return n.Parent.Data == "ol" })
			for _, w := range a.Ways {
				for _, s := range w.Steps {
					if s.Paste != "" {
						want = append(want, s.code(exampleAddress))
					}
					said := strings.NewReplacer("`", "", "**", "").Replace(p.T(s.Say, "Keys", p.T("nav.keys")))
					if len(steps) == 0 || !strings.HasPrefix(textOf(steps[0]), strings.Join(strings.Fields(said), " ")) {
						t.Fatalf("%s: %s misses the step %q", lang, a.ID, said)
					}
					steps = steps[1:]
				}
			}
			if diff := cmp.Diff(append(want, exampleAddress), blocks(got)); diff != "" {
				t.Errorf("%s: what %s has to paste (-want +got):\n%s", lang, a.ID, diff)
			}
			if len(got.all("pre", func(n *html.Node) bool { return trial.Attr(n, "dir") != "ltr" })) > 0 {
				t.Errorf("%s: %s has code that follows the language", lang, a.ID)
			}
		}
	}
}

func TestAnUnknownAppIsTheFirst(t *testing.T) {
	got := at(t, "https://switchboard.example.com", "en")("/connect?app=%3Cscript%3E")
	if got.status != http.StatusOK || !strings.Contains(got.body, `href="/connect?app=claude#app" aria-current="true"`) || strings.Contains(got.body, "<script>") {
		t.Errorf("status %d", got.status)
	}
}

// Addresses that break what quotes them badly: a pattern of the shell, and whatever net/url lets through in a host.
var oddAddresses = []string{exampleAddress, "http://[::1]:8080/mcp", `http://a'$(b)&c"d;e!.example/mcp`}

func TestTheAddressIsQuotedAsTheFormatDemands(t *testing.T) {
	for _, address := range oddAddresses {
		for _, a := range apps {
			for _, w := range a.Ways {
				for _, s := range w.Steps {
					if s.Paste == "" {
						continue
					}
					if read := understood(t, s.Lang.Name, s.code(address)); strings.Contains(s.Paste, "ADDRESS") && !strings.Contains(read, address) {
						t.Errorf("%s: the program that reads\n%s\nunderstands %s", a.ID, s.code(address), read)
					}
				}
			}
		}
	}
}

// understood is what a program makes of code that was pasted for it.
func understood(t *testing.T, lang, code string) string {
	t.Helper()
	var decoded any
	var err error
	switch lang {
	case "text":
		return code
	case "json":
		err = json.Unmarshal([]byte(code), &decoded)
	case "toml":
		table := map[string]any{}
		err = toml.Unmarshal([]byte(code), &table)
		decoded = table
	case "ts":
		_, after, _ := strings.Cut(code, "new URL(")
		err = json.NewDecoder(strings.NewReader(after)).Decode(&decoded)
	case "sh":
		program, _, _ := strings.Cut(code, " ")
		var out []byte
		out, err = exec.Command("sh", "-c", program+`() { printf '%s\n' "$@"; }`+"\n"+code).Output()
		list := []any{}
		for _, word := range strings.Split(string(out), "\n") {
			var inner any
			if strings.HasPrefix(word, "{") && json.Unmarshal([]byte(word), &inner) == nil {
				list = append(list, inner)
			}
			list = append(list, word)
		}
		decoded = list
	default:
		t.Errorf("nothing checks %s", lang)
	}
	if err != nil {
		t.Errorf("%v in\n%s", err, code)
	}
	return fmt.Sprint(decoded)
}

func TestAnAppThatCallsFromAwayIsSaidToBeCutOff(t *testing.T) {
	for issuer, cut := range map[string]bool{
		"http://localhost:8080": true, "http://[::1]:8080": true, "http://switchboard.lan": true, "https://localhost:8443": true,
		"https://switchboard.example.com": false,
	} {
		for _, lang := range text.Languages() {
			look := at(t, issuer, lang)
			for _, a := range apps {
				notes := look("/connect?app="+a.ID).all("div", func(n *html.Node) bool { return trial.Attr(n, "role") == "note" })
				if got := len(notes) > 0; got != (cut && a.Away) {
					t.Errorf("%s in %s: %s is said to be cut off: %t", issuer, lang, a.ID, got)
				}
			}
		}
	}
}

// A page that people copy from shows where a key goes and never one.
func TestThePlaceOfAKeyIsAVariable(t *testing.T) {
	for _, a := range apps {
		for _, w := range a.Ways {
			for _, s := range w.Steps {
				if _, after, found := strings.Cut(s.Paste, "Bearer "); found && (w.Kind != withKey || !strings.HasPrefix(after, "$")) {
					t.Errorf("%s: %s", a.ID, s.Paste)
				}
			}
		}
	}
}

func TestTheWayToThePageOfAppsIsOnThePageOfConnections(t *testing.T) {
	w := newWorld()
	b := newBrowser(t, serveWorld(t, w).URL)
	b.signIn(amira)
	for range 2 {
		links := b.get("/connections").all("a", func(n *html.Node) bool { return trial.Attr(n, "href") == "/connect" })
		if len(links) != 2 { // the rail and the panel
			t.Errorf("%d links", len(links))
		}
		w.connections = append(w.connections, connected("con_1", "Claude", amira, "contacts:read"))
	}
}

func TestDocsOfAppsAreUpToDate(t *testing.T) {
	p := english(t)
	var b strings.Builder
	fmt.Fprintf(&b, "# Connect an app\n\nThe page *%s* of your own server has these lines with its address in them. Here it is `%s`.\n", p.T("connect.title"), exampleAddress)
	for _, kind := range appKinds {
		fmt.Fprintf(&b, "\n%s: ", p.T("connect.kind."+kind))
		for i, a := range appsOf(kind) {
			fmt.Fprintf(&b, "%s[%s](#%s)", map[bool]string{true: ", "}[i > 0], a.Name, anchor(a))
		}
		b.WriteString("\n")
	}
	for _, a := range apps {
		fmt.Fprintf(&b, "\n## %s\n", a.Name)
		if a.Away {
			b.WriteString("\nIt calls from the internet, so the server needs a public https address: see [deploy.md](deploy.md).\n")
		}
		for _, w := range a.Ways {
			fmt.Fprintf(&b, "\n### %s\n\n", p.T("connect.way."+w.Kind))
			for i, s := range w.Steps {
				fmt.Fprintf(&b, "%d. %s\n", i+1, p.T(s.Say, "Keys", "**"+p.T("nav.keys")+"**"))
				if s.Paste != "" {
					fmt.Fprintf(&b, "\n   ```%s\n   %s\n   ```\n\n", s.Lang.Name, strings.ReplaceAll(s.code(exampleAddress), "\n", "\n   "))
				}
			}
		}
		if a.Only != "" {
			fmt.Fprintf(&b, "\n%s\n", p.T(a.Only, "App", a.Name))
		}
	}
	fmt.Fprintf(&b, "\n## %s\n\n%s\n\n%s\n", p.T("connect.other"), p.T("connect.other.more", "Keys", "**"+p.T("nav.keys")+"**"), p.T("connect.try"))
	golden.Check(t, "../docs/connect.md", regexp.MustCompile(`\n\s*\n+( *)`).ReplaceAllString(b.String(), "\n\n$1"))
}

// The README has the apps in short, and the line for CI as it is in the table.
func TestTheReadmeHasTheSameApps(t *testing.T) {
	var b strings.Builder
	b.WriteString("| app | to sign in | API key | where the server can be |\n|---|---|---|---|\n")
	for _, a := range apps {
		key := slices.ContainsFunc(a.Ways, func(w way) bool { return w.Kind == withKey })
		fmt.Fprintf(&b, "| [%s](docs/connect.md#%s) | %s | %s | %s |\n", a.Name, anchor(a), inShort(t, a), map[bool]string{true: "yes"}[key], map[bool]string{true: "a public https address", false: "anywhere, also your own machine"}[a.Away])
	}
	golden.Section(t, "../README.md", "apps", b.String())
	file, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	curl := apps[len(apps)-1]
	if line := curl.Ways[0].Steps[1].code(exampleAddress); curl.ID != "curl" || !strings.Contains(string(file), line) {
		t.Errorf("README.md does not have the line for CI:\n%s", line)
	}
}

func english(t *testing.T) *text.Printer {
	t.Helper()
	catalogue, err := text.Load()
	if err != nil {
		t.Fatal(err)
	}
	return catalogue.In("en", nil)
}

// inShort is what to paste to sign in, on one line, "" for an app that does not.
func inShort(t *testing.T, a app) string {
	t.Helper()
	for _, w := range a.Ways {
		i := slices.IndexFunc(w.Steps, func(s step) bool { return s.Paste != "" })
		if w.Kind != signIn || i < 0 {
			continue
		}
		s := w.Steps[i]
		line := strings.ReplaceAll(s.code(exampleAddress), "\\\n  ", "")
		switch {
		case a.Wide:
			return "a few lines of code"
		case s.Lang.Name == "json":
			var compact bytes.Buffer
			if err := json.Compact(&compact, []byte(line)); err != nil {
				t.Fatal(err)
			}
			file := slices.DeleteFunc(marks(english(t).T(s.Say)), func(s stretch) bool { return s.kind != "code" })[0]
			return "in `" + file.text + "`: `" + compact.String() + "`"
		case s.Lang.Name == "text":
			return "the URL, in its settings"
		}
		return "`" + line + "`"
	}
	return ""
}

// anchor is how GitHub and its like name a heading in an address.
func anchor(a app) string { return strings.ToLower(strings.ReplaceAll(a.Name, " ", "-")) }
