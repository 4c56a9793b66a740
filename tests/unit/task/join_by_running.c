/* join_by_running.c - a fiber that joins an unstarted task runs it itself, without a visible difference. */
#include "harness.h"

#include "../gate.h"
#include "base/san.h"
#include "task/task.h"

#include <ccc/ccc.h>
#include <errno.h>
#include <string.h>

static void on_one_worker(CCTaskFn fn) {
    CCRuntimeConfig config = {.workers = 1};
    CHECK_EQ(cc_runtime_init(&config), 0);
    CHECK_EQ(cc_run(fn, NULL, NULL), 0);
    CHECK_EQ(cc_runtime_shutdown(UINT64_MAX), 0);
}

/* ---- it does happen ---- */

static _Atomic int order;

static void *note_order(void *arg) {
    cc__set((_Atomic int *)arg, cc__add(&order, 1));
    return arg;
}

/* Of three tasks in the queue the oldest is joined: it runs at once, and no other does. */
static void *join_the_oldest(void *arg) {
    int direct = 0;
    for (int i = 0; i < 1000; i++) {
        _Atomic int ran[3] = {-1, -1, -1};
        CCTask tasks[3];
        cc__set(&order, 0);
        cc_yield();
        for (int k = 0; k < 3; k++) tasks[k] = cc_fiber_spawn_task(note_order, &ran[k]);
        CHECK_EQ(cc_task_join(&tasks[0], NULL), 0);
        if (cc__get(&ran[0]) == 0 && cc__get(&ran[1]) == -1 && cc__get(&ran[2]) == -1) direct++;
        for (int k = 1; k < 3; k++) CHECK_EQ(cc_task_join(&tasks[k], NULL), 0);
        CHECK_EQ(cc__get(&order), 3);
    }
    CHECK(direct > 500); /* always, except at turns with a full poll */
    return arg;
}

TEST(runs_what_it_joins) {
#ifdef CC_TSAN
    SKIP("joiners run no tasks under the race detector");
#endif
    on_one_worker(join_the_oldest);
}

/* ---- identity ---- */

static void *check_identity(void *parent) {
    CHECK(cc_fiber_id() != *(CCFiberId *)parent);
    CHECK_EQ(strcmp(cc_fiber_name(), ""), 0);
    CHECK_EQ(cc_fiber_set_name("child"), 0);
    cc_yield();
    CHECK_EQ(strcmp(cc_fiber_name(), "child"), 0);
    CHECK_EQ(cc_sleep_ms(1), 0);
    CHECK_EQ(strcmp(cc_fiber_name(), "child"), 0);
    return (void *)(uintptr_t)cc_fiber_id();
}

static void *keep_identity(void *arg) {
    CHECK_EQ(cc_fiber_set_name("parent"), 0);
    CCFiberId me = cc_fiber_id();
    for (int i = 0; i < 20; i++) {
        CCTask task = cc_fiber_spawn_task(check_identity, &me);
        CCFiberId child = task.id;
        void *result = NULL;
        CHECK_EQ(cc_task_join(&task, &result), 0);
        CHECK((CCFiberId)(uintptr_t)result == child);
        CHECK(cc_fiber_id() == me);
        CHECK_EQ(strcmp(cc_fiber_name(), "parent"), 0);
        CHECK(cc_in_fiber());
    }
    return arg;
}

TEST_WORKERS(identities_keep_apart) {
    CHECK_EQ(cc_run(keep_identity, NULL, NULL), 0);
}

/* ---- a wait of the joiner that is over must not end this one ---- */

static void *yield_once(void *arg) {
    cc_yield();
    return arg;
}

static _Atomic bool slept;

static void *sleep_beyond(void *arg) {
    CHECK_EQ(cc_sleep_until(*(CCDeadline *)arg), 0);
    cc__set(&slept, true);
    return arg;
}

static void *join_twice(void *arg) {
    for (int i = 0; i < 20; i++) {
        CCDeadline near = cc_after_ms(5), far = cc_after_ms(10);
        CCTask first = cc_fiber_spawn_task(yield_once, NULL);
        int rc = cc_task_join_until(&first, NULL, near); /* leaves a timer behind */
        CHECK(rc == 0 || rc == ETIMEDOUT);               /* the latter on a machine that was suspended */
        if (rc != 0) CHECK_EQ(cc_task_join(&first, NULL), 0);
        cc_yield();
        cc__set(&slept, false);
        CCTask second = cc_fiber_spawn_task(sleep_beyond, &far);
        void *result = NULL;
        CHECK_EQ(cc_task_join(&second, &result), 0);
        CHECK(cc__get(&slept));
        CHECK(result == &far);
        CHECK(cc_now_ns() >= far.ns);
    }
    return arg;
}

TEST_WORKERS(stale_timer_does_not_end_a_run) {
    CHECK_EQ(cc_run(join_twice, NULL, NULL), 0);
}

/* ---- others wait for the same task ---- */

static CCTask shared;
static struct gate gate;

