/* wait.c - src/wait: waits on an object behind a lock, waits with a latch, deadlines, wakes. */
#include "wait/wait.h"
#include "explore.h"

#include <ccc/ccc.h>
#include <errno.h>

/* ---- an object with a lock; OS threads ---- */

static struct lock lock;
static struct waiter *waiting;
static bool happened;
static int data;
static _Atomic uint32_t claims, ended_by_object;

static enum wake_reason wait_for_it(uint64_t deadline) {
    struct waiter waiter;
    EX_EQ(cc__waiter_init(&waiter, cc__worker(), deadline), 0);
    cc__lock_take(&lock);
    if (happened) {
        cc__lock_release(&lock);
        return 0;
    }
    waiting = &waiter;
    enum wake_reason reason = cc__wait_locked(&waiter, &lock, (struct wait_what){PARK_QUEUE, NULL});
    if (reason == WAKE_OBJECT) {
        (void)cc__add_relaxed(&ended_by_object, 1);
        EX_EQ(data, 3);
    } else {
        cc__lock_take(&lock);
        if (waiting == &waiter) waiting = NULL;
        cc__lock_release(&lock);
    }
    return reason;
}
static void waits(void) {
    (void)wait_for_it(WAIT_FOREVER);
}
static void waits_not_long(void) {
    (void)wait_for_it(cc_after_ns(3000).ns);
}
static void signals(void) {
    struct wakes wakes;
    cc__wakes_init(&wakes);
    cc__lock_take(&lock);
    if (waiting != NULL && cc__wakes_claim_locked(&wakes, waiting, WAKE_OBJECT)) {
        (void)cc__add_relaxed(&claims, 1);
        data = 3;
    }
    waiting = NULL;
    happened = true;
    cc__lock_release(&lock);
    if (cc__wakes_any(&wakes)) cc__wakes_flush(&wakes);
}
static void claims_match(void) {
    EX_EQ(cc__get(&claims), cc__get(&ended_by_object));
}
SCENARIO(wait_thread, "WAIT-1: an OS thread waits, another one signals it", .threads = {waits, signals},
         .check = claims_match);
SCENARIO(wait_thread_deadline, "WAIT-3: the deadline and two wakers", .threads = {waits_not_long, signals, signals},
         .check = claims_match);

/* ---- an object without a lock: publish, then look ---- */

static _Atomic uint32_t flag;
static struct waiter *_Atomic slot;
static struct lock slot_lock; /* so that a waker has finished with a waiter that leaves */

static int publish(void *object, struct waiter *waiter, void *io) {
    (void)object, (void)io;
    cc__set_seq(&slot, waiter);
    if (cc__get_seq(&flag) != 0) (void)cc__waiter_wake(waiter, WAKE_OBJECT);
    return 0;
}
static void unpublish(void *object, struct waiter *waiter) {
    (void)object, (void)waiter;
    cc__lock_take(&slot_lock);
    cc__set(&slot, NULL);
    cc__lock_release(&slot_lock);
}
static const struct waitable_ops flag_ops = {publish, unpublish};

static void waits_for_flag(void) {
    if (cc__get_seq(&flag) == 0) EX_EQ(cc__fiber_wait(NULL, NULL, &flag_ops, WAIT_FOREVER, PARK_FLAG), 0);
    EX_EQ(cc__get_seq(&flag), 1);
}
static void waits_for_flag_soon(void) {
    if (cc__get_seq(&flag) != 0) return;
    int rc = cc__fiber_wait(NULL, NULL, &flag_ops, cc_after_ns(3000).ns, PARK_FLAG);
    EX_CHECK(rc == 0 || rc == ETIMEDOUT);
}
static void sets_flag(void) {
    cc__set_seq(&flag, 1);
    cc__lock_take(&slot_lock);
    struct waiter *waiter = cc__get_seq(&slot);
    if (waiter != NULL) (void)cc__waiter_wake(waiter, WAKE_OBJECT);
    cc__lock_release(&slot_lock);
}
SCENARIO(wait_flag_thread, "publish, then check: an OS thread", .threads = {waits_for_flag, sets_flag});
SCENARIO(wait_flag_deadline, "the same with a deadline", .threads = {waits_for_flag_soon, sets_flag});

static CCEvent go;
static void *fiber_waits_for_flag(void *arg) {
    EX_EQ(cc_event_wait(&go), 0);
    waits_for_flag();
    return arg;
}
static CCTask task;
static void parked_before(void) {
    EX_EQ(cc_spawn(&task, fiber_waits_for_flag, NULL, NULL), 0);
    ex_settle();
}
static void starts_it(void) {
    EX_EQ(cc_event_set(&go), 0);
    EX_EQ(cc_task_join(&task, NULL), 0);
}
SCENARIO(wait_flag_fiber, "LATCH-1: a fiber, on a worker", .workers = 1, .setup = parked_before,
         .threads = {starts_it, sets_flag}, .no_timer = true);

/* ---- park_if ---- */

