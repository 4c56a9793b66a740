/* run.c - the beginning and the end of a fiber, on a stack of its own or called by its joiner. park.c has what is in
 * between.
 *
 * RUN-1  A fiber's last use of its stack is a jump to another one. Everything that completes its end (giving the stack
 *        back, notifying the joiners) happens after that, on the other stack.
 * RUN-2  A fresh fiber that follows one that ended takes over its stack, which is still in the cache.
 * RUN-3  A joiner may run the task that it waits for, if that has not started, as a call on a stack of the task's own.
 *        Meanwhile the joiner is PARKED, in a join like any other: its context is complete, its stack quiet, and a
 *        canceller may claim it at any time. The task may park and migrate. At its end it claims the joiner; if it
 *        wins, the call returns, and if it loses, the task ends like any other (ordering: the table below).
 * RUN-4  A fiber's function is left by its return, or by an escape to where it was called (a panic that is not
 *        recovered).
 *
 * The wait of a joiner that runs its task has two claimants, the task's end and a canceller. As for all sole waits
 * (wake.c):
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
 * No lock orders a cancelled joiner against the task's end: the joiner may be in its next wait by then, or have ended.
 * So the task compares the whole word, ticket included, also on the path without a compare-and-swap.
 *
 * When a poll is due the joiner polls, and yields to others (park.c); then it runs its task in any case.
 */
#include "base/fatal.h"
#include "base/mem.h"
#include "sched/joined.h"
#include "sched/park.h"
#include "sched/upcalls.h"
#include "sched/wake.h"

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
    cc__san_release(&w->thread); /* its writes to the worker, to the thread that frees that */
    cc__san_apart_end(self);
}

/* The fiber that runs after one that has ended; RUNNING unless it is fresh. NULL: the worker goes to its own stack. */
static struct fiber *successor(struct worker *w) { /* RUN-2 */
#ifdef CC_TSAN
    /* The race detector would order what follows an exit after it: let that not be a user's fiber. */
    (void)w;
    return NULL;
#else
    struct fiber *next = cc__next_local(w);
    if (next != NULL && cc__get(&next->stack) != NULL) cc__park_run_next(w, next, REC_END);
    return next;
#endif
}

/* The current worker, after the user's function has returned; in a forked child there is none. */
static struct worker *worker_still(void) {
    struct worker *w = cc__worker();
    if (unlikely(w == NULL)) cc__upcall_orphaned();
    return w;
}

/* Inline: when ASan has been told of the leave, its shadow of frames that were entered on this stack is gone, and
 * `first` with it. The fiber's first function was entered before ASan knew the stack. */
CC_INLINE CC_NORETURN void leave_for_good(struct fiber *self) { /* RUN-1 */
    struct worker *w = worker_still();
    struct stack *stack = cc__get(&self->stack);
    cc__probe1(end, self);
    struct fiber *next = successor(w);
    if (next == NULL) cc__sched_record(w, REC_END); /* otherwise with what follows */
    cc__set(&w->core.after, after_exit);
    cc__set(&w->core.after_arg, self);
    cc__san_release(&self->fn); /* the fiber's writes, to the thread that notifies its joiners */
    cc__san_release(stack);     /* and the stack, to its next user */
    cc__set(&w->core.current, next);
    cc__san_release(&w->thread); /* its writes to the worker, to the thread that frees that */
    if (next == NULL) {
        cc__san_leave(NULL, &w->core.san);
        cc__context_jump(&w->core.native, w);
    } else if (cc__get(&next->stack) != NULL) {
        cc__san_leave(NULL, cc__switch_san(next));
        cc__context_jump(&next->context, w);
    } else if (cc__stack_size(stack) != cc__stack_default() || cc__state_args(next) == ARGS_BLOCK) {
        /* A stack of another size is not reused: let the worker's own stack find one. */
        cc__sched_record(w, REC_END);
        cc__set(&w->core.pending, next);
        cc__set(&w->core.current, NULL);
        cc__san_leave(NULL, &w->core.san);
        cc__context_jump(&w->core.native, w);
    } else {
        struct context first;
        cc__san_stack_clean(stack->base, cc__stack_size(stack)); /* poisoned by this function, which does not return */
        cc__set(&self->stack, NULL);
        cc__park_run_next(w, next, REC_END);
        cc__switch_bind(next, stack);
        cc__context_start(&first, cc__stack_top(stack), cc__run_fiber);
        cc__san_leave(NULL, &stack->san);
        cc__context_jump(&first, w);
    }
}

