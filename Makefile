# `make demo`, `make test` and `make test-all` set everything up by themselves; plain `make` is `make test`.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check
RUNTIME := $(VENV)/.runtime
STAMP := $(VENV)/.development
# One worker per core, at most eight: each takes up to a gigabyte. A file's tests stay in one worker; files with many tests come
# first, so that the workers end together.
PARALLEL ?= -n logical --maxprocesses 8 --dist loadfile
# Tests start hundreds of processes; each would translate its modules anew.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: setup demo test test-all lint style types quick long smoke wheel wheel-test installed offline bench docs manual clean
.DEFAULT_GOAL := test

setup: $(STAMP)

$(RUNTIME): requirements.txt pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "louver needs Python 3.11 or newer; set PYTHON=python3.11")'
	@echo "Installing what louver runs on into $(VENV), once: about a minute."
	@$(PYTHON) -m venv $(VENV)
	@$(PIP) install --quiet --no-compile -r requirements.txt
	@$(BIN)/python -m compileall -qq -j 0 -x '/tests/' $(VENV)/lib || true   # what pip does, on all cores; not every file is for this Python
	@$(PIP) install --quiet --no-deps --no-build-isolation -e .
	@touch $(RUNTIME)

$(STAMP): $(RUNTIME) requirements-dev.txt
	@echo "Installing what tests and tools need into $(VENV), once: about a minute."
	@$(PIP) install --quiet --no-compile -r requirements-dev.txt
	@touch $(STAMP)

demo: $(RUNTIME)
	$(BIN)/louver demo

# Five minutes on two cores, enough to trust a change: lint, types, import contracts, every verb and page once, and all tests
# that are not marked long. The demo compiles kernels on one core while packages are installed on the other.
test:
	$(MAKE) --jobs smoke style types
	$(MAKE) quick

# Everything: after `make test`, the tests marked long, then every verb against the wheel, and the wheel alone without a network.
test-all: test
	$(MAKE) --jobs long wheel
	$(MAKE) --jobs installed offline

lint: style types

style: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(STAMP)
	$(BIN)/mypy
	PYTHONPATH=src $(BIN)/lint-imports --no-cache

# Every verb once, as somebody who installed only what louver runs on.
smoke: $(RUNTIME)
	$(BIN)/louver demo --seconds 1 --out build/smoke >/dev/null

# Every verb in a process of its own is left to the wheel.
quick: $(STAMP)
	$(BIN)/python -m pytest $(PARALLEL) -m "not long"

long: $(STAMP)
	$(BIN)/python -m pytest $(PARALLEL) -m long --ignore=src --ignore=tests/cli/test_installed.py --ignore=tests/cli/test_imports.py

wheel: $(STAMP)
	rm -rf build/wheel && mkdir -p build/wheel
	$(BIN)/python -m build --quiet --no-isolation --outdir build/wheel
	$(PIP) install --quiet --no-deps --target build/wheel/site build/wheel/*.whl

# The wheel is made from the sdist; its kernels are those that the tests compiled.
wheel-test: wheel
	$(MAKE) --jobs installed offline

installed:
	$(BIN)/python tests/compiling.py src build/wheel/site
	LOUVER_SITE=$(CURDIR)/build/wheel/site $(BIN)/python -m pytest $(PARALLEL) tests/cli/test_installed.py tests/cli/test_imports.py

offline:
	rm -rf build/wheel/alone
	$(BIN)/python tests/offline.py build/wheel/*.whl build/wheel/alone

bench: $(STAMP)
	for script in benchmarks/*.py; do $(BIN)/python $$script || exit 1; done

# The reference of the command line and its JSON, from the program itself.
docs: $(STAMP)
	$(BIN)/python docs/generate.py

# The manual as pages to open: build/manual/index.html.
manual: $(STAMP)
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict
	@echo build/manual/index.html

clean:
	rm -rf $(VENV) build dist demo-output
