# Two commands matter to a new user: `make demo` and `make test`. `make help` lists the rest.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
SIM_SEEDS ?= 1000
AGREEMENT_EXAMPLES ?= 500
TEST_ARGS ?=
# One more than cores: a third of the time tests wait for processes they started.
TEST_WORKERS ?= $(shell expr $$(nproc 2>/dev/null || echo 2) + 1)

.DEFAULT_GOAL := help
.PHONY: help install demo test check fmt sim e2e bench lock docs sbom

help: ## Show what can be made
	@awk -F':.*## ' '/^[a-z0-9]+:.*## /{printf "  make %-8s %s\n", $$1, $$2}' Makefile

$(STAMP): requirements/dev.txt pyproject.toml
	@command -v $(PYTHON) >/dev/null || { echo "skerry needs Python 3.11 or newer, and $(PYTHON) was not found: install it, or name one: make $(MAKECMDGOALS) PYTHON=/path/to/python3" >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "skerry needs Python 3.11 or newer; this is " + sys.version.split()[0])'
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { echo "$(PYTHON) cannot make virtual environments: install its venv module (on Debian and Ubuntu: apt install python3-venv)" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/dev.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	$(BIN)/python -m compileall -q src
	@touch $(STAMP)

$(VENV)/.packages: tests/packages.txt tests/install-packages | $(STAMP)
	@tests/install-packages
	@touch $@

install: $(STAMP) ## Set up .venv with the skerry command

demo: $(STAMP) ## Play the example scenario (ONCE=1 tears down and exits; PORTS="8081 8082 8083")
	$(BIN)/skerry demo $(if $(ONCE),--once,) $(if $(PORTS),--ports $(PORTS),)

test: $(STAMP) $(VENV)/.packages ## Run every test
	$(BIN)/python -m pytest -q -n $(TEST_WORKERS) --dist worksteal --timeout 300 $(TEST_ARGS)

check: $(STAMP) ## Format, lint, types, import contracts and retired words
	$(BIN)/ruff format --check src tests bench requirements
	$(BIN)/ruff check src tests bench requirements
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python requirements/words.py

fmt: $(STAMP) ## Format and sort imports
	$(BIN)/ruff format src tests bench requirements
	$(BIN)/ruff check --fix-only --quiet src tests bench requirements

sim: $(STAMP) ## Run the simulation over many seeds (SIM_SEEDS=1000), and decisions over many clusters
	SKERRY_SIM_SEEDS=$(SIM_SEEDS) $(BIN)/python -m pytest -q tests/sim
	SKERRY_AGREEMENT_EXAMPLES=$(AGREEMENT_EXAMPLES) $(BIN)/python -m pytest -q tests/unit/scheduler -k agreement

e2e: $(STAMP) $(VENV)/.packages ## Run only the end-to-end tests
	$(BIN)/python -m pytest -q tests/e2e

bench: $(STAMP) ## Run the benchmarks; BENCH_ARGS="--peer-kubeconfig F" adds a peer
	$(BIN)/python -m bench $(BENCH_ARGS)

docs: $(STAMP) ## Regenerate the reference pages that come from code
	$(BIN)/skerry docs --write docs/reference
	$(BIN)/python docs/rooms.py --write

sbom: $(STAMP) ## Write a bill of materials of the locked dependencies to dist/skerry.cdx.json
	$(BIN)/python requirements/sbom.py requirements/run.txt dist/skerry.cdx.json

lock: ## Re-lock the dependencies (needs uv)
	uv pip compile --quiet --generate-hashes --no-emit-index-url --no-header --universal --python-version 3.11 pyproject.toml -o requirements/run.txt
	uv pip compile --quiet --generate-hashes --no-emit-index-url --no-header --universal --python-version 3.11 pyproject.toml requirements/dev.in -o requirements/dev.txt
