# Two commands do everything on a fresh machine: `make kb` and `make test`.
# May be given: ALL=yes (every snippet, not only what proves each article), VENV, PYTHON, URL (of the site),
# TORCH=cpu|cuda|no (without it: with CUDA where there is an NVIDIA driver; no: what needs torch is skipped).
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
EXTRAS := $(if $(filter no,$(TORCH)),site,run,site)
# uv is a dependency of kbtools and faster than pip; fleet/install.py has it look where pip looks
INSTALL := PYTHONPATH=. $(BIN)/python fleet/install.py --torch $(if $(filter cpu cuda,$(TORCH)),$(TORCH),auto)
# run by a toolchain's own interpreter: see [tool.mypy] in pyproject.toml
ALONE := zygote keeper child sandbox filesystem_view
export PATH := $(abspath $(BIN)):$(PATH)

.DEFAULT_GOAL := help
.PHONY: help kb test coverage quick lint check site serve setup clean

help: ## what each of these does
	@awk -F':.*## ' '/^[a-z]+:.*## /{printf "  make %-8s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

kb: $(VENV)/.kb ## set up (0.5 GB to download), verify every article that this machine can, build the site; ALL=yes: every snippet
	kbtools check
	kbtools verify $(if $(filter yes,$(ALL)),,--quick)
	$(MAKE) site

test: $(VENV)/.test lint ## set up, lint, type-check, run every test
	coverage erase
	coverage run -m pytest -q -n 2 --dist worksteal -m "not slow" tests
	coverage combine -q
	coverage report
	pytest -q -n 2 --dist worksteal -m slow tests
	pytest -q --codeblocks README.md CONTRIBUTING.md docs

coverage: $(VENV)/.test ## what every test covers, the slow ones, too: about 20 minutes
	coverage erase
	coverage run -m pytest -q -n 2 --dist worksteal tests
	coverage combine -q
	coverage report

lint: $(VENV)/.quick ## ruff and mypy
	ruff check .
	ruff format --check .
	mypy
	mypy $(addprefix -m ,$(ALONE))

quick: $(VENV)/.quick ## the tests of one minute: no torch, no Ray, no browser, no building
	pytest -q -n 2 --dist worksteal -m "not slow and not long" tests

check: $(VENV)/.kb ## every rule, every article
	kbtools check

site: $(VENV)/.kb ## the pages, in site/
	kbtools build $(if $(URL),--url $(URL))

serve: $(VENV)/.kb ## the pages while you write them, on http://127.0.0.1:8000
	kbtools serve

setup: $(VENV)/.test ## all that `make kb` and `make test` need, in .venv

$(BIN)/uv:
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet uv msgspec

$(VENV)/.kb: $(BIN)/uv pyproject.toml
	$(INSTALL) --editable '.[$(subst $() ,,$(EXTRAS))]'
	touch $@

$(VENV)/.quick: $(BIN)/uv pyproject.toml
	$(INSTALL) --editable '.[quick]'
	touch $@

$(VENV)/.test: $(VENV)/.kb $(VENV)/.quick
	$(INSTALL) --editable '.[test]'
	$(INSTALL) --no-deps osv==0.0.22 # only for the schema that it brings
	touch $@

clean: ## remove what was built, the environment too
	rm -rf $(VENV) build dist site .kbtools .pytest_cache .mypy_cache .ruff_cache .coverage*
