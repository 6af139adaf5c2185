# The tasks of the project. `make` alone prints them. Each makes what it needs, from a bare clone on.

VENV   := .venv
BIN    := $(VENV)/bin
# The environment is up to date while this file is newer than what it was made from.
STAMP  := $(VENV)/.made-from-lock
# PyFlink needs other versions of what Spark needs.
FLINK  := .flink
# PYTHON=/path/to/python3.12 chooses another interpreter.
PYTHON ?= $(shell for p in python3 python3.13 python3.12 python3.11 python; do \
            $$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && { echo $$p; break; }; done)

# Without what Python compiled the time before, each process that a test starts takes twice as long.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help env demo test fast on-spark whole check bench bench-live bench-flink test-matrix diagrams docs chaos format lock clean

help: ## print this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-11s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

env: $(STAMP) ## create .venv with the locked dependencies and windrow itself

$(STAMP): requirements.lock pyproject.toml
	@if [ -z "$(PYTHON)" ]; then \
	  echo "make: no Python >= 3.11 found on PATH; install one, or name it: make env PYTHON=/path/to/python3" >&2; \
	  exit 1; fi
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { \
	  echo "make: $(PYTHON) cannot create environments; install its venv module (Debian: apt install python3-venv)" >&2; \
	  exit 1; }
	$(PYTHON) -m venv $(VENV)
	@# PySpark comes as source, which older versions of pip would build in a way that they warn about.
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --use-pep517 \
	  --requirement requirements.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-build-isolation --no-deps --editable .
	@touch $@

demo: env ## run the demonstration
	$(BIN)/windrow demo

test: check fast on-spark ## what every change must pass: check, fast and on-spark, in under 20 minutes

fast: env ## the tests that do not start Spark, with few examples (under a minute)
	$(BIN)/python -m pytest -m "not spark and not slow" --few -n auto --dist worksteal

on-spark: env ## the tests that start Spark or are slow, with few examples
	@# Many tests start Spark, which is sooner done with Java's classes kept.
	$(BIN)/python -m windrow.cli.keep_java_classes
	$(BIN)/python -m pytest -m "(spark or slow) and not long" --few -n 2 --dist loadfile --no-loadscope-reorder

whole: check ## what a release must pass: every test with all examples, chaos, and the matrix; about three hours
	$(BIN)/python -m windrow.cli.keep_java_classes
	$(BIN)/python -m pytest -n 2 --dist loadfile --no-loadscope-reorder
	$(MAKE) chaos test-matrix

check: env ## lint, formatting, types
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy

bench: env ## time Windrow against its peers, in under 15 minutes; FULL=1 for hours, ONLY="NAME …"
	$(BIN)/python -m benchmarks $(if $(FULL),--full) $(ONLY:%=--only %)

bench-live: env ## time live queries against Spark's own streaming, in about ten minutes; ONLY="NAME …"
	$(BIN)/python -m benchmarks live $(ONLY:%=--only %)

bench-flink: env $(FLINK) ## the same, and Flink SQL, which gets an environment of its own
	$(BIN)/python -m benchmarks live --flink $(FLINK)/bin/python $(ONLY:%=--only %)

$(FLINK):
	$(PYTHON) -m venv $(FLINK)
	$(FLINK)/bin/python -m pip install --quiet --disable-pip-version-check apache-flink==2.3.0

chaos: env ## kill live queries a hundred times, in about half an hour; KILLS=20 for fewer
	$(BIN)/python -m tests.chaos --kills $(or $(KILLS),100)

test-matrix: env ## try other versions of PySpark, Python and sqlglot, in about half an hour; ONLY="PySpark 4.0"
	$(BIN)/python -m tests.matrix $(if $(ONLY),"$(ONLY)")

diagrams: env ## draw the railroad diagrams of the SQL reference from docs/sql/grammar.txt
	$(BIN)/python -m tests.grammar

docs: env ## build the site of the documentation into build/site; fails on a link that leads nowhere
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict --quiet
	@echo "open build/site/index.html"

format: env ## reformat, and repair what the linter can
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

lock: env ## regenerate requirements.lock from pyproject.toml
	$(BIN)/uv pip compile pyproject.toml --group dev --group bench --group docs --universal --generate-hashes --quiet --upgrade \
	  --custom-compile-command "make lock" --output-file requirements.lock

clean: ## remove .venv and everything that a run left behind
	rm -rf $(VENV) $(FLINK) build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis spark-warehouse metastore_db derby.log
	find src tests -name __pycache__ -type d -prune -exec rm -rf {} +
