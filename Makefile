# One word each. `make demo` and `make test` set up everything they need first.
SHELL := /bin/bash
.DEFAULT_GOAL := help
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
UV := $(shell command -v uv 2>/dev/null || echo $(BIN)/uv)
# The default suite runs on every core; a file's tests run in one process; tests/scheduling.py says why.
PYTEST := $(BIN)/python -m pytest -n auto --dist loadgroup --no-loadscope-reorder
# Three processes: each starts clusters and Java programs, and waits for them half the time.
CONFORM := $(BIN)/python -m pytest -n 3 --dist loadgroup --no-loadscope-reorder --durations=40
# What test modules share is typed as the source is; the drivers are programs of other environments.
STAGES := $(shell find tests -name '*.py' ! -name 'test_*' ! -path '*/drivers/*')
NATIVE := $(wildcard native/*.* native/c/* native/src/barnabas_native/*)
BUILD_NATIVE = $(UV) pip install -q --python $(BIN)/python --reinstall-package barnabas-native ./native
# The suites start hundreds of Python processes; without bytecode files each one compiles its imports again: Spark's worker for 2 s.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help install native wheels java demo pipelines test quick check screens simulate fuzz chaos week kills faults exchange mutants coverage conform long card typed browser bench panels docs dist audit changelog serve clean

help:  ## the words and what they do
	@grep -E '^[a-z]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z]+):.*## /\1\t/' | expand -t 12

install: $(VENV)/.installed  ## make a virtual environment from the lock file

$(VENV)/.installed: pyproject.toml uv.lock $(NATIVE)
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "barnabas needs Python 3.11 or newer; run: make PYTHON=python3.11 install")'
	@echo "installing into $(VENV), half a minute the first time …"
	@test -x $(BIN)/python || { command -v uv >/dev/null && uv venv -q --python $(PYTHON) $(VENV); } || $(PYTHON) -m venv $(VENV)
	@test -n "$$(command -v uv)" || test -x $(BIN)/uv || $(BIN)/python -m pip install -q --disable-pip-version-check uv
	@$(UV) sync -q --frozen --inexact --all-extras
	@$(BUILD_NATIVE) 2>/dev/null || echo "went on without barnabas-native, because it needs a C compiler and Python's headers: Spark's source is slower without it; make native says what is missing"
	@$(BIN)/python -m compileall -q src
	@touch $@
	@echo "installed barnabas, and what its tests and Spark need; the command is $(BIN)/barnabas"

native: install  ## build barnabas-native from C, and install it: the loops of Spark's source and sink
	$(BUILD_NATIVE)

wheels: install  ## build barnabas-native's wheel for other machines of this system, in dist/; needs Docker on Linux
	$(UV) tool run cibuildwheel@4.3.5 --output-dir dist native

java: install  ## check for the Java that Spark needs
	@$(BIN)/python -m barnabas.demo.java

demo: install java  ## send a shop's order lines through the broker and Spark
	@$(BIN)/barnabas demo $(ARGS)

pipelines: install java  ## run the shop's tables with spark-pipelines, twice, and ask them with spark-sql
	@PYTHONPATH=. $(BIN)/python tools/run_pipelines.py $(ARGS)

test: install java  ## run the default suite
	$(PYTEST) -q -m "not conform and not long" --durations=25 $(ARGS)

quick: check  ## check, and the tests that need neither Java nor much time: some minutes, for the loop of work
	$(PYTEST) -q -m "not slow and not conform and not long and not spark" $(ARGS)

check: install  ## style, types, import contracts
	$(BIN)/ruff check src tests tools bench examples pipelines packaging native
	$(BIN)/ruff format --check src tests tools bench examples pipelines packaging native
	$(BIN)/mypy
	@echo "$(BIN)/mypy, on what test modules share"; $(BIN)/mypy $(STAGES)
	$(BIN)/lint-imports
	$(BIN)/python -m pytest -q -p no:xdist -p no:cacheprovider tests/test_house.py

screens: install  ## show every table in tmux at 60, 80 and 120 columns, and compare; ARGS=--write keeps what is shown
	$(BIN)/python -m tests.cli.screens $(ARGS)

simulate: install  ## run the broker in virtual time; SEED=n replays one run, SEEDS=n starts n new ones, NODES=3 plays a cluster, SINK=1 the Spark sink, JOBS=n
	$(BIN)/python -m tests.simulation $(if $(SINK),--sink) $(if $(NODES),--nodes $(NODES)) $(if $(SEED),--seed $(SEED)) $(if $(SEEDS),--seeds $(SEEDS)) $(if $(JOBS),--jobs $(JOBS)) $(ARGS)

fuzz: install  ## send a node what no client sends; ARGS="--decoder 10000000 --dispatcher 1000000 --sockets 100000"
	$(BIN)/python -m tests.fuzz $(ARGS)

chaos: install java  ## kill broker, driver and executors under the shop's pipeline, compare its tables; ARGS="--minutes 10 --seed 1"
	PYTHONPATH=tools:pipelines/shop $(BIN)/python -m tests.chaos $(ARGS)

week: install java  ## write a table once a second for days, as far as some minutes carry it; ARGS="--minutes 60 --kind iceberg --without-spark"
	PYTHONPATH=tools:. $(BIN)/python -m tests.week $(ARGS)

kills: install java  ## kill Spark's driver in every window of the sink's protocol, then count; ARGS="--seeds 1-10 --on kafka"
	PYTHONPATH=tools $(BIN)/python -m tests.spark.sink.kill_matrix $(ARGS)

faults: install java  ## three nodes killed, paused, cut apart, without disks, under the checker's clients; ARGS="--minutes 10 --seed 1 --secure"
	PYTHONPATH=tools:. $(BIN)/python -m tests.cluster.fault_run $(ARGS)

exchange: install java  ## nodes of Apache Kafka become barnabas under load, and go back; ARGS="--versions 4.3.1 --quorum static --rounds 10 --kill --compare --meanwhile share,connect --seed 7", or --alone"
	PYTHONPATH=tools:. $(BIN)/python -m tests.cluster.exchange $(ARGS)

mutants: install  ## plant small bugs, run each room's own tests; ROOM=raft or MODULE=src/…, SAMPLE=n, SEED=n
	$(BIN)/python tools/mutants.py $(if $(ROOM),--room $(ROOM)) $(if $(MODULE),--module $(MODULE)) $(if $(SAMPLE),--sample $(SAMPLE)) $(if $(SEED),--seed $(SEED))

coverage: install  ## how much of each module its own test module runs, against the floors; ARGS=src/barnabas/raft
	$(BIN)/python tools/own_coverage.py $(ARGS)

conform: install java  ## run other people's clients and tools on barnabas and on Apache Kafka
	$(BIN)/python tools/apache_kafka.py install
	$(CONFORM) -q -m "conform and not long" $(ARGS)

long: install java  ## run what takes minutes each and adds little to make conform
	$(BIN)/python tools/apache_kafka.py install
	$(BIN)/python -m pytest -q -m long $(ARGS)

card: install java  ## run the clients of docs/compatibility.md only; ARGS="-k sarama" renews one row
	$(BIN)/python tools/apache_kafka.py install
	$(BIN)/python -m pytest -q -m conform tests/conform/test_card.py $(ARGS)

typed: install  ## type every command of the README and docs/ in empty folders from the wheel, and compare what it prints; ARGS=docs/tour.md
	$(BIN)/python -m tests.typed $(ARGS)

browser: install  ## judge the console in Chromium: every page, forms, searches, axe-core; ARGS="--on kafka --records 1000000 --screenshots"
	@command -v chromium chromium-browser google-chrome >/dev/null || { echo "make browser needs Chromium (Debian: apt-get install chromium)"; exit 1; }
	@$(UV) sync -q --frozen --inexact --all-extras --group browser
	$(BIN)/python -m pytest -q -m long tests/browser $(ARGS)

bench: install java  ## compare with Apache Kafka and Spark's connector on this machine; writes docs/benchmarks.md; python -m bench.choices: docs/choices.md
	$(BIN)/python tools/apache_kafka.py install
	PYTHONPATH=tools $(BIN)/python -m bench --output docs/benchmarks.md $(ARGS)

panels: install  ## write docs/dashboards.md: what each panel shows on three nodes, then with one killed; needs Prometheus
	@command -v prometheus >/dev/null || { echo "make panels needs Prometheus (Debian: apt-get install prometheus)"; exit 1; }
	PYTHONPATH=tools $(BIN)/python -m tests.metrics.panel_values

docs: install  ## write the generated files: docs/configuration.md, docs/reference.md, type stubs, dashboards
	$(BIN)/python tools/write_stubs.py
	$(BIN)/python tools/write_configuration_docs.py
	$(BIN)/python tools/write_reference.py
	$(BIN)/python tools/write_dashboards.py

dist: install  ## build the wheel and the source packages, in dist/, with a list of what the wheel's extras bring (SBOM)
	rm -rf dist
	$(UV) build -q
	$(UV) build -q --sdist --out-dir dist native
	$(BIN)/python tools/write_sbom.py
	@ls dist

audit: install  ## ask PyPI whether the locked packages have known vulnerabilities
	@PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/python tools/audit_packages.py

changelog: install  ## print the next release's changelog, from the fragments in changes/
	@$(BIN)/towncrier build --draft --version unreleased

serve: install  ## start a broker on localhost:9092 with its data in ./data
	$(BIN)/barnabas start --data-dir data --listen 127.0.0.1:9092

clean:  ## remove everything that can be made again
	rm -rf $(VENV) dist native/build native/dist native/src/*.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis demo-output pipelines-output chaos-output
