# make demo: train on the emoji pairs and watch it in the browser.  make test: run all tests.
# PYTHON=python3.12 picks the interpreter, TORCH_INDEX=<URL> the package index for torch (see README).

PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
TORCH_INDEX ?=
PYTEST_ARGS ?= -q -n auto --dist loadfile --no-loadscope-reorder
export PIP_DISABLE_PIP_VERSION_CHECK := 1

.PHONY: demo test check install wheel screenshots translations clean

demo: $(VENV)/.run-ready
	@$(BIN)/python -m uwml_core demo $(DEMO_ARGS)

install: $(VENV)/.run-ready

test: $(VENV)/.test-ready
	@$(PYTHON) .ci/preflight.py chromium
	@$(BIN)/python -m pytest $(PYTEST_ARGS)

check: $(VENV)/.test-ready
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports --no-logo

# from a clean build folder: what an earlier build left there would travel along
wheel: $(VENV)/.run-ready
	@rm -rf build
	@$(BIN)/python -m pip wheel -q --no-deps -w dist .
	@ls dist/*.whl

screenshots: $(VENV)/.test-ready
	@$(PYTHON) .ci/preflight.py chromium
	@$(BIN)/python docs/screenshots.py

translations: $(VENV)/.test-ready
	@$(BIN)/python docs/translations.py

$(VENV)/.run-ready: requirements.txt pyproject.toml
	@$(PYTHON) .ci/preflight.py install
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "Installing the requirements into $(VENV) (once, a few minutes) ..."
	@$(if $(TORCH_INDEX),$(BIN)/python -m pip install -q "$$(grep '^torch==' requirements.txt)" --index-url $(TORCH_INDEX))
	@$(BIN)/python -m pip install -q -r requirements.txt
	@$(BIN)/python -m pip install -q --no-deps -e .
	@touch $@

$(VENV)/.test-ready: $(VENV)/.run-ready tests/requirements.txt
	@$(BIN)/python -m pip install -q -r tests/requirements.txt
	@touch $@

clean:
	rm -rf $(VENV) build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .import_linter_cache