static void *join_shared(void *arg) {
    CCTask copy;
    void *result = NULL;
    CHECK_EQ(cc_task_dup(&shared, &copy), 0);
    CHECK_EQ(cc_task_join(&copy, &result), 0);
    CHECK(result == &gate);
    return arg;
}

static void *wait_at_gate(void *arg) {
    gate_wait(arg);
    return arg;
}

static void *lend_while_others_wait(void *arg) {
    enum { OTHERS = 5 };
    for (int i = 0; i < 200; i++) {
        CCTask others[OTHERS], mine;
        gate_close(&gate);
        cc_yield();
        shared = cc_fiber_spawn_task(wait_at_gate, &gate);
        CHECK_EQ(cc_task_dup(&shared, &mine), 0);
        for (int k = 0; k < OTHERS; k++) others[k] = cc_fiber_spawn_task(join_shared, NULL);
        CCTask opener = cc_fiber_spawn_task(note_order, &order);
        void *result = NULL;
        (void)gate_open(&gate);
        CHECK_EQ(cc_task_join(&mine, &result), 0);
        CHECK(result == &gate);
        for (int k = 0; k < OTHERS; k++) CHECK_EQ(cc_task_join(&others[k], NULL), 0);
        CHECK_EQ(cc_task_join(&opener, NULL), 0);
        CHECK_EQ(cc_task_join(&shared, &result), 0); /* a handle that is left gets it later */
        CHECK(result == &gate);
    }
    return arg;
}

TEST_WORKERS(others_wait_too) {
    CHECK_EQ(cc_run(lend_while_others_wait, NULL, NULL), 0);
}

/* ---- deep and wide ---- */

CC_TASK(fib, { int n; }) {
    if (self->n < 2) return (void *)(intptr_t)self->n;
    CCTask a = CC_GO(fib, .n = self->n - 1), b = CC_GO(fib, .n = self->n - 2);
    return (void *)((intptr_t)cc_block_on(b) + (intptr_t)cc_block_on(a));
}

TEST_WORKERS(fork_and_join) {
    CHECK_EQ((intptr_t)cc_block_on(CC_GO(fib, .n = test_scale(20) > 15 ? 18 : 12)), test_scale(20) > 15 ? 2584 : 144);
}

CC_TASK(chain, { long n; }) {
    if (self->n == 0) return NULL;
    CCTask next = CC_GO(chain, .n = self->n - 1);
    if (self->n % 7 == 0) cc_yield(); /* sometimes it is run by itself, sometimes by its joiner */
    return (void *)((intptr_t)cc_block_on(next) + 1);
}

/* Each task joins the next: with unbounded nesting the joiners would run out of stack. */
TEST_WORKERS(long_chain) {
    long length = test_rounds(5000, 200000);
    CHECK_EQ((intptr_t)cc_block_on(CC_GO(chain, .n = length)), length);
}

/* Small stacks. */
TEST(long_chain_on_small_stacks) {
    CCRuntimeConfig config = {.workers = 2, .stack_size = CC_STACK_SIZE_MIN};
    CHECK_EQ(cc_runtime_init(&config), 0);
    long length = test_rounds(5000, 100000);
    CHECK_EQ((intptr_t)cc_block_on(CC_GO(chain, .n = length)), length);
}

/* ---- a tree that its joiners run, and others ---- */

static _Atomic long nodes;
static _Atomic bool stop;

/* Ten children each. */
CC_TASK(tree, { long leaves; }) {
    cc__set(&nodes, cc__get(&nodes) + 1);
    if (self->leaves <= 1) return NULL;
    CCTask children[10];
    for (int i = 0; i < 10; i++) children[i] = CC_GO(tree, .leaves = self->leaves / 10);
    for (int i = 0; i < 10; i++) CHECK_EQ(cc_task_join(&children[i], NULL), 0);
    return NULL;
}

static long grow_tree(void) {
    cc__set(&nodes, 0);
    CHECK(cc_block_on(CC_GO(tree, .leaves = test_scale(20) >= 4 ? 100000 : 10000)) == NULL);
    return cc__get(&nodes);
}

static struct gate gates[2];
static _Atomic long pair_turns, most_between;

/* Two that wake each other; and the most nodes that ran between two of their turns. */
static void *ping_pong(void *arg) {
    int me = (int)(intptr_t)arg;
    static _Atomic long last;
    while (!cc__get(&stop)) {
        gate_wait(&gates[me]);
        gate_close(&gates[me]);
        long now = cc__get(&nodes), between = now - cc__get(&last);
        if (between > cc__get(&most_between)) cc__set(&most_between, between);
        cc__set(&last, now);
        cc__add_relaxed(&pair_turns, 1);
        (void)gate_open(&gates[!me]);
    }
    (void)gate_open(&gates[!me]);
    return NULL;
}

/* NEXT-1: fibers that have run before get a turn at every poll, after at most 256 turns; the slot then has 16 of them
 * in a row. */
