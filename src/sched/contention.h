/* contention.h - a worker that loses most of its time to channels that other workers use, too, stops for a while, and
 * leaves its fibers to them.
 *
 * When a channel is used by another worker than before, its cache lines move, and so do the values and the records of
 * those who wait. Fibers that do little between two operations are several times faster on one worker than on two. The
 * price is measured: now and then an operation is timed, and if the lines have moved, so long have all such operations
 * of the worker taken, on average.
 *
 * CONTENTION-1  A worker puts its fibers into the global queue before it announces its sleep, under the lock of the
 *               sleepers; it leaves them there only if that lock shows another worker that is awake. That one checks
 *               the global queue when it polls, or after its own announcement.
 * CONTENTION-2  What is left there does not wait for the end of a long turn: the watcher's tick finds it.
 */
#ifndef CC_SCHED_CONTENTION_H
#define CC_SCHED_CONTENTION_H

#include "sched/policy.h"

/* The worker's moves, every MOVES_TIMED of them. */
CC_COLD void cc__contention_count(struct worker *w, uint32_t moves);

/* At a poll of a worker that is to stop: whether it does. Not if another one has stopped since that was decided:
 * otherwise all of them stop at once. */
CC_COLD bool cc__contention_stops(struct worker *w);

/* Whether `user`, a worker's tag, is one of the pool. An island's fibers cannot move. 0: nobody, or an OS thread. */
CC_INLINE bool cc__contention_with(uint64_t user) {
    return user != 0 && cc__tag_owner(user) <= cc__sched.max;
}

/* Counts an operation on an object that another worker has used before. */
CC_INLINE void cc__contention_moved(struct worker *w) {
    uint32_t moves = cc__get(&w->moves.count) + 1;
    cc__set(&w->moves.count, moves);
    if (unlikely(moves % MOVES_TIMED == 0)) cc__contention_count(w, moves);
}

/* Whether the next operation should be timed, from `start` to the end of its access to the object. */
CC_INLINE bool cc__contention_times(struct worker *w) {
    return unlikely(cc__get(&w->runq.timed) != 0);
}
struct timed_move {
    uint64_t start;
    uint32_t moves, tries;
};
struct timed_move cc__contention_begin(struct worker *w);
void cc__contention_end(struct worker *w, struct timed_move begun);

#endif
