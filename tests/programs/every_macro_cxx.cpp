/* every_macro_cxx.cpp - tests/macros/every_macro.h, as C++; and blocks that an exception leaves. */
extern "C" {
#include "harness.h"
}

#include "../macros/every_macro.h"

static void must(bool holds, int line) {
    if (!holds) test_fail("tests/macros/every_macro.h", line, "not so");
}

TEST_WORKERS(every_macro) {
    void *result;
    CHECK_EQ(cc_run(all_macros, &result, &result), 0);
    CHECK(result == &result);
}

static int cancelled_children;

CC_TASK(note_cancel, { int unused; }) {
    if (cc_sleep_until(CC_FOREVER) == ECANCELED) __atomic_add_fetch(&cancelled_children, 1, __ATOMIC_RELAXED);
    return NULL;
}

CC_ASYNC(int, wait_cancelled) {
    if (cc_sleep_until(CC_FOREVER) == ECANCELED) __atomic_add_fetch(&cancelled_children, 1, __ATOMIC_RELAXED);
    return 0;
}

/* An exception that leaves the block of a future cancels its task and waits for it. */
static void *throws_past_a_future(void *arg) {
    cancelled_children = 0;
    for (int i = 0; i < 10; i++) {
        try {
            CC_FUTURE(wait_cancelled, f);
            MUST(CC_START(&f, wait_cancelled) == 0);
            if (i % 2 != 0) cc_yield();
            throw i;
        } catch (int thrown) {
            MUST(thrown == i);
        }
        MUST(__atomic_load_n(&cancelled_children, __ATOMIC_RELAXED) == i + 1);
    }
    return arg;
}

TEST_WORKERS(throws_past_a_future) {
    CHECK_EQ(cc_run(throws_past_a_future, NULL, NULL), 0);
    (void)throws_past_a_future(NULL);
}

/* Without the cancellation the blocks would wait for ever. */
static void *throws_out_of_blocks(void *arg) {
    int one = 1, rc = -1;
    deferred_calls = 0;
    for (int i = 0; i < 10; i++) {
        try {
            CC_DEFER(count_call, &one);
            CC_NURSERY(outer, .result = &rc) {
                MUST(CC_GO_IN(outer, note_cancel) == 0);
                CC_WITH_DEADLINE(CC_FOREVER) CC_SHIELD CC_NURSERY(inner) {
                    MUST(CC_GO_IN(inner, note_cancel) == 0);
                    throw i;
                }
            }
        } catch (int thrown) {
            MUST(thrown == i);
            MUST(cancelled_children == 2 * (i + 1));
            MUST(!cc_cancelled() && cc_sleep_ms(1) == 0);
        }
    }
    MUST(deferred_calls == 10);
    return arg;
}

TEST_WORKERS(exceptions_leave_blocks) {
    void *result;
    CHECK_EQ(cc_run(throws_out_of_blocks, &result, &result), 0);
    CHECK(result == &result);
}

TEST_WORKERS(exceptions_leave_blocks_of_a_thread) {
    throws_out_of_blocks(NULL);
}
