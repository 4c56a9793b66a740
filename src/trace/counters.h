/* counters.h - counters. Each worker counts for itself, with plain stores; reading sums them up. Never used for
 * decisions, except spawned and ended, whose sums tell a drained runtime.
 *
 * What OS threads do is counted beside what they touch anyway: struct sched's foreign_ counters, and the
 * worker_remote of the worker that they wake a fiber for. Switches are not counted at all: a worker's turns are
 * there for the scheduler. A counter on a hot path costs one instruction (cc__bump).
 */
#ifndef CC_TRACE_COUNTERS_H
#define CC_TRACE_COUNTERS_H

#include "sync/atomic.h"

enum { COUNTED_REASONS = 16 }; /* room for every park reason; fiber/state.h has the names */

struct counters {
    _Atomic uint64_t spawned; /* tasks */
    _Atomic uint64_t ended;
    _Atomic uint64_t parks[COUNTED_REASONS]; /* by reason */
    _Atomic uint64_t woken;                  /* fibers that this worker has made ready, in its own queue */
    _Atomic uint64_t polls;                  /* turns on the worker's own stack that looked at everything */
    _Atomic uint64_t shared;                 /* fibers given to searching workers */
    _Atomic uint64_t stolen;                 /* fibers taken from others */
    _Atomic uint64_t overflowed;             /* fibers put on the list behind the global queue's ring */
    _Atomic uint64_t slept;                  /* times the worker slept */
    _Atomic uint64_t wasted;                 /* times it was woken and found nothing */
    _Atomic uint64_t notified;               /* times it woke another */
    _Atomic uint64_t armed;                  /* timers */
    _Atomic uint64_t timers;                 /* fired */
};

#define cc__count(w, what) cc__bump(&(w)->core.counters.what)
#define cc__count_n(w, what, n) cc__set(&(w)->core.counters.what, cc__get(&(w)->core.counters.what) + (n))

#endif
