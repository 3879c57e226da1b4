# Every target but `clean` first makes `.venv` from the pinned versions in requirements.lock. No root, nothing outside this folder.
#   make demo    the main job: compile, train on handwritten digits, write build/demo/report.html
#   make test    the tests
#   make test-as-users   a part of those that compare strategies with the oracles, compiled as users compile; PART=3/32 for another
#   make wheel   what pip installs elsewhere, in dist/
#   make fuzz    20 minutes of random examples against the oracles, on two cores; ARGS='--minutes 60 --seed 1' for more and others
# PYTHON=python3.12 chooses the interpreter of a new `.venv`; WORKERS=1 runs the tests in one process; ARGS goes to the tool.

PYTHON  ?= python3
WORKERS ?= auto
ARGS    ?=

# By the commit, so that the parts take turns and a commit has always the same.
PARTS   := 32
PART    ?= $(shell echo $$((0x$$(git rev-parse --short=7 HEAD 2>/dev/null | cut -c 1-7 | grep . || echo 0) % $(PARTS) + 1)))/$(PARTS)

VENV  := .venv
BIN   := $(VENV)/bin
READY := $(VENV)/.ready
TESTS := $(BIN)/python -m pytest -n $(WORKERS) --maxprocesses 8

# The workers and the hundred processes that tests start read compiled modules: without them each compiles all of them anew.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: setup demo test test-as-users test-slow fuzz bench bench-vision wheel lint format lock clean

setup: $(READY)

$(READY): requirements.lock pyproject.toml setup.py
	@$(PYTHON) -c 'import sys; sys.exit("stmlang needs Python 3.11 or newer; set PYTHON=") if sys.version_info < (3, 11) else None'
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install -qq --requirement requirements.lock
	$(BIN)/python -m pip install -qq --constraint requirements.lock --no-build-isolation --editable '.[graphs,demo,images,lsp,tensorboard,safetensors,test,dev]'
	@touch $@

demo: setup
	$(BIN)/python -m stmlang.experiments.digits $(ARGS)

# The tests of a file run in one process, which compiles what they share once; the last files are small.
test: setup
	$(TESTS) --dist loadfile --no-loadscope-reorder -m 'not slow' $(ARGS)

test-as-users: setup
	@echo "This run compiles with XLA's fusion emitters and all optimizations: tests/equivalence, part $(PART)"
	STMLANG_COMPILE=users $(TESTS) -m 'not slow' --part $(PART) tests/equivalence $(ARGS)

test-slow: setup
	$(TESTS) -m slow $(ARGS)

# Of an option that is given twice the last one counts.
fuzz: setup
	$(BIN)/stmlang fuzz --minutes 20 --workers 2 --out build/fuzz $(ARGS)

bench: setup
	$(BIN)/python -m benchmarks.strategies $(ARGS)
	$(BIN)/python -m benchmarks.ratios
	$(BIN)/python -m benchmarks.decays
	$(BIN)/python -m benchmarks.regret
	$(BIN)/python -m benchmarks.compile_time
	$(BIN)/python -m benchmarks.streaming

# pLSTM-Vis against a vision transformer of its width and depth, whole and by part.
bench-vision: setup
	$(BIN)/python -m benchmarks.vision $(ARGS)

# What `pip install` takes anywhere: dist/stmlang-VERSION-py3-none-any.whl.
wheel: setup
	rm -rf build/lib build/bdist.*
	$(BIN)/python -m pip wheel -q --no-build-isolation --no-deps --wheel-dir dist .

# The editable install maps models/ to stmlang.models while Python runs, which a type checker cannot follow; it follows the links.
lint: setup
	@mkdir -p build/inside/stmlang
	@for name in stdlib models experiments stmlang/__init__.py; do ln -sfn ../../../$$name build/inside/stmlang/; done
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/pyright
	$(BIN)/lint-imports

format: setup
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

# Writes down the versions that are installed now: upgrade in .venv first, run the tests, then `make lock`.
lock: setup
	$(BIN)/python -m pip freeze --all --exclude-editable --exclude pip | grep -v ' @ ' > requirements.lock.new
	mv requirements.lock.new requirements.lock
	@touch $(READY)

clean:
	rm -rf build dist *.egg-info .pytest_cache .ruff_cache .hypothesis .import_linter_cache
