/* blocking.c - src/blocking: calls against the end of idle threads, cancellation, deadlines, and the end of their pool.
 */
#include "blocking/blocking.h"
#include "explore.h"

#include <ccc/ccc.h>
#include <errno.h>

static CCTask caller, victim; /* victim: a second handle of the caller */
static CCPool *pool;
static int rc, called, cleaned;
static void *result;

static void *counts(void *arg) {
    called++;
    return arg;
}
static void cleans(void *arg, void *got) {
    EX_CHECK(got == NULL || got == arg);
    cleaned++;
}

static void makes_pool(void) {
    EX_EQ(cc_pool_create(&pool, 1), 0);
}
static void *calls(void *arg) {
    rc = cc_blocking_ex(counts, arg, &result, &(CCBlockingOptions){.pool = pool}, CC_FOREVER);
    return NULL;
}
/* A thread is there, and idle. */
static void idles(void) {
    makes_pool();
    EX_EQ(cc_run(calls, &rc, NULL), 0);
    ex_settle();
    called = 0;
    result = NULL;
}
static void calls_once(void) {
    EX_EQ(cc_spawn(&caller, calls, &rc, NULL), 0);
    EX_EQ(cc_task_join(&caller, NULL), 0);
    EX_EQ(rc, 0);
    EX_CHECK(result == &rc);
}
static void called_once(void) {
    EX_EQ(called, 1);
    EX_EQ(cc__blocking_calls(), 0);
}
SCENARIO(block_idle_end, "BLOCK-1: a call is queued while the idle thread times out", .workers = 1, .setup = idles,
         .threads = {calls_once}, .check = called_once);
SCENARIO(block_first, "BLOCK-1: a call starts the first thread", .workers = 1, .setup = makes_pool,
         .threads = {calls_once}, .check = called_once);

/* ---- two calls, one thread ---- */

static CCTask other;
static int other_rc;

static void *calls_other(void *arg) {
    other_rc = cc_blocking_ex(counts, arg, NULL, &(CCBlockingOptions){.pool = pool}, CC_FOREVER);
    return NULL;
}
static void calls_twice(void) {
    EX_EQ(cc_spawn(&other, calls_other, NULL, NULL), 0);
    calls_once();
    EX_EQ(cc_task_join(&other, NULL), 0);
    EX_EQ(other_rc, 0);
}
static void called_twice(void) {
    EX_EQ(called, 2);
    EX_EQ(cc__blocking_calls(), 0);
}
SCENARIO(block_queue, "BLOCK-1: a call is queued while the only thread is about to become idle", .workers = 2,
         .setup = idles, .threads = {calls_twice}, .check = called_twice);

/* ---- BLOCK-2 ---- */

static CCEvent gate;

/* The caller waits for the gate in the set-up, so that it can be cancelled before, during and after the call. */
static void waits_for_gate(void) {
    CC_SHIELD EX_EQ(cc_event_wait(&gate), 0);
}
static void waits(CCTaskFn fn) {
    idles();
    EX_EQ(cc_spawn(&caller, fn, &rc, NULL), 0);
    EX_EQ(cc_task_dup(&caller, &victim), 0);
    ex_settle();
}
static void cancels(void) {
    EX_EQ(cc_task_cancel(&victim), 0);
    EX_EQ(cc_task_detach(&victim), 0);
}
static void begins(void) {
    EX_EQ(cc_event_set(&gate), 0);
    EX_EQ(cc_task_join(&caller, NULL), 0);
}
static void *waits_and_calls(void *arg) {
    waits_for_gate();
    return calls(arg);
}
static void caller_waits(void) {
    waits(waits_and_calls);
}
static void done_or_withdrawn(void) {
    EX_CHECK(rc == 0 || rc == ECANCELED);
    EX_EQ(called, rc == 0 ? 1 : 0);
    EX_EQ(cc__blocking_calls(), 0);
}
SCENARIO(block_cancel, "BLOCK-2: a cancellation, and a call that begins", .workers = 1, .setup = caller_waits,
         .threads = {begins, cancels}, .check = done_or_withdrawn);

static void may_leave(void *arg, CCDeadline deadline) {
    CCBlockingOptions options = {.pool = pool, .may_abandon = true, .cleanup = cleans};
    rc = cc_blocking_ex(counts, arg, &result, &options, deadline);
}
static void *waits_and_may_leave(void *arg) {
    waits_for_gate();
    may_leave(arg, CC_FOREVER);
    return NULL;
}
static void *leaves_in_time(void *arg) {
    may_leave(arg, cc_after_ns(3000));
    return NULL;
}
static void leaver_waits(void) {
    waits(waits_and_may_leave);
}
static void calls_with_deadline(void) {
    EX_EQ(cc_spawn(&caller, leaves_in_time, &rc, NULL), 0);
    EX_EQ(cc_task_join(&caller, NULL), 0);
}
/* The call lasts until another thread ends it. */
static CCEvent end;
static void *lasts(void *arg) {
    EX_EQ(cc_event_wait(&end), 0);
    return counts(arg);
}
static void *waits_and_lasts(void *arg) {
    CCBlockingOptions options = {.pool = pool, .may_abandon = true, .cleanup = cleans};
    waits_for_gate();
    rc = cc_blocking_ex(lasts, arg, &result, &options, CC_FOREVER);
    return NULL;
}
static void laster_waits(void) {
    waits(waits_and_lasts);
}
static void cancels_and_ends(void) {
    cancels();
    EX_EQ(cc_event_set(&end), 0);
}
static void begins_and_drains(void) {
    begins();
    EX_EQ(cc__blocking_drain(UINT64_MAX), true);
    EX_EQ(cleaned, rc == 0 ? 0 : 1);
}
/* Either it has a result, or what it returned is cleaned, once; or it was never made. */
static void done_or_cleaned(void) {
    EX_CHECK(rc == 0 || rc == ECANCELED || rc == ETIMEDOUT);
    EX_EQ(cleaned, rc == 0 ? 0 : 1);
    EX_CHECK(result == (rc == 0 ? &rc : NULL));
    EX_CHECK(called == 1 || (called == 0 && rc != 0));
    EX_EQ(cc__blocking_calls(), 0);
}
SCENARIO(block_abandon, "BLOCK-2: a call is abandoned while it ends", .workers = 1, .setup = leaver_waits,
         .threads = {begins, cancels}, .check = done_or_cleaned);
SCENARIO(block_deadline, "BLOCK-2: a call is abandoned by a deadline", .workers = 1, .setup = idles,
         .threads = {calls_with_deadline}, .check = done_or_cleaned);
SCENARIO(block_drain, "a shutdown waits for a call that was abandoned", .workers = 1, .setup = laster_waits,
         .threads = {begins_and_drains, cancels_and_ends}, .check = done_or_cleaned);

/* ---- BLOCK-3 ---- */

static void calls_and_frees(void) {
    calls_once();
    EX_EQ(cc_pool_free(pool), 0);
}
SCENARIO(block_free, "BLOCK-3: a pool is freed while its thread becomes idle, or ends", .workers = 1, .setup = idles,
         .threads = {calls_and_frees}, .check = called_once);
