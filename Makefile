# `make demo` and `make test` do all the set-up: a virtual environment with the exact versions of envs/*.lock.
PYTHON ?= python3
CORES ?= $(shell nproc 2>/dev/null || echo 2)
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check
# The rules call `python` and `forgefield` by name.
export PATH := $(CURDIR)/$(BIN):$(PATH)

.PHONY: help venv demo test slow docs slurm faults lint lock clean

help:
	@echo "make venv    $(VENV) with everything"
	@echo "make demo    $(VENV), then the whole workflow on the data in resources/ (CORES=$(CORES))"
	@echo "make test    $(VENV), then the tests, one process per core up to four (ARGS=\"tests/data -x\" selects)"
	@echo "make slow    $(VENV), then the tests that take longest, which make test leaves out"
	@echo "make docs    the documentation as a site, in build/site"
	@echo "make slurm   $(VENV), then the workflow on the Slurm of this machine, if it has one"
	@echo "make faults  kill trainings of every method at POINTS=20 random places each, and write docs/reliability.md"
	@echo "make lint    ruff, snakefmt and snakemake --lint"
	@echo "make lock    new lock and conda files from pyproject.toml"
	@echo "make clean   remove $(VENV) and caches; results stay"

venv: $(VENV)/.mpi4jax

$(VENV)/.installed: pyproject.toml envs/requirements.lock envs/torch.lock
	@bash envs/create_venv.sh "$(PYTHON)" $(VENV)
	@echo "installing into $(VENV) (about 2 GB, some minutes)"
	@$(PIP) install --quiet -r envs/torch.lock
	@$(PIP) install --quiet --no-deps --require-hashes --use-pep517 -r envs/requirements.lock
	@$(PIP) install --quiet --no-deps --no-build-isolation -e .
	@touch $@

# A build belongs to the versions of JAX and MPI that it was compiled against.
$(VENV)/.mpi4jax: envs/mpi4jax.lock envs/requirements.lock | $(VENV)/.installed
	@bash envs/build_mpi4jax.sh $(VENV)

demo: venv
	$(BIN)/snakemake --cores $(CORES)

test: venv
	$(BIN)/python -m pytest -n $(CORES) --maxprocesses 4 --dist worksteal -m "not slow" $(ARGS)

# What takes long and is covered in part by other tests.
slow: venv
	$(BIN)/python -m pytest -n $(CORES) --maxprocesses 4 --dist worksteal -m slow --ignore tests/workflow/slurm $(ARGS)

docs: venv
	$(BIN)/mkdocs build --strict --quiet

# One after the other: they share the nodes.
slurm: venv
	$(BIN)/python -m pytest tests/workflow/slurm $(ARGS)

faults: venv
	$(BIN)/python tests/faults/matrix.py $(POINTS) --update-docs

lint: venv
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/snakefmt --check Snakefile workflow
	$(BIN)/snakemake --lint

lock: venv
	$(BIN)/python envs/update.py

clean:
	rm -rf $(VENV) build .pytest_cache .ruff_cache src/*.egg-info
