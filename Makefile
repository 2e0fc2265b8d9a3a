# Everything the project needs, from a machine with python3, make and java.
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
.PHONY: help setup demo recording build wheel deploy docs docs-serve test test-quick lint fmt bench bench-spark load soak \
        fuzz audit clean build-StreamSortLayer dist/stream_sort.zip .java .browser

# Whoever builds images often sets it. Here it would have every process compile anew all that it imports.
unexport PYTHONDONTWRITEBYTECODE

PYTHON ?= python3
SEEDS ?= 100000
MINUTES ?= 15
DIST := dist
# The Python that the functions run on; the same as PythonRuntime in template.yaml.
LAMBDA_PYTHON ?= 3.11
UV_VERSION := 0.13.7
SAM_VERSION := 1.170.0
UV := .tools/bin/uv
SAM := SAM_CLI_TELEMETRY=0 $(UV) tool run --from aws-sam-cli==$(SAM_VERSION) sam
EXTRAS := --extra cli --extra lambda --extra spark
RUN := $(UV) run --frozen $(EXTRAS)
# What needs neither Spark nor the tests' tools does not wait for them on a fresh machine; nor takes them away again.
RUN_LIGHT := $(UV) run --frozen --no-dev --extra cli --extra lambda

help: ## Show this help
	@grep -hE '^[a-z%-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-11s %s\n", $$1, $$2}'

$(UV):
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "stream_sort needs Python 3.11 or newer")'
	$(PYTHON) -m venv .tools
	.tools/bin/python -m pip install --quiet --disable-pip-version-check uv==$(UV_VERSION)

.venv/.ready: $(UV) pyproject.toml uv.lock
	$(UV) sync --frozen $(EXTRAS)
	@touch $@

setup: .venv/.ready ## Install everything into .tools and .venv

demo: $(UV) ## Deploy the app to a local AWS, shuffle messages through it, see them come out in order
	$(RUN_LIGHT) stream-sort demo

recording: setup ## Record the terminal session that README shows, anew, on a local AWS
	$(RUN) python -m tests.docs.recording

docs: $(UV) ## Build the site of docs/ into dist/site; a broken link is an error
	$(UV) run --frozen --isolated --only-group docs zensical build --strict --clean

docs-serve: $(UV) ## Show the site on this machine while you write
	$(UV) run --frozen --isolated --only-group docs zensical serve

build: $(UV) dist/stream_sort.zip ## Build the layer and the functions with sam, and dist/stream_sort.zip for Spark
	version=$$($(PYTHON) -c 'import sys; print("%d.%d" % sys.version_info[:2])'); \
	LAMBDA_PYTHON=$$version $(SAM) build --parameter-overrides PythonRuntime=python$$version; \
	sed -i.bak "s/Default: python3\.[0-9]*/Default: python$$version/" .aws-sam/build/template.yaml

# The wheel is built from the sdist, which proves that the sdist is whole.
wheel: $(UV) ## Build sdist and wheel into dist/
	$(UV) build --quiet --out-dir "$(DIST)"

# No parameters here: they would take the place of all that samconfig.toml remembers. The runtime is in what was built.
deploy: build ## Deploy to your AWS account; asks before it changes anything
	$(SAM) deploy --guided

invoke-%: $(UV) ## Run a function of the local stack: make invoke-enqueue EVENT=events/...
	@test -n "$(EVENT)" || { echo "no event: make invoke-$* EVENT=events/..., one of" events/$*_*.json >&2; exit 1; }
	$(RUN_LIGHT) stream-sort local invoke $* "$(EVENT)"

# Always written anew: a module that was deleted must not live on in it.
dist/stream_sort.zip:
	$(PYTHON) -m stream_sort.replay.py_files $@

# Spark finds Java as this does. Without it, it would end in a stack trace after the first tests.
.java:
	@java="$${JAVA_HOME:+$$JAVA_HOME/bin/}java"; \
	version=$$("$$java" -version 2>&1 | sed -n 's/.* version "\(1\.\)\{0,1\}\([0-9]*\).*/\2/p' | head -n 1) || true; \
	if [ "$${version:-0}" -lt 17 ]; then \
	    echo "Spark needs Java 17 or newer; $$java is $${version:-missing}. Install a JDK (Debian: apt install" \
	        "openjdk-17-jre-headless, macOS: brew install openjdk@17), or set JAVA_HOME to one." >&2; \
	    exit 1; \
	fi

# A test looks at the page of `stream-sort report` in a real browser. Without one it is skipped, and says so.
BROWSERS := chromium chromium-browser google-chrome google-chrome-stable
.browser:
	@for name in $(BROWSERS); do if command -v "$$name" >/dev/null; then exit 0; fi; done; \
	as_root=; if [ "$$(id -u)" -ne 0 ]; then as_root="sudo -n"; fi; \
	if command -v apt-get >/dev/null && $$as_root true 2>/dev/null; then \
	    echo "Installing Debian's chromium, for the test that looks at the report ..."; \
	    { $$as_root apt-get update -q || true; $$as_root env DEBIAN_FRONTEND=noninteractive \
	        apt-get install -q -y --no-install-recommends chromium; } >/dev/null && exit 0; \
	fi; \
	echo "No browser: the test that looks at the report will be skipped. Install Chromium or Chrome (Debian: apt" \
	    "install chromium, macOS: brew install --cask google-chrome) to have it run." >&2

