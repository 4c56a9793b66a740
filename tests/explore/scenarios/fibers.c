/* fibers.c - channels between fibers, and between fibers and OS threads: claims by store, hand-over inside the biased
 * lock, biases, timers, cancellation.
 */
#include "chan/chan.h"
#include "explore.h"
#include "sched/wake.h"

#include <ccc/ccc.h>
#include <errno.h>

static CCChan *ch;
static CCTask task, other;
static CCEvent go;
static uint64_t got, got_too;
static int rc[4];

static void spawn(CCTask *t, CCTaskFn fn, void *arg) {
    EX_EQ(cc_spawn(t, fn, arg, NULL), 0);
}
static void join(CCTask *t) {
    EX_EQ(cc_task_join(t, NULL), 0);
}
static void send_value(uint64_t value, int who) {
    rc[who] = cc_chan_send(ch, &value, sizeof value);
}

/* ---- a fiber waits, a thread comes ---- */

static void *receives(void *arg) {
    rc[3] = cc_chan_recv(ch, arg, sizeof(uint64_t));
    return NULL;
}
static void receiver_parked(void) {
    ch = cc_chan_create(sizeof(uint64_t), 0);
    spawn(&task, receives, &got);
    ex_settle();
}
static void thread_sends(void) {
    send_value(1, 0);
    EX_EQ(rc[0], 0);
    join(&task);
    EX_EQ(got, 1);
}
SCENARIO(fiber_recv_thread_send, "a thread hands a value to a parked fiber", .workers = 1, .setup = receiver_parked,
         .threads = {thread_sends}, .no_timer = true);

static void closes(void) {
    EX_EQ(cc_chan_close(ch), 0);
}
static void sends_or_receives(void) {
    send_value(1, 0);
    join(&task);
    EX_CHECK(rc[0] == 0 ? rc[3] == 0 && got == 1 : rc[0] == EPIPE && rc[3] == EPIPE);
}
SCENARIO(fiber_recv_close, "a value and a close, at a parked fiber", .workers = 1, .setup = receiver_parked,
         .threads = {sends_or_receives, closes}, .no_timer = true);

/* CLAIM-1, CANCEL-3: the object's waker claims by a store if it is a worker; a canceller comes in between. */
static void receiver_two_handles(void) {
    receiver_parked();
    EX_EQ(cc_task_dup(&task, &other), 0);
}
static void cancels(void) {
    int answer = cc_task_cancel(&other);
    EX_CHECK(answer == 0);
    EX_EQ(cc_task_detach(&other), 0);
}
static void sends_soon(void) {
    uint64_t value = 1;
    rc[0] = cc_chan_send_until(ch, &value, sizeof value, cc_after_ns(20000));
    join(&task);
    EX_CHECK(rc[0] == 0 ? rc[3] == 0 && got == 1 : rc[0] == ETIMEDOUT && rc[3] == ECANCELED);
}
SCENARIO(fiber_recv_cancel, "CANCEL-3: a value from a thread and a canceller", .workers = 1,
         .setup = receiver_two_handles, .threads = {sends_soon, cancels});

static void *sends_on_signal(void *arg) {
    (void)arg;
    EX_EQ(cc_event_wait(&go), 0);
    uint64_t value = 1;
    rc[0] = cc_chan_send_try(ch, &value, sizeof value);
    return NULL;
}
static CCTask sender;
static void both_parked(void) {
    receiver_two_handles();
    spawn(&sender, sends_on_signal, NULL);
    ex_settle();
}
static void lets_send(void) {
    EX_EQ(cc_event_set(&go), 0);
    join(&sender);
    join(&task);
    EX_CHECK(rc[0] == 0 ? rc[3] == 0 && got == 1 : rc[0] == EAGAIN && rc[3] == ECANCELED);
}
SCENARIO(fiber_local_wake_cancel, "CLAIM-1: a fiber hands over while a thread cancels", .workers = 1,
         .setup = both_parked, .threads = {lets_send, cancels}, .no_timer = true);
SCENARIO(fiber_local_wake_cancel_2, "the same, two workers", .workers = 2, .setup = both_parked,
         .threads = {lets_send, cancels}, .no_timer = true);

/* ---- a deadline, a value ---- */

static void *receives_soon(void *arg) {
    rc[3] = cc_chan_recv_until(ch, arg, sizeof(uint64_t), cc_after_ms(1));
    return NULL;
}
static void receiver_soon_parked(void) {
    ch = cc_chan_create(sizeof(uint64_t), 0);
    spawn(&task, receives_soon, &got);
    ex_settle();
}
static void tries_to_send(void) {
    uint64_t value = 1;
    rc[0] = cc_chan_send_try(ch, &value, sizeof value);
    join(&task);
    EX_CHECK(rc[0] == 0 ? rc[3] == 0 && got == 1 : rc[0] == EAGAIN && rc[3] == ETIMEDOUT);
}
SCENARIO(fiber_timer_value, "TIMER-1: a timer and a sender claim one wait", .workers = 1, .setup = receiver_soon_parked,
         .threads = {tries_to_send});
