/* trace.h - trace categories: what the environment can ask to be told, and how long operations take.
 *
 * Off means free: a function whose operation can be traced looks once at one word, which nobody writes while the
 * runtime runs, and has a second, cold form for the rest. Two instructions a call; measured with callgrind.
 *
 * TRACE-1  A line never touches the object after the operation: it may be gone. What is said about it is copied
 *          before.
 * TRACE-2  A line is one write: lines of several threads do not mix.
 */
#ifndef CC_PROBE_TRACE_H
#define CC_PROBE_TRACE_H

#include "base/attr.h"
#include "sync/atomic.h"

enum {
    TRACE_CHAN = 1,         /* CC_CHAN_DEBUG: channels are created, closed and freed; calls park and go on */
    TRACE_CHAN_VERBOSE = 2, /* CC_CHAN_DEBUG_VERBOSE: and who wakes whom, and every select */
    TRACE_TIMING = 4,       /* CC_CHANNEL_TIMING */
};

extern struct trace {
    _Alignas(CC_LINE) _Atomic uint32_t on; /* of the above; in a line of its own */
    _Atomic uint64_t since;                /* lines count their time from here */
} cc__trace;

/* Whether any of the categories is on. */
CC_INLINE bool cc__trace_on(uint32_t categories) {
    return unlikely((cc__get(&cc__trace.on) & categories) != 0);
}
/* Whether there is anything to do at all. */
CC_INLINE bool cc__trace_any(void) {
    return unlikely(cc__get(&cc__trace.on) != 0);
}

void cc__trace_set(uint32_t categories);

/* One line on stderr: time, worker and fiber, or thread; then the text. Keeps errno. Implemented by diag/. */
CC_COLD void cc__trace_line(const char *fmt, ...) CC_PRINTF(1, 2);

/* ---- how long ---- */

enum timed {
    TIMED_SEND,
    TIMED_SEND_TRY,
    TIMED_SEND_UNTIL,
    TIMED_RECV,
    TIMED_RECV_TRY,
    TIMED_RECV_UNTIL,
    TIMED_CLOSE,
    TIMED_SELECT,
    TIMED_KINDS,
};

enum { TIMING_BUCKETS = 40 }; /* by powers of two of nanoseconds; the last one takes nine minutes and more */

struct timing {
    uint64_t count, sum, least, most;
    uint64_t bucket[TIMING_BUCKETS];
};

/* Any thread. `stripe`: callers with different numbers do not disturb each other; a worker's number will do. */
CC_COLD void cc__timing_add(enum timed kind, unsigned stripe, uint64_t ns);
/* All that was added so far, which is forgotten. */
void cc__timing_take(enum timed kind, struct timing *timing);
/* A forked child does not report for its parent. */
void cc__timing_forget(void);

#endif
