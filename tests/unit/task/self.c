/* self.c - what a caller learns of itself: whether it is a fiber, and which. */
#include "harness.h"

#include "../crew.h"

#include <ccc/ccc.h>
#include <stdlib.h>

static void check_outside(void) {
    CHECK(!cc_in_fiber());
    CHECK_EQ(cc_fiber_id(), 0);
    CHECK_EQ(cc_fiber_name()[0], '\0');
}

static void check_outside_in_thread(int index, void *arg) {
    (void)index, (void)arg;
    check_outside();
}

static void *check_inside(void *id) {
    CHECK(cc_in_fiber());
    CHECK(cc_fiber_id() != 0);
    CCFiberId mine = cc_fiber_id();
    for (int i = 0; i < 10; i++) {
        cc_yield();
        CHECK(cc_fiber_id() == mine); /* on whichever worker */
    }
    CHECK_EQ(cc_sleep_ms(1), 0);
    CHECK(cc_fiber_id() == mine);
    CHECK(cc_in_fiber());
    *(CCFiberId *)id = mine;
    return NULL;
}

TEST_WORKERS(inside_and_outside) {
    check_outside();
    CCFiberId id = 0;
    CHECK_EQ(cc_run(check_inside, &id, NULL), 0);
    check_outside();
    crew_run(4, check_outside_in_thread, NULL);
    CHECK_EQ(cc_runtime_shutdown(UINT64_MAX), 0);
    check_outside();
}

/* The handle carries the id. */
TEST_WORKERS(id_is_the_handle) {
    for (int i = 0; i < 20; i++) {
        CCFiberId id = 0;
        CCTask task = cc_fiber_spawn_task(check_inside, &id), before = task;
        CHECK_EQ(cc_task_join(&task, NULL), 0);
        CHECK(id == before.id);
    }
}

static int compare(const void *a, const void *b) {
    CCFiberId x = *(const CCFiberId *)a, y = *(const CCFiberId *)b;
    return x < y ? -1 : x > y;
}

/* Over many tasks, one after another and at once, and over restarts of the runtime. */
TEST_WORKERS(ids_differ) {
    enum { BATCH = 500, ROUNDS = 8 };
    static CCFiberId ids[BATCH * ROUNDS];
    static CCTask tasks[BATCH];
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < BATCH; i++) tasks[i] = cc_fiber_spawn_task(check_inside, &ids[round * BATCH + i]);
        for (int i = 0; i < BATCH; i++) CHECK_EQ(cc_task_join(&tasks[i], NULL), 0);
        if (round % 2) CHECK_EQ(cc_runtime_shutdown(UINT64_MAX), 0);
    }
    qsort(ids, BATCH * ROUNDS, sizeof ids[0], compare);
    CHECK(ids[0] != 0);
    for (int i = 1; i < BATCH * ROUNDS; i++) CHECK(ids[i] != ids[i - 1]);
}
