/* block.c - CC_NURSERY: whichever way the block is left, its fibers have ended. */
#include "scene.h"

#include <setjmp.h>

static atomic_int ended;

static void *end_late(void *arg) {
    for (int i = 0; i < 5; i++) cc_yield();
    return count_up(arg);
}

static void spawn_some(CCNursery *n, int count) {
    for (int i = 0; i < count; i++) CHECK_EQ(cc_nursery_spawn(n, end_late, &ended), 0);
}

static void leave_by_end(void) {
    CC_NURSERY(n) spawn_some(n, 3);
}

static void leave_by_break(void) {
    CC_NURSERY(n) {
        spawn_some(n, 3);
        if (n != NULL) break;
        CHECK(false);
    }
}

static void leave_by_continue(void) {
    CC_NURSERY(n) {
        spawn_some(n, 3);
        if (n != NULL) continue;
        CHECK(false);
    }
}

static void leave_by_return(void) {
    CC_NURSERY(n) {
        spawn_some(n, 3);
        return;
    }
    CHECK(false);
}

static void leave_by_goto(void) {
    CC_NURSERY(n) {
        spawn_some(n, 3);
        goto out;
    }
    CHECK(false);
out:
    CHECK_EQ(ended, 3);
}

static void every_way(void) {
    void (*ways[])(void) = {leave_by_end, leave_by_break, leave_by_continue, leave_by_return, leave_by_goto};
    for (size_t i = 0; i < array_len(ways); i++) {
        struct scope *before = cc__scope_current();
        ended = 0;
        ways[i]();
        CHECK_EQ(ended, 3);
        CHECK(cc__scope_current() == before);
    }
}

TEST_WORKERS(every_way_out) {
    every_way(); /* on an OS thread */
    in_fiber(every_way);
}

/* ---- nested ---- */

static void nest(void) {
    ended = 0;
    CC_NURSERY(outer) {
        struct scope *around = cc__scope_current();
        CC_NURSERY(inner) {
            CHECK(cc__scope_current() == &inner->scope || !cc_in_fiber());
            CHECK(inner->scope.parent == around);
            spawn_some(inner, 3);
            CC_NURSERY(innermost) spawn_some(innermost, 2);
            CHECK(ended >= 2);
        }
        CHECK_EQ(ended, 5);
        CHECK(cc__scope_current() == around);
        spawn_some(outer, 3);
        CC_NURSERY(a) CC_NURSERY(b) CC_NURSERY(c) spawn_some(c, 1);
        CHECK(ended >= 6);
    }
    CHECK_EQ(ended, 9);
}

TEST_WORKERS(nested_blocks) {
    nest();
    in_fiber(nest);
}

static void nest_to(int depth) {
    if (depth == 0) return;
    CC_NURSERY(n) {
        CHECK_EQ(cc_nursery_spawn(n, count_up, &ended), 0);
        nest_to(depth - 1);
    }
}

static void *child_nests(void *depth) {
    if ((uintptr_t)depth == 0) return NULL;
    int rc;
    CC_NURSERY(n, .result = &rc) {
        CHECK_EQ(cc_nursery_spawn(n, count_up, &ended), 0);
        CHECK_EQ(cc_nursery_spawn(n, child_nests, (void *)((uintptr_t)depth - 1)), 0);
    }
    CHECK_EQ(rc, 0);
    return NULL;
}

static void a_hundred_deep(void) {
    ended = 0;
    nest_to(100);
    CHECK_EQ(ended, 100);
    child_nests((void *)100);
    CHECK_EQ(ended, 200);
}

TEST_WORKERS(a_hundred_levels) {
    in_fiber(a_hundred_deep);
}

/* ---- what the block tells ---- */

static void tell(void) {
    int rc = -1;
    CC_NURSERY(n, .result = &rc) CHECK_EQ(cc_nursery_spawn(n, nothing, NULL), 0);
    CHECK_EQ(rc, 0);
    CC_NURSERY(n, .result = &rc, .name = "failing") {
        CHECK_EQ(strcmp(n->name, "failing"), 0);
        CHECK_EQ(cc_nursery_spawn(n, fail_with, CC_ERROR(EIO)), 0);
    }
    CHECK_EQ(rc, EIO);
    CC_NURSERY(n, .result = &rc) CHECK_EQ(cc_nursery_cancel_with(n, EXDEV, "why"), 0);
    CHECK_EQ(rc, EXDEV);
    bool entered = false; /* invalid settings */
    CC_NURSERY(n, .mode = 64, .result = &rc) entered = n != NULL;
    CHECK(!entered);
    CHECK_EQ(rc, EINVAL);
}

