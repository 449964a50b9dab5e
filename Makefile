# Two commands from nothing: `make demo` and `make test`. Both set up .venv first.
PYTHON ?= python3.11
VENV   ?= .venv
BUILD  ?= $(shell command -v nvidia-smi >/dev/null 2>&1 && echo gpu || echo cpu)
# Where CPU wheels of torch are not on the default index: PIP_OPTIONS="--extra-index-url <PyTorch's CPU index>"
PIP_OPTIONS ?=

BIN := $(VENV)/bin
# Everything that a run needs is in the repository: nothing is downloaded, nobody is told.
OFFLINE := HF_HUB_OFFLINE=1 TRANSFORMERS_OFFLINE=1 VLLM_NO_USAGE_STATS=1 DO_NOT_TRACK=1 RAY_USAGE_STATS_ENABLED=0

.PHONY: demo test prove-models crash-matrix lint types setup clean

demo: setup ## caption the sample dataset on the demo model
	$(OFFLINE) $(BIN)/framescribe run --config conf/quickstart.yaml
	$(BIN)/python -m demo.show out/quickstart

test: setup ## every test
	$(OFFLINE) $(BIN)/pytest

prove-models: setup ## every tiny model of tests/tiny on vLLM's engine, from its spec (four minutes)
	$(OFFLINE) PROVE_MODELS=all $(BIN)/pytest -v tests/models/test_specs_on_engine.py tests/models/test_own_specs_on_engine.py

crash-matrix: setup ## kill each kind of process at ten moments, on disk and on S3 (about an hour)
	$(OFFLINE) $(BIN)/pytest -v tests/e2e/test_crash_matrix.py --crash-seeds 10

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: setup
	$(BIN)/mypy

setup: $(VENV)/.installed-$(BUILD)

$(VENV)/.installed-$(BUILD): pyproject.toml
	test -d $(VENV) || $(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet $(PIP_OPTIONS) --editable '.[$(BUILD),dev]'
	touch $@

clean:
	rm -rf $(VENV) out dist build
