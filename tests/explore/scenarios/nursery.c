/* nursery.c - scopes: the end of the last child, cancellation against waits, spawns and ends. */
#include "explore.h"

#include <ccc/ccc.h>
#include <errno.h>

static CCNursery *n;
static CCEvent go;
static int ran[3], child_rc = -1;
static CCChan *ch;

static void *child_waits(void *arg) {
    ran[0]++;
    child_rc = cc_event_wait(&go);
    return arg;
}
static void one_child(void) {
    n = cc_nursery_create(NULL);
    EX_CHECK(n != NULL);
    EX_EQ(cc_nursery_spawn(n, child_waits, NULL), 0);
    ex_settle();
}
static void lets_child_end(void) {
    EX_EQ(cc_event_set(&go), 0);
}
static void waits_and_frees(void) {
    EX_EQ(cc_nursery_wait(n), 0);
    EX_EQ(child_rc, 0);
    EX_EQ(cc_nursery_free(n), 0);
}
SCENARIO(nursery_last_child, "the last child ends; its owner waits and frees", .workers = 1, .setup = one_child,
         .threads = {lets_child_end, waits_and_frees}, .no_timer = true);

static void cancels(void) {
    EX_EQ(cc_nursery_cancel(n), 0);
}
static void waits_cancelled(void) {
    EX_EQ(cc_nursery_wait(n), ECANCELED);
    EX_EQ(child_rc, ECANCELED);
}
SCENARIO(nursery_cancel_wait, "a cancel and a wait; the child sleeps", .workers = 1, .setup = one_child,
         .threads = {cancels, waits_cancelled}, .no_timer = true);
static void waits_either(void) {
    int rc = cc_nursery_wait(n);
    EX_CHECK(rc == 0 || rc == ECANCELED);
    EX_CHECK(child_rc == 0 || child_rc == ECANCELED);
}
SCENARIO(nursery_cancel_end, "a cancel and the child's own end", .workers = 1, .setup = one_child,
         .threads = {cancels, lets_child_end, waits_either}, .no_timer = true);

/* ---- cancel and spawn ---- */

static void empty(void) {
    n = cc_nursery_create(NULL);
    EX_CHECK(n != NULL);
}
static void spawns(void) {
    EX_EQ(cc_nursery_spawn(n, child_waits, NULL), 0);
    EX_EQ(cc_nursery_wait(n), ECANCELED);
    EX_EQ(ran[0], 1);
    EX_EQ(child_rc, ECANCELED); /* for ever cancelled: it must not wait */
}
SCENARIO(nursery_cancel_spawn, "SCOPE-2: a child that comes while its nursery is cancelled", .workers = 1,
         .setup = empty, .threads = {spawns, cancels}, .no_timer = true);

/* ---- failure ---- */

static void *child_fails(void *arg) {
    (void)arg;
    EX_EQ(cc_event_wait(&go), 0);
    return cc_fail(EIO, "no");
}
static void *sibling(void *arg) {
    uint64_t value;
    child_rc = cc_chan_recv(ch, &value, sizeof value);
    return arg;
}
static void two_children(void) {
    ch = cc_chan_create(sizeof(uint64_t), 0);
    n = cc_nursery_create(NULL);
    EX_EQ(cc_nursery_spawn(n, child_fails, NULL), 0);
    EX_EQ(cc_nursery_spawn(n, sibling, NULL), 0);
    ex_settle();
}
static void waits_failed(void) {
    EX_EQ(cc_nursery_wait(n), EIO);
    EX_CHECK(child_rc == ECANCELED || child_rc == 0);
    EX_EQ(cc_nursery_free(n), 0);
}
static void sends_meanwhile(void) {
    uint64_t value = 1;
    (void)cc_chan_send_try(ch, &value, sizeof value);
}
SCENARIO(nursery_failure, "a child fails, its sibling is cancelled or served", .workers = 1, .setup = two_children,
         .threads = {lets_child_end, waits_failed, sends_meanwhile}, .no_timer = true);
SCENARIO(nursery_failure_2, "the same, two workers", .workers = 2, .setup = two_children,
         .threads = {lets_child_end, waits_failed}, .no_timer = true);

static void waits_soon(void) {
    int rc = cc_nursery_wait_until(n, cc_after_ns(3000));
    EX_CHECK(rc == 0 || rc == ETIMEDOUT);
    EX_EQ(cc_nursery_wait(n), 0);
    EX_EQ(cc_nursery_free(n), 0);
}
SCENARIO(nursery_wait_deadline, "a wait that gives up, and waits again", .workers = 1, .setup = one_child,
         .threads = {lets_child_end, waits_soon});
