/* stuck_output.c - a report that nobody reads blocks only its own thread: sysmon goes on, and a shutdown ends. */
#include "harness.h"

#include "base/attr.h"
#include "base/fatal.h"
#include "os/thread.h"
#include "sched/sched.h"

#include <ccc/ccc.h>

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

/* The writing end of a full pipe, in blocking mode. */
static int full_pipe(void) {
    int ends[2];
    char bytes[4096] = {0};
    CHECK_EQ(pipe(ends), 0);
    CHECK_EQ(fcntl(ends[1], F_SETFL, O_NONBLOCK), 0);
    for (size_t n = sizeof bytes; n > 0; n /= 2)
        while (write(ends[1], bytes, n) > 0) continue;
    CHECK_EQ(fcntl(ends[1], F_SETFL, 0), 0);
    return ends[1];
}

static _Atomic bool stop;
static _Atomic long ticks;

static void *tick(void *arg) {
    while (!stop) {
        if (cc_sleep_ms(1) != 0) break;
        ticks++;
    }
    return arg;
}

static void block_for(uint64_t ms) {
    for (uint64_t end = cc_now_ns() + ms * 1000000; cc_now_ns() < end;) cc__thread_nap(10000000);
}

/* Keeps its worker: that is reported. */
static void *block(void *arg) {
    block_for(400);
    return arg;
}

static _Atomic bool too_late;

/* Keeps its worker until others have made progress. */
static void *block_until_ticks(void *arg) {
    for (uint64_t end = cc_now_ns() + 10000000000; ticks < 20 && !too_late; cc__thread_nap(10000000))
        if (cc_now_ns() > end) too_late = true;
    return arg;
}

/* All workers are blocked: only sysmon can add others. */
static void check_growth(void) {
    CCTask tasks[3];
    for (int i = 0; i < 2; i++) tasks[i] = cc_fiber_spawn_task(block_until_ticks, NULL);
    tasks[2] = cc_fiber_spawn_task(tick, NULL);
    for (int i = 0; i < 2; i++) CHECK_EQ(cc_task_join(&tasks[i], NULL), 0);
    stop = true;
    CHECK_EQ(cc_task_join(&tasks[2], NULL), 0);
    CHECK(!too_late);
}

static void check_shutdown(void) {
    uint64_t begin = cc_now_ns();
    CHECK_EQ(cc_runtime_shutdown(1000), 0);
    CHECK(cc_now_ns() - begin < UINT64_C(10000000000));
}

static void start(void) {
    CCRuntimeConfig config = {.workers = 2, .max_workers = 4};
    CHECK_EQ(setenv("CC_STALL_MS", "100", 1), 0);
    CHECK_EQ(cc_runtime_init(&config), 0);
}

TEST(a_stall_report) {
    start();
    int fd = full_pipe(), before = dup(2);
    CHECK_EQ(dup2(fd, 2), 2);
    CCTask task = cc_fiber_spawn_task(block, NULL); /* is reported */
    CHECK_EQ(cc_task_join(&task, NULL), 0);
    check_growth();
    check_shutdown();
    CHECK_EQ(dup2(before, 2), 2);
}

TEST(a_dump_by_a_signal) {
    start();
    int fd = full_pipe(), before = dup(2);
    CHECK_EQ(dup2(fd, 2), 2);
    CHECK_EQ(raise(SIGQUIT), 0);
    check_growth();
    check_shutdown();
    CHECK_EQ(dup2(before, 2), 2);
}

/* A shutdown waits for a dump in progress; for other callers the runtime does not run any more. */
static _Atomic bool writes, may_go_on;

static ssize_t write_late(void *cookie, const char *text, size_t size) {
    (void)cookie, (void)text;
    writes = true;
    while (!may_go_on) cc__thread_nap(1000000);
    return (ssize_t)size;
}

static void *dump_late(void *arg) {
    FILE *file = fopencookie(NULL, "w", (cookie_io_functions_t){.write = write_late});
    CHECK(file != NULL);
    CHECK_EQ(setvbuf(file, NULL, _IONBF, 0), 0);
    CHECK_EQ(cc_dump(file), 0);
    CHECK_EQ(fclose(file), 0);
    return arg;
}

static void *shut_down(void *arg) {
    check_shutdown();
    return arg;
}

