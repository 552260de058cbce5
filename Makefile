# The everyday targets. Long runs, benchmarks and releases are in lab/lab.mk: make lab lists them.
SHELL := /bin/bash
GO ?= go
BIN := $(CURDIR)/bin
# MODULES are the directories that go.work lists. In go commands the pattern "work" stands for the
# packages of all of them. lab/testenv is a module beside them, with its own go.work.
MODULES := $(shell awk '/^\t\./ {print $$1}' go.work)
unexport GOWORK

.DEFAULT_GOAL := help
include lab/lab.mk
.PHONY: help lab test check lint simulations unit race quickstart cockpit-test stores

LIST = awk -F ':.*\#\# ' '/^[a-z-]+:.*\#\# / {printf "  %-20s %s\n", $$1, $$2}'
help: ## list the targets
	@$(LIST) Makefile

lab: ## list the targets of lab/lab.mk
	@$(LIST) lab/lab.mk

test: browser ## everything that must pass before a change lands; installs what it needs
	$(MAKE) stores & $(MAKE) check simulations; r=$$?; wait $$! && exit $$r # stores mostly waits
	$(MAKE) unit quickstart cockpit-test

check: lint proto-check docs-check ## formatting, vet, linters, generated code, documents
	@test -z "$$(gofmt -l $$(git ls-files '*.go'))" || { gofmt -l $$(git ls-files '*.go'); echo 'not formatted: run gofmt -w'; exit 1; }
	@set -e; for m in $(MODULES); do (cd $$m && GOWORK=off $(GO) vet -tags stores,browser ./... && $(GO) mod tidy -diff) || { echo "in module $$m"; exit 1; }; done

lint: $(BIN)/golangci-lint ## golangci-lint
	$(BIN)/golangci-lint run --timeout 30m --build-tags stores,browser $(MODULES:%=%/...)
	cd lab/testenv && $(GO) vet . && $(BIN)/golangci-lint run --timeout 30m .

# Packages without goroutines, mostly simulations, and tests that start processes: the race detector
# finds nothing there, or looks only at the tests' own half. With the tag long they play more histories.
SEQUENTIAL := ./crdt ./docs ./internal/arrows ./internal/causal ./internal/pmap \
	./distributeddata/internal/core ./distributeddata/internal/expiry ./distributeddata/internal/sketch \
	./coordination/internal/core ./singleton/internal/core ./sharding/internal/core ./node/internal/arbiter
PROCESSES := ./lab/hostile ./lab/...test ./examples/quickstart
TEST := $(GO) test -vet=off -timeout 20m# check vets
simulations: ## the packages without goroutines, with long histories
	$(TEST) -tags long $(SEQUENTIAL)

unit: simulations ## every test once, with the race detector where it can find something
	$(TEST) -p 3 $(PROCESSES) # which mostly wait
	$(TEST) ./distributeddata -run '^TestCost_'
	$(TEST) -race $$($(GO) list work | grep -vxF "$$($(GO) list $(SEQUENTIAL) $(PROCESSES))")

race: ## every test with the race detector, nightly
	$(GO) test -race -timeout 60m work

quickstart: ## the main example, with each fault, compared with a fold of its events
	$(GO) build -o $(BIN)/quickstart ./examples/quickstart
	for kill in none any clerk partition freeze; do $(BIN)/quickstart -kill $$kill || exit 1; done
	$(BIN)/quickstart -tls
	$(BIN)/quickstart -durable

cockpit-test: browser ## the cockpit's page in a headless Chromium over the quickstart: about a minute; PICTURES=1 takes those of the docs
	$(GO) test -tags browser ./lab/browsertest -count=1 -v -args -chromium $(CHROMIUM) -vnu $(VNU) $(if $(PICTURES),-pictures $(CURDIR)/docs/pictures)

stores: ## every lease store on its real server, which is built or installed; the first time takes minutes
	cd lab/testenv && $(GO) run .
