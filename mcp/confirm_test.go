package mcp

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"switchboard/internal/audit"
	"switchboard/internal/caller"
	"switchboard/internal/fault"
	"switchboard/internal/trial"
	"switchboard/tools/kit"
)

// question is an answer that asks for input.
type question struct {
	Type     string `json:"resultType"`
	State    string `json:"requestState"`
	Requests map[string]struct {
		Params struct{ Mode, Message string }
	} `json:"inputRequests"`
}

// purchase is a call of buy as a client of 2026-07-28 sends it.
type purchase struct {
	token, tool, arguments string
	state, answer          string // answer is what the person did: accept, decline, cancel, or "" for none
	capabilities           string
}

func (w *world) buy(t testing.TB, p purchase) reply {
	t.Helper()
	params := fmt.Sprintf(`{"name":%q,"arguments":%s,"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":%s}`,
		p.tool, p.arguments, p.capabilities)
	if p.state != "" {
		params += fmt.Sprintf(`,"requestState":%q`, p.state)
	}
	if p.answer != "" {
		params += fmt.Sprintf(`,"inputResponses":{"confirm":{"action":%q,"content":{}}}`, p.answer)
	}
	return w.post(t, p.token, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":`+params+`}}`,
		"MCP-Protocol-Version", modern, "Mcp-Method", "tools/call", "Mcp-Name", p.tool)
}

// buying is a purchase that can be asked about.
func buying() purchase {
	return purchase{token: "both", tool: "buy", arguments: `{"item":"pen"}`, capabilities: `{"elicitation":{}}`}
}

// asks sends a purchase and returns the state of the question that comes back.
func (w *world) asks(t testing.TB, p purchase) string {
	t.Helper()
	r := w.buy(t, p)
	var message struct{ Result question }
	if err := json.Unmarshal([]byte(r.body), &message); err != nil {
		t.Fatal(err)
	}
	q := message.Result
	if asked := q.Requests[confirmation].Params; r.status != http.StatusOK || q.Type != "input_required" || q.State == "" || len(q.Requests) != 1 ||
		asked.Mode != "form" || asked.Message != "Buys a pen for 2 USD. Do you want this?" {
		t.Fatalf("%d %s: no question", r.status, r.body)
	}
	if strings.Contains(r.body, `"content":null`) {
		t.Errorf("null for no content: %s", r.body)
	}
	return q.State
}

