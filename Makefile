# tiercel: two commands do everything on a laptop:
#   make evaluate   set up, measure this machine's storage, write the report
#   make test       lint, type checks and tests
# `make help` lists the rest.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
SITE ?= local
STUDY ?= quick

LOCKS := requirements/bootstrap.lock requirements/evaluate.lock
WHEEL_TOOLS := $(VENV)-wheel
PACKAGES := $(VENV)/.packages
DEV_PACKAGES := $(VENV)/.dev-packages
# Native parts that `make setup` builds, and the layers, which `make layers` builds where their tools are.
PARTS := iokernel tracescan dlkernel replay
LAYER_PARTS := fairshare cachevol
NATIVE := $(VENV)/.native
LAYERS := $(VENV)/.layers
DLIO := .venv-dlio
PARALLEL_HDF5 := .parallel-hdf5
sources = $(shell find $(addprefix native/,$(1)) \( -name build -o -name target \) -prune -o -type f -print)
# For rules that write into the checkout, which may be somebody else's.
WRITABLE = [ -w . ] || { echo 'tiercel: this checkout may only be read: make a clone of your own, or a project' \
  '(its `tiercel init`, if it is set up)' >&2; exit 2; }
# A checkout that somebody else set up with a Python of their home folder.
RUNNABLE = $(BIN)/python -c pass 2>/dev/null || { echo 'tiercel: the Python of $(VENV) does not run for you (whoever' \
  'set this checkout up has it where you may not go): make a clone of your own' >&2; exit 2; }
MPI_COMPILER = $$($(BIN)/python -m tiercel.launchers.mpicc)
# Its cache is in the home folder, or here where that cannot be written.
UV = UV_FALLBACK_CACHE="$(abspath $(VENV))/.uv-cache" tools/uv $(BIN)/uv
NATIVE_MAKE = $(MAKE) --no-print-directory -s BINDIR="$(abspath $(BIN))" LIBDIR="$(abspath $(VENV))/lib" -C native

# Some sites forbid writing compiled files next to sources on shared storage, and
# a fresh container often has no writable HOME: nothing here needs one.
export PYTHONNOUSERSITE := 1

.PHONY: help setup dev packages profiles layers gateway dlio dlio-torch parallel-hdf5 evaluate plan docs test test-full test-nightly mutation lint style bench attack wheel changelog release notices lock clean distclean

help:
	@echo 'make setup         environment from the lock file, native parts'
	@echo 'make dev           setup, and what a change needs: linters, type checker, pytest (CONTRIBUTING.md)'
	@echo 'make packages      the environment alone: enough to make tables and reports from results'
	@echo 'make layers        the layers fairshare (needs Rust) and cachevol, where their tools are'
	@echo 'make dlio          upstream DLIO in an environment of its own; dlio-torch: with a PyTorch that is there'
	@echo 'make gateway       a server of objects (Versity S3 gateway), for the tests of object storage (a minute; Go)'
	@echo 'make parallel-hdf5 an HDF5 with MPI: HDF5 of several processes in sweeps, tests of cachevol (minutes; cargo, cmake)'
	@echo 'make evaluate      setup, then run study $$STUDY (quick) on site $$SITE (local) and report'
	@echo 'make plan          what evaluate would run'
	@echo 'make docs          the documentation as a site: build/docs/index.html (opens offline, with search)'
	@echo 'make test          lint, type checks, tests: the first tier'
	@echo 'make test-full     both tiers, as CI does; test-nightly: what takes minutes, too'
	@echo 'make mutation      do the tests notice changes to what decides? PART=statistics, MUTANTS=all|DIGIT (a tenth each day)'
	@echo 'make bench         speed of the harness and of the engines, as ratios'
	@echo 'make attack        the layers, as a second user attacks each for MINUTES (1); a JSON object each; as root'
	@echo 'make wheel         dist/: a wheel with all native parts inside, for x86-64 Linux, and the sources'
	@echo 'make lock          resolve the lock files anew'
	@echo 'make changelog     what the next release says of the changes (changelog.d/)'
	@echo 'make release       checks, then dist/: wheel, sources, notes; VERSION=X.Y.Z'
	@echo 'make notices       licences of the crates that fairshare links, from Cargo.lock'
	@echo 'make clean         remove what was built (results stay); distclean removes .venv too'

setup: packages $(NATIVE)

dev: setup $(DEV_PACKAGES)

# Enough to read results: no compiler.
packages: $(PACKAGES) profiles