TEST_WORKERS(result) {
    tell();
    in_fiber(tell);
}

/* In a fiber the block itself belongs to the scope: a child that fails ends its waits. */
static void in_the_scope(void) {
    int rc;
    CC_NURSERY(n, .result = &rc) {
        CHECK_EQ(cc_nursery_spawn(n, fail_with, CC_ERROR(EIO)), 0);
        CHECK_EQ(cc_sleep_until(CC_FOREVER), ECANCELED);
        CCError why;
        CHECK_EQ(cc_cancel_reason(&why), 0);
        CHECK_EQ(why.code, EIO);
    }
    CHECK_EQ(rc, EIO);
    CHECK(!cc_cancelled());
    CHECK_EQ(cc_sleep_ms(1), 0); /* and afterwards it is as it was */
}

TEST_WORKERS(the_block_is_in_the_scope) {
    in_fiber(in_the_scope);
}

CC_TASK(add, {
    atomic_int *to;
    int what;
    char padding[100];
}) {
    atomic_fetch_add(self->to, self->what + self->padding[99]);
    return NULL;
}

CC_TASK(add_small, {
    atomic_int *to;
    int what;
}) {
    atomic_fetch_add(self->to, self->what);
    return NULL;
}

static void go_in(void) {
    atomic_int sum = 0;
    CC_NURSERY(n) {
        for (int i = 1; i <= 100; i++) {
            CHECK_EQ(CC_GO_IN(n, add, .to = &sum, .what = i, .padding[99] = 1), 0);
            CHECK_EQ(CC_GO_IN(n, add_small, .to = &sum, .what = i), 0);
        }
    }
    CHECK_EQ(sum, 10200);
}

TEST_WORKERS(with_arguments) {
    go_in();
    in_fiber(go_in);
}

/* ---- misuse that is reported ---- */

static jmp_buf out;

static void *jump_out(void *arg) {
    (void)arg;
    if (setjmp(out) == 0) CC_NURSERY(n) longjmp(out, 1);
    return NULL;
}

TEST_DIES(jumped_out_of_a_block, "has ended inside a CC_NURSERY or CC_WITH_DEADLINE block", .signal = SIGABRT) {
    (void)cc_run(jump_out, NULL, NULL);
}

TEST_DIES(a_child_jumps_out, "has ended inside a CC_NURSERY or CC_WITH_DEADLINE block", .signal = SIGABRT) {
    CC_NURSERY(n) CHECK_EQ(cc_nursery_spawn(n, jump_out, NULL), 0);
}

static void *jump_out_of_deadline(void *arg) {
    (void)arg;
    if (setjmp(out) == 0) CC_WITH_DEADLINE(cc_after_ms(1000)) longjmp(out, 1);
    return NULL;
}

TEST_DIES(jumped_out_of_a_deadline, "has ended inside", .signal = SIGABRT) {
    (void)cc_run(jump_out_of_deadline, NULL, NULL);
}

static void *jump_between(void *arg) {
    (void)arg;
    CC_NURSERY(outer) {
        if (setjmp(out) == 0) CC_NURSERY(inner) longjmp(out, 1);
    }
    return NULL;
}

TEST_DIES(jumped_from_block_to_block, "blocks end in the reverse order", .signal = SIGABRT) {
    (void)cc_run(jump_between, NULL, NULL);
}

static void *jump_from_deadline(void *arg) {
    (void)arg;
    CC_WITH_DEADLINE(CC_FOREVER) {
        if (setjmp(out) == 0) CC_NURSERY(inner) longjmp(out, 1);
    }
    return NULL;
}

TEST_DIES(jumped_from_block_to_deadline, "blocks end in the reverse", .signal = SIGABRT) {
    (void)cc_run(jump_from_deadline, NULL, NULL);
}

TEST_DIES(invalid_settings, "invalid settings", .signal = SIGABRT) {
    CC_NURSERY(n, .mode = 64) CHECK(n == NULL);
}

TEST_DIES(freed_before_what_is_below, "SCOPE-4", .signal = SIGABRT) {
    CCNursery *above = new_nursery(NULL);
    CHECK(cc_nursery_create(above) != NULL);
    (void)cc_nursery_free(above);
}

TEST_DIES(freed_inside_its_block, "which frees it when it is left", .signal = SIGABRT) {
    CC_NURSERY(n)(void) cc_nursery_free(n);
}
