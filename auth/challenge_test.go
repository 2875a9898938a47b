package auth

import (
	"encoding/json"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"switchboard/internal/fault"
	"switchboard/internal/scope"
)

// parseChallenge reads one Bearer challenge and nothing else: auth-params with quoted values, each once, in the
// characters of RFC 6750 §3.
func parseChallenge(t *testing.T, header string) map[string]string {
	t.Helper()
	rest, ok := strings.CutPrefix(header, "Bearer ")
	if !ok {
		t.Fatalf("no Bearer challenge: %q", header)
	}
	out := map[string]string{}
	for rest != "" {
		name, after, ok := strings.Cut(rest, `="`)
		if !ok || name == "" || strings.ContainsFunc(name, func(c rune) bool { return c != '_' && (c < 'a' || c > 'z') }) {
			t.Fatalf("no parameter at %q of %q", rest, header)
		}
		value, after, ok := strings.Cut(after, `"`)
		if !ok || strings.ContainsFunc(value, func(c rune) bool { return c < ' ' || c > '~' || c == '\\' }) {
			t.Fatalf("the value of %s in %q is not what RFC 6750 lets through", name, header)
		}
		if _, twice := out[name]; twice {
			t.Fatalf("%s is there twice in %q", name, header)
		}
		out[name] = value
		if rest, ok = strings.CutPrefix(after, ", "); !ok && after != "" {
			t.Fatalf("%q after a parameter of %q", after, header)
		}
	}
	return out
}

func TestTheChallengeNamesEachParameterOnceAndQuoted(t *testing.T) {
	w := newWorld(t)
	const metadata, byDefault = issuer + "/.well-known/oauth-protected-resource/mcp", "contacts:read contacts:write org:read org:write"
	for name, c := range map[string]struct {
		headers []string
		want    map[string]string
	}{
		"no credentials": {nil, map[string]string{"resource_metadata": metadata, "scope": byDefault}},
		"a bad token": {[]string{"Bearer x"}, map[string]string{
			"resource_metadata": metadata, "scope": byDefault, "error": "invalid_token", "error_description": "The token is not valid: it is not known here.",
		}},
		"another scheme": {[]string{"Basic x"}, map[string]string{
			"resource_metadata": metadata, "scope": byDefault, "error": "invalid_token", "error_description": "The token is not valid: the Authorization header does not use the Bearer scheme.",
		}},
	} {
		_, err := w.call(c.headers...)
		rec := httptest.NewRecorder()
		w.auth.Challenge(rec, resource, err)
		if values := rec.Header().Values("WWW-Authenticate"); len(values) != 1 || rec.Code != 401 {
			t.Fatalf("%s: %d with the challenges %q", name, rec.Code, values)
		}
		if diff := cmp.Diff(c.want, parseChallenge(t, rec.Header().Get("WWW-Authenticate"))); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
		var body fault.Body
		if err := json.Unmarshal(rec.Body.Bytes(), &body); err != nil || body.Error.Code != fault.Unauthorized || body.Error.Message == "" {
			t.Errorf("%s: %s %v", name, rec.Body, err)
		}
		if h := rec.Header(); h.Get("Content-Type") != "application/json" || h.Get("Cache-Control") != "no-store" {
			t.Errorf("%s: %v", name, h)
		}
	}
}

func TestTheScopeChallengeAsksForWhatIsThereAndWhatIsMissing(t *testing.T) {
	a := New(Config{Issuer: issuer})
	got := parseChallenge(t, a.ScopeChallenge(resource, scope.Of("org:read", "contacts:read"), scope.Of("contacts:write", "org:read"),
		"Say \"yes\" \\ or…\r\nX: y\x00 — né \U0001f600"))
	want := map[string]string{
		"error": "insufficient_scope", "scope": "contacts:read contacts:write org:read", "resource_metadata": issuer + "/.well-known/oauth-protected-resource/mcp",
		"error_description": "Say 'yes' / or...  X: y? ? n? ?",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestMetadataOfAResourceIsBetweenItsHostAndItsPath(t *testing.T) {
	a := New(Config{Issuer: issuer})
	for resource, want := range map[string]string{
		issuer + "/mcp":       issuer + "/.well-known/oauth-protected-resource/mcp",
		issuer + "/mcp/voice": issuer + "/.well-known/oauth-protected-resource/mcp/voice",
		issuer:                issuer + "/.well-known/oauth-protected-resource",
		"::":                  issuer + "/.well-known/oauth-protected-resource",
	} {
		if got := a.metadataURL(resource); got != want {
			t.Errorf("%s: %s", resource, got)
		}
	}
}
