# Everything here runs from a fresh clone with a JDK 17, Maven 3.8, Python 3.10 or newer and make.

PYTHON ?= python3
MAVEN ?= mvn -q -B -f jvm-shim/pom.xml

# The default is what "pip install pyspark delta-spark" gives together. Other Spark minors have environments of their own.
DEFAULT_SPARK := 4.2
SPARK ?= $(DEFAULT_SPARK)
OTHER_SPARKS := 4.0 4.1 4.3
# Maven Central has the test classes of these.
SPARKS_WITH_SUITES := 4.0 4.1 4.2
PYSPARK_4.0 := 4.0.5
PYSPARK_4.1 := 4.1.4
PYSPARK_4.3 := 4.3.0

VENV_NAME := .venv$(if $(filter-out $(DEFAULT_SPARK),$(SPARK)),-$(SPARK))
VENV := $(CURDIR)/$(VENV_NAME)
RUN := $(VENV)/bin/python
INSTALLED := $(VENV_NAME)/.installed
DEFAULT_INSTALLED := .venv/.installed
OTHER_INSTALLED := $(OTHER_SPARKS:%=.venv-%/.installed)
# PySpark comes as a source distribution: pip makes a wheel of its jars, which are compressed already.
STORED_WHEEL := --config-settings=--build-option=--compression=stored
DELTA_JARS := jvm-shim/delta-jars/target/jars
KAFKA_JARS := jvm-shim/kafka-jars/target/jars jvm-shim/kafka-broker/target/jars
CLASS_ARCHIVE := .venv/spark-classes.jsa
OBJECT_STORES := .venv/.object-stores
FLOOR_JAR := jvm-shim/benchmark/target/spark-ckpt-benchmark.jar
FLINK_JOB := jvm-shim/flink-bench/target/2.1/flink-bench.jar
# Tests with drivers of their own wait a lot, so three processes keep two cores busy. The core of each minor is one.
PROCESSES := 3
# Groups of tests begin in the order that tests/conftest.py gives them.
IN_PARALLEL := -n $(PROCESSES) --dist loadgroup --no-loadscope-reorder
ACTIONLINT := $(VENV)/bin/actionlint

# Spark has to use the Python and the PySpark of the virtual environment, whatever the caller's shell has set.
export PYSPARK_PYTHON := $(RUN)
export PYSPARK_DRIVER_PYTHON := $(RUN)
unexport SPARK_HOME SPARK_CONF_DIR SPARK_REMOTE SPARK_API_MODE SPARK_CONNECT_MODE_ENABLED PYSPARK_SUBMIT_ARGS PYTHONPATH

.DEFAULT_GOAL := help
.PHONY: help venv jar maven prepare demo golden test test-scala test-python test-core test-versions test-flink test-long test-stores test-yarn test-random spark-suites spark-suites-planned spark-suites-local fuzz fuzz-state faults \
	simulate tiers power-loss soak soak-cluster soak-kafka soak-yarn endurance bench bench-nexmark bench-flink bench-recovery bench-scale bench-rescale bench-import bench-latency lint actionlint format generate docs plots site wheel clean

help:  ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 14

$(DEFAULT_INSTALLED): pyproject.toml jvm-shim/hatch_build.py
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10) and "Python 3.10 or newer is needed: make PYTHON=...")'
	$(PYTHON) -m venv .venv
	.venv/bin/python -m pip install -q --disable-pip-version-check -e '.[dev]'
	@touch $@

# Apart from the rest, since it takes the longest and needs no jar.
.PRECIOUS: .venv-%/.pyspark
.venv-%/.pyspark:
	@test -n "$(PYSPARK_$*)" || { echo "SPARK=$* is none of: $(DEFAULT_SPARK) $(OTHER_SPARKS)"; exit 1; }
	$(PYTHON) -m venv .venv-$*
	.venv-$*/bin/python -m pip install -q --disable-pip-version-check $(STORED_WHEEL) 'pyspark==$(PYSPARK_$*)'
	@touch $@

# Without Delta, which has no release for all of them. The jars are there already, so pip builds none.
.venv-%/.installed: .venv-%/.pyspark $(DEFAULT_INSTALLED) | jar
	.venv-$*/bin/python -m pip install -q --disable-pip-version-check -e '.[test-core,bench]' 'pyspark==$(PYSPARK_$*)'
	@touch $@

venv: $(INSTALLED)  ## virtual environment with the project and its tools: .venv, or .venv-4.x with SPARK=4.x

