/* switch.h - direct switches from one fiber to another.
 *
 * The next fiber is known before the switch. What has to wait until the old stack is quiet is the after-switch action,
 * which the fiber leaves with the worker and which runs first on the next stack. The worker is passed in a register, so
 * it is not read from thread-local storage again.
 */
#ifndef CC_SCHED_SWITCH_H
#define CC_SCHED_SWITCH_H

#include "sched/island.h"
#include "sched/sched.h"

/* First on a stack that was switched to. */
CC_INLINE void cc__switch_arrived(struct worker *w) {
    after_fn after = cc__get(&w->core.after);
    after(w, cc__get(&w->core.after_arg));
}

/* The first functions on a fresh stack, and on that of a task that its joiner runs; in run.c. */
void cc__run_fiber(void *worker);
CC_NORETURN void cc__run_joined(void *worker, struct context *joiner);

/* For the sanitizers; without them, nothing is loaded. */
CC_INLINE struct san *cc__switch_san(struct fiber *f) {
#if defined(CC_ASAN) || defined(CC_TSAN)
    return &cc__get(&f->stack)->san;
#else
    (void)f;
    return NULL;
#endif
}

/* For the race detector: on an island each turn happens after the last one (ISLAND-1). Elsewhere a switch must not
 * order the fibers of a worker. */
CC_INLINE void cc__switch_turn_ends(struct worker *w) {
    (void)w;
#ifdef CC_TSAN
    if (cc__worker_is_island(w)) cc__san_release(&w->thread);
#endif
}
CC_INLINE void cc__switch_turn_begins(struct worker *w) {
    (void)w;
#ifdef CC_TSAN
    if (cc__worker_is_island(w)) cc__san_acquire(&w->thread);
#endif
}

/* A fresh fiber gets its stack. */
CC_INLINE void cc__switch_bind(struct fiber *f, struct stack *stack) {
    cc__set(&f->stack, stack);
    cc__san_begin(&stack->san, stack->base, cc__stack_size(stack));
}

/* Whether the running fiber has active C++ exceptions on this thread (CXX-1): then it switches with the functions
 * below, which save them. */
CC_INLINE bool cc__switch_takes_cxx(struct worker *w) {
    return unlikely(cc__cxx_busy(cc__get(&w->core.cxx)));
}
struct worker *cc__switch_native_cxx(struct worker *w, struct fiber *self, after_fn after, void *arg);
struct worker *cc__switch_fiber_cxx(struct worker *w, struct fiber *self, struct fiber *next, after_fn after,
                                    void *arg);
struct worker *cc__switch_fresh_cxx(struct worker *w, struct fiber *self, struct fiber *next, struct stack *stack,
                                    after_fn after, void *arg);

/* From `self` to the worker's own stack. */
CC_INLINE struct worker *cc__switch_native(struct worker *w, struct fiber *self, after_fn after, void *arg) {
    if (cc__switch_takes_cxx(w)) return cc__switch_native_cxx(w, self, after, arg);
    cc__set(&w->core.after, after);
    cc__set(&w->core.after_arg, arg);
    cc__set(&w->core.current, NULL);
    cc__switch_turn_ends(w);
    cc__san_leave(cc__switch_san(self), &w->core.san);
    w = cc__context_switch(&self->context, &w->core.native, w);
    cc__san_arrive(cc__switch_san(self));
    cc__switch_turn_begins(w);
    cc__switch_arrived(w);
    return w;
}

/* From `self` to `next`, which has run before and is RUNNING already. */
CC_INLINE struct worker *cc__switch_fiber(struct worker *w, struct fiber *self, struct fiber *next, after_fn after,
                                          void *arg) {
    if (cc__switch_takes_cxx(w)) return cc__switch_fiber_cxx(w, self, next, after, arg);
    cc__set(&w->core.after, after);
    cc__set(&w->core.after_arg, arg);
    cc__set(&w->core.current, next);
    cc__switch_turn_ends(w);
    cc__san_leave(cc__switch_san(self), cc__switch_san(next));
    w = cc__context_switch(&self->context, &next->context, w);
    cc__san_arrive(cc__switch_san(self));
    cc__switch_turn_begins(w);
    cc__switch_arrived(w);
    return w;
}

/* From `self` to `next`, which has never run, is RUNNING already and gets `stack`. */
CC_INLINE struct worker *cc__switch_fresh(struct worker *w, struct fiber *self, struct fiber *next, struct stack *stack,
                                          after_fn after, void *arg) {
    struct context first;
    if (cc__switch_takes_cxx(w)) return cc__switch_fresh_cxx(w, self, next, stack, after, arg);
    cc__switch_bind(next, stack);
    cc__context_start(&first, cc__stack_top(stack), cc__run_fiber);
    cc__set(&w->core.after, after);
    cc__set(&w->core.after_arg, arg);
    cc__set(&w->core.current, next);
    cc__switch_turn_ends(w);
    cc__san_leave(cc__switch_san(self), &stack->san);
    w = cc__context_switch(&self->context, &first, w);
    cc__san_arrive(cc__switch_san(self));
    cc__switch_turn_begins(w);
    cc__switch_arrived(w);
    return w;
}

#endif
