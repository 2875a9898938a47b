package kit

import (
	"context"
	"encoding/json"
	"errors"
	"regexp"
	"testing"
	"time"

	"switchboard/internal/caller"
	"switchboard/internal/fault"
	"switchboard/internal/store"
	"switchboard/internal/trial"
)

var goWords = regexp.MustCompile(`json: |strconv|reflect|\bint64\b|\bfloat64\b|\bstruct\b|kit\.|time\.Time|big\.|map\[`)

// Arguments that pass are canonical: read again they stay as they are, and the handler's struct can hold them. What does
// not pass is told in words about the arguments and never about our types.
func FuzzArguments(f *testing.F) {
	for _, seed := range append(trial.Seeds(f, nil, "tools"), `{"phone":"+1"}`, `{"phone":"+1","big":1e2,"price":0.5,"window":{"days":[1]},"confirm":true}`, `{"phone":"+1","rows":[{"days":[1],"every":2}],"any":{"a":[1e400]},"choice":{"name":"word"},"after":"2026-01-01T00:00:00Z"}`,
		`{"phone":"+1","facts":{"a":"b"},"tags":["a"],"note":null,"kind":"small","cursor":"","limit":1.0}`, `{"phone":"+1","phone":"+2"}`, `{"phone":"\ud800"}`, `{"big":9007199254740993,"phone":"+1"}`) {
		f.Add(seed)
		var m struct {
			Params struct{ Arguments json.RawMessage }
		}
		if json.Unmarshal([]byte(seed), &m) == nil && m.Params.Arguments != nil {
			f.Add(string(m.Params.Arguments))
		}
	}
	in, err := newInput[order](true)
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, sent string) {
		got, err := in.read([]byte(sent))
		if err != nil {
			var refused *fault.Error
			if !errors.As(err, &refused) || refused.Code != fault.InvalidRequest || refused.Message == "" || goWords.MatchString(refused.Message) {
				t.Errorf("%q: %v", sent, err)
			}
			return
		}
		again, err := in.read(got.canonical)
		if err != nil || string(again.canonical) != string(got.canonical) || again.confirmed {
			t.Errorf("%q becomes %s and then %s %v", sent, got.canonical, again.canonical, err)
		}
		var into order
		if err := json.Unmarshal(got.canonical, &into); err != nil {
			t.Errorf("%q becomes %s, which the handler cannot read: %v", sent, got.canonical, err)
		}
	})
}

// A cursor that was not given out for this list and organization is refused; one that was leads back to its place.
func FuzzCursors(f *testing.F) {
	ctx := caller.With(context.Background(), caller.Caller{Org: "org_1"})
	at := Position{At: store.At(time.UnixMicro(1_800_000_000_000_000)), ID: "con_1"}
	for _, seed := range []string{"", "canary", "AAAA", "AAAAAAAAAAAxIAA", cursor(ctx, "list", at), cursor(ctx, "other", at), cursor(ctx, "list", at) + "=", "\x00"} {
		f.Add(seed, int64(7), "con_1")
	}
	f.Fuzz(func(t *testing.T, sent string, micros int64, id string) {
		p, err := parseCursor(ctx, "list", sent)
		if err == nil && cursor(ctx, "list", p) != sent {
			t.Errorf("%q is %+v, which is %q", sent, p, cursor(ctx, "list", p))
		}
		if err != nil && !fault.Is(err, fault.InvalidRequest) {
			t.Errorf("%q: %v", sent, err)
		}
		if !idPattern.MatchString(id) {
			return
		}
		want := Position{At: store.At(time.UnixMicro(micros)), ID: id}
		own := cursor(ctx, "list", want)
		if got, err := parseCursor(ctx, "list", own); err != nil || !got.At.Equal(want.At.Time) || got.ID != id {
			t.Errorf("%+v is %q and read as %+v %v", want, own, got, err)
		}
		for _, elsewhere := range []struct{ org, list string }{{"org_2", "list"}, {"org_1", "other"}} {
			if _, err := parseCursor(caller.With(ctx, caller.Caller{Org: elsewhere.org}), elsewhere.list, own); err == nil {
				t.Errorf("%q is good for %+v too", own, elsewhere)
			}
		}
	})
}
