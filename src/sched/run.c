/* run.c - a fiber's life on the CPU: first instruction, yield, park, last instruction.
 *
 * RUN-1  A fiber's last use of its stack is a jump to another one; whatever ends its life (giving the stack
 *        back, telling the joiners) happens after that, on the other stack.
 * RUN-2  A fresh fiber that follows one that ended takes over its stack, which is still warm.
 * RUN-3  A joiner may run the task that it waits for, if that has not started, as a call on a stack of the task's own.
 *        The joiner is PARKED meanwhile, in a join like any other: its context is complete, its stack quiet, and a
 *        canceller may claim it at any time. The task may park and migrate. At its end it claims the joiner; if it
 *        wins, the call returns, and if it loses, the task ends like any other (ordering: the table below).
 * RUN-4  A fiber's function is left by its return, or by an escape to where it was called (a panic that nobody
 *        stops).
 *
 * The wait of a joiner that runs its task has two claimants, the task's end and a canceller; as claim.c has it for all
 * sole waits:
 *
 *   the task, on its own stack            a canceller
 *   joiner PARKED (release)               a bit in the joiner's `scope`
 *   -- light barrier --                   contested + 1, -- heavy barrier --
 *   a bit? claim, make the joiner ready   wait until each worker is outside of its biased lock
 *   ... the task's function ...           joiner PARKED (acquire), not shielded? compare-and-swap, make it ready
 *   inside the biased lock:               contested - 1 (release)
 *     contested (acquire)? compare-and-swap: PARKED, that ticket -> RUNNING
 *     else still that word? store RUNNING
 *
 * No lock orders a joiner that was cancelled against the task's end: it may be in its next wait by then, or gone. So the
 * task compares the whole word, ticket included, on the path without a compare-and-swap too.
 *
 * When it is time to look at others the joiner does so itself, and stands back for them (next.c); then it runs its task
 * all the same.
 */
#include "base/fatal.h"
#include "base/mem.h"
#include "sched/inbox.h"
#include "sched/inject.h"
#include "sched/joined.h"
#include "sched/park.h"
#include "sched/upcalls.h"

#include <string.h>

/* ---- the end ---- */

static void after_exit(struct worker *w, void *arg) {
    struct fiber *f = arg;
    struct stack *stack = cc__get(&f->stack);
    if (stack != NULL) {
        cc__set(&f->stack, NULL);
        cc__san_end(&stack->san);
        cc__stack_give(&w->core.stacks, stack);
    }
    void *self = cc__san_apart_begin();
    cc__san_acquire(&f->fn);
    cc__upcall_task_ended(w, f);
    cc__san_release(w); /* and its traces in the worker, to whoever frees that */
    cc__san_apart_end(self);
}

/* The fiber that runs after one that has ended; RUNNING unless it is fresh. NULL: the worker goes to its own stack. */
static struct fiber *successor(struct worker *w) {
#ifdef CC_TSAN
    /* What follows an exit would be ordered after it in the race detector's eyes: let that be no user's fiber. */
    (void)w;
    return NULL;
#else
    struct fiber *next = cc__next_local(w);
    if (next != NULL && cc__get(&next->stack) != NULL) cc__park_run_next(w, next);
    return next;
#endif
}

/* The worker, after the user's function has returned; in a forked child there is none. */
static struct worker *worker_still(void) {
    struct worker *w = cc__worker();
    if (unlikely(w == NULL)) cc__upcall_orphaned();
    return w;
}

/* Inline: ASan's shadow of a frame that was entered on this stack is gone when it has been told of the leave, and `first`
 * with it; the fiber's first function was entered before ASan knew the stack. */
