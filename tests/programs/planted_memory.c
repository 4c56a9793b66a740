/* planted_memory.c - the address sanitizer knows fibers' stacks: errors there are reported, and memory that a
 * parked fiber refers to is not a leak.
 *
 * The harness enables the check for a use after return.
 */
#include "child.h"
#include "where.h"

#include "sched/sched.h"

#include <ccc/ccc.h>

#include <stdatomic.h>

#if UNDER_ASAN

#include <sanitizer/lsan_interface.h>

static volatile int sink, one = 1;
static char *volatile kept;

/* So that the fiber has run on other workers before the error. */
static void migrate(void) {
    for (int i = 0; i < 10; i++) cc_yield();
    CHECK_EQ(cc_sleep_ms(1), 0);
}

static void *overflow_a_buffer(void *arg) {
    char buffer[32];
    migrate();
    memset(buffer, 0, sizeof buffer);
    kept = buffer;         /* the pointer knows no bounds, or the other sanitizer would be first */
    sink = kept[31 + one]; /* one past the end */
    return arg;
}

static void *underflow_a_buffer(void *arg) {
    char buffer[32];
    migrate();
    memset(buffer, 0, sizeof buffer);
    kept = buffer;
    sink = kept[-one];
    return arg;
}

__attribute__((noinline)) static void keep_a_local(void) {
    char local[64];
    memset(local, one, sizeof local);
    kept = local;
}

static void *use_after_return(void *arg) {
    migrate();
    keep_a_local();
    migrate();
    sink = kept[5];
    return arg;
}

static void *use_after_scope(void *arg) {
    char *volatile inner;
    migrate();
    {
        char local[64];
        memset(local, one, sizeof local);
        inner = local;
    }
    sink = inner[7];
    return arg;
}

static void *use_after_free(void *arg) {
    kept = malloc(100);
    migrate();
    free(kept);
    migrate();
    sink = kept[3];
    return arg;
}

/* The frame of another fiber, which has returned from it. */
static CCEvent looked;
static struct fiber *_Atomic leaver;

static void *leave_a_frame(void *arg) {
    migrate();
    keep_a_local();
    atomic_store(&leaver, cc__sched_current(cc__worker()));
    CHECK_EQ(cc_event_wait(&looked), 0); /* its stack, and what the sanitizer knows of it, is there until then */
    return arg;
}

/* No other worker may switch now: a report during another worker's switch would crash. */
static bool rests(struct fiber *f) {
    return f != NULL && cc__word_state(cc__get(&f->word)) == FIBER_PARKED;
}

static void *use_anothers_frame(void *arg) {
    CCTask task;
    CHECK_EQ(cc_spawn(&task, leave_a_frame, NULL, NULL), 0);
    while (!rests(atomic_load(&leaver))) cc_yield();
    sink = kept[5];
    CHECK_EQ(cc_event_set(&looked), 0);
    CHECK_EQ(cc_task_join(&task, NULL), 0);
    return arg;
}

struct planted {
    CCTaskFn fn;
    unsigned workers;
};

static void run_planted(void *arg) {
    struct planted *p = arg;
    CCRuntimeConfig config = {.workers = p->workers};
    CHECK_EQ(cc_runtime_init(&config), 0);
    CHECK_EQ(cc_run(p->fn, NULL, NULL), 0);
    CHECK_EQ(cc_runtime_shutdown(10000), 0);
}

static void check_reported(CCTaskFn fn, const char *text) {
    for (unsigned workers = 1; workers <= 4; workers *= 2) {
        struct planted p = {fn, workers};
        struct child child;
        run_child(&child, run_planted, &p);
        show_child(&child);
        CHECK(said(&child, "AddressSanitizer"));
        CHECK(said(&child, text));
        CHECK(child.status != 0);
    }
}

TEST(a_stack_buffer_overflow) {
    check_reported(overflow_a_buffer, "stack-buffer-overflow");
}

TEST(a_stack_buffer_underflow) {
    check_reported(underflow_a_buffer, "stack-buffer-underflow");
}

