/* timing.h - how long calls on channels take, summed up by kind. */
#ifndef CC_TRACE_TIMING_H
#define CC_TRACE_TIMING_H

#include "base/attr.h"

enum timed {
#define TIMED(id, name) TIMED_##id,
#include "trace/events.def"
    TIMED_KINDS,
};

enum { TIMING_BUCKETS = 40 }; /* by powers of two of nanoseconds; the last one is nine minutes and more */

struct timing {
    uint64_t count, sum, least, most;
    uint64_t bucket[TIMING_BUCKETS];
};

/* Adds a call that began at `start` and has ended, if the category is on; 0: it was off then. Any thread. */
CC_COLD void cc__timing_since(enum timed kind, uint64_t start);
void cc__timing_add(enum timed kind, uint64_t ns);
/* Returns the sums so far and resets them. */
void cc__timing_take(enum timed kind, struct timing *timing);
/* Resets the sums: a forked child does not report for its parent. */
void cc__timing_forget(void);

#endif
