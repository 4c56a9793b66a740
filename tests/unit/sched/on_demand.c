/* on_demand.c - workers beyond the usable CPUs get their threads when others block, and the scheduler follows the
 * number of usable CPUs. The harness starts all threads at once; here the number of CPUs decides. */
#include "harness.h"

#include "os/cpus.h"
#include "sched/elastic.h"
#include "sched/sysmon.h"
#include "sync/lock.h"

#include <ccc/ccc.h>

#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define MS UINT64_C(1000000)
enum { WORKERS = 4 };

static void nap(long ns) {
    nanosleep(&(struct timespec){.tv_nsec = ns}, NULL);
}

/* On one CPU. */
static void start(unsigned workers, unsigned max) {
    cpu_set_t all, one;
    CHECK_EQ(sched_getaffinity(0, sizeof all, &all), 0);
    CPU_ZERO(&one);
    for (int i = 0; CPU_COUNT(&one) == 0; i++)
        if (CPU_ISSET(i, &all)) CPU_SET(i, &one);
    CHECK_EQ(sched_setaffinity(0, sizeof one, &one), 0);
    CHECK_EQ(unsetenv("CC_MIN_WORKERS"), 0);
    CHECK_EQ(cc_runtime_init(&(CCRuntimeConfig){.workers = workers, .max_workers = max}), 0);
}

static void stop(void) {
    CHECK_EQ(cc_runtime_shutdown(UINT64_MAX), 0);
}

static void *nothing(void *arg) {
    return arg;
}

static void *spawn_many(void *arg) {
    CCTask tasks[64];
    for (int n = 0; n < 20; n++) {
        for (int i = 0; i < 64; i++) CHECK_EQ(cc_spawn(&tasks[i], nothing, NULL, NULL), 0);
        for (int i = 0; i < 64; i++) CHECK_EQ(cc_task_join(&tasks[i], NULL), 0);
    }
    return arg;
}

TEST(threads_are_not_started_for_nothing) {
    start(WORKERS, 2 * WORKERS);
    CHECK_EQ(cc_worker_count(), WORKERS);
    CHECK_EQ(cc__sched_open(), 1);
    CHECK_EQ(cc_run(spawn_many, NULL, NULL), 0);
    CHECK(cc__sched_open() < WORKERS); /* on a busy machine one may have been found in a page fault */
    CCStats stats;
    for (unsigned i = 0; i < WORKERS; i++) CHECK_EQ(cc_stats_worker(i, &stats, sizeof stats), 0);
    CHECK_EQ(cc_stats(&stats, sizeof stats), 0);
    CHECK_EQ(stats.workers, WORKERS);
    stop();
}

/* ---- fibers that block their threads ---- */

static int ends[2];
static atomic_int here;

static void *block(void *arg) {
    char byte;
    atomic_fetch_add(&here, 1);
    CHECK_EQ(read(ends[0], &byte, 1), 1);
    return arg;
}

/* All workers that were asked for can block at the same time, and there are never more threads than the limit. */
TEST(those_that_were_asked_for_can_block) {
    CCTask tasks[WORKERS];
    CHECK_EQ(pipe(ends), 0);
    start(WORKERS, WORKERS);
    for (int i = 0; i < WORKERS; i++) CHECK_EQ(cc_spawn(&tasks[i], block, NULL, NULL), 0);
    while (atomic_load(&here) != WORKERS) nap(1000000);
    CHECK_EQ(cc__sched_open(), WORKERS);
    CHECK_EQ(write(ends[1], "four", WORKERS), WORKERS);
    for (int i = 0; i < WORKERS; i++) CHECK_EQ(cc_task_join(&tasks[i], NULL), 0);
    stop();
}

static atomic_bool enough;

static void *block_briefly(void *arg) {
    while (!atomic_load(&enough)) {
        nap(1000000); /* far below what counts as stuck */
        cc_yield();
    }
    return arg;
}

/* No worker is stuck for long, but workers that were asked for get their threads. */
TEST(short_blocks_count) {
    CCTask tasks[16];
    start(WORKERS, 2 * WORKERS);
    for (int i = 0; i < 16; i++) CHECK_EQ(cc_spawn(&tasks[i], block_briefly, NULL, NULL), 0);
    for (int i = 0; cc__sched_open() < WORKERS; i++) {
        CHECK(i < 20000); /* at least 20 s */
        nap(1000000);
    }
    atomic_store(&enough, true);
    for (int i = 0; i < 16; i++) CHECK_EQ(cc_task_join(&tasks[i], NULL), 0);
    stop();
}

static struct lock busy;

static void *take_busy(void *arg) {
    while (!atomic_load(&enough)) {
        cc__lock_take(&busy);
        cc__lock_release(&busy);
        cc_yield();
    }
    return arg;
}

