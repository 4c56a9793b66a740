/* environment.c - environment variables: valid ones have effect, invalid ones are reported on stderr and ignored. */
#include "harness.h"

#include "../../programs/where.h"
#include "../capture.h"
#include "../depth.h"
#include "fiber/stack.h"
#include "os/cpus.h"

#include <ccc/ccc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/wait.h>
#include <unistd.h>

#ifndef CC_FIBER_WORKERS
#define CC_FIBER_WORKERS cc__cpus_usable()
#endif
#ifndef CC_FIBER_STACK_SIZE
#define CC_FIBER_STACK_SIZE (256 * 1024)
#endif

static struct capture capture;

/* Each switches one category of the trace on. */
static const char *const traces[] = {
    "CC_CHAN_DEBUG", "CC_CHAN_DEBUG_VERBOSE", "CC_CHANNEL_TIMING",   "CC_PARK_DEBUG",   "CC_DEBUG_WAKE",
    "CC_DEBUG_JOIN", "CC_DEBUG_INBOX",        "CC_DEBUG_INBOX_DUMP", "CC_DEBUG_SYSMON", "CC_SPEC_ASSERT",
};

static void clear(void) {
    unsetenv("CC_WORKERS");
    unsetenv("CC_STACK_SIZE");
    unsetenv("CC_VERBOSE");
    unsetenv("CC_FIBER_STATS");
    unsetenv("CC_TRACE");
    for (size_t i = 0; i < array_len(traces); i++) unsetenv(traces[i]);
    unsetenv("CC_PANIC_ABORT");
    unsetenv("CC_MEMBARRIER");
    unsetenv("CC_URING");
    unsetenv("CC_AFFINITY");
}

static void *give_back(void *arg) {
    return arg;
}

/* Starts the runtime, runs a task, shuts down; returns the messages. */
static const char *run_captured(unsigned *workers, size_t *stack_size) {
    capture_start(&capture);
    int rc = cc_run(give_back, NULL, NULL);
    *workers = cc_worker_count();
    *stack_size = cc__stack_default();
    int end = cc_runtime_shutdown(UINT64_MAX);
    const char *said = capture_end(&capture);
    CHECK_EQ(rc, 0);
    CHECK_EQ(end, 0);
    return said;
}

/* A valid value: the runtime has that many workers and that stack, and prints nothing. */
static void check_good(const char *name, const char *value, unsigned workers, size_t stack_size) {
    unsigned got_workers;
    size_t got_size;
    clear();
    CHECK_EQ(setenv(name, value, 1), 0);
    CHECK_EQ(run_captured(&got_workers, &got_size)[0], '\0');
    CHECK_EQ(got_workers, workers);
    CHECK_EQ(got_size, stack_size);
}

/* An invalid one: it is reported with its value, and has no effect. */
static void check_bad(const char *name, const char *value) {
    unsigned workers;
    size_t size;
    char expected[200];
    clear();
    CHECK_EQ(setenv(name, value, 1), 0);
    const char *said = run_captured(&workers, &size);
    snprintf(expected, sizeof expected, "ignoring %s=%.64s", name, value);
    CHECK(contains(said, expected));
    CHECK_EQ(workers, CC_FIBER_WORKERS);
    CHECK_EQ(size, CC_FIBER_STACK_SIZE);
}

TEST(workers) {
    check_good("CC_WORKERS", "1", 1, CC_FIBER_STACK_SIZE);
    check_good("CC_WORKERS", "3", 3, CC_FIBER_STACK_SIZE);
    check_good("CC_WORKERS", "007", 7, CC_FIBER_STACK_SIZE);
    check_good("CC_WORKERS", "64", 64, CC_FIBER_STACK_SIZE);
    check_good("CC_WORKERS", "", CC_FIBER_WORKERS, CC_FIBER_STACK_SIZE); /* the same as not set */
}

TEST(bad_workers) {
    static const char *const bad[] = {
        "0", "-1", "abc", "3x", " 3", "3 ", "+3", "0x3", "1K", "2.5", "513", "4294967297", "18446744073709551617",
    };
    for (size_t i = 0; i < array_len(bad); i++) check_bad("CC_WORKERS", bad[i]);
}

