/* stacks.c - at the memory limit: a task starts as long as there is an unused stack, on any worker. */
#include "fail.h"
#include "harness.h"

#include "../programs/where.h"
#include "../unit/gate.h"

#include <ccc/ccc.h>
#include <sched.h>

enum { MANY = 1000, FIRST = 150 };

static struct gate gates[MANY];
static CCTask tasks[MANY];
static _Atomic long started;
static _Atomic bool began[MANY];

static void *stay(void *gate) {
    cc__set(&began[(struct gate *)gate - gates], true);
    cc__add(&started, 1);
    gate_wait(gate);
    return NULL;
}

static void start(int from, int to) {
    for (int i = from; i < to; i++) CHECK_EQ(cc_spawn(&tasks[i], stay, &gates[i], NULL), 0);
}

/* Opens all gates; returns how many tasks have run. */
static int end(int n) {
    int ran = 0;
    for (int i = 0; i < n; i++) (void)gate_open(&gates[i]);
    for (int i = 0; i < n; i++) {
        int rc = tasks[i].id != 0 ? cc_task_join(&tasks[i], NULL) : ENOMEM;
        CHECK(rc == 0 || rc == ENOMEM);
        ran += rc == 0;
    }
    for (int i = 0; i < n; i++) gate_close(&gates[i]);
    return ran;
}

/* All tasks stay until all have started, so that each needs a stack of its own. */
TEST_WORKERS(all_are_used) {
    if (under_valgrind()) SKIP("valgrind runs one thread at a time: others do not flush their caches in time");
    start(0, FIRST);
    while (cc__get(&started) < FIRST) sched_yield();
    fail_arm(1, FAIL_MAP, true);
    start(FIRST, MANY);
    for (int i = FIRST; i < MANY; i++) /* until it has started, or has failed */
        while (!cc__get(&began[i])) {
            int rc = cc_task_join_try(&tasks[i], NULL);
            if (rc == ENOMEM) break;
            CHECK_EQ(rc, EAGAIN);
            sched_yield();
        }
    int stacks = end(MANY);
    CHECK(stacks >= FIRST && stacks < MANY);
    for (int round = 0; round < 20; round++) {
        cc__set(&started, 0);
        start(0, stacks);
        while (cc__get(&started) < stacks)
            for (int i = 0; i < stacks; i++) CHECK_EQ(cc_task_join_try(&tasks[i], NULL), EAGAIN);
        CHECK_EQ(end(stacks), stacks);
    }
    CHECK(fail_disarm() > 0);
    CHECK_EQ(cc_runtime_shutdown(UINT64_MAX), 0);
}

/* The system has merged the ranges with others, and has no mapping left to split them again. */
TEST_WORKERS(ranges_that_cannot_be_unmapped) {
    for (int round = 0; round < 3; round++) {
        cc__set(&started, 0);
        start(0, FIRST);
        while (cc__get(&started) < FIRST) sched_yield();
        CHECK_EQ(end(FIRST), FIRST);
        fail_arm(1, FAIL_UNMAP, true);
        CHECK_EQ(cc_runtime_shutdown(UINT64_MAX), 0);
        CHECK(fail_disarm() > 0);
    }
}
