/* sleepers.c - a hundred thousand fibers sleep, none wakes early, all wake. */
#include "stress.h"

enum {
    LATE_NS_MAX = 2000000000
}; /* a timer that somebody forgot and another event found: later than any busy machine makes it */

struct sleepers {
    atomic_long awake;
    _Atomic uint64_t latest_ns;
};

struct sleeper {
    struct sleepers *all;
    CCDeadline until;
};

static void note_late(struct sleepers *all, uint64_t late) {
    uint64_t latest = atomic_load(&all->latest_ns);
    while (late > latest && !atomic_compare_exchange_weak(&all->latest_ns, &latest, late)) {
    }
}

static void *sleep_once(void *arg) {
    struct sleeper *s = arg;
    CHECK_EQ(cc_sleep_until(s->until), 0);
    uint64_t now = cc_now_ns();
    CHECK(now >= s->until.ns);
    note_late(s->all, now - s->until.ns);
    atomic_fetch_add(&s->all->awake, 1);
    return NULL;
}

struct plan {
    long count;
    uint64_t from_ns, to_ns; /* from now */
    uint64_t seed;
};

static void *sleep_as_planned(void *arg) {
    struct plan *plan = arg;
    struct sleepers all = {0};
    uint64_t rng = plan->seed, base = cc_now_ns() + plan->from_ns;
    CCTask *tasks = allocate((size_t)plan->count, sizeof *tasks);
    for (long i = 0; i < plan->count; i++) {
        struct sleeper s = {&all, {base + below(&rng, plan->to_ns - plan->from_ns + 1)}};
        tasks[i] = cc_task_go(sleep_once, &s, sizeof s);
        CHECK(tasks[i].id != 0);
    }
    for (long i = 0; i < plan->count; i++) join(tasks[i]);
    free(tasks);
    CHECK_EQ(atomic_load(&all.awake), plan->count);
    printf("the latest came %.1f ms late\n", (double)atomic_load(&all.latest_ns) / 1e6);
    return (void *)(uintptr_t)atomic_load(&all.latest_ns);
}

/* The spread begins after the spawns are likely to be over, so that all sleep at once. */
TEST_WORKERS(hundred_thousand_sleepers) {
    struct plan plan = {test_rounds(100000, 1000000), 300000000, 800000000, test_seed()};
    void *latest;
    CHECK_EQ(cc_run(sleep_as_planned, &plan, &latest), 0);
    CHECK((uintptr_t)latest < LATE_NS_MAX * (uintptr_t)(test_long() ? 10 : 1));
    finish();
}

/* Some deadlines are over before the fiber first runs, some come while it parks. */
TEST_WORKERS(deadlines_that_come_at_once) {
    long rounds = test_rounds(20, 2000);
    uint64_t rng = test_seed();
    for (long i = 0; i < rounds; i++) {
        struct plan plan = {5000, 0, 3000000, test_random(&rng)};
        void *latest;
        CHECK_EQ(cc_run(sleep_as_planned, &plan, &latest), 0);
        CHECK((uintptr_t)latest < LATE_NS_MAX);
    }
    finish();
}

TEST_WORKERS(all_at_the_same_moment) {
    struct plan plan = {test_rounds(50000, 500000), 200000000, 200000000, test_seed()};
    void *latest;
    CHECK_EQ(cc_run(sleep_as_planned, &plan, &latest), 0);
    CHECK((uintptr_t)latest < LATE_NS_MAX * (uintptr_t)(test_long() ? 10 : 1));
    finish();
}

/* ---- again and again ---- */

static void *nap_often(void *arg) {
    uint64_t rng = (uintptr_t)arg;
    long rounds = test_rounds(40, 4000);
    for (long i = 0; i < rounds; i++) {
        CCDeadline until = cc_after_ns(below(&rng, 10) == 0 ? below(&rng, 20000000) : below(&rng, 500000));
        CHECK_EQ(cc_sleep_until(until), 0);
        CHECK(cc_now_ns() >= until.ns);
        if (below(&rng, 4) == 0) cc_yield();
    }
    return NULL;
}

/* OS threads sleep by the same call. */
TEST_WORKERS(a_thousand_naps_each) {
    enum { FIBERS = 1000, THREADS = 4 };
    static CCTask tasks[FIBERS];
    pthread_t threads[THREADS];
    uint64_t rng = test_seed();
    for (int i = 0; i < THREADS; i++) threads[i] = start_thread(nap_often, (void *)(uintptr_t)test_random(&rng));
    for (int i = 0; i < FIBERS; i++) tasks[i] = spawn(nap_often, (void *)(uintptr_t)test_random(&rng));
    for (int i = 0; i < FIBERS; i++) join(tasks[i]);
    for (int i = 0; i < THREADS; i++) join_thread(threads[i]);
    finish();
}

/* ---- a timer that was armed while everybody slept for a later one ---- */

static void *long_sleeper(void *arg) {
    CHECK_EQ(cc_sleep_until(*(CCDeadline *)arg), 0);
    CHECK(cc_now_ns() >= ((CCDeadline *)arg)->ns);
    return NULL;
}

TEST_WORKERS(an_earlier_timer_overtakes) {
    long rounds = test_rounds(400, 40000);
    CCDeadline far = cc_after_ms(test_long() ? 60000 : 400);
    CCTask last = spawn(long_sleeper, &far);
    for (long i = 0; i < rounds; i++) {
        CCDeadline near = cc_after_ns(200000);
        join(spawn(long_sleeper, &near));
        uint64_t late = cc_now_ns() - near.ns;
        CHECK(late < LATE_NS_MAX);
        if (cc_now_ns() + 100000000 > far.ns)
            break; /* or its end would be waited for, and the point is that it is not */
    }
    join(last);
    finish();
}
