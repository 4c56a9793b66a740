/* panic.c - a panic in every position, recovered and not. */
#include "log.h"

#include "../capture.h"
#include "../contexts.h"
#include "../depth.h"

#include "base/attr.h"

#include <stdio.h>
#include <stdlib.h>

/* ---- scopes, in both contexts ---- */

static void panic_at_once(void *arg) {
    cc_panic("at %s", (const char *)arg);
}

static void first_frame(void) {
    CCPanic why = {0};
    CHECK_EQ(cc_try(panic_at_once, "once", &why), ENOTRECOVERABLE);
    CHECK_TEXT(why.message, "at once");
    CHECK(why.generation > 0);
    CHECK(why.fiber == cc_fiber_id());
    CHECK(why.frame_count > 0);
    uint64_t before = why.generation;
    CHECK_EQ(cc_try(panic_at_once, "last", NULL), ENOTRECOVERABLE);
    CHECK_EQ(cc_try(panic_at_once, "last", &why), ENOTRECOVERABLE);
    CHECK(why.generation >= before + 2);
}

static void deep_panic(void *arg) {
    CC_DEFER(note_first, "d");
    use_stack(8000, panic_at_once, arg);
    note('!');
}

static CC_NOINLINE int descend(int depth) {
    CC_DEFER(note_first, &"123456789"[depth]);
    if (depth == 8) deep_panic("deep");
    return depth < 100 ? descend(depth + 1) + 1 : 0;
}

static void descend_nine(void *arg) {
    *(int *)arg = descend(0);
}

static void from_the_deep(void) {
    CCPanic why;
    int reached = -1;
    log_clear();
    CHECK_EQ(cc_try(descend_nine, &reached, &why), ENOTRECOVERABLE);
    CHECK_TEXT(why.message, "at deep");
    CHECK_LOG("d987654321");
    CHECK_EQ(reached, -1);
}

/* A value that says which panic was stopped. */
struct stop {
    CCPanic why;
    bool stopped;
};

static void stop_it(void *arg) {
    struct stop *stop = arg;
    stop->stopped = cc_recover(&stop->why);
    note(stop->stopped ? 'S' : 's');
}

static void panic_and_stop(void *arg) {
    CC_DEFER(note_first, "a");
    CC_DEFER(stop_it, arg);
    CC_DEFER(note_first, "b");
    panic_at_once("will");
}

static void stopped(void) {
    struct stop stop = {0};
    CCPanic why = {.generation = 12345};
    log_clear();
    CHECK_EQ(cc_try(panic_and_stop, &stop, &why), 0);
    CHECK_LOG("bSa");
    CHECK(stop.stopped);
    CHECK_TEXT(stop.why.message, "at will");
    CHECK_EQ(why.generation, 12345);
}

static void stop_twice(void *arg) {
    (void)arg;
    CC_DEFER(stop_it, &(struct stop){.stopped = false});
    CC_DEFER(stop_it, &(struct stop){.stopped = false});
    cc_panic("once is enough");
}

static void stop_without_panic(void *arg) {
    CC_DEFER(stop_it, arg);
}

static void nothing_to_stop(void) {
    struct stop stop = {.stopped = true, .why.generation = 9};
    CHECK(!cc_recover(NULL));
    log_clear();
    CHECK_EQ(cc_try(stop_without_panic, &stop, NULL), 0);
    CHECK(!stop.stopped);
    CHECK_EQ(stop.why.generation, 9);
    CHECK_EQ(cc_try(stop_twice, NULL, NULL), 0);
    CHECK_LOG("sSs");
}

static void panic_anew(void *arg) {
    note('p');
    cc_panic("new %s", (const char *)arg);
}

static void panic_in_a_defer(void *arg) {
    (void)arg;
    CC_DEFER(note_first, "a");
    CC_DEFER(panic_anew, "one");
    CC_DEFER(note_first, "b");
    cc_panic("old one");
}

