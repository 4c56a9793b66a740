/* park.c - how a fiber stops: it parks until it is woken, or yields to the fibers that are ready.
 *
 * The next fiber is chosen before the switch. What publishes the old one (PARKED, or its place in a queue) happens
 * after it, on the next stack: see switch.h.
 */
#include "sched/park.h"

#include "os/clock.h"
#include "sched/inbox.h"
#include "sched/inject.h"
#include "sched/joined.h"
#include "sched/upcalls.h"

/* ---- park ---- */

CC_NOINLINE struct worker *cc__park_slow(struct worker *w, struct fiber *self, struct fiber *next, unsigned reason,
                                         after_fn after, void *arg) {
    if (likely(next != NULL)) {
        struct stack *stack = cc__state_args(next) == ARGS_BLOCK ? NULL : cc__stack_take_cached(&w->core.stacks);
        if (stack != NULL) {
            cc__park_switch(w, self, reason, next);
            return cc__switch_fresh(w, self, next, stack, after, arg);
        }
        cc__set(&w->core.pending, next);
    }
    cc__sched_record_park(w, reason);
    return cc__switch_native(w, self, after, arg);
}

struct worker *cc__sched_park(struct worker *w, struct fiber *self, unsigned reason, after_fn after, void *arg) {
    cc__held_check_park();
    cc__fiber_note_turn(self, cc__get(&w->core.turns));
    return cc__park_for(w, self, cc__next_local(w), reason, after, arg);
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
        cc__sched_record(w, REC_YIELD);
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
            cc__next_plan_sharing(w);
            cc__park_run_next(w, next, REC_YIELD);
            cc__switch_fiber(w, self, next, after_yield, self);
            return;
        }
        cc__bias_leave(&q->bias);
        cc__sched_record(w, REC_YIELD);
        cc__switch_native(w, self, after_yield_native, self);
        return;
    }
    cc__bias_leave(&q->bias);
    /* No other fiber is ready here; some may be elsewhere. */
    if (unlikely(!cc__inbox_empty(w) || cc__inject_len() != 0)) {
        cc__sched_record(w, REC_YIELD);
        cc__switch_native(w, self, after_yield_native, self);
    }
}

CC_COLD void cc__sched_yield(struct worker *w, struct fiber *self) {
    yield_fiber(w, self);
}

/* Queues the fiber after the first one. */
static void after_yield_to_one(struct worker *w, void *arg) {
    struct fiber *f = arg;
    struct runq *q = &w->runq;
    cc__bias_enter(&q->bias);
    cc__runq_level_owner(q);
    cc__state_yield(f, w->core.owner);
    cc__list_push_front(cc__get(&q->fifo.next), &f->link); /* if the FIFO is empty, that is its head */
    cc__runq_add_owner(q, 1);
    cc__bias_leave(&q->bias);
}

void cc__sched_yield_to_one(struct worker *w, struct fiber *self) {
    cc__held_check_park();
    cc__sched_record(w, REC_YIELD);
    cc__switch_native(w, self, after_yield_to_one, self);
}

/* How many fresh fibers go before a fiber that yields after a long turn. None if it does so for the first time since it
 * waited, other than at a yield: tasks that compute for long, then send, would all begin before the first one ends.
 * Otherwise twice as many as last time, as long as the others take no more than such a turn: short tasks beside a fiber
 * that never waits would get one turn for each of its own. */
static uint32_t fresh_before(struct worker *w, bool again) {
    uint64_t polled = cc__get(&w->polled_at), since = w->preempted_at; /* the last poll was at the start of this turn */
    uint32_t gone = w->fresh_gone, twice = 2 * gone + 1;
    w->preempted_at = cc__clock_now();
    if (!again) return 0;
    if (polled > since && polled - since > PREEMPT_NS) return gone / 2;
    return twice < FRESH_MAX ? twice : FRESH_MAX;
}

static void after_preemption(struct worker *w, void *arg) {
    struct fiber *f = arg;
    struct runq *q = &w->runq;
    cc__bias_enter(&q->bias);
    uint32_t n = fresh_before(w, cc__state_yield_long(f, w->core.owner));
    w->fresh_gone = cc__runq_level_some_owner(q, n);
    cc__list_push_back(&q->fifo, &f->link);
    cc__runq_add_owner(q, 1);
    cc__bias_leave(&q->bias);
}

struct worker *cc__sched_preempted(struct worker *w) { /* NEXT-3 */
    struct fiber *self = cc__get(&w->core.current);
    bool same = cc__get(&w->runq.preempt) == (uint32_t)cc__get(&w->core.turns);
    cc__set(&w->runq.preempt, 0);
    if (self == NULL || !same) return w; /* it was asked of an earlier turn */
    cc__held_check_park();
    cc__set(&w->core.poll_at, 0); /* a poll admits what is due, and one more fresh fiber */
    cc__sched_record(w, REC_YIELD);
    return cc__switch_native(w, self, after_preemption, self);
}

void cc_yield(void) {
    struct worker *w = cc__worker();
    struct fiber *self = cc__sched_current(w);
    if (self != NULL)
        yield_fiber(w, self);
    else if (likely(!cc__upcall_sim_yield()))
        cc__thread_yield();
}

/* ---- a joiner that runs its tasks ---- */

/* In front of the fresh fibers: when the others have had their turns, the joiner continues with its task. */
static void after_joiner_yields(struct worker *w, void *arg) {
    struct fiber *f = arg;
    cc__bias_enter(&w->runq.bias);
    cc__state_yield(f, w->core.owner);
    cc__list_push_front(&w->runq.fresh, &f->link);
    cc__runq_add_owner(&w->runq, 1);
    cc__bias_leave(&w->runq.bias);
}

/* Fibers that have run before go first; then the joiner runs its task in any case, so that a tree of tasks is completed
 * depth first. */
struct worker *cc__run_joiner_polls(struct worker *w, struct fiber *self, struct fiber *f, uint32_t generation) {
    if (unlikely(cc__sched.simulated)) {
        cc__upcall_sim_point();
        return NULL;
    }
    /* A joiner whose task does not wait here, or that has no stack for it, does not yield: it joins the general way. */
    if (!cc__run_queued_here(w, f, cc__get(&f->word), generation) || cc__get(&w->core.stacks.first) == NULL)
        return NULL;
    if (unlikely(cc__trace_on(TRACE_SPEC))) return NULL;
    cc__held_check_park();
    if (!cc__next_poll_for_joiner(w)) return w;
    cc__sched_record(w, REC_YIELD);
    return cc__switch_native(w, self, after_joiner_yields, self);
}

/* ---- with active C++ exceptions ---- */

/* A fiber's active exceptions are saved in its frame until it runs again, on whatever thread. */
static struct cxx_state take_cxx(struct worker *w) {
    struct cxx_globals *g = cc__cxx_here(); /* the C++ runtime may have been loaded after the worker started */
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
