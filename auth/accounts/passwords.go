package accounts

import (
	"context"
	"fmt"
	"runtime"

	"github.com/alexedwards/argon2id"
)

// Hashing is the cost of a password hash.
type Hashing struct {
	MemoryKiB  uint32
	Iterations uint32
}

// owasp is the first choice of the OWASP password storage cheat sheet for Argon2id.
var owasp = Hashing{MemoryKiB: 46 << 10, Iterations: 1}

// MinPassword and MaxPassword bound a password, in characters and in bytes.
const (
	MinPassword = 12
	MaxPassword = 1024
)

// passwords hashes and checks passwords, a few at a time: each costs tens of megabytes, and a crowd at the sign-in
// page must not be able to exhaust the machine.
type passwords struct {
	params *argon2id.Params
	slots  chan struct{}
	decoy  string // what an unknown account is checked against, so that it takes as long as a known one
}

func newPasswords(cost Hashing) *passwords {
	if cost == (Hashing{}) {
		cost = owasp
	}
	p := &passwords{
		params: &argon2id.Params{Memory: cost.MemoryKiB, Iterations: cost.Iterations, Parallelism: 1, SaltLength: 16, KeyLength: 32},
		slots:  make(chan struct{}, max(2, runtime.GOMAXPROCS(0))),
	}
	p.decoy, _ = argon2id.CreateHash("nobody has this password", p.params)
	return p
}

func (p *passwords) hash(ctx context.Context, password string) (string, error) {
	if err := p.enter(ctx); err != nil {
		return "", err
	}
	defer p.leave()
	h, err := argon2id.CreateHash(password, p.params)
	if err != nil {
		return "", fmt.Errorf("hashing a password: %w", err)
	}
	return h, nil
}

// matches compares a password with a stored hash; an empty hash is an account that does not exist.
func (p *passwords) matches(ctx context.Context, password, hash string) (bool, error) {
	if err := p.enter(ctx); err != nil {
		return false, err
	}
	defer p.leave()
	known := hash != ""
	if !known {
		hash = p.decoy
	}
	if len(password) > MaxPassword { // nobody has one, and saying so at once would tell known accounts from others
		password, known = password[:MaxPassword], false
	}
	ok, err := argon2id.ComparePasswordAndHash(password, hash)
	if err != nil {
		return false, fmt.Errorf("checking a password: %w", err)
	}
	return ok && known, nil
}

func (p *passwords) enter(ctx context.Context) error {
	select {
	case p.slots <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (p *passwords) leave() { <-p.slots }
