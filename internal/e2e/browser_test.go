//go:build e2e

package e2e

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/audits"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"
)

// browser is a Chromium with a profile of its own.
type browser struct {
	t   *testing.T
	ctx context.Context

	mu      sync.Mutex
	issues  []string // what the page broke: content security policy and the like
	visited []string // where it was sent, addresses of apps included
}

func newBrowser(t *testing.T) *browser {
	t.Helper()
	path := os.Getenv("CHROMIUM")
	if path == "" {
		t.Fatal("CHROMIUM is not set: run `make e2e`")
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path), chromedp.NoSandbox,
		chromedp.Flag("disable-component-update", true), chromedp.Flag("disable-quic", true), chromedp.Flag("disable-gpu", true),
		chromedp.Flag("lang", "en-US"), chromedp.Flag("allow-pre-commit-input", true)) // else a click before the first paint is lost
	allocated, stop := chromedp.NewExecAllocator(context.Background(), options...)
	ctx, cancel := chromedp.NewContext(allocated)
	t.Cleanup(func() { cancel(); stop() })
	b := &browser{t: t, ctx: ctx}
	b.do("starting Chromium", chromedp.Navigate("about:blank"))
	if err := chromedp.Listen(ctx, b.listen); err != nil {
		t.Fatal(err)
	}
	b.do("listening", chromedp.EmulateViewport(1280, 900), command(audits.Enable, cdp.Empty{}), command(network.Enable, network.EnableParams{}))
	return b
}

// command is a protocol command whose answer does not matter.
func command[P, R any](c cdp.Command[P, R], params P) chromedp.Action[chromedp.Void] {
	return chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
		_, err := cdp.Call(ctx, target, c, params)
		return err
	})
}

func (b *browser) listen(event any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch e := event.(type) {
	case *audits.EventIssueAdded:
		if csp := e.Issue.Details.ContentSecurityPolicyIssueDetails; csp != nil {
			b.issues = append(b.issues, string(csp.ViolatedDirective)+" "+csp.BlockedURL)
		}
	case *network.EventRequestWillBeSent:
		b.visited = append(b.visited, e.DocumentURL)
	}
}

// broken lists what pages broke so far.
func (b *browser) broken() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return append([]string(nil), b.issues...)
}

func (b *browser) do(what string, steps ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	// The first run starts the browser, which must not get a deadline.
	for _, step := range steps {
		done := make(chan error, 1)
		go func() { done <- chromedp.Do(b.ctx, step) }()
		select {
		case err := <-done:
			if err != nil {
				b.t.Fatalf("%s: %v", what, err)
			}
		case <-time.After(20 * time.Second):
			b.t.Fatalf("%s takes too long at %s: %.1500s", what, b.eval("location.href"), b.eval("document.body ? document.body.innerText : ''"))
		}
	}
}

func (b *browser) eval(expression string) string {
	out := make(chan string, 1)
	go func() {
		v, err := chromedp.Run(b.ctx, chromedp.Evaluate[string]("String("+expression+")"))
		if err != nil {
			v = err.Error()
		}
		out <- v
	}()
	select {
	case v := <-out:
		return v
	case <-time.After(5 * time.Second):
		return "(no answer)"
	}
}

func (b *browser) open(url string) { b.t.Helper(); b.do("opening "+url, chromedp.Navigate(url)) }

// fill types into a field, as a person does.
func (b *browser) fill(name, value string) {
	b.t.Helper()
	css := `[name="` + name + `"]`
	b.do("filling "+name, chromedp.WaitVisible(chromedp.CSS(css)), evaluate("document.querySelector('"+css+"').value = ''"), chromedp.SendKeys(chromedp.CSS(css), value))
}

func (b *browser) choose(name, value string) {
	b.t.Helper()
	css := `[name="` + name + `"]`
	b.do("choosing "+name, chromedp.WaitVisible(chromedp.CSS(css)), evaluate("document.querySelector('"+css+"').value = '"+value+"'"))
}

func (b *browser) click(css string) {
	b.t.Helper()
	b.do("clicking "+css, chromedp.WaitVisible(chromedp.CSS(css)), chromedp.Click(chromedp.CSS(css)))
}

func (b *browser) wait(css string) {
	b.t.Helper()
	b.do("waiting for "+css, chromedp.WaitVisible(chromedp.CSS(css)))
}

func (b *browser) text() string { return b.eval("document.body.innerText") }

func (b *browser) signIn(email string) {
	b.t.Helper()
	b.fill("email", email)
	b.fill("password", password)
	b.click(`form button:not([name])`)
}

// settled waits until the page was laid out and painted anew.
func settled(ctx context.Context, target *chromedp.Target) (chromedp.Void, error) {
	frames := chromedp.Evaluate[any](`new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(() => done(0), 50))))`, chromedp.EvalAwaitPromise)
	_, err := frames(ctx, target)
	return chromedp.Void{}, err
}

// look is how a page is looked at.
type look struct {
	name  string
	width int64
	dark  bool
}

var looks = []look{{"desktop-light", 1280, false}, {"desktop-dark", 1280, true}, {"phone-light", 390, false}, {"phone-dark", 390, true}}

// shoot takes a picture of the page in every look, and fails when it scrolls sideways.
func (b *browser) shoot(name string) {
	b.t.Helper()
	for _, l := range looks {
		scheme := "light"
		if l.dark {
			scheme = "dark"
		}
		b.do("looking", chromedp.EmulateViewport(l.width, 900), command(emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
			Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}, {Name: "prefers-reduced-motion", Value: "reduce"}},
		}), settled)
		if over := b.eval("document.documentElement.scrollWidth > innerWidth"); over != "false" {
			b.t.Errorf("%s scrolls sideways at %d px (%s)", name, l.width, over)
		}
		// A window as high as the page: a picture from beyond the window comes out shifted where pages read right to left.
		height, _ := strconv.Atoi(b.eval("document.documentElement.scrollHeight"))
		b.do("looking", chromedp.EmulateViewport(l.width, int64(max(900, height))), settled)
		picture, err := chromedp.Run(b.ctx, chromedp.CaptureScreenshot())
		if err != nil {
			b.t.Fatalf("picture of %s: %v", name, err)
		}
		dialect := b.t.Name()[strings.LastIndex(b.t.Name(), "/")+1:]
		if dialect != "sqlite" {
			continue // the same pages
		}
		if err := os.MkdirAll("screenshots", 0o755); err != nil {
			b.t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join("screenshots", name+"-"+l.name+".png"), picture, 0o644); err != nil {
			b.t.Fatal(err)
		}
	}
	b.do("looking", chromedp.EmulateViewport(1280, 900))
}
