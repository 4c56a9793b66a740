/* errors.c - the first failure cancels the siblings and is the result of the wait; the others are counted. */
#include "scene.h"

#include "../../programs/where.h"

#include <stdio.h>
#include <stdlib.h>

static atomic_int cancelled;

static void *fail_by_text(void *arg) {
    (void)arg;
    CHECK_EQ(cc_fiber_set_name("reader"), 0);
    return cc_fail(EIO, "cannot read %s, line %d", "a file", 7);
}

static void first_wins(void) {
    cancelled = 0;
    CCNursery *n = new_nursery(NULL);
    for (int i = 0; i < 20; i++) CHECK_EQ(cc_nursery_spawn(n, wait_for_cancel, &cancelled), 0);
    CCFiberId who = start_child(n, fail_by_text, NULL);
    CHECK_EQ(cc_nursery_wait(n), EIO);
    CHECK_EQ(cancelled, 20);
    CHECK_EQ(cc_nursery_failures(n), 1); /* being cancelled is no failure */
    CCError error;
    CHECK_EQ(cc_nursery_failure(n, 0, &error), 0);
    CHECK_EQ(error.code, EIO);
    CHECK(error.who == who);
    CHECK_EQ(strcmp(error.name, "reader"), 0);
    CHECK_EQ(strcmp(error.text, "cannot read a file, line 7"), 0);
    CHECK_EQ(cc_nursery_failure(n, 1, &error), ESRCH);
    CHECK_EQ(cc_nursery_wait(n), EIO); /* it stays */
    check_empty(n);
    CHECK_EQ(cc_nursery_free(n), 0);
}

TEST_WORKERS(first_failure) {
    first_wins();
    in_fiber(first_wins);
}

/* cc_fail takes effect at once, not only when the child returns. */
static atomic_int go_on;

static void *fail_and_stay(void *arg) {
    void *result = cc_fail(EIO, NULL);
    UNTIL(go_on);
    return cc_fail(EPERM, "a second one does not count") == NULL ? arg : result;
}

static void fails_at_once(void) {
    cancelled = go_on = 0;
    CCNursery *n = new_nursery(NULL);
    CHECK_EQ(cc_nursery_spawn(n, wait_for_cancel, &cancelled), 0);
    CHECK_EQ(cc_nursery_spawn(n, fail_and_stay, NULL), 0);
    UNTIL(cancelled);
    CHECK_EQ(cc_nursery_failures(n), 1);
    go_on = 1;
    CHECK_EQ(cc_nursery_wait(n), EIO);
    CHECK_EQ(cc_nursery_failures(n), 1);
    CHECK_EQ(cc_nursery_free(n), 0);
}

TEST_WORKERS(failure_before_the_return) {
    fails_at_once();
    in_fiber(fails_at_once);
}

/* ---- several ---- */

static atomic_int ready;
static _Atomic int reason_below;

/* All fail at the same moment, as far as possible. */
static void *fail_together(void *arg) {
    atomic_fetch_add(&ready, 1);
    UNTIL(ready >= 4);
    return cc_fail((int)(intptr_t)arg, "number %d", (int)(intptr_t)arg);
}

static void *note_reason(void *arg) {
    (void)arg;
    CHECK_EQ(cc_sleep_until(CC_FOREVER), ECANCELED);
    CCError why;
    CHECK_EQ(cc_cancel_reason(&why), 0);
    char text[32];
    snprintf(text, sizeof text, "number %d", why.code);
    CHECK_EQ(strcmp(why.text, text), 0);
    reason_below = why.code;
    return NULL;
}

/* What is read below is what the wait returns, whichever was first. */
static void one_truth(void) {
    for (long i = 0, rounds = test_rounds(500, 50000); i < rounds; i++) {
        ready = 0;
        reason_below = 0;
        CCNursery *n = new_nursery(NULL);
        CHECK_EQ(cc_nursery_spawn(n, note_reason, NULL), 0);
        for (int k = 1; k <= 4; k++) CHECK_EQ(cc_nursery_spawn(n, fail_together, CC_ERROR(k)), 0);
        int code = cc_nursery_wait(n);
        CCError first;
        CHECK_EQ(cc_nursery_failure(n, 0, &first), 0);
        CHECK_EQ(code, first.code);
        CHECK_EQ(code, reason_below);
        CHECK_EQ(cc_nursery_failures(n), 4);
        CHECK_EQ(cc_nursery_failure(n, 3, &first), 0);
        CHECK_EQ(cc_nursery_failure(n, 4, &first), ESRCH);
        CHECK_EQ(cc_nursery_free(n), 0);
    }
}

TEST_WORKERS(reason_and_result_agree) {
    in_fiber(one_truth);
}

enum { MANY = 100 };

