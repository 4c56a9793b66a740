/* fairness.c - no fiber starves: two fibers that wake each other, spinners that yield and floods of new
 * fibers let others run.
 *
 * Waiting is measured in turns of the fibers in front, and in the CPU time of the one worker, so a busy machine does
 * not matter.
 */
#include "stress.h"

#include <time.h>

enum { WAIT_MAX_NS = 50000000 }; /* usually some tens of microseconds */
enum {
    TURNS_MAX = 20000
}; /* NEXT-1 guarantees some hundreds; a fiber that is only run by chance takes far longer or for ever */

/* A joiner without a deadline may run the task itself; with one it waits, and the task has to get its turn like any
 * other. */
static void join_from_afar(CCTask task) {
    CHECK_EQ(cc_task_join_until(&task, NULL, cc_after_ms(3600 * 1000)), 0);
}

/* ---- two that wake each other, and a third ---- */

struct pair {
    struct bell bells[2];
    atomic_long turns;
    atomic_bool stop;
};

struct pair_side {
    struct pair *pair;
    int side;
};

static void *pair_main(void *arg) {
    struct pair_side s = *(struct pair_side *)arg;
    while (!atomic_load(&s.pair->stop)) {
        bell_wait(&s.pair->bells[s.side]);
        atomic_fetch_add(&s.pair->turns, 1);
        bell_ring(&s.pair->bells[1 - s.side]);
    }
    bell_ring(&s.pair->bells[1 - s.side]);
    return NULL;
}

struct third {
    struct pair *pair;
    struct bell bell;
    long waited;        /* the most turns of the pair between two of ours */
    uint64_t waited_ns; /* the same in CPU time of the worker, on which all three are */
};

static uint64_t cpu_ns(void) {
    struct timespec ts;
    CHECK_EQ(clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts), 0);
    return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

/* Gets a turn 200 times by `ask`, and counts what the pair did meanwhile. */
static void third_asks(struct third *t, void (*ask)(struct third *t)) {
    for (int i = 0; i < 200; i++) {
        long before = atomic_load(&t->pair->turns);
        uint64_t begin = cpu_ns();
        ask(t);
        long waited = atomic_load(&t->pair->turns) - before;
        uint64_t waited_ns = cpu_ns() - begin;
        if (waited > t->waited) t->waited = waited;
        if (waited_ns > t->waited_ns) t->waited_ns = waited_ns;
    }
    atomic_store(&t->pair->stop, true);
}

static void ask_by_yield(struct third *t) {
    (void)t;
    cc_yield();
}

static void *return_at_once(void *arg) {
    return arg;
}

static void ask_by_spawn(struct third *t) {
    join_from_afar(spawn(return_at_once, t));
}

static void ask_by_sleep(struct third *t) {
    (void)t;
    CHECK_EQ(cc_sleep_until(cc_after_ns(10000)), 0);
}

static void *yielding_third(void *arg) {
    third_asks(arg, ask_by_yield);
    return NULL;
}

static void *spawning_third(void *arg) {
    third_asks(arg, ask_by_spawn);
    return NULL;
}

static void *sleeping_third(void *arg) {
    third_asks(arg, ask_by_sleep);
    return NULL;
}

static void *pair_and_third(void *arg) {
    CCTaskFn third_main = *(CCTaskFn *)arg;
    struct pair pair = {0};
    struct third third = {.pair = &pair};
    CCTask tasks[3];
    for (int i = 0; i < 2; i++) {
        struct pair_side side = {&pair, i};
        tasks[i] = cc_task_go(pair_main, &side, sizeof side);
    }
    bell_ring(&pair.bells[0]);
    while (atomic_load(&pair.turns) < 100) cc_yield();
    tasks[2] = spawn(third_main, &third);
    for (int i = 2; i >= 0; i--) join_from_afar(tasks[i]);
    printf("the third waited %ld turns at most\n", third.waited);
    test_count("most us of CPU that a third fiber waited", third.waited_ns / 1000);
    CHECK(third.waited < TURNS_MAX);
    CHECK(third.waited_ns < WAIT_MAX_NS);
    return NULL;
}

