# What a newcomer needs is `make run` and `make test`; README.md says more.

BIN := bin/switchboard

.PHONY: run build test unit lint e2e interop conformance fuzz mutants prove bench generate clean

run: ## run the server on SQLite in ./data
	@echo "Building Switchboard. The first time this takes a minute or two." >&2
	@$(MAKE) -s build
	@exec ./$(BIN) serve

build: ## build the binary: no cgo, no npm, no generators
	@CGO_ENABLED=0 go build -trimpath -ldflags='-s -w' -o $(BIN) ./cmd/switchboard

test: ## everything: lint, unit tests on SQLite and Postgres, a real browser, clients of other people, the official conformance suite; installs what it needs on Debian as root
	@.ci/test

unit: ## unit tests on SQLite
	go test ./...

lint: ## formatting, vet, staticcheck, generated files, house rules
	@.ci/test lint

e2e: ## the built binary, a real browser, real MCP clients
	@.ci/test e2e

interop: ## the clients of other people, from their registries; UPDATE=1 rewrites the table of what they can do
	@.ci/test interop

conformance: ## the official MCP conformance suite; UPDATE=1 rewrites the table of what it finds
	@.ci/test conformance

prove: mutants fuzz ## what takes longer than the tests may, and says whether they can be believed

mutants: ## plant one bug at a time where docs/security.md promises something, and see that its test goes red
	go test -tags prove -v -count=1 -timeout=60m ./internal/mutants

fuzz: ## every fuzz target for a minute, FUZZTIME=10s for less; they are found, not listed
	@.ci/fuzz

bench: ## the cost of a tool call and of a refresh, beside the floor they stand on
	go test -run='^$$' -bench=. -benchmem ./mcp ./auth/oauth

generate: ## rewrite what is derived: templates, docs, golden files
	go tool templ generate -path consent-ui
	UPDATE=1 go test ./...

clean:
	rm -rf bin .cache internal/e2e/interop/node_modules
