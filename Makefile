# make demo      from a fresh clone to an exported translator; TRAIN_OPTIONS: more options of train.py
# make test      the tests of a change, about 20 minutes on two cores
# make test-benchmarks  the tests of benchmarks/ and of the tables on pages
# make test-jax, test-torch  the Keras-only tests on Keras' other backends
# make test-browser  the pages in Chromium
# make test-slow  notebooks, the wheel, the commands of the first pages, Beam, kills, full sizes
# make test-research  the tests of research/
# make test-all  all of these
# make docs      the site in site/, strict, and its test in a browser; make docs-serve shows it while you write
# make findings  runs findings/: surprises about other software, each with packages of its own
# make scores    repeats the scores of tables with the models in pretrained/, in a minute each
# make check     before each commit: format, lint, types, fast tests
# make format    formats the code
#
# Each target creates or updates its own environment in .venv first.

# The first of these that runs and that TensorFlow supports, unless the environment names one.
SYSTEM_PYTHON ?= $(shell for python in python3.11 python3.12 python3.13 python3; do \
    $$python -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))' 2>/dev/null \
    && echo $$python && break; done)
PYTHON := .venv/bin/python
KERAS_ONLY := tests/kernels tests/layers tests/models tests/decoding \
    tests/losses tests/training/test_metrics.py tests/training/test_schedule.py tests/benchmarks/test_gpu.py
# Most of a test is Python code that traces a small graph on one core, so two processes share the files.
# Without the last option, pytest-xdist 3.8 never ends after one of them has crashed.
PARALLEL := --numprocesses 2 --dist loadfile --max-worker-restart 0
# Keras on JAX compiles each operation, and tests run most of them once.
JAX_TESTS := KERAS_BACKEND=jax \
    XLA_FLAGS='--xla_backend_optimization_level=0 --xla_llvm_disable_expensive_passes=true'
export TF_CPP_MIN_LOG_LEVEL := 3

.PHONY: demo scores test test-benchmarks test-jax test-torch test-browser test-slow test-research \
    test-all docs docs-serve check lint types format findings clean

.venv/pyvenv.cfg:
	$(if $(SYSTEM_PYTHON),,$(error expected Python 3.11, 3.12 or 3.13 on the PATH; install one of them))
	$(SYSTEM_PYTHON) -m venv .venv
	$(PYTHON) -m pip install --upgrade pip

.venv/installed: .venv/pyvenv.cfg setup.cfg
	$(PYTHON) -m pip install --editable '.[generated]'
	touch $@

.venv/installed-dev: .venv/installed
	$(PYTHON) -m pip install --editable '.[dev]'
	touch $@

.venv/installed-docs: .venv/installed-dev
	$(PYTHON) -m pip install --editable '.[docs]'
	touch $@

demo: .venv/installed
	$(PYTHON) train.py --config configs/demo.yaml --run_dir runs/demo $(TRAIN_OPTIONS)
	$(PYTHON) evaluate.py --run_dir runs/demo
	rm -rf served/demo/1
	$(PYTHON) -m export --run_dir runs/demo --to served/demo/1
	@echo "Translations of the SavedModel in a session, as TF Serving runs it:"
	@printf '%s\n' 'twenty-one' 'nine hundred and ninety-nine thousand, nine hundred and ninety-nine' \
	    'June twelfth, twenty seventeen' | $(PYTHON) export/run_in_session.py served/demo/1

scores: .venv/installed-dev
	$(PYTHON) -m benchmarks.translations.repeated

test: .venv/installed-dev lint types
	$(PYTHON) -m pytest $(PARALLEL) --ignore tests/benchmarks

test-benchmarks: .venv/installed-dev lint
	$(PYTHON) -m pytest $(PARALLEL) tests/benchmarks

test-jax: .venv/installed-dev
	$(JAX_TESTS) $(PYTHON) -m pytest $(PARALLEL) $(KERAS_ONLY)

test-browser: .venv/installed-dev
	$(PYTHON) -m pytest -m browser $$(grep --recursive --files-with-matches 'mark\.browser' tests)

test-slow: .venv/installed-dev
	$(PYTHON) -m pytest -m slow

test-all: test test-benchmarks test-jax test-torch test-browser test-slow docs test-research

test-research: .venv/installed-dev lint
	$(PYTHON) -m pytest $(PARALLEL) research/tests
	$(JAX_TESTS) $(PYTHON) -m pytest research/tests/test_layer_complexity.py research/tests/test_head_removal.py

test-torch: .venv/installed-dev
	$(PYTHON) -m pip install --editable '.[torch]'
	KERAS_BACKEND=torch $(PYTHON) -m pytest $(PARALLEL) $(KERAS_ONLY)

docs docs-serve: export NO_MKDOCS_2_WARNING := 1  # setup.cfg pins MkDocs below 2

docs: .venv/installed-docs
	$(PYTHON) -m mkdocs build --strict
	TF_TRANSFORMER_SITE=site $(PYTHON) -m pytest -m slow tests/test_site.py

docs-serve: .venv/installed-docs
	$(PYTHON) -m mkdocs serve

check: .venv/installed-dev lint types
	$(PYTHON) -m pytest --exitfirst tests/layers tests/decoding tests/data tests/models

lint: .venv/installed-dev
	$(PYTHON) -m ruff format --check .
	$(PYTHON) -m ruff check .

types: .venv/installed-dev
	$(PYTHON) -m mypy tf_transformer train.py evaluate.py translate.py export

format: .venv/installed-dev
	$(PYTHON) -m ruff format .
	$(PYTHON) -m ruff check --fix .

findings:
	set -e; for script in findings/*.sh; do echo "$$script"; "$$script"; done

clean:
	rm -rf .venv runs served site
