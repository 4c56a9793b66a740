/* storm_join.h - the join storm: tasks with several handles, joined, timed out, tried and detached by fibers
 * and OS threads at once.
 *
 * A round creates TARGETS tasks, each with HANDLES handles, gives the handles at random to joiners, which consume
 * them in random order and in random ways. Every handle is consumed exactly once, every join gives its task's own
 * result, every task runs exactly once.
 */
#ifndef CCC_TESTS_STORM_JOIN_H
#define CCC_TESTS_STORM_JOIN_H

#include "stress.h"

enum { TARGETS = 24, HANDLES = 4, JOIN_FIBERS = 12, JOIN_THREADS = 3, JOINERS = JOIN_FIBERS + JOIN_THREADS };

struct join_target {
    uint64_t seed;
    uint64_t value;
    atomic_int runs;
};

struct join_hand {
    struct join_storm *storm;
    uint64_t seed;
    int count;
    CCTask handles[TARGETS * HANDLES];
    int of[TARGETS * HANDLES]; /* which target */
};

struct join_storm {
    struct join_target targets[TARGETS];
    struct join_hand hands[JOINERS];
    atomic_int joined, detached, timed_out;
};

static void *join_target_main(void *arg) {
    struct join_target *t = arg;
    uint64_t rng = t->seed;
    switch (below(&rng, 5)) {
    case 0:
        break;
    case 1:
        for (uint64_t n = below(&rng, 20); n > 0; n--) cc_yield();
        break;
    case 2:
        CHECK_EQ(cc_sleep_until(cc_after_ns(below(&rng, 200000))), 0);
        break;
    case 3:
        compute_ns(below(&rng, 30000));
        break;
    default:
        cc_yield();
        CHECK_EQ(cc_sleep_until(cc_after_ns(below(&rng, 50000))), 0);
    }
    void *value = (void *)(uintptr_t)t->value;
    CHECK_EQ(atomic_fetch_add(&t->runs, 1),
             0); /* the last access: when all handles were detached, only this reports the end to the round */
    return value;
}

/* Consumes one handle; true: by a join. */
static bool use_up(struct join_storm *storm, CCTask *task, uint64_t value, uint64_t *rng) {
    void *result = NULL;
    int rc;
    switch (below(rng, 6)) {
    case 0:
        CHECK_EQ(cc_task_detach(task), 0);
        CHECK_EQ(task->id, 0);
        atomic_fetch_add(&storm->detached, 1);
        return false;
    case 1:
        while ((rc = cc_task_join_try(task, &result)) == EAGAIN) cc_yield();
        break;
    case 2:
        while ((rc = cc_task_join_until(task, &result, cc_after_ns(below(rng, 100000)))) == ETIMEDOUT) {
            CHECK(task->id != 0);
            atomic_fetch_add(&storm->timed_out, 1);
        }
        break;
    default:
        rc = cc_task_join(task, &result);
    }
    CHECK_EQ(rc, 0);
    CHECK_EQ(task->id, 0);
    CHECK_EQ((uintptr_t)result, value);
    CHECK_EQ(cc_task_join(task, NULL), EINVAL);
    atomic_fetch_add(&storm->joined, 1);
    return true;
}

static void *join_hand_main(void *arg) {
    struct join_hand *hand = arg;
    uint64_t rng = hand->seed;
    while (hand->count > 0) {
        int i = (int)below(&rng, (uint64_t)hand->count);
        use_up(hand->storm, &hand->handles[i], hand->storm->targets[hand->of[i]].value, &rng);
        hand->count--;
        hand->handles[i] = hand->handles[hand->count];
        hand->of[i] = hand->of[hand->count];
    }
    return NULL;
}

static void join_storm_round(struct join_storm *storm, uint64_t *rng) {
    CCTask remembered[TARGETS];
    memset(storm, 0, sizeof *storm);
    for (int i = 0; i < JOINERS; i++) {
        storm->hands[i].storm = storm;
        storm->hands[i].seed = test_random(rng);
    }
    for (int i = 0; i < TARGETS; i++) {
        storm->targets[i].seed = test_random(rng);
        storm->targets[i].value = test_random(rng);
    }
    for (int i = 0; i < TARGETS; i++) {
        CCTask task = spawn(join_target_main, &storm->targets[i]);
        remembered[i] = task;
        for (int k = 0; k < HANDLES; k++) {
            struct join_hand *hand = &storm->hands[below(rng, JOINERS)];
            CCTask copy = task;
            if (k < HANDLES - 1) CHECK_EQ(cc_task_dup(&task, &copy), 0);
            hand->of[hand->count] = i;
            hand->handles[hand->count++] = copy;
        }
    }
    CCTask fibers[JOIN_FIBERS];
    pthread_t threads[JOIN_THREADS];
    for (int i = 0; i < JOIN_THREADS; i++) threads[i] = start_thread(join_hand_main, &storm->hands[i]);
    for (int i = 0; i < JOIN_FIBERS; i++) fibers[i] = spawn(join_hand_main, &storm->hands[JOIN_THREADS + i]);
    for (int i = 0; i < JOIN_FIBERS; i++) join(fibers[i]);
    for (int i = 0; i < JOIN_THREADS; i++) join_thread(threads[i]);
    CHECK_EQ(atomic_load(&storm->joined) + atomic_load(&storm->detached), TARGETS * HANDLES);
    for (int i = 0; i < TARGETS; i++) {
        /* All of its handles may have been detached while it still runs. */
        while (atomic_load(&storm->targets[i].runs) == 0) cc_yield();
        CCTask stale = remembered[i];
        CHECK_EQ(cc_task_join(&stale, NULL), ESRCH);
        CHECK_EQ(cc_task_detach(&stale), ESRCH);
        CHECK_EQ(stale.id, remembered[i].id);
    }
}

/* From an OS thread. */
STRESS_UNUSED static void join_storm(long rounds, uint64_t seed) {
    struct join_storm *storm = allocate(1, sizeof *storm);
    uint64_t rng = seed;
    long timed_out = 0;
    for (long i = 0; i < rounds; i++) {
        join_storm_round(storm, &rng);
        timed_out += atomic_load(&storm->timed_out);
    }
    printf("%ld joins timed out on the way\n", timed_out);
    free(storm);
}

#endif
