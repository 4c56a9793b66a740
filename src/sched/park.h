/* park.h - how a fiber stops.
 *
 * The path of a fiber that holds its worker's biased lock and switches to one that has run before is inline: the frame
 * that waits is the one that switches. So a parked fiber has one frame less, and a program with thousands of them
 * touches one cache line less for each (docs/decisions/010-biased-channels.md).
 */
#ifndef CC_SCHED_PARK_H
#define CC_SCHED_PARK_H

#include "sched/island.h"
#include "sched/next.h"
#include "sched/record.h"
#include "sched/switch.h"

/* Stops the running fiber and runs another; `after` publishes the stopped one. Returns when the fiber runs again, with
 * the worker that it is on then. The caller counts the park, and has noted its object. */
struct worker *cc__sched_park(struct worker *w, struct fiber *self, unsigned reason, after_fn after, void *arg);

/* Queues the running fiber after the others that are ready on its worker. */
void cc__sched_yield(struct worker *w, struct fiber *self);
/* Lets one other fiber run, and those whose timers have fired. The caller makes sure that the rest get their turns. */
void cc__sched_yield_to_one(struct worker *w, struct fiber *self);

/* For calls that may switch, before they take a lock, or after they have used a channel: yields, if the running fiber's
 * turn has lasted too long (NEXT-3). Without that a fiber whose channels are always ready would keep its worker.
 * Returns the worker that it is on then. */
CC_COLD struct worker *cc__sched_preempted(struct worker *w);
CC_INLINE struct worker *cc__sched_may_preempt(struct worker *w) {
    return likely(cc__get(&w->runq.preempt) == 0) ? w : cc__sched_preempted(w);
}

/* RUNNABLE -> RUNNING, for a fiber that was just taken from the own queue. before: as for cc__sched_record_run. */
CC_INLINE void cc__park_run_next(struct worker *w, struct fiber *next, enum record_kind before) {
    cc__spec_run_hot(next, w->core.owner);
    cc__sched_record_run(w, next, before);
    cc__probe2(run, next, w);
    cc__island_check(w, next);
    cc__state_run(next, w->core.owner);
}

/* The same, while `self` parks. */
CC_INLINE void cc__park_switch(struct worker *w, struct fiber *self, unsigned reason, struct fiber *next) {
    cc__spec_run_hot(next, w->core.owner);
    cc__sched_record_switch(w, self, reason, next);
    cc__probe2(run, next, w);
    cc__island_check(w, next);
    cc__state_run(next, w->core.owner);
}

/* The other cases: `next` is fresh; or it is NULL, and the worker's own stack has to decide. */
struct worker *cc__park_slow(struct worker *w, struct fiber *self, struct fiber *next, unsigned reason, after_fn after,
                             void *arg);

CC_INLINE struct worker *cc__park_for(struct worker *w, struct fiber *self, struct fiber *next, unsigned reason,
                                      after_fn after, void *arg) {
    if (unlikely(next == NULL || cc__get(&next->stack) == NULL))
        return cc__park_slow(w, self, next, reason, after, arg);
    cc__park_switch(w, self, reason, next);
    return cc__switch_fiber(w, self, next, after, arg);
}

/* As cc__sched_park, by a fiber that holds the biased lock of `w`; `after` releases it. */
CC_INLINE struct worker *cc__park_biased(struct worker *w, struct fiber *self, unsigned reason, after_fn after,
                                         void *arg) {
    cc__held_check_park();
    cc__fiber_note_turn(self, cc__get(&w->core.turns));
    struct fiber *next = NULL;
    if (likely(cc__next_turn(w))) {
        next = cc__runq_pick_owner(w);
        cc__next_plan_sharing(w);
    }
    return cc__park_for(w, self, next, reason, after, arg);
}

#endif
