# Everything that a newcomer or CI needs. `make demo` and `make test` set up their own environment in .venv.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.PHONY: help demo test test-all lint types figures bench clean

help:
	@echo "make demo      report on the bundled runs; its path is printed last"
	@echo "make test      the test suite (about 5 minutes on 2 cores)"
	@echo "make test-all  the same with long simulations"
	@echo "make lint      ruff check and format"
	@echo "make types     mypy"
	@echo "make figures   run the pages and save the figures that they show in docs/figures"
	@echo "make bench     speed, beside R where R is installed"

$(STAMP): pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".[dev]"
	@touch $(STAMP)

demo: $(STAMP)
	@mkdir -p out
	@$(BIN)/lmemtest demo --output out/demo.html

test: $(STAMP)
	$(BIN)/python -m pytest -n 2

test-all: $(STAMP)
	$(BIN)/python -m pytest -n 2 -m "slow or not slow"

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(STAMP)
	$(BIN)/mypy

figures: $(STAMP)
	$(BIN)/python tests/contract/test_docs.py

bench: $(STAMP)
	$(BIN)/python tests/benchmarks/bench_engine.py
	$(BIN)/python tests/benchmarks/bench_parts.py
	$(BIN)/python tests/benchmarks/bench_inference.py
	$(BIN)/python tests/benchmarks/bench_tuning.py
	$(BIN)/python tests/benchmarks/bench_tuning_curves.py

clean:
	rm -rf $(VENV) out build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