static void fail_many(int mode, size_t kept) {
    CCNursery *n = cc_nursery_create_ex(&(CCNurseryConfig){.mode = mode});
    CHECK(n != NULL);
    for (int i = 0; i < MANY; i++) CHECK_EQ(cc_nursery_spawn(n, fail_with, CC_ERROR(i + 1)), 0);
    int rc = cc_nursery_wait(n);
    CHECK_EQ(cc_nursery_failures(n), MANY);
    bool seen[MANY + 1] = {false};
    CCError error;
    for (size_t i = 0; i < kept; i++) {
        CHECK_EQ(cc_nursery_failure(n, i, &error), 0);
        CHECK(!seen[error.code]);
        seen[error.code] = true;
        if (i == 0) CHECK_EQ(error.code, rc);
    }
    CHECK_EQ(cc_nursery_failure(n, kept, &error), ESRCH);
    CHECK_EQ(cc_nursery_failure(n, SIZE_MAX, &error), ESRCH);
    CHECK_EQ(cc_nursery_free(n), 0);
}

static void how_many_are_kept(void) {
    fail_many(CC_NURSERY_FIRST, 16);
    fail_many(CC_NURSERY_COLLECT, MANY);
    fail_many(CC_NURSERY_KEEP_GOING, 16);
    fail_many(CC_NURSERY_COLLECT | CC_NURSERY_KEEP_GOING, MANY);
}

TEST_WORKERS(counted_and_kept) {
    in_fiber(how_many_are_kept);
}

static void *fail_as(void *number) {
    return cc_fail(EIO, "%ld", (long)(intptr_t)number);
}

static long number_of(CCNursery *n, long index) {
    CCError error;
    CHECK_EQ(cc_nursery_failure(n, (size_t)index, &error), 0);
    CHECK_EQ(error.code, EIO);
    return strtol(error.text, NULL, 10);
}

/* Reading one failure does not take longer the more there are. */
TEST(many_fail, .timeout = 30) {
    bool cheap = !(UNDER_ASAN || UNDER_TSAN || under_valgrind() || under_qemu());
    long count = cheap ? 100000 : 2000;
    long *order = calloc((size_t)count, sizeof *order);
    bool *seen = calloc((size_t)count, sizeof *seen);
    CHECK(order != NULL && seen != NULL);
    CCNursery *n = cc_nursery_create_ex(&(CCNurseryConfig){.mode = CC_NURSERY_COLLECT | CC_NURSERY_KEEP_GOING});
    for (long i = 0; i < count; i++) CHECK_EQ(cc_nursery_spawn(n, fail_as, (void *)(intptr_t)i), 0);
    CHECK_EQ(cc_nursery_wait(n), EIO);
    CHECK_EQ(cc_nursery_failures(n), (size_t)count);
    for (long i = 0; i < count; i++) {
        order[i] = number_of(n, i);
        CHECK(!seen[order[i]]);
        seen[order[i]] = true;
    }
    for (long i = count; i-- > 0;) CHECK_EQ(number_of(n, i), order[i]);
    CHECK_EQ(cc_nursery_free(n), 0);
    free(order);
    free(seen);
}

static void *finish_later(void *counter) {
    CHECK_EQ(cc_sleep_ms(2), 0);
    CHECK(!cc_cancelled());
    return count_up(counter);
}

static void keep_going(void) {
    atomic_int ended = 0;
    int rc;
    CC_NURSERY(n, .mode = CC_NURSERY_KEEP_GOING, .result = &rc) {
        CHECK_EQ(cc_nursery_spawn(n, fail_with, CC_ERROR(ENXIO)), 0);
        for (int i = 0; i < 10; i++) CHECK_EQ(cc_nursery_spawn(n, finish_later, &ended), 0);
        CHECK_EQ(cc_sleep_ms(3), 0);
    }
    CHECK_EQ(rc, ENXIO);
    CHECK_EQ(ended, 10);
}

TEST_WORKERS(a_mode_that_never_cancels) {
    keep_going();
    in_fiber(keep_going);
}

/* ---- what is an error ---- */

static void which_results(void) {
    static char memory;
    void *fine[] = {NULL, &memory, CC_ERROR(CC_ERROR_MAX + 1), CC_ERROR(-1), (void *)UINTPTR_MAX};
    for (size_t i = 0; i < array_len(fine); i++) {
        int rc = -1;
        CC_NURSERY(n, .result = &rc) CHECK_EQ(cc_nursery_spawn(n, fail_with, fine[i]), 0);
        CHECK_EQ(rc, 0);
    }
    int codes[] = {1, EIO, ECANCELED, CC_ERROR_MAX};
    for (size_t i = 0; i < array_len(codes); i++) {
        int rc = -1;
        CC_NURSERY(n, .result = &rc) CHECK_EQ(cc_nursery_spawn(n, fail_with, CC_ERROR(codes[i])), 0);
        CHECK_EQ(rc, codes[i]);
    }
    CHECK(cc_fail(0, "x") == CC_ERROR(EINVAL));
    CHECK(cc_fail(-3, "x") == CC_ERROR(EINVAL));
    CHECK(cc_fail(CC_ERROR_MAX + 1, "x") == CC_ERROR(EINVAL));
    CHECK(cc_fail(EIO, "outside of a child it only makes the pointer") == CC_ERROR(EIO));
}

