/* spec.h - invariants of fibers that the edges of the state word do not check by themselves.
 *
 * Every edge checks the state it starts from, in every build (STATE-2); these rules are about where a fiber is in each
 * state. HACKING.md has a table of what is checked where. CC_SPEC_ASSERT=1 routes all parks, wakes and turns through
 * the slow paths (sched/trace_route.c), and no joiner runs its task itself.
 *
 * SPEC-1  Only a RUNNABLE fiber that is not latched is enqueued.
 * SPEC-2  A worker runs a RUNNABLE fiber that it took from a queue; if it is fresh, the worker owns it by then
 *         (RUNQ-2).
 * SPEC-3  A claim ends a wait that has a reason; it latches a fiber whose stack is live (PARKING), and never enqueues
 *         it.
 * SPEC-4  A fiber is parked by the worker that it ran on, from a stack that is not its own (STATE-4).
 */
#ifndef CC_FIBER_SPEC_H
#define CC_FIBER_SPEC_H

#include "fiber/state.h"
#include "trace/trace.h"

CC_INLINE bool cc__spec_on(void) {
#ifdef CC_DEBUG
    return true;
#else
    return cc__trace_on(TRACE_SPEC);
#endif
}

/* The rules; `owner`: the worker's number plus one, as in a state word. */
void cc__spec_enqueue(struct fiber *f);
void cc__spec_run(struct fiber *f, unsigned owner);
void cc__spec_claim(struct fiber *f, uint64_t before, unsigned by);
void cc__spec_parked(struct fiber *f, uint64_t word, unsigned owner);

/* On a hot path: in debug builds only. */
CC_INLINE void cc__spec_enqueue_hot(struct fiber *f) {
    (void)f;
#ifdef CC_DEBUG
    cc__spec_enqueue(f);
#endif
}
CC_INLINE void cc__spec_run_hot(struct fiber *f, unsigned owner) {
    (void)f, (void)owner;
#ifdef CC_DEBUG
    cc__spec_run(f, owner);
#endif
}

#endif
