package trial

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestARequestOfTheCorpusIsReadAsItIsWritten(t *testing.T) {
	got, err := parseCorpus("About the file.\n\n== First\n; why\nas token, json\nPOST /mcp\nX: {{repeat \"a\" 3}}\n\n{\n\n{{bytes \"c328\"}}\n-> 400 jsonrpc -32700\n\n== Second\nGET /\n-> 303 to /sign-in\n")
	if err != nil {
		t.Fatal(err)
	}
	want := []Request{
		{"First", []string{"token", "json"}, "POST /mcp\nX: {{repeat \"a\" 3}}\n\n{\n\n{{bytes \"c328\"}}", "400 jsonrpc -32700"},
		{"Second", nil, "GET /", "303 to /sign-in"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	filled, err := got[0].Fill(nil)
	if err != nil || filled.Head() != "POST /mcp\nX: aaa" || filled.Body() != "{\n\n\xc3\x28" {
		t.Errorf("%q %q %v", filled.Head(), filled.Body(), err)
	}
	for _, broken := range []string{"== no answer\nGET /\n", "== no request\n-> 200 ok\n", "== twice\nGET /\n-> 200 ok\n== twice\nGET /\n-> 200 ok\n", "== more\nGET /\n-> 200 ok\nGET /\n"} {
		if list, err := parseCorpus(broken); err == nil {
			t.Errorf("%q was read as %v", broken, list)
		}
	}
}
