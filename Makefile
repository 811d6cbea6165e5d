# Two commands on a fresh machine: `make train` and `make test`.
PYTHON ?= python3
BIN := .venv/bin

# Versions, those of what builds this package included: pip before 25.3 passes the first to builds, later ones the second.
export PIP_CONSTRAINT := constraints.txt
export PIP_BUILD_CONSTRAINT := constraints.txt

.PHONY: install install-dev train test test-all same-numbers lint

install: .venv/installed
install-dev: .venv/installed-dev

.venv/installed: pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Ludus needs Python 3.11 or newer; this is " + sys.version.split()[0])'
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install -q -e .
	touch $@

.venv/installed-dev: .venv/installed
	$(BIN)/python -m pip install -q -e '.[dev]'
	$(BIN)/python -m pip install -q -e '.[cuda-compiler]' || \
		echo "The CUDA compiler could not be installed: its tests will be skipped."
	$(BIN)/python -m pip install -q -e '.[onnx]' || \
		echo "ONNX could not be installed: its tests will be skipped."
	$(BIN)/python -m pip install -q -e '.[pictures]' || \
		echo "Playwright could not be installed: browser tests will be skipped."
	command -v chromium chromium-browser google-chrome >/dev/null || \
		(apt-get update -qq && apt-get install -y -qq chromium) >/dev/null 2>&1 || \
		(sudo -n apt-get update -qq && sudo -n apt-get install -y -qq chromium) >/dev/null 2>&1 || \
		echo "Chromium could not be installed (apt-get install chromium): browser tests will be skipped."
	touch $@

train: install
	$(BIN)/ludus train hide_and_seek --train.total-seconds 180 --eval.every-seconds 60

test: install-dev lint
	$(BIN)/python -m pytest -m "not slow and not cuda" -n 2 --dist loadgroup --durations=15

test-all: install-dev lint
	$(BIN)/python -m pytest --durations=30

# Does the working tree train exactly as the commit BASE does? Short seeded runs, bit for bit.
same-numbers: install-dev
	$(BIN)/python benchmarks/same_numbers.py $(BASE)

lint: install-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
