package auth

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"switchboard/internal/scope"
)

// A bearer token is one word of the one header. Whatever else is sent is nobody, and what is said about that fits into a
// challenge (RFC 6750 §3).
func FuzzBearers(f *testing.F) {
	for _, seed := range []string{"", "Bearer", "Bearer x", "bearer  x ", "Bearer a b", "Bearer a,b", "Basic YTpi", "Bearer \x00", "Bearer \xff", "Bearer " + strings.Repeat("x", 600), "Bearer\tx"} {
		f.Add(seed)
	}
	a := New(Config{Issuer: "https://switch.example", Scopes: scope.NewCatalog(nil, nil, scope.Of("org:read"))})
	f.Fuzz(func(t *testing.T, header string) {
		r := &http.Request{Header: http.Header{"Authorization": {header}}}
		token, err := bearer(r)
		var nobody *Unauthorized
		switch {
		case err == nil && (token == "" || len(token) > maxToken || strings.ContainsAny(token, " \t,") || !strings.Contains(header, token)):
			t.Errorf("%q is the token %q", header, token)
		case err != nil && (!errors.As(err, &nobody) || nobody.Reason == "" || Plain(nobody.Reason) != nobody.Reason):
			t.Errorf("%q: %v", header, err)
		}
		r.Header.Add("Authorization", header)
		if _, err := bearer(r); err == nil {
			t.Errorf("%q twice is one", header)
		}
		said := a.ScopeChallenge("https://switch.example/mcp", nil, nil, header)
		if strings.ContainsFunc(said, func(c rune) bool { return c < ' ' || c > '~' }) || strings.Count(said, `"`)%2 != 0 || strings.Contains(said, `\`) {
			t.Errorf("%q becomes %q", header, said)
		}
		if plain := Plain(header); Plain(plain) != plain {
			t.Errorf("%q becomes %q and %q", header, plain, Plain(plain))
		}
	})
}
