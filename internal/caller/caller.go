// Package caller says on whose behalf a request runs. A Caller is put into the context once, by the face that
// authenticated it, and read by everything below: the tenant fence, the permission check, the audit log.
package caller

import (
	"context"

	"switchboard/internal/scope"
)

// Kind is how a caller proved who they are.
type Kind string

const (
	Connection Kind = "connection" // an AI app with an access token
	Key        Kind = "key"        // a script with an API key
	Browser    Kind = "browser"    // a person with a signed-in browser
	System     Kind = "system"     // the operator at the command line
)

// Caller is a person in an organization, acting through something that can be revoked.
type Caller struct {
	Org        string // organization id; the tenant fence reads it
	Person     string // person id
	PersonName string // their name or address, as the audit log shows it
	Role       scope.Role

	Via  Kind
	ID   string // connection, key or browser session id
	Name string // client or key name, as the audit log shows it

	// Scopes is what the token or key holds, umbrellas expanded. The role caps it on every call, see tools/kit.
	Scopes scope.Set
	// Granted is what the grant behind a token holds, which a refresh may have narrowed; for a key it is Scopes.
	Granted scope.Set
}

// InBrowser is c at a page of ours; session is "" where there is none yet.
func (c Caller) InBrowser(session string) Caller {
	c.Via, c.ID, c.Name = Browser, session, "Web page"
	return c
}

// AtCommandLine is c, or nobody in particular, as the operator.
func (c Caller) AtCommandLine() Caller {
	c.Via, c.ID, c.Name = System, "", "Command line"
	return c
}

type callerKey struct{}

// With returns a context in which c is the caller.
func With(ctx context.Context, c Caller) context.Context {
	return context.WithValue(ctx, callerKey{}, c)
}

// From returns the caller, and false where nobody was authenticated.
func From(ctx context.Context) (Caller, bool) {
	c, ok := ctx.Value(callerKey{}).(Caller)
	return c, ok
}

type requestKey struct{}

// WithRequest returns a context that carries the id of the HTTP request, which log lines, audit records and
// internal errors repeat so that one can be found from the other.
func WithRequest(ctx context.Context, id string) context.Context {
	return context.WithValue(ctx, requestKey{}, id)
}

// Request returns the id of the HTTP request, "" outside of one.
func Request(ctx context.Context) string {
	id, _ := ctx.Value(requestKey{}).(string)
	return id
}
