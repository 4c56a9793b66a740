/* pass_on.c - a failure in a CC_NURSERY without .result fails the nursery around it, or the caller panics. */
#include "scene.h"

#include "../capture.h"

#include <stdlib.h>

static void *fail_named(void *arg) {
    (void)arg;
    CHECK_EQ(cc_fiber_set_name("reader"), 0);
    return cc_fail(EIO, "cannot read %s", "a file");
}

static void fail_nested(void) {
    CC_NURSERY(inner) CHECK_EQ(cc_nursery_spawn(inner, fail_named, NULL), 0);
}

static void check_failure(CCNursery *n) {
    CCError error;
    CHECK_EQ(cc_nursery_failures(n), 1);
    CHECK_EQ(cc_nursery_failure(n, 0, &error), 0);
    CHECK_EQ(error.code, EIO);
    CHECK(error.who != 0);
    CHECK_EQ(strcmp(error.name, "reader"), 0);
    CHECK_EQ(strcmp(error.text, "cannot read a file"), 0);
}

/* ---- to the nursery around it ---- */

static void to_the_outer_block(void) {
    int rc = -1;
    CC_NURSERY(outer, .result = &rc) {
        fail_nested();
        check_failure(outer);
        CHECK(cc_cancelled());
        CHECK_EQ(cc_sleep_until(CC_FOREVER), ECANCELED);
    }
    CHECK_EQ(rc, EIO);
    CHECK(!cc_cancelled());
}

static void through_several(void) {
    int rc = -1;
    CC_NURSERY(outer, .result = &rc) {
        CC_NURSERY(a) CC_WITH_DEADLINE(CC_FOREVER) CC_NURSERY(b) fail_nested();
        check_failure(outer);
    }
    CHECK_EQ(rc, EIO);
}

static void out_of_a_root(void) {
    int rc = -1;
    CC_NURSERY(outer, .result = &rc) {
        CC_NURSERY(inner, .root = true) CHECK_EQ(cc_nursery_spawn(inner, fail_named, NULL), 0);
        check_failure(outer);
    }
    CHECK_EQ(rc, EIO);
}

static void only_recorded(void) {
    int rc = -1;
    CC_NURSERY(outer, .result = &rc, .mode = CC_NURSERY_KEEP_GOING) {
        fail_nested();
        check_failure(outer);
        CHECK(!cc_cancelled());
    }
    CHECK_EQ(rc, EIO);
}

TEST_WORKERS(the_outer_block_fails) {
    in_fiber(to_the_outer_block);
    in_fiber(through_several);
    in_fiber(out_of_a_root);
    in_fiber(only_recorded);
}

/* A child fails once, whatever it returns after that. */
static void *nest_and_return(void *result) {
    fail_nested();
    fail_nested();
    return result;
}

static void of_a_child(void) {
    static atomic_int cancelled;
    for (int i = 0; i < 2; i++) {
        CCNursery *n = new_nursery(NULL);
        CHECK_EQ(cc_nursery_spawn(n, wait_for_cancel, &cancelled), 0);
        CHECK_EQ(cc_nursery_spawn(n, nest_and_return, i == 0 ? NULL : CC_ERROR(EPERM)), 0);
        CHECK_EQ(cc_nursery_wait(n), EIO);
        check_failure(n);
        CHECK_EQ(cc_nursery_free(n), 0);
    }
}

TEST_WORKERS(the_nursery_of_a_child_fails) {
    of_a_child();
    in_fiber(of_a_child);
}

static void by_parent(void) {
    CCNursery *n = new_nursery(NULL);
    CC_NURSERY(inner, .parent = n) CHECK_EQ(cc_nursery_spawn(inner, fail_named, NULL), 0);
    CHECK_EQ(cc_nursery_wait(n), EIO);
    check_failure(n);
    CHECK_EQ(cc_nursery_free(n), 0);
}

TEST_WORKERS(the_parent_that_was_given_fails) {
    by_parent(); /* on an OS thread */
    in_fiber(by_parent);
}

/* ---- what is a failure ---- */

static void own_deadline(void) {
    int rc = -1;
    CC_NURSERY(outer, .result = &rc) {
        CC_NURSERY(inner, .deadline = cc_after_ms(1)) CHECK_EQ(cc_sleep_until(CC_FOREVER), ECANCELED);
        CHECK_EQ(cc_nursery_failures(outer), 1);
        CHECK(cc_cancelled());
    }
    CHECK_EQ(rc, ETIMEDOUT);
}

static void own_reason(void) {
    int rc = -1;
    CC_NURSERY(outer, .result = &rc) {
        CC_NURSERY(inner) CHECK_EQ(cc_nursery_cancel_with(inner, ENOSPC, "full"), 0);
        CCError error;
        CHECK_EQ(cc_nursery_failure(outer, 0, &error), 0);
        CHECK_EQ(strcmp(error.text, "full"), 0);
    }
    CHECK_EQ(rc, ENOSPC);
}

