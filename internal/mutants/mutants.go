// Package mutants asks whether the tests of the product's promises can fail: it plants one bug at a time, the kind that a
// hurried change makes, and requires that a test which is named beside it goes red. `make mutants` runs it, under the build
// tag prove. docs/security.md says which promise each of those tests keeps.
package mutants
