# Short names for what a change needs; CONTRIBUTING.md says when. The whole gate is .ci/run.
python := .venv/bin/python

.PHONY: check test fast slow coverage docs gallery matrix

check:  # lint, format, types and import contracts
	.venv/bin/ruff check .
	.venv/bin/ruff format --check .
	.venv/bin/mypy
	.venv/bin/lint-imports

test: fast slow

fast:  # what a plain pytest runs
	$(python) -m pytest

slow:  # killed processes, full disks, simulations, browsers; and properties on more examples
	$(python) -m pytest -m "slow or hypothesis" --hypothesis-profile=thorough

coverage:  # the fast tests, and which lines they reach
	$(python) -m pytest --cov --cov-report=term

docs:  # the site, in docs/_build; warnings are errors
	$(python) -m sphinx -b html -W --keep-going -q docs docs/_build

gallery:  # the pictures of the site, from real runs
	$(python) docs/take_screenshots.py

matrix:  # the fast tests on every supported Python that is here
	.ci/matrix
