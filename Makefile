# The commands for people; `make help` lists them. CMakeLists.txt has the build itself, this file only the
# order of steps. All output goes to build/.

ARGS         ?=
PREFIX       ?= /usr/local
FUZZ_SECONDS ?= 60
SOAK_SECONDS ?= 600
# 0 for a new seed each time. A fixed one gives the same result for the same tree, as CI needs it.
export FUZZ_SEED ?= 0
# "no" leaves the end-to-end tests out of asan and tsan.
E2E          ?= yes
# "no" never calls the package manager, for machines that have the libraries from elsewhere.
INSTALL_DEPS ?= yes

JOBS    := $(shell nproc)
# Unit tests at the same time: many wait for a disk, a clock or an engine, so more than there are cores.
TESTS   := $(shell expr $(JOBS) + 3)
PRESETS := release dev tsan fuzz
FUZZERS := $(basename $(notdir $(shell find src -name '*_fuzz.c')))
SDK     := test/node_modules/.package-lock.json

.DEFAULT_GOAL := build/orrery
.DELETE_ON_ERROR:
.NOTPARALLEL: # Ninja, CTest and Node are parallel themselves, and mixed output is hard to read.

.PHONY: build/orrery
build/orrery: build/release/build.ninja ## build the server, build/orrery
	@echo "== Building build/orrery"
	@cmake --build build/release -j $(JOBS) --target orrery

# Where there is npm the page comes with the server; elsewhere the server says how to get it.
EXPLORER := explorer/dist/include/api/core/explorer_assets.inc
build/orrery: $(wildcard $(EXPLORER))

# Without the registry of npm's packages the server is built all the same; one attempt, since it is not needed.
.PHONY: run
run: ## build and serve, data in ./data; ARGS="--port 8082" adds options
	@if command -v npm >/dev/null; then \
	    npm_config_fetch_retries=0 $(MAKE) --no-print-directory $(EXPLORER) || \
	    echo "== The explorer could not be built, see above: serving without a new one. 'make explorer' tries again."; fi
	@$(MAKE) --no-print-directory build/orrery EXPLORER=
	@echo "== Serving with data in ./data"
	@exec build/orrery serve --data data $(ARGS)

.PHONY: test
test: layers hardening unit-dev e2e-release ## all tests: unit (with sanitizers), end to end
	@echo "== All tests pass"

.PHONY: check
check: layers deps-check build/release/build.ninja ## formatting, static analysis, forbidden things, secrets, lengths, names in documents
	@cmake build/release >build/release.log # it may be older than the newest file
	@tools/check.sh build/release

.PHONY: asan tsan
asan: unit-dev $(if $(filter yes,$(E2E)),e2e-dev) ## tests with the address and undefined-behaviour sanitizers
tsan: unit-tsan $(if $(filter yes,$(E2E)),e2e-tsan) ## tests with the thread sanitizer
test soak asan tsan: export ASAN_OPTIONS = detect_stack_use_after_return=1
test soak asan tsan: export UBSAN_OPTIONS = print_stacktrace=1
# A long history, because without the stack of an old write inside RocksDB its suppression does not match.
asan tsan: export TSAN_OPTIONS = suppressions=$(CURDIR)/tools/tsan.txt:history_size=7

.PHONY: fuzz
fuzz: build-fuzzers ## every fuzz target for FUZZ_SECONDS (60)
	@echo "== Fuzzing each target for $(FUZZ_SECONDS) s"
	@tools/fuzz.sh $(FUZZ_SECONDS) $(FUZZERS)

.PHONY: soak
soak: build-dev build/orrery build-fuzzers $(SDK) ## the random tests and fuzz targets from new seeds, for SOAK_SECONDS (600)
	@tools/soak.sh $(SOAK_SECONDS) $(FUZZERS)

.PHONY: fresh
fresh: deps-fresh ## run and test in a bare Debian 12, as on a new machine; needs root
	@tools/fresh.sh

.PHONY: sdks
sdks: deps-test build/orrery ## run a program with the newest SDK of JavaScript, Python, Go and Java each, and the quick starts, where those are installed
	@echo "== Running a program with the SDK of each of four languages"
	@node --test --test-reporter=spec test/sdks/sdks.test.mjs test/sdks/quickstart.test.mjs
	@echo "== Running the examples of clients/test-kit with Vitest, Jest and pytest"
	@node --test --test-reporter=spec test/sdks/test-kit.test.mjs

