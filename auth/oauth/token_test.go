package oauth

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestTheTokenEndpointSaysWhatIsWrongInTheWordsClientsActOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		expired := w.tokens("org:read")
		time.Sleep(lifetimes.Refresh + 2*time.Second)
		live, revoked := w.tokens("org:read"), w.tokens("contacts:read")
		server, _ := w.confidential("client_secret_post")
		w.post("/oauth/revoke", url.Values{"token": {revoked.Refresh}, "client_id": {w.desktop}})
		const form = "application/x-www-form-urlencoded"
		refresh := func(token string, changes ...string) string {
			return with(url.Values{"grant_type": {"refresh_token"}, "client_id": {w.desktop}, "refresh_token": {token}}, changes...).Encode()
		}
		for name, c := range map[string]struct {
			kind, body string
			headers    []string
			status     int
			code       string
		}{
			"unknown refresh token":       {form, refresh("sb_rt_nobody"), nil, 400, "invalid_grant"},
			"revoked refresh token":       {form, refresh(revoked.Refresh), nil, 400, "invalid_grant"},
			"expired refresh token":       {form, refresh(expired.Refresh), nil, 400, "invalid_grant"},
			"another client's token":      {form, refresh(live.Refresh, "client_id", w.stranger), nil, 400, "invalid_grant"},
			"missing refresh token":       {form, refresh(""), nil, 400, "invalid_request"},
			"unknown client":              {form, refresh(live.Refresh, "client_id", "cli_nobody"), nil, 401, "invalid_client"},
			"a wrong secret":              {form, refresh(live.Refresh, "client_id", server, "client_secret", "sb_cs_x"), nil, 401, "invalid_client"},
			"a wrong secret by Basic":     {form, refresh(live.Refresh, "client_id", ""), []string{"Authorization", basic(server, "sb_cs_x")}, 401, "invalid_client"},
			"a secret that is missing":    {form, refresh(live.Refresh, "client_id", server), nil, 401, "invalid_client"},
			"a client id with a NUL":      {form, refresh(live.Refresh, "client_id", "\x00"), nil, 401, "invalid_client"},
			"no client":                   {form, refresh(live.Refresh, "client_id", ""), nil, 400, "invalid_request"},
			"unknown client by Basic":     {form, refresh(live.Refresh, "client_id", ""), []string{"Authorization", "Basic Y2xpX25vYm9keTo="}, 401, "invalid_client"},
			"broken Basic":                {form, refresh(live.Refresh, "client_id", ""), []string{"Authorization", "Basic !"}, 400, "invalid_request"},
			"an API key":                  {form, refresh("sb_live_" + strings.Repeat("A", 43)), nil, 400, "invalid_grant"},
			"an API key as Authorization": {form, refresh("x", "client_id", ""), []string{"Authorization", "Bearer sb_live_x"}, 400, "invalid_request"},
			"no grant type":               {form, refresh(live.Refresh, "grant_type", ""), nil, 400, "invalid_request"},
			"password":                    {form, refresh(live.Refresh, "grant_type", "password"), nil, 400, "unsupported_grant_type"},
			"client credentials":          {form, refresh(live.Refresh, "grant_type", "client_credentials"), nil, 400, "unsupported_grant_type"},
			"two grant types in one":      {form, refresh(live.Refresh, "grant_type", "refresh_token authorization_code"), nil, 400, "unsupported_grant_type"},
			"a parameter twice":           {form, refresh(live.Refresh) + "&refresh_token=x", nil, 400, "invalid_request"},
			"a strange one twice":         {form, refresh(live.Refresh) + "&%22%0a%c3%a9=1&%22%0a%c3%a9=2", nil, 400, "invalid_request"},
			"JSON":                        {"application/json", `{"grant_type":"refresh_token"}`, nil, 400, "invalid_request"},
			"no content type":             {"", refresh(live.Refresh), nil, 400, "invalid_request"},
			"broken escapes":              {form, "grant_type=%zz", nil, 400, "invalid_request"},
			"nothing":                     {form, "", nil, 400, "invalid_request"},
			"too long":                    {form, refresh(live.Refresh, "x", strings.Repeat("x", maxTokenForm)), nil, 400, "invalid_request"},
		} {
			headers := c.headers
			if c.kind != "" {
				headers = append([]string{"Content-Type", c.kind}, headers...)
			}
			rec := w.send("POST", "/oauth/token", c.body, headers...)
			h := rec.Header()
			if rec.Code != c.status || h.Get("Content-Type") != "application/json" || h.Get("Cache-Control") != "no-store" || h.Get("Access-Control-Allow-Origin") != "*" {
				t.Errorf("%s: %d %v", name, rec.Code, h)
			}
			if (rec.Code == 401) != (h.Get("WWW-Authenticate") != "") {
				t.Errorf("%s: %d with the challenge %q", name, rec.Code, h.Get("WWW-Authenticate"))
			}
			noneIsEmpty(t, rec.Body.String())
			var said struct {
				Description string `json:"error_description"`
			}
			if err := json.Unmarshal(rec.Body.Bytes(), &said); err != nil || !readable(said.Description) {
				t.Errorf("%s: the description %.200q is not what RFC 6749 §5.2 lets through, %v", name, said.Description, err)
			}
			if !strings.Contains(rec.Body.String(), `"error":"`+c.code+`"`) {
				t.Errorf("%s: %s", name, rec.Body)
			}
		}
		if rec := w.send("POST", "/oauth/token?"+refresh(live.Refresh), "", "Content-Type", form); rec.Code != 400 {
			t.Errorf("parameters in the query: %d", rec.Code)
		}
		w.alive("the live chain after all of it", live)
		if got := w.refresh(live.Refresh); got.Status != 200 {
			t.Errorf("%+v", got)
		}
	})
}