TEST_WORKERS(what_counts_as_failure) {
    which_results();
    in_fiber(which_results);
}

/* An echo of the cancellation does not use up the child's report. */
static void *echo_then_fail(void *arg) {
    (void)arg;
    CHECK_EQ(cc_sleep_until(CC_FOREVER), ECANCELED);
    CHECK(cc_fail(ECANCELED, "cancelled") == CC_ERROR(ECANCELED));
    return cc_fail(EIO, "and then the disk was full");
}

static void echoes(void) {
    CCNursery *n = new_nursery(NULL);
    CHECK_EQ(cc_nursery_spawn(n, echo_then_fail, NULL), 0);
    CHECK_EQ(cc_nursery_cancel_with(n, EXDEV, NULL), 0);
    CHECK_EQ(cc_nursery_wait(n), EIO);
    CHECK_EQ(cc_nursery_failures(n), 1);
    CHECK_EQ(cc_nursery_free(n), 0);
}

TEST_WORKERS(failure_after_a_cancellation) {
    echoes();
    in_fiber(echoes);
}

/* Text and name are cut, never overrun. */
static void *fail_at_length(void *arg) {
    char name[100], text[1000];
    memset(name, 'n', sizeof name - 1);
    memset(text, 't', sizeof text - 1);
    name[99] = text[999] = '\0';
    CHECK_EQ(cc_fiber_set_name(name), 0);
    return cc_fail(EIO, "%s%s", text, (char *)arg);
}

static void lengths(void) {
    char name[100];
    memset(name, 'n', 99);
    name[99] = '\0';
    CCNursery *n = cc_nursery_create_ex(&(CCNurseryConfig){.name = name});
    CHECK_EQ(strlen(n->name), CC_FIBER_NAME_MAX - 1);
    CHECK_EQ(cc_nursery_spawn(n, fail_at_length, "x"), 0);
    CHECK_EQ(cc_nursery_wait(n), EIO);
    CCError error;
    CHECK_EQ(cc_nursery_failure(n, 0, &error), 0);
    CHECK_EQ(strlen(error.text), CC_ERROR_TEXT_MAX - 1);
    CHECK_EQ(strlen(error.name), CC_FIBER_NAME_MAX - 1);
    CHECK_EQ(cc_nursery_free(n), 0);
}

TEST(long_texts) {
    in_fiber(lengths);
}

/* ---- children that return a number ---- */

static int status_of(void *arg) {
    return (int)(intptr_t)arg;
}

CC_CHILD(returns_status, { int status; }) {
    return self->status;
}

static void check_status(int status, bool macro, int code, const char *text) {
    CCNursery *n = cc_nursery_create(NULL);
    CCError error;
    CHECK_EQ(macro ? CC_GO_IN(n, returns_status, .status = status)
                   : cc_nursery_spawn_status(n, status_of, (void *)(intptr_t)status),
             0);
    CHECK_EQ(cc_nursery_wait(n), code);
    CHECK_EQ(cc_nursery_failures(n), code != 0);
    if (code != 0) {
        CHECK_EQ(cc_nursery_failure(n, 0, &error), 0);
        CHECK_EQ(error.code, code);
        CHECK_EQ(strcmp(error.text, text), 0);
    }
    CHECK_EQ(cc_nursery_free(n), 0);
}

static void statuses(void) {
    for (int macro = 0; macro < 2; macro++) {
        check_status(0, macro, 0, NULL);
        check_status(EIO, macro, EIO, "the child returned 5 (Input/output error)");
        check_status(CC_ERROR_MAX, macro, CC_ERROR_MAX, "the child returned 4095 (an unknown error)");
        check_status(CC_ERROR_MAX + 1, macro, EINVAL, "the child returned 4096, which is no errno value");
        check_status(-1, macro, EINVAL, "the child returned -1, which is no errno value");
    }
    CHECK_EQ(cc_nursery_spawn_status(NULL, status_of, NULL), EINVAL);
    CCNursery *n = cc_nursery_create(NULL);
    CHECK_EQ(cc_nursery_spawn_status(n, NULL, NULL), EINVAL);
    CHECK_EQ(cc_nursery_free(n), 0);
}

TEST_WORKERS(a_status) {
    statuses();
    in_fiber(statuses);
}

/* For example a count that was meant as a result: the failure says how it was interpreted. */
TEST(a_small_number_is_an_error) {
    CCNursery *n = cc_nursery_create(NULL);
    CCError error;
    CHECK_EQ(cc_nursery_spawn(n, fail_with, (void *)3), 0);
    CHECK_EQ(cc_nursery_wait(n), 3);
    CHECK_EQ(cc_nursery_failure(n, 0, &error), 0);
    CHECK(strstr(error.text, "returned (void *)3, which is read as errno 3") != NULL);
    CHECK(strstr(error.text, "CC_CHILD") != NULL);
    CHECK_EQ(cc_nursery_free(n), 0);
}
