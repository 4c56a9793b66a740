/* defer.c - deferred functions run once, latest first, at the end of their block or scope. */
#include "log.h"

#include "../../programs/where.h"
#include "../contexts.h"

#include <stdlib.h>

/* ---- blocks ---- */

static void by_the_end(void) {
    log_clear();
    {
        CC_DEFER(note_first, "a");
        CC_DEFER(note_first, "b");
        note('0');
    }
    note('1');
    CHECK_LOG("0ba1");
}

static int return_early(int how) {
    CC_DEFER(note_first, "a");
    if (how == 0) return how;
    CC_DEFER(note_first, "b");
    for (int i = 0; i < 3; i++) {
        CC_DEFER(note_first, "c");
        if (how == 1) return how;
        if (how == 2) break;
        if (how == 3) continue;
        if (how == 4) goto out;
    }
    note('-');
out:
    note('.');
    return how;
}

static void by_other_ways(void) {
    static const char *const wanted[] = {"a", "cba", "c-.ba", "ccc-.ba", "c.ba"};
    for (int how = 0; how < 5; how++) {
        log_clear();
        CHECK_EQ(return_early(how), how);
        CHECK_LOG(wanted[how]);
    }
}

static void arguments_at_once(void) {
    const char *text = "a";
    log_clear();
    {
        CC_DEFER(note_first, (void *)(uintptr_t)text);
        text = "b";
    }
    CHECK_LOG("a");
    CHECK_EQ(*text, 'b');
}

static void no_function(void) {
    log_clear();
    {
        CC_DEFER(note_first, "a");
        CC_DEFER((CCDeferFn)NULL, NULL);
    }
    CHECK_LOG("a");
}

static void defer_inside(void *arg) {
    CC_DEFER(note_first, "i");
    note_first(arg);
}

static void in_a_deferred_function(void) {
    log_clear();
    {
        CC_DEFER(note_first, "a");
        CC_DEFER(defer_inside, "b");
    }
    CHECK_LOG("bia");
}

static void blocks(void) {
    by_the_end();
    by_other_ways();
    arguments_at_once();
    no_function();
    in_a_deferred_function();
}

TEST(blocks_in_both_contexts) {
    in_both_contexts(blocks);
}

static void count_one(void *counter) {
    atomic_fetch_add((atomic_int *)counter, 1);
}

static void *defer_and_yield(void *counter) {
    for (int i = 0; i < 50; i++) {
        CC_DEFER(count_one, counter);
        cc_yield();
    }
    CC_DEFER(count_one, counter);
    CHECK_EQ(cc_sleep_ms(1), 0);
    return NULL;
}

/* A fiber's list moves with it between workers. */
TEST_WORKERS(lists_keep_apart) {
    atomic_int counter = 0;
    CCTask tasks[20];
    for (int i = 0; i < 20; i++) tasks[i] = cc_fiber_spawn_task(defer_and_yield, &counter);
    for (int i = 0; i < 20; i++) CHECK_EQ(cc_task_join(&tasks[i], NULL), 0);
    CHECK_EQ(atomic_load(&counter), 20 * 51);
}

/* ---- scopes ---- */

static void three(void *arg) {
    (void)arg;
    CHECK_EQ(cc_defer(note_first, "a"), 0);
    CHECK_EQ(cc_defer(note_first, "b"), 0);
    {
        CC_DEFER(note_first, "x");
        CHECK_EQ(cc_defer(note_first, "c"), 0);
    } /* x leaves from the middle of the list */
    note('.');
}

static void nested(void *arg) {
    CHECK_EQ(cc_defer(note_first, "o"), 0);
    CHECK_EQ(cc_try(three, arg, NULL), 0);
    note('-');
}

static void defer_more(void *arg) {
    note_first(arg);
    if (*(const char *)arg == 'a') CHECK_EQ(cc_defer(defer_more, "b"), 0);
}

static void defers_that_defer(void *arg) {
    (void)arg;
    CHECK_EQ(cc_defer(note_first, "z"), 0);
    CHECK_EQ(cc_defer(defer_more, "a"), 0);
}

static void scopes(void) {
    log_clear();
    CHECK_EQ(cc_try(three, NULL, NULL), 0);
    CHECK_LOG("x.cba");
    log_clear();
    CHECK_EQ(cc_try(nested, NULL, NULL), 0);
    CHECK_LOG("x.cba-o");
    log_clear();
    CHECK_EQ(cc_try(defers_that_defer, NULL, NULL), 0);
    CHECK_LOG("abz");
    CHECK_EQ(cc_defer(NULL, NULL), EINVAL);
    CHECK_EQ(cc_try(NULL, NULL, NULL), EINVAL);
}

