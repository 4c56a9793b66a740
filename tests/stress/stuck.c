/* stuck.c - a fiber that occupies its worker blocks no others: fibers that wait behind it run on other workers.
 *
 * Every case keeps one or more workers busy in a fiber that neither yields nor parks until the others are
 * done. The check is the order: they finish before it does. The bound of 10 s only ends a case that failed;
 * of the time it is asserted that the best of the rounds stays within the 50 ms that such a fiber may be
 * expected to compute.
 */
#include "stress.h"

#define GIVE_UP_NS UINT64_C(10000000000)
#define BEST_NS_MAX UINT64_C(50000000)

static unsigned workers(void) {
    unsigned n = (unsigned)atoi(getenv("CC_WORKERS"));
    if (n == 1) SKIP("with one worker no other could take over");
    return n;
}

/* Computes until *left is 0, without a call that could switch; returns how long that took. */
static uint64_t compute_while(atomic_int *left) {
    uint64_t begin = cc_now_ns();
    while (atomic_load(left) > 0) CHECK(cc_now_ns() - begin < GIVE_UP_NS);
    return cc_now_ns() - begin;
}

static void *count_down(void *arg) {
    atomic_fetch_sub((atomic_int *)arg, 1);
    return NULL;
}

static void *count_down_after_yields(void *arg) {
    for (int i = 0; i < 10; i++) cc_yield();
    return count_down(arg);
}

/* Runs `round` some times, prints its times, checks the best. */
static void best_of(uint64_t (*round)(uint64_t *rng)) {
    uint64_t best = UINT64_MAX, worst = 0, rng = test_seed();
    long rounds = test_rounds(40, 4000);
    if (rounds < 5) rounds = 5;
    for (long i = 0; i < rounds; i++) {
        uint64_t took = round(&rng);
        if (took < best) best = took;
        if (took > worst) worst = took;
    }
    printf("best %.2f ms, worst %.2f ms\n", (double)best / 1e6, (double)worst / 1e6);
    CHECK(best < BEST_NS_MAX);
}

/* ---- fresh fibers ---- */

static uint64_t fresh_round(uint64_t *rng) {
    atomic_int left = (int)(1 + below(rng, 30));
    for (int i = atomic_load(&left); i > 0; i--) CHECK_EQ(cc_spawn(NULL, count_down, &left, NULL), 0);
    return compute_while(&left);
}

static void *fresh_main(void *arg) {
    best_of(fresh_round);
    return arg;
}

TEST_WORKERS(fresh_fibers_behind_a_stuck_one) {
    (void)workers();
    run_and_finish(fresh_main, NULL);
}

/* ---- one single fiber: the wake for it may be skipped, the watcher may not ---- */

static uint64_t lone_round(uint64_t *rng) {
    (void)rng;
    atomic_int left = 1;
    CHECK_EQ(cc_spawn(NULL, count_down, &left, NULL), 0);
    return compute_while(&left);
}

static void *lone_main(void *arg) {
    best_of(lone_round);
    return arg;
}

TEST_WORKERS(a_lone_fiber_behind_a_stuck_one) {
    (void)workers();
    run_and_finish(lone_main, NULL);
}

/* ---- fibers that have run before: yielded, and woken into the slot ---- */

static uint64_t yielded_round(uint64_t *rng) {
    int count = (int)(1 + below(rng, 30));
    atomic_int left = count;
    CCTask tasks[30];
    for (int i = 0; i < count; i++) tasks[i] = spawn(count_down_after_yields, &left);
    cc_yield(); /* they run once and are queued */
    uint64_t took = compute_while(&left);
    for (int i = 0; i < count; i++) join(tasks[i]);
    return took;
}

static void *yielded_main(void *arg) {
    best_of(yielded_round);
    return arg;
}

TEST_WORKERS(yielders_behind_a_stuck_one) {
    (void)workers();
    run_and_finish(yielded_main, NULL);
}

struct waiting {
    struct bell bell;
    atomic_int parked;
    atomic_int *left;
};

static void *wait_then_count(void *arg) {
    struct waiting *w = arg;
    atomic_store(&w->parked, 1);
    bell_wait(&w->bell);
    return count_down(w->left);
}

static uint64_t woken_round(uint64_t *rng) {
    int count = (int)(1 + below(rng, 8));
    atomic_int left = count;
    struct waiting all[8];
    CCTask tasks[8];
    memset(all, 0, sizeof all);
    for (int i = 0; i < count; i++) {
        all[i].left = &left;
        tasks[i] = spawn(wait_then_count, &all[i]);
    }
    for (int i = 0; i < count; i++)
        while (!atomic_load(&all[i].parked)) cc_yield();
    for (int i = 0; i < count; i++) bell_ring(&all[i].bell);
    uint64_t took = compute_while(&left);
    for (int i = 0; i < count; i++) join(tasks[i]);
    return took;
}

