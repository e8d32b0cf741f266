# Everything a person does with a checkout; `make` alone lists it. Set-up happens by itself, once (scripts/setup).

.DEFAULT_GOAL := help
.PHONY: help demo test check bench lock clean

help: ## Show this list
	@sed -n 's/^\([a-z]*\):.*## /  make \1\t/p' $(MAKEFILE_LIST) | expand -t 16

demo: .venv/evogit.done ## Evolve circle_packing for a minute, offline, in ./evogit-demo
	.venv/bin/evogit demo
	@echo '     (evogit is .venv/bin/evogit; . .venv/bin/activate makes it plain evogit)'

test: .venv/dev.done ## Run the checks and every test, those of Docker too; starts a daemon where none answers
	scripts/in-memory scripts/with-docker scripts/test

check: .venv/dev.done ## Lint, formatting, types and the architecture
	.venv/bin/ruff check
	.venv/bin/ruff format --check
	.venv/bin/mypy
	.venv/bin/pytest -q -n 0 tests/test_architecture.py

bench: .venv/dev.done ## Measure what EvoGit costs, beside the last release; ARGS=--renew keeps the figures as the new ones
	.venv/bin/python benchmarks/budget.py $(ARGS)

lock: .venv/dev.done ## Pin the newest versions that pyproject.toml allows in constraints.txt
	scripts/lock

clean: ## Remove .venv and caches; runs (evogit-*/) stay
	rm -rf .venv build .pytest_cache .mypy_cache .ruff_cache .hypothesis

.venv/evogit.done: pyproject.toml hatch_build.py constraints.txt scripts/setup
	@scripts/setup '.[web]'
	@touch $@

.venv/dev.done: pyproject.toml hatch_build.py constraints.txt scripts/setup
	@scripts/setup '.[dev]'
	@touch .venv/evogit.done $@
