# The short names of what one does here; the work is done by CMake's presets and the scripts in tools/.
PREFIX ?= /usr/local
JOBS ?= $(shell nproc)
FUZZ_SECONDS ?= 600
CLANG_FORMAT ?= $(shell command -v clang-format-14 || command -v clang-format)

.PHONY: help run timeline test stress histories explore models faults fuzz mutate bench bench-quick bench-publish check-long install uninstall format clean

help:
	@echo "make run         build the library and run the tour of it (examples/tour.c)"
	@echo "make timeline    records examples/pipeline.c and a deadlock in simulations and draws docs/plots/timeline.svg and deadlock.svg"
	@echo "make test        all tests: compilers, sanitizers, valgrind, three CPUs"
	@echo "make stress      some of them: storms and races; also explore (every schedule of small programs), models"
	@echo "                 (of the protocols), faults (calls to the system that fail), histories (and an order that explains them)"
	@echo "make check-long  the same for hours, and a table; PARTS=\"stress explore\" some, BUDGET=40 in so many minutes"
	@echo "make fuzz        the fuzzers, for FUZZ_SECONDS ($(FUZZ_SECONDS)) instead of seconds"
	@echo "make mutate      tests the tests: puts bugs into copies of the library, and sees that the tests notice"
	@echo "make bench       the measurements beside Go, Tokio and others, tables and plots: under half an hour"
	@echo "make bench-quick less of them, in a few minutes"
	@echo "make install     libraries, headers, programs, pkg-config and CMake files below PREFIX ($(PREFIX)); knows DESTDIR"
	@echo "make uninstall   removes what make install has put down"
	@echo "make format      clang-format over all C files"
	@echo "make clean       removes build/"
	@echo
	@echo "One stage of the tests: tools/test.sh tsan; one build: cmake --preset debug && cmake --build --preset debug"

run:
	@tools/deps.sh run
	@mkdir -p build
	@{ cmake --preset release && cmake --build --preset release --target examples_tour -j $(JOBS); } >build/run.log 2>&1 \
		|| { cat build/run.log; exit 1; }
	@build/release/examples/tour

timeline:
	@tools/deps.sh run
	@mkdir -p build
	@{ cmake --preset release && cmake --build --preset release --target examples_pipeline examples_hangs_lock_order cc-trace -j $(JOBS); } >build/run.log 2>&1 \
		|| { cat build/run.log; exit 1; }
	@CC_SIM_SEED=7 CC_RECORD=build/timeline.trace build/release/examples/pipeline >build/run.log
	@build/release/apps/cc-trace -s build/timeline.trace >docs/plots/timeline.svg
	@CC_SIM_SEED=7 CC_RECORD=build/deadlock.trace build/release/examples/hangs/lock_order >>build/run.log 2>&1; [ $$? = 124 ]
	@build/release/apps/cc-trace -s build/deadlock.trace >docs/plots/deadlock.svg
	@build/release/apps/cc-trace build/timeline.trace

test:
	@tools/deps.sh test
	@tools/test.sh

stress:
	@tools/deps.sh test
	@tools/test.sh -v -p 'stress/*' release

histories:
	@tools/deps.sh test
	@tools/test.sh -v -p '@(stress/histories|unit/history/*)' release

faults:
	@tools/deps.sh test
	@tools/test.sh -v -p '@(fault/*|unit/rt/limits|unit/rt/signals|programs/signals)' release

explore models:
	@tools/deps.sh test
	@tools/test.sh $@

mutate:
	@tools/deps.sh test
	@tests/mutate/run.sh

check-long:
	@tools/deps.sh test
	@PARTS="$(PARTS)" BUDGET="$(BUDGET)" tools/check-long.sh

fuzz:
	@tools/deps.sh test
	@tests/fuzz/run.sh $(FUZZ_SECONDS)

bench:
	@tools/deps.sh bench
	@python3 tools/bench

bench-quick:
	@tools/deps.sh bench
	@python3 tools/bench --quick

# Also puts tables and plots into README.md and docs/: on a machine that does nothing else.
bench-publish:
	@tools/deps.sh bench
	@python3 tools/bench --publish

# A build of its own, in which a warning is no error. The prefix decides at configuration time how the library folder is called.
install:
	@tools/deps.sh install
	cmake --preset release -B build/install -DCMAKE_INSTALL_PREFIX="$(PREFIX)" -DCMAKE_COMPILE_WARNING_AS_ERROR=OFF \
		-DCC_BUILD_TESTS=OFF -DCC_BUILD_EXAMPLES=OFF -DCC_BUILD_BENCH=OFF
	cmake --build build/install -j $(JOBS)
	DESTDIR="$(DESTDIR)" cmake --install build/install

uninstall:
	@DESTDIR="$(DESTDIR)" cmake -DMANIFEST=build/install/install_manifest.txt -P cmake/uninstall.cmake

format:
	@find include src tests examples bench apps \( -name '*.[ch]' -o -name '*.[ch]pp' \) 2>/dev/null | xargs -r $(CLANG_FORMAT) -i

clean:
	rm -rf build