TEST(stack_size) {
    check_good("CC_STACK_SIZE", "16384", CC_FIBER_WORKERS, 16384);
    check_good("CC_STACK_SIZE", "16K", CC_FIBER_WORKERS, 16384);
    check_good("CC_STACK_SIZE", "64k", CC_FIBER_WORKERS, 65536);
    check_good("CC_STACK_SIZE", "100000", CC_FIBER_WORKERS, 131072);
    check_good("CC_STACK_SIZE", "2M", CC_FIBER_WORKERS, 2 * 1024 * 1024);
    check_good("CC_STACK_SIZE", "1m", CC_FIBER_WORKERS, 1024 * 1024);
    check_good("CC_STACK_SIZE", "1024M", CC_FIBER_WORKERS, CC_STACK_SIZE_MAX);
    check_good("CC_STACK_SIZE", "", CC_FIBER_WORKERS, CC_FIBER_STACK_SIZE);
}

TEST(bad_stack_size) {
    static const char *const bad[] = {
        "0",
        "1",
        "16383",
        "15K",
        "1025M",
        "1G",
        "64KB",
        "64 K",
        "K",
        "M",
        "-64K",
        "huge",
        "18446744073709551615M",
        "99999999999999999999",
    };
    for (size_t i = 0; i < array_len(bad); i++) check_bad("CC_STACK_SIZE", bad[i]);
}

/* A value may be arbitrarily long; the message is bounded. */
TEST(endless_value) {
    static char value[20000];
    memset(value, 'x', sizeof value - 1);
    check_bad("CC_WORKERS", value);
    CHECK(strlen(capture.text) < 300);
}

/* The stack can be used. */
static void *use_bytes(void *bytes) {
    use_stack((size_t)bytes, NULL, NULL);
    return bytes;
}

TEST(stack_size_has_effect) {
    clear();
    CHECK_EQ(setenv("CC_STACK_SIZE", "4M", 1), 0);
    CHECK_EQ(cc_run(use_bytes, (void *)(uintptr_t)(3400 * 1024), NULL), 0);
}

TEST(verbose) {
    unsigned workers;
    size_t size;
    clear();
    CHECK_EQ(setenv("CC_VERBOSE", "1", 1), 0);
    CHECK_EQ(setenv("CC_WORKERS", "5", 1), 0);
    CHECK_EQ(setenv("CC_STACK_SIZE", "128K", 1), 0);
    const char *said = run_captured(&workers, &size);
    CHECK(contains(said, "5 workers"));
    CHECK(contains(said, "128 KiB stacks"));
    check_good("CC_VERBOSE", "0", CC_FIBER_WORKERS, CC_FIBER_STACK_SIZE);
    check_good("CC_VERBOSE", "", CC_FIBER_WORKERS, CC_FIBER_STACK_SIZE);
}

TEST(stats) {
    unsigned workers;
    size_t size;
    clear();
    CHECK_EQ(setenv("CC_FIBER_STATS", "1", 1), 0);
    CHECK_EQ(setenv("CC_WORKERS", "2", 1), 0);
    const char *said = run_captured(&workers, &size);
    CHECK(contains(said, "stats: 2 workers, 1 spawned, 1 finished"));
    said = run_captured(&workers, &size); /* each run counts from 0 */
    CHECK(contains(said, "stats: 2 workers, 1 spawned, 1 finished"));
    check_good("CC_FIBER_STATS", "0", CC_FIBER_WORKERS, CC_FIBER_STACK_SIZE);
    check_good("CC_FIBER_STATS", "", CC_FIBER_WORKERS, CC_FIBER_STACK_SIZE);
}

/* Without a shutdown they come at the program's exit. */
TEST(stats_at_exit) {
    clear();
    CHECK_EQ(setenv("CC_FIBER_STATS", "1", 1), 0);
    capture_start(&capture);
    pid_t child = fork();
    if (child == 0) {
        for (int i = 0; i < 10; i++)
            if (cc_run(give_back, NULL, NULL) != 0) _exit(1);
        exit(0);
    }
    int status;
    pid_t reaped = waitpid(child, &status, 0);
    const char *said = capture_end(&capture);
    CHECK_EQ(reaped, child);
    CHECK_EQ(status, 0);
    CHECK(contains(said, "10 spawned, 10 finished"));
}

