# The commands of this repository: `make` alone lists them. Everything they install goes into .venv and .tools/bin.
STACK ?= dev
WORKERS ?= auto
DOCUMENTS ?= 100000
export PATH := $(CURDIR)/.tools/bin:$(PATH)
PYTEST := .venv/bin/python -m pytest -n $(WORKERS) --dist loadfile

.DEFAULT_GOAL := help
.PHONY: help setup pulumi helm tools rehearse test test-fast fuzz bench lint schema clean

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-10s %s\n", $$1, $$2}' Makefile

setup: .venv/.synced pulumi ## all that `make rehearse` needs: uv, .venv from uv.lock, and the Pulumi CLI

.venv/.synced: pyproject.toml uv.lock
	@python3 tools/install.py venv && touch $@

pulumi helm: ## the CLI from PATH, or the pinned one of tools/ built with Go into .tools/bin
	@python3 tools/install.py $@

tools: .venv/.synced pulumi helm ## every command that the tests drive

rehearse: setup ## a whole `pulumi up` of stacks/Pulumi.$(STACK).yaml against simulated providers; STACK=prod for the other
	@.venv/bin/dpd rehearse "$(STACK)"

test: lint tools ## the whole suite: lint, types, import directions, and every test
	$(PYTEST)

test-fast: .venv/.synced ## the tests that need no Pulumi CLI
	$(PYTEST) tests/pure tests/graph

fuzz: .venv/.synced ## what we hold of the CRD against the CRD itself on 100000 broken documents (ten minutes), and long property tests; DOCUMENTS=n
	.venv/bin/python -m tests.pure.crd.fuzz --documents $(DOCUMENTS)
	FUZZ_EXAMPLES=2000 $(PYTEST) --timeout=1800 tests/pure/crd tests/pure/endpoint

bench: .venv/.synced ## every measurement of bench/, one after the other; times and ratios are of this machine
	@status=0; for script in bench/*.py; do echo "== $$script"; .venv/bin/python "$$script" || status=1; done; exit $$status

lint: .venv/.synced ## ruff, pyright and the import directions
	.venv/bin/ruff check
	.venv/bin/ruff format --check
	.venv/bin/pyright
	.venv/bin/lint-imports --no-logo

schema: .venv/.synced ## write the JSON Schema that the stack files point to
	@.venv/bin/dpd schema > stacks/stack.schema.json

clean: ## remove what these commands made
	rm -rf .venv .tools .dpd .pytest_cache .ruff_cache .hypothesis .import_linter_cache
