package oauth

import (
	"net/url"
	"testing"

	"github.com/go-jose/go-jose/v4"
	"github.com/google/go-cmp/cmp"
)

func TestRevocationAnswers200AndEndsWhatBelongsToTheClient(t *testing.T) {
	const all, access, nothing = "the whole grant", "the access token", "nothing"
	for name, c := range map[string]struct {
		token        func(w *world, old, now answer) string
		hint, client string
		status       int
		ended        string
		audited      []string
	}{
		"refresh token":                       {func(_ *world, _, now answer) string { return now.Refresh }, "", "", 200, all, []string{"revoke ok"}},
		"refresh token, hinted":               {func(_ *world, _, now answer) string { return now.Refresh }, "refresh_token", "", 200, all, []string{"revoke ok"}},
		"refresh token, hinted as access":     {func(_ *world, _, now answer) string { return now.Refresh }, "access_token", "", 200, all, []string{"revoke ok"}},
		"refresh token, hinted as nonsense":   {func(_ *world, _, now answer) string { return now.Refresh }, "x", "", 200, all, []string{"revoke ok"}},
		"refresh token of before":             {func(_ *world, old, _ answer) string { return old.Refresh }, "", "", 200, all, []string{"revoke ok"}},
		"access token":                        {func(_ *world, _, now answer) string { return now.Access }, "", "", 200, access, nil},
		"access token, hinted as refresh":     {func(_ *world, _, now answer) string { return now.Access }, "refresh_token", "", 200, access, nil},
		"unknown token":                       {func(*world, answer, answer) string { return "sb_rt_nobody" }, "", "", 200, nothing, nil},
		"refresh token by another client":     {func(_ *world, _, now answer) string { return now.Refresh }, "", "stranger", 200, nothing, nil},
		"access token by another client":      {func(_ *world, _, now answer) string { return now.Access }, "", "stranger", 200, nothing, nil},
		"refresh token by an unknown client":  {func(_ *world, _, now answer) string { return now.Refresh }, "", "cli_nobody", 401, nothing, nil},
		"no token":                            {func(*world, answer, answer) string { return "" }, "", "", 400, nothing, nil},
		"what the database has of the access": {func(w *world, _, now answer) string { return w.server.Secrets.Hash(now.Access) }, "", "", 200, nothing, nil},
	} {
		w := newWorld(t)
		bystander := w.tokens("org:read")
		old := w.tokens("contacts:read")
		now := w.refresh(old.Refresh)
		client := w.desktop
		if c.client == "stranger" {
			client = w.stranger
		} else if c.client != "" {
			client = c.client
		}
		form := with(url.Values{"client_id": {client}}, "token", c.token(w, old, now), "token_type_hint", c.hint)
		for range 2 {
			rec := w.post("/oauth/revoke", form)
			if rec.Code != c.status || rec.Header().Get("Cache-Control") != "no-store" {
				t.Errorf("%s: %d %s", name, rec.Code, rec.Body)
			}
			if rec.Code == 200 && rec.Body.Len() > 0 {
				t.Errorf("%s: a body, %q", name, rec.Body)
			}
		}
		switch c.ended {
		case all:
			w.dead(name, now)
			if _, err := w.who(old.Access); err == nil {
				t.Errorf("%s: the access token of before lives", name)
			}
		case access:
			if _, err := w.who(now.Access); err == nil {
				t.Errorf("%s: the access token lives", name)
			}
			if got := w.refresh(now.Refresh); got.Status != 200 {
				t.Errorf("%s: it took the refresh token along: %+v", name, got)
			}
		case nothing:
			w.alive(name, now)
		}
		w.alive(name+", another grant", bystander)
		if diff := cmp.Diff(append([]string{"consent ok", "consent ok"}, c.audited...), w.audited()); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

func TestATokenOfAClientThatAuthenticatesIsRevokedByItsProofAlone(t *testing.T) {
	w := newWorld(t)
	key := newSigner(t, jose.ES256, "1")
	server, secret := w.confidential("client_secret_basic")
	keyed, _ := w.confidential("private_key_jwt", `"jwks":`+setText(key))
	other, othersSecret := w.confidential("client_secret_post")
	prove := func(client string, form url.Values) answer {
		if client == keyed {
			return w.ask("/oauth/token", "", by(key.sign(keyed), form))
		}
		return w.ask("/oauth/token", basic(server, secret), form)
	}
	for name, c := range map[string]struct {
		of, header string
		form       url.Values
		status     int
		ended      bool
	}{
		"its secret":                   {server, basic(server, secret), url.Values{}, 200, true},
		"its secret in the form":       {server, "", url.Values{"client_id": {server}, "client_secret": {secret}}, 200, true},
		"no secret":                    {server, "", url.Values{"client_id": {server}}, 401, false},
		"a wrong secret":               {server, basic(server, "sb_cs_x"), url.Values{}, 401, false},
		"another's secret":             {server, basic(server, othersSecret), url.Values{}, 401, false},
		"another, with its own secret": {server, basic(other, othersSecret), url.Values{}, 200, false},
		"another, which is public":     {server, "", url.Values{"client_id": {w.desktop}}, 200, false},
		"its key":                      {keyed, "", by(key.sign(keyed), url.Values{}), 200, true},
		"no key":                       {keyed, "", url.Values{"client_id": {keyed}}, 401, false},
		"its key, signed for another":  {keyed, "", by(key.sign(other), url.Values{}), 401, false},
		"another, instead of the key":  {keyed, basic(other, othersSecret), url.Values{}, 200, false},
	} {
		form := w.exchangeForm(w.codeFor(c.of, "org:read"), "client_id", "")
		tokens := prove(c.of, form)
		if tokens.Status != 200 {
			t.Fatalf("%s: %+v", name, tokens)
		}
		c.form.Set("token", tokens.Refresh)
		if got := w.ask("/oauth/revoke", c.header, c.form); got.Status != c.status {
			t.Errorf("%s: %+v", name, got)
		}
		next := prove(c.of, url.Values{"grant_type": {"refresh_token"}, "refresh_token": {tokens.Refresh}})
		if _, err := w.who(tokens.Access); (err != nil) != c.ended || (next == refusal(400, "invalid_grant")) != c.ended {
			t.Errorf("%s: then the access token %v, the refresh token %+v", name, err, next)
		}
	}
	for name, status := range map[string]int{"sb_rt_nobody": 200, "sb_at_nobody": 200, "x": 200, "": 400} {
		if got := w.ask("/oauth/revoke", basic(server, secret), url.Values{"token": {name}}); got.Status != status {
			t.Errorf("revoking %q: %+v", name, got)
		}
	}
}

func TestARevokedConnectionLeavesOthersAlone(t *testing.T) {
	w := newWorld(t)
	again := w.client("Desktop", "http://127.0.0.1/callback") // the same name, registered once more
	signIn := func(client string, d Decision) answer {
		got, err := w.decide(w.mustBegin(query(client, "scope", "org:read")), d)
		if err != nil {
			t.Fatal(err)
		}
		return w.exchange(got.Get("code"), "client_id", client)
	}
	mine, second := signIn(w.desktop, w.yes("org:read")), signIn(again, w.yes("org:read"))
	colleague := w.yes("org:read")
	colleague.PersonID = w.people["member"].ID
	theirs := signIn(w.desktop, colleague)

	who, err := w.who(mine.Access)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.auth.RevokeConnection(w.asOwner(), who.ID); err != nil {
		t.Fatal(err)
	}
	w.dead("the revoked one", mine)
	w.alive("another registration of the same name", second)
	w.alive("a colleague with the same client", theirs)
}