static void panic_in_three_defers(void *arg) {
    CC_DEFER(stop_it, arg);
    CC_DEFER(panic_anew, "three");
    CC_DEFER(panic_anew, "two");
    CC_DEFER(panic_anew, "one");
    cc_panic("old one");
}

static void stop_and_panic(void *arg) {
    stop_it(arg);
    cc_panic("after the stop");
}

static void panic_after_stop(void *arg) {
    CC_DEFER(note_first, "a");
    CC_DEFER(stop_and_panic, arg);
    cc_panic("before the stop");
}

static void the_new_takes_the_place_of_the_old(void) {
    CCPanic why;
    struct stop stop = {0};
    log_clear();
    CHECK_EQ(cc_try(panic_in_a_defer, NULL, &why), ENOTRECOVERABLE);
    CHECK_TEXT(why.message, "new one");
    CHECK_LOG("bpa");
    log_clear();
    CHECK_EQ(cc_try(panic_in_three_defers, &stop, &why), 0);
    CHECK_TEXT(stop.why.message, "new three");
    CHECK_LOG("pppS");
    log_clear();
    CHECK_EQ(cc_try(panic_after_stop, &stop, &why), ENOTRECOVERABLE);
    CHECK_TEXT(why.message, "after the stop");
    CHECK_LOG("Sa");
}

static void panic_while_the_scope_ends(void *arg) {
    CHECK_EQ(cc_defer(note_first, "a"), 0);
    CHECK_EQ(cc_defer(panic_anew, arg), 0);
    CHECK_EQ(cc_defer(note_first, "b"), 0);
    note('.');
}

static void at_the_end_of_a_scope(void) {
    CCPanic why;
    log_clear();
    CHECK_EQ(cc_try(panic_while_the_scope_ends, "end", &why), ENOTRECOVERABLE);
    CHECK_TEXT(why.message, "new end");
    CHECK_LOG(".bpa");
}

static void panic_when_the_block_ends(void *arg) {
    CC_DEFER(note_first, "a");
    {
        CC_DEFER(panic_anew, arg);
        CC_DEFER(note_first, "b");
    }
    note('!');
}

static void at_the_end_of_a_block(void) {
    CCPanic why;
    log_clear();
    CHECK_EQ(cc_try(panic_when_the_block_ends, "block", &why), ENOTRECOVERABLE);
    CHECK_TEXT(why.message, "new block");
    CHECK_LOG("bpa");
}

static void try_inside(void *arg) {
    CCPanic why;
    CC_DEFER(note_first, "o");
    CHECK_EQ(cc_try(panic_at_once, "inside", &why), ENOTRECOVERABLE);
    note('-');
    if (arg != NULL) cc_panic("again: %s", why.message);
}

/* A scope in a deferred function is another scope: it neither sees nor stops the panic outside. */
static void stop_in_a_scope(void *arg) {
    (void)arg;
    CHECK(!cc_recover(NULL));
    note('n');
}

static void try_in_a_defer(void *arg) {
    (void)arg;
    CHECK_EQ(cc_try(stop_in_a_scope, NULL, NULL), 0);
    CHECK_EQ(cc_try(panic_at_once, "all", NULL), ENOTRECOVERABLE);
    note('t');
}

static void panic_over_a_try(void *arg) {
    (void)arg;
    CC_DEFER(try_in_a_defer, NULL);
    cc_panic("outside");
}

static void scopes_nest(void) {
    CCPanic why;
    log_clear();
    CHECK_EQ(cc_try(try_inside, NULL, &why), 0);
    CHECK_LOG("-o");
    CHECK_EQ(cc_try(try_inside, "again", &why), ENOTRECOVERABLE);
    CHECK_TEXT(why.message, "again: at inside");
    log_clear();
    CHECK_EQ(cc_try(panic_over_a_try, NULL, &why), ENOTRECOVERABLE);
    CHECK_TEXT(why.message, "outside");
    CHECK_LOG("nt");
}

