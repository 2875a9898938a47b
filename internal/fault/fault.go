// Package fault has the one error type that may reach the outside. Anything else that a handler returns is an
// internal error: the outside gets the request id, the log gets the cause.
package fault

import (
	"errors"
	"fmt"
	"net/http"
)

// Code tells a program what went wrong. The list is a contract with clients: codes are added, never renamed.
type Code string

const (
	InvalidRequest       Code = "invalid_request"
	Forbidden            Code = "forbidden"
	NotFound             Code = "not_found"
	ConfirmationRequired Code = "confirmation_required"
	Declined             Code = "declined"
	IdempotencyConflict  Code = "idempotency_conflict"
	ResultTooLarge       Code = "result_too_large"
	Timeout              Code = "timeout"
	Unauthorized         Code = "unauthorized"
	InsufficientScope    Code = "insufficient_scope"
	RateLimited          Code = "rate_limited"
	Unavailable          Code = "temporarily_unavailable"
	Internal             Code = "internal_error"
)

// Error is a refusal that its reader can act on. Message ends with the next step and never carries a secret, a
// phone number or the text of a message.
type Error struct {
	Code    Code
	Message string
	Details map[string]any // optional, for programs
}

func (e *Error) Error() string { return string(e.Code) + ": " + e.Message }

// New makes an Error; the arguments are those of fmt.Sprintf.
func New(code Code, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...)}
}

// With adds one detail and returns the error.
func (e *Error) With(key string, value any) *Error {
	if e.Details == nil {
		e.Details = map[string]any{}
	}
	e.Details[key] = value
	return e
}

// Body is the wire form of an error in tool results and JSON answers.
type Body struct {
	Error struct {
		Code    Code           `json:"code"`
		Message string         `json:"message"`
		Details map[string]any `json:"details,omitempty"`
	} `json:"error"`
}

// Body returns the wire form.
func (e *Error) Body() Body {
	var b Body
	b.Error.Code, b.Error.Message, b.Error.Details = e.Code, e.Message, e.Details
	return b
}

// Of finds the Error in err's chain. ok is false for an internal error, and then the returned Error is the one
// to show: it names the request and nothing else.
func Of(err error, request string) (e *Error, ok bool) {
	if errors.As(err, &e) {
		return e, true
	}
	return New(Internal, "Something went wrong on the server. Try again, and if it keeps failing, give the operator the request id.").With("requestId", request), false
}

// Is reports whether err carries the code.
func Is(err error, code Code) bool {
	var e *Error
	return errors.As(err, &e) && e.Code == code
}

// Status is the HTTP status that goes with a code where the answer is plain HTTP rather than a tool result.
func (c Code) Status() int {
	switch c {
	case Unauthorized:
		return http.StatusUnauthorized
	case Forbidden, InsufficientScope, Declined:
		return http.StatusForbidden
	case NotFound:
		return http.StatusNotFound
	case IdempotencyConflict, ConfirmationRequired:
		return http.StatusConflict
	case RateLimited:
		return http.StatusTooManyRequests
	case Unavailable, Timeout:
		return http.StatusServiceUnavailable
	case Internal:
		return http.StatusInternalServerError
	}
	return http.StatusBadRequest
}
