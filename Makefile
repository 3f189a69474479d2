PYTHON ?= python3
BIN := .venv/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt

.DEFAULT_GOAL := help
.PHONY: help tour test check fuzz bench docs dist clean

help:  ## this list
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z]+):.*## /  make \1\t/' | expand -t 16

tour: .venv/core  ## the guided run: two agents, one world, the map between them (three minutes)
	rm -rf runs/tour
	$(BIN)/jepatlas tour --out runs/tour

test: .venv/dev  ## all tests; what this machine cannot run is skipped with the reason
	$(BIN)/python -m pytest -n 2 --dist worksteal

check: .venv/dev  ## format, lint, types, import rules, fast tests
	$(BIN)/ruff format --check
	$(BIN)/ruff check
	$(BIN)/basedpyright
	$(BIN)/lint-imports
	$(BIN)/python -m pytest -q -n 2 -m "not slow"

fuzz: .venv/dev  ## mutated files for every reader, 20,000 of each
	JEPATLAS_FUZZ=20000 $(BIN)/python -m pytest -q tests/fuzz

bench: .venv/dev  ## timings side by side, as ratios; writes docs/benchmarks.md
	$(BIN)/python -m benchmarks --publish

docs: .venv/dev  ## the documentation, in docs/_build/index.html
	$(BIN)/sphinx-build --fail-on-warning --quiet docs docs/_build

dist: .venv/dev  ## wheel and source distribution, in dist
	$(BIN)/python -m build

clean:  ## remove the environment and everything built
	rm -rf .venv docs/_build dist

# Installed anew whenever the requirements change.
.venv/core: pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(PIP) -e .
	touch $@

.venv/dev: .venv/core
	$(PIP) -e '.[dev]'
	touch $@
