# Two commands matter to a new user: `make demo` and `make test`. `make help` lists the rest.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check
RUN_STAMP := $(VENV)/.run-installed
STAMP := $(VENV)/.installed
SIM_SEEDS ?= 1000
SIM_FIRST ?= 0
# What a rollout and a history promise is simulated without a hub too, in a thousandth of the time.
SIM_TESTS ?= tests/sim tests/unit/logic/fleet/rollout/test_assign.py tests/unit/logic/fleet/history/test_fold.py
# A simulation never waits: one for each core.
SIM_WORKERS ?= $(shell nproc 2>/dev/null || echo 2)
AGREEMENT_EXAMPLES ?= 500
TEST_ARGS ?=
# Two more than cores: half of the time end-to-end tests wait for processes they started.
TEST_WORKERS ?= $(shell expr $$(nproc 2>/dev/null || echo 2) + 2)

.DEFAULT_GOAL := help
.PHONY: help install demo test collect check fmt sim e2e bench lock docs manifests sbom vendor pictures

help: ## Show what can be made
	@awk -F':.*## ' '/^[a-z0-9]+:.*## /{printf "  make %-9s %s\n", $$1, $$2}' Makefile

# Two stamps, one on the other: who only runs skerry gets nothing that is for its developers, and who
# develops it adds to that. Both locks agree on every version, so the second step replaces nothing.
$(RUN_STAMP): requirements/run.txt requirements/build.txt pyproject.toml
	@command -v $(PYTHON) >/dev/null || { echo "skerry needs Python 3.11 or newer, and $(PYTHON) was not found: install it, or name one: make $(MAKECMDGOALS) PYTHON=/path/to/python3" >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "skerry needs Python 3.11 or newer; this is " + sys.version.split()[0])'
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { echo "$(PYTHON) cannot make virtual environments: install its venv module (on Debian and Ubuntu: apt install python3-venv)" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(PIP) --require-hashes -r requirements/run.txt -r requirements/build.txt
	$(PIP) --no-deps --no-build-isolation -e .
	$(BIN)/python -m compileall -q src
	@touch $@

$(STAMP): requirements/dev.txt $(RUN_STAMP)
	$(PIP) --require-hashes -r requirements/dev.txt
	@touch $@

$(VENV)/.packages: tests/packages.txt tests/install-packages | $(STAMP)
	@tests/install-packages
	@touch $@

# What an image is built of, fetched with the rest: the test that builds one has no network. For the
# interpreter of Debian's packages, which is the base there.
$(VENV)/wheels/.complete: requirements/base.txt requirements/build.txt | $(VENV)/.packages
	@if [ -x /usr/bin/python3 ]; then rm -rf $(@D); $(BIN)/python -m pip --python /usr/bin/python3 --quiet --disable-pip-version-check download --require-hashes --dest $(@D) -r requirements/base.txt -r requirements/build.txt; fi
	@mkdir -p $(@D) && touch $@

install: $(RUN_STAMP) ## Set up .venv with the skerry command

demo: $(RUN_STAMP) ## Play the example scenario (ONCE=1 tears down and exits; PORTS="8081 8082 8083")
	$(BIN)/skerry demo $(if $(ONCE),--once,) $(if $(PORTS),--ports $(PORTS),)

# What one worker has compiled the others need not.
test collect sim e2e: export PYTHONDONTWRITEBYTECODE =

test: $(STAMP) $(VENV)/.packages $(VENV)/wheels/.complete ## Run every test
	$(BIN)/python -m pytest -q -n $(TEST_WORKERS) --dist worksteal --timeout 300 $(TEST_ARGS)

collect: $(STAMP) $(VENV)/.packages $(VENV)/wheels/.complete ## Compile the tests, and see that all of them load
	@$(BIN)/python -m pytest --collect-only -qq > $(VENV)/collected || { tail -n 60 $(VENV)/collected; exit 1; }

check: $(STAMP) ## Format, lint, types, import contracts and retired words
	$(BIN)/ruff format --check src tests bench requirements
	$(BIN)/ruff check src tests bench requirements
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python requirements/words.py

fmt: $(STAMP) ## Format and sort imports
	$(BIN)/ruff format src tests bench requirements
	$(BIN)/ruff check --fix-only --quiet src tests bench requirements

sim: $(STAMP) ## Run the simulation over many seeds (SIM_SEEDS=1000, SIM_FIRST=0), histories of edges and queries, and decisions over many clusters
	SKERRY_SIM_SEEDS=$(SIM_SEEDS) SKERRY_SIM_FIRST=$(SIM_FIRST) $(BIN)/python -m pytest -q -n $(SIM_WORKERS) --dist worksteal --timeout 600 $(SIM_TESTS)
	SKERRY_HISTORIES=$(SIM_SEEDS) $(BIN)/python -m pytest -q --timeout 3000 tests/unit/logic/fleet/console tests/unit/logic/fleet/query/test_tables.py
	SKERRY_AGREEMENT_EXAMPLES=$(AGREEMENT_EXAMPLES) $(BIN)/python -m pytest -q tests/unit/scheduler -k agreement

e2e: $(STAMP) $(VENV)/.packages $(VENV)/wheels/.complete ## Run only the end-to-end tests
	$(BIN)/python -m pytest -q tests/e2e

bench: $(STAMP) ## Run the benchmarks; BENCH_ARGS="--peer-kubeconfig F" adds a peer
	$(BIN)/python -m bench $(BENCH_ARGS)

docs: $(RUN_STAMP) ## Regenerate the reference pages that come from code
	$(BIN)/skerry docs --write docs/reference
	$(BIN)/python docs/rooms.py --write

manifests: $(STAMP) ## Render config/ from the code, and deploy/kubernetes from the chart
	$(BIN)/skerry manifests --write config
	$(BIN)/python deploy/render.py

sbom: $(RUN_STAMP) ## Write a bill of materials of the locked dependencies to dist/skerry.cdx.json
	$(BIN)/python requirements/sbom.py requirements/run.txt dist/skerry.cdx.json

vendor: $(STAMP) ## Fetch the JavaScript modules of the console at their pinned digests (needs npm)
	$(BIN)/python requirements/vendor.py

pictures: $(STAMP) $(VENV)/.packages ## Take the pictures of docs/pictures, of a real console
	SKERRY_PICTURES=docs/pictures $(BIN)/python -m pytest -q tests/browser -k picture

# The lock of everything is made first and holds for the others: an extra is never another version.
LOCK := uv pip compile --quiet --generate-hashes --no-emit-index-url --no-header --universal --python-version 3.11
lock: ## Re-lock the dependencies (needs uv)
	$(LOCK) pyproject.toml --extra all requirements/build.in requirements/dev.in -o requirements/dev.txt
	$(LOCK) -c requirements/dev.txt pyproject.toml -o requirements/base.txt
	$(LOCK) -c requirements/dev.txt pyproject.toml --extra hub -o requirements/hub.txt
	$(LOCK) -c requirements/dev.txt pyproject.toml --extra scheduler -o requirements/scheduler.txt
	$(LOCK) -c requirements/dev.txt pyproject.toml --extra edge -o requirements/edge.txt
	$(LOCK) -c requirements/dev.txt pyproject.toml --extra all -o requirements/run.txt
	$(LOCK) -c requirements/dev.txt requirements/build.in -o requirements/build.txt