CC_INLINE CC_NORETURN void leave_for_good(struct fiber *self) {
    struct worker *w = worker_still();
    struct stack *stack = cc__get(&self->stack);
    struct fiber *next = successor(w);
    cc__set(&w->core.after, after_exit);
    cc__set(&w->core.after_arg, self);
    cc__san_release(&self->fn); /* what the fiber wrote, to whoever tells its joiners */
    cc__san_release(stack);     /* and the stack itself, to its next tenant */
    cc__set(&w->core.current, next);
    cc__san_release(w); /* and its traces in the worker, to whoever frees that */
    if (next == NULL) {
        cc__san_leave(NULL, &w->core.san);
        cc__context_jump(&w->core.native, w);
    } else if (cc__get(&next->stack) != NULL) {
        cc__san_leave(NULL, cc__switch_san(next));
        cc__context_jump(&next->context, w);
    } else if (cc__stack_size(stack) != cc__stack_default() || cc__state_args(next) == ARGS_BLOCK) {
        /* A stack of another size is not for everyone: let the worker's own stack find one. */
        cc__set(&w->core.pending, next);
        cc__set(&w->core.current, NULL);
        cc__san_leave(NULL, &w->core.san);
        cc__context_jump(&w->core.native, w);
    } else {
        struct context first;
        cc__san_stack_clean(stack->base,
                            cc__stack_size(stack)); /* what this function has poisoned: it does not return */
        cc__set(&self->stack, NULL);
        cc__park_run_next(w, next);
        cc__switch_bind(next, stack);
        cc__context_start(&first, cc__stack_top(stack), cc__run_fiber);
        cc__san_leave(NULL, &stack->san);
        cc__context_jump(&first, w);
    }
}

/* ---- the beginning ---- */

/* Calls the fiber's function on the current stack, which is bound to it, with its argument out of the record,
 * whose place the saved context takes, and later the outcome. A panic comes back here too (RUN-4). */
CC_INLINE void call(struct fiber *self, struct stack *stack, struct fiber_cold *cold) {
    struct boundary base;
    _Alignas(max_align_t) unsigned char copy[FIBER_INLINE_ARGS];
    void *arg;
    CCTaskFn fn = self->fn;
    cold->name[0] = '\0';
    cold->block = NULL;
    cold->extra = NULL;
    cold->base = NULL;
    cold->deferred = &base.node;
    base.node.fn = MARK_FIBER;
    enum fiber_args kind = cc__state_args(self);
    if (likely(kind == ARGS_POINTER)) {
        memcpy(&arg, self->args, sizeof arg);
    } else if (kind == ARGS_INLINE) {
        memcpy(copy, self->args, FIBER_INLINE_ARGS);
        arg = copy;
    } else {
        memcpy(&cold->block, self->args, sizeof cold->block);
        memcpy(cold->name, cold->block->name, sizeof cold->name);
        arg = cold->block->args_size > 0 ? cold->block->args : cold->block->pointer;
    }
    cc__context_inherit(&self->context, cc__stack_top(stack));
    if (cc__get(&self->scope) != 0) cc__upcall_scope_begin(self, cold);
    void *result = cc__escape_call(&base.escape, fn, arg);
    if (likely(cold->deferred == &base.node && cold->extra == NULL)) {
        self->outcome.result = result;
        self->outcome.status = 0;
    } else {
        if (cc__get(&self->scope) != 0) cc__upcall_scope_check(self, cold);
        cc__upcall_fiber_ends(self, cold, &base, result);
    }
    if (cc__get(&self->scope) != 0) cc__upcall_scope_end(self, cold);
}

/* Not inlined: then the registers that an escape may spoil are saved here, and the caller keeps its own. */
static CC_NOINLINE void call_apart(struct fiber *self, struct stack *stack, struct fiber_cold *cold) {
    call(self, stack, cold);
}

void cc__run_fiber(void *worker) {
    struct worker *w = worker;
    struct fiber *self = cc__get(&w->core.current);
    struct stack *stack = cc__get(&self->stack);
    cc__san_arrive(&stack->san);
    cc__san_acquire(stack);             /* its last tenant has left it */
    (void)cc__get_acquire(&self->word); /* pairs with the spawner's release */
    cc__switch_arrived(w);

    struct fiber_cold *cold = cc__get(&stack->cold);
    call_apart(self, stack, cold);
    if (unlikely(cold->block != NULL)) cc__mem_free(cold->block);
    leave_for_good(self);
}

