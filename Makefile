# Nothing is needed before `make demo` or `make test` but Python >= 3.11 with its venv module.
PYTHON ?= python3
VENV ?= .venv
# 1: install with uv (which must be on the path) in place of pip.
UV ?=
# The torch release that `make constraints` pins.
TORCH ?= 2.13.0
# Processes that run the tests and the demo, one thread each.
JOBS ?= 2
# Packed real data sets; `make test` unpacks them once into .data, unless FEDLOOM_DATA names a folder.
ARCHIVE ?= ../shared/data
ARRAYS ?= mnist fashion_mnist cifar10 cifar100 adult

# What the demo compares. Any of it may be set on the command line of make.
DEMO_OUT ?= demo/digits
DEMO_DATA ?= digits
DEMO_PARTITION ?= label_count(k=2)
DEMO_CLIENTS ?= 10
DEMO_MODEL ?= mlp(hidden=[64], init='default')
DEMO_METHODS ?= fedavg,fedprox(mu=0.1),scaffold,fednova
DEMO_EPOCHS ?= 5
DEMO_ROUNDS ?= 30
DEMO_TRIALS ?= 3

# uv doesn't read pip's settings.
UV_FIND_LINKS ?= $(PIP_FIND_LINKS)
export UV_FIND_LINKS
OMP_NUM_THREADS ?= 1
export OMP_NUM_THREADS

BIN := $(VENV)/bin
# Named after the Python, so that another one makes the environment anew.
READY := $(VENV)/.ready-$(notdir $(PYTHON))
READY_DEV := $(READY)-dev
INSTALL = $(if $(UV),uv pip install -q --python "$(BIN)/python",\
	"$(BIN)/python" -m pip install -q --disable-pip-version-check)

.DEFAULT_GOAL := help
.PHONY: help install demo test lint constraints clean

help:  ## show this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' Makefile

install: $(READY_DEV)  ## make the environment, with what the tests need
	@echo "The environment is in $(VENV); try: $(BIN)/fedloom --help"

demo: $(READY)  ## compare four methods on handwritten digits and write a page (two minutes)
	@echo "Comparing $(DEMO_METHODS)"
	@echo "  on $(DEMO_DATA), split among $(DEMO_CLIENTS) clients by $(DEMO_PARTITION),"
	@echo "  $(DEMO_ROUNDS) rounds, $(DEMO_TRIALS) trials, $(JOBS) runs at a time; every method gets the"
	@echo "  same clients, initial models and batches. Two references are added: all data at one"
	@echo "  place, and every client by itself."
	"$(BIN)/fedloom" compare --data "$(DEMO_DATA)" --partition "$(DEMO_PARTITION)" \
		--clients "$(DEMO_CLIENTS)" --model "$(DEMO_MODEL)" --methods "$(DEMO_METHODS)" \
		--local-epochs "$(DEMO_EPOCHS)" --rounds "$(DEMO_ROUNDS)" --trials "$(DEMO_TRIALS)" \
		--jobs "$(JOBS)" --out "$(DEMO_OUT)" --overwrite
	@echo
	@echo "Done. Open $(DEMO_OUT)/report.html in a browser; the figures are in $(DEMO_OUT)/figures,"
	@echo "the table in $(DEMO_OUT)/table.md, and every run's own record in the folders beside them."

test: $(READY_DEV) $(if $(FEDLOOM_DATA),,.data/.unpacked) lint  ## check style and types, run every test
	@echo "Running the tests in $(JOBS) processes of one thread each (up to ten minutes)."
	@if [ -n "$$FEDLOOM_DATA" ]; then :; \
	elif [ -d .data ]; then export FEDLOOM_DATA="$(CURDIR)/.data"; \
	else unset FEDLOOM_DATA; fi; \
	"$(BIN)/python" -m pytest -q -n "$(JOBS)"

lint: $(READY_DEV)  ## check style and types only
	@echo "Checking style (ruff) and types (mypy)."
	"$(BIN)/python" -m ruff check .
	"$(BIN)/python" -m ruff format --check .
	"$(BIN)/python" -m mypy

constraints: $(READY_DEV)  ## write constraints.txt anew: the newest versions that fit, with TORCH
	"$(BIN)/python" -m pip install -q --upgrade --upgrade-strategy eager "torch==$(TORCH)" -e '.[dev]'
	"$(BIN)/python" -m pip freeze --exclude-editable | sed -E 's/\+[^ ]*$$//' \
		| grep -E '^[^@ ]+==[^ ]+$$' | grep -vE '^(nvidia|triton)' > constraints.new
	mv constraints.new constraints.txt
	@echo "constraints.txt has $$(wc -l < constraints.txt) lines; run make test before you keep it."

clean:  ## remove the environment, the demo, unpacked data and caches
	rm -rf "$(VENV)" demo .data dist build .pytest_cache .ruff_cache .mypy_cache .hypothesis
	find fedloom tests -name __pycache__ -type d -prune -exec rm -rf {} +

$(READY): pyproject.toml constraints.txt
	@"$(PYTHON)" -c 'import sys; v = sys.version_info; \
		print("Python %d.%d.%d" % v[:3]); \
		v >= (3, 11) or sys.exit("fedloom needs Python 3.11 or newer: make PYTHON=python3.12 ...")'
	@if [ -e "$(VENV)" ] && [ ! -e "$(VENV)/pyvenv.cfg" ]; then \
		echo "$(VENV) exists and is no virtual environment; name another: make VENV=..."; exit 1; fi
	@echo "Making an environment in $(VENV) and installing (a minute or two, 1.5 GB)."
	"$(PYTHON)" -m venv --clear "$(VENV)"
	$(INSTALL) -c constraints.txt -e .
	@touch "$@"

$(READY_DEV): $(READY)
	@echo "Adding what the tests need."
	$(INSTALL) -c constraints.txt -e '.[dev]'
	@touch "$@"

.data/.unpacked: | $(READY_DEV)
	@if [ -e "$(ARCHIVE)/unpack.py" ]; then \
		echo "Unpacking real data sets into .data (once, 0.5 GB)."; mkdir -p .data; \
		"$(BIN)/python" "$(ARCHIVE)/unpack.py" .data $(ARRAYS) && touch "$@"; \
	else echo "No packed data in $(ARCHIVE): tests that need real data are skipped."; fi
