/* joined.h - a joiner runs the task that it waits for, at once, as a call (RUN-3 in run.c).
 *
 * Inline, because fork and join cost tens of nanoseconds: the frame that joins is the one that waits.
 */
#ifndef CC_SCHED_JOINED_H
#define CC_SCHED_JOINED_H

#include "sched/next.h"
#include "sched/record.h"
#include "sched/switch.h"

#define RUN_CANCELLED ((struct worker *)(uintptr_t)1)

/* Whether the fiber is fresh and in this worker's queue. Exact inside the worker's biased lock, else a hint. */
CC_INLINE bool cc__run_queued_here(struct worker *w, struct fiber *f, uint64_t word, uint32_t generation) {
    return (word & (WORD_STATE | WORD_FRESH | WORD_OWNER)) ==
               (FIBER_RUNNABLE | WORD_FRESH | (uint64_t)w->core.owner << WORD_OWNER_SHIFT) &&
           cc__get(&f->generation) == generation; /* the record is not reused while it is queued here */
}

CC_INLINE bool cc__run_take_fresh(struct worker *w, struct fiber *f, uint32_t generation) {
    cc__bias_enter(&w->runq.bias);
    uint64_t word = cc__get(&f->word);
    bool here =
        cc__run_queued_here(w, f, word, generation) && cc__get(&f->handles) != 0 && cc__word_reason(word) != ARGS_BLOCK;
    if (likely(here)) {
        cc__list_remove(&f->link);
        cc__runq_sub_owner(&w->runq, 1);
        cc__state_run_fresh(f, word);
    }
    cc__bias_leave(&w->runq.bias);
    return here;
}

/* A poll is due. Returns the worker that the joiner is on afterwards; NULL: it joins the general way. */
CC_COLD struct worker *cc__run_joiner_polls(struct worker *w, struct fiber *self, struct fiber *f, uint32_t generation);

/* If `f` (of that generation) has not started and is in the calling worker's own queue, runs it while the running fiber
 * waits for it. Returns the worker that the caller is on when it has ended: the outcome is in the record, and the
 * caller completes it. RUN_CANCELLED: the caller's wait was cancelled, and the task continues by itself. NULL: the task
 * is elsewhere, or needs the general path, or the caller is cancelled. If a poll is due, other fibers run first; so the
 * worker may have changed after NULL, too. */
CC_INLINE struct worker *cc__run_here(struct worker *w, struct fiber *self, struct fiber *f, uint32_t generation) {
    if (unlikely(!cc__next_turn(w)) && (w = cc__run_joiner_polls(w, self, f, generation)) == NULL) return NULL;
    /* A cancelled caller takes the general path, which reports that. */
    struct stack *stack = cc__get(&w->core.stacks.first);
    if (unlikely(stack == NULL || (cc__get(&self->scope) & FIBER_CANCELLED) != 0)) return NULL;
    if (unlikely(cc__switch_takes_cxx(w) || !cc__run_take_fresh(w, f, generation))) return NULL;
    cc__stack_take_first(&w->core.stacks, stack);
    cc__fiber_note_object(self, f);
    cc__fiber_note_turn(self, cc__get(&w->core.turns));
    cc__switch_bind(f, stack);
    cc__probe3(park, self, PARK_JOIN, f);
    cc__sched_record_switch(w, self, PARK_JOIN, f);
    cc__probe2(run, f, w);
    cc__set(&w->core.current, f);
    cc__switch_turn_ends(w);
    cc__san_leave(cc__switch_san(self), &stack->san);
    w = cc__context_call(&self->context, cc__stack_top_below(stack, cc__get(&stack->cold)), cc__run_joined, w);
    cc__san_arrive(cc__switch_san(self));
    cc__switch_turn_begins(w);
    if (unlikely(cc__word_reason(cc__get_acquire(&self->word)) == WAKE_CANCEL)) { /* pairs with the claim */
        cc__switch_arrived(w);
        return RUN_CANCELLED;
    }
    cc__set(&w->core.current, self);
    cc__set(&f->stack, NULL);
    cc__san_end(&stack->san);
    cc__stack_give_cached(&w->core.stacks, stack);
    return w;
}

#endif
