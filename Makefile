# The front door: what a person types. Meson and Ninja build; this file gets what they need and calls them.
#
#   make            builds build/tepal                      make golden   the numbers of Keras (GOLDEN=DIR DATA=DIR)
#   make setup      gets packages, weights, Python          make bench    speed and memory, as JSON lines and a table
#   make demo       flowers drawn, learned, predicted       make lint     formatting, clang-tidy, cppcheck
#   make test       all tests                               make sanitize tests under ASan, UBSan and TSan
#   make install    (PREFIX=/usr/local, DESTDIR)            make fuzz     each reader for FUZZ_SECONDS=60
#   make test-pjrt  those that need a PJRT plugin, alone    make clean    removes what was built
#   make format     formats the sources
#
# Every finished step of the setup leaves a stamp in build/stamps; without one, it looks before it fetches.

BUILD := build
STAMPS := $(BUILD)/stamps
VENV := .venv
PEERS := .venv-peers
PLUGINS := .venv-pjrt
PREFIX := /usr/local
GOLDEN := ../shared/golden
DATA := ../shared/data/tiny10-192
FUZZ_SECONDS := 60
BENCH_DATA := $(DATA)/tfrecords-jpeg-192x192
BENCHES := bench/bench_step bench/bench_end_to_end bench/bench_input
SOURCES = $(shell find src cli include examples tests bench -name '*.[ch]')
FUZZ_TARGETS = $(notdir $(basename $(wildcard tests/fuzz/fuzz_*.c)))

all: $(BUILD)/build.ninja
	@ninja -C $(BUILD) tepal

$(BUILD)/build.ninja:
	@command -v meson >/dev/null || { echo "Meson is missing: make setup installs all that is needed"; exit 1; }
	meson setup $(BUILD) --prefix=$(PREFIX)

setup: $(STAMPS)/packages $(STAMPS)/weights $(STAMPS)/venv $(STAMPS)/plugins

$(STAMPS)/packages: tools/setup.sh
	@tools/setup.sh packages
	@mkdir -p $(STAMPS) && touch $@

# ImageNet weights of EfficientNet-Lite0, into the cache folder; their checksum is verified also when they are there.
$(STAMPS)/weights: src/model/pretrained.c | $(STAMPS)/packages
	@$(MAKE) --no-print-directory all
	$(BUILD)/tepal weights get efficientnet-lite0
	@touch $@

$(STAMPS)/venv: tests/interop/requirements.txt | $(STAMPS)/packages
	@tools/setup.sh venv $(VENV) $<
	@touch $@

# PJRT plugins for CPU, TPU and GPU, from Python packages; 0.5 GB to fetch, 1.8 GB on disk.
$(STAMPS)/plugins: tests/backend/pjrt/requirements.txt | $(STAMPS)/packages
	@tools/setup.sh venv $(PLUGINS) $<
	@mkdir -p $(STAMPS) && touch $@

$(STAMPS)/peers: bench/peers/requirements.txt | $(STAMPS)/packages
	@tools/setup.sh venv $(PEERS) $<
	@touch $@

$(STAMPS)/developer-packages: tools/setup.sh | $(STAMPS)/packages
	@tools/setup.sh developer-packages
	@touch $@

demo: $(STAMPS)/packages $(STAMPS)/weights
	@$(MAKE) --no-print-directory all
	$(BUILD)/tepal demo

test: setup
	@ninja -C $(BUILD)
	TEPAL_TEST_PJRT=$(abspath $(PLUGINS)) meson test -C $(BUILD) --print-errorlogs
	@grep -h 'skipped: ' $(BUILD)/meson-logs/testlog.txt | sort | uniq -c || true
	$(VENV)/bin/python tests/interop/run.py $(BUILD)

# Beside Meson's tests of that suite nothing is needed: neither weights nor TensorFlow.
test-pjrt: $(STAMPS)/packages $(STAMPS)/plugins
	@$(MAKE) --no-print-directory all
	@ninja -C $(BUILD)
	TEPAL_TEST_PJRT=$(abspath $(PLUGINS)) meson test -C $(BUILD) --print-errorlogs --suite pjrt

# On a machine that has one: trains, stops, resumes, predicts, and prints what to send back.
check-tpu check-gpu: all
	tools/check_device.sh $(@:check-%=%) $(BUILD)/tepal

# Tests against numbers made with Keras; the folders may hold another package of the same layout.
golden: all
	TEPAL_GOLDEN=$(abspath $(GOLDEN)) TEPAL_GOLDEN_DATA=$(abspath $(DATA)) tools/golden.sh $(BUILD)

# NAMES: only measurements with one of these in their names, for example NAMES="infer full_train_b0".
bench: all
	@ninja -C $(BUILD) $(BENCHES) >$(BUILD)/bench.log || { cat $(BUILD)/bench.log; exit 1; }
	@DATA=$(wildcard $(BENCH_DATA)) python3 bench/run.py $(BUILD) $(NAMES)

bench-peers: all $(STAMPS)/peers
	@ninja -C $(BUILD) $(BENCHES) >$(BUILD)/bench.log || { cat $(BUILD)/bench.log; exit 1; }
	@DATA=$(wildcard $(BENCH_DATA)) python3 bench/peers/run.py $(BUILD) $(PEERS)/bin/python $(NAMES)

install: all
	meson install -C $(BUILD)

format: | $(STAMPS)/developer-packages
	clang-format -i $(SOURCES)

lint: all | $(STAMPS)/developer-packages
	tools/check_structure.py
	tools/check_docs.py $(BUILD)/tepal
	clang-format --dry-run -Werror $(SOURCES)
	tools/lint.sh $(BUILD)

sanitize: | $(STAMPS)/packages
	tools/sanitize.sh

fuzz: | $(STAMPS)/developer-packages
	tools/fuzz.sh $(FUZZ_SECONDS) $(FUZZ_TARGETS)

clean:
	rm -rf $(BUILD) $(BUILD)-asan $(BUILD)-tsan $(BUILD)-fuzz

.PHONY: all setup demo test test-pjrt check-tpu check-gpu golden bench bench-peers install format lint sanitize fuzz clean