static void *tree_beside_a_pair(void *arg) {
    CCTask pair[2];
    for (int i = 0; i < 2; i++) gate_close(&gates[i]);
    for (intptr_t i = 0; i < 2; i++) pair[i] = cc_fiber_spawn_task(ping_pong, (void *)i);
    (void)gate_open(&gates[0]);
    while (cc__get(&pair_turns) < 10) cc_yield();
    long before = cc__get(&pair_turns), n = grow_tree();
    CHECK(cc__get(&pair_turns) - before >= n / 20);
    CHECK(cc__get(&most_between) <= 4 * 256);
    cc__set(&stop, true);
    for (int i = 0; i < 2; i++) CHECK_EQ(cc_task_join(&pair[i], NULL), 0);
    return arg;
}

TEST(pair_beside_a_tree) {
    on_one_worker(tree_beside_a_pair);
}

static void *nothing(void *arg) {
    return arg;
}

static void *count_turns(void *turns) {
    while (!cc__get(&stop)) {
        cc__set((_Atomic int *)turns, cc__get((_Atomic int *)turns) + 1);
        cc_yield();
    }
    return NULL;
}

/* A join of an ended task is not a turn, however often it is called. */
static void *join_the_ended(void *arg) {
    _Atomic int turns = 0;
    CCTask other = cc_fiber_spawn_task(count_turns, &turns), ended = cc_fiber_spawn_task(nothing, NULL);
    while (cc__get(&turns) == 0) cc_yield();
    CCTask handle;
    CHECK_EQ(cc_task_dup(&ended, &handle), 0);
    CHECK_EQ(cc_task_join(&handle, NULL), 0);
    int before = cc__get(&turns);
    for (int i = 0; i < 1000; i++) {
        CHECK_EQ(cc_task_dup(&ended, &handle), 0);
        CHECK_EQ(cc_task_join(&handle, NULL), 0);
    }
    CHECK_EQ(cc__get(&turns), before);
    cc__set(&stop, true);
    CHECK_EQ(cc_task_join(&other, NULL), 0);
    CHECK_EQ(cc_task_join(&ended, NULL), 0);
    return arg;
}

/* Nor may another worker steal. */
TEST(joins_of_ended_tasks_do_not_yield) {
    CHECK_EQ(cc_runtime_init(&(CCRuntimeConfig){.workers = 1, .max_workers = 1}), 0);
    CHECK_EQ(cc_run(join_the_ended, NULL, NULL), 0);
    CHECK_EQ(cc_runtime_shutdown(UINT64_MAX), 0);
}

static void *note_nodes(void *arg) {
    *(long *)arg = cc__get(&nodes);
    return arg;
}

/* NEXT-1: fresh fibers get a turn at every sixteenth poll, the oldest first. */
static void *tree_after_others(void *arg) {
    enum { OTHERS = 3, SLICE = 16 * 256 };
    long ran_at[OTHERS];
    CCTask others[OTHERS];
    for (int i = 0; i < OTHERS; i++) {
        ran_at[i] = -1;
        others[i] = cc_fiber_spawn_task(note_nodes, &ran_at[i]);
    }
    long n = grow_tree();
    for (int i = 0; i < OTHERS && (i + 1) * SLICE * 2 < n; i++)
        CHECK(ran_at[i] >= 0 && ran_at[i] <= (i + 1) * SLICE * 2);
    for (int i = 0; i < OTHERS; i++) CHECK_EQ(cc_task_join(&others[i], NULL), 0);
    return arg;
}

TEST(oldest_beside_a_tree) {
    on_one_worker(tree_after_others);
}

/* A poll for others does not keep joiners from running tasks: few joins park, and few stacks are needed. */
static void *tree_depth_first(void *arg) {
    CCStats before, after;
    CHECK_EQ(cc_stats(&before, sizeof before), 0);
    long n = grow_tree();
    CHECK_EQ(cc_stats(&after, sizeof after), 0);
    /* Every sixteenth poll starts a part of the tree out of order, whose joiner then waits; ASan makes polls frequent.
     */
    uint64_t looks = after.polls - before.polls;
    CHECK((long)(after.parks - before.parks) <= n / 1000 + 5 + (long)(looks / 8));
    return arg;
}

TEST(tree_stays_depth_first) {
#ifdef CC_TSAN
    SKIP("joiners run no tasks under the race detector");
#endif
    on_one_worker(tree_depth_first);
}

/* ---- a task that ends while it runs on another's stack, on another worker ---- */

static void *migrate(void *arg) {
    for (int i = 0; i < 20; i++) {
        cc_yield();
        if (i % 5 == 0) CHECK_EQ(cc_sleep_until(cc_after_ns(1000)), 0);
    }
    return arg;
}

static void *join_migrating(void *arg) {
    for (intptr_t i = 1; i <= 50; i++) {
        CCTask task = cc_fiber_spawn_task(migrate, (void *)i);
        void *result = NULL;
        CHECK_EQ(cc_task_join(&task, &result), 0);
        CHECK(result == (void *)i);
    }
    return arg;
}

TEST_WORKERS(tasks_that_migrate) {
    enum { MANY = 16 };
    CCTask tasks[MANY];
    for (int i = 0; i < MANY; i++) tasks[i] = cc_fiber_spawn_task(join_migrating, NULL);
    for (int i = 0; i < MANY; i++) CHECK_EQ(cc_task_join(&tasks[i], NULL), 0);
}