func TestAClientMayNameItselfInTheAuthorizationHeader(t *testing.T) {
	w := newWorld(t)
	first := w.tokens("org:read")
	r := httptest.NewRequest("POST", "/oauth/token", strings.NewReader(url.Values{"grant_type": {"refresh_token"}, "refresh_token": {first.Refresh}}.Encode()))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.SetBasicAuth(w.desktop, "")
	rec := httptest.NewRecorder()
	w.mux.ServeHTTP(rec, r)
	if rec.Code != 200 {
		t.Errorf("%d %s", rec.Code, rec.Body)
	}
}

func TestTroubleWithTheDatabaseIs503AndCostsNobodyTheirToken(t *testing.T) {
	w := newWorld(t)
	tokens, code := w.tokens("org:read"), w.code("org:read")
	pending := w.mustBegin(query(w.desktop))
	if err := w.store.Close(); err != nil {
		t.Fatal(err)
	}
	for name, rec := range map[string]*httptest.ResponseRecorder{
		"refresh":     w.post("/oauth/token", url.Values{"grant_type": {"refresh_token"}, "client_id": {w.desktop}, "refresh_token": {tokens.Refresh}}),
		"exchange":    w.post("/oauth/token", w.exchangeForm(code)),
		"revoke":      w.post("/oauth/revoke", url.Values{"token": {tokens.Refresh}, "client_id": {w.desktop}}),
		"register":    w.send("POST", "/oauth/register", `{"redirect_uris":["http://localhost/cb"]}`, "Content-Type", "application/json"),
		"by Basic":    w.send("POST", "/oauth/token", "grant_type=refresh_token&refresh_token="+tokens.Refresh, "Content-Type", "application/x-www-form-urlencoded", "Authorization", "Basic Y2xpX3g6"),
		"by a secret": w.post("/oauth/token", url.Values{"grant_type": {"refresh_token"}, "client_id": {w.desktop}, "client_secret": {"s"}, "refresh_token": {tokens.Refresh}}),
	} {
		if rec.Code != 503 || rec.Header().Get("Retry-After") == "" || rec.Header().Get("Access-Control-Allow-Origin") != "*" || !strings.Contains(rec.Body.String(), `"error":"temporarily_unavailable"`) {
			t.Errorf("%s: %d %v %s", name, rec.Code, rec.Header(), rec.Body)
		}
		noneIsEmpty(t, rec.Body.String())
	}

	var page *PageError
	if _, err := w.begin(query(w.desktop)); !errors.As(err, &page) || page.Status != 503 || page.Reason != "unavailable" || page.RetryAfter <= 0 {
		t.Errorf("authorize: %v", err)
	}
	if _, err := w.server.Pending(t.Context(), pending, browser); err == nil || errors.Is(err, ErrGone) {
		t.Errorf("the consent page: %v", err)
	}
	if _, err := w.server.Decide(t.Context(), pending, browser, w.yes("org:read")); err == nil || errors.Is(err, ErrGone) {
		t.Errorf("the decision: %v", err)
	}
	if _, _, err := w.server.Held(t.Context(), Pending{ClientID: w.desktop, Resource: resource}, w.owner.ID, w.org.ID); err == nil {
		t.Error("what a connection holds was answered without a database")
	}
	if err := w.server.Sweep(t.Context()); err == nil {
		t.Error("sweeping went well without a database")
	}

	_, err := w.who(tokens.Access)
	rec := httptest.NewRecorder()
	w.auth.Challenge(rec, resource, err)
	if rec.Code != http.StatusServiceUnavailable || rec.Header().Get("Retry-After") == "" || rec.Header().Get("WWW-Authenticate") != "" {
		t.Errorf("a call of a tool: %d %v", rec.Code, rec.Header())
	}
	if metadata := w.send("GET", "/.well-known/oauth-authorization-server", ""); metadata.Code != 200 {
		t.Errorf("metadata: %d", metadata.Code)
	}
}

func TestTroubleInTheMiddleOfAnExchangeIs503Too(t *testing.T) {
	w := newWorld(t)
	tokens, code := w.tokens("org:read"), w.code("org:read")
	w.exec(`ALTER TABLE generations RENAME TO generations_away`)
	for name, form := range map[string]url.Values{
		"refresh":  {"grant_type": {"refresh_token"}, "client_id": {w.desktop}, "refresh_token": {tokens.Refresh}},
		"exchange": w.exchangeForm(code),
	} {
		if got := w.token(form); got != refusal(503, "temporarily_unavailable") {
			t.Errorf("%s: %+v", name, got)
		}
	}
	if rec := w.post("/oauth/revoke", url.Values{"token": {tokens.Refresh}, "client_id": {w.desktop}}); rec.Code != 503 {
		t.Errorf("revoke: %d", rec.Code)
	}
	w.exec(`ALTER TABLE generations_away RENAME TO generations`)
	if got := w.exchange(code); got.Status != 200 {
		t.Errorf("the code was used up by an exchange that failed: %+v", got)
	}
	if got := w.refresh(tokens.Refresh); got.Status != 200 {
		t.Errorf("the refresh token was used up by a refresh that failed: %+v", got)
	}
}