.PHONY: copy-kills
copy-kills: deps-test build/orrery $(SDK) ## copies that take a name over under writers, killed at random moments, for ROUNDS rounds (30)
	@echo "== Killing copies that take a name over"
	@node test/copy-kills.mjs

# Not in a home folder, into which the engine's user may not look.
CLUSTER_DATA := $(or $(TMPDIR),/tmp)/orrery-cluster

.PHONY: cluster
cluster: deps-test build/orrery ## three nodes of a cluster and their engine on this machine, to look at; data in /tmp/orrery-cluster
	@echo "== Serving a cluster with data in $(CLUSTER_DATA)"
	@tools/cluster.sh build/orrery $(CLUSTER_DATA) $(ARGS)

.PHONY: cluster-kills
cluster-kills: deps-test build/orrery $(SDK) ## three nodes and their engine under clients, killed, stopped and cut off at random, for ROUNDS rounds (10) from SEED; needs root
	@echo "== Killing nodes and the engine of a cluster"
	@node test/cluster-kills.mjs

.PHONY: cluster-test
cluster-test: deps-test build/orrery $(SDK) ## the end-to-end tests against three nodes, each request at another one
	@echo "== Running the end-to-end tests against three nodes"
	@tools/cluster-e2e.sh build/orrery

.PHONY: import-kills
import-kills: build/orrery ## import and export a million items (ARGS=20000 for fewer), killed and resumed, and compare digests
	@tools/import-kills.sh $(ARGS)

.PHONY: bench
bench: deps-bench $(if $(filter --partitions,$(ARGS)),$(SDK)) build/release/build.ninja ## measure the server beside nginx, Redis, PostgreSQL; ARGS=--large for a million items, --queries for SQL, --partitions for SQL over several, --splits for splits, --throughput for budgets and statistics, --scripts for JavaScript, --feed for the change feed, --fairness for short requests beside long ones, --import for files of items, --snapshot for snapshots, --cluster for several nodes
	@echo "== Building the server"
	@cmake --build build/release -j $(JOBS) --target orrery
	@bench/run.sh $(ARGS)

.PHONY: explorer
explorer: deps-explorer $(EXPLORER) build/orrery ## build the explorer, the web page at /_explorer/, into the server; needs Node.js

.PHONY: explorer-test
explorer-test: deps-browser deps-test explorer $(SDK) explorer/test/node_modules/.package-lock.json ## the explorer in a real browser, against the real server
	@echo "== Running the explorer's tests in Chromium"
	@cd explorer/test && ORRERY=$(CURDIR)/build/orrery node --test --test-reporter=spec *.test.mjs

.PHONY: deb
deb: deps-package explorer ## build the Debian package, build/orrery_VERSION_ARCHITECTURE.deb
	@echo "== Building the Debian package"
	@cmake --build build/release --target installed_texts
	@rm -f build/orrery_*.deb
	@cd build/release && umask 022 && cpack --config CPackConfig.cmake >../deb.log 2>&1 || { cat ../deb.log; exit 1; }
	@ls -l build/orrery_*.deb

.PHONY: deb-test
deb-test: deps-fresh deb ## install, upgrade, remove and purge the Debian package in a bare Debian 12; needs root
	@tools/deb-test.sh build/orrery_*.deb

.PHONY: reference
reference: deps-test ## write docs/errors.md and docs/metrics.md from the tables in the code
	@node tools/reference.mjs

.PHONY: pictures
pictures: deps-test build/orrery ## draw the pictures of README.md, docs/pictures; takes a minute
	@node tools/pictures.mjs

.PHONY: install
install: build/orrery ## install to PREFIX (/usr/local), below DESTDIR if that is given
	@echo "== Installing to $(DESTDIR)$(PREFIX)"
	@cmake --build build/release --target installed_texts
	@DESTDIR="$(DESTDIR)" cmake --install build/release --prefix "$(PREFIX)"

.PHONY: clean
clean: ## remove build/
	@echo "== Removing build/"
	@rm -rf build