# What measures time needs all cores for itself. The rest shares them, two processes more than there are cores: what runs
# the app on a local AWS waits a lot.
ALONE := tests/benchmarks/test_command_cost.py
WORKERS := $(shell $(PYTHON) -c 'import os; print((os.cpu_count() or 1) + 2)')
# The second part runs even if the first fails: whoever waits for it wants to know all of it.
test: setup .java .browser ## Run all tests
	failed=0; \
	$(RUN) pytest -n $(WORKERS) --no-loadscope-reorder --ignore=$(ALONE) || failed=1; \
	$(RUN) pytest $(ALONE) || failed=1; \
	exit $$failed

test-quick: setup ## Run what needs no AWS and little time, properties with few examples: the inner loop
	HYPOTHESIS_PROFILE=quick $(RUN) pytest -q -n logical tests/unit tests/properties tests/contract \
	    -m "not moto and not ministack and not slow" -k "not OnMoto"

lint: setup ## Check style, types and import rules
	$(RUN) ruff check .
	$(RUN) ruff format --check .
	$(RUN) mypy
	$(RUN) lint-imports

fmt: setup ## Format the code
	$(RUN) ruff check --fix .
	$(RUN) ruff format .

bench: setup ## Count requests, request units, speed and cold starts against what they are compared with
	$(RUN) python -m tests.benchmarks.sorter
	$(RUN) python -m tests.benchmarks.cold_start

bench-spark: setup .java ## Compare replay, archive, export and audit on Spark with what they are compared with
	$(RUN) python -m tests.benchmarks.spark_table
	$(RUN) python -m tests.benchmarks.spark_archive
	$(RUN) python -m tests.benchmarks.spark_export
	$(RUN) python -m tests.benchmarks.spark_growth
	$(RUN) python -m tests.benchmarks.spark_audit

load: setup ## 20,000 messages through the deployed app on a local AWS, with 20 functions killed; prints the verdict
	LOAD="20000 50 20" $(RUN) pytest -s tests/local_stack/test_app.py -k killed_functions

soak: setup ## Simulate SEEDS=n seeds (default 100000), with progress, until done
	$(RUN) python -m stream_sort.testing soak --seeds $(SEEDS)

# With atheris where it installs; what it finds, and hypothesis, is from then on a case of `make test`.
fuzz: setup ## Fuzz every parser of outside input for MINUTES=n (default 15); exit code 1 on a finding
	$(RUN) --group fuzz python -m tests.properties.fuzz --minutes $(MINUTES)

audit: setup ## List the licences of all dependencies, and look for known vulnerabilities in them
	$(RUN) python -m tests.infrastructure.licences
	$(RUN) python -m tests.infrastructure.vulnerabilities

# What `sam build` runs for the layer of template.yaml: the package without what never runs in Lambda (the command line,
# the local stack, Spark, the simulator), its lambda extra as locked, and bytecode. No binaries: they would tie it to one processor, and
# wrapt, the only one that has one, goes without. The bytecode is not checked against the sources'
# times: Lambda unpacks files with other times than they were packed with.
build-StreamSortLayer: $(UV)
	mkdir -p "$(ARTIFACTS_DIR)/python"
	$(UV) export --quiet --frozen --no-dev --extra lambda --no-emit-project --output-file "$(ARTIFACTS_DIR)/requirements.txt"
	$(UV) pip install --quiet --python $(LAMBDA_PYTHON) --target "$(ARTIFACTS_DIR)/python" \
	    --no-deps --require-hashes -r "$(ARTIFACTS_DIR)/requirements.txt"
	rm -rf "$(ARTIFACTS_DIR)"/python/{bin,*.dist-info,boto3/examples} "$(ARTIFACTS_DIR)/requirements.txt"
	find "$(ARTIFACTS_DIR)/python/botocore/data" -name 'examples-*' -delete
	find "$(ARTIFACTS_DIR)/python" -name '*.so' -delete
	cp -R stream_sort "$(ARTIFACTS_DIR)/python/"
	rm -rf "$(ARTIFACTS_DIR)"/python/stream_sort/{cli,local,replay,testing}
	find "$(ARTIFACTS_DIR)/python" -type d \( -name __pycache__ -o -name tests \) -prune -exec rm -rf {} +
	$(UV) run --no-project --python $(LAMBDA_PYTHON) python -m compileall -q -j 0 \
	    --invalidation-mode unchecked-hash "$(ARTIFACTS_DIR)/python"

clean: ## Remove what was installed and built
	rm -rf .tools .venv dist .aws-sam .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
