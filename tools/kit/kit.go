// Package kit is what a domain defines tools with. A tool is one value, made by New from a Spec and a handler; the
// MCP entry, its schema, its annotations, the scopes that exist and the audit records all derive from that value.
//
//   - A Spec says what the tool is: its name, the scope it needs, what it does to the world.
//   - The input struct says what it takes: its fields and their tags are the schema (schema.go), and arguments that do
//     not fit it are refused in one sentence (validate.go).
//   - The Runner is the only way to run one (run.go): permission, validation, confirmation, the record that a call
//     started, the effect and its audit record, in that order, for every face. A call that one of the first three
//     stops did not start: its one record says refused.
package kit

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"reflect"
	"regexp"
	"strings"
	"time"

	"switchboard/internal/scope"
)

// Effect is what a tool does to the world at worst.
type Effect int

const (
	Read    Effect = iota // changes nothing
	Write                 // changes what can be changed back
	Destroy               // takes away what cannot be brought back
)

const defaultTimeout = 30 * time.Second

// MaxTimeout is the longest deadline that a tool may give its handler: hosts give up on a call after a minute. What goes
// on record whatever became of the call may then take lastingTime twice, 20 s more. Whoever bounds the time of a
// response or of a shutdown leaves room for both.
const MaxTimeout = 55 * time.Second

// Spec is what a tool says about itself. Faces, docs and consent pages are made from it and say nothing of their own.
type Spec struct {
	Name  string // a contract with clients: added, never renamed
	Title string // what a person reads on a button
	Scope string // the one scope that lets a caller run it

	Effect     Effect
	Spends     bool // costs the organization money
	Idempotent bool // the same arguments again change nothing more
	External   bool // reaches beyond our database, so the effect cannot be rolled back with it

	// Unconfirmed says why a tool that destroys or spends asks for no confirmation.
	Unconfirmed string

	// Doc says what the tool does and what it returns. Tool.Description adds the permission and the cost.
	Doc     string
	Example string // JSON: arguments that are valid

	// Timeout bounds the handler; 0 means 30 s, and MaxTimeout is the most.
	Timeout time.Duration
}

// Mutates reports whether a call changes anything. Such a call is on record as started before it runs, and as ok or
// failed when it ended; one that was not let in is on record as refused and nothing else. Reading leaves no record.
func (s Spec) Mutates() bool { return s.Effect != Read }

// Tool is a Spec with its handler. Only New makes one, so every Tool keeps the rules of check.
type Tool struct {
	spec  Spec
	input *input

	confirm func(in any) bool // nil when the tool asks for no confirmation
	preview func(ctx context.Context, in any) (Preview, error)
	decode  func(canonical []byte) (any, error)
	handle  func(ctx context.Context, in any) (any, error)
}

// Spec is a copy: what a tool is does not change after New.
func (t Tool) Spec() Spec { return t.spec }

// Name is what clients call the tool by, exactly and in lower case.
func (t Tool) Name() string { return t.spec.Name }

// Needs is a set, as the parts of auth that ask for it work on sets; a tool needs exactly one scope.
func (t Tool) Needs() scope.Set { return scope.Of(t.spec.Scope) }

// InputSchema is the schema as clients get it: the subset of JSON Schema that every known host accepts. The answer
// is the same bytes on every call.
func (t Tool) InputSchema() json.RawMessage { return t.input.portable }

// FullSchema is the schema that arguments are held against, with what some hosts would not accept.
func (t Tool) FullSchema() json.RawMessage { return t.input.full }

// Validate holds arguments to the schema, as a call does. The error is a *fault.Error that names the field.
func (t Tool) Validate(args json.RawMessage) error {
	_, err := t.input.read(args)
	return err
}

// Confirms reports whether the tool takes the argument `confirm` and may refuse to run without it.
func (t Tool) Confirms() bool { return t.confirm != nil }

// Description is what a model reads before it calls the tool: the Doc, the permission and the cost.
func (t Tool) Description() string {
	words := []string{strings.TrimSpace(t.spec.Doc), fmt.Sprintf("Needs the permission %s.", t.spec.Scope)}
	switch {
	case t.spec.Spends:
		words = append(words, "Spends money.")
	case t.spec.Effect == Read:
		words = append(words, "Changes nothing and spends nothing.")
	default:
		words = append(words, "Spends nothing.")
	}
	if t.spec.Effect == Destroy {
		words = append(words, "Cannot be undone.")
	}
	if t.Confirms() {
		words = append(words, "Ask the user first, then call with confirm: true.")
	}
	return strings.Join(words, " ")
}

// Preview is what a call would do, shown to the person who is asked to confirm it.
type Preview struct {
	Text     string
	Cost     int64  // in millionths of the currency unit, 0 when it costs nothing
	Currency string // ISO 4217, "" when it costs nothing
}

