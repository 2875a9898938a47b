package oauth

import (
	"bytes"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"switchboard/auth"
	"switchboard/internal/scope"
	"switchboard/internal/store"
	"switchboard/migrations"
)

// TestNothingSecretIsInTheDatabaseOrTheLogs plants one of every secret and looks for its bytes in the database file,
// its write-ahead log and the log lines. A token is looked for by its secret part, so a copy without its prefix is
// found too.
func TestNothingSecretIsInTheDatabaseOrTheLogs(t *testing.T) {
	w := newWorld(t)
	path := filepath.Join(t.TempDir(), "canary.db")
	s, err := store.Open(t.Context(), store.Config{URL: path})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	if err := s.Migrate(t.Context(), migrations.FS); err != nil {
		t.Fatal(err)
	}
	w.store = s
	w.serve(w.ring(), lifetimes)
	made := w.user("canary@harbor.example", "Harbor", scope.Owner)
	w.owner, w.org = made.Person, made.Organization
	w.desktop = w.client("Desktop", "http://127.0.0.1/callback")

	secrets := map[string]string{"password": "correct horse battery", "verifier": verifier, "browser": browser}
	request := w.mustBegin(query(w.desktop, "scope", "org:read"))
	secrets["consent request"] = request
	answer, err := w.decide(request, w.yes("org:read"))
	if err != nil {
		t.Fatal(err)
	}
	secrets["code"] = answer.Get("code")
	secrets["unused code"] = w.code("org:read")
	first := w.exchange(answer.Get("code"))
	second := w.refresh(first.Refresh)
	w.refresh(first.Refresh)
	secrets["first access"], secrets["first refresh"], secrets["second access"], secrets["second refresh"] = first.Access, first.Refresh, second.Access, second.Refresh
	w.refresh(second.Refresh + "x")
	w.exchange(answer.Get("code"), "code_verifier", "wrong")
	w.post("/oauth/revoke", url.Values{"token": {second.Refresh}, "client_id": {w.desktop}})
	if secrets["key"], _, err = w.auth.CreateKey(w.asOwner(), auth.NewKey{Name: "CI", Scopes: scope.Of("org:read")}); err != nil {
		t.Fatal(err)
	}
	if secrets["session"], _, err = w.accounts.StartSession(t.Context(), w.owner.ID); err != nil {
		t.Fatal(err)
	}
	if _, err := w.accounts.SignIn(t.Context(), w.owner.Email, "wrong horse battery", "192.0.2.1"); err == nil {
		t.Fatal("signed in with a wrong password")
	}
	secrets["wrong password"] = "wrong horse battery"

	content := []byte(w.logs.String())
	for _, file := range []string{path, path + "-wal", path + "-shm"} {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		content = append(content, b...)
	}
	for what, value := range secrets {
		for _, prefix := range []string{"sb_at_", "sb_rt_", "sb_ac_", "sb_live_", "sb_bs_"} {
			value = strings.TrimPrefix(value, prefix)
		}
		if len(value) < 12 {
			t.Fatalf("%s is too short to look for: %q", what, value)
		}
		if bytes.Contains(content, []byte(value)) {
			t.Errorf("%s is there in clear", what)
		}
	}
	if !bytes.Contains(content, []byte("canary@harbor.example")) || !bytes.Contains(content, []byte(w.org.ID)) {
		t.Error("the search found nothing of what must be there, so it proves nothing")
	}
}
