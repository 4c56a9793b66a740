/* wake.h - how a fiber is made ready. */
#ifndef CC_SCHED_WAKE_H
#define CC_SCHED_WAKE_H

#include "sched/sched.h"

/* Claims a PARKED fiber, under its object's lock: true, and it is RUNNABLE and the caller's to enqueue. sole:
 * the wait has no other claimant, so a store will do, unless cc__sched_contest says otherwise. Any thread. */
bool cc__sched_claim(struct fiber *f, uint64_t ticket, enum wake_reason reason, bool sole);

/* From now on every claim is a compare-and-swap, and none that is not is under way: a canceller may claim what
 * it finds. The price of cancelling sole waits is paid here, by the canceller: a heavy barrier. */
void cc__sched_contest(bool on);

/* Puts a fiber that the caller has just made RUNNABLE (claimed) into a queue. Any thread. */
void cc__sched_ready(struct fiber *f);
/* The same to a worker of the pool, by an OS thread or a fiber of an island. Inside the runtime. */
void cc__sched_send(struct fiber *f);
/* The same for n fibers that have run before; empties `list`. */
void cc__sched_ready_all(struct link *list, uint32_t n);

/* Makes a filled, IDLE record runnable. w: the calling worker or NULL. */
void cc__sched_spawn(struct worker *w, struct fiber *f, enum fiber_args args);

/* Waits until the worker with that tag has been seen outside of its biased lock, after a heavy barrier: what the
 * caller has written before is seen by every section that follows (CLAIM-1). A worker of an earlier start is outside
 * for ever. Any thread. */
void cc__sched_await_outside(uint64_t tag);

#endif