static void beside_a_pair(CCTaskFn third_main) {
    start(1);
    run_and_finish(pair_and_third, &third_main);
}

TEST(a_yielder_beside_two_that_wake_each_other) {
    beside_a_pair(yielding_third);
}

TEST(a_spawner_beside_two_that_wake_each_other) {
    beside_a_pair(spawning_third);
}

TEST(a_sleeper_beside_two_that_wake_each_other) {
    beside_a_pair(sleeping_third);
}

/* The same on every number of workers, as many pairs as workers, and a spawner on an OS thread. */
struct pairs {
    struct pair *pairs;
    int count;
};

static void *start_pairs(void *arg) {
    struct pairs *p = arg;
    CCTask *tasks = allocate((size_t)p->count * 2, sizeof *tasks);
    for (int i = 0; i < 2 * p->count; i++) {
        struct pair_side side = {&p->pairs[i / 2], i % 2};
        tasks[i] = cc_task_go(pair_main, &side, sizeof side);
    }
    for (int i = 0; i < p->count; i++) bell_ring(&p->pairs[i].bells[0]);
    for (int i = 0; i < 2 * p->count; i++) join(tasks[i]);
    free(tasks);
    return NULL;
}

TEST_WORKERS(a_thread_spawns_beside_busy_pairs) {
    struct pairs p = {.count = atoi(getenv("CC_WORKERS"))};
    p.pairs = allocate((size_t)p.count, sizeof *p.pairs);
    CCTask all = spawn(start_pairs, &p);
    while (atomic_load(&p.pairs[0].turns) < 100) sched_yield();
    long rounds = test_rounds(100, 10000);
    for (long i = 0; i < rounds; i++) {
        void *result;
        CHECK_EQ(cc_run(return_at_once, &p, &result), 0);
        CHECK(result == &p);
    }
    for (int i = 0; i < p.count; i++) atomic_store(&p.pairs[i].stop, true);
    join(all);
    finish();
    free(p.pairs);
}

/* ---- spinners ---- */

struct spin {
    atomic_bool stop;
    atomic_long turns;
    long needed;
};

static void *spin_by_yield(void *arg) {
    struct spin *s = arg;
    while (!atomic_load(&s->stop)) {
        atomic_fetch_add(&s->turns, 1);
        cc_yield();
    }
    return NULL;
}

/* Needs many turns among the spinners, then releases them. */
static void *work_by_yield(void *arg) {
    struct spin *s = arg;
    for (long i = 0; i < s->needed; i++) cc_yield();
    atomic_store(&s->stop, true);
    return NULL;
}

/* Sleeps and spawns among the spinners. */
static void *work_otherwise(void *arg) {
    struct spin *s = arg;
    for (long i = 0; i < s->needed / 20; i++) {
        CHECK_EQ(cc_sleep_until(cc_after_ns(1000)), 0);
        join_from_afar(spawn(return_at_once, s));
    }
    atomic_store(&s->stop, true);
    return NULL;
}

struct spin_plan {
    CCTaskFn worker;
    int spinners;
    bool last; /* the working fiber is queued behind the spinners */
};

static void *among_spinners(void *arg) {
    struct spin_plan plan = *(struct spin_plan *)arg;
    struct spin s = {.needed = test_rounds(20000, 2000000)};
    CCTask *tasks = allocate((size_t)plan.spinners, sizeof *tasks), one = {0};
    if (!plan.last) one = spawn(plan.worker, &s);
    for (int i = 0; i < plan.spinners; i++) tasks[i] = spawn(spin_by_yield, &s);
    if (plan.last) {
        while (atomic_load(&s.turns) < 100) cc_yield();
        one = spawn(plan.worker, &s);
    }
    join_from_afar(one);
    for (int i = 0; i < plan.spinners; i++) join(tasks[i]);
    free(tasks);
    return NULL;
}