static void defer_in_a_defer(void *arg) {
    note('1');
    CHECK_EQ(cc_defer(note_first, arg), 0);
    CC_DEFER(note_first, "3");
    note('2');
}

static void panic_with_defers_that_defer(void *arg) {
    CC_DEFER(note_first, "5");
    CC_DEFER(defer_in_a_defer, arg);
    cc_panic("x");
}

static void deferred_by_a_deferred_function(void) {
    log_clear();
    CHECK_EQ(cc_try(panic_with_defers_that_defer, "4", NULL), ENOTRECOVERABLE);
    CHECK_LOG("12345");
}

/* A panic is found below what was deferred meanwhile, in its own scope only; and not below what was deferred before. */
static void defer_two_and_look(void *arg) {
    (void)arg;
    CHECK_EQ(cc_defer(note_first, "2"), 0);
    CHECK_EQ(cc_defer(note_first, "1"), 0);
    CHECK(!cc_recover(NULL));
}

static void defer_two_and_stop(void *arg) {
    CHECK_EQ(cc_defer(note_first, "4"), 0);
    CHECK_EQ(cc_try(defer_two_and_look, NULL, NULL), 0);
    CHECK_EQ(cc_defer(note_first, "3"), 0);
    CHECK(cc_recover(arg));
    CHECK(!cc_recover(NULL));
}

static void panic_and_stop_below(void *why) {
    CHECK_EQ(cc_defer(note_first, "5"), 0);
    CHECK_EQ(cc_defer(defer_two_and_stop, why), 0);
    CHECK(!cc_recover(NULL));
    cc_panic("below");
}

static void stopped_below_deferred_functions(void) {
    CCPanic why;
    log_clear();
    CHECK_EQ(cc_try(panic_and_stop_below, &why, NULL), 0);
    CHECK_TEXT(why.message, "below");
    CHECK_LOG("12345");
}

static void long_message(void *arg) {
    (void)arg;
    cc_panic("%0400d", 7);
}

static const char *volatile no_format = NULL;

static void no_message(void *arg) {
    (void)arg;
    cc_panic(no_format, 0);
}

static void messages(void) {
    CCPanic why;
    CHECK_EQ(cc_try(long_message, NULL, &why), ENOTRECOVERABLE);
    CHECK_EQ(strlen(why.message), CC_PANIC_MESSAGE_MAX - 1);
    CHECK_EQ(cc_try(no_message, NULL, &why), ENOTRECOVERABLE);
    CHECK_TEXT(why.message, "");
}

/* What the caller keeps in registers is as it was. */
static void registers_survive(void) {
    volatile long seed = 17;
    long a = seed * 3, b = seed * 5, c = seed * 7, d = seed * 11, e = seed * 13, f = seed * 17, g = seed * 19;
    double x = (double)seed / 3, y = (double)seed / 7, z = (double)seed / 11;
    for (int i = 0; i < 100; i++) {
        int reached = -1;
        log_clear();
        CHECK_EQ(cc_try(descend_nine, &reached, NULL), ENOTRECOVERABLE);
        a++, b++, c++, d++, e++, f++, g++, x += 1, y += 1, z += 1;
    }
    CHECK(a == 17 * 3 + 100 && b == 17 * 5 + 100 && c == 17 * 7 + 100 && d == 17 * 11 + 100);
    CHECK(e == 17 * 13 + 100 && f == 17 * 17 + 100 && g == 17 * 19 + 100);
    CHECK(x > 105.66 && x < 105.67 && y > 102.42 && y < 102.43 && z > 101.54 && z < 101.55);
}

static void panics_in_scopes(void) {
    first_frame();
    from_the_deep();
    stopped();
    nothing_to_stop();
    the_new_takes_the_place_of_the_old();
    at_the_end_of_a_scope();
    at_the_end_of_a_block();
    scopes_nest();
    deferred_by_a_deferred_function();
    stopped_below_deferred_functions();
    messages();
    registers_survive();
}

