/* elastic.c - no thread can be created for an additional worker: the existing ones continue, and it is tried again. */
#include "fail.h"
#include "harness.h"

#include "sched/elastic.h"
#include "sched/sysmon.h"

#include <ccc/ccc.h>

#include <time.h>
#include <unistd.h>

static int ends[2];
static atomic_bool ran;

static void *block(void *arg) {
    char byte;
    atomic_store((atomic_bool *)arg, true);
    CHECK_EQ(read(ends[0], &byte, 1), 1);
    return NULL;
}

static void *unblock(void *arg) {
    atomic_store(&ran, true);
    CHECK_EQ(write(ends[1], "x", 1), 1);
    return arg;
}

static void nap(void) {
    nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
}

static uint64_t refused(void) {
    struct sysmon_stats stats;
    cc__sysmon_stats(&stats);
    return stats.gates[GATE_NO_THREAD];
}

/* A worker blocks, and the fibers in its queue wait. */
static void begin(CCTask tasks[2], long failures, bool for_ever) {
    static atomic_bool blocked;
    CCRuntimeConfig config = {.workers = 1, .max_workers = 2};
    CHECK_EQ(cc_runtime_init(&config), 0);
    CHECK_EQ(pipe(ends), 0);
    CHECK_EQ(cc_spawn(&tasks[0], block, &blocked, NULL), 0);
    while (!atomic_load(&blocked)) nap();
    fail_arm(failures, FAIL_THREAD, for_ever);
    CHECK_EQ(cc_spawn(&tasks[1], unblock, NULL, NULL), 0);
    while (refused() == 0) nap();
}

static void end(CCTask tasks[2]) {
    for (int i = 0; i < 2; i++) CHECK_EQ(cc_task_join(&tasks[i], NULL), 0);
    CHECK(fail_disarm() > 0);
    CHECK_EQ(cc_runtime_shutdown(UINT64_MAX), 0);
}

TEST(is_tried_again) {
    CCTask tasks[2];
    begin(tasks, 1, false);
    end(tasks); /* only an added worker can end the read */
}

TEST(goes_on_without) {
    CCTask tasks[2];
    begin(tasks, 1, true);
    CHECK_EQ(cc_worker_count(), 1);
    CHECK(!atomic_load(&ran));
    CHECK_EQ(cc__elastic_grown(), 0);
    CHECK_EQ(write(ends[1], "x", 1), 1);
    end(tasks);
}
