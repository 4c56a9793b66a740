/* runq.h - a worker's own runnable fibers: a slot, a FIFO, and the fresh ones, newest first.
 *
 * All of it is plain single-threaded data under the worker's biased lock (sync/bias.h): the owner pays two stores and a
 * load, no read-modify-write; a thief pays a system call. The lists are linked through the fiber records: no capacity,
 * no allocation.
 *
 *   slot   the fiber woken last; it runs next, at most SLOT_STREAK times in a row, so that two fibers that wake each
 *          other cannot starve the others
 *   fifo   woken and yielded fibers, first in first out
 *   fresh  fibers that never ran: the owner takes the newest (depth first keeps few alive), thieves the oldest; and
 *          joiners that yielded (park.c), in front of the tasks that they would run
 *
 * RUNQ-1  A fiber is RUNNABLE exactly while it is in a queue, and it is in one queue only.
 * RUNQ-2  A fresh fiber in here has this worker as its owner; so its joiner, on this worker, may take it out
 *         (joined.h).
 * RUNQ-3  `count` is exact under the lock, a hint outside.
 */
#ifndef CC_SCHED_RUNQ_H
#define CC_SCHED_RUNQ_H

#include "fiber/spec.h"
#include "sched/policy.h"

CC_INLINE void cc__runq_add_owner(struct runq *q, uint32_t n) {
    cc__set(&q->count, cc__get(&q->count) + n);
}
CC_INLINE void cc__runq_sub_owner(struct runq *q, uint32_t n) {
    cc__set(&q->count, cc__get(&q->count) - n);
}

/* Prefetches the record of the fiber after the next, and the stack of the next, while this one runs: measured, 200 ->
 * 150 ns a yield among 100,000 fibers. The addresses may be meaningless (the list's head, arguments): a prefetch cannot
 * fault. */
CC_INLINE struct fiber *cc__runq_pop_fifo(struct link *fifo) {
    struct link *first = cc__get(&fifo->next), *second = cc__get(&first->next);
    cc__set(&second->prev, fifo);
    cc__set(&fifo->next, second);
#ifndef CC_TSAN /* which would report a read of another fiber's record */
    __builtin_prefetch(cc__get(&second->next));
    __builtin_prefetch(*(void *const *)&cc__fiber_of(second)->context);
#endif
    return cc__fiber_of(first);
}

/* Inside the lock, after a pop; more than RUNQ_MANY are left. With so many, each stack has left the cache, and each of
 * its frames is on another line: so prefetches the stack of a fiber that waits in a join two turns before it runs.
 * Measured, 440 -> 260 ns for a turn in which one of 100,000 resumes and ends. Not for fewer fibers, which may still be
 * in the cache. */
CC_INLINE void cc__runq_prefetch(struct link *fifo) {
#ifndef CC_TSAN
    struct link *second = cc__get(&cc__get(&fifo->next)->next);
    if (second == fifo) return; /* most are fresh fibers */
    __builtin_prefetch(cc__get(&second->next));
    const char *sp = *(void *const *)&cc__fiber_of(second)->context;
    for (int i = 0; i < PREFETCH_LINES; i++) __builtin_prefetch((const void *)((uintptr_t)sp + (uintptr_t)i * CC_LINE));
#else
    (void)fifo;
#endif
}

/* Inside the lock. The fiber to run next, NULL if there is none. */
CC_INLINE struct fiber *cc__runq_pick_owner(struct worker *w) {
    struct runq *q = &w->runq;
    struct fiber *f = cc__get(&q->slot);
    if (f != NULL) {
        cc__set(&q->slot, NULL);
        uint32_t streak = cc__get(&w->core.streak);
        if (likely(streak < SLOT_STREAK)) {
            cc__set(&w->core.streak, streak + 1);
            cc__runq_sub_owner(q, 1);
            return f;
        }
        cc__list_push_back(&q->fifo, &f->link);
    }
    cc__set(&w->core.streak, 0);
    if (!cc__list_empty(&q->fifo)) {
        f = cc__runq_pop_fifo(&q->fifo);
        if (unlikely(cc__get(&q->count) > RUNQ_MANY)) cc__runq_prefetch(&q->fifo);
    } else if (!cc__list_empty(&q->fresh)) {
        f = cc__fiber_of(cc__list_pop_front(&q->fresh));
    } else {
        return NULL;
    }
    cc__runq_sub_owner(q, 1);
    return f;
}

/* Inside the lock. A fiber that was just woken; it runs next. */
CC_INLINE void cc__runq_slot_owner(struct runq *q, struct fiber *f) {
    cc__spec_enqueue_hot(f);
    struct fiber *before = cc__get(&q->slot);
    if (unlikely(before != NULL)) cc__list_push_back(&q->fifo, &before->link);
    cc__set(&q->slot, f);
    cc__runq_add_owner(q, 1);
}

/* Inside the lock. Lets all ready fibers go before a fiber that yields: the slot becomes the FIFO's first, as it would
 * have been next in any case, and the fresh ones, oldest first, its last. */
void cc__runq_level_owner(struct runq *q);

/* Inside the lock. Moves up to n fresh fibers, oldest first, to the FIFO's end; returns how many. */
uint32_t cc__runq_level_some_owner(struct runq *q, uint32_t n);

/* Inside the lock. Takes up to n fibers for another worker, the oldest first: fresh ones, then the FIFO's head, then
 * (all == true) the slot. Appends them to `list`, with no owner; returns how many. */
uint32_t cc__runq_take_oldest(struct runq *q, uint32_t n, bool all, struct link *list);

/* By the owner, outside the lock. Adds all of `list` (n fibers, RUNNABLE, without an owner, oldest first): the fresh as
 * the oldest of the fresh, the others at the FIFO's end. Returns how many are fresh. */
uint32_t cc__runq_append(struct worker *w, struct link *list, uint32_t n);

/* The same for fibers whose timers have fired or whose descriptors have events: the first `front` of them become the
 * first of the FIFO, the others its last. */
void cc__runq_admit(struct worker *w, struct link *list, uint32_t n, uint32_t front);

/* Tells workers that search or sleep about what was just queued here. The caller has left the biased lock. keep: how
 * many of the fibers the running one is likely to need itself soon (a spawner often joins what it spawned last). */
void cc__runq_tell_slow(struct worker *w, uint64_t want, uint32_t keep);

CC_INLINE void cc__runq_tell(struct worker *w, uint32_t keep) {
    /* Publish, then check for sleepers: the light side of the pair whose heavy side is in idle.c. */
    cc__barrier_light();
    uint64_t want = cc__get(&cc__sched.want);
    if (unlikely(want != 0)) cc__runq_tell_slow(w, want, keep);
}

/* Whether fibers wait in the queue of another worker of the pool. A hint (RUNQ-3). */
bool cc__runq_waits_elsewhere(struct worker *w);

/* By the owner, outside the lock: makes a filled, IDLE record runnable. */
CC_INLINE void cc__runq_spawn(struct worker *w, struct fiber *f, enum fiber_args args) {
    cc__state_spawn(f, w->core.owner, args);
    cc__count(w, spawned);
    cc__spec_enqueue_hot(f);
    cc__bias_enter(&w->runq.bias);
    cc__list_push_front(&w->runq.fresh, &f->link);
    cc__runq_add_owner(&w->runq, 1);
    cc__bias_leave(&w->runq.bias);
    cc__runq_tell(w, 1);
}

#endif
