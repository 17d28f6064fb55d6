# make demo: decouple a known function and draw the result.  make test: everything that has to pass.
# make verify: claims about many draws, and the examples, which take minutes.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check

.PHONY: help demo test verify lint docs clean

help:
	@echo "make demo    decouple a known function and draw the result"
	@echo "make test    lint, types, tests, doctests, the code of pages, the site without its examples"
	@echo "make verify  claims about many draws, and the examples, which take minutes"
	@echo "make lint    lint and types only"
	@echo "make docs    the documentation site, its examples executed"
	@echo "make clean   remove what these leave behind, but not $(VENV)"

demo: $(VENV)/.installed-demo
	$(BIN)/unbraid demo

test: lint
	$(BIN)/python -m pytest -n auto --dist worksteal

verify: $(VENV)/.installed-dev
	$(BIN)/python -m pytest -m verify -n auto --dist worksteal tests

lint: $(VENV)/.installed-dev
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy

docs: $(VENV)/.installed-dev
	$(BIN)/python -m sphinx -W --keep-going -q -d build/doctrees docs build/docs
	@echo "The site is at build/docs/index.html"

clean:
	rm -rf build docs/gallery dist unbraid-demo .benchmarks .hypothesis .mypy_cache .pytest_cache .ruff_cache
	find src tests benchmarks examples -name __pycache__ -type d -prune -exec rm -rf {} +

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.installed-demo: pyproject.toml | $(BIN)/python
	$(PIP) -e ".[report]"
	@touch $@

$(VENV)/.installed-dev: pyproject.toml requirements-dev.txt | $(BIN)/python
	$(PIP) -e ".[report]" -r requirements-dev.txt
	@touch $@
