/* hosted.c - a function on a fiber's stack, driven by the calling thread. */
#include "log.h"

#include "../crew.h"
#include "../depth.h"
#include "fiber/stack.h"

struct seen {
    uintptr_t frame;
    CCFiberId id;
    bool in_fiber;
};

static void *look(void *arg) {
    struct seen *seen = arg;
    seen->frame = (uintptr_t)__builtin_frame_address(0);
    seen->id = cc_fiber_id();
    seen->in_fiber = cc_in_fiber();
    return &seen->id;
}

/* On a thread: another stack, an id that says hosted, and not a fiber to the scheduler. */
TEST(on_a_stack_of_its_own) {
    struct seen first = {0}, second = {0};
    void *result = NULL;
    CHECK_EQ(cc_hosted_call(look, &first, &result, NULL), 0);
    CHECK(result == &first.id);
    CHECK(first.id >> 63 == 1);
    CHECK(!first.in_fiber);
    uintptr_t here = (uintptr_t)__builtin_frame_address(0);
    CHECK((here > first.frame ? here - first.frame : first.frame - here) > 64 * 1024);
    CHECK_EQ(cc_fiber_id(), 0);
    CHECK_EQ(cc_hosted_call(look, &second, NULL, NULL), 0);
    CHECK_EQ(second.id, first.id + 1); /* a number that is never used again */
    CHECK_EQ(cc_hosted_call(NULL, NULL, &result, NULL), EINVAL);
}

static void *call_in_fiber(void *arg) {
    struct seen *seen = arg;
    CCFiberId me = cc_fiber_id();
    CHECK_EQ(cc_hosted_call(look, seen, NULL, NULL), 0);
    CHECK(seen->id == me);
    CHECK(seen->in_fiber);
    uintptr_t here = (uintptr_t)__builtin_frame_address(0);
    CHECK(here > seen->frame && here - seen->frame < 8192);
    return NULL;
}

TEST_WORKERS(in_a_fiber_it_is_a_call) {
    struct seen seen;
    CHECK_EQ(cc_run(call_in_fiber, &seen, NULL), 0);
}

static void *call_inside(void *arg) {
    struct seen seen;
    CHECK_EQ(cc_hosted_call(look, &seen, NULL, NULL), 0);
    CHECK(seen.id == cc_fiber_id());
    return arg;
}

TEST(hosted_in_hosted) {
    CHECK_EQ(cc_hosted_call(call_inside, NULL, NULL, NULL), 0);
}

/* ---- panics ---- */

static void *panic_inside(void *arg) {
    CHECK_EQ(cc_defer(note_first, "a"), 0);
    CC_DEFER(note_first, "b");
    CC_DEFER(note_first, arg);
    cc_panic("in a hosted call");
    return arg;
}

static void stop(void *arg) {
    CHECK(cc_recover(arg));
}

static void *stop_in_time(void *arg) {
    CHECK_EQ(cc_defer(stop, arg), 0);
    return panic_inside("c");
}

static void check_panics(void) {
    CCPanic why;
    void *result = &why;
    log_clear();
    CHECK_EQ(cc_hosted_call(panic_inside, "c", &result, &why), ENOTRECOVERABLE);
    CHECK_TEXT(why.message, "in a hosted call");
    CHECK(why.frame_count > 0);
    CHECK(cc_in_fiber() ? why.fiber == cc_fiber_id() : why.fiber >> 63 == 1);
    CHECK(result == NULL);
    CHECK_LOG("cba");
    CHECK_EQ(cc_hosted_call(panic_inside, "c", NULL, NULL), ENOTRECOVERABLE);
    result = &why;
    CHECK_EQ(cc_hosted_call(stop_in_time, &why, &result, NULL), 0);
    CHECK(result == NULL);
    CHECK_TEXT(why.message, "in a hosted call");
}

static void *check_panics_in_fiber(void *arg) {
    check_panics();
    return arg;
}

static void panic_again(void *arg) {
    CCPanic why;
    CC_DEFER(note_first, "o");
    if (cc_hosted_call(panic_inside, arg, NULL, &why) != 0) cc_panic("again: %s", why.message);
    note('!');
}

TEST_WORKERS(panics_reach_the_caller) {
    CCPanic why;
    check_panics();
    CHECK_EQ(cc_run(check_panics_in_fiber, NULL, NULL), 0);
    log_clear();
    CHECK_EQ(cc_try(panic_again, "c", &why), ENOTRECOVERABLE);
    CHECK_TEXT(why.message, "again: in a hosted call");
    CHECK_LOG("cbao");
}

/* ---- waits ---- */

static void *double_it(void *arg) {
    CHECK_EQ(cc_sleep_ms(1), 0);
    return (void *)((uintptr_t)arg * 2);
}

