# Entry points; `make` without a target lists them.
# Every target sets up what it needs in .venv, starting from Python 3.11 or later, and again when
# pyproject.toml or the pinned versions in envs/ change. Paths are relative on purpose: the checkout
# may be in a folder whose name has spaces or non-ASCII letters.

PYTHON ?= python3
# Options for the program that a target runs: make run ARGS=seeds, make test ARGS='-k errors'
ARGS ?=

# 12 or 13 adds the CUDA compiler wheels of that version; by default, the version of the driver.
ifndef CUDA
CUDA := $(filter 12 13,$(shell nvidia-smi 2>/dev/null \
	| sed -n 's/.*CUDA [A-Z ]*Version: *\([0-9]*\).*/\1/p' | sed -e 's/^1[4-9]$$/13/'))
endif

comma := ,
# --no-compile: only a small part is ever imported, and Python compiles that itself.
pins := envs/constraints.txt $(if $(CUDA),envs/constraints-cu$(CUDA).txt)
pip := .venv/bin/python -m pip --disable-pip-version-check -qq install --no-compile \
	$(addprefix -c ,$(pins))
installed := .venv/installed$(CUDA)
ready_to_run := .venv/ready-to-run$(CUDA)
ready_to_test := .venv/ready-to-test$(CUDA)
ready_for_docs := .venv/ready-for-docs
ready_for_dist := .venv/ready-for-dist

# .venv/bin comes first, so that `python` in the rules is the one with bwarp.
export PATH := $(CURDIR)/.venv/bin:$(PATH)

.PHONY: help run doctor test test-gpu lint docs dist bench
.DEFAULT_GOAL := help

help:
	@echo "make run       index the demo genome, map its reads, find their seeds, and report on it all"
	@echo "make doctor    say what GPU and packages are here, which engine runs, and what is missing"
	@echo "make test      run the tests that need no GPU"
	@echo "make test-gpu  run the tests that need an NVIDIA GPU"
	@echo "make lint      check the style and types of the code, and the workflow"
	@echo "make docs      make the site of the documentation, and check every link between its pages"
	@echo "make dist      make the files to publish, check them, and try the wheel in an empty environment"
	@echo "make bench     time bwarp against the programs it is compared with"
	@echo "make help      this list"
	@echo
	@echo "Each sets itself up in .venv first. ARGS='...' is handed on: make test ARGS='-k errors'"

run: $(installed)
	@$(MAKE) --no-print-directory -j 2 compiled $(ready_to_run) compile=--demo
	@echo "== Running the workflow ..."
	@.venv/bin/python -m snakemake $(ARGS)

# At the same time pip, on one core, installs packages for the report or the tests.
compile ?= --backend cpu
.PHONY: compiled
compiled: $(installed)
	@.venv/bin/python scripts/compile_programs.py $(compile) || echo "== Each step compiles what it needs, then."

doctor: $(ready_to_run)
	@.venv/bin/python scripts/doctor.py $(ARGS)

# Test files run in parallel, each in one process. Functions common to all programs are compiled
# first, unless only some tests are selected.
test: $(if $(ARGS),$(ready_to_test),$(installed))
	@$(if $(ARGS),,$(MAKE) -s --no-print-directory -j 2 compiled $(ready_to_test))
	@echo "== Running the tests. What else they call is compiled as they go."
	@.venv/bin/python -m pytest -n auto --maxprocesses 4 --dist loadfile --no-loadscope-reorder $(ARGS)

test-gpu: $(ready_to_test)
	@.venv/bin/python -m pytest -m gpu $(ARGS)

lint: $(ready_to_test)
	@.venv/bin/python -m ruff check .
	@.venv/bin/python -m ruff format --check .
	@.venv/bin/python -m mypy
	@.venv/bin/python -m snakefmt --check Snakefile workflow benchmarks integrations
	@.venv/bin/python -m snakemake --lint

# A broken link, or a page that docs/index.md does not list, is an error.
docs: $(ready_for_docs)
	@.venv/bin/python -m sphinx -q --fail-on-warning -b html -c docs . build/site $(ARGS)
	@echo "== The site begins at build/site/index.html"

# dist/ gets a wheel and an archive of the sources.
dist: $(ready_for_dist)
	@rm -rf dist
	@.venv/bin/python -m build --outdir dist .
	@.venv/bin/python -m twine check --strict dist/*
	@.ci/try_wheel dist/*.whl
	@cd dist && sha256sum *

# A separate Snakemake workflow; its measurements and its report go to results/here/.
bench: $(ready_to_test)
	@.venv/bin/python -m snakemake -s benchmarks/Snakefile --directory benchmarks/results/here \
	  --cores all --keep-going $(ARGS)

$(installed): pyproject.toml $(pins) | .venv/bin/pip
	@echo "== Installing bwarp and what it runs on into .venv (half a minute) ..."
	@$(pip) -e '.[workflow$(if $(CUDA),$(comma)gpu-cu$(CUDA))]'
	@touch $@

$(ready_to_run): $(installed)
	@echo "== Installing MultiQC ..."
	@$(pip) -e '.[workflow,report$(if $(CUDA),$(comma)gpu-cu$(CUDA))]'
	@touch $@

$(ready_to_test): pyproject.toml $(pins) | .venv/bin/pip
	@echo "== Installing bwarp, what it runs on and its test tools into .venv (about a minute) ..."
	@$(pip) -e '.[test$(if $(CUDA),$(comma)gpu-cu$(CUDA))]'
	@touch $@

$(ready_for_docs): pyproject.toml $(pins) | .venv/bin/pip
	@echo "== Installing bwarp and what makes the site into .venv (about a minute) ..."
	@$(pip) -e '.[docs]'
	@touch $@

$(ready_for_dist): pyproject.toml $(pins) | .venv/bin/pip
	@echo "== Installing what builds and checks packages into .venv ..."
	@$(pip) -e '.[dist]'
	@touch $@

.venv/bin/pip:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
	  echo "bwarp needs Python 3.11 or newer, and '$(PYTHON)' is not:" \
	    "name one with make PYTHON=/path/to/python3.12 ..." >&2; exit 1; }
	@echo "== Making a Python environment in .venv ..."
	@$(PYTHON) -m venv .venv || { rm -rf .venv; \
	  echo "Python's venv module is missing: install it (Debian, Ubuntu: apt install python3-venv)" \
	    >&2; exit 1; }
