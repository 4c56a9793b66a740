/* next.h - which fiber gets the CPU. */
#ifndef CC_SCHED_NEXT_H
#define CC_SCHED_NEXT_H

#include "sched/inject.h"
#include "sched/runq.h"

/* Counts a turn. False: a poll is due, on the worker's own stack. */
CC_INLINE bool cc__next_turn(struct worker *w) {
    uint64_t turn = cc__get(&w->core.turns) + 1;
    cc__set(&w->core.turns, turn);
    return likely(turn < cc__get(&w->core.poll_at));
}

/* If a worker searches, and more waits here than in the global queue, the following turn polls and shares. */
CC_INLINE void cc__next_plan_sharing(struct worker *w) {
    if (unlikely(want_searching(cc__get(&cc__sched.want)) != 0) && cc__policy_worth_sharing(w) &&
        cc__get(&w->runq.count) > cc__inject_len())
        cc__set(&w->core.poll_at, cc__get(&w->core.turns));
}

/* The fast choice, for a fiber that stops: own slot, FIFO, fresh. NULL: the worker's own stack has to decide. */
CC_INLINE struct fiber *cc__next_local(struct worker *w) {
    if (unlikely(!cc__next_turn(w))) return NULL;
    cc__bias_enter(&w->runq.bias);
    struct fiber *f = cc__runq_pick_owner(w);
    cc__bias_leave(&w->runq.bias);
    cc__next_plan_sharing(w);
    return f;
}

/* The worker's first timer is due at `when`: plans the next poll for about that time. By the owner. */
void cc__next_plan(struct worker *w, uint64_t when);

/* Asks a worker whose poll is late to poll at the end of its turn. Any thread: a hint, which its own poll replaces. */
CC_INLINE void cc__next_poll_soon(struct worker *w, uint64_t now) {
    uint64_t polled = cc__get(&w->polled_at);
    if (now > polled && now - polled > POLL_LATE_NS) cc__set(&w->core.poll_at, 0);
}

/* A poll by a joiner whose turn is over and that would continue with one of its own tasks. True: others go first. Every
 * poll admits the fibers that have run before, every JOINER_FRESH_POLLS-th the oldest fresh one. */
bool cc__next_poll_for_joiner(struct worker *w);

/* The full choice, on the worker's own stack: own queues, inbox, global queue, timers, other workers; sleeps when there
 * is nothing. NULL: the runtime stops, or the worker has retired. */
struct fiber *cc__next(struct worker *w);

#endif
