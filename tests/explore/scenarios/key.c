/* key.c - wake keys: the wake against the wait, the deadline, the close, and against a record that is used again. */
#include "explore.h"

#include <ccc/ccc.h>
#include <errno.h>

static CCWakeKey key;
static int waited, woke, other_woke, reopened;
static uint64_t got;

static void key_setup(void) {
    EX_EQ(cc_wake_key_open(&key), 0);
    waited = woke = other_woke = reopened = -1;
    got = 0;
}
static void key_waits(void) {
    waited = cc_wake_key_wait(key, &got);
}
static void key_waits_soon(void) {
    waited = cc_wake_key_wait_until(key, &got, cc_after_ns(5000));
}
static void key_wakes(void) {
    woke = cc_wake(key, 7);
}
static void key_wakes_too(void) {
    other_woke = cc_wake(key, 8);
}
static void key_closes(void) {
    other_woke = cc_wake_key_close(key);
}
static void key_check_two(void) {
    EX_EQ(waited, 0);
    EX_EQ((woke == 0) + (other_woke == 0), 1);
    EX_EQ(got, woke == 0 ? 7 : 8);
}
SCENARIO(key_two_wakes, "KEY-2: two wake one wait; one of them does", .setup = key_setup,
         .threads = {key_waits, key_wakes, key_wakes_too}, .check = key_check_two);

/* KEY-3: 0 on one side means 0 on the other. */
static void key_check_deadline(void) {
    EX_CHECK(waited == 0 ? woke == 0 && got == 7 : waited == ETIMEDOUT && woke == ESRCH && got == 0);
}
SCENARIO(key_deadline, "KEY-3: a wake meets a deadline", .setup = key_setup, .threads = {key_waits_soon, key_wakes},
         .check = key_check_deadline);

static void key_check_close(void) {
    EX_CHECK(waited == 0 || waited == ESRCH);
    if (waited == 0) EX_CHECK(woke == 0 && got == 7);
    if (other_woke == 0) EX_EQ(waited, ESRCH); /* closed: no wait succeeds */
    EX_EQ((waited == 0) + (other_woke == 0), 1);
}
SCENARIO(key_close, "a wake meets a close", .setup = key_setup, .threads = {key_waits, key_wakes, key_closes},
         .check = key_check_close);

/* KEY-1: the record of an expired key belongs to another key; the late wake must not end that one. */
static CCWakeKey next;
static void key_reuses(void) {
    waited = cc_wake_key_wait_until(key, &got, cc_after_ns(1000));
    EX_EQ(cc_wake_key_open(&next), 0);
    EX_EQ(next.id, key.id);
    reopened = cc_wake_key_wait_until(next, NULL, cc_after_ns(1000));
}
static void key_check_reuse(void) {
    EX_EQ(reopened, ETIMEDOUT);
    EX_CHECK(waited == 0 ? woke == 0 : woke == ESRCH);
}
SCENARIO(key_reuse, "KEY-1: a late wake meets the record's next key", .setup = key_setup,
         .threads = {key_reuses, key_wakes}, .check = key_check_reuse);

/* ---- fibers ---- */

static CCTask fiber;

static void *fiber_waits(void *arg) {
    (void)arg;
    waited = cc_wake_key_wait(key, &got);
    return NULL;
}
static void fiber_setup(void) {
    key_setup();
    fiber = cc_fiber_spawn_task(fiber_waits, NULL);
    ex_settle();
}
static void fiber_join(void) {
    CCTask own = fiber;
    EX_EQ(cc_task_join(&own, NULL), 0);
}
SCENARIO(key_fiber, "a fiber is parked; two threads wake it", .workers = 1, .no_timer = true, .setup = fiber_setup,
         .threads = {key_wakes, key_wakes_too, fiber_join}, .check = key_check_two);

static void cancel_fiber(void) {
    int rc = cc_task_cancel(&fiber);
    EX_CHECK(rc == 0 || rc == ESRCH); /* it was joined by then */
}
static void key_check_cancel(void) {
    EX_CHECK(waited == 0 ? woke == 0 && got == 7 : waited == ECANCELED && woke == ESRCH);
}
SCENARIO(key_fiber_cancel, "KEY-3: a wake meets a cancellation", .workers = 1, .setup = fiber_setup,
         .threads = {key_wakes, cancel_fiber, fiber_join}, .check = key_check_cancel);

/* A select over a key and an event of another kind: the key that was not chosen stays open. */
static CCChan *ch;
static int chosen;
static void *fiber_selects(void *arg) {
    (void)arg;
    int v = 0;
    chosen = 0;
    CC_WHEN {
        CC_ON_KEY(key, &got) {
            chosen = 1;
            waited = CC_WHEN_ERROR;
        }
        CC_ON_RECV(ch, &v) {
            chosen = 2;
        }
    }
    if (chosen == 2) waited = cc_wake_key_wait(key, &got);
    return NULL;
}
static void select_setup(void) {
    key_setup();
    ch = cc_chan_create(sizeof(int), 1);
    fiber = cc_fiber_spawn_task(fiber_selects, NULL);
    ex_settle();
}
static void send_one(void) {
    int v = 1;
    EX_EQ(cc_chan_send_try(ch, &v, sizeof v), 0);
}
static void key_check_select(void) {
    EX_EQ(woke, 0);
    EX_EQ(waited, 0);
    EX_EQ(got, 7);
}
SCENARIO(key_fiber_select, "KEY-3: a wake that finds a select which another arm has ended is kept", .workers = 1,
         .setup = select_setup, .threads = {key_wakes, send_one, fiber_join}, .check = key_check_select);
