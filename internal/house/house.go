// Package house holds the house rules that a machine can check. They are tests: `go test ./internal/house`.
// docs/architecture.md has the rules in words, and the reasons.
package house