// What a call with an answer leads to, and whether the tool ran.
func TestAConfirmationIsGoodForOneCallerOneCallAndAWhile(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(*purchase)
		code   fault.Code // of a tool result
		rpc    int        // code of a JSON-RPC error
		asked  bool       // again
		status int
		ran    int64
	}{
		"accepted":                   {change: func(p *purchase) { p.answer = "accept" }, status: 200, ran: 1},
		"accepted, in another order": {change: func(p *purchase) { p.answer, p.arguments = "accept", `{ "confirm":false, "item":"pen" }` }, status: 200, ran: 1},
		"declined":                   {change: func(p *purchase) { p.answer = "decline" }, status: 200, code: fault.Declined},
		"cancelled":                  {change: func(p *purchase) { p.answer = "cancel" }, status: 200, code: fault.Declined},
		"something else":             {change: func(p *purchase) { p.answer = "ACCEPT" }, status: 200, code: fault.Declined},
		"no answer":                  {change: func(p *purchase) {}, status: 200, asked: true},
		"other arguments":            {change: func(p *purchase) { p.answer, p.arguments = "accept", `{"item":"yacht"}` }, status: 400, rpc: -32602},
		"another tool":               {change: func(p *purchase) { p.answer, p.tool = "accept", "buy_more" }, status: 400, rpc: -32602},
		"another connection":         {change: func(p *purchase) { p.answer, p.token = "accept", "other" }, status: 400, rpc: -32602},
		"no state":                   {change: func(p *purchase) { p.answer, p.state = "accept", "" }, status: 400, rpc: -32602},
		"a state of nobody":          {change: func(p *purchase) { p.answer, p.state = "accept", "e30.e30" }, status: 400, rpc: -32602},
		"half a state":               {change: func(p *purchase) { p.answer, p.state = "accept", p.state[:40] }, status: 400, rpc: -32602},
		"another way in":             {change: func(p *purchase) { p.answer, p.token = "accept", "by key" }, status: 400, rpc: -32602},
		"another caller written in":  {change: written(func(a *asked) { a.Caller = "con_other" }), status: 400, rpc: -32602},
		"another way in written in":  {change: written(func(a *asked) { a.Via = "key" }), status: 400, rpc: -32602},
		"other arguments written in": {change: written(func(a *asked) { a.Arguments = "digest" }), status: 400, rpc: -32602},
		"another tool written in":    {change: written(func(a *asked) { a.Tool = "buy_more" }), status: 400, rpc: -32602},
		"another preview written in": {change: written(func(a *asked) { a.Shown = "digest" }), status: 400, rpc: -32602},
		"another nonce written in":   {change: written(func(a *asked) { a.Nonce += "x" }), status: 400, rpc: -32602},
		"a later end written in":     {change: written(func(a *asked) { a.Expires++ }), status: 400, rpc: -32602},
		"another hash": {change: func(p *purchase) {
			first := "A"
			if p.state[:1] == first {
				first = "B"
			}
			p.answer, p.state = "accept", first+p.state[1:]
		}, status: 400, rpc: -32602},
		"a client that shows no form": {change: func(p *purchase) { p.answer, p.capabilities = "accept", `{}` }, status: 200, code: fault.ConfirmationRequired},
		"a client that shows pages":   {change: func(p *purchase) { p.answer, p.capabilities = "accept", `{"elicitation":{"url":{}}}` }, status: 200, code: fault.ConfirmationRequired},
		"a client that shows both":    {change: func(p *purchase) { p.answer, p.capabilities = "accept", `{"elicitation":{"url":{},"form":{}}}` }, status: 200, ran: 1},
		"without the scope":           {change: func(p *purchase) { p.answer, p.token = "accept", "low" }, status: 403},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			p := buying()
			p.state = w.asks(t, p)
			c.change(&p)
			r := w.buy(t, p)
			var message struct {
				Result question
				Error  struct{ Code int }
			}
			if err := json.Unmarshal([]byte(r.body), &message); err != nil && r.status != http.StatusForbidden {
				t.Fatal(err)
			}
			if r.status != c.status || message.Error.Code != c.rpc || (message.Result.Type == "input_required") != c.asked || w.ran.Load() != c.ran {
				t.Errorf("%d %s, ran %d times", r.status, r.body, w.ran.Load())
			}
			if challenge := r.header.Get("WWW-Authenticate"); (r.status == 403) != strings.Contains(challenge, "insufficient_scope") {
				t.Errorf("challenge %q", challenge)
			}
			if r.status == 200 && !c.asked {
				if got := r.result(t); got.IsError != (c.code != "") || got.IsError && got.code(t) != c.code {
					t.Errorf("%s", r.body)
				}
			}
		})
	}
}

// written changes what a state says and leaves the hash over it as it was.
func written(change func(*asked)) func(*purchase) {
	return func(p *purchase) {
		mac, text, _ := strings.Cut(p.state, ".")
		about := unhashed(text)
		change(&about)
		changed, _ := json.Marshal(about)
		p.answer, p.state = "accept", mac+"."+base64.RawURLEncoding.EncodeToString(changed)
	}
}

func unhashed(text string) (about asked) {
	b, _ := base64.RawURLEncoding.DecodeString(text)
	_ = json.Unmarshal(b, &about)
	return about
}

