# Every target works alone on a fresh clone: it makes .venv, installs the project and runs.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: demo test lint types calibrate bench fuzz docs release clean

demo: .venv/.installed
	$(BIN)/policyspace demo

# Each worker takes a half of the files, so that what a file makes and compiles is made once, and helps the other at the end.
test: .venv/.installed-dev lint types
	$(BIN)/pytest -n 2 --dist worksteal

lint: .venv/.installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: .venv/.installed-dev
	$(BIN)/mypy

# The long statistical checks: type-I error and power over many simulated data sets, and the tables that docs/ shows.
calibrate: .venv/.installed-dev
	$(BIN)/pytest -n 2 -m slow
	$(BIN)/python -m benchmarks.calibration
	$(BIN)/python -m benchmarks.honesty
	$(BIN)/python -m benchmarks.drivers
	$(BIN)/policyspace reproduce gridworld continuous-gridworld minigolf-features
	$(BIN)/python -m benchmarks.designs

# Ratios against statsmodels, scikit-learn and, where it is installed, glum, measured in the same run.
bench: .venv/.installed-dev
	$(BIN)/python -m benchmarks

# Hostile input for a given time, then processes killed at random moments; what fails is kept in tests/fuzz/found.
SECONDS ?= 600
KILLS ?= 30
fuzz: .venv/.installed-dev
	nice $(BIN)/python -m tests.fuzz --seconds $(SECONDS) --kills $(KILLS)

# The pages as a site, served while you write; `make docs SITE=build` writes them into site/ instead.
SITE ?= serve
docs: .venv/.installed-dev
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs $(SITE)

# A wheel and a source archive in dist/, tried in an empty environment.
release: .venv/.installed-dev
	rm -rf dist
	$(BIN)/python -m build
	$(BIN)/python release/try_wheel.py dist/*.whl

.venv/bin/python:
	$(PYTHON) -m venv .venv

.venv/.installed: pyproject.toml | .venv/bin/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable .
	touch $@

.venv/.installed-dev: pyproject.toml | .venv/bin/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	touch $@ .venv/.installed

clean:
	rm -rf .venv .pytest_cache .mypy_cache .ruff_cache .hypothesis dist site