TEST(bad_flags) {
    static const char *const bad[] = {"yes", "2", "01", " 1", "true", "-1"};
    for (size_t i = 0; i < array_len(bad); i++) {
        check_bad("CC_VERBOSE", bad[i]);
        CHECK(!contains(capture.text, "KiB stacks"));
        check_bad("CC_FIBER_STATS", bad[i]);
        CHECK(!contains(capture.text, "stats:"));
        for (size_t k = 0; k < array_len(traces); k++) check_bad(traces[k], bad[i]);
        check_bad("CC_PANIC_ABORT", bad[i]);
        check_bad("CC_MEMBARRIER", bad[i]);
        check_bad("CC_URING", bad[i]);
        check_bad("CC_AFFINITY", bad[i]);
    }
}

/* Two invalid ones are both reported, and a third, valid one has effect. */
TEST(several) {
    unsigned workers;
    size_t size;
    clear();
    CHECK_EQ(setenv("CC_WORKERS", "many", 1), 0);
    CHECK_EQ(setenv("CC_VERBOSE", "a lot", 1), 0);
    CHECK_EQ(setenv("CC_STACK_SIZE", "32K", 1), 0);
    const char *said = run_captured(&workers, &size);
    CHECK(contains(said, "ignoring CC_WORKERS=many"));
    CHECK(contains(said, "ignoring CC_VERBOSE=a lot"));
    CHECK_EQ(size, 32 * 1024);
}

/* Signals that cannot request a dump: those that cannot be caught, or report a fault, or are the C library's. */
TEST(dump_signals) {
    static const char *const bad[] = {"9", "19", "11", "6", "32", "65", "SEGV", "-1"}, *const good[] = {"0", "10",
                                                                                                        "SIGUSR2"};
    unsigned workers;
    size_t size;
    clear();
    for (size_t i = 0; i < array_len(bad); i++) check_bad("CC_DUMP_SIGNAL", bad[i]);
    for (size_t i = 0; i < array_len(good); i++) {
        CHECK_EQ(setenv("CC_DUMP_SIGNAL", good[i], 1), 0);
        CHECK_EQ(run_captured(&workers, &size)[0], '\0');
    }
}

/* The older name is used if the other one is not set, and is reported if its value is invalid. */
TEST(older_names) {
    clear();
    CHECK_EQ(setenv("CC_V3_PRESSURE_STATS_DUMP", "1", 1), 0);
    unsigned workers;
    size_t stack_size;
    CHECK(contains(run_captured(&workers, &stack_size), "pressure"));
    CHECK_EQ(setenv("CC_PRESSURE_STATS_DUMP", "0", 1), 0);
    CHECK_EQ(run_captured(&workers, &stack_size)[0], '\0');
    CHECK_EQ(unsetenv("CC_PRESSURE_STATS_DUMP"), 0);
    CHECK_EQ(setenv("CC_V3_PRESSURE_STATS_DUMP", "yes", 1), 0);
    CHECK(contains(run_captured(&workers, &stack_size), "ignoring CC_V3_PRESSURE_STATS_DUMP=yes"));
}

/* Who starts a set-user-ID program chooses its environment, but not its files: no variable has an effect. */
static void start_with_other_rights(const char *name) {
    if (setresuid(45678, 0, 0) != 0) _exit(1); /* execve compares them */
    execl("/proc/self/exe", "environment", name, (char *)NULL);
    _exit(1);
}

TEST(a_program_with_more_rights_than_its_caller) {
    static const char recorded[] = "/tmp/ccc-environment-test";
    unsigned workers;
    size_t size;
    if (getenv("EXECUTED") != NULL) {
        if (getauxval(AT_SECURE) == 0) SKIP("the system does not say so");
        CHECK_EQ(run_captured(&workers, &size)[0], '\0');
        CHECK_EQ(size, CC_FIBER_STACK_SIZE);
        return;
    }
    if (geteuid() != 0) SKIP("another user is needed");
    if (under_qemu() || under_valgrind()) SKIP("this program does not execute itself there");
    clear();
    CHECK_EQ(setenv("EXECUTED", "1", 1), 0);
    CHECK_EQ(setenv("CC_STACK_SIZE", "64K", 1), 0);
    CHECK_EQ(setenv("CC_VERBOSE", "1", 1), 0);
    CHECK_EQ(setenv("CC_RECORD", recorded, 1), 0);
    (void)unlink(recorded);
    pid_t child = fork();
    if (child == 0) start_with_other_rights("a_program_with_more_rights_than_its_caller");
    int status;
    CHECK_EQ(waitpid(child, &status, 0), child);
    CHECK_EQ(status, 0);
    CHECK(access(recorded, F_OK) != 0);
}