TEST(a_dump_that_a_shutdown_waits_for) {
    pthread_t threads[2];
    CCStats stats;
    FILE *null = fopen("/dev/null", "w");
    CHECK(null != NULL);
    start();
    CHECK_EQ(pthread_create(&threads[0], NULL, dump_late, NULL), 0);
    while (!writes) cc__thread_nap(1000000);
    CHECK_EQ(pthread_create(&threads[1], NULL, shut_down, NULL), 0);
    while (cc_stats(&stats, sizeof stats) == 0) cc__thread_nap(1000000);
    int text = cc_dump(null), json = cc_dump_json(null);
    may_go_on = true;
    for (int i = 0; i < 2; i++) CHECK_EQ(pthread_join(threads[i], NULL), 0);
    CHECK_EQ(text, ESRCH);
    CHECK_EQ(json, ESRCH);
    CHECK_EQ(fclose(null), 0);
}

/* A terminal that nobody reads, filled with up to `most` bytes. Returns how many. */
static long fill_terminal(long most, int *fd) {
    int terminal = posix_openpt(O_RDWR | O_NOCTTY);
    long filled = 0;
    CHECK(terminal >= 0);
    CHECK_EQ(grantpt(terminal), 0);
    CHECK_EQ(unlockpt(terminal), 0);
    CHECK((*fd = open(ptsname(terminal), O_RDWR | O_NOCTTY | O_NONBLOCK)) >= 0);
    for (int tries = 0; tries < 10 && filled < most; tries++, cc__thread_nap(10000000)) /* the system moves it on */
        for (ssize_t n; filled < most && (n = write(*fd, "nineteen characters\n", 20)) > 0; tries = 0) filled += n;
    CHECK_EQ(fcntl(*fd, F_SETFL, 0), 0);
    return filled;
}

/* It is said to have room, but for less than a report. */
TEST(a_stall_report_on_a_terminal) {
    int fd, before = dup(2);
    long most = fill_terminal(1 << 20, &fd);
    (void)fill_terminal(most - 200, &fd);
    start();
    CHECK_EQ(dup2(fd, 2), 2);
    CCTask task = cc_fiber_spawn_task(block, NULL);
    CHECK_EQ(cc_task_join(&task, NULL), 0);
    check_growth();
    check_shutdown();
    CHECK_EQ(dup2(before, 2), 2);
}

static void *wait_for_ever(void *arg) {
    CHECK_EQ(cc_sleep_until(CC_FOREVER), ECANCELED);
    return arg;
}

static void check_deadlock_ends(int fd, uint64_t seed) {
    int status;
    pid_t child = test_fork();
    CHECK(child >= 0);
    if (child == 0) {
        (void)alarm(60);
        CHECK_EQ(dup2(full_pipe(), fd), fd);
        printf("to be flushed"); /* by a report; the harness has it flushed at every line */
        (void)(seed != 0 ? cc_sim_run(seed, wait_for_ever, NULL, NULL) : cc_run(wait_for_ever, NULL, NULL));
        _exit(1);
    }
    CHECK_EQ(waitpid(child, &status, 0), child);
    CHECK(WIFEXITED(status));
    CHECK_EQ(WEXITSTATUS(status), 124);
}

/* The program ends, with or without its report, and whether or not its output can be flushed. */
TEST(a_deadlock_report) {
#ifdef CC_TSAN
    SKIP("the race detector keeps a forked child from ending here");
#endif
    check_deadlock_ends(STDERR_FILENO, 0);
    check_deadlock_ends(STDOUT_FILENO, 0);
    check_deadlock_ends(STDOUT_FILENO, 7);
}

/* Reads, but slowly until it is told to stop. */
static void *read_slowly(void *arg) {
    static long n_read;
    char bytes[512];
    for (ssize_t n; (n = read(*(int *)arg, bytes, sizeof bytes)) > 0; n_read += n)
        if (!stop) cc__thread_nap(10000000);
    return &n_read;
}

enum { LINES = 512 };
static char line[1024];

static void *write_bounded(void *arg) {
    memset(line, '.', sizeof line);
    cc__stderr_bound();
    for (int i = 0; i < LINES; i++) cc__stderr_write(line, sizeof line);
    return arg;
}

/* All that sysmon writes keeps it for a second, and not each write. For all of this the reader takes nine seconds: so
 * some of it is dropped. */
