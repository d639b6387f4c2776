# Two commands: `make demo` answers the bundled questions, `make test` runs the tests. Both start from a bare Python.
# Beside them: `make gate` holds the demo's scores against the committed ones; `make grid` measures every reader on the bundled
# benchmarks; `make test-fast` for while you work, `make lint`, `make docs`, `make release VERSION=0.3.0`, `make clean`.
# `make lock` writes constraints.txt and the locks; `make test TORCH=cpu` takes torch without CUDA, on Linux (.ci/install).

PYTHON := $(shell for p in $(PYTHON) python3 python3.11 python3.12 python3.13 python3.14; do \
	"$$p" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 15))' 2>/dev/null && { echo "$$p"; break; }; done)
BIN := .venv/bin
export TORCH

.PHONY: demo gate baselines grid test test-fast lint docs lock release clean

demo: .venv/demo
	$(BIN)/ifqa run sample sample-hard --show 4

# Fails if a bundled experiment scores significantly lower than its baseline, or if that is of other inputs than today's.
gate: demo
	$(BIN)/python .ci/baselines --check

# Compares first, and refuses a significant loss unless it is meant: make baselines ACCEPT="the reason".
baselines: demo
	$(BIN)/python .ci/baselines --accept "$(ACCEPT)"

# The bundled experiments that need nothing but this package; with SmolLM2 (`ifqa data smollm2`) those that it answers too.
GRID := $(filter-out %-propara.toml $(if $(wildcard models/smollm2),,experiments/sample-smollm2%),$(wildcard experiments/sample*.toml))

grid: .venv/dev
	$(BIN)/ifqa train adaboost --benchmark sample-wiqa --to models/sample-adaboost
	$(BIN)/ifqa train decomp-attn --benchmark sample-wiqa --to models/sample-decomp-attn
	$(BIN)/ifqa train choice --benchmark sample-wiqa --to models/sample-choice
	$(BIN)/ifqa train choice --benchmark sample-wiqa --set paragraph=no --to models/sample-choice-no-paragraph
	$(BIN)/ifqa run $(GRID)
	$(BIN)/ifqa report

# Each worker has a JVM and torch, so there are at most four; one thread each, since the workers share the cores. Compiled
# modules are kept, also where the environment forbids it: the tests start some 200 processes. A worker that dies ends the run and
# names its test: `loadfile` would give that test to worker after worker.
PYTEST := OMP_NUM_THREADS=1 PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest --numprocesses auto --maxprocesses 4 --dist loadfile --no-loadscope-reorder --max-worker-restart 0

test: .venv/dev
	$(PYTEST)

test-fast: .venv/dev
	$(PYTEST) -m "not slow"

docs: .venv/dev
	$(BIN)/python docs/write.py
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet
	@echo "the docs are in build/docs/index.html"

lint: .venv/dev
	$(BIN)/ruff check . && $(BIN)/ruff format --check . && $(BIN)/python .ci/imports
	# Two runs beside each other, each with a cache of its own: their options differ.
	$(BIN)/mypy & package=$$!; \
		$(BIN)/mypy --config-file tests/mypy.ini --cache-dir .mypy_cache/tests; tests=$$?; wait $$package && exit $$tests

release: .venv/dev
	$(BIN)/python .ci/release $(VERSION)

.venv/demo: pyproject.toml constraints.txt .ci/install locks/build.txt locks/ifqa.txt locks/torch.txt locks/torch-cpu.txt
	@test -n "$(PYTHON)" || { echo "ifqa needs Python 3.11, 3.12, 3.13 or 3.14; name one: make $(MAKECMDGOALS) PYTHON=/path/to/python3"; exit 2; }
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python .ci/install
	$(BIN)/python -m pip install --quiet --no-deps --no-build-isolation --editable .
	touch $@

.venv/dev: .venv/demo locks/dev.txt
	$(BIN)/python .ci/install --dev
	touch $@

lock: .venv/demo
	$(BIN)/python -m pip install --quiet --constraint constraints.txt uv
	$(BIN)/python .ci/lock

clean:
	rm -rf .venv build dist .pytest_cache .mypy_cache .ruff_cache
