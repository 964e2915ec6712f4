# Every target makes the virtual environment .venv that it needs: Debian and Ubuntu refuse pip outside of one.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# Scripts that make a table or figure; make_*.py build shipped data from downloaded files and are run by hand.
EXPERIMENTS := $(filter-out experiments/make_%,$(wildcard experiments/*.py))

.PHONY: demo test lint audit mutants bench experiments experiments-quick tables

demo: $(VENV)/.plot
	$(BIN)/python -m onlineic demo

# One worker a core; a test that fails is easier to look at without -n.
test: $(VENV)/.test
	$(BIN)/python -m pytest -n auto

lint: $(VENV)/.dev
	$(BIN)/python -m ruff format --check .
	$(BIN)/python -m ruff check .
	$(BIN)/python -m mypy

audit: $(VENV)/.test
	$(BIN)/python -m pytest -m audit

# Some of them: make mutants PICK="curator or ledger"
mutants: $(VENV)/.test
	$(BIN)/python -m pytest -m mutants $(if $(PICK),-k "$(PICK)") tests/mutants

# Some of them: make bench BENCH="-k one_update"; addopts is emptied because it skips benchmarks.
bench: $(VENV)/.test
	$(BIN)/python -m pytest -o addopts= --import-mode=importlib --benchmark-only benchmarks $(BENCH)

experiments: $(VENV)/.plot
	@set -e; for script in $(EXPERIMENTS); do echo "$$script"; $(BIN)/python "$$script"; done

# Every script on a small setting, in a temporary folder: that they run, not what they find.
experiments-quick: $(VENV)/.plot
	@set -e; for script in $(EXPERIMENTS); do echo "$$script"; $(BIN)/python "$$script" --quick; done

# The tables of the READMEs and of docs/reproduction.md, from result files that are there.
tables: $(VENV)/.test
	$(BIN)/python experiments/study/readme.py

$(VENV)/.%: pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit("onlineic needs Python 3.11 or newer" if sys.version_info < (3, 11) else 0)'
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV) || \
	  { rm -rf $(VENV); echo 'no virtual environment: on Debian and Ubuntu install the package python3-venv'; exit 1; }
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[$*]'
	@touch $@