/* ---- in between ---- */

/* The exceptions that a fiber takes along lie in its frame until it goes on, on whatever thread. */
static struct cxx_state take_cxx(struct worker *w) {
    struct cxx_globals *g = cc__cxx_here(); /* the C++ runtime may have come after the worker */
    struct cxx_state mine = g != &cc__cxx_none ? cc__cxx_state(g) : (struct cxx_state){0};
    cc__set(&w->core.cxx, g);
    cc__cxx_put(g, (struct cxx_state){0});
    return mine;
}

CC_COLD struct worker *cc__switch_native_cxx(struct worker *w, struct fiber *self, after_fn after, void *arg) {
    struct cxx_state mine = take_cxx(w);
    w = cc__switch_native(w, self, after, arg);
    cc__cxx_put(cc__cxx_here(), mine);
    return w;
}

CC_COLD struct worker *cc__switch_fiber_cxx(struct worker *w, struct fiber *self, struct fiber *next, after_fn after,
                                            void *arg) {
    struct cxx_state mine = take_cxx(w);
    w = cc__switch_fiber(w, self, next, after, arg);
    cc__cxx_put(cc__cxx_here(), mine);
    return w;
}

CC_COLD struct worker *cc__switch_fresh_cxx(struct worker *w, struct fiber *self, struct fiber *next,
                                            struct stack *stack, after_fn after, void *arg) {
    struct cxx_state mine = take_cxx(w);
    w = cc__switch_fresh(w, self, next, stack, after, arg);
    cc__cxx_put(cc__cxx_here(), mine);
    return w;
}

CC_NOINLINE struct worker *cc__park_slow(struct worker *w, struct fiber *self, struct fiber *next, after_fn after,
                                         void *arg) {
    if (likely(next != NULL)) {
        struct stack *stack = cc__state_args(next) == ARGS_BLOCK ? NULL : cc__stack_take_cached(&w->core.stacks);
        if (stack != NULL) {
            cc__park_run_next(w, next);
            return cc__switch_fresh(w, self, next, stack, after, arg);
        }
        cc__set(&w->core.pending, next);
    }
    return cc__switch_native(w, self, after, arg);
}

struct worker *cc__sched_park(struct worker *w, struct fiber *self, after_fn after, void *arg) {
    cc__held_check_park();
    cc__fiber_note_turn(self, cc__get(&w->core.turns));
    return cc__park_for(w, self, cc__next_local(w), after, arg);
}

/* ---- for a joiner ---- */

/* In front of those that never ran: when the others have had their turns, it goes on where it was. */
static void after_standing_back(struct worker *w, void *arg) {
    struct fiber *f = arg;
    cc__bias_enter(&w->runq.bias);
    cc__state_yield(f, w->core.owner);
    cc__list_push_front(&w->runq.fresh, &f->link);
    cc__runq_add_owner(&w->runq, 1);
    cc__bias_leave(&w->runq.bias);
}

/* If somebody waits who has run before, they go first, and then the joiner runs its task all the same: what it has begun
 * it ends depth first. */
struct worker *cc__run_joiner_polls(struct worker *w, struct fiber *self, struct fiber *f, uint32_t generation) {
    if (unlikely(cc__sched.simulated)) {
        cc__upcall_sim_point();
        return NULL;
    }
    /* A joiner that need not wait gives way to nobody; one that would wait does that the ordinary way. */
    if (!cc__run_sits_here(w, f, cc__get(&f->word), generation) || cc__get(&w->core.stacks.first) == NULL) return NULL;
    if (unlikely(cc__trace_on(TRACE_SPEC))) return NULL;
    cc__held_check_park();
    return cc__next_poll_for_joiner(w) ? cc__switch_native(w, self, after_standing_back, self) : w;
}