# `snakemake --profile NAME` looks for NAME in the folder where it starts, and in folders outside of the checkout.
profiles:
	@for site in $(patsubst site-configs/%/config.yaml,%,$(wildcard site-configs/*/config.yaml)); do \
	  [ -e "$$site" ] || ln -s "site-configs/$$site" "$$site" || exit 2; done

$(PACKAGES): $(LOCKS) pyproject.toml
	@case $$PWD in *[\"\`\\\$$:]*) echo 'tiercel: no environment can be made in a folder whose path has one of " ` \ $$ : in it:' \
	  'move this checkout' >&2; exit 2 ;; esac
	@$(WRITABLE)
	@command -v $(firstword $(PYTHON)) >/dev/null || \
	  { echo 'tiercel: no $(PYTHON): name a Python of 3.11 or newer, as in `make PYTHON=python3.12 setup`' >&2; exit 2; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo 'tiercel: $(PYTHON) is older than 3.11: name a newer one, as in `make PYTHON=python3.12 setup`' >&2; exit 2; }
	@echo 'tiercel: making $(VENV) from the lock file'
	@$(PYTHON) -m venv $(VENV) || \
	  { echo 'tiercel: $(PYTHON) cannot make virtual environments: install its venv module (Debian: python3-venv)' >&2; exit 2; }
	@$(BIN)/python -m pip install -qq --disable-pip-version-check --require-hashes -r requirements/bootstrap.lock
	@$(UV) pip install --quiet --system-certs --python $(BIN)/python --link-mode=copy --require-hashes -r requirements/evaluate.lock
	@$(UV) pip install --quiet --system-certs --python $(BIN)/python --no-deps --no-build-isolation --editable .
	@$(BIN)/python tools/link-duplicates $(VENV)
	@touch $@

# Dask apart, for its own tests: where xarray finds it, each command that writes a dataset loads it (1 s).
$(DEV_PACKAGES): requirements/dev.lock requirements/cluster.lock $(PACKAGES)
	@$(UV) pip install --quiet --system-certs --python $(BIN)/python --link-mode=copy --require-hashes -r requirements/dev.lock
	@$(UV) pip install --quiet --system-certs --python $(BIN)/python --link-mode=copy --require-hashes --target $(VENV)/cluster \
	  -r requirements/cluster.lock
	@touch $@

$(NATIVE): $(call sources,$(PARTS)) $(PACKAGES)
	@$(WRITABLE)
	@command -v $(firstword $(CC)) >/dev/null || { echo 'tiercel: no C compiler ($(CC)), which the native parts need:' \
	  'install one (Debian: gcc libc6-dev) or name it, as in `make CC=... setup`' >&2; exit 2; }
	@echo 'tiercel: building $(PARTS)'
	@for part in $(PARTS); do $(NATIVE_MAKE)/$$part MPICC="$(MPI_COMPILER)" install || exit 1; done
	@touch $@

# Asked each time: what was left out for want of a tool is built once the tool is there.
layers: setup
	@$(WRITABLE)
	@echo 'tiercel: building $(LAYER_PARTS)'
	@for part in $(LAYER_PARTS); do $(NATIVE_MAKE)/$$part install || exit 1; done
	@touch $(LAYERS)

# A real server for the tests of object storage: over a folder, so that files and objects lie on the same media.
GATEWAY_VERSION := v1.8.0
gateway: $(PACKAGES)
	@command -v go >/dev/null || { echo 'tiercel: no Go, which the server needs: install it (Debian: golang)' >&2; exit 2; }
	@echo 'tiercel: building versitygw $(GATEWAY_VERSION)'
	@GOBIN="$(abspath $(BIN))" GOFLAGS=-modcacherw go install github.com/versity/versitygw/cmd/versitygw@$(GATEWAY_VERSION)

# Upstream DLIO in environments of its own: with TensorFlow, and with the PyTorch that a Python of the machine has.
SYNC = $(UV) pip sync --quiet --system-certs --require-hashes --compile-bytecode --link-mode=copy
TORCH_PYTHON ?= /usr/bin/python3

dlio: $(DLIO)/.done

$(DLIO)/.done: workflows/dlio/requirements-tensorflow.lock | $(PACKAGES)
	@echo 'tiercel: making $(DLIO) (TensorFlow: about 2 GB)'
	@$(PYTHON) -m venv --without-pip $(DLIO)
	@$(SYNC) --python $(DLIO)/bin/python $<
	@touch $@

dlio-torch: $(DLIO)-torch/.done

$(DLIO)-torch/.done: workflows/dlio/requirements-torch.lock | $(PACKAGES)
	@$(TORCH_PYTHON) -c 'import torch, numpy' 2>/dev/null || \
	  { echo 'tiercel: $(TORCH_PYTHON) has no PyTorch: install it (Debian: python3-torch) or name another, TORCH_PYTHON=...' >&2; exit 2; }
	@echo 'tiercel: making $(DLIO)-torch'
	@$(TORCH_PYTHON) -m venv --system-site-packages --without-pip $(DLIO)-torch
	@$(SYNC) --python $(DLIO)-torch/bin/python $<
	@touch $@

parallel-hdf5: $(PARALLEL_HDF5)/.done

$(PARALLEL_HDF5)/.done: $(wildcard tools/parallel-hdf5/*) | $(PACKAGES)
	@echo 'tiercel: building $(PARALLEL_HDF5)'
	@tools/parallel-hdf5/build $(PARALLEL_HDF5) "$(MPI_COMPILER)"
	@touch $@

evaluate: setup
	@$(RUNNABLE)
	@$(BIN)/tiercel evaluate --site $(SITE) --study $(STUDY)

plan: setup
	@$(RUNNABLE)
	@$(BIN)/tiercel plan --site $(SITE) --study $(STUDY)

# Its pictures are of a small evaluation that it makes, its reference is made from the code.
docs: setup $(DEV_PACKAGES)
	@$(BIN)/python tools/docs/build.py build/docs

lint: style
	@$(BIN)/mypy

style: setup $(DEV_PACKAGES)
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@for part in $(PARTS) $(if $(wildcard $(LAYERS)),$(LAYER_PARTS)); do \
	  $(NATIVE_MAKE)/$$part MPICC="$(MPI_COMPILER)" lint || exit 1; done

# They start thousands of short programs: each would compile anew what it imports.
test test-full test-nightly: export PYTHONDONTWRITEBYTECODE :=

# Three workers more than cores: while some tests wait for a Slurm, others compute (tests/order.py).
WORKERS ?= $(shell expr $$(nproc) + 3)
PYTEST = $(BIN)/python -m pytest -n $(WORKERS) --dist loadfile --no-loadscope-reorder

# Types are checked beside the tests (one core would idle for a minute), and told last, where one looks.
TYPES = $(BIN)/mypy >$(VENV)/types.log 2>&1
AND_TYPES = $(TYPES) & types=$$!; passed=0; $(PYTEST) $(1) || passed=$$?; \
  wait $$types || passed=1; cat $(VENV)/types.log; exit $$passed

test: layers style
	@$(call AND_TYPES,-m 'not nightly and not full')

test-full: layers style
	@$(call AND_TYPES,-m 'not nightly')

test-nightly: layers style
	@$(call AND_TYPES)

# Every night: a tenth of the mutants, another each day. Fails where too many go unnoticed (tools/mutation/parts.toml).
mutation: setup $(VENV)/.mutation-packages
	@$(BIN)/python tools/mutation/run.py $(PART) $(if $(MUTANTS),--mutants '$(MUTANTS)')

$(VENV)/.mutation-packages: requirements/mutation.lock $(DEV_PACKAGES)
	@$(UV) pip install --quiet --system-certs --python $(BIN)/python --link-mode=copy --require-hashes -r $<
	@touch $@

bench: setup
	@$(BIN)/python -m benchmarks

MINUTES ?= 1

attack: setup
	@$(NATIVE_MAKE)/fairshare install >&2
	@$(NATIVE_MAKE)/cachevol install >&2
	@$(BIN)/python -m tests.attacks.fairshare --minutes $(MINUTES)
	@$(BIN)/python -m tests.attacks.cachevol --minutes $(MINUTES)

# The wheel holds what setup.py builds; tools/wheel says how old a Linux may be, from the symbols that it needs.
wheel: $(PACKAGES) $(WHEEL_TOOLS)/.done
	@tools/wheel dist "$(MPI_COMPILER)"

$(WHEEL_TOOLS)/.done: requirements/wheel.lock | $(PACKAGES)
	@$(PYTHON) -m venv --without-pip $(WHEEL_TOOLS)
	@$(SYNC) --python $(WHEEL_TOOLS)/bin/python $<
	@touch $@

# The draft says what the next release is without writing anything.
changelog: $(DEV_PACKAGES)
	@$(BIN)/towncrier build --draft

# After a change of native/fairshare/Cargo.lock.
notices:
	@$(PYTHON) tools/notices cargo

release: setup $(DEV_PACKAGES) $(WHEEL_TOOLS)/.done
	@PYTHON="$(PYTHON)" tools/release $(VERSION)

COMPILE = $(UV) pip compile --quiet --system-certs --universal --generate-hashes --no-annotate --no-header \
  --python-version 3.11

lock: $(PACKAGES)
	@$(COMPILE) requirements/bootstrap.in -o requirements/bootstrap.lock
	@$(COMPILE) --extra evaluate pyproject.toml -o requirements/evaluate.lock
	@$(COMPILE) --extra evaluate pyproject.toml --group dev -c requirements/evaluate.lock -o requirements/dev.lock
	@$(COMPILE) requirements/cluster.in -c requirements/evaluate.lock -o requirements/cluster.lock
	@$(COMPILE) requirements/mutation.in -c requirements/dev.lock -o requirements/mutation.lock
	@$(COMPILE) requirements/wheel.in -o requirements/wheel.lock
	@$(COMPILE) --override workflows/dlio/overrides.txt workflows/dlio/requirements-tensorflow.in \
	  -o workflows/dlio/requirements-tensorflow.lock
	@$(COMPILE) --override workflows/dlio/overrides.txt --override workflows/dlio/overrides-torch.txt \
	  workflows/dlio/requirements-torch.in -o workflows/dlio/requirements-torch.lock

clean:
	@for part in $(PARTS) $(LAYER_PARTS); do $(NATIVE_MAKE)/$$part clean || exit 1; done
	@rm -rf .pytest_cache .mypy_cache .ruff_cache .hypothesis

distclean: clean
	@rm -rf $(VENV) $(WHEEL_TOOLS) $(DLIO) $(DLIO)-torch $(PARALLEL_HDF5)
