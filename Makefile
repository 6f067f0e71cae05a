# Every target works alone on a fresh clone: it makes .venv, installs the project and runs.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: demo test check house lint types test-core test-peers calibrate bench fuzz docs release clean

demo: .venv/.installed
	$(BIN)/policyspace demo

# Each worker takes a half of the files, so that what a file makes and compiles is made once, and helps the other at the end.
test: .venv/.installed-dev lint types
	$(BIN)/pytest -n 2 --dist worksteal

# What is looked at after every small change: the golden record, the public interface, the layers, the contract of tests.
check: .venv/.installed-dev
	$(BIN)/pytest -n 2 --dist worksteal -m quick

# The house in numbers: lines by room, and what makes code hard to read.
house:
	$(PYTHON) release/house.py

# The core alone, as `pip install policyspace` brings it: without JAX, Gymnasium and torch.
test-core: .venv-core/.installed
	.venv-core/bin/policyspace demo
	.venv-core/bin/pytest -n 2 $$($(PYTHON) release/house.py core-tests)

# Agents of other libraries, asked with the real library: minutes to install, so apart from `make test`.
test-peers: .venv-peers/.installed
	.venv-peers/bin/pytest tests/peers

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
	$(BIN)/python -m benchmarks.asking_pairs
	$(BIN)/python -m benchmarks.drivers
	$(BIN)/python -m benchmarks.asking_played
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

# Wheels and source archives of both distributions in dist/, each tried in an empty environment.
release: .venv/.installed-dev
	rm -rf dist
	$(BIN)/python -m build --outdir dist .
	$(BIN)/python -m build --outdir dist paper
	$(BIN)/python release/try_wheels.py dist

.venv/bin/python:
	$(PYTHON) -m venv .venv

.venv/.installed: pyproject.toml | .venv/bin/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable .
	touch $@

.venv/.installed-dev: pyproject.toml paper/pyproject.toml | .venv/bin/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]' --editable ./paper
	touch $@ .venv/.installed

.venv-core/.installed: pyproject.toml $(shell find src -name '*.py')
	$(PYTHON) -m venv .venv-core
	.venv-core/bin/python -m pip install --quiet --disable-pip-version-check . pytest pytest-xdist hypothesis
	touch $@

.venv-peers/.installed: pyproject.toml tests/peers/requirements.txt
	$(PYTHON) -m venv .venv-peers
	.venv-peers/bin/python -m pip install --quiet --disable-pip-version-check --requirement tests/peers/requirements.txt
	.venv-peers/bin/python -m pip install --quiet --disable-pip-version-check --editable '.[configure]'
	touch $@

clean:
	rm -rf .venv .venv-core .venv-peers .pytest_cache .mypy_cache .ruff_cache .hypothesis dist site
