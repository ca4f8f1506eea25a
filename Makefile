# `make demo` trains the digits model; `make test` runs all tests. Both set up everything they need in .venv.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check
# What is needed stands in pyproject.toml: $(call install,a group or an extra)
install = @echo "installing into $(VENV): $(1)" && $(PIP) $$($(BIN)/python tools/requirements.py $(1))

.PHONY: demo test full test-interpreters test-families test-loaded every-way programs browser zig build library lint format bench counts stubs docs wheel smoke sanitize \
	sanitize-short fuzz fuzz-sanitized golden compare clean

# The packages below plugins/ that are installed for demo and tests, and the files they are made of.
PLUGINS := $(patsubst %/pyproject.toml,./%,$(wildcard plugins/*/pyproject.toml))
PLUGIN_FILES := $(wildcard plugins/*/pyproject.toml plugins/*/setup.py plugins/*/src/*.py plugins/*/src/*/*.py* plugins/*/src/*/*.[ch]* plugins/*/src/*/*.zig)

demo: build $(VENV)/.demo $(VENV)/.plugins
	@$(BIN)/python -m demo

# The packages' tests load plugins, so they run in a process of their own. A file's tests stay in one process.
test: build $(VENV)/.test $(VENV)/.plugins
	$(BIN)/python -m pytest plugins
	$(BIN)/python -m pytest --numprocesses auto --dist loadfile

# What takes too long for .ci/run, or needs a quiet machine.
full: compare lint every-way programs browser zig test-families test-loaded test-interpreters sanitize fuzz-sanitized
	@echo "all of it has passed"

# The kernels as a library for programs without Python: build/library/libtgx.so.
library: $(VENV)/.build
	$(BIN)/python -m tools.library

# Every sample of every op, eager, traced, scripted and from files, at several sizes; says what was counted.
every-way: build $(VENV)/.test
	$(BIN)/python -m pytest -s tests/jit/full_every_op.py

# The page of a profile in Chromium; skipped where there is none. Screenshots: build/profile.
browser: build $(VENV)/.test
	$(BIN)/python -m pytest -rs tests/profiler/full_browser.py

# The plugin in Zig, built against each header of the table of compiled extensions.
zig: build $(VENV)/.test
	$(PIP) ziglang
	$(BIN)/python -m pytest -rs tests/abi/full_zig.py

# Ten thousand random programs, eager, scripted, traced and from files.
programs: build $(VENV)/.test
	$(BIN)/python -m tools.fuzz --only graph_programs --calls 10000

# The tests under each family of OpenBLAS kernels that the processor runs.
test-families: build $(VENV)/.test $(VENV)/.plugins
	$(BIN)/python -m tools.conditions families

# The tests with eight busy processes beside them.
test-loaded: build $(VENV)/.test $(VENV)/.plugins
	$(BIN)/python -m tools.conditions loaded

# The core tests on every other interpreter of the machine (3.10 to 3.14), each in an environment of its own.
test-interpreters:
	$(PYTHON) tools/interpreters.py

build: $(VENV)/.build
	@echo "building tinygrad_ext; the first time takes some minutes" && $(BIN)/python setup.py --quiet build_ext --inplace

lint: $(VENV)/.lint build
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	PATH="$(CURDIR)/$(BIN):$$PATH" cython-lint tinygrad_ext plugins
	$(BIN)/mypy

format: $(VENV)/.lint
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: build $(VENV)/.bench
	env -u OPENBLAS_CORETYPE -u OPENBLAS_L2_SIZE $(BIN)/python -m benchmarks $(ARGS)

# Instructions of hot paths beside the committed ones, in about a minute; needs valgrind.
counts: build
	$(BIN)/python -m tools.count_instructions --check

stubs docs: build
	$(BIN)/python -m tools.$@
	$(BIN)/python -m tools.torch_names

golden: build $(VENV)/.compare
	$(BIN)/python tests/golden/make_ops.py

wheel: $(VENV)/.wheel
	rm -rf dist
	$(BIN)/python -m build --outdir dist .
	$(BIN)/auditwheel show dist/*.whl || true

# The wheel in an empty environment: imports, trains, saves and loads.
smoke: wheel
	rm -rf build/smoke && $(PYTHON) -m venv build/smoke
	build/smoke/bin/python -m pip install --quiet --disable-pip-version-check dist/*.whl
	cd build/smoke && bin/python ../../tests/smoke.py

sanitize:
	$(PYTHON) tools/sanitize.py

sanitize-short:
	$(PYTHON) tools/sanitize.py --short

# Random input of every kind, in worker processes; ARGS as tools/fuzz/README.md tells, such as "--seconds 60 --only ops".
fuzz: build
	$(BIN)/python -m tools.fuzz $(ARGS)

fuzz-sanitized: $(VENV)/.build
	$(PYTHON) tools/sanitize.py --run -m tools.fuzz --folder $(CURDIR)/build/fuzz-sanitized $(ARGS)

$(VENV)/bin/python:
	@echo "making $(VENV)" && $(PYTHON) -m venv $(VENV)
	@echo "$(CURDIR)" > $$($(BIN)/python -c "import sysconfig; print(sysconfig.get_path('purelib'))")/tinygrad_ext_source.pth

$(VENV)/.build: $(VENV)/bin/python pyproject.toml
	$(call install,build)
	@touch $@

# What they need beyond tinygrad_ext comes with .test and .demo.
$(VENV)/.plugins: $(VENV)/.build $(PLUGIN_FILES)
	@rm -rf plugins/*/build
	@for plugin in $(PLUGINS); do \
		if ls $$plugin/src/*/*.zig >/dev/null 2>&1 && ! $(BIN)/python -c "import ziglang" 2>/dev/null; then \
			echo "left out: $$plugin, which needs $(BIN)/python -m pip install ziglang" && continue; fi; \
		echo "installing into $(VENV): $$plugin" && $(PIP) --no-build-isolation --no-deps $$plugin || exit 1; done
	@touch $@

# PyTorch, to compare with: .compare. The tests and benchmarks that need it are skipped without it.
$(VENV)/.test $(VENV)/.demo $(VENV)/.bench $(VENV)/.wheel: $(VENV)/.%: $(VENV)/.build
	$(call install,$*)
	@touch $@

$(VENV)/.lint $(VENV)/.compare: $(VENV)/.%: $(VENV)/.test
	$(call install,$*)
	@touch $@

compare: $(VENV)/.compare

clean:
	rm -rf build dist .venv *.egg-info plugins/*/build plugins/*/src/*.egg-info
	find tinygrad_ext -name '*.so' -delete
	find tinygrad_ext -name '*_gen.*' -delete