.PHONY: help
help: ## this list
	@awk -F ':.*## ' '/^[a-z\/-]+:.*## / { sub("build/orrery", "", $$1); printf "  make %-12s %s\n", $$1, $$2 }' Makefile

# The parts of the commands above. A preset is a row of CMakePresets.json.

.PHONY: layers
layers:
	@echo "== Checking which folder includes which"
	@tools/check-layers-test.sh
	@tools/check-layers.sh

.PHONY: hardening
hardening: build/orrery
	@echo "== Checking how build/orrery was built"
	@tools/check-hardening-test.sh
	@tools/check-hardening.sh build/orrery build/release

DEPS := $(addprefix deps-,build test explorer browser fuzz check bench fresh package)
.PHONY: $(DEPS)
$(DEPS): deps-%:
	@[ "$(INSTALL_DEPS)" = no ] || tools/deps.sh $*

# CMake notices new and removed files by itself, but not changes of the presets.
$(PRESETS:%=build/%/build.ninja): build/%/build.ninja: CMakePresets.json | deps-build
	@echo "== Configuring build/$*"
	@cmake --preset $* >build/$*.log 2>&1 || { cat build/$*.log; exit 1; }
	@touch $@
$(PRESETS:%=build/%/build.ninja): | build
build/fuzz/build.ninja: | deps-fuzz

build:
	@mkdir -p $@

.PHONY: build-fuzzers
build-fuzzers: build/fuzz/build.ninja
	@echo "== Building the fuzz targets"
	@cmake --build build/fuzz -j $(JOBS) --target $(FUZZERS)

.PHONY: $(PRESETS:%=build-%) $(PRESETS:%=unit-%) $(PRESETS:%=e2e-%)
$(PRESETS:%=build-%): build-%: build/%/build.ninja
	@echo "== Building everything in build/$*"
	@cmake --build build/$* -j $(JOBS)

# The journal's tests start servers of their own.
$(PRESETS:%=unit-%): | deps-test
$(filter-out unit-tsan,$(PRESETS:%=unit-%)): unit-%: build-%
	@echo "== Running the unit tests of build/$*"
	@ctest --test-dir build/$* --output-on-failure --no-tests=error -j $(TESTS)

# The other layers have no threads, locks or atomics for the thread sanitizer to check, except for the
# threads that help with a page of a query.
THREADED := base journal store throughput partition catalog cluster script http api
unit-tsan: build/tsan/build.ninja
	@echo "== Building and running the unit tests of build/tsan, of the layers with threads"
	@cmake --build build/tsan -j $(JOBS) --target $(THREADED:%=%_tests) query_read_ahead_test
	@ctest --test-dir build/tsan --output-on-failure --no-tests=error -j $(TESTS) -R '^(($(subst $(eval) ,|,$(THREADED)))/|query/read_ahead_test$$)'

# The tests start the server that the variable names.
$(PRESETS:%=e2e-%): e2e-%: build/%/build.ninja $(SDK)
	@echo "== Building the server of build/$*"
	@cmake --build build/$* -j $(JOBS) --target orrery orrery_next
	@echo "== Running the end-to-end tests against the server of build/$*"
	@ORRERY_NEXT=$(CURDIR)/build/$*/orrery_next tools/e2e.sh $(CURDIR)/build$(if $(filter release,$*),,/$*)/orrery
	@$(if $(filter release,$*),tools/cluster-e2e.sh build/orrery fast)

# npm writes this file at the end, so it is older than the lock exactly when something is missing.
$(SDK): test/package.json test/package-lock.json test/.npmrc | deps-test
	@echo "== Installing the official SDK for the end-to-end tests"
	@cd test && npm ci --loglevel=error
	@touch $@

explorer/node_modules/.package-lock.json: explorer/package.json explorer/.npmrc
	@echo "== Installing the packages of explorer"
	@cd explorer && npm install --loglevel=error
	@touch $@

explorer/test/node_modules/.package-lock.json: explorer/test/package.json explorer/test/package-lock.json explorer/test/.npmrc
	@echo "== Installing the packages of explorer/test"
	@cd explorer/test && npm ci --loglevel=error
	@touch $@

$(EXPLORER): explorer/node_modules/.package-lock.json $(shell find explorer -maxdepth 1 -type f) $(shell find explorer/src -type f)
	@echo "== Building the explorer"
	@cd explorer && npm run --silent build
