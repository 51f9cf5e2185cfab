# tiercel: two commands do everything on a laptop:
#   make evaluate   set up, measure this machine's storage, write the report
#   make test       lint, type checks and tests
# `make help` lists the rest.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
SITE ?= local
STUDY ?= quick

LOCKS := requirements-bootstrap.lock requirements.lock
PACKAGES := $(VENV)/.packages
DEV_PACKAGES := $(VENV)/.dev-packages
NATIVE := $(VENV)/.native
NATIVE_SOURCES := $(wildcard native/iokernel/src/*.[ch] native/iokernel/Makefile native/iokernel/VERSION) \
  $(wildcard native/tracescan/src/*.[ch] native/tracescan/Makefile)

# Some sites forbid writing compiled files next to sources on shared storage, and
# a fresh container often has no writable HOME: nothing here needs one.
export PYTHONNOUSERSITE := 1

.PHONY: help setup evaluate plan test test-nightly lint bench lock clean distclean

help:
	@echo 'make setup         environment from the lock file, native parts'
	@echo 'make evaluate      setup, then run study $$STUDY (quick) on site $$SITE (local) and report'
	@echo 'make plan          what evaluate would run'
	@echo 'make test          lint, type checks, tests'
	@echo 'make test-nightly  the long tests too'
	@echo 'make bench         speed of the harness and of the engines, as ratios'
	@echo 'make lock          resolve the lock files anew'
	@echo 'make clean         remove what was built (results stay); distclean removes .venv too'

setup: $(PACKAGES) $(NATIVE)

$(PACKAGES): $(LOCKS) pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo 'tiercel: $(PYTHON) is older than 3.11: name a newer one, as in `make PYTHON=python3.12 setup`' >&2; exit 2; }
	@echo 'tiercel: making $(VENV) from the lock file'
	@$(PYTHON) -m venv $(VENV) || \
	  { echo 'tiercel: $(PYTHON) cannot make virtual environments: install its venv module (Debian: python3-venv)' >&2; exit 2; }
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements-bootstrap.lock
	@$(BIN)/uv pip install --quiet --system-certs --python $(BIN)/python --link-mode=copy --require-hashes -r requirements.lock
	@$(BIN)/uv pip install --quiet --system-certs --python $(BIN)/python --no-deps --no-build-isolation --editable .
	@touch $@

$(DEV_PACKAGES): requirements-dev.lock $(PACKAGES)
	@$(BIN)/uv pip install --quiet --system-certs --python $(BIN)/python --link-mode=copy --require-hashes -r requirements-dev.lock
	@touch $@

$(NATIVE): $(NATIVE_SOURCES) $(PACKAGES)
	@echo 'tiercel: building iokernel and tracescan'
	@$(MAKE) --no-print-directory -s -C native/iokernel \
	  MPICC="$$($(BIN)/python -m tiercel.launchers.mpicc)" all
	@$(MAKE) --no-print-directory -s -C native/iokernel BINDIR="$(abspath $(BIN))" \
	  MPICC="$$($(BIN)/python -m tiercel.launchers.mpicc)" install
	@$(MAKE) --no-print-directory -s -C native/tracescan install LIBDIR="$(abspath $(VENV))/lib"
	@touch $@

evaluate: setup
	@$(BIN)/tiercel evaluate --site $(SITE) --study $(STUDY)

plan: setup
	@$(BIN)/tiercel plan --site $(SITE) --study $(STUDY)

lint: setup $(DEV_PACKAGES)
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/mypy
	@$(MAKE) --no-print-directory -s -C native/iokernel lint MPICC="$$($(BIN)/python -m tiercel.launchers.mpicc)"
	@$(MAKE) --no-print-directory -s -C native/tracescan lint

test: lint
	@$(BIN)/python -m pytest -m 'not nightly' -n 2 --dist loadfile

test-nightly: lint
	@$(BIN)/python -m pytest -n 2 --dist loadfile

bench: setup
	@$(BIN)/python -m benchmarks

lock: $(PACKAGES)
	@$(BIN)/uv pip compile --quiet --system-certs --universal --generate-hashes --no-annotate --no-header --python-version 3.11 \
	  requirements-bootstrap.in -o requirements-bootstrap.lock
	@$(BIN)/uv pip compile --quiet --system-certs --universal --generate-hashes --no-annotate --no-header --python-version 3.11 \
	  pyproject.toml -o requirements.lock
	@$(BIN)/uv pip compile --quiet --system-certs --universal --generate-hashes --no-annotate --no-header --python-version 3.11 \
	  pyproject.toml --group dev -c requirements.lock -o requirements-dev.lock

clean:
	@$(MAKE) --no-print-directory -s -C native/iokernel clean
	@$(MAKE) --no-print-directory -s -C native/tracescan clean
	@rm -rf .pytest_cache .mypy_cache .ruff_cache .hypothesis

distclean: clean
	@rm -rf $(VENV)