static void *woken_main(void *arg) {
    best_of(woken_round);
    return arg;
}

TEST_WORKERS(woken_fibers_behind_a_stuck_one) {
    (void)workers();
    run_and_finish(woken_main, NULL);
}

/* ---- timers armed on a worker that is stuck when they are due ---- */

static void *sleep_then_count(void *arg) {
    CHECK_EQ(cc_sleep_ms(2), 0);
    return count_down(arg);
}

static uint64_t timer_round(uint64_t *rng) {
    int count = (int)(1 + below(rng, 20));
    atomic_int left = count;
    CCTask tasks[20];
    for (int i = 0; i < count; i++) tasks[i] = spawn(sleep_then_count, &left);
    cc_yield(); /* here they arm their timers */
    uint64_t took = compute_while(&left);
    for (int i = 0; i < count; i++) join(tasks[i]);
    return took;
}

static void *timer_main(void *arg) {
    best_of(timer_round);
    return arg;
}

TEST_WORKERS(timers_of_a_stuck_worker_fire) {
    (void)workers();
    run_and_finish(timer_main, NULL);
}

/* ---- an OS thread sends to a worker that is stuck ---- */

struct foreign {
    atomic_int left, ready;
};

static void *stuck_main(void *arg) {
    struct foreign *f = arg;
    atomic_store(&f->ready, 1);
    return (void *)(uintptr_t)compute_while(&f->left);
}

TEST_WORKERS(a_thread_spawns_while_a_worker_is_stuck) {
    unsigned n = workers();
    long rounds = test_rounds(40, 4000);
    for (long r = 0; r < rounds; r++) {
        struct foreign f = {.left = (int)(4 * n)};
        CCTask stuck = spawn(stuck_main, &f);
        while (!atomic_load(&f.ready)) sched_yield();
        /* Round robin: some of these are addressed to the stuck worker's inbox. */
        for (unsigned i = 0; i < 4 * n; i++) CHECK_EQ(cc_spawn(NULL, count_down, &f.left, NULL), 0);
        join(stuck);
    }
    finish();
}

/* ---- all workers but one are stuck, and all the work is behind them ---- */

struct stuck_all {
    atomic_int stuck, wanted, left;
};

static void *occupy_worker(void *arg) {
    struct stuck_all *s = arg;
    for (int i = 0; i < 10; i++) CHECK_EQ(cc_spawn(NULL, count_down, &s->left, NULL), 0);
    atomic_fetch_add(&s->stuck, 1);
    return (void *)(uintptr_t)compute_while(&s->left);
}

TEST_WORKERS(one_free_worker_serves_all_the_stuck) {
    int n = (int)workers() - 1;
    long rounds = test_rounds(6, 600);
    for (long r = 0; r < rounds; r++) {
        struct stuck_all s = {.left = 10 * n};
        CCTask tasks[32];
        CHECK(n <= 32);
        for (int i = 0; i < n; i++) tasks[i] = spawn(occupy_worker, &s);
        for (int i = 0; i < n; i++) join(tasks[i]);
    }
    finish();
}

/* ---- a worker that is blocked in a system call ---- */

struct client {
    atomic_int served;
};

static void *serve_client(void *arg) {
    struct client *v = arg;
    atomic_fetch_add(&v->served, 1);
    return arg;
}

/* An OS thread that needs the runtime while the fiber that started it blocks a worker until the thread has
 * ended. */
static void *client(void *arg) {
    void *result = NULL;
    for (int i = 0; i < 5; i++) {
        CHECK_EQ(cc_run(serve_client, arg, &result), 0);
        CHECK(result == arg);
    }
    return NULL;
}

static void *receive(void *arg) {
    long rounds = test_rounds(20, 2000);
    for (long i = 0; i < rounds; i++) {
        join_thread(start_thread(client, arg));
        cc_yield();
    }
    return NULL;
}

TEST_WORKERS(fibers_join_threads_that_join_fibers) {
    int n = (int)workers() - 1; /* that many may block at once */
    struct client clients[32] = {0};
    CCTask tasks[32];
    CHECK(n <= 32);
    for (int i = 0; i < n; i++) tasks[i] = spawn(receive, &clients[i]);
    for (int i = 0; i < n; i++) join(tasks[i]);
    for (int i = 0; i < n; i++) CHECK_EQ(atomic_load(&clients[i].served), 5 * test_rounds(20, 2000));
    finish();
}
