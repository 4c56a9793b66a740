/* deadlock.c - if the process cannot be inspected completely, no deadlock is reported, and a dump reports no
 * unreachable fibers.
 *
 * A fiber waits for a value that a thread of the program will send later. Meanwhile each system call of the inspection
 * fails in turn, in many processes at a time.
 */
#include "fail.h"
#include "harness.h"

#include "../programs/child.h"
#include "../programs/where.h"
#include "inspect/reach.h"

#include <ccc/ccc.h>

#include <sys/resource.h>
#include <time.h>

static CCChan *line; /* the one reference that is in no fiber's stack: all memory has to be read to find it */

static void *receive(void *arg) {
    int value = 0;
    CHECK_EQ(cc_chan_recv(line, &value, sizeof value), 0);
    CHECK_EQ(value, 7);
    return arg;
}

static void *give_back(void *arg) {
    return arg;
}

/* Long enough for two searches for a deadlock, 50 and 100 ms apart. */
static void *send_late(void *arg) {
    nanosleep(&(struct timespec){.tv_nsec = 400000000}, NULL);
    (void)fail_disarm();
    CHECK_EQ(cc_chan_send(line, &(int){7}, sizeof(int)), 0);
    return arg;
}

static void dump_twice(void) {
    for (int i = 0; i < 2; i++) {
        int rc = cc_dump(stderr);
        CHECK(rc == 0 || rc == ENOMEM);
    }
}

enum { ALL = -1 };

/* From here on only that many more descriptors can be opened. */
static void leave_descriptors(int count) {
    struct rlimit limit;
    CHECK_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
    limit.rlim_cur = limit.rlim_max;
    if (count != ALL) {
        int next = dup(0);
        CHECK(next >= 0 && close(next) == 0);
        limit.rlim_cur = (rlim_t)(next + count);
    }
    CHECK_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
}

enum { NO_FAILURE = -100 }; /* - n: only n descriptors are left instead */

static void live(long n, bool for_ever, bool dumps) {
    line = cc_chan_create(sizeof(int), 0);
    CHECK(line != NULL);
    CHECK_EQ(cc_runtime_init(&(CCRuntimeConfig){.workers = 2}), 0);
    CHECK_EQ(cc_run(give_back, NULL, NULL), 0); /* there are stacks */
    CCTask task;
    CHECK_EQ(cc_spawn(&task, receive, NULL, NULL), 0);
    pthread_t thread;
    CHECK_EQ(pthread_create(&thread, NULL, send_late, NULL), 0);
    if (n <= NO_FAILURE)
        leave_descriptors((int)(NO_FAILURE - n));
    else
        fail_arm(n, FAIL_FILE | FAIL_CALL | FAIL_MEMORY, for_ever);
    if (dumps) dump_twice();
    CHECK_EQ(cc_task_join(&task, NULL), 0);
    if (n <= NO_FAILURE) leave_descriptors(ALL); /* a leak checker needs some at the end */
    CHECK_EQ(pthread_join(thread, NULL), 0);
    CHECK_EQ(cc_runtime_shutdown(UINT64_MAX), 0);
    cc_chan_free(line);
}

/* ---- many at a time ---- */

enum { AT_A_TIME = 16 };

struct run {
    pid_t pid;
    int output; /* a file without a name */
    long n;
};

static struct run begin(long n, bool for_ever, bool dumps) {
    struct run run = {.output = memfd_create("child", MFD_CLOEXEC), .n = n};
    CHECK(run.output >= 0 && fcntl(run.output, F_SETFL, O_APPEND) == 0);
    fflush(NULL);
    run.pid = fork();
    CHECK(run.pid >= 0);
    if (run.pid == 0) {
        alarm(under_valgrind() || under_qemu() ? 300 : 60);
        CHECK(dup2(run.output, STDOUT_FILENO) >= 0 && dup2(run.output, STDERR_FILENO) >= 0);
        live(n, for_ever, dumps);
        exit(0);
    }
    return run;
}

static void end(struct run *run) {
    static struct child child;
    while (waitpid(run->pid, &child.status, 0) < 0) CHECK_EQ(errno, EINTR);
    ssize_t n = pread(run->output, child.output, sizeof child.output - 1, 0);
    CHECK(n >= 0);
    child.output[n] = '\0';
    close(run->output);
    bool good = child.status == 0 && !said(&child, "ccc: deadlock") && !said(&child, "can never continue: nothing");
    if (!good) {
        printf("call %ld failed:\n", run->n);
        show_child(&child);
    }
    CHECK(good);
}

static void each_call(bool for_ever, bool dumps) {
    fail_needs_all();
    static struct run run[AT_A_TIME];
    long all = test_long() ? 400 : dumps || under_valgrind() || under_qemu() ? 16 : 64;
    for (long i = 0; i < all + AT_A_TIME; i++) {
        struct run *at = &run[i % AT_A_TIME];
        if (i >= AT_A_TIME && i - AT_A_TIME < all) end(at);
        if (i < all) *at = begin(i + 1, for_ever, dumps);
    }
    test_count("processes looked at while calls failed", (uint64_t)all);
}

TEST(one_call_fails, .timeout = 120) {
    each_call(false, false);
}

TEST(calls_fail_from_then_on, .timeout = 120) {
    each_call(true, false);
}

TEST(one_call_of_a_dump_fails, .timeout = 300) {
    if (under_valgrind() || under_qemu()) SKIP("reading the debug information takes too long here");
    each_call(false, true);
}

/* Enough of them to list the threads, and none to inspect one: a thread that cannot be inspected may run. */
TEST(few_descriptors) {
    for (int left = 0; left < 4; left++) {
        struct run run = begin(NO_FAILURE - left, false, false);
        end(&run);
    }
}

/* ---- memory that cannot be listed ---- */

struct wanted {
    uintptr_t address;
    bool found;
};

static void look(void *arg, uintptr_t low, uintptr_t high) {
    struct wanted *w = arg;
    if (w->address >= low && w->address < high) w->found = true;
}

/* A search of all memory includes the stack of this thread, which is listed last. */
TEST(memory_is_seen_or_not_claimed) {
    long refused = 0, failed = 1;
    fail_needs_all();
    if (UNDER_ASAN) SKIP("a sanitizer's memory is too large to scan");
    CHECK_EQ(cc_runtime_init(NULL), 0); /* which asks how large a page is */
    for (long n = 1; failed > 0; n++) {
        struct wanted w = {(uintptr_t)&w, false};
        fail_arm(n, FAIL_FILE, false);
        bool all = cc__memory_each(UINT64_MAX, look, &w);
        failed = fail_disarm();
        CHECK(!all || w.found);
        refused += !all;
        if (failed == 0) CHECK(all);
    }
    CHECK(refused > 0);
}