// Digest stands for a preview where two are compared.
func (p Preview) Digest() string {
	return digest(fmt.Appendf(nil, "%s\x00%d\x00%s", p.Currency, p.Cost, p.Text))
}

func digest(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// Option adds to a tool what depends on the type of its input.
type Option[In any] func(*Tool)

// Confirm makes calls for which when answers true need the argument `confirm: true`, which New adds to the schema.
// The refusal of a call without it shows the preview.
func Confirm[In any](when func(In) bool, preview func(context.Context, In) (Preview, error)) Option[In] {
	return func(t *Tool) {
		t.confirm = func(in any) bool { return when(in.(In)) }
		t.preview = func(ctx context.Context, in any) (Preview, error) { return preview(ctx, in.(In)) }
	}
}

// Always is the rule for Confirm of a tool that needs confirmation whatever its arguments.
func Always[In any](In) bool { return true }

// New ties a Spec to its handler and makes the schema from the input struct, see schema.go. It panics on a Spec that
// breaks a rule, so that a bad tool cannot start a server or pass a test.
func New[In, Out any](spec Spec, handler func(context.Context, In) (Out, error), options ...Option[In]) Tool {
	t := Tool{spec: spec}
	if t.spec.Timeout == 0 {
		t.spec.Timeout = defaultTimeout
	}
	for _, o := range options {
		o(&t)
	}
	t.decode = func(canonical []byte) (any, error) {
		var in In
		err := json.Unmarshal(canonical, &in)
		return in, err
	}
	t.handle = func(ctx context.Context, in any) (any, error) {
		out, err := handler(ctx, in.(In))
		if v := reflect.ValueOf(out); err == nil && v.Kind() == reflect.Pointer && v.IsNil() {
			return nil, fmt.Errorf("%s returned neither a result nor an error", spec.Name)
		}
		return out, err
	}
	err := checkResult(reflect.TypeFor[Out]())
	if err == nil {
		t.input, err = newInput[In](t.Confirms())
	}
	if err == nil {
		err = t.check()
	}
	if err != nil {
		panic(fmt.Sprintf("tool %q: %v", spec.Name, err))
	}
	return t
}

// checkResult holds the type of a result to what clients of every revision take: an object. Before 2026-07-28 a value
// could be nothing else.
func checkResult(t reflect.Type) error {
	value := t
	if value.Kind() == reflect.Pointer {
		value = value.Elem()
	}
	if value.Kind() != reflect.Struct && value.Kind() != reflect.Map || reflect.PointerTo(value).Implements(reflect.TypeFor[json.Marshaler]()) {
		return fmt.Errorf("its result must be a struct or a map that does not write its own JSON, not %s", t)
	}
	return nil
}

var nameRule = regexp.MustCompile(`^[a-z][a-z0-9_]{0,39}$`)

// check holds the Spec to the rules that every face relies on.
func (t Tool) check() error {
	s := t.spec
	if !nameRule.MatchString(s.Name) {
		return fmt.Errorf("the name must match %s", nameRule)
	}
	if s.Title == "" || s.Doc == "" {
		return fmt.Errorf("the title and the doc must say something")
	}
	if _, ok := scope.LeastRole(s.Scope); !ok {
		return fmt.Errorf("no role has the scope %q", s.Scope)
	}
	if s.Effect < Read || s.Effect > Destroy {
		return fmt.Errorf("unknown effect %d", s.Effect)
	}
	if !s.Mutates() && (s.Spends || t.Confirms()) {
		return fmt.Errorf("a tool that reads neither spends nor asks for confirmation")
	}
	if dangerous := s.Effect == Destroy || s.Spends; dangerous && !t.Confirms() && s.Unconfirmed == "" {
		return fmt.Errorf("it destroys or spends: add kit.Confirm, or say in Unconfirmed why not")
	}
	if s.Timeout < 0 || s.Timeout > MaxTimeout {
		return fmt.Errorf("the timeout must be at most %s", MaxTimeout)
	}
	if s.Example == "" {
		return fmt.Errorf("it has no example")
	}
	if err := t.Validate(json.RawMessage(s.Example)); err != nil {
		return fmt.Errorf("the example is not valid: %w", err)
	}
	return nil
}

// Area is a domain's public promise: all that faces ever see of it.
type Area struct {
	Name    string
	Toolset Toolset
	Tools   []Tool
}

// Toolset is a part of the catalogue that an app can be connected to alone, for hosts that work better with fewer
// tools.
type Toolset string

// The toolsets. A domain that belongs to none of them is in each.
const (
	Voice   Toolset = "voice"
	Testing Toolset = "testing"
	Mail    Toolset = "mail"
	Apps    Toolset = "apps"
)
