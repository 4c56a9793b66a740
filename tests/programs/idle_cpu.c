/* idle_cpu.c - an idle runtime uses no CPU: in two seconds no thread of the process even wakes up. */
#include "harness.h"
#include "where.h"

#include <ccc/ccc.h>

#include <dirent.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

enum { HANDFUL = 10, CPU_US_MAX = 10000, LOOK_MS = 2000 };

static long switches_of_all_threads(void) {
    long sum = 0;
    DIR *dir = opendir("/proc/self/task");
    CHECK(dir != NULL);
    for (struct dirent *e; (e = readdir(dir)) != NULL;) {
        char path[300], line[256];
        if (e->d_name[0] == '.') continue;
        snprintf(path, sizeof path, "/proc/self/task/%s/status", e->d_name);
        FILE *f = fopen(path, "re");
        if (f == NULL) continue;
        while (fgets(line, sizeof line, f) != NULL)
            if (strncmp(line, "voluntary_ctxt_switches:", 24) == 0) sum += atol(line + 24);
        fclose(f);
    }
    closedir(dir);
    return sum;
}

static long cpu_us(void) {
    struct rusage r;
    CHECK_EQ(getrusage(RUSAGE_SELF, &r), 0);
    return (long)(r.ru_utime.tv_sec + r.ru_stime.tv_sec) * 1000000 + (long)(r.ru_utime.tv_usec + r.ru_stime.tv_usec);
}

static void look_at_the_clock(long ms) {
    struct timespec ts = {ms / 1000, ms % 1000 * 1000000};
    while (nanosleep(&ts, &ts) != 0) {
    }
}

struct quiet {
    long switches, cpu_us;
};

static struct quiet quiet_for(long ms) {
    long switches = switches_of_all_threads(), us = cpu_us();
    look_at_the_clock(ms);
    us = cpu_us() - us; /* without what it takes to count the switches: milliseconds in an emulator */
    return (struct quiet){switches_of_all_threads() - switches, us};
}

/* The workers take a while to become idle (a search, some ticks): at most ten seconds on a busy machine. */
static void await_rest(void) {
    for (int i = 0; i < 100; i++)
        if (quiet_for(100).switches <= 2) return;
    CHECK(!"the workers never come to rest");
}

static void check_quiet_for(long ms) {
    if (UNDER_TSAN) SKIP("the race detector has its own thread, which never sleeps");
    if (under_valgrind()) SKIP("valgrind runs one thread at a time and keeps waking the others");
    await_rest();
    struct quiet q = quiet_for(ms);
    printf("%ld voluntary switches, %ld us of CPU in %ld ms\n", q.switches, q.cpu_us, ms);
    CHECK(q.switches <= HANDFUL);
    CHECK(q.cpu_us < CPU_US_MAX);
}

static void check_quiet(void) {
    check_quiet_for(LOOK_MS);
}

static void *fan(void *arg) {
    intptr_t n = (intptr_t)arg;
    CCTask tasks[4];
    if (n == 0) return NULL;
    for (int i = 0; i < 4; i++) CHECK_EQ(cc_spawn(&tasks[i], fan, (void *)(n - 1), NULL), 0);
    for (int i = 0; i < 4; i++) CHECK_EQ(cc_task_join(&tasks[i], NULL), 0);
    return NULL;
}

TEST(just_started) {
    CCRuntimeConfig config = {.workers = 4};
    CHECK_EQ(cc_runtime_init(&config), 0);
    check_quiet();
    CHECK_EQ(cc_runtime_shutdown(UINT64_MAX), 0);
}

TEST(after_a_lot_of_work) {
    CCRuntimeConfig config = {.workers = 8};
    CHECK_EQ(cc_runtime_init(&config), 0);
    CHECK_EQ(cc_run(fan, (void *)6, NULL), 0);
    check_quiet();
    CHECK_EQ(cc_runtime_shutdown(UINT64_MAX), 0);
}

static void *long_sleep(void *arg) {
    int rc = cc_sleep_ms(3600 * 1000);
    CHECK_EQ(rc, ECANCELED);
    return arg;
}

static void *join_it(void *arg) {
    CCTask *task = arg;
    CHECK_EQ(cc_task_join(task, NULL), 0);
    return NULL;
}

