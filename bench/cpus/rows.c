/* rows.c - what is measured on the model of many CPUs (cost.c): as the rows of bench/, on virtual CPUs. */
#include "cost.h"

#include <ccc/ccc.h>
#include <stdlib.h>

/* The rows start on an OS thread, which is not measured. */
static void on_fiber(CCTaskFn fn) {
    CCRuntimeConfig config = {.workers = cost_cpus(), .max_workers = cost_cpus()};
    EX_EQ(cc_runtime_init(&config), 0);
    EX_EQ(cc_run(fn, NULL, NULL), 0);
}

/* ---- fork and join: a tree of tasks whose leaves work for a microsecond ---- */

enum { LEAF_NS = 1000 };

static void *tree(void *arg) {
    intptr_t depth = (intptr_t)arg;
    if (depth == 0) {
        cost_work(LEAF_NS);
        return (void *)1;
    }
    CCTask right = cc_fiber_spawn_task(tree, (void *)(depth - 1));
    intptr_t left = (intptr_t)tree((void *)(depth - 1));
    return (void *)(left + (intptr_t)cc_block_on(right));
}

static void *fork_join_root(void *arg) {
    (void)arg;
    intptr_t depth = 10;
    for (unsigned n = cost_cpus(); n > 1; n /= 2) depth++;
    EX_EQ((intptr_t)tree((void *)depth), (intptr_t)1 << depth); /* fills the caches */
    cost_begin();
    EX_EQ((intptr_t)tree((void *)depth), (intptr_t)1 << depth);
    cost_end((uint64_t)1 << depth);
    return NULL;
}
static void fork_join(void) {
    on_fiber(fork_join_root);
}
SCENARIO(fork_join, "a tree of tasks, leaves of 1 us; 1,024 leaves for each CPU", .threads = {fork_join});

/* ---- what goes on for ever, counted for a while ---- */

/* Until the fibers have spread over the workers: those are woken one after another. */
enum { WARM_NS = 300000, WARM_CPU_NS = 5000, MEASURED_NS = 100000, FIBERS_MAX = 128 * 64 };

static struct {
    _Alignas(128) uint64_t ops;
    CCChan *there, *back;
    CCMutex m;
} each[FIBERS_MAX];

/* fn(i) for that many fibers per CPU. They count in each[i].ops. */
static void go_on(CCTaskFn fn, unsigned per_cpu) {
    unsigned n = per_cpu * cost_cpus();
    for (unsigned i = 0; i < n; i++) {
        CCTask t = cc_fiber_spawn_task(fn, (void *)(uintptr_t)i);
        EX_EQ(cc_task_detach(&t), 0);
    }
    EX_EQ(cc_sleep_until(cc_after_ns(WARM_NS + (uint64_t)WARM_CPU_NS * cost_cpus())), 0);
    uint64_t before = 0, after = 0;
    for (unsigned i = 0; i < n; i++) before += each[i].ops;
    cost_begin();
    EX_EQ(cc_sleep_until(cc_after_ns(MEASURED_NS)), 0);
    for (unsigned i = 0; i < n; i++) after += each[i].ops;
    cost_end(after - before);
}

enum { PAIRS_PER_CPU = 4 };

static void *answers(void *arg) {
    uintptr_t i = (uintptr_t)arg;
    for (int v; cc_chan_recv(each[i].there, &v, sizeof v) == 0;) EX_EQ(cc_chan_send(each[i].back, &v, sizeof v), 0);
    return NULL;
}
static void *asks(void *arg) {
    uintptr_t i = (uintptr_t)arg;
    each[i].there = cc_chan_create(sizeof(int), 0);
    each[i].back = cc_chan_create(sizeof(int), 0);
    CCTask t = cc_fiber_spawn_task(answers, arg);
    EX_EQ(cc_task_detach(&t), 0);
    for (int v = 0;; each[i].ops++) {
        EX_EQ(cc_chan_send(each[i].there, &v, sizeof v), 0);
        EX_EQ(cc_chan_recv(each[i].back, &v, sizeof v), 0);
    }
}
static void *pairs_root(void *arg) {
    go_on(asks, PAIRS_PER_CPU);
    return arg;
}
static void pairs(void) {
    on_fiber(pairs_root);
}
SCENARIO(pairs, "pairs of fibers that talk over channels of capacity 0; four for each CPU", .threads = {pairs});

