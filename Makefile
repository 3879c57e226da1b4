# Every target but `clean` and `gpu` first makes `.venv` from the pinned versions in requirements.lock. No root, nothing outside this folder.
#   make demo    the main job: compile, train on handwritten digits, write build/demo/report.html
#   make test    the tests
#   make test-as-users   a part of those that compare strategies with the oracles, compiled as users compile; PART=3/32 for another
#   make wheel   what pip installs elsewhere, in dist/; make sdist the sources, from which pip makes the same
#   make docs    the documentation site, in build/site; ARGS='--wheels DIR' takes numpy for its playground from a folder
#   make fuzz    20 minutes of random examples against the oracles, on two cores; ARGS='--minutes 60 --seed 1' for more and others
#   make gpu     on a machine with an NVIDIA GPU: numbers judged and programs timed on it, build/gpu/gpu.md; ARGS=--quick, ARGS=--dry
# PYTHON=python3.12 chooses the interpreter of a new `.venv`, JAX=0.11.2 another JAX than that of the lock;
# WORKERS=1 runs the tests in one process; ARGS goes to the tool.

PYTHON  ?= python3
WORKERS ?= auto
JAX     ?=
ARGS    ?=

# By the commit, so that the parts take turns and a commit has always the same.
PARTS   := 32
PART    ?= $(shell echo $$((0x$$(git rev-parse --short=7 HEAD 2>/dev/null | cut -c 1-7 | grep . || echo 0) % $(PARTS) + 1)))/$(PARTS)

LOCK  := requirements.lock
VENV  := .venv
BIN   := $(VENV)/bin
READY := $(VENV)/.ready
TESTS := $(BIN)/python -m pytest -n $(WORKERS) --maxprocesses 8

# The workers and the hundred processes that tests start read compiled modules: without them each compiles all of them anew.
unexport PYTHONDONTWRITEBYTECODE

# The versions of the lock, with JAX in another one where it is named: $(call pins,VERSION).
pins = $(if $(1),sed -E 's/^(jax|jaxlib)==.*/\1==$(1)/',cat) $(LOCK)

.PHONY: setup demo test test-as-users test-slow fuzz bench bench-vision gpu wheel sdist docs lint format lock clean

setup: $(READY)

$(READY): $(LOCK) pyproject.toml setup.py
	@$(PYTHON) -c 'import sys; sys.exit("stmlang needs Python 3.11 or newer; set PYTHON=") if sys.version_info < (3, 11) else None'
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(call pins,$(JAX)) > $(VENV)/pins.txt
	$(BIN)/python -m pip install -qq --requirement $(VENV)/pins.txt
	$(BIN)/python -m pip install -qq --constraint $(VENV)/pins.txt --no-build-isolation --editable '.[graphs,demo,images,lsp,tensorboard,safetensors,docs,test,dev]'
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

# A dry run needs no GPU, and takes `.venv`.
GPU_VENV := $(if $(findstring --dry,$(ARGS)),$(VENV),.venv-gpu)

gpu: $(GPU_VENV)/.ready
	$(GPU_VENV)/bin/python -m benchmarks.gpu $(ARGS)

# The CUDA wheels of the JAX that the lock has, or of the newer one on Python 3.12 and newer.
.venv-gpu/.ready: requirements-gpu.txt $(LOCK) pyproject.toml setup.py
	@test -x .venv-gpu/bin/python || $(PYTHON) -m venv .venv-gpu
	@if .venv-gpu/bin/python -c 'import sys; sys.exit(sys.version_info < (3, 12))'; \
	then $(call pins,$(or $(JAX),0.11.2)); else $(call pins,$(JAX)); fi > .venv-gpu/pins.txt
	.venv-gpu/bin/python -m pip install -qq --requirement .venv-gpu/pins.txt
	.venv-gpu/bin/python -m pip install -qq --constraint .venv-gpu/pins.txt --requirement requirements-gpu.txt
	.venv-gpu/bin/python -m pip install -qq --constraint .venv-gpu/pins.txt --no-build-isolation --editable '.[graphs,demo,images,test]'
	@touch $@

# What `pip install` takes anywhere: dist/stmlang-VERSION-py3-none-any.whl.
wheel: setup
	rm -rf build/lib build/bdist.*
	$(BIN)/python -m pip wheel -q --no-build-isolation --no-deps --wheel-dir dist .

# dist/stmlang-VERSION.tar.gz, which holds what the wheel is made of.
sdist: setup
	rm -rf build/lib build/bdist.*
	$(BIN)/python -c 'from setuptools import build_meta; build_meta.build_sdist("dist")'

# Every warning of mkdocs is an error: a link or an anchor that leads nowhere, a page that stands in no menu.
docs: setup
	$(BIN)/python -m docs.site.build $(ARGS)

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
	$(BIN)/python -m pip freeze --all --exclude-editable --exclude pip | grep -v ' @ ' > $(LOCK).new
	mv $(LOCK).new $(LOCK)
	@touch $(READY)

clean:
	rm -rf build dist *.egg-info .pytest_cache .ruff_cache .hypothesis .import_linter_cache
