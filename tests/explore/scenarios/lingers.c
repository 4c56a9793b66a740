/* lingers.c - cancellations in quick succession: the later ones rely on the barrier of an earlier one (CLAIM-3). */
#include "explore.h"
#include "sched/wake.h"

#include <ccc/ccc.h>
#include <errno.h>

static CCEvent go, happens, never;
static CCTask task, other, setter;
static int rc[2];

static void spawn(CCTask *t, CCTaskFn fn, void *arg) {
    EX_EQ(cc_spawn(t, fn, arg, NULL), 0);
}
static void join(CCTask *t) {
    EX_EQ(cc_task_join(t, NULL), 0);
}

static void *waits(void *event) {
    EX_EQ(cc_event_wait(event), ECANCELED);
    return NULL;
}

/* The second of two leaves its count behind. */
static void cancels_two(void) {
    for (int i = 0; i < 2; i++) {
        CCTask t;
        spawn(&t, waits, &never);
        ex_settle();
        EX_EQ(cc_task_cancel(&t), 0);
        ex_settle();
        join(&t);
    }
    EX_EQ(cc__get(&cc__sched.lingers), 1);
}

static void cancels(void) {
    EX_EQ(cc_task_cancel(&other), 0);
    EX_EQ(cc_task_detach(&other), 0);
}
static void drops(void) {
    cc__sched_cancel_lingers(UINT64_MAX / 2);
}

/* ---- a fiber parks ---- */

static void *parks(void *arg) {
    if (cc_event_wait(&go) == 0) EX_EQ(cc_event_wait(&never), ECANCELED);
    return arg;
}
static void about_to_park(void) {
    cancels_two();
    spawn(&task, parks, NULL);
    EX_EQ(cc_task_dup(&task, &other), 0);
    ex_settle();
}
static void lets_park(void) {
    EX_EQ(cc_event_set(&go), 0);
    join(&task);
}
SCENARIO(lingers_park, "CANCEL-1: a fiber parks while a thread cancels, without a barrier", .workers = 1,
         .setup = about_to_park, .threads = {lets_park, cancels}, .no_timer = true);
SCENARIO(lingers_park_drop, "the same, and the count is dropped meanwhile", .workers = 1, .setup = about_to_park,
         .threads = {lets_park, cancels, drops}, .no_timer = true);

/* ---- a fiber wakes another ---- */

static void *waits_once(void *arg) {
    rc[0] = cc_event_wait(&happens);
    EX_CHECK(rc[0] == 0 || rc[0] == ECANCELED);
    return arg;
}
static void *sets_on_signal(void *arg) {
    EX_EQ(cc_event_wait(&go), 0);
    EX_EQ(cc_event_set(&happens), 0);
    return arg;
}
static void waiter_and_setter(void) {
    cancels_two();
    spawn(&task, waits_once, NULL);
    EX_EQ(cc_task_dup(&task, &other), 0);
    spawn(&setter, sets_on_signal, NULL);
    ex_settle();
}
static void lets_set(void) {
    EX_EQ(cc_event_set(&go), 0);
    join(&setter);
    join(&task);
}
SCENARIO(lingers_wake, "CLAIM-1: a fiber sets an event while a thread cancels the waiter, without a barrier",
         .workers = 1, .setup = waiter_and_setter, .threads = {lets_set, cancels}, .no_timer = true);
SCENARIO(lingers_wake_2, "the same, two workers", .workers = 2, .setup = waiter_and_setter,
         .threads = {lets_set, cancels}, .no_timer = true);
SCENARIO(lingers_wake_drop, "the same, and the count is dropped meanwhile", .workers = 1, .setup = waiter_and_setter,
         .threads = {lets_set, cancels, drops}, .no_timer = true);