static void *yields(void *arg) {
    for (uintptr_t i = (uintptr_t)arg;; each[i].ops++) cc_yield();
}
static void *yield_root(void *arg) {
    go_on(yields, 4);
    return arg;
}
static void yield(void) {
    on_fiber(yield_root);
}
SCENARIO(yield, "fibers that yield; four for each CPU", .threads = {yield});

static void *sleeps(void *arg) {
    for (uintptr_t i = (uintptr_t)arg;; each[i].ops++) {
        EX_EQ(cc_sleep_until(cc_after_ns(20000 + i * 37 % 10000)), 0);
        cost_work(200);
    }
}
static void *timers_root(void *arg) {
    go_on(sleeps, 16);
    return arg;
}
static void timers(void) {
    on_fiber(timers_root);
}
SCENARIO(timers, "fibers that sleep for 20 to 30 us; 16 for each CPU", .threads = {timers});

static void *locks_own(void *arg) {
    for (uintptr_t i = (uintptr_t)arg;; each[i].ops++) {
        EX_EQ(cc_mutex_lock(&each[i / 2].m), 0);
        cost_work(20);
        cc_mutex_unlock(&each[i / 2].m);
        if (each[i].ops % 16 == 15) cc_yield();
    }
}
static void *own_locks_root(void *arg) {
    go_on(locks_own, 4);
    return arg;
}
static void own_locks(void) {
    on_fiber(own_locks_root);
}
SCENARIO(own_locks, "pairs of fibers with a mutex for each pair; two for each CPU", .threads = {own_locks});

/* What cannot scale, for comparison. */
static void *locks_one(void *arg) {
    for (uintptr_t i = (uintptr_t)arg;; each[i].ops++) {
        EX_EQ(cc_mutex_lock(&each[0].m), 0);
        cost_work(20);
        cc_mutex_unlock(&each[0].m);
        if (each[i].ops % 16 == 15) cc_yield();
    }
}
static void *one_lock_root(void *arg) {
    go_on(locks_one, 2);
    return arg;
}
static void one_lock(void) {
    on_fiber(one_lock_root);
}
SCENARIO(one_lock, "one mutex for all fibers: cannot scale", .threads = {one_lock});

/* ---- requests: a fiber for each, made by one fiber for each CPU; they work, wait a moment and end ---- */

static void *request(void *arg) {
    cost_work(2000);
    cc_yield();
    cost_work(2000);
    return arg;
}
static void *serves(void *arg) {
    for (uintptr_t i = (uintptr_t)arg;; each[i].ops += 8) {
        CC_NURSERY(n) {
            for (int k = 0; k < 8; k++) (void)cc_nursery_spawn(n, request, NULL);
        }
    }
}
static void *serve_root(void *arg) {
    go_on(serves, 1);
    return arg;
}
static void nurseries(void) {
    on_fiber(serve_root);
}
SCENARIO(nurseries, "nurseries of 8 children that work for 4 us; one at a time for each CPU", .threads = {nurseries});

/* ---- from a wake to the turn, while the others sleep ---- */

static CCWaitGroup all_done;
static CCEvent wakes[64];
static uint64_t woken_at[64];
static void *waits(void *arg) {
    unsigned i = (unsigned)(uintptr_t)arg;
    EX_EQ(cc_event_wait(&wakes[i]), 0);
    cost_sample(cc_now_ns() - woken_at[i]);
    cost_work(20000);
    cc_wait_group_done(&all_done);
    return NULL;
}
static void *wake_root(void *arg) {
    (void)arg;
    unsigned n = cost_cpus() > 1 ? (cost_cpus() - 1 < 64 ? cost_cpus() - 1 : 64) : 1;
    cc_wait_group_add(&all_done, (int)n);
    for (unsigned i = 0; i < n; i++) {
        CCTask t = cc_fiber_spawn_task(waits, (void *)(uintptr_t)i);
        cc_task_detach(&t);
    }
    EX_EQ(cc_sleep_ms(5), 0);
    cost_begin();
    for (unsigned i = 0; i < n; i++) {
        woken_at[i] = cc_now_ns();
        cc_event_set(&wakes[i]);
        cost_work(1000000); /* and continues to compute: only another worker can run it soon */
    }
    EX_EQ(cc_wait_group_wait(&all_done), 0);
    cost_end(n);
    return NULL;
}
static void wake(void) {
    on_fiber(wake_root);
}
SCENARIO(wake, "from a wake to the turn: the waker computes on, all other workers sleep", .threads = {wake});