TEST(a_slow_reader) {
    int ends[2], before = dup(2);
    pthread_t reader, writer;
    void *n_read;
    CHECK_EQ(pipe(ends), 0);
    CHECK_EQ(dup2(ends[1], 2), 2);
    CHECK_EQ(pthread_create(&reader, NULL, read_slowly, &ends[0]), 0);
    CHECK_EQ(pthread_create(&writer, NULL, write_bounded, NULL), 0);
    CHECK_EQ(pthread_join(writer, NULL), 0);
    stop = true;
    CHECK_EQ(dup2(before, 2), 2);
    CHECK_EQ(close(ends[1]), 0);
    CHECK_EQ(pthread_join(reader, &n_read), 0);
    CHECK(*(long *)n_read < (long)(LINES * sizeof line));
}

static int told; /* a pipe */

/* Is reported after 0.1 s; that report is dropped after another second. */
static void *fatal_later(void *arg) {
    block_for(1400);
    CHECK_EQ(write(told, "", 1), 1);
    cc__fatal("the last words");
    return arg;
}

static void die_later(int full) {
    struct rlimit none = {0, 0};
    CHECK_EQ(setrlimit(RLIMIT_CORE, &none), 0);
    start();
    CHECK_EQ(dup2(full, 2), 2);
    CCTask task = cc_fiber_spawn_task(fatal_later, NULL);
    (void)cc_task_join(&task, NULL);
    _exit(0);
}

/* A report that sysmon drops does not take the patience of others. */
TEST(a_fatal_message_after_a_dropped_report) {
    static char bytes[65536];
    int ends[2], tells[2];
    bool found = false;
    pid_t child;
    CHECK_EQ(pipe(ends), 0);
    CHECK_EQ(pipe(tells), 0);
    told = tells[1];
    CHECK_EQ(fcntl(ends[1], F_SETFL, O_NONBLOCK), 0);
    while (write(ends[1], bytes, sizeof bytes) > 0) continue;
    CHECK((child = test_fork()) >= 0);
    if (child == 0) die_later(ends[1]);
    close(ends[1]);
    CHECK_EQ(read(tells[0], bytes, 1), 1);
    cc__thread_nap(300000000); /* it is still full when the message comes */
    for (ssize_t n; (n = read(ends[0], bytes, sizeof bytes - 1)) > 0;) {
        for (ssize_t k = 0; k < n; k++)
            if (bytes[k] == '\0') bytes[k] = ' ';
        bytes[n] = '\0';
        found = found || strstr(bytes, "the last words") != NULL;
    }
    CHECK(found);
    CHECK_EQ(waitpid(child, NULL, 0), child);
}

static void *dump_for_ever(void *file) {
    (void)cc_dump(file);
    return NULL;
}

static void *dump_to_nowhere(void *file) {
    CHECK_EQ(cc_dump(file), 0);
    return NULL;
}

/* A fiber waits until that thread has written its dump: its worker is blocked, and others are added. */
TEST(a_fiber_that_waits_for_a_dump) {
    CHECK_EQ(cc_runtime_init(&(CCRuntimeConfig){.workers = 1, .max_workers = 4}), 0);
    FILE *file = fdopen(full_pipe(), "w"), *nowhere = fopen("/dev/null", "w");
    pthread_t thread;
    CHECK(file != NULL && nowhere != NULL);
    setbuf(file, NULL);
    CHECK_EQ(pthread_create(&thread, NULL, dump_for_ever, file), 0);
    cc__thread_nap(100000000);
    CCTask ticker = cc_fiber_spawn_task(tick, NULL), waits = cc_fiber_spawn_task(dump_to_nowhere, nowhere);
    long before = ticks;
    for (uint64_t end = cc_now_ns() + 20000000000; cc_worker_count() == 1 || ticks < before + 20;) {
        CHECK(cc_now_ns() < end);
        cc__thread_nap(1000000);
    }
    cc_task_detach(&ticker);
    cc_task_detach(&waits);
    DONE();
    _exit(0); /* no shutdown, as below */
}

TEST(a_dump_of_another_thread) {
    start();
    FILE *file = fdopen(full_pipe(), "w");
    pthread_t thread;
    CHECK(file != NULL);
    setbuf(file, NULL);
    CHECK_EQ(pthread_create(&thread, NULL, dump_for_ever, file), 0);
    cc__thread_nap(100000000);
    CHECK_EQ(raise(SIGQUIT), 0);
    check_growth();
    DONE();
    _exit(0); /* that thread is inside the runtime, for ever: no shutdown */
}
