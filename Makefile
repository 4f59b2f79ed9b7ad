# make book · make test · make lab · make bench · make sweep · make clean
# Each does its own set-up: a virtual environment in .venv, made again only when pyproject.toml changes.
# PYTHON=/path/to/python3.12 chooses the interpreter.

SHELL := /bin/bash
.DEFAULT_GOAL := help
.PHONY: help setup book test lab bench sweep notebooks clean

bin   := .venv/bin
ready := .venv/.ready
fits  := import sys; sys.exit(not (3, 11) <= sys.version_info[:2] < (3, 14))
page  := _build/html/index.html

help: ## this list
	@grep -hE '^[a-z]+:.*## ' Makefile | sed -E 's/:.*## /\t/' | awk -F'\t' '{printf "  make %-10s %s\n", $$1, $$2}'

setup: $(ready) ## the environment in .venv (the other targets call it)

book: $(ready) ## execute the chapters at scale "toy" and build the pages
	@echo "Building the book. Chapters that are not in the cache are executed: a few minutes the first time."
	@rm -rf _build/html _build/.doctrees
	@$(bin)/jupyter-book build book -W --keep-going || \
	  { echo "The book was not built; tracebacks, if any, are in _build/html/reports/."; exit 1; }
	@echo "Open the book: file://$(CURDIR)/$(page)"

test: $(ready) ## all tests
	@$(bin)/python -m pytest

lab: $(ready) ## JupyterLab on the chapters (right-click a .md: Open With, Notebook)
	@$(bin)/jupyter lab --notebook-dir=book/chapters

bench: $(ready) ## the performance promises, measured as ratios
	@set -e; for file in benchmarks/*.py; do echo "== $$file"; $(bin)/python "$$file"; done

sweep: $(ready) ## the toy runs behind the chapters' tables (resumable)
	@$(bin)/python -m explorl run params/*/toy*.yaml

notebooks: $(ready) ## write the Colab notebooks and the README's table from the chapters
	@$(bin)/python -m explorl notebooks

clean: ## remove what was built (keeps .venv and runs/)
	rm -rf _build .cache dist .pytest_cache .hypothesis

$(ready): pyproject.toml | $(bin)/python
	@echo "Installing the packages of pyproject.toml into .venv …"
	@$(bin)/python -m pip install --upgrade pip
	@$(bin)/python -m pip install -e '.[train,cpu,book,batch,test]'
	@$(bin)/python -m pip install --no-deps --group no-deps
	@touch $@

$(bin)/python:
	@note=""; \
	for python in $(or $(PYTHON),python3.11 python3.12 python3.13 python3 python); do \
	  "$$python" -c '$(fits)' 2>/dev/null || continue; \
	  "$$python" -c 'import ensurepip, venv' 2>/dev/null || { \
	    note="$$python has no venv module. On Debian or Ubuntu: apt install python3-venv"; continue; }; \
	  echo "Making .venv with $$python, $$("$$python" --version)"; \
	  "$$python" -m venv .venv || { rm -rf .venv; exit 1; }; \
	  exit 0; \
	done; \
	echo "No usable Python 3.11, 3.12 or 3.13$(if $(PYTHON), at PYTHON=$(PYTHON)). $$note" >&2; \
	[ -n "$$note" ] || echo "Install one, or say where it is: make PYTHON=/path/to/python3.12 $(MAKECMDGOALS)" >&2; \
	exit 1