jar: $(DEFAULT_INSTALLED)  ## shim jars in spark_ckpt/jars, rebuilt when a source is newer
	@.venv/bin/python jvm-shim/hatch_build.py

maven: jar  ## repository of the Maven artifacts in dist/maven; MAVEN_ARGS="--url URL --sign KEY"
	.venv/bin/python jvm-shim/maven_repository.py dist/maven $(MAVEN_ARGS)

$(DELTA_JARS): jvm-shim/delta-jars/pom.xml
	$(MAVEN) -pl delta-jars package
	@touch $@

$(KAFKA_JARS): jvm-shim/%/target/jars: jvm-shim/%/pom.xml
	$(MAVEN) -pl $* package
	@touch $@

$(FLOOR_JAR): jvm-shim/pom.xml jvm-shim/benchmark/pom.xml $(shell find jvm-shim/benchmark/src -name "*.scala")
	$(MAVEN) -pl benchmark package
	@touch $@

$(FLINK_JOB): jvm-shim/pom.xml jvm-shim/flink-bench/pom.xml $(shell find jvm-shim/flink-bench/src -type f)
	mvn -q -B -f jvm-shim/flink-bench/pom.xml package
	mvn -q -B -f jvm-shim/flink-bench/pom.xml package -Pflink-1.20
	@touch $@

# Tests of a server that is not installed skip.
$(OBJECT_STORES): tests/support/object_stores.py $(DEFAULT_INSTALLED)
	-.venv/bin/python -m tests.support.object_stores
	@touch $@

# Other minors start too few drivers to be worth it.
$(CLASS_ARCHIVE): tests/support/class_archive.py tests/support/archived_query.py $(DEFAULT_INSTALLED) | jar
	.venv/bin/python -m tests.support.class_archive

prepare: jar $(INSTALLED) $(if $(filter $(DEFAULT_SPARK),$(SPARK)),$(DELTA_JARS) $(KAFKA_JARS))  ## prerequisites of the demo and the tests

demo: prepare $(if $(filter --s3,$(DEMO_ARGS)),$(FLOOR_JAR))  ## main job: three queries, killed three times, every result checked; DEMO_ARGS=--s3 or --kafka
	$(RUN) -m benchmarks.demo $(DEMO_ARGS)

# The environments of the other minors come from the network, so they are made beside the compiler and the Scala tests.
test:  ## all tests on the default Spark, and the core on the other minors
	$(MAKE) -j 2 $(DEFAULT_INSTALLED) $(OTHER_SPARKS:%=.venv-%/.pyspark)
	$(MAKE) -j 2 test-scala $(CLASS_ARCHIVE) $(OTHER_INSTALLED) $(OBJECT_STORES)
	$(MAKE) test-python
	$(MAKE) test-core

test-scala: jar  ## unit tests of the engine and the shim; SPARK=4.x for those of the shim
	$(MAVEN) $(if $(filter-out $(DEFAULT_SPARK),$(SPARK)),-pl shim -am -Dspark.minor=$(SPARK)) verify

# Maven does not share its local repository between processes, so the interfaces are checked one after the other.
test-core: $(OTHER_SPARKS:%=test-interfaces-%)  ## core tests on each other Spark minor
	$(MAKE) -j $(PROCESSES) -O -k $(OTHER_SPARKS:%=test-core-%)

test-interfaces-%: .venv-%/.installed
	$(MAVEN) -pl shim -am -Dspark.minor=$* -Dtest.root=src/none verify

test-core-%: .venv-%/.installed
	.venv-$*/bin/python -m pytest tests/spark -m "core and not long" $(PYTEST_ARGS)

test-versions: test test-flink test-long test-yarn  ## all tests on all Spark minors, and Spark's own suites: hours in full
	for minor in $(OTHER_SPARKS); do $(MAKE) test-scala test-python test-long SPARK=$$minor || exit; done
	for minor in $(SPARKS_WITH_SUITES); do $(MAKE) spark-suites SPARK=$$minor || exit; done
	$(MAKE) spark-suites-local

test-python: prepare $(FLOOR_JAR) $(if $(filter $(DEFAULT_SPARK),$(SPARK)),$(CLASS_ARCHIVE) $(OTHER_INSTALLED) $(OBJECT_STORES))  ## unit tests of the library, queries through PySpark, restores, conformance
	$(RUN) -m pytest -m "not cluster and not flink and not long and not stores" $(or $(PYTEST_ARGS),$(IN_PARALLEL))