func TestAConfirmationIsWaitedForTenMinutes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p := buying()
	before := time.Now().Unix()
	p.state, p.answer = w.asks(t, p), "accept"
	_, text, _ := strings.Cut(p.state, ".")
	about := unhashed(text)
	if at := about.Expires - 600; at < before || at > time.Now().Unix() {
		t.Errorf("asked at %d, it ends at %d", before, about.Expires)
	}
	about.Expires = time.Now().Unix()
	p.state = w.handler.state(about)
	if r := w.buy(t, p); r.status != 400 || !strings.Contains(r.body, "older than 10m0s") || w.ran.Load() != 0 {
		t.Errorf("at its end: %d %s, ran %d times", r.status, r.body, w.ran.Load())
	}
	about.Expires += 60
	p.state = w.handler.state(about)
	if r := w.buy(t, p); r.result(t).IsError || w.ran.Load() != 1 {
		t.Errorf("before its end: %d %s, ran %d times", r.status, r.body, w.ran.Load())
	}
}

// A yes is to what was shown. When the call would cost something else by now, the person is asked again; once it has
// run, its repeat is told what came of it, whatever it would cost now.
func TestAYesIsToThePriceThatWasShown(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p := buying()
	p.state, p.answer = w.asks(t, p), "accept"
	w.cost.Store(3)
	var again struct{ Result question }
	if err := json.Unmarshal([]byte(w.buy(t, p).body), &again); err != nil || w.ran.Load() != 0 {
		t.Fatalf("%v, ran %d times", err, w.ran.Load())
	}
	if got := again.Result.Requests[confirmation].Params.Message; got != "Buys a pen for 3 USD. Do you want this?" {
		t.Fatalf("asked %q", got)
	}
	p.state = again.Result.State
	first := w.buy(t, p).result(t)
	w.cost.Store(4)
	if diff := cmp.Diff(first, w.buy(t, p).result(t)); diff != "" || first.IsError || w.ran.Load() != 1 {
		t.Errorf("%+v, ran %d times (-first +again):\n%s", first, w.ran.Load(), diff)
	}
}

// The nonce of the question is the key of the call: a client that sends the person's yes again is told what came of
// it the first time.
func TestAnAcceptedCallSentTwiceRunsOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p := buying()
	p.state, p.answer = w.asks(t, p), "accept"
	first := w.buy(t, p).result(t)
	again := w.buy(t, p).result(t)
	if diff := cmp.Diff(first, again); diff != "" || w.ran.Load() != 1 {
		t.Errorf("ran %d times (-first +again):\n%s", w.ran.Load(), diff)
	}
	p.state = w.asks(t, buying())
	answers := trial.Parallel(8, func(int) reply { return w.buy(t, p) })
	for _, r := range answers {
		if got := r.result(t); got.IsError && got.code(t) != fault.IdempotencyConflict {
			t.Errorf("%s", r.body)
		}
	}
	if w.ran.Load() != 2 {
		t.Errorf("a second question and eight answers: ran %d times in all", w.ran.Load())
	}
	p.state = w.asks(t, buying())
	if got := w.buy(t, p).result(t); got.IsError || w.ran.Load() != 3 {
		t.Errorf("a third question: %+v, ran %d times in all", got, w.ran.Load())
	}
}

func TestEveryQuestionAndAnswerIsOnRecord(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p := buying()
	p.state = w.asks(t, p)
	for _, answer := range []string{"decline", "accept"} {
		p.answer = answer
		w.buy(t, p)
	}
	p.arguments = `{"item":"yacht"}`
	w.buy(t, p)
	c := newDoorman(nil).callers["both"]
	entries, _, err := w.audit.List(caller.With(t.Context(), c), audit.Filter{})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range entries {
		got = append(got, string(e.Outcome)+" "+e.Code)
	}
	want := []string{"refused invalid_request", "ok ", "refused declined", "refused confirmation_required"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("records, newest first (-want +got):\n%s", diff)
	}
}