/* ---- the beginning ---- */

/* Calls the fiber's function on the current stack, which is bound to it. The argument is copied out of the record,
 * because the saved context, and later the outcome, take its place. A panic returns here, too (RUN-4). */
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

/* Not inlined: so it saves the registers that an escape may clobber, and the caller keeps its own. */
static CC_NOINLINE void call_apart(struct fiber *self, struct stack *stack, struct fiber_cold *cold) {
    call(self, stack, cold);
}

void cc__run_fiber(void *worker) {
    struct worker *w = worker;
    struct fiber *self = cc__get(&w->core.current);
    struct stack *stack = cc__get(&self->stack);
    cc__san_arrive(&stack->san);
    cc__san_acquire(stack);             /* pairs with the release by its last user */
    (void)cc__get_acquire(&self->word); /* pairs with the spawner's release */
    cc__switch_turn_begins(w);
    cc__switch_arrived(w);

    struct fiber_cold *cold = cc__get(&stack->cold);
    call_apart(self, stack, cold);
    if (unlikely(cold->block != NULL)) cc__mem_free(cold->block);
    leave_for_good(self);
}

/* ---- by a joiner ---- */

/* The task's end ends the joiner's wait. False: the joiner was cancelled, and may be anywhere (RUN-3). */
CC_INLINE bool claim_joiner(struct worker *w, struct fiber *joiner, uint64_t parked) {
    cc__bias_enter(&w->runq.bias);
    bool contested = unlikely(cc__get_acquire(&cc__sched.contested)); /* CLAIM-2 */
    bool won = cc__state_resume(joiner, parked, w->core.owner, contested);
    cc__bias_leave(&w->runq.bias);
    return won;
}

/* The first function on the stack of a task that its joiner runs; the joiner's stack is quiet. Returns the worker to
 * the joiner, if that still waits. */
CC_NORETURN void cc__run_joined(void *worker, struct context *from) {
    struct worker *w = worker;
    struct fiber *self = cc__get(&w->core.current), *joiner = container_of(from, struct fiber, context);
    struct stack *stack = cc__get(&self->stack);
    cc__san_arrive(&stack->san);
    cc__san_acquire(stack);             /* pairs with the release by its last user */
    (void)cc__get_acquire(&self->word); /* pairs with the spawner's release */
    cc__switch_turn_begins(w);
    uint64_t parked = cc__state_park_join(joiner);
    cc__barrier_light(); /* CANCEL-1 */
    if (unlikely(cc__get(&cc__sched.cancels) != 0) && cc__upcall_cancelled(joiner, parked & WORD_TICKET))
        cc__sched_ready(joiner);

    call(self, stack, cc__get(&stack->cold));

    w = worker_still(); /* the task may have parked and moved to another worker */
    if (unlikely(!claim_joiner(w, joiner, parked))) leave_for_good(self);
    cc__probe1(end, self);
    cc__sched_record_run(w, joiner, REC_END);
    cc__probe2(run, joiner, w);
    cc__san_release(&self->join_lock.word); /* the task's writes, to its joiners */
    cc__san_release(stack);                 /* and the stack, to its next user */
    cc__switch_turn_ends(w);
    cc__san_leave(NULL, cc__switch_san(joiner));
    cc__context_return(&joiner->context, w);
}