/* A worker that naps because a lock of the library is held waits for a thread that needs a CPU: it is not blocked. */
TEST(waits_for_the_librarys_locks_do_not_count) {
    CCTask tasks[16];
    start(WORKERS, 2 * WORKERS);
    for (int i = 0; i < 16; i++) CHECK_EQ(cc_spawn(&tasks[i], take_busy, NULL, NULL), 0);
    for (int i = 0; i < 400; i++) {
        while (!cc__lock_grab(&busy)) nap(10000);
        nap(3000000); /* far below what counts as stuck */
        cc__set_release(&busy.word, 0);
        nap(1000000);
    }
    CHECK(cc__sched_open() <= 2); /* on a busy machine one may have been found in a page fault */
    atomic_store(&enough, true);
    for (int i = 0; i < 16; i++) CHECK_EQ(cc_task_join(&tasks[i], NULL), 0);
    stop();
}

static void *take_busy_once(void *arg) {
    cc__lock_take(&busy);
    cc__lock_release(&busy);
    return arg;
}

/* Nor does it compute, although looking at the lock between the naps takes CPU time. */
TEST(long_waits_for_them_do_not_count) {
    CCTask tasks[16];
    start(WORKERS, 2 * WORKERS);
    CHECK(cc__lock_grab(&busy));
    for (int i = 0; i < 16; i++) CHECK_EQ(cc_spawn(&tasks[i], take_busy_once, NULL, NULL), 0);
    nap(300 * MS);
    CHECK(cc__sched_open() <= 2);
    cc__set_release(&busy.word, 0);
    for (int i = 0; i < 16; i++) CHECK_EQ(cc_task_join(&tasks[i], NULL), 0);
    stop();
}

/* ---- the number of CPUs changes ---- */

TEST(threads_follow_the_cpus) {
    CHECK_EQ(setenv("CC_MIN_WORKERS", "1", 1), 0); /* sysmon, which sees one CPU, does not adapt meanwhile */
    CHECK_EQ(cc_runtime_init(&(CCRuntimeConfig){.workers = WORKERS, .max_workers = 2 * WORKERS}), 0);
    CHECK_EQ(cc__sched_open(), 1);
    for (unsigned cpus = 2; cpus <= WORKERS + 1; cpus++) {
        cc__elastic_adapt(cpus);
        CHECK_EQ(cc__sched_open(), cpus <= WORKERS ? cpus : WORKERS);
        CHECK_EQ(cc__get(&cc__sched.base), cc__sched_open());
        CHECK_EQ(cc_run(spawn_many, NULL, NULL), 0);
    }
    CHECK_EQ(cc__get(&cc__sched.surplus), 0);
    for (unsigned cpus = WORKERS - 1; cpus > 0; cpus--) { /* the existing workers stay, and sleep */
        cc__elastic_adapt(cpus);
        CHECK_EQ(cc__get(&cc__sched.base), WORKERS);
        CHECK_EQ(cc__get(&cc__sched.surplus), WORKERS - cpus);
        CHECK_EQ(cc_run(spawn_many, NULL, NULL), 0);
    }
    stop();
}

static atomic_int pieces;

static void *piece(void *arg) {
    for (uint64_t end = cc_now_ns() + 2 * MS; cc_now_ns() < end;) {
    }
    atomic_fetch_add(&pieces, 1);
    return arg;
}

static void *wake_and_compute(void *arg) {
    CCTask tasks[8];
    for (int i = 0; i < 8; i++) CHECK_EQ(cc_spawn(&tasks[i], piece, NULL, NULL), 0);
    while (atomic_load(&pieces) == 0) { /* its worker stays in this turn: others steal what waits */
    }
    for (int i = 0; i < 8; i++) CHECK_EQ(cc_task_join(&tasks[i], NULL), 0);
    return arg;
}

/* A surplus worker still helps where another one is stuck. */
TEST(a_surplus_helps_out) {
    start(2, 2);
    cc__elastic_adapt(2);
    cc__elastic_adapt(1);
    CHECK_EQ(cc__get(&cc__sched.surplus), 1);
    CHECK_EQ(cc_run(wake_and_compute, NULL, NULL), 0);
    CHECK_EQ(atomic_load(&pieces), 8);
    stop();
}

static void *work_until_enough(void *arg) {
    while (!atomic_load(&enough)) cc_yield();
    return arg;
}

/* Sysmon counts them while the runtime works. */
TEST(sysmon_counts_the_cpus) {
    CCTask task;
    cpu_set_t all;
    CHECK_EQ(sched_getaffinity(0, sizeof all, &all), 0);
    if (cc__cpus_usable() < 2) SKIP("two CPUs are needed");
    start(2, 2);
    CHECK_EQ(cc_spawn(&task, work_until_enough, NULL, NULL), 0);
    while (cc__sysmon_thread() == 0) nap(1000000);
    CHECK_EQ(sched_setaffinity(cc__sysmon_thread(), sizeof all, &all), 0);
    while (cc__sched_open() < 2) nap(1000000);
    atomic_store(&enough, true);
    CHECK_EQ(cc_task_join(&task, NULL), 0);
    stop();
}