static void *serve(void *arg) {
    CCChan **ch = arg;
    for (int v; cc_chan_recv(ch[0], &v, sizeof v) == 0;) {
        v *= 3;
        CHECK_EQ(cc_chan_send(ch[1], &v, sizeof v), 0);
    }
    return NULL;
}

static void *wait_for_all(void *arg) {
    CCChan *ch[2] = {cc_chan_create(sizeof(int), 0), cc_chan_create(sizeof(int), 0)};
    pthread_t me = pthread_self();
    CCTask server = cc_fiber_spawn_task(serve, ch);
    for (int i = 0; i < 20; i++) {
        int v = i;
        CHECK_EQ(cc_chan_send(ch[0], &v, sizeof v), 0);
        CHECK_EQ(cc_chan_recv(ch[1], &v, sizeof v), 0);
        CHECK_EQ(v, 3 * i);
        cc_yield();
    }
    cc_chan_close(ch[0]);
    CHECK_EQ(cc_task_join(&server, NULL), 0);
    CHECK_EQ(cc_sleep_ms(2), 0);
    CCTask task = cc_fiber_spawn_task(double_it, arg);
    void *result;
    CHECK_EQ(cc_task_join(&task, &result), 0);
    CHECK(pthread_equal(me, pthread_self())); /* the caller's thread, and no other */
    cc_chan_free(ch[0]);
    cc_chan_free(ch[1]);
    return result;
}

static void host_waits(int index, void *arg) {
    (void)arg;
    for (int i = 0; i < 3; i++) {
        void *result;
        CHECK_EQ(cc_hosted_call(wait_for_all, (void *)(uintptr_t)index, &result, NULL), 0);
        CHECK_EQ((uintptr_t)result, (uintptr_t)index * 2);
    }
}

TEST_WORKERS(may_wait) {
    crew_run(4, host_waits, NULL);
    CHECK_EQ(cc_runtime_shutdown(10000), 0);
}

/* The stack does not depend on the runtime, which may be shut down and restarted meanwhile. */
static void *end_the_runtime(void *arg) {
    for (int i = 0; i < 3; i++) {
        CHECK_EQ(cc_runtime_shutdown(10000), 0);
        CHECK_EQ((uintptr_t)cc_block_on(cc_fiber_spawn_task(double_it, arg)), 14);
    }
    CHECK_EQ(cc_runtime_shutdown(10000), 0);
    return arg;
}

TEST_WORKERS(may_end_the_runtime) {
    CHECK_EQ(cc_hosted_call(end_the_runtime, (void *)7, NULL, NULL), 0);
    CHECK_EQ(cc_hosted_call(end_the_runtime, (void *)7, NULL, NULL), 0);
}

/* ---- the stack ---- */

static void *use_most(void *arg) {
    use_stack(cc__stack_default() / 8 * 5, NULL, NULL);
    return arg;
}

TEST(has_a_fibers_room) {
    for (int i = 0; i < 10; i++) CHECK_EQ(cc_hosted_call(use_most, NULL, NULL, NULL), 0);
}

TEST(follows_the_default_size) {
    for (size_t size = 64 * 1024; size <= 1024 * 1024; size *= 4) {
        CCRuntimeConfig config = {.workers = 1, .stack_size = size};
        CHECK_EQ(cc_runtime_init(&config), 0);
        CHECK_EQ(cc_hosted_call(use_most, NULL, NULL, NULL), 0);
        CHECK_EQ(cc_runtime_shutdown(10000), 0);
    }
}

static void *restart_larger(void *arg) {
    CCRuntimeConfig config = {.workers = 1, .stack_size = (size_t)1024 * 1024};
    CHECK_EQ(cc_runtime_shutdown(10000), 0);
    CHECK_EQ(cc_runtime_init(&config), 0);
    return arg;
}

/* The stack of the first call returns to the pool after the default size has changed. */
TEST(default_size_changes_meanwhile) {
    CCRuntimeConfig config = {.workers = 1, .stack_size = (size_t)64 * 1024};
    CHECK_EQ(cc_runtime_init(&config), 0);
    CHECK_EQ(cc_hosted_call(restart_larger, NULL, NULL, NULL), 0);
    CHECK_EQ(cc_hosted_call(use_most, NULL, NULL, NULL), 0);
}

static void *use_too_much(void *arg) {
    use_stack((size_t)64 * 1024 * 1024, NULL, NULL);
    return arg;
}

TEST_DIES(overflow_is_named, "ccc: fatal: stack overflow in a hosted call: its stack of ") {
#ifdef CC_TSAN
    SKIP("the race detector's own handler comes first");
#endif
    (void)cc_hosted_call(use_too_much, NULL, NULL, NULL);
}
