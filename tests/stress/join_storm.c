/* join_storm.c - every handle is consumed once and every join gives the right result, for all kinds of joiners. */
#include "storm_join.h"

TEST_WORKERS(join_storm_from_a_thread) {
    join_storm(test_rounds(150, 30000), test_seed());
    finish();
}

static void *storm_in_a_fiber(void *arg) {
    uint64_t rng = test_seed();
    struct join_storm *storm = allocate(1, sizeof *storm);
    for (long i = (long)(intptr_t)arg; i > 0; i--) join_storm_round(storm, &rng);
    free(storm);
    return NULL;
}

/* The fiber that runs the round joins OS threads, which blocks its worker: there must be another. */
TEST_WORKERS(join_storm_from_a_fiber) {
    if (atoi(getenv("CC_WORKERS")) == 1) SKIP("the round's fiber blocks its worker in pthread_join; it takes two");
    run_and_finish(storm_in_a_fiber, (void *)(intptr_t)test_rounds(150, 30000));
}

/* ---- one task, very many waiting ---- */

struct shared_gate {
    struct gate gate;
    atomic_int served;
};

struct joiner {
    struct shared_gate *shared;
    CCTask handle;
};

static void *wait_at_the_gate(void *arg) {
    struct joiner *m = arg;
    void *result = NULL;
    CHECK_EQ(cc_task_join(&m->handle, &result), 0);
    CHECK(result == &m->shared->gate);
    atomic_fetch_add(&m->shared->served, 1);
    return NULL;
}

TEST_WORKERS(many_join_one_task) {
    enum { FIBERS = 2000, THREADS = 4, ALL = FIBERS + THREADS };
    struct shared_gate *shared = allocate(1, sizeof *shared);
    struct joiner *members = allocate(ALL, sizeof *members);
    CCTask *tasks = allocate(FIBERS, sizeof *tasks);
    pthread_t threads[THREADS];
    long rounds = test_rounds(50, 5000);
    for (long r = 0; r < rounds; r++) {
        atomic_store(&shared->served, 0);
        gate_close(&shared->gate);
        for (int i = 0; i < ALL; i++) {
            members[i].shared = shared;
            CHECK_EQ(cc_task_dup(&shared->gate.task, &members[i].handle), 0);
        }
        for (int i = 0; i < FIBERS; i++) {
            tasks[i] = spawn(wait_at_the_gate, &members[i]);
            if (i == FIBERS / 2 && r % 2 != 0) gate_open(&shared->gate); /* half come to an open gate */
        }
        for (int i = 0; i < THREADS; i++) threads[i] = start_thread(wait_at_the_gate, &members[FIBERS + i]);
        if (r % 2 == 0) gate_open(&shared->gate);
        CHECK(join(shared->gate.task) == &shared->gate);
        for (int i = 0; i < FIBERS; i++) join(tasks[i]);
        for (int i = 0; i < THREADS; i++) join_thread(threads[i]);
        CHECK_EQ(atomic_load(&shared->served), ALL);
    }
    finish();
    free(tasks);
    free(members);
    free(shared);
}

/* ---- join, then spawn at once: the record that was just freed is used again ---- */

static void *succeed(void *arg) {
    return (void *)((uintptr_t)arg * 3);
}

static void *join_and_respawn(void *arg) {
    uint64_t rng = (uintptr_t)arg;
    CCFiberId last = 0;
    long rounds = test_rounds(300000, 30000000);
    for (long i = 0; i < rounds; i++) {
        uintptr_t value = (uintptr_t)below(&rng, 1 << 30);
        CCTask task = spawn(succeed, (void *)value), before = {last};
        last = task.id;
        if (i % 8 == 0) cc_yield();
        CHECK_EQ((uintptr_t)join(task), value * 3);
        if (before.id != 0) CHECK_EQ(cc_task_join(&before, NULL), ESRCH);
    }
    return NULL;
}

TEST_WORKERS(join_and_respawn_at_once) {
    enum { FIBERS = 8 };
    CCTask tasks[FIBERS];
    uint64_t rng = test_seed();
    for (int i = 0; i < FIBERS; i++) tasks[i] = spawn(join_and_respawn, (void *)(uintptr_t)test_random(&rng));
    for (int i = 0; i < FIBERS; i++) join(tasks[i]);
    finish();
}