static void two_more_handles(void) {
    receiver_soon_parked();
    EX_EQ(cc_task_dup(&task, &other), 0);
}
static void tries_three(void) {
    uint64_t value = 1;
    rc[0] = cc_chan_send_try(ch, &value, sizeof value);
    join(&task);
    EX_EQ(rc[0] == 0, rc[3] == 0);
    EX_CHECK(rc[3] == 0 || rc[3] == ETIMEDOUT || rc[3] == ECANCELED);
}
SCENARIO(fiber_three_claims, "WAIT-1: timer, sender and canceller", .workers = 1, .setup = two_more_handles,
         .threads = {tries_three, cancels});

/* The entry of a wait that is over must not end the next one. */
static void *receives_twice(void *arg) {
    rc[2] = cc_chan_recv_until(ch, arg, sizeof(uint64_t), cc_after_ms(1));
    rc[3] = cc_chan_recv(ch, arg, sizeof(uint64_t));
    return NULL;
}
static void twice_parked(void) {
    ch = cc_chan_create(sizeof(uint64_t), 0);
    spawn(&task, receives_twice, &got);
    ex_settle();
}
static void sends_then_closes(void) {
    EX_EQ(cc_sleep_ms(2), 0);
    uint64_t value = 2;
    (void)cc_chan_send_try(ch, &value, sizeof value);
    EX_EQ(cc_chan_close(ch), 0);
    join(&task);
    EX_CHECK(rc[2] == 0 || rc[2] == ETIMEDOUT || rc[2] == EPIPE);
    EX_CHECK(rc[3] == 0 || rc[3] == EPIPE);
}
static void sends_early(void) {
    uint64_t value = 1;
    rc[0] = cc_chan_send_try(ch, &value, sizeof value);
}
SCENARIO(fiber_timer_again, "a timer's stale entry and the next wait", .workers = 1, .setup = twice_parked,
         .threads = {sends_early, sends_then_closes});

/* ---- two fibers, two workers ---- */

static void *sends_one(void *arg) {
    uint64_t value = *(uint64_t *)arg;
    EX_EQ(cc_event_wait(&go), 0);
    EX_EQ(cc_chan_send(ch, &value, sizeof value), 0);
    return NULL;
}
static void *receives_one(void *arg) {
    EX_EQ(cc_event_wait(&go), 0);
    EX_EQ(cc_chan_recv(ch, arg, sizeof(uint64_t)), 0);
    return NULL;
}
static uint64_t one = 1;
static void pair(size_t capacity) {
    ch = cc_chan_create(sizeof(uint64_t), capacity);
    spawn(&task, sends_one, &one);
    spawn(&other, receives_one, &got);
    ex_settle();
}
static void pair0(void) {
    pair(0);
}
static void pair1(void) {
    pair(1);
}
static void starts_pair(void) {
    EX_EQ(cc_event_set(&go), 0);
    join(&task);
    join(&other);
    EX_EQ(got, 1);
}
SCENARIO(fiber_pair0, "two fibers meet, two workers", .workers = 2, .setup = pair0, .threads = {starts_pair},
         .no_timer = true);
SCENARIO(fiber_pair1, "two fibers and one slot, two workers", .workers = 2, .setup = pair1, .threads = {starts_pair},
         .no_timer = true);

/* ---- a fiber begins to wait while a thread comes: PARKED before the lock is free ---- */

static CCEvent happens;
static void *waits_for_event(void *arg) {
    EX_EQ(cc_event_wait(&go), 0);
    EX_EQ(cc_event_wait(&happens), 0);
    return arg;
}
static void about_to_wait(void) {
    spawn(&task, waits_for_event, NULL);
    ex_settle();
}
static void goes(void) {
    EX_EQ(cc_event_set(&go), 0);
    join(&task);
}
static void lets_happen(void) {
    EX_EQ(cc_event_set(&happens), 0);
}
SCENARIO(fiber_event, "a fiber parks on an event while a thread sets it", .workers = 1, .setup = about_to_wait,
         .threads = {goes, lets_happen}, .no_timer = true);

/* A fiber wakes another on the slow path, in struct wakes, while a thread cancels it. */
static void *waits_once(void *arg) {
    rc[3] = cc_event_wait(&happens);
    return arg;
}
static void *sets_on_signal(void *arg) {
    EX_EQ(cc_event_wait(&go), 0);
    EX_EQ(cc_event_set(&happens), 0);
    return arg;
}
static void waiter_and_setter(void) {
    spawn(&task, waits_once, NULL);
    EX_EQ(cc_task_dup(&task, &other), 0);
    spawn(&sender, sets_on_signal, NULL);
    ex_settle();
}
static void lets_set(void) {
    EX_EQ(cc_event_set(&go), 0);
    join(&sender);
    join(&task);
    EX_CHECK(rc[3] == 0 || rc[3] == ECANCELED);
}
SCENARIO(fiber_event_cancel, "CLAIM-2: a fiber sets an event while a thread cancels the waiter", .workers = 1,
         .setup = waiter_and_setter, .threads = {lets_set, cancels}, .no_timer = true);

