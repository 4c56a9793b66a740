/* wake.h - how a fiber is made ready. */
#ifndef CC_SCHED_WAKE_H
#define CC_SCHED_WAKE_H

#include "sched/sched.h"

/* Claims a PARKED fiber, under its object's lock: true, and it is RUNNABLE and the caller has to enqueue it. sole: the
 * wait has no other claimant, so a store suffices, unless contested (cc__sched_contest). Any thread. */
bool cc__sched_claim(struct fiber *f, uint64_t ticket, enum wake_reason reason, bool sole);

/* From now on every claim is a compare-and-swap, and no claim by a store is under way: a canceller may claim what it
 * finds. So the canceller pays for cancelling sole waits, with a heavy barrier. */
void cc__sched_contest(bool on);
/* The same for a cancellation, which has set `cancels`, and marked what it cancels: a fiber that parks from now on sees
 * the mark, or is seen to be parked. */
void cc__sched_cancel_begins(void);
void cc__sched_cancel_ends(void);
/* By a worker, now and then: cancellations are no longer frequent. */
CC_COLD void cc__sched_cancel_lingers(uint64_t now);

/* Enqueues a fiber that the caller has just made RUNNABLE (claimed). Any thread. */
void cc__sched_ready(struct fiber *f);
/* The same by an OS thread, or to or from an island. Inside the runtime. */
void cc__sched_send(struct fiber *f);
/* The same for n fibers that have run before; empties `list`. */
void cc__sched_ready_all(struct link *list, uint32_t n);

/* Makes a filled, IDLE record runnable. w: the calling worker or NULL. */
void cc__sched_spawn(struct worker *w, struct fiber *f, enum fiber_args args);

/* Waits until the worker with that tag has been seen outside of its biased lock, after a heavy barrier: every later
 * critical section sees what the caller has written before (CLAIM-1). A worker of an earlier start counts as outside.
 * Any thread. */
void cc__sched_await_outside(uint64_t tag);

#endif
