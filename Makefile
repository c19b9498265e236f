# `make demo` and `make test` set everything up by themselves; plain `make` is lint plus test.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
# One worker per core, at most eight: each takes up to a gigabyte. A file's tests stay in one worker.
PARALLEL ?= -n logical --maxprocesses 8 --dist loadfile --no-loadscope-reorder
# Tests start hundreds of processes; each would translate its modules anew.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: all setup demo test lint style types unit wheel wheel-test installed offline bench docs manual clean
.DEFAULT_GOAL := all

all: test

setup: $(STAMP)

$(STAMP): requirements.txt pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "louver needs Python 3.11 or newer; set PYTHON=python3.11")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile -r requirements.txt
	@$(BIN)/python -m compileall -qq -j 0 $(VENV)/lib || true   # what pip does, on all cores; not every file is for this Python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $(STAMP)

demo: $(STAMP)
	$(BIN)/louver demo

# Types and the wheel take one core for a minute, so they are made beside the tests.
test: style
	$(MAKE) --jobs types unit wheel
	$(MAKE) --jobs installed offline

lint: style types

style: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(STAMP)
	$(BIN)/mypy
	PYTHONPATH=src $(BIN)/lint-imports --no-cache

# Every verb in a process of its own is left to the wheel.
unit: $(STAMP)
	$(BIN)/python -m pytest $(PARALLEL) --ignore=tests/cli/test_installed.py

# Every verb once against the built wheel (made from the sdist) instead of the source tree, then the wheel alone without a network;
# its kernels are those that the other tests compiled.
wheel-test: wheel
	$(MAKE) --jobs installed offline

wheel: $(STAMP)
	rm -rf build/wheel && mkdir -p build/wheel
	$(BIN)/python -m build --quiet --no-isolation --outdir build/wheel
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --target build/wheel/site build/wheel/*.whl

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
