/* latch.c - waits on objects without a lock: the waiter is visible while its stack is still live, and the latch in the
 * state word keeps a wake that comes in between (README.md).
 *
 * LATCH-1  "Parked" and "a wake came first" are in one word, so check and mark are one atomic step.
 * LATCH-2  Only the thread that writes RUNNABLE enqueues (STATE-3).
 */
#include "wait/blocked.h"
#include "wait/cancel.h"

#include "sched/park.h"
#include "sched/wake.h"
#include "sim/sim.h"
#include "trace/trace.h"

#include <errno.h>

static void after_open(struct worker *w, void *waiter) {
    struct waiter o;
    cc__san_copy(&o, waiter, sizeof o); /* it is on the fiber's stack */
    /* Before the commit: from then on the fiber may run. */
    if (o.deadline != WAIT_FOREVER) cc__timer_arm(w, o.deadline, o.fiber, o.ticket);
    if (cc__state_commit(o.fiber) || cc__cancel_parked(o.fiber, o.ticket)) cc__sched_ready(o.fiber);
}

/* Parks a fiber whose wait is open and published; returns the wake_reason. */
static unsigned park_opened(struct worker *w, struct waiter *waiter, const void *object) {
    struct fiber *self = waiter->fiber;
    cc__fiber_note_object(self, object);
    unsigned reason = cc__word_reason(cc__get(&self->word)); /* or the wake_reason, if a wake came first */
    if (reason >= PARK_REASONS) reason = PARK_FLAG;
    cc__count(w, parks[reason]);
    cc__probe3(park, self, reason, object);
    (void)cc__sched_park(w, self, reason, after_open, waiter);
    unsigned woken_by = cc__word_reason(cc__get_acquire(&self->word)); /* pairs with the claim */
    if (waiter->deadline != WAIT_FOREVER && woken_by != WAKE_TIMER) cc__timer_disarm(w);
    return woken_by;
}

bool cc__fiber_wake(struct fiber *f, uint64_t ticket, enum wake_reason reason) { /* LATCH-2 */
    switch (cc__state_claim(f, ticket, reason)) {
    case CLAIM_WON:
        cc__sched_ready(f);
        return true;
    case CLAIM_LATCHED:
        return true;
    default:
        return false;
    }
}

bool cc__waiter_wake(struct waiter *waiter, enum wake_reason reason) {
    if (waiter->fiber != NULL) return cc__fiber_wake(waiter->fiber, waiter->ticket, reason);
    uint32_t waits = 0;
    _Atomic uint32_t *word = &waiter->word;
    if (!cc__cas(word, &waits, (uint32_t)reason)) return false;
    cc__futex_wake(word, 1);
    return true;
}

uint64_t cc__park_open(struct fiber *self, enum park_reason reason) {
    return cc__state_open(self, reason);
}

unsigned cc__park_if(struct fiber *self, _Atomic uint32_t *flag, uint32_t expected) {
    if (cc__get_seq(flag) != expected) {
        (void)cc__state_abort(self);
        cc__event(park_if, 0);
        return 0;
    }
    struct waiter waiter = {.fiber = self, .ticket = cc__get(&self->word) & WORD_TICKET, .deadline = WAIT_FOREVER};
    unsigned woken_by = park_opened(cc__worker(), &waiter, (const void *)flag);
    cc__event(park_if, woken_by);
    return woken_by;
}

int cc__fiber_wait(void *object, void *io, const struct waitable_ops *ops, uint64_t deadline, enum park_reason reason) {
    struct worker *w = cc__worker();
    struct fiber *self = cc__sched_current(w);
    struct waiter waiter = {.fiber = self, .deadline = deadline};
    if (self != NULL) {
        if (deadline != WAIT_FOREVER && !cc__timer_prepare(w)) return ENOMEM;
        waiter.ticket = cc__state_open(self, reason);
    }
    int rc = ops->publish(object, &waiter, io);
    if (rc != 0) {
        if (self != NULL) (void)cc__state_abort(self);
        return rc;
    }
    unsigned woken_by =
        self != NULL ? park_opened(w, &waiter, object) : cc__blocked_block(&waiter, (struct wait_what){reason, object});
    ops->unpublish(object, &waiter);
    return woken_by == WAKE_TIMER ? ETIMEDOUT : woken_by == WAKE_CANCEL ? ECANCELED : 0;
}
