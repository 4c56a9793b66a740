/* joined.c - a panic in a task that its joiner runs: the task ends, the joiner continues. */
#include "log.h"

#include "../depth.h"
#include "base/san.h"

#include <stdio.h>

static CC_NOINLINE void panic_below(void *arg) {
    cc_panic("below %d", *(int *)arg);
}

static void yield_and_panic(void *arg) {
    for (int i = 0; i < 3; i++) cc_yield();
    if (*(int *)arg % 4 == 0) CHECK_EQ(cc_sleep_ms(1), 0); /* may resume on another worker */
    panic_below(arg);
}

static void *panic_deep(void *arg) {
    CC_DEFER(note_first, "a");
    use_stack(4000, *(int *)arg % 2 ? panic_below : yield_and_panic, arg);
    return arg;
}

static void stop(void *arg) {
    CHECK(cc_recover(NULL));
    note_first(arg);
}

static void *panic_and_stop(void *arg) {
    CHECK_EQ(cc_defer(stop, "s"), 0);
    return panic_deep(arg);
}

/* Everything that the joiner keeps, in registers or in its frame, is as it was. */
static void *join_many(void *arg) {
    volatile long seed = 3;
    long a = seed, b = seed * 2, c = seed * 3, d = seed * 4, e = seed * 5, f = seed * 6;
    double x = (double)seed / 4;
    char frame[64];
    memset(frame, 'f', sizeof frame);
    CHECK_EQ(cc_fiber_set_name("joiner"), 0);
    CCFiberId me = cc_fiber_id();
    int n = (int)test_scale(400);
    for (int i = 0; i < n; i++) {
        void *result = &i;
        bool ends_well = i % 3 == 0;
        log_clear();
        CCTask task = cc_fiber_spawn_task(ends_well ? panic_and_stop : panic_deep, &i);
        CCFiberId id = task.id;
        CHECK_EQ(cc_task_join(&task, &result), ends_well ? 0 : ENOTRECOVERABLE);
        CHECK(result == NULL);
        CHECK_EQ(task.id, 0);
        CHECK_LOG(ends_well ? "as" : "a");
        CHECK(cc_fiber_id() == me);
        CHECK_TEXT(cc_fiber_name(), "joiner");
        CCPanic why;
        if (!ends_well) {
            char wanted[32];
            snprintf(wanted, sizeof wanted, "below %d", i);
            CHECK_EQ(cc_panic_find(id, &why), 0);
            CHECK_TEXT(why.message, wanted);
        }
        a++, b++, c++, d++, e++, f++, x += 1;
        for (size_t k = 0; k < sizeof frame; k++) CHECK_EQ(frame[k], 'f');
    }
    CHECK(a == 3 + n && b == 6 + n && c == 9 + n && d == 12 + n && e == 15 + n && f == 18 + n);
    CHECK(x > 0.74 + n && x < 0.76 + n);
    return arg;
}

TEST_WORKERS(joiner_goes_on) {
    CHECK_EQ(cc_run(join_many, NULL, NULL), 0);
    CHECK_EQ(cc_runtime_shutdown(10000), 0);
}

/* Each joins the next on one stack; all panic, from the innermost out, because their joins fail. */
static void *chain(void *arg) {
    int depth = *(int *)arg - 1;
    CC_DEFER(note_first, &"0123456789"[*(int *)arg]);
    if (depth >= 0) {
        CCTask task = cc_fiber_spawn_task(chain, &depth);
        CHECK_EQ(cc_task_join(&task, NULL), ENOTRECOVERABLE);
    }
    cc_panic("level %d", depth);
    return NULL;
}

TEST_WORKERS(one_after_the_other) {
    int depth = 9;
    log_clear();
    CHECK_EQ(cc_run(chain, &depth, NULL), ENOTRECOVERABLE);
    CHECK_LOG("0123456789");
}

/* The joiner stops its own panic while its own scope lies below a task's. */
static void *panic_now(void *arg) {
    (void)arg;
    cc_panic("child");
}

static void join_in_scope(void *arg) {
    (void)arg;
    CC_DEFER(note_first, "b");
    CCTask task = cc_fiber_spawn_task(panic_now, NULL);
    CHECK_EQ(cc_task_join(&task, NULL), ENOTRECOVERABLE);
    note('-');
    cc_panic("parent");
}

static void *try_to_join(void *arg) {
    CCPanic why;
    log_clear();
    CHECK_EQ(cc_try(join_in_scope, NULL, &why), ENOTRECOVERABLE);
    CHECK_TEXT(why.message, "parent");
    CHECK_LOG("-b");
    return arg;
}

TEST_WORKERS(scopes_of_two_fibers_on_one_stack) {
    CHECK_EQ(cc_run(try_to_join, NULL, NULL), 0);
}

/* A joiner's panic in a deferred function that joins. */
static void join_in_a_defer(void *arg) {
    CCTask task = cc_fiber_spawn_task(panic_now, NULL);
    CHECK_EQ(cc_task_join(&task, NULL), ENOTRECOVERABLE);
    CHECK(cc_recover(arg));
}

static void *panic_over_a_join(void *arg) {
    CC_DEFER(join_in_a_defer, arg);
    cc_panic("mine");
    return NULL;
}

TEST_WORKERS(a_child_panics_while_its_parent_does) {
    CCPanic why;
    CHECK_EQ(cc_run(panic_over_a_join, &why, NULL), 0);
    CHECK_TEXT(why.message, "mine");
}

/* It does happen to a task that its joiner runs: then no join parks. */
static void *panic_at_once(void *arg) {
    cc_panic("run by its joiner");
    return arg;
}

static void *give_back(void *arg) {
    return arg;
}

/* At turns with a full poll joins do not run their tasks; many quick turns make such polls rare again after a panic was
 * printed, which is slow. */
static void *count_parks(void *arg) {
    int direct = 0;
    for (int i = 0; i < 100 && direct < 20; i++) {
        CCStats before, after;
        for (int k = 0; k < 100; k++) (void)cc_block_on(cc_fiber_spawn_task(give_back, NULL));
        CHECK_EQ(cc_stats(&before, sizeof before), 0);
        CCTask task = cc_fiber_spawn_task(panic_at_once, NULL);
        CHECK_EQ(cc_task_join(&task, NULL), ENOTRECOVERABLE);
        CHECK_EQ(cc_stats(&after, sizeof after), 0);
        if (after.parks == before.parks) direct++;
    }
    CHECK(direct > 0);
    return arg;
}

TEST(of_a_task_that_its_joiner_runs) {
#ifdef CC_TSAN
    SKIP("joiners run no tasks under the race detector");
#endif
    CCRuntimeConfig config = {.workers = 1};
    CHECK_EQ(cc_runtime_init(&config), 0);
    CHECK_EQ(cc_run(count_parks, NULL, NULL), 0);
}
