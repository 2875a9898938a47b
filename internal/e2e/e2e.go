// Package e2e runs the built binary as a person, an app and an attacker would: a real Chromium, the go-sdk client,
// plain HTTP, on SQLite and on Postgres. The tests have the build tag e2e; `make e2e` builds, installs and runs what
// they need, and leaves what a person saw in screenshots/.
package e2e