TEST(scopes_in_both_contexts) {
    in_both_contexts(scopes);
}

/* Each checks whether there is a panic, as clean-up code does. */
static long ended;

static void look_and_count(void *arg) {
    (void)arg;
    CHECK(!cc_recover(NULL));
    ended++;
}

static void defer_many(void *count) {
    for (long i = 0; i < *(long *)count; i++) CHECK_EQ(cc_defer(look_and_count, NULL), 0);
}

static void many(void) {
    bool cheap = !(UNDER_ASAN || UNDER_TSAN || under_valgrind() || under_qemu());
    long count = cheap ? 200000 : 2000;
    ended = 0;
    CHECK_EQ(cc_try(defer_many, &count, NULL), 0);
    CHECK_EQ(ended, count);
}

/* Both calls look at what was deferred before: their cost does not depend on how much that is. */
TEST(many_in_one_scope, .timeout = 30) {
    in_both_contexts(many);
}

/* As many blocks, one inside the other. */
static void nest_many(void *count) {
    long n = *(long *)count;
    CCDefer *blocks = calloc((size_t)n, sizeof *blocks);
    CHECK(blocks != NULL);
    for (long i = 0; i < n; i++) {
        blocks[i].fn = look_and_count;
        (void)cc_defer_enter(&blocks[i]);
    }
    while (n > 0) cc_defer_leave(&blocks[--n]);
    free(blocks);
}

static void stop_and_nest_many(void *count) {
    CHECK(cc_recover(NULL));
    nest_many(count);
}

static void panic_and_nest_many(void *count) {
    CC_DEFER(stop_and_nest_many, count);
    cc_panic("stopped");
}

static void many_blocks(void) {
    bool cheap = !(UNDER_ASAN || UNDER_TSAN || under_valgrind() || under_qemu());
    long count = cheap ? 200000 : 2000;
    ended = 0;
    CHECK_EQ(cc_try(nest_many, &count, NULL), 0);
    CHECK_EQ(cc_try(panic_and_nest_many, &count, NULL), 0);
    CHECK_EQ(ended, 2 * count);
}

/* cc_recover looks at what encloses it: its cost does not depend on how much that is. */
TEST(many_blocks_in_one_scope, .timeout = 30) {
    in_both_contexts(many_blocks);
}

static void *three_in_fiber(void *arg) {
    three(arg);
    return (void *)7;
}

/* The end of a fiber is the end of its outermost scope: before its join returns, and its result
 * stays. */
TEST_WORKERS(end_of_a_fiber) {
    void *result = NULL;
    log_clear();
    CHECK_EQ(cc_run(three_in_fiber, NULL, &result), 0);
    CHECK_LOG("x.cba");
    CHECK_EQ((intptr_t)result, 7);
}

static void wait_a_little(void *arg) {
    cc_yield();
    CHECK_EQ(cc_sleep_ms(2), 0);
    note_first(arg);
}

static void *end_slowly(void *arg) {
    CHECK_EQ(cc_defer(wait_a_little, arg), 0);
    return arg;
}

static void *join_one(void *arg) {
    CCTask task = cc_fiber_spawn_task(end_slowly, arg);
    void *result = NULL;
    CHECK_EQ(cc_task_join(&task, &result), 0);
    CHECK(result == arg);
    note('j');
    return arg;
}

/* Also in a task that its joiner runs. */
TEST_WORKERS(deferred_functions_may_wait) {
    log_clear();
    CHECK_EQ(cc_run(join_one, "w", NULL), 0);
    CHECK_LOG("wj");
}

TEST(no_scope_on_a_bare_thread) {
    log_clear();
    CHECK_EQ(cc_defer(note_first, "a"), EPERM);
    CC_DEFER(note_first, "b");
    CHECK_EQ(cc_defer(note_first, "a"), EPERM);
    CHECK_LOG("");
}

static void leave_block_wrongly(void) {
    CCDefer stray = {NULL, note_first, "a", NULL};
    stray.list = &stray.next;
    cc_defer_leave(&stray);
}

TEST_DIES(a_block_that_was_never_entered, "DEFER-2", .signal = SIGABRT) {
    leave_block_wrongly();
}
