/* deadline_edge.c - a join whose deadline coincides with the task's end has exactly one outcome; nothing is lost. */
#include "stress.h"

struct edge {
    uint64_t end_ns; /* when the task ends */
    uint64_t value;
    atomic_int ended;
};

static void *end_at(void *arg) {
    struct edge *edge = arg;
    while (cc_now_ns() < edge->end_ns) cc_yield();
    atomic_store(&edge->ended, 1);
    return (void *)(uintptr_t)edge->value;
}

static void *end_asleep(void *arg) {
    struct edge *edge = arg;
    CHECK_EQ(cc_sleep_until((CCDeadline){edge->end_ns}), 0);
    atomic_store(&edge->ended, 1);
    return (void *)(uintptr_t)edge->value;
}

struct counts {
    atomic_long in_time, too_late;
};

/* Joins by the deadline, and after a time-out once more without one: the handle still works. */
static void join_at_the_edge(CCTask *task, struct edge *edge, CCDeadline deadline, struct counts *counts) {
    void *result = NULL;
    CCTask before = *task;
    int rc = cc_task_join_until(task, &result, deadline);
    if (rc == ETIMEDOUT) {
        CHECK(cc_now_ns() >= deadline.ns);
        CHECK_EQ(task->id, before.id);
        CHECK(result == NULL);
        atomic_fetch_add(&counts->too_late, 1);
        rc = cc_task_join(task, &result);
    } else {
        atomic_fetch_add(&counts->in_time, 1);
    }
    CHECK_EQ(rc, 0);
    CHECK_EQ(task->id, 0);
    CHECK_EQ(atomic_load(&edge->ended), 1);
    CHECK_EQ((uintptr_t)result, edge->value);
}

struct edge_joiner {
    struct edge *edge;
    struct counts *counts;
    CCTask handle;
    CCDeadline deadline;
};

static void *edge_joiner_main(void *arg) {
    struct edge_joiner *j = arg;
    join_at_the_edge(&j->handle, j->edge, j->deadline, j->counts);
    return NULL;
}

enum { EDGE_JOINERS = 6 };

static void edge_round(uint64_t *rng, struct counts *counts) {
    struct edge edge = {.value = test_random(rng)};
    struct edge_joiner joiners[EDGE_JOINERS];
    CCTask fibers[EDGE_JOINERS];
    edge.end_ns = cc_now_ns() + 60000 + below(rng, 60000);
    CCTask task = spawn(below(rng, 2) == 0 ? end_at : end_asleep, &edge);
    for (int i = 0; i < EDGE_JOINERS; i++) {
        joiners[i].edge = &edge;
        joiners[i].counts = counts;
        /* Up to 20 us before and 100 us after: the end is noticed a little late. */
        joiners[i].deadline.ns = edge.end_ns - 20000 + below(rng, 120000);
        CHECK_EQ(cc_task_dup(&task, &joiners[i].handle), 0);
        fibers[i] = spawn(edge_joiner_main, &joiners[i]);
    }
    CCDeadline deadline = {edge.end_ns - 20000 + below(rng, 120000)};
    join_at_the_edge(&task, &edge, deadline, counts);
    for (int i = 0; i < EDGE_JOINERS; i++) join(fibers[i]);
}

static void *edge_rounds(void *arg) {
    struct counts *counts = arg;
    uint64_t rng = test_seed() ^ cc_fiber_id();
    long rounds = test_rounds(1500, 150000);
    for (long i = 0; i < rounds; i++) edge_round(&rng, counts);
    return NULL;
}

static void show(struct counts *counts) {
    printf("%ld in time, %ld too late\n", atomic_load(&counts->in_time), atomic_load(&counts->too_late));
    long rounds = test_rounds(1500, 150000);
    CHECK(atomic_load(&counts->in_time) + atomic_load(&counts->too_late) >= rounds * (EDGE_JOINERS + 1));
    /* If all joins missed it on one side, there would be no race. */
    if (rounds >= 1500) CHECK(atomic_load(&counts->in_time) > 0 && atomic_load(&counts->too_late) > 0);
}

TEST_WORKERS(fibers_join_at_the_edge) {
    struct counts counts = {0};
    run_and_finish(edge_rounds, &counts);
    show(&counts);
}

TEST_WORKERS(threads_join_at_the_edge) {
    struct counts counts = {0};
    pthread_t threads[2];
    for (int i = 0; i < 2; i++) threads[i] = start_thread(edge_rounds, &counts);
    for (int i = 0; i < 2; i++) join_thread(threads[i]);
    finish();
    show(&counts);
}

/* ---- a timer that comes after its wait is over meets the fiber's next wait, of each kind ---- */

static void *quick(void *arg) {
    cc_yield();
    return arg;
}

static void *busy_until(void *arg) {
    uint64_t end = *(uint64_t *)arg;
    while (cc_now_ns() < end) cc_yield();
    return arg;
}

static void *sleepy_until(void *arg) {
    CHECK_EQ(cc_sleep_until((CCDeadline){*(uint64_t *)arg}), 0);
    return arg;
}

static void *ring_at(void *arg) {
    struct bell *bell = *(struct bell **)arg;
    cc_yield();
    bell_ring(bell);
    return NULL;
}

static void *leave_timers_behind(void *arg) {
    uint64_t rng = (uintptr_t)arg;
    struct presence presence = {0};
    struct bell bell = {0}, *the_bell = &bell;
    long rounds = test_rounds(1500, 150000);
    for (long i = 0; i < rounds; i++) {
        /* One wait that ends long before its deadline ... */
        CCDeadline deadline = cc_after_ns(20000 + below(&rng, 200000));
        CCTask task = spawn(quick, &rng);
        void *result = NULL;
        int rc = cc_task_join_until(&task, &result, deadline);
        if (rc == ETIMEDOUT) {
            CHECK(join(task) == &rng);
        } else {
            CHECK_EQ(rc, 0);
            CHECK(result == &rng);
        }
        /* ... and one that is in progress when that deadline passes. */
        uint64_t end = deadline.ns + below(&rng, 100000);
        arrive(&presence);
        leave(&presence);
        switch (below(&rng, 5)) {
        case 0: /* the joiner runs it */
            CHECK(join(spawn(busy_until, &end)) == &end);
            break;
        case 1:
            CHECK(join(spawn(sleepy_until, &end)) == &end);
            break;
        case 2:
            CHECK_EQ(cc_sleep_until((CCDeadline){end}), 0);
            break;
        case 3:
            task = spawn(busy_until, &end);
            CHECK_EQ(cc_task_join_until(&task, &result, CC_FOREVER), 0);
            CHECK(result == &end);
            break;
        default:
            task = spawn(ring_at, &the_bell);
            CHECK_EQ(bell_wait(&bell), 0); /* no wake but the ring */
            join(task);
            end = 0;
        }
        CHECK(cc_now_ns() >= end);
    }
    return NULL;
}

TEST_WORKERS(stale_timers_wake_nobody) {
    enum { FIBERS = 16 };
    CCTask tasks[FIBERS];
    uint64_t rng = test_seed();
    for (int i = 0; i < FIBERS; i++) tasks[i] = spawn(leave_timers_behind, (void *)(uintptr_t)test_random(&rng));
    for (int i = 0; i < FIBERS; i++) join(tasks[i]);
    finish();
}