static void spinners(CCTaskFn worker, bool last) {
    struct spin_plan plan = {worker, 2 * atoi(getenv("CC_WORKERS")) + 1, last};
    run_and_finish(among_spinners, &plan);
}

TEST_WORKERS(a_yielder_among_spinners) {
    spinners(work_by_yield, true);
}

TEST_WORKERS(a_yielder_that_was_there_first) {
    spinners(work_by_yield, false);
}

TEST_WORKERS(a_sleeper_and_spawner_among_spinners) {
    spinners(work_otherwise, true);
}

/* One spinner per worker, each waiting for the next one's flag, the last for a fiber that no worker is free to run. */
struct domino {
    atomic_bool fallen;
    struct domino *next;
};

static void *stand(void *arg) {
    struct domino *d = arg;
    while (!atomic_load(&d->fallen)) cc_yield();
    if (d->next != NULL) atomic_store(&d->next->fallen, true);
    return NULL;
}

static void *push(void *arg) {
    atomic_store(&((struct domino *)arg)->fallen, true);
    return NULL;
}

static void *dominoes(void *arg) {
    int count = (int)(intptr_t)arg;
    struct domino *all = allocate((size_t)count, sizeof *all);
    CCTask *tasks = allocate((size_t)count, sizeof *tasks);
    /* A spinner never rests, so a domino on a worker without a CPU waits for the kernel: a round takes count²
     * slices of time. */
    long rounds = test_rounds(1000, 20000) / (count * count) + 1;
    for (long r = 0; r < rounds; r++) {
        for (int i = 0; i < count; i++) {
            all[i].next = i + 1 < count ? &all[i + 1] : NULL;
            atomic_store(&all[i].fallen, false);
            tasks[i] = spawn(stand, &all[i]);
        }
        CHECK_EQ(cc_spawn(NULL, push, &all[0], NULL), 0);
        for (int i = count - 1; i >= 0; i--) join(tasks[i]);
    }
    free(tasks);
    free(all);
    return NULL;
}

TEST_WORKERS(dominoes_fall) {
    run_and_finish(dominoes, (void *)(intptr_t)(2 * atoi(getenv("CC_WORKERS"))));
}

/* ---- a flood of new fibers, newest first, and an old one ---- */

struct flood {
    atomic_bool stop;
    atomic_int lines; /* that still run: a chain is a fiber, then the one it starts, and so on */
    atomic_long started;
    long at_which; /* how many had started when the old one ran */
};

static void *stream_main(void *arg) {
    struct flood *flood = arg;
    atomic_fetch_add(&flood->started, 1);
    if (atomic_load(&flood->stop))
        atomic_fetch_sub(&flood->lines, 1);
    else
        CHECK_EQ(cc_spawn(NULL, stream_main, flood, NULL), 0);
    return NULL;
}

static void *old_one(void *arg) {
    struct flood *flood = arg;
    flood->at_which = atomic_load(&flood->started);
    atomic_store(&flood->stop, true);
    return NULL;
}

static void *an_old_one_and_a_stream(void *arg) {
    (void)arg;
    long rounds = test_rounds(100, 10000), longest = 0;
    for (long i = 0; i < rounds; i++) {
        struct flood flood = {.lines = 3};
        CCTask task = spawn(old_one, &flood);
        for (int k = 0; k < 3; k++) CHECK_EQ(cc_spawn(NULL, stream_main, &flood, NULL), 0);
        join_from_afar(task);
        while (atomic_load(&flood.lines) > 0) cc_yield();
        if (flood.at_which > longest) longest = flood.at_which;
    }
    printf("the old one waited for %ld new ones at most\n", longest);
    CHECK(longest < TURNS_MAX);
    return NULL;
}

TEST(an_old_fiber_and_a_stream_of_new_ones) {
    start(1);
    run_and_finish(an_old_one_and_a_stream, NULL);
}
