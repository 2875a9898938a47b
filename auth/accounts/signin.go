package accounts

import (
	"context"
	"errors"
	"fmt"
	"time"

	"switchboard/internal/audit"
	"switchboard/internal/caller"
	"switchboard/internal/fault"
	"switchboard/internal/store"
)

// ErrMismatch is the one answer to an unknown address and to a wrong password.
var ErrMismatch = errors.New("email and password do not match")

// SignIn checks an address and a password that came from an IP. It answers ErrMismatch or *Throttled when it will
// not let the person in. Every organization of a known person gets a sign_in record.
//
// A refusal takes a fixed time at least, since a known person's is also written down.
func (a *Accounts) SignIn(ctx context.Context, email, password, ip string) (Person, error) {
	began := time.Now()
	p, err := a.signIn(ctx, email, password, ip)
	if errors.Is(err, ErrMismatch) {
		wait := time.NewTimer(time.Until(began.Add(a.RefusalTime)))
		defer wait.Stop()
		select {
		case <-wait.C:
		case <-ctx.Done():
		}
	}
	return p, err
}

func (a *Accounts) signIn(ctx context.Context, email, password, ip string) (Person, error) {
	email = normalizeEmail(email)
	if len(email) > maxEmail {
		return Person{}, ErrMismatch // nobody has one, and it is not worth remembering
	}
	attempt, err := a.throttle.begin(email, ip)
	if err != nil {
		return Person{}, err
	}
	var p person
	err = a.Store.DB(ctx).Take(&p, "email = ?", email).Error
	if err != nil && !store.IsNotFound(err) {
		attempt.withdrawn()
		return Person{}, fmt.Errorf("reading a person: %w", err)
	}
	ok, err := a.passwords.matches(ctx, password, p.PasswordHash)
	if err != nil {
		attempt.withdrawn()
		return Person{}, err
	}
	if p.ID != "" {
		if err := a.auditSignIn(ctx, p.public(), ok); err != nil {
			if ok {
				attempt.withdrawn() // the password was right; what failed was ours
			}
			return Person{}, err
		}
	}
	if !ok {
		return Person{}, ErrMismatch
	}
	attempt.succeeded()
	return p.public(), nil
}

func (a *Accounts) auditSignIn(ctx context.Context, p Person, ok bool) error {
	memberships, err := a.Memberships(ctx, p.ID)
	if err != nil {
		return err
	}
	record := audit.Record{Action: audit.SignIn, Outcome: audit.OK, Subject: p.ID}
	if !ok {
		record.Outcome, record.Code = audit.Refused, fault.Unauthorized
	}
	return a.Store.Tx(ctx, func(ctx context.Context) error {
		for _, m := range memberships {
			who := caller.Caller{Org: m.Organization.ID, Person: p.ID, PersonName: p.Display(), Role: m.Role}
			if err := a.Audit.Append(caller.With(ctx, who.InBrowser("")), record); err != nil {
				return err
			}
		}
		return nil
	})
}
