/* policy.h - the numbers behind when a worker searches, wakes another, sleeps or watches, and the questions that they
 * answer; each says where it comes from. idle.c has the protocol.
 *
 * A wake of another worker is a system call that takes 10 to 20 us of the waker's time, and the woken worker's search as much
 * again. Most fibers that are made ready are run by their own worker in a moment: then it was in vain. So a publisher wakes
 * while there is credit: a wake, search or steal that paid sets it to CREDIT_MAX, one in vain takes one off. Without credit
 * the wake is deferred, but only while the watcher looks: what waits behind a turn that lasts is stolen at its next look, and
 * that restores the credit. So the bound is in time, whatever happened before.
 */
#ifndef CC_SCHED_POLICY_H
#define CC_SCHED_POLICY_H

#include "sched/runq.h"

enum {
    SEARCH_NS =
        20 * 1000, /* of the order of one wake-up (28 us measured): searching is cheaper than sleeping too early */
    STUCK_NS = 15 * 1000, /* a turn that lasts so long while a searcher or the watcher looks on is one that lasts; an
                            * interrupt takes up to 10 us on a virtual machine, and fibers that talk should stay together */
    /* The watcher's look takes 3 us of CPU time on a bare machine and 11 to 17 us on the virtual machine that this was measured
     * on. Long turns have been seen of late: a bound of 250 us. None for EAGER_NS: one of 1 ms. They are too rare then
     * to count among a thousand wakes. */
    WATCH_EAGER_NS = 120 * 1000,
    WATCH_NS = 800 * 1000,
    EAGER_NS = 100 * 1000 * 1000,
    WATCH_TIMERS_NS = 5 * 1000 * 1000, /* nothing is deferred: only timers of a worker that is stuck may be late */
    WATCH_QUIET = 4,         /* looks in a row without a deferred wake, after which nothing is deferred. Guess */
    BACKLOG_NS = 250 * 1000, /* what waits longer than that in a queue that moves on is a reason to help */
    CREDIT_MAX = 8,          /* wakes in vain for one that paid. Guess */
    LONELY_SKIPS = 15, /* when all others sleep, a search in vain is followed by so many sleeps without one. Guess */
    /* Moving a fiber to another core costs about that much (two cache lines and the queue): running it should take
     * longer. A fresh one should take twice as long, as it meets its siblings at the same lock, of a nursery say. */
    STEAL_PAYS_NS = 250,
    TRIM_BATCH = 64,
};

/* Does this worker have more than it gets through in time? While wakes pay, whatever is worth sharing counts. */
CC_INLINE bool cc__policy_backlog(struct worker *w) {
    uint32_t count = cc__get(&w->runq.count);
    if (count < 2) return false;
    return cc__get(&cc__sched.credit) != 0 ? cc__runq_worth(w) : (uint64_t)count * cc__get(&w->turn_ns) >= BACKLOG_NS;
}

/* A fiber that moved was worth it. */
CC_INLINE void cc__policy_paid(uint64_t now) {
    cc__set(&cc__sched.credit, CREDIT_MAX);
    cc__set(&cc__sched.idle.paid_at, now);
}

#endif