/* Fibers that sleep for an hour and fibers that wait for them are no work. */
TEST(with_sleepers_and_waiters) {
    enum { SLEEPERS = 100 };
    static CCTask sleepers[SLEEPERS];
    CCTask waiters[SLEEPERS];
    CCRuntimeConfig config = {.workers = 4};
    CHECK_EQ(cc_runtime_init(&config), 0);
    for (int i = 0; i < SLEEPERS; i++) CHECK_EQ(cc_spawn(&sleepers[i], long_sleep, NULL, NULL), 0);
    for (int i = 0; i < SLEEPERS; i++) CHECK_EQ(cc_spawn(&waiters[i], join_it, &sleepers[i], NULL), 0);
    check_quiet();
    DONE();
    exit(0); /* or it would take an hour, or a cancellation, which another test covers */
}

/* With one short timer the runtime wakes for it and for nothing else. */
static atomic_bool over;

static void *wake_now_and_then(void *arg) {
    for (long i = 0; i < (long)(intptr_t)arg; i++) CHECK_EQ(cc_sleep_ms(100), 0);
    atomic_store(&over, true);
    return NULL;
}

TEST(with_one_slow_timer) {
    if (UNDER_TSAN) SKIP("the race detector has its own thread, which never sleeps");
    if (under_valgrind()) SKIP("valgrind runs one thread at a time and keeps waking the others");
    CCRuntimeConfig config = {.workers = 4};
    CCTask task;
    CHECK_EQ(cc_runtime_init(&config), 0);
    CHECK_EQ(cc_spawn(&task, wake_now_and_then, (void *)25, NULL), 0);
    struct quiet q = quiet_for(LOOK_MS);
    printf("%ld voluntary switches, %ld us of CPU in %d ms\n", q.switches, q.cpu_us, LOOK_MS);
    CHECK(q.cpu_us < 20 * CPU_US_MAX); /* a worker that polls would take 2,000,000 */
    CHECK_EQ(cc_task_join(&task, NULL), 0);
    CHECK(atomic_load(&over));
    CHECK_EQ(cc_runtime_shutdown(UINT64_MAX), 0);
}

/* Workers that were added retire, and then all is as before. */
static int ends[2];
static atomic_bool blocked;

static void *block(void *arg) {
    char byte;
    atomic_store(&blocked, true);
    CHECK_EQ(read(ends[0], &byte, 1), 1);
    return arg;
}

static void *unblock(void *arg) {
    CHECK_EQ(write(ends[1], "x", 1), 1);
    return arg;
}

TEST(after_workers_came_and_went) {
    CCRuntimeConfig config = {.workers = 1, .max_workers = 2};
    CCTask task;
    CHECK_EQ(pipe(ends), 0);
    CHECK_EQ(cc_runtime_init(&config), 0);
    CHECK_EQ(cc_spawn(&task, block, NULL, NULL), 0);
    while (!atomic_load(&blocked)) look_at_the_clock(1);
    CHECK_EQ(cc_run(unblock, NULL, NULL), 0);
    CHECK_EQ(cc_task_join(&task, NULL), 0);
    while (cc_worker_count() != 1) look_at_the_clock(1);
    check_quiet();
    CHECK_EQ(cc_runtime_shutdown(UINT64_MAX), 0);
}

/* A worker that waits for descriptors in the poller wakes for nothing else. */
static void *read_for_ever(void *arg) {
    char byte;
    size_t n;
    CHECK_EQ(cc_fd_read(*(int *)arg, &byte, 1, &n), ECANCELED);
    return NULL;
}

TEST(with_readers_that_wait) {
    enum { READERS = 100 };
    static int fds[READERS][2];
    CCRuntimeConfig config = {.workers = 4};
    CHECK_EQ(cc_runtime_init(&config), 0);
    for (int i = 0; i < READERS; i++) {
        CHECK_EQ(pipe(fds[i]), 0);
        CHECK_EQ(cc_fd_adopt(fds[i][0]), 0);
        CHECK_EQ(cc_spawn(NULL, read_for_ever, &fds[i][0], NULL), 0);
    }
    while (cc_io_waiters() != READERS) look_at_the_clock(1);
    check_quiet_for(LOOK_MS / 4);
    int error;
    do error = cc_runtime_shutdown(100); /* cancels them */
    while (error == ETIMEDOUT);
    CHECK_EQ(error, 0);
}