TEST(scopes_in_both_contexts) {
    in_both_contexts(panics_in_scopes);
}

/* ---- a lock is given back ---- */

static void unlock(void *lock) {
    int token;
    CHECK_EQ(cc_chan_recv(lock, &token, sizeof token), 0);
}

static void *panic_in_the_lock(void *lock) {
    int token = 1;
    CHECK_EQ(cc_chan_send(lock, &token, sizeof token), 0);
    CC_DEFER(unlock, lock);
    cc_yield();
    panic_at_once("lock");
    return NULL;
}

TEST_WORKERS(locks_are_given_back) {
    CCChan *lock = cc_chan_create(sizeof(int), 1);
    CCTask tasks[20];
    for (int i = 0; i < 20; i++) tasks[i] = cc_fiber_spawn_task(panic_in_the_lock, lock);
    for (int i = 0; i < 20; i++) CHECK_EQ(cc_task_join(&tasks[i], NULL), ENOTRECOVERABLE);
    CHECK_EQ(cc_chan_len(lock), 0);
    cc_chan_free(lock);
}

/* ---- fibers ---- */

static void *panic_task(void *arg) {
    CC_DEFER(note_first, "a");
    CHECK_EQ(cc_defer(note_first, "b"), 0);
    panic_at_once(arg);
    return arg;
}

static void *panic_named(void *arg) {
    CHECK_EQ(cc_fiber_set_name("unlucky"), 0);
    return panic_task(arg);
}

/* The fiber ends, the rest goes on; the join returns the error, with its message. */
TEST_WORKERS(ends_the_fiber_only) {
    struct capture capture;
    CCPanic why;
    void *result = &why;
    log_clear();
    capture_start(&capture);
    CCTask task = cc_fiber_spawn_task(panic_named, "work");
    CCFiberId id = task.id;
    int rc = cc_task_join(&task, &result);
    const char *said = capture_end(&capture);
    char *stall = strstr(capture.text, "ccc: stall:"); /* on a very busy machine that comes behind it */
    if (stall != NULL) *stall = '\0';
    CHECK_EQ(rc, ENOTRECOVERABLE);
    CHECK_EQ(task.id, 0);
    CHECK(result == NULL);
    CHECK_LOG("ba");
    CHECK_EQ(cc_panic_find(id, &why), 0);
    CHECK_TEXT(why.message, "at work");
    CHECK_TEXT(why.name, "unlucky");
    CHECK(why.fiber == id);
    CHECK(contains(said, "ccc: panic in fiber "));
    CHECK(contains(said, "'unlucky': at work\nccc:   0x"));
    CHECK(!contains(said, "cc__")); /* the library's frames below the task are left out */
    CHECK_EQ(cc_run(panic_task, "run", NULL), ENOTRECOVERABLE);
    CHECK_EQ(cc_panic_find(0, &why), EINVAL);
    CHECK_EQ(cc_panic_find(id, NULL), EINVAL);
    CHECK_EQ(cc_panic_find(id + 1000, &why), ESRCH);
    CHECK_EQ(cc_runtime_shutdown(10000), 0);
}

/* Nobody joins: the panic is reported nevertheless, and the program continues. */
TEST_WORKERS(nobody_joins) {
    struct capture capture;
    capture_start(&capture);
    CHECK_EQ(cc_spawn(NULL, panic_task, "loss", NULL), 0);
    CHECK_EQ(cc_runtime_shutdown(10000), 0);
    const char *said = capture_end(&capture);
    CHECK(contains(said, ": at loss\n"));
}

static void *stop_at_the_top(void *arg) {
    CHECK_EQ(cc_defer(stop_it, arg), 0);
    panic_at_once("top");
    return arg;
}

