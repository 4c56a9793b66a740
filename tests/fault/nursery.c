/* nursery.c - nurseries without memory: the call returns ENOMEM and has no other effect; a child without a stack fails;
 * a deadline without one still fires. */
#include "fail.h"
#include "harness.h"

#include "../unit/contexts.h"
#include "nursery/nursery.h"

#include <ccc/ccc.h>
#include <sched.h>
#include <string.h>

static _Atomic long ran;

static void *count(void *arg) {
    cc__add(&ran, 1);
    return arg;
}

static void nowhere(void *arg) {
    (void)arg;
}

/* ---- each allocation of each call in turn ---- */

static CCNursery *n;
static CCChan *ch;
static char bytes[200];

static int create(void) {
    CCNursery *other = cc_nursery_create(n);
    if (other == NULL) return ENOMEM;
    return cc_nursery_free(other);
}

static int create_with_deadline(void) {
    CCNursery *other = cc_nursery_create_ex(&(CCNurseryConfig){.parent = n, .deadline = cc_after_ms(3600 * 1000)});
    if (other == NULL) return ENOMEM;
    return cc_nursery_free(other);
}

static int set_deadline(void) {
    return cc_nursery_set_deadline(n, cc_after_ms(3600 * 1000));
}

static int spawn_plain(void) {
    return cc_nursery_spawn(n, count, NULL);
}

static int spawn_with_options(void) {
    return cc_nursery_spawn_ex(n, NULL, count, NULL, &(CCSpawnOptions){.name = "named"});
}

static int spawn_with_arguments(void) {
    CCSpawnOptions options = {.arg_size = sizeof bytes};
    return cc_nursery_spawn_ex(n, NULL, (CCTaskFn)(uintptr_t)count, bytes, &options);
}

static int at_exit(void) {
    return cc_nursery_at_exit(n, nowhere, NULL);
}

static int autoclose(void) {
    return cc_nursery_autoclose(n, ch);
}

static int alloc(void) {
    return cc_nursery_alloc(n, 10000) != NULL ? 0 : ENOMEM;
}

static int set_value(void) {
    return cc_nursery_set_value(n, &ran, &ran);
}

static int block(void) {
    int rc = -1;
    bool entered = false;
    CC_NURSERY(inner, .parent = n, .result = &rc) entered = inner != NULL;
    CHECK_EQ(entered, rc == 0);
    return rc;
}

/* Without a deadline for the wait; counts what children of spawn calls return: their argument, a pointer. */
static void each_call(void) {
    int (*calls[])(void) = {create,
                            create_with_deadline,
                            set_deadline,
                            spawn_plain,
                            spawn_with_options,
                            spawn_with_arguments,
                            at_exit,
                            autoclose,
                            alloc,
                            set_value,
                            block};
    for (size_t i = 0; i < array_len(calls); i++) {
        for (long k = 1;; k++) {
            CHECK(k < 100);
            n = cc_nursery_create(NULL);
            ch = cc_chan_create(1, 1);
            CHECK(n != NULL && ch != NULL);
            fail_arm(k, FAIL_MEMORY, k % 2 == 0);
            int rc = calls[i]();
            long failed = fail_disarm();
            CHECK(rc == 0 || rc == ENOMEM);
            if (rc != 0) CHECK(failed > 0);
            int wait = cc_nursery_wait(n);
            CHECK(wait == 0 || (failed > 0 && wait == ENOMEM)); /* a child may have got no stack */
            CHECK_EQ(cc_nursery_children(n), 0);
            CHECK_EQ(cc_nursery_free(n), 0);
            cc_chan_free(ch);
            if (failed == 0) break;
        }
    }
}

TEST_WORKERS(each_call_in_turn) {
    fail_begin();
    in_both_contexts(each_call);
    CHECK_EQ(cc_runtime_shutdown(UINT64_MAX), 0);
    CHECK_EQ(fail.blocks, 0);
    CHECK_EQ(fail.mapped, 0);
}

