package consentui

import (
	"errors"
	"fmt"
	"net/http"

	"github.com/gorilla/sessions"

	"switchboard/auth/accounts"
)

// What a sessions.Session carries here: the account's session that was found, and the id of the person that Save
// shall sign in.
type (
	foundKey  struct{}
	personKey struct{}
)

// sessionStore is a sessions.Store over the accounts' own table: the cookie carries a random token and nothing
// else, so that a session can be ended from the server.
type sessionStore struct {
	accounts Accounts
	cookies  cookies
}

// Get returns the request's session, the same one on every call for a request.
func (s *sessionStore) Get(r *http.Request, name string) (*sessions.Session, error) {
	return sessions.GetRegistry(r).Get(s, name)
}

// New reads the session that the cookie's token stands for. An unknown token is a new, signed-out session.
func (s *sessionStore) New(r *http.Request, name string) (*sessions.Session, error) {
	session := sessions.NewSession(s, name)
	session.IsNew = true
	session.Options = &sessions.Options{
		Path: "/", MaxAge: int(accounts.SessionLifetime.Seconds()),
		Secure: s.cookies.secure, HttpOnly: true, SameSite: http.SameSiteLaxMode,
	}
	cookie, err := r.Cookie(name)
	if err != nil {
		return session, nil
	}
	found, err := s.accounts.Session(r.Context(), cookie.Value)
	if errors.Is(err, accounts.ErrNoSession) {
		return session, nil
	}
	if err != nil {
		return session, fmt.Errorf("reading the browser session: %w", err)
	}
	session.ID, session.IsNew, session.Values[foundKey{}] = found.ID, false, found
	return session, nil
}

// Save ends the session that the browser came with and, unless MaxAge is negative, starts one of the person in
// Values. The token is new each time, so one that was planted or seen before the sign-in is worth nothing after.
func (s *sessionStore) Save(r *http.Request, w http.ResponseWriter, session *sessions.Session) error {
	if session.ID != "" {
		if err := s.accounts.EndSession(r.Context(), session.ID); err != nil {
			return fmt.Errorf("ending the browser session: %w", err)
		}
	}
	token := ""
	if session.Options.MaxAge >= 0 {
		person, _ := session.Values[personKey{}].(string)
		started, found, err := s.accounts.StartSession(r.Context(), person)
		if err != nil {
			return fmt.Errorf("starting the browser session: %w", err)
		}
		token, session.ID, session.Values[foundKey{}] = started, found.ID, found
	}
	http.SetCookie(w, sessions.NewCookie(session.Name(), token, session.Options))
	return nil
}

// session finds who is signed in; the zero Session is nobody.
func (u *UI) session(r *http.Request) (*sessions.Session, accounts.Session, error) {
	s, err := u.sessions.Get(r, u.cookies.name(sessionCookie))
	if err != nil {
		return nil, accounts.Session{}, err
	}
	found, _ := s.Values[foundKey{}].(accounts.Session)
	return s, found, nil
}

func (u *UI) startSession(w http.ResponseWriter, r *http.Request, personID string) error {
	s, _, err := u.session(r)
	if err != nil {
		return err
	}
	s.Values[personKey{}] = personID
	return s.Save(r, w)
}

func (u *UI) endSession(w http.ResponseWriter, r *http.Request) error {
	s, _, err := u.session(r)
	if err != nil {
		return err
	}
	s.Options.MaxAge = -1
	return s.Save(r, w)
}
