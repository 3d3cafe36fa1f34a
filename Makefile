# Targets build the virtual environment themselves: a fresh machine needs python3, make and a package index.
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
DEV    := $(VENV)/.dev
# No extra quiet or colour settings here: what pip says on a failure is what the user needs.
PIP    := $(BIN)/python -m pip --disable-pip-version-check

.PHONY: run test bench lint clean

run: $(DEV)
	$(BIN)/manicap collect --game pong --steps 12000
	$(BIN)/manicap collect --game pong --steps 12000 --purpose probe
	$(BIN)/manicap data list

test: $(DEV)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python -m pytest

bench: $(DEV)
	$(BIN)/python benchmarks/collect.py

clean:
	rm -rf $(VENV) build *.egg-info .mypy_cache .pytest_cache .ruff_cache .hypothesis

# torch first and pinned: without the pin pip may take the newest build with gigabytes of CUDA.
$(DEV): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(PIP) install --quiet --constraint constraints.txt torch
	$(PIP) install --quiet --constraint constraints.txt --editable '.[dev]'
	touch $(DEV)
