/* park.h - how a fiber stops.
 *
 * The path of a fiber that holds its worker's biased lock and switches to one that has run before is inline: the frame
 * that waits is the one that switches, so a parked fiber keeps one frame less, and a program that has thousands of them
 * touches a cache line less for each (docs/decisions/010-biased-channels.md).
 */
#ifndef CC_SCHED_PARK_H
#define CC_SCHED_PARK_H

#include "sched/next.h"
#include "sched/switch.h"

/* Leaves the running fiber and runs something else; `after` makes it findable. Returns when the fiber runs
 * again, with the worker that it then is on. The caller counts the park: it knows the reason. */
struct worker *cc__sched_park(struct worker *w, struct fiber *self, after_fn after, void *arg);

/* Puts the running fiber behind the others that are ready on its worker. */
void cc__sched_yield(struct worker *w, struct fiber *self);

/* RUNNABLE -> RUNNING, of one that was just taken from the own queue. */
CC_INLINE void cc__park_run_next(struct worker *w, struct fiber *next) {
    cc__spec_run_hot(next, w->core.owner);
    cc__state_run(next, w->core.owner);
}

/* The rest: `next` is fresh, or NULL, and the worker's own stack is to decide. */
struct worker *cc__park_slow(struct worker *w, struct fiber *self, struct fiber *next, after_fn after, void *arg);

CC_INLINE struct worker *cc__park_for(struct worker *w, struct fiber *self, struct fiber *next, after_fn after,
                                      void *arg) {
    if (unlikely(next == NULL || cc__get(&next->stack) == NULL)) return cc__park_slow(w, self, next, after, arg);
    cc__park_run_next(w, next);
    return cc__switch_fiber(w, self, next, after, arg);
}

/* As cc__sched_park, by a fiber that holds the biased lock of `w`; `after` releases it. */
CC_INLINE struct worker *cc__park_biased(struct worker *w, struct fiber *self, after_fn after, void *arg) {
    cc__held_check_park();
    cc__fiber_note_turn(self, cc__get(&w->core.turns));
    struct fiber *next = NULL;
    if (likely(cc__next_turn(w))) {
        next = cc__runq_pick_owner(w);
        cc__next_mind_others(w);
    }
    return cc__park_for(w, self, next, after, arg);
}

#endif
