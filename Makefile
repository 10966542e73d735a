# make demo | test | lint | bench | sanitize | clean. Each sets up what it needs, once, in .venv.

PYTHON ?= python3
BIN := .venv/bin
SOURCES := $(shell find cpp src -type f -not -name '*.pyc' -not -name '*.so') CMakeLists.txt pyproject.toml
CPP := $(wildcard cpp/*.hpp cpp/*.cpp benchmarks/*.cpp)
PIP := $(BIN)/python -m pip --quiet --disable-pip-version-check
TESTS ?= tests

.PHONY: demo test lint bench sanitize format clean

demo: .venv/installed
	$(BIN)/python examples/demo.py

test: .venv/installed lint
	$(BIN)/python -m pytest -n 2 --dist worksteal $(TESTS) --pyargs dualsvm

lint: .venv/installed .venv/tools
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/clang-format --dry-run --Werror $(CPP)

format: .venv/tools
	$(BIN)/ruff check --fix --exit-zero .
	$(BIN)/ruff format .
	$(BIN)/clang-format -i $(CPP)

bench: .venv/installed .venv/bench
	$(BIN)/python -m benchmarks core
	$(BIN)/python -m benchmarks linear
	$(BIN)/python -m benchmarks structured
	$(BIN)/python -m benchmarks latent
	$(BIN)/python -m benchmarks outofcore --gb 1
	$(BIN)/python -m benchmarks dask

# The kernel with the address and undefined-behaviour sanitizers, under the tests that drive it.
SANITIZERS = $(shell $(CXX) -print-file-name=libasan.so):$(shell $(CXX) -print-file-name=libubsan.so)
sanitize: .venv/tools
	$(BIN)/cmake -G Ninja -S . -B build/sanitize -DDUALSVM_SANITIZE=ON -DCMAKE_BUILD_TYPE=Debug \
	    -DPython_EXECUTABLE=$(CURDIR)/$(BIN)/python -DCMAKE_MAKE_PROGRAM=$(CURDIR)/$(BIN)/ninja
	$(BIN)/cmake --build build/sanitize
	rm -rf build/sanitize/site && mkdir -p build/sanitize/site && cp -r src/dualsvm build/sanitize/site/
	$(BIN)/cmake --install build/sanitize --prefix build/sanitize/site
	PYTHONPATH=build/sanitize/site LD_PRELOAD=$(SANITIZERS) ASAN_OPTIONS=detect_leaks=0 \
	    $(BIN)/python -m pytest -p no:cacheprovider $(SANITIZED)
SANITIZED ?= tests/test_kernel.py tests/test_light.py tests/test_columns.py tests/test_newton.py tests/test_newton_looks.py tests/test_properties.py tests/test_input.py tests/test_precision.py

.venv/python:
	@$(PYTHON) -c 'import sys; v = sys.version_info; sys.exit(v < (3, 11) and \
	    f"dualsvm needs Python 3.11 or newer, and {sys.executable} is {v[0]}.{v[1]}: try make PYTHON=python3.12")'
	$(PYTHON) -m venv .venv
	$(PIP) install "scikit-build-core>=0.10" "nanobind>=2.4" cmake ninja
	@touch $@

.venv/installed: .venv/python $(SOURCES)
	$(PIP) install --no-build-isolation .
	@touch $@

.venv/tools: pyproject.toml | .venv/installed
	$(PIP) install --no-build-isolation ".[test,lint]"
	@touch $@

.venv/bench: pyproject.toml | .venv/installed
	$(PIP) install "setuptools>=70.1"  # two of the peers come as sources
	$(PIP) install --no-build-isolation ".[bench]"
	$(PIP) install --no-deps --upgrade --target .venv/multicore "liblinear-multicore>=2.50"  # it, too, says liblinear
	@touch $@

clean:
	rm -rf .venv build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