/* A recover in the fiber's own scope ends the fiber normally, without a result and without a message. */
TEST_WORKERS(stopped_at_the_top) {
    struct capture capture;
    struct stop stop = {0};
    void *result = &stop;
    log_clear();
    capture_start(&capture);
    int rc = cc_run(stop_at_the_top, &stop, &result);
    const char *said = capture_end(&capture);
    CHECK_EQ(rc, 0);
    CHECK(result == NULL);
    CHECK_TEXT(stop.why.message, "at top");
    CHECK_EQ(said[0], '\0');
}

static void *end_badly(void *arg) {
    CHECK_EQ(cc_defer(note_first, "a"), 0);
    CHECK_EQ(cc_defer(panic_anew, "end"), 0);
    CHECK_EQ(cc_defer(note_first, "b"), 0);
    return arg;
}

static void *end_badly_and_stop(void *arg) {
    CHECK_EQ(cc_defer(stop_it, arg), 0);
    return end_badly(arg);
}

static void *end_worse(void *arg) {
    CHECK_EQ(cc_defer(panic_anew, "third"), 0);
    CHECK_EQ(cc_defer(panic_anew, "second"), 0);
    cc_panic("first");
    return arg;
}

TEST_WORKERS(panic_after_the_return) {
    struct stop stop = {0};
    void *result = &stop;
    log_clear();
    CHECK_EQ(cc_run(end_badly, &stop, &result), ENOTRECOVERABLE);
    CHECK(result == NULL);
    CHECK_LOG("bpa");
    log_clear();
    result = &stop;
    CHECK_EQ(cc_run(end_badly_and_stop, &stop, &result), 0);
    CHECK(result == NULL);
    CHECK_TEXT(stop.why.message, "new end");
    CHECK_LOG("bpaS");
    log_clear();
    CHECK_EQ(cc_run(end_worse, NULL, NULL), ENOTRECOVERABLE);
    CHECK_LOG("pp");
}

static void wait_in_a_defer(void *arg) {
    cc_yield();
    CHECK_EQ(cc_sleep_ms(2), 0);
    CHECK_EQ(cc_run(end_badly_and_stop, arg, NULL), 0);
    note('w');
}

static void *panic_and_wait(void *arg) {
    CC_DEFER(wait_in_a_defer, arg);
    cc_panic("slow");
    return arg;
}

TEST_WORKERS(a_panic_may_wait) {
    struct stop stop;
    log_clear();
    CHECK_EQ(cc_run(panic_and_wait, &stop, NULL), ENOTRECOVERABLE);
    CHECK_LOG("bpaSw");
}

/* ---- every way to join ---- */

static void *panic_later(void *arg) {
    CHECK_EQ(cc_sleep_ms(3), 0);
    panic_at_once(arg);
    return arg;
}

static void join_in_every_way(void) {
    CCTask tasks[4], copy;
    for (int i = 0; i < 4; i++) tasks[i] = cc_fiber_spawn_task(panic_later, "late");
    CHECK_EQ(cc_task_dup(&tasks[0], &copy), 0);
    CHECK_EQ(cc_task_join(&tasks[0], NULL), ENOTRECOVERABLE);
    CHECK_EQ(cc_task_join(&copy, NULL), ENOTRECOVERABLE);
    CHECK_EQ(cc_task_join_until(&tasks[1], NULL, cc_after_ms(20000)), ENOTRECOVERABLE);
    int rc;
    while ((rc = cc_task_join_try(&tasks[2], NULL)) == EAGAIN) cc_yield();
    CHECK_EQ(rc, ENOTRECOVERABLE);
    CHECK(cc_block_on(tasks[3]) == NULL);
    CCTask last = cc_fiber_spawn_task(panic_later, "select");
    CCCase arm = CC_JOIN(&last, NULL, NULL);
    size_t chosen;
    CHECK_EQ(cc_select(&arm, 1, CC_FOREVER, &chosen), 0);
    CHECK_EQ(arm.error, ENOTRECOVERABLE);
}