/* Being cancelled is no failure, nor is one that the outer nursery already has. */
static void no_failure(void) {
    int rc = -1, inner_rc = -1;
    static atomic_int cancelled;
    CC_NURSERY(outer, .result = &rc) {
        CC_NURSERY(inner) {
            CHECK_EQ(cc_nursery_spawn(inner, wait_for_cancel, &cancelled), 0);
            CHECK_EQ(cc_nursery_cancel(inner), 0);
        }
        CHECK(!cc_cancelled());
        CC_NURSERY(inner, .result = &inner_rc) CHECK_EQ(cc_nursery_spawn(inner, fail_named, NULL), 0);
        CHECK_EQ(inner_rc, EIO); /* returned here, and not passed on */
        CHECK(!cc_cancelled());
        CC_NURSERY(inner) {
            CHECK_EQ(cc_nursery_spawn(inner, wait_for_cancel, &cancelled), 0);
            CHECK_EQ(cc_nursery_cancel_with(outer, ENOSPC, "full"), 0);
        }
        CHECK_EQ(cc_nursery_failures(outer), 0);
    }
    CHECK_EQ(rc, ENOSPC);
    CHECK_EQ(cancelled, 2);
    cancelled = 0;
}

TEST_WORKERS(what_is_a_failure) {
    in_fiber(own_deadline);
    in_fiber(own_reason);
    in_fiber(no_failure);
}

/* ---- nobody is around ---- */

static void *top(void *arg) {
    (void)arg;
    fail_nested();
    CHECK(!"reached");
    return NULL;
}

static void try_top(void *arg) {
    (void)top(arg);
}

static const char said[] = "CC_NURSERY has failed, without .result and without a nursery around it: "
                           "EIO (5) in 'reader': cannot read a file";

static void caught(void) {
    CCPanic why;
    CHECK_EQ(cc_try(try_top, NULL, &why), ENOTRECOVERABLE);
    CHECK_EQ(strcmp(why.message, said), 0);
    CHECK_EQ(cc_sleep_ms(0), 0);
}

static void uncaught(void) {
    CCTask task;
    CHECK_EQ(cc_spawn(&task, top, NULL, NULL), 0);
    CCFiberId id = task.id;
    CHECK_EQ(cc_task_join(&task, NULL), ENOTRECOVERABLE);
    CCPanic why;
    CHECK_EQ(cc_panic_find(id, &why), 0);
    CHECK_EQ(strcmp(why.message, said), 0);
}

TEST_WORKERS(at_the_top_the_caller_panics) {
    caught(); /* on an OS thread */
    in_fiber(caught);
    uncaught();
    in_fiber(uncaught);
}

TEST_DIES(at_the_top_of_an_os_thread, "fatal: panic on an OS thread, outside of cc_try: CC_NURSERY 'files' has failed",
          .signal = SIGABRT) {
    CC_NURSERY(n, .name = "files") CHECK_EQ(cc_nursery_spawn(n, fail_named, NULL), 0);
}

/* A panic that leaves the block is not replaced; the failure is reported with it. */
static void panic_after_failure(void *arg) {
    (void)arg;
    CC_NURSERY(n, .name = "files") {
        CHECK_EQ(cc_nursery_spawn(n, fail_named, NULL), 0);
        UNTIL(cc_nursery_failures(n) == 1);
        cc_panic("another reason");
    }
}

TEST_DIES(a_panic_is_not_replaced, "ccc: CC_NURSERY 'files' has failed", .signal = SIGABRT) {
    CCPanic why;
    CHECK_EQ(cc_try(panic_after_failure, NULL, &why), ENOTRECOVERABLE);
    if (strcmp(why.message, "another reason") == 0) abort();
}

/* ---- freed without a wait ---- */

static void *fails(void *arg) {
    (void)arg;
    return cc_fail(EIO, "cannot read");
}

/* A nursery of which the only child has failed. */
static CCNursery *failed(void) {
    CCNursery *n = cc_nursery_create(NULL);
    CHECK(n != NULL);
    CHECK_EQ(cc_nursery_spawn(n, fails, NULL), 0);
    while (cc_nursery_children(n) > 0) CHECK_EQ(cc_sleep_ms(1), 0);
    return n;
}

static void freed_below(void) {
    int rc = -1;
    CC_NURSERY(n, .result = &rc) {
        (void)n;
        CHECK_EQ(cc_nursery_free(failed()), 0);
    }
    CHECK_EQ(rc, EIO);
}

static void freed_at_the_top(void) {
    struct capture capture;
    capture_start(&capture);
    CHECK_EQ(cc_nursery_free(failed()), 0);
    CHECK(strstr(capture_end(&capture), "nursery has failed, without a wait and without a nursery around it: EIO (5): "
                                        "cannot read") != NULL);
}

/* A failure that a caller has seen is not reported again. */
static void seen_before(void) {
    int rc = -1;
    CC_NURSERY(n, .result = &rc) {
        (void)n;
        CCNursery *waited = failed(), *asked = failed(), *timed = failed();
        CHECK_EQ(cc_nursery_wait(waited), EIO);
        CHECK_EQ(cc_nursery_failures(asked), 1);
        CHECK_EQ(cc_nursery_wait_until(timed, CC_PASSED), EIO);
        CHECK_EQ(cc_nursery_free(waited), 0);
        CHECK_EQ(cc_nursery_free(asked), 0);
        CHECK_EQ(cc_nursery_free(timed), 0);
    }
    CHECK_EQ(rc, 0);
}

static void freed_in_all_ways(void) {
    freed_below();
    freed_at_the_top();
    seen_before();
}

TEST_WORKERS(freed_without_a_wait) {
    freed_in_all_ways(); /* on an OS thread */
    in_fiber(freed_in_all_ways);
}