/* A deadline that could not be moved stays where it was. */
static void *wait_for_deadline(void *arg) {
    (void)arg;
    CCNursery *timed = cc_nursery_create(NULL);
    enum { MANY = 300 };
    CCNursery *others[MANY];
    CCDeadline deadline = cc_after_ms(20);
    CHECK_EQ(cc_nursery_set_deadline(timed, deadline), 0);
    int made = 0, rc = 0;
    fail_arm(1, FAIL_MEMORY, true); /* until the heap of timers is full */
    while (rc == 0 && made < MANY) {
        (void)fail_disarm();
        others[made] = cc_nursery_create(NULL);
        fail_arm(1, FAIL_MEMORY, true);
        rc = cc_nursery_set_deadline(others[made++], cc_after_ms(3600 * 1000));
    }
    CHECK_EQ(rc, ENOMEM);
    rc = cc_nursery_set_deadline(timed, cc_after_ms(3600 * 1000));
    CHECK(fail_disarm() > 0);
    CHECK(rc == ENOMEM || rc == ETIMEDOUT);
    if (rc == ENOMEM) {
        CHECK_EQ(cc_nursery_spawn(timed, count, NULL), 0);
        while (!cc__get(&timed->scope.cancelled)) cc_yield();
        CHECK(cc_now_ns() >= deadline.ns);
    }
    while (made > 0) CHECK_EQ(cc_nursery_free(others[--made]), 0);
    CHECK_EQ(cc_nursery_free(timed), 0);
    return NULL;
}

TEST(deadline_that_cannot_be_moved) {
    fail_begin();
    CHECK_EQ(cc_runtime_init(&(CCRuntimeConfig){.workers = 1}), 0);
    CHECK_EQ(cc_run(wait_for_deadline, NULL, NULL), 0);
    CHECK_EQ(cc_runtime_shutdown(UINT64_MAX), 0);
    CHECK_EQ(fail.blocks, 0);
}

/* ---- failures whose text cannot be kept are counted ---- */

static void *fail_now_child(void *arg) {
    return arg;
}

static void lost_texts(void) {
    n = cc_nursery_create_ex(&(CCNurseryConfig){.mode = CC_NURSERY_COLLECT});
    for (int i = 0; i < 5; i++) CHECK_EQ(cc_nursery_spawn(n, fail_now_child, CC_ERROR(EIO)), 0);
    while (cc_nursery_failures(n) < 1) cc_in_fiber() ? cc_yield() : (void)sched_yield();
    fail_arm(1, FAIL_MEMORY, true);
    CHECK_EQ(cc_nursery_wait(n), EIO);
    (void)fail_disarm();
    CHECK_EQ(cc_nursery_failures(n), 5);
    CCError error;
    for (size_t i = 0; cc_nursery_failure(n, i, &error) == 0; i++) CHECK_EQ(error.code, EIO);
    CHECK_EQ(cc_nursery_free(n), 0);
}

TEST_WORKERS(texts_that_cannot_be_kept) {
    fail_begin();
    in_both_contexts(lost_texts);
    CHECK_EQ(cc_runtime_shutdown(UINT64_MAX), 0);
    CHECK_EQ(fail.blocks, 0);
}

/* The text of a later failure is not passed on with the code of the first. */
static void *fail_first(void *arg) {
    (void)arg;
    fail_arm(1, FAIL_MEMORY, true);
    void *result = cc_fail(EIO, "the first");
    CHECK(fail_disarm() > 0);
    return result;
}

static void *fail_second(void *arg) {
    (void)arg;
    return cc_fail(EPERM, "the second");
}

static void *fail_twice(void *arg) {
    (void)arg;
    CCError error;
    CCNursery *outer = cc_nursery_create(NULL);
    CC_NURSERY(inner, .parent = outer, .mode = CC_NURSERY_KEEP_GOING) {
        CHECK_EQ(cc_nursery_spawn(inner, fail_first, NULL), 0);
        CHECK_EQ(cc_nursery_wait(inner), EIO);
        CHECK_EQ(cc_nursery_spawn(inner, fail_second, NULL), 0);
    }
    CHECK_EQ(cc_nursery_wait(outer), EIO);
    CHECK_EQ(cc_nursery_failure(outer, 0, &error), 0);
    CHECK_EQ(error.code, EIO);
    CHECK_EQ(strcmp(error.text, ""), 0);
    CHECK(error.who == 0);
    CHECK_EQ(cc_nursery_free(outer), 0);
    return NULL;
}

TEST(a_first_text_that_cannot_be_kept) {
    CHECK_EQ(cc_runtime_init(&(CCRuntimeConfig){.workers = 1}), 0);
    CHECK_EQ(cc_run(fail_twice, NULL, NULL), 0);
}

/* ---- no stack ---- */

static _Atomic int cancelled;

static void *wait_for_cancel(void *arg) {
    CHECK_EQ(cc_sleep_until(CC_FOREVER), ECANCELED);
    cc__add(&cancelled, 1);
    return arg;
}