test-long: prepare $(FLOOR_JAR)  ## more kills, damages and long runs, beyond make test: an hour
	$(RUN) -m pytest -m long $(or $(PYTEST_ARGS),$(IN_PARALLEL))

test-yarn: prepare  ## a YARN cluster that loses nodes, application masters and connections
	$(RUN) -m pytest tests/spark/test_yarn.py $(PYTEST_ARGS)

test-stores: prepare $(OBJECT_STORES)  ## six object stores of others: contract, races, kills, two drivers; the first time an hour, to build them
	-$(RUN) -m tests.support.s3_servers
	$(RUN) -m pytest -m stores $(PYTEST_ARGS)

test-flink: $(INSTALLED)  ## savepoints of ours in jobs of Flink 1.20 and 2.1: all types of keys, backends, numbers of key groups
	$(RUN) -m pytest -m flink $(PYTEST_ARGS)

test-random: prepare $(FLOOR_JAR)  ## test-python with fresh random input; PYTEST_ARGS=
	SPARK_CKPT_TEST_SEED=fresh $(RUN) -m pytest -m "not cluster and not flink and not long and not stores" $(or $(PYTEST_ARGS),$(IN_PARALLEL))

spark-suites: jar $(INSTALLED)  ## Spark's published streaming and state suites, with our provider; SUITES="A B" SPARK=4.x
	$(RUN) -m tests.suites $(SUITES)

spark-suites-planned: jar $(INSTALLED)  ## each new query of the suites planned without a start as well; SUITES="A B"
	$(RUN) -m tests.suites --planned --work build/suites/$(SPARK)-planned $(SUITES)

spark-suites-local: jar $(INSTALLED)  ## the same with nearly all state on the local disk, and compressed
	SPARK_CKPT_TEST_PROVIDER=ckpt-local $(RUN) -m tests.suites --work build/suites/$(SPARK)-local $(SUITES)

fuzz: prepare  ## random damage to metadata and state streams, judged by Flink; SECONDS= SEED=
	$(RUN) -m tests.metadata.fuzz --seconds $(or $(SECONDS),600) $(if $(SEED),--seed $(SEED))

fuzz-state:  ## random batches beside loads, evictions and snapshots, compared with a map; SECONDS= SEED=
	SPARK_CKPT_TEST_SECONDS=$(or $(SECONDS),600) SPARK_CKPT_TEST_SEED=$(or $(SEED),fresh) $(MAVEN) -pl engine \
		-Dsuites=io.github.sparkckpt.engine.backend.LaterStateModelSuite verify

faults: prepare  ## fault table: each fault at each point of a checkpoint, on a running query; with SPARK=4.3 in real-time mode; SEED=
	$(RUN) -m tests.faults $(if $(SEED),--seed $(SEED)) $(FAULTS_ARGS)

simulate: $(INSTALLED)  ## deterministic simulation of checkpoints under faults; SEEDS= FIRST= SEED=
	$(RUN) -m tests.simulation $(if $(SEED),--seed $(SEED) --trace,--seeds $(or $(SEEDS),10000) --first $(or $(FIRST),0))

tiers: $(INSTALLED)  ## what merged deltas and bases write over 100,000 batches, as a table; BATCHES=
	$(RUN) -m tests.tiers $(if $(BATCHES),--batches $(BATCHES))

golden: prepare  ## golden locations of this release (tests/golden), after a format change
	$(RUN) -m tests.golden

power-loss: $(INSTALLED)  ## recovery from a power loss after each local disk operation; SEEDS= SEED=
	$(RUN) -m tests.power $(if $(SEED),--seed $(SEED),--seeds $(or $(SEEDS),20))

soak: prepare  ## main job under random kills on a cluster, state on the local disk; KILLS= SEED= SOAK_ARGS="--memory-budget 40%"
	$(RUN) -m tests.soak --kills $(or $(KILLS),50) $(if $(SEED),--seed $(SEED)) $(SOAK_ARGS)

soak-cluster: prepare  ## large state on a cluster under stops, kills and moved partitions; MINUTES= SEED=
	$(RUN) -m tests.soak.cluster --minutes $(or $(MINUTES),60) $(if $(SEED),--seed $(SEED)) $(SOAK_ARGS)

soak-kafka: prepare  ## main job on Kafka under random kills, of the broker too; KILLS= SEED=
	$(RUN) -m tests.soak.kafka --kills $(or $(KILLS),20) $(if $(SEED),--seed $(SEED))

