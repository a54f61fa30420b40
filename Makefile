# Everything that a newcomer or CI needs. `make demo` and `make test` set up their own environment in .venv.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
TESTS := test test-0 test-figures test-simulations test-all test-seconds test-kernels

.PHONY: help demo $(TESTS) test-lowest test-spark lint types pages docs notebooks bench bench-shapes bench-peers clean

help:
	@echo "make demo      report on the bundled runs; its path is printed last"
	@echo "make test      units, references and one case of everything else (3 minutes on 2 cores)"
	@echo "make test-0    units and messages only (45 seconds)"
	@echo "make test-figures      figures, pages, examples, thin designs in full"
	@echo "make test-simulations  long simulations"
	@echo "make test-all  all of these"
	@echo "make test-seconds      all but simulations, and who takes long is written to tests/seconds.json"
	@echo "make test-kernels  the parts with numbers and printed output on another kernel of OpenBLAS"
	@echo "make test-lowest  units and references with the lowest versions that pyproject.toml declares"
	@echo "make test-spark  tables of Spark (needs Java; SPARK_MASTER=local[2])"
	@echo "make lint      ruff check and format"
	@echo "make types     mypy"
	@echo "make pages     run the pages; renew the outputs and figures that they show (ARGS=\"gate.md power.md\")"
	@echo "make docs      the site, strictly, in build/site"
	@echo "make notebooks the pages as notebooks that were run, in build/notebooks (ARGS=\"case-priorband.md\")"
	@echo "make bench     speed, in turns with the peers that are installed (ARGS=--quick takes a minute)"
	@echo "make bench-shapes  seconds and memory of public calls on tables of every shape (ARGS=\"--only seed_effect\")"
	@echo "make bench-peers  install the Python packages that make bench compares with in .venv-peers"

$(STAMP): pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".[dev]"
	@touch $(STAMP)

demo: $(STAMP)
	@mkdir -p out
	@$(BIN)/lmemtest demo --output out/demo.html

# Tests by level: conftest.py says which there are. Two workers for two cores; WORKERS=1 for one.
WORKERS ?= 2
# Each works through its own half, so that what tests of a file share is made once, and takes over from the other at the end.
PYTEST := $(BIN)/python -m pytest -n $(WORKERS) --dist worksteal
# Assertions that pytest has rewritten are kept from session to session.
$(TESTS): export PYTHONDONTWRITEBYTECODE =
# Threads of the workers' BLAS would only get into each other's way.
$(TESTS): export OMP_NUM_THREADS ?= 1
$(TESTS): export OPENBLAS_NUM_THREADS ?= 1

test: $(STAMP)
	$(PYTEST) -m "level0 or level1"

test-0: $(STAMP)
	$(PYTEST) -m level0

test-figures: $(STAMP)
	$(PYTEST) -m level2

test-simulations: $(STAMP)
	$(PYTEST) -m level3

test-seconds: $(STAMP)
	$(PYTEST) -m "level0 or level1 or level2" --record-seconds

test-all: $(STAMP)
	$(PYTEST) -m "level0 or level1 or level2 or level3"

# Whatever is computed, ordered or printed must not depend on the processor: doctests, pages, and the parts with
# numbers run once more on the oldest kernel of OpenBLAS, which every x86 processor has (others ignore the name).
test-kernels: export OPENBLAS_CORETYPE = Nehalem
test-kernels: $(STAMP)
	$(PYTEST) lmemtest tests/contract/test_docs.py -k "not an_example"
	$(PYTEST) -m "level0 or level1" tests/lmm/engine tests/lmm tests/kernels tests/report tests/test_dispersion.py \
		tests/test_model.py tests/test_priorband.py tests/test_rounding.py tests/test_table.py

# The lowest versions of everything that is imported, in an environment of their own. Newer tools of the tests are no
# part of the claim; Python is the one that is there, and has wheels of these versions up to 3.12. The click of today
# warns typers before 0.26 of a name that click 9 will not have.
LOWEST := .venv-lowest
$(LOWEST)/.installed: pyproject.toml tests/lowest.txt
	$(PYTHON) -m venv $(LOWEST)
	$(LOWEST)/bin/python -m pip install --quiet --disable-pip-version-check --constraint tests/lowest.txt --editable ".[test]"
	@touch $@

test-lowest: export OMP_NUM_THREADS ?= 1
test-lowest: export OPENBLAS_NUM_THREADS ?= 1
test-lowest: $(LOWEST)/.installed
	$(LOWEST)/bin/python -m pytest -n $(WORKERS) -m "level0 or level1" -W "ignore:'click.utils.:DeprecationWarning" $(ARGS)

# Spark brings Java processes of its own, so it has an environment of its own, too. A cluster on one machine, with
# executors that are processes of their own, is SPARK_MASTER="local-cluster[2,1,1024]".
SPARK := .venv-spark
SPARK_MASTER ?= local[2]
$(SPARK)/.installed: pyproject.toml
	$(PYTHON) -m venv $(SPARK)
	$(SPARK)/bin/python -m pip install --quiet --disable-pip-version-check --editable ".[test,spark]"
	@touch $@

test-spark: export SPARK_MASTER := $(SPARK_MASTER)
test-spark: $(SPARK)/.installed
	$(SPARK)/bin/python -m pytest tests/bench/data/test_backends.py -v -W ignore::FutureWarning -W ignore::ResourceWarning \
		-W ignore::DeprecationWarning

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(STAMP)
	$(BIN)/mypy

pages: $(STAMP)
	$(BIN)/python tests/contract/test_generated_pages.py
	$(BIN)/python tests/contract/test_docs.py $(ARGS)

# Figures are drawn, so one thread of BLAS is enough; a warning is an error, and all of them are listed.
docs: export OMP_NUM_THREADS ?= 1
docs: export OPENBLAS_NUM_THREADS ?= 1
docs: $(STAMP)
	$(BIN)/python -m sphinx -W --keep-going -n -q -b html docs build/site
	@echo build/site/index.html

notebooks: $(STAMP)
	$(BIN)/python docs/notebooks.py $(ARGS)

bench: $(STAMP)
	@$(BIN)/python tests/benchmarks/suite.py $(ARGS)

bench-shapes: $(STAMP)
	@OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python tests/benchmarks/shapes.py $(ARGS)

# Packages that `make bench` compares with, in an environment of their own.
bench-peers:
	$(PYTHON) -m venv .venv-peers
	.venv-peers/bin/python -m pip install --quiet --disable-pip-version-check -r tests/benchmarks/peers.txt

clean:
	rm -rf $(VENV) $(LOWEST) $(SPARK) out build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