TEST_WORKERS(every_way_to_join) {
    in_both_contexts(join_in_every_way);
}

/* ---- the end of the program ---- */

static void never(void *arg) {
    (void)arg;
    fputs("deferred function ran\n", stderr);
    _Exit(0);
}

TEST_DIES(on_a_bare_thread, "ccc: fatal: panic on an OS thread, outside of cc_try: at main", .signal = SIGABRT) {
    CC_DEFER(never, NULL);
    panic_at_once("main");
}

static void *be_fatal(void *arg) {
    CC_DEFER(never, NULL);
    CHECK_EQ(cc_defer(never, NULL), 0);
    cc_panic_fatal("no %s", (const char *)arg);
    return arg;
}

static void be_fatal_in_scope(void *arg) {
    be_fatal(arg);
}

static void be_fatal_in_try(void) {
    (void)cc_try(be_fatal_in_scope, "way", NULL);
}

TEST_DIES(fatal_runs_nothing, "ccc: fatal: panic in fiber ", .signal = SIGABRT) {
    (void)cc_run(be_fatal, "way", NULL);
}

/* The report is made on the stack of the fiber, which may be small. */
#ifdef CC_BACKTRACE
#define NAME_OF_BE_FATAL "be_fatal (panic.c:"
#else
#define NAME_OF_BE_FATAL "panic+0x" /* this program */
#endif
TEST_DIES(reports_on_the_smallest_stack, NAME_OF_BE_FATAL, .signal = SIGABRT) {
#if defined(CC_ASAN) || defined(CC_TSAN)
    SKIP("a sanitizer's frames are larger");
#endif
#ifdef CC_ARCH_UCONTEXT
    SKIP("a ucontext_t uses a kilobyte of it, and the report needs all of it");
#endif
    CCRuntimeConfig config = {.stack_size = CC_STACK_SIZE_MIN};
    CHECK_EQ(cc_runtime_init(&config), 0);
    (void)cc_run(be_fatal, "way", NULL);
}

TEST_DIES(fatal_on_a_thread, "ccc: fatal: panic on an OS thread: no way", .signal = SIGABRT) {
    be_fatal_in_try();
}

TEST_DIES(abort_if_wanted, "not recovered (CC_PANIC_ABORT): at wish", .signal = SIGABRT) {
    CHECK_EQ(setenv("CC_PANIC_ABORT", "1", 1), 0);
    (void)cc_run(panic_task, "wish", NULL);
}

/* Stopped panics do not count. */
TEST(abort_only_if_not_recovered) {
    struct stop stop = {0};
    CHECK_EQ(setenv("CC_PANIC_ABORT", "1", 1), 0);
    log_clear();
    CHECK_EQ(cc_run(stop_at_the_top, &stop, NULL), 0);
    in_both_contexts(stopped);
    in_both_contexts(first_frame);
}

static void panic_for_ever(void *arg) {
    CHECK_EQ(cc_defer(panic_for_ever, arg), 0);
    cc_panic("and another one");
}

TEST_DIES(without_end, "deferred functions panic without end: and another one", .signal = SIGABRT) {
    (void)cc_try(panic_for_ever, NULL, NULL);
}

/* ---- many in one fiber: nothing of the calls that they leave stays behind, in a sanitizer's memory either ---- */

static CC_NOINLINE void panic_below(int depth) {
    static volatile bool always = true;
    if (depth > 0) panic_below(depth - 1);
    if (always) cc_panic("from below");
}

static void panic_from_below(void *depth) {
    panic_below(*(int *)depth);
}

static void *panic_often(void *unused) {
    int depth = 40;
    for (int i = 0; i < 4000; i++) CHECK_EQ(cc_try(panic_from_below, &depth, NULL), ENOTRECOVERABLE);
    return unused;
}

TEST(many_in_one_fiber) {
    CHECK_EQ(cc_run(panic_often, NULL, NULL), 0);
}
