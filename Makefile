# The commands of this repository: `make` alone lists them. Everything they install goes into .venv and .tools/bin.
STACK ?= dev
WORKERS ?= auto
DOCUMENTS ?= 100000
export PATH := $(CURDIR)/.tools/bin:$(PATH)
PYTEST := .venv/bin/python -m pytest -n $(WORKERS) --dist loadfile

.DEFAULT_GOAL := help
.PHONY: help setup pulumi helm kube-apiserver etcd provider tools rehearse test test-full test-fast fuzz fuzz-api faults bench lint schema clean

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-10s %s\n", $$1, $$2}' Makefile

setup: .venv/.synced pulumi ## all that `make rehearse` needs: uv, .venv from uv.lock, and the Pulumi CLI

.venv/.synced: pyproject.toml uv.lock
	@python3 tools/install.py venv && touch $@

pulumi helm kube-apiserver etcd: ## the command from PATH, or the pinned one of tools/ built with Go into .tools/bin
	@python3 tools/install.py $@

provider: ## Pulumi's Kubernetes provider, built the same way; ten minutes on two cores
	@python3 tools/install.py pulumi-resource-kubernetes

tools: .venv/.synced pulumi helm kube-apiserver etcd ## every command that `make test` drives

rehearse: setup ## a whole `pulumi up` of stacks/Pulumi.$(STACK).yaml against simulated providers; STACK=prod for the other
	@.venv/bin/dpd rehearse "$(STACK)"

test: lint tools ## the whole suite: lint, types, import directions, and every test but those of `make test-full`
	$(PYTEST) --ignore=tests/kubernetes/provider

test-full: lint tools provider ## the same, and the real Kubernetes provider against a real API server
	$(PYTEST)

test-fast: .venv/.synced ## the tests that need no Pulumi CLI
	$(PYTEST) tests/pure tests/graph

fuzz: .venv/.synced ## what we hold of the CRD against the CRD itself on 100000 broken documents (ten minutes), and long property tests; DOCUMENTS=n
	.venv/bin/python -m tests.pure.crd.fuzz --documents $(DOCUMENTS)
	FUZZ_EXAMPLES=2000 $(PYTEST) --timeout=1800 tests/pure/crd tests/pure/endpoint

fuzz-api: .venv/.synced kube-apiserver etcd ## what we hold of the CRD against a real API server on DOCUMENTS broken documents
	.venv/bin/python -m tests.kubernetes.fuzz --documents $(DOCUMENTS)

faults: setup ## each resource failed, the engine killed at 20 points, each field's change planned, each stack taken down; 15 minutes on two cores
	@for stack in dev prod; do .venv/bin/dpd rehearse $$stack --fail-each || exit 1; done
	FAULTS=all KILLS=20 $(PYTEST) --timeout=1800 tests/engine/test_kills.py tests/engine/test_change_table.py tests/engine/test_take_down.py

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