TEST(a_use_after_return) {
    check_reported(use_after_return, "stack-use-after-return");
}

TEST(a_use_after_scope) {
    check_reported(use_after_scope, "stack-use-after-scope");
}

TEST(a_use_after_free) {
    check_reported(use_after_free, "heap-use-after-free");
}

TEST(a_use_of_anothers_frame) {
    check_reported(use_anothers_frame, "stack-use-after-return");
}

/* ---- leaks ---- */

static atomic_int parked;
static atomic_bool let_go;

__attribute__((noinline)) static char *make_block(void) {
    char *block = malloc(12345);
    CHECK(block != NULL);
    memset(block, one, 12345);
    return block;
}

__attribute__((noinline)) static void lose_block(void) {
    char *block = make_block();
    __asm__ volatile("" : "+r"(block));
}

/* Overwrites what calls have left below the caller's frame. */
__attribute__((noinline)) static void wipe(void) {
    volatile char *old =
        __builtin_alloca(16384); /* an array would not be on the stack: a use after return is looked for */
    for (int i = 0; i < 16384; i++) old[i] = 0;
    sink = old[one];
}

/* Holds a block by nothing but a local variable while it waits; or has lost it, for comparison. */
static void *hold(void *arg) {
    bool lost = *(bool *)arg;
    char *block = NULL;
    if (lost) {
        lose_block();
        wipe();
    } else {
        block = make_block();
    }
    __asm__ volatile("" : "+r"(block));
    atomic_fetch_add(&parked, 1);
    while (!atomic_load(&let_go)) CHECK_EQ(cc_sleep_ms(1), 0);
    __asm__ volatile("" : "+r"(block));
    free(block);
    return NULL;
}

enum { HOLDERS = 10 };

static void hold_and_look(void *arg) {
    CCRuntimeConfig config = {.workers = 2};
    CHECK_EQ(cc_runtime_init(&config), 0);
    CCTask tasks[HOLDERS];
    for (int i = 0; i < HOLDERS; i++) CHECK_EQ(cc_spawn(&tasks[i], hold, arg, NULL), 0);
    while (atomic_load(&parked) < HOLDERS) CHECK_EQ(cc_sleep_ms(1), 0);
    int leaks = __lsan_do_recoverable_leak_check();
    fprintf(stderr, "leaks: %s\n", leaks != 0 ? "yes" : "no");
    atomic_store(&let_go, true);
    for (int i = 0; i < HOLDERS; i++) CHECK_EQ(cc_task_join(&tasks[i], NULL), 0);
    CHECK_EQ(cc_runtime_shutdown(10000), 0);
    _exit(0);
}

TEST(what_a_parked_fiber_holds_is_no_leak) {
    struct child child;
    run_child(&child, hold_and_look, &(bool){false});
    show_child(&child);
    CHECK(said(&child, "leaks: no"));
    CHECK_EQ(child.status, 0);
}

TEST(what_a_parked_fiber_lost_is_a_leak) {
    struct child child;
    run_child(&child, hold_and_look, &(bool){true});
    show_child(&child);
    CHECK(said(&child, "leaks: yes"));
    CHECK(said(&child, "planted_memory.c"));
}

/* After the end of a fiber what it did not free is one, too. */
static void *lose(void *arg) {
    char *block = malloc(54321);
    CHECK(block != NULL);
    memset(block, one, 54321);
    __asm__ volatile("" : : "r"(block) : "memory");
    return arg;
}

static void lose_and_end(void *arg) {
    (void)arg;
    CHECK_EQ(cc_run(lose, NULL, NULL), 0);
    CHECK_EQ(cc_runtime_shutdown(10000), 0);
}

TEST(what_an_ended_fiber_held_is_a_leak) {
    struct child child;
    run_child(&child, lose_and_end, NULL);
    show_child(&child);
    CHECK(said(&child, "LeakSanitizer"));
    CHECK(child.status != 0);
}

#else

TEST(planted_memory_errors) {
    SKIP("the address sanitizer is not built in");
}

#endif
