# `make demo` and `make test` set everything up by themselves; plain `make` is lint plus test.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.PHONY: all setup demo test lint unit wheel-test bench docs clean
.DEFAULT_GOAL := all

all: test

setup: $(STAMP)

$(STAMP): requirements.txt pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "louver needs Python 3.11 or newer; set PYTHON=python3.11")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $(STAMP)

demo: $(STAMP)
	$(BIN)/louver demo

test: lint unit wheel-test

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	PYTHONPATH=src $(BIN)/lint-imports --no-cache

unit: $(STAMP)
	$(BIN)/python -m pytest

# The tests that drive the installed command, against the built wheel instead of the source tree.
wheel-test: $(STAMP)
	rm -rf build/wheel && mkdir -p build/wheel
	$(BIN)/python -m build --quiet --wheel --no-isolation --outdir build/wheel
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --target build/wheel/site build/wheel/*.whl
	LOUVER_SITE=$(CURDIR)/build/wheel/site $(BIN)/python -m pytest tests/cli --ignore=tests/cli/test_docs.py --ignore=tests/cli/test_readme.py --ignore=tests/cli/test_install.py

bench: $(STAMP)
	for script in benchmarks/*.py; do $(BIN)/python $$script || exit 1; done

# The reference of the command line and its JSON, from the program itself.
docs: $(STAMP)
	$(BIN)/python docs/generate.py

clean:
	rm -rf $(VENV) build dist demo-output