/* ---- cancellations in quick succession: the later ones rely on the barrier of an earlier one (CLAIM-3) ---- */

static CCEvent never;

static void *waits_for_ever(void *arg) {
    EX_EQ(cc_event_wait(&never), ECANCELED);
    return arg;
}
/* The second of two leaves its count behind. */
static void cancels_two(void) {
    for (int i = 0; i < 2; i++) {
        CCTask t;
        spawn(&t, waits_for_ever, NULL);
        ex_settle();
        EX_EQ(cc_task_cancel(&t), 0);
        ex_settle();
        join(&t);
    }
    EX_EQ(cc__get(&cc__sched.lingers), 1);
}
static void drops(void) {
    cc__sched_cancel_lingers(UINT64_MAX / 2);
}

static void *parks(void *arg) {
    return cc_event_wait(&go) == 0 ? waits_for_ever(arg) : arg;
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

static void waiter_after_two(void) {
    cancels_two();
    waiter_and_setter();
}
SCENARIO(lingers_wake, "CLAIM-1: a fiber sets an event while a thread cancels the waiter, without a barrier",
         .workers = 1, .setup = waiter_after_two, .threads = {lets_set, cancels}, .no_timer = true);
SCENARIO(lingers_wake_2, "the same, two workers", .workers = 2, .setup = waiter_after_two,
         .threads = {lets_set, cancels}, .no_timer = true);
SCENARIO(lingers_wake_drop, "the same, and the count is dropped meanwhile", .workers = 1, .setup = waiter_after_two,
         .threads = {lets_set, cancels, drops}, .no_timer = true);

/* ---- a fiber begins to wait ---- */

static void *receives_on_signal(void *arg) {
    EX_EQ(cc_event_wait(&go), 0);
    rc[3] = cc_chan_recv(ch, arg, sizeof(uint64_t));
    return NULL;
}
static void about_to_receive(void) {
    ch = cc_chan_create(sizeof(uint64_t), 0);
    spawn(&task, receives_on_signal, &got);
    ex_settle();
}
static void sends_one_value(void) {
    send_value(1, 0);
    EX_EQ(rc[0], 0);
}
static void handed(void) {
    EX_EQ(got, 1);
}
SCENARIO(fiber_recv_begins, "a fiber begins to receive while a thread sends", .workers = 1, .setup = about_to_receive,
         .threads = {goes, sends_one_value}, .check = handed, .no_timer = true);

/* ---- biases ---- */

static void *uses_biased(void *arg) {
    (void)arg;
    uint64_t value = 100;
    for (int i = 0; i < 80; i++) rc[1] = cc_chan_send_try(ch, &value, sizeof value);
    EX_EQ(cc_chan_recv(ch, &value, sizeof value), 0);
    EX_CHECK(cc__get(&ch->bias) != 0);
    EX_EQ(cc_event_wait(&go), 0);
    value = 1;
    EX_EQ(cc_chan_send(ch, &value, sizeof value), 0);
    rc[1] = cc_chan_recv_try(ch, &got, sizeof got);
    return NULL;
}
static void bias_made(void) {
    ch = cc_chan_create(sizeof(uint64_t), 1);
    spawn(&task, uses_biased, NULL);
    ex_settle();
    EX_CHECK(cc__get(&ch->bias) != 0);
}
static void calls_worker(void) {
    EX_EQ(cc_event_set(&go), 0);
    join(&task);
}
static void revokes(void) {
    rc[2] = cc_chan_recv_try(ch, &got_too, sizeof got_too);
}
static void one_got_it(void) {
    EX_EQ((rc[1] == 0) + (rc[2] == 0), 1);
    EX_EQ(got + got_too, 1);
}
SCENARIO(chan_bias_revoke, "CHANBIAS-1: the worker with the bias and a thread that revokes it", .workers = 1,
         .setup = bias_made, .threads = {calls_worker, revokes}, .check = one_got_it, .no_timer = true);

/* A receiver on a biased channel parks inside the biased lock; a thread revokes and sends. */
static void *waits_biased(void *arg) {
    uint64_t value = 100;
    for (int i = 0; i < 80; i++) (void)cc_chan_send_try(ch, &value, sizeof value);
    EX_EQ(cc_chan_recv(ch, &value, sizeof value), 0);
    EX_CHECK(cc__get(&ch->bias) != 0);
    EX_EQ(cc_event_wait(&go), 0);
    EX_EQ(cc_chan_recv(ch, arg, sizeof(uint64_t)), 0);
    return NULL;
}
static void biased_waiting(void) {
    ch = cc_chan_create(sizeof(uint64_t), 1);
    spawn(&task, waits_biased, &got);
    ex_settle();
}
static void sends_from_outside(void) {
    uint64_t value = 1;
    EX_EQ(cc_chan_send(ch, &value, sizeof value), 0);
}
static void biased_got(void) {
    EX_EQ(got, 1);
}
SCENARIO(chan_bias_park, "CHANBIAS-1: a fiber parks on a biased channel while a thread sends", .workers = 1,
         .setup = biased_waiting, .threads = {calls_worker, sends_from_outside}, .check = biased_got, .no_timer = true);