soak-yarn: prepare  ## query on YARN under random kills; KILLS= SEED=
	$(RUN) -m tests.soak.yarn --kills $(or $(KILLS),20) $(if $(SEED),--seed $(SEED))

endurance: prepare  ## leak test: 5,000 batches and 1,000 runs in one driver; ENDURANCE_ARGS="--batches 500"
	$(RUN) -m tests.endurance $(ENDURANCE_ARGS)

bench: jar $(FLOOR_JAR)  ## state store benchmark against Spark's providers, hours in full; BENCH_ARGS="--only count-1 --scale 0.01"
	$(RUN) -m benchmarks.stores $(BENCH_ARGS)

bench-nexmark: jar $(FLOOR_JAR)  ## Nexmark beside Spark's providers, hours in full; BENCH_ARGS="--only q3 q17 --rounds 2"
	$(RUN) -m benchmarks.nexmark $(BENCH_ARGS)

bench-flink: jar $(FLOOR_JAR) $(FLINK_JOB)  ## Nexmark on Flink SQL beside Structured Streaming with ours; BENCH_ARGS="--only q3 --session --flink 1.20"
	$(RUN) -m benchmarks.flink $(BENCH_ARGS)

bench-recovery: jar $(FLOOR_JAR) $(FLINK_JOB)  ## seconds from SIGKILL to the next checkpoint, ours, Spark's and Flink's; BENCH_ARGS="--only q17"
	$(RUN) -m benchmarks.flink.recovery $(BENCH_ARGS)

bench-scale: $(INSTALLED)  ## cost of the coordinator with up to 40,000 stores, minutes; BENCH_ARGS="--partitions 200 1000"
	$(RUN) -m benchmarks.scale $(BENCH_ARGS)

bench-rescale: jar  ## rescale benchmark against Spark's repartition; BENCH_ARGS="--keys 10000"
	$(RUN) -m benchmarks.rescale $(BENCH_ARGS)

bench-import: jar $(FLOOR_JAR)  ## import and export beside a plain read of the same state; BENCH_ARGS="--keys 100000"
	$(RUN) -m benchmarks.transfer $(BENCH_ARGS)

# The connector is that of the default Spark; Maven Central has none for 4.3.
bench-latency: jar .venv-4.3/.installed $(KAFKA_JARS)  ## row latency in real-time mode beside RocksDB, on Spark 4.3; BENCH_ARGS="--smoke"
	.venv-4.3/bin/python -m benchmarks.real_time $(BENCH_ARGS)

lint: $(INSTALLED)  ## style, types, import layers and public CI workflows
	$(RUN) -m ruff check .
	$(RUN) -m ruff format --check .
	$(RUN) -m mypy
	$(RUN) -m tests.test_layers
	$(RUN) -m tests.test_scala_layers
	@$(MAKE) --no-print-directory actionlint

actionlint:  ## check .github/workflows; needs Go the first time
	@if [ -x $(ACTIONLINT) ]; then $(ACTIONLINT); else echo "workflows not checked: actionlint needs Go"; fi
ifneq ($(shell command -v go),)
actionlint: $(ACTIONLINT)
endif

$(ACTIONLINT): | $(INSTALLED)
	GOBIN=$(@D) go install github.com/rhysd/actionlint/cmd/actionlint@v1.7.12

format: $(INSTALLED)  ## format the Python code with ruff
	$(RUN) -m ruff format .

generate: $(INSTALLED)  ## FormatDescription.scala and SegmentConstants.scala, the JVM's format constants, from the Python package
	$(RUN) jvm-shim/generate_format.py

docs: $(INSTALLED)  ## docs/settings.md, docs/json.md and docs/messages.md from their sources
	$(RUN) docs/generate_settings.py
	$(RUN) docs/generate_json.py
	$(RUN) docs/generate_messages.py

plots: $(INSTALLED)  ## pictures of docs/ with figures of benchmarks, from docs/plots
	$(RUN) docs/generate_plots.py

site: docs  ## documentation site in build/site; fails on a broken link
	NO_MKDOCS_2_WARNING=1 $(RUN) -m mkdocs build --strict

wheel: $(INSTALLED)  ## dist/spark_ckpt-*.whl with the jar inside
	$(RUN) -m pip wheel -q --disable-pip-version-check --no-deps -w dist .

clean:  ## remove build output, keep .venv
	rm -rf build dist spark_ckpt/jars/*.jar jvm-shim/target jvm-shim/*/target