/* A child that cannot start has failed: its siblings are cancelled. */
static void no_stack_for_a_child(void) {
    cc__set(&ran, 0);
    cc__set(&cancelled, 0);
    n = cc_nursery_create(NULL);
    CHECK_EQ(cc_nursery_spawn(n, wait_for_cancel, NULL), 0);
    while (cc_nursery_children(n) != 1) sched_yield();
    CCSpawnOptions options = {.stack_size = 32 * 1024 * 1024};
    fail_arm(1, FAIL_MAP, true);
    CHECK_EQ(cc_nursery_spawn_ex(n, NULL, count, NULL, &options), 0);
    int rc = cc_nursery_wait(n);
    CHECK(fail_disarm() > 0);
    CHECK_EQ(rc, ENOMEM);
    CCError error;
    CHECK_EQ(cc_nursery_failure(n, 0, &error), 0);
    CHECK(strstr(error.text, "child's stack") != NULL);
    CHECK_EQ(cc__get(&ran), 0);
    CHECK_EQ(cc_nursery_free(n), 0);
}

TEST_WORKERS(a_child_without_a_stack) {
    fail_begin();
    for (int i = 0; i < 5; i++) in_both_contexts(no_stack_for_a_child);
    CHECK_EQ(cc_runtime_shutdown(UINT64_MAX), 0);
    CHECK_EQ(fail.blocks, 0);
    CHECK_EQ(fail.mapped, 0);
}

/* All stacks are in use when a deadline and a grace period fire: their work runs on a worker's own stack. */
static void *hold_out(void *arg) {
    CC_SHIELD CHECK_EQ(cc_sleep_until(CC_FOREVER), ECANCELED);
    cc__add(&cancelled, 1);
    return arg;
}

static void *fire_without_a_stack(void *arg) {
    (void)arg;
    cc__set(&cancelled, 0);
    CCNursery *many = cc_nursery_create_ex(&(CCNurseryConfig){.root = true, .mode = CC_NURSERY_KEEP_GOING});
    n = cc_nursery_create_ex(&(CCNurseryConfig){.root = true, .grace_ms = 1});
    for (int i = 0; i < 3; i++) CHECK_EQ(cc_nursery_spawn(n, hold_out, NULL), 0);
    for (int i = 0; i < 10; i++) cc_yield();
    CHECK_EQ(cc_nursery_set_deadline(n, cc_after_ms(3600 * 1000)), 0); /* room for its timer, and a record */
    fail_arm(1, FAIL_MAP | FAIL_MEMORY, true);
    long started = 0;
    while (cc_nursery_failures(many) == 0 && cc_nursery_spawn(many, wait_for_cancel, NULL) == 0)
        if (++started % 16 == 0) cc_yield();
    CHECK(cc_nursery_failures(many) > 0);
    CHECK_EQ(cc_nursery_set_deadline(n, cc_after_ms(1)), 0);
    CHECK_EQ(cc_nursery_wait(n), ETIMEDOUT);
    CHECK_EQ(cc__get(&cancelled), 3);
    CHECK(fail_disarm() > 0);
    CHECK_EQ(cc_nursery_free(n), 0);
    CHECK_EQ(cc_nursery_free(many), 0);
    return NULL;
}

TEST(a_deadline_without_a_stack) {
    if (test_scale(100) < 20) SKIP("thousands of stacks take too long here");
    fail_begin();
    CHECK_EQ(cc_runtime_init(&(CCRuntimeConfig){.workers = 1}), 0);
    CHECK_EQ(cc_run(fire_without_a_stack, NULL, NULL), 0);
    CHECK_EQ(cc_runtime_shutdown(UINT64_MAX), 0);
    CHECK_EQ(fail.blocks, 0);
    CHECK_EQ(fail.mapped, 0);
}

/* ---- blocks that cannot tell ---- */

TEST_DIES(a_block_without_a_result, "no memory for a nursery", .signal = SIGABRT) {
    fail_arm(1, FAIL_MEMORY, true);
    CC_NURSERY(inner) CHECK(inner == NULL);
}

static void *deadline_block(void *arg) {
    fail_arm(1, FAIL_MEMORY, true);
    CC_WITH_DEADLINE(cc_after_ms(1)) return arg;
    return NULL;
}

TEST_DIES(a_deadline_block, "CC_WITH_DEADLINE: no memory", .signal = SIGABRT) {
    (void)cc_run(deadline_block, NULL, NULL);
}
