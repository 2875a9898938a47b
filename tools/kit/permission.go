package kit

import (
	"fmt"

	"switchboard/internal/caller"
	"switchboard/internal/fault"
	"switchboard/internal/scope"
)

// ScopeError says that the connection or key was not given what a tool needs. Asking a person for it can help, so a
// face answers it with a challenge that names the scopes.
type ScopeError struct {
	Missing scope.Set
}

func (e *ScopeError) Error() string { return "scopes missing: " + e.Missing.String() }

// Unwrap makes it a fault, for faces and records that have no challenge.
func (e *ScopeError) Unwrap() error {
	return fault.New(fault.InsufficientScope, "This connection was not given %s. Ask the user to approve it, or use a key that has it.", e.Missing).
		With("missing", e.Missing)
}

// Allowed decides whether a caller may run a tool. It is the only place where that is decided; others ask it. What
// is missing from the caller's scopes can be granted and is a *ScopeError; what the person's role lacks no consent
// can grant, so that is the fault forbidden.
func Allowed(c caller.Caller, s Spec) error {
	if c.Org == "" {
		return fault.New(fault.Unauthorized, "Sign in first.")
	}
	needs := scope.Of(s.Scope)
	if len(needs) == 0 {
		return fmt.Errorf("tool %q has no scope", s.Name)
	}
	if missing := needs.Minus(c.Scopes); len(missing) > 0 {
		return &ScopeError{Missing: missing}
	}
	for _, need := range needs {
		if c.Role.Allows(need) {
			continue
		}
		least, _ := scope.LeastRole(need)
		return fault.New(fault.Forbidden, "The role %s may not use %s. Ask the user to have an administrator do it, or to get the role %s.", c.Role, need, least)
	}
	return nil
}