static struct fiber *_Atomic parker;
static _Atomic uint64_t parker_ticket;
static void *parks_if(void *arg) {
    EX_EQ(cc_event_wait(&go), 0);
    struct fiber *self = cc__sched_current(cc__worker());
    for (;;) {
        uint64_t ticket = cc__park_open(self, PARK_FLAG);
        cc__set_seq(&parker_ticket, ticket);
        cc__set_seq(&parker, self);
        if (cc__park_if(self, &flag, 0) == 0) break;
    }
    EX_EQ(cc__get_seq(&flag), 1);
    return arg;
}
static void park_if_setup(void) {
    EX_EQ(cc_spawn(&task, parks_if, NULL, NULL), 0);
    ex_settle();
}
static void sets_and_wakes(void) {
    cc__set_seq(&flag, 1);
    struct fiber *f = cc__get_seq(&parker);
    if (f != NULL) (void)cc__fiber_wake(f, cc__get_seq(&parker_ticket), WAKE_OBJECT);
}
SCENARIO(park_if_wake, "park_if: change the flag, then wake", .workers = 1, .setup = park_if_setup,
         .threads = {starts_it, sets_and_wakes}, .no_timer = true);

/* ---- a sleep that is cancelled ---- */

static int slept = -1;
static void *sleeps(void *arg) {
    slept = cc_sleep_ms(1);
    return arg;
}
static void asleep(void) {
    EX_EQ(cc_spawn(&task, sleeps, NULL, NULL), 0);
    ex_settle();
}
static CCTask other;
static void asleep_two_handles(void) {
    asleep();
    EX_EQ(cc_task_dup(&task, &other), 0);
}
static void cancels_other(void) {
    EX_EQ(cc_task_cancel(&other), 0);
    EX_EQ(cc_task_detach(&other), 0);
}
static void joins(void) {
    EX_EQ(cc_task_join(&task, NULL), 0);
    EX_CHECK(slept == 0 || slept == ECANCELED);
}
SCENARIO(sleep_cancel, "CANCEL-1: a timer and a canceller, at one sleep", .workers = 1, .setup = asleep_two_handles,
         .threads = {joins, cancels_other});
static void wakes_then_joins(void) {
    EX_EQ(cc_event_set(&go), 0);
    EX_EQ(cc_task_join(&task, NULL), 0);
    EX_EQ(slept, ECANCELED);
}
/* Shielded from the event's wait: only the sleep is cancelled, or is cancelled before it begins. */
static void *shielded_then_sleeps(void *arg) {
    bool begun = cc_shield_begin();
    EX_EQ(cc_event_wait(&go), 0);
    cc_shield_end(begun);
    slept = cc_sleep_ms(100000);
    return arg;
}
static void about_to_sleep_shielded(void) {
    EX_EQ(cc_spawn(&task, shielded_then_sleeps, NULL, NULL), 0);
    ex_settle();
    EX_EQ(cc_task_dup(&task, &other), 0);
}
SCENARIO(park_cancel, "CANCEL-1: a fiber parks while it is cancelled", .workers = 1, .setup = about_to_sleep_shielded,
         .threads = {wakes_then_joins, cancels_other}, .no_timer = true);

/* A shield begins, and a wait inside it, while the canceller checks. */
static CCEvent happens;
static void *shields_on_signal(void *arg) {
    (void)cc_event_wait(&go); /* or is cancelled there */
    bool begun = cc_shield_begin();
    slept = cc_event_wait(&happens);
    cc_shield_end(begun);
    return arg;
}
static void about_to_shield(void) {
    EX_EQ(cc_spawn(&task, shields_on_signal, NULL, NULL), 0);
    ex_settle();
    EX_EQ(cc_task_dup(&task, &other), 0);
}
static void cancels_then_happens(void) {
    cancels_other();
    EX_EQ(cc_event_set(&happens), 0);
}
static void starts_shield(void) {
    starts_it();
    EX_EQ(slept, 0);
}
SCENARIO(park_shield, "CANCEL-2: a shield begins while its fiber is cancelled", .workers = 1, .setup = about_to_shield,
         .threads = {starts_shield, cancels_then_happens}, .no_timer = true);

/* With two workers: the canceller takes no lock, and may run the fiber itself. */
static CCEvent never;
static CCChan *nobody_sends;
static CCTask canceller;
static void *waits_again(void *arg) {
    (void)cc_event_wait(&go); /* or is cancelled there */
    slept = cc_event_wait(&never);
    return arg;
}
static void *receives_nothing(void *arg) {
    uint64_t value;
    (void)cc_event_wait(&go);
    slept = cc_chan_recv(nobody_sends, &value, sizeof value);
    return arg;
}
static void *cancels_on_signal(void *arg) {
    EX_EQ(cc_event_wait(&go), 0);
    EX_EQ(cc_task_cancel(arg), 0);
    return NULL;
}
static void and_canceller(CCTaskFn fn) {
    EX_EQ(cc_spawn(&task, fn, NULL, NULL), 0);
    EX_EQ(cc_spawn(&canceller, cancels_on_signal, &task, NULL), 0);
    ex_settle();
}
static void waiter_and_canceller(void) {
    and_canceller(waits_again);
}
static void receiver_and_canceller(void) {
    nobody_sends = cc_chan_create(sizeof(uint64_t), 0);
    and_canceller(receives_nothing);
}
static void starts_both(void) {
    EX_EQ(cc_event_set(&go), 0);
    EX_EQ(cc_task_join(&canceller, NULL), 0);
    EX_EQ(cc_task_join(&task, NULL), 0);
    EX_EQ(slept, ECANCELED);
}
SCENARIO(park_cancel_2, "CANCEL-1: a fiber parks on one worker and is cancelled on another", .workers = 2,
         .setup = waiter_and_canceller, .threads = {starts_both}, .no_timer = true);
SCENARIO(recv_cancel_2, "the same at a channel", .workers = 2, .setup = receiver_and_canceller,
         .threads = {starts_both}, .no_timer = true);