// Older revisions have no such question. A client that claims to show forms there is not asked either.
func TestClientsOfOlderRevisionsAreNotAsked(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	smuggled := strings.Replace(call("buy", `{"item":"pen"}`), `"arguments"`,
		`"_meta":{"io.modelcontextprotocol/clientCapabilities":{"elicitation":{}}},"inputResponses":{"confirm":{"action":"accept"}},"arguments"`, 1)
	for _, revision := range append([]string{""}, revisions[1:]...) {
		r := w.post(t, "both", smuggled, "MCP-Protocol-Version", revision)
		if got := r.result(t); !got.IsError || got.code(t) != fault.ConfirmationRequired || w.ran.Load() != 0 {
			t.Errorf("%q: %d %s", revision, r.status, r.body)
		}
	}
}

func TestConfirmTrueNeedsNoQuestion(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p := buying()
	p.arguments = `{"item":"pen","confirm":true}`
	if got := w.buy(t, p).result(t); got.IsError || w.ran.Load() != 1 {
		t.Errorf("%+v, ran %d times", got, w.ran.Load())
	}
}

// The SDK's own client asks its person and repeats the call by itself.
func TestTheSDKClientIsAskedAndGoesOn(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, answer := range []string{"accept", "decline"} {
		var shown string
		client := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, &sdk.ClientOptions{
			ElicitationHandler: func(_ context.Context, r *sdk.ElicitRequest) (*sdk.ElicitResult, error) {
				shown = r.Params.Message
				return &sdk.ElicitResult{Action: answer, Content: map[string]any{}}, nil
			},
		})
		session, err := client.Connect(t.Context(), &sdk.StreamableClientTransport{
			Endpoint: w.url + "/mcp", HTTPClient: &http.Client{Transport: bearing("both")}, MaxRetries: -1,
		}, nil)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = session.Close() })
		res, err := session.CallTool(t.Context(), &sdk.CallToolParams{Name: "buy", Arguments: map[string]any{"item": "pen"}})
		if err != nil || res.IsError != (answer == "decline") || shown != "Buys a pen for 2 USD. Do you want this?" {
			t.Errorf("%s: %v %+v, shown %q", answer, err, res, shown)
		}
	}
	if w.ran.Load() != 1 {
		t.Errorf("ran %d times", w.ran.Load())
	}
}

// A state made with a server key that has since been replaced is good as long as the key is known, and no longer.
func TestAStateOfAReplacedKeyIsGoodWhileTheKeyIsKnown(t *testing.T) {
	t.Parallel()
	ctx := withCaller(t, "both")
	h := &Handler{secrets: trial.Ring(t, "k1"), askedFor: askedFor}
	state := h.ask(ctx, &kit.NeedsConfirmation{Tool: "buy", Arguments: "digest"}).RequestState
	for _, c := range []struct {
		keys []string
		good bool
	}{{[]string{"k1"}, true}, {[]string{"k2", "k1"}, true}, {[]string{"k2"}, false}} {
		h.secrets = trial.Ring(t, c.keys...)
		if _, err := h.recall(ctx, "buy", "digest", state); (err == nil) != c.good {
			t.Errorf("with the keys %v: %v", c.keys, err)
		}
	}
}

// Whatever is sent as a state, it opens only to what was put into one here.
func FuzzAStateThatIsNotOursDoesNotOpen(f *testing.F) {
	w := newWorld(f)
	about := asked{
		Key: w.handler.secrets.Current(), Via: "connection", Caller: "con_1", Tool: "buy", Arguments: "digest", Nonce: "nonce", Expires: 1 << 40,
	}
	ours := w.handler.state(about)
	mac, text, _ := strings.Cut(ours, ".")
	for _, seed := range []string{ours, "", ".", "e30.e30", mac, mac + ".", "." + text, text + "." + mac, ours + ".", ours + "=", ours[1:], strings.ToUpper(ours), mac + ".e30"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, state string) {
		got, ok := w.handler.open(state)
		if diff := cmp.Diff(about, got); ok && diff != "" {
			t.Errorf("%q opens (-ours +this):\n%s", state, diff)
		}
	})
}