/* The end of the joiner's wait by the task's end. False: it was cancelled, and may be anywhere (RUN-3). */
CC_INLINE bool claim_joiner(struct worker *w, struct fiber *joiner, uint64_t parked) {
    cc__bias_enter(&w->runq.bias);
    bool contested = unlikely(cc__get_acquire(&cc__sched.contested)); /* CLAIM-2 */
    bool won = cc__state_resume(joiner, parked, w->core.owner, contested);
    cc__bias_leave(&w->runq.bias);
    return won;
}

/* First on the stack of a task that its joiner runs; the joiner's stack is quiet. Returns the worker to the joiner, if
 * that still waits. */
CC_NORETURN void cc__run_joined(void *worker, struct context *from) {
    struct worker *w = worker;
    struct fiber *self = cc__get(&w->core.current), *joiner = container_of(from, struct fiber, context);
    struct stack *stack = cc__get(&self->stack);
    cc__san_arrive(&stack->san);
    cc__san_acquire(stack);             /* its last tenant has left it */
    (void)cc__get_acquire(&self->word); /* pairs with the spawner's release */
    uint64_t parked = cc__state_park_join(joiner);
    cc__barrier_light(); /* CANCEL-1 */
    if (unlikely(cc__get(&cc__sched.cancels) != 0) && cc__upcall_cancelled(joiner, parked & WORD_TICKET))
        cc__sched_ready(joiner);

    call(self, stack, cc__get(&stack->cold));

    w = worker_still(); /* it may have parked, and come back elsewhere */
    if (unlikely(!claim_joiner(w, joiner, parked))) leave_for_good(self);
    cc__san_release(&self->join_lock.word); /* what it wrote, to its joiners */
    cc__san_release(stack);                 /* and the stack itself, to its next tenant */
    cc__san_leave(NULL, cc__switch_san(joiner));
    cc__context_return(&joiner->context, w);
}

/* ---- yield ---- */

/* Still inside the biased lock, which was entered before the switch. */
static void after_yield(struct worker *w, void *arg) {
    struct fiber *f = arg;
    cc__state_yield(f, w->core.owner);
    cc__list_push_back(&w->runq.fifo, &f->link);
    cc__runq_add_owner(&w->runq, 1);
    cc__bias_leave(&w->runq.bias);
}

static void after_yield_native(struct worker *w, void *arg) {
    cc__bias_enter(&w->runq.bias);
    cc__runq_level_owner(&w->runq);
    after_yield(w, arg);
}

CC_INLINE void yield_fiber(struct worker *w, struct fiber *self) {
    struct runq *q = &w->runq;
    cc__held_check_park();
    if (unlikely(!cc__next_turn(w))) {
        cc__switch_native(w, self, after_yield_native, self);
        return;
    }
    cc__bias_enter(&q->bias);
    if (unlikely(cc__get(&q->slot) != NULL || !cc__list_empty(&q->fresh))) cc__runq_level_owner(q);
    if (likely(!cc__list_empty(&q->fifo))) {
        struct fiber *next = cc__fiber_of(cc__get(&q->fifo.next));
        if (likely(cc__get(&next->stack) != NULL)) {
            (void)cc__runq_pop_fifo(&q->fifo);
            cc__runq_sub_owner(q, 1);
            cc__next_mind_others(w);
            cc__park_run_next(w, next);
            cc__switch_fiber(w, self, next, after_yield, self);
            return;
        }
        cc__bias_leave(&q->bias);
        cc__switch_native(w, self, after_yield_native, self);
        return;
    }
    cc__bias_leave(&q->bias);
    /* Alone here; others may be waiting elsewhere. */
    if (unlikely(!cc__inbox_empty(w) || cc__inject_len() != 0)) cc__switch_native(w, self, after_yield_native, self);
}

CC_COLD void cc__sched_yield(struct worker *w, struct fiber *self) {
    yield_fiber(w, self);
}

void cc_yield(void) {
    struct worker *w = cc__worker();
    struct fiber *self = cc__sched_current(w);
    if (self != NULL)
        yield_fiber(w, self);
    else if (likely(!cc__upcall_sim_yield()))
        cc__thread_yield();
}
