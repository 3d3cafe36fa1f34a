# Targets build the virtual environment themselves: a fresh machine needs python3, make and a package index.
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
DEV    := $(VENV)/.dev
# No extra quiet or colour settings here: what pip says on a failure is what the user needs.
PIP    := $(BIN)/python -m pip --disable-pip-version-check

.PHONY: run test types suite portable mutants campaign bench browser clean

# The main job: collect Pong, train DIM-C+ without labels, probe it, show the result page.
run: $(DEV)
	$(BIN)/manicap run --game pong --method dim-c+

test: $(DEV) browser
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(MAKE) --no-print-directory --jobs 2 types suite

types:
	$(BIN)/mypy

# With bytecode, for the many processes that tests start; some tests wait for them, so that two cores serve four workers.
suite:
	PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest -n 4 --dist loadfile --no-loadscope-reorder

# The suite as other CPUs would run it: instruction sets x threads. `make portable PORTABLE='--sets avx2,own tests/losses'`.
portable: $(DEV) browser
	$(BIN)/python tests/portable.py $(or $(PORTABLE),--workers 2)

# Do the tests notice a changed sign, frame or mean? `make mutants MUTANTS='manicap/losses/jsd.py'`.
mutants: $(DEV)
	$(BIN)/python -m tests.mutation $(MUTANTS)

# Speed and memory, as ratios within one run. Run it alone on the machine.
bench: $(DEV)
	$(BIN)/python benchmarks/collect.py
	$(BIN)/python benchmarks/record.py
	$(BIN)/python benchmarks/vector.py
	$(BIN)/python benchmarks/store.py
	$(BIN)/python benchmarks/pretrain.py
	$(BIN)/python benchmarks/capacity.py
	$(BIN)/python benchmarks/probe.py
	$(BIN)/python benchmarks/export.py
	$(BIN)/python benchmarks/report.py

# Kills, malformed inputs, flipped bits, full disks (docs/campaign.md). CAMPAIGN="kills --trials 1000 --seed 1" for others.
CAMPAIGN ?= --trials 200
campaign: $(DEV)
	$(BIN)/python -m campaign $(CAMPAIGN)

# The page is tested in a real browser: Debian's chromium, installed where that is possible. Never fails.
browser:
	@if command -v chromium >/dev/null 2>&1 || command -v chromium-browser >/dev/null 2>&1; then :; \
	elif [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1 && apt-get update -qq >/dev/null 2>&1 && \
	  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends chromium >/dev/null 2>&1; then \
	  echo "installed chromium for the browser tests"; \
	else echo "no chromium and no way to install it here: the browser tests will be skipped"; fi

clean:
	rm -rf $(VENV) build *.egg-info .mypy_cache .pytest_cache .ruff_cache .hypothesis

# torch first and pinned: without the pin pip may take the newest build with gigabytes of CUDA.
$(DEV): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(PIP) install --quiet --constraint constraints.txt torch
	$(PIP) install --quiet --constraint constraints.txt --editable '.[dev]'
	touch $(DEV)
