/* counters.h - counters. Each worker counts for itself, with plain stores; reading sums them up. Never used for
 * decisions, except spawned and ended, whose sums show that a runtime is drained.
 *
 * Counters of OS threads are next to data that they access anyway: struct sched's foreign_ counters, and the
 * worker_remote of the worker that they wake a fiber for. Switches are not counted: the scheduler has a worker's turns
 * anyway. A counter on a hot path costs one instruction (cc__bump).
 */
#ifndef CC_TRACE_COUNTERS_H
#define CC_TRACE_COUNTERS_H

#include "sync/atomic.h"

enum { COUNTED_REASONS = 32 }; /* room for every park reason; fiber/state.h has the names */

struct counters {
    _Atomic uint64_t spawned; /* tasks */
    _Atomic uint64_t ended;
    _Atomic uint64_t parks[COUNTED_REASONS]; /* by reason */
#define COUNTER(name, row) _Atomic uint64_t name;
#include "trace/events.def"
};

#define cc__count(w, what) cc__bump(&(w)->core.counters.what)
#define cc__count_n(w, what, n) cc__set(&(w)->core.counters.what, cc__get(&(w)->core.counters.what) + (n))

#endif
