/* trace.h - trace categories: what the environment and the program can ask to be told, and how long operations take.
 *
 * Off means free. Where an event is rare, its line costs one look at a word that nobody writes. Where it is not, there is
 * a branch already that leads to a rarer path, and tracing makes everybody take it: parks look whether anything was
 * cancelled, wakes whether somebody cancels, spawns whether they are refused (sched/watch.c); channels and selects have
 * a second, cold form of themselves.
 *
 * TRACE-1  A line never touches the object after the operation: it may be gone. What is said about it is copied
 *          before.
 * TRACE-2  A line is one write: lines of several threads do not mix.
 */
#ifndef CC_TRACE_TRACE_H
#define CC_TRACE_TRACE_H

#include "base/attr.h"
#include "sync/atomic.h"

/* The categories. What CC_TRACE and cc_trace_start call them is in trace.c; the older variable, if there is one: */
enum {
    TRACE_CHAN = 1 << 0,         /* CC_CHAN_DEBUG: channels are created, closed and freed; calls park and go on */
    TRACE_CHAN_VERBOSE = 1 << 1, /* CC_CHAN_DEBUG_VERBOSE: and who wakes whom, and every select */
    TRACE_TIMING = 1 << 2,       /* CC_CHANNEL_TIMING: how long calls on channels take */
    TRACE_PARK = 1 << 3,         /* CC_PARK_DEBUG: a fiber parks, and why; what park_if decides */
    TRACE_WAKE = 1 << 4,         /* CC_DEBUG_WAKE: who wakes whom */
    TRACE_JOIN = 1 << 5,         /* CC_DEBUG_JOIN: a joiner has to wait; an end that wakes joiners */
    TRACE_INBOX = 1 << 6,        /* CC_DEBUG_INBOX: pushes, and what is taken */
    TRACE_SYSMON = 1 << 7,       /* CC_DEBUG_SYSMON: what the scaling decides */
    TRACE_SPAWN = 1 << 8,        /* tasks are started */
    TRACE_STEAL = 1 << 9,        /* fibers change workers */
    TRACE_TIMER = 1 << 10,       /* deadlines are armed and fire */
    TRACE_NURSERY = 1 << 11,     /* children fail, scopes are cancelled, waits for children */
    TRACE_PANIC = 1 << 12,       /* panics begin, are stopped, end their scope */
    TRACE_ALL = (1 << 13) - 1,
    /* No categories, and asked for by the environment only. */
    TRACE_SPEC = 1 << 16,       /* CC_V3_SPEC_ASSERT: fiber/spec.h */
    TRACE_SIM = 1 << 18,        /* a simulation: channels and selects take their cold form, where its points are */
    TRACE_INBOX_DUMP = 1 << 17, /* CC_DEBUG_INBOX_DUMP: a dump shows the inboxes */
};

extern struct trace {
    _Alignas(CC_LINE) _Atomic uint32_t on; /* of the above; in a line of its own */
    _Atomic uint64_t since;                /* lines count their time from here */
} cc__trace;

/* Whether any of the categories is on. */
CC_INLINE bool cc__trace_on(uint32_t categories) {
    return unlikely((cc__get(&cc__trace.on) & categories) != 0);
}

/* What the environment wants, in place of what it wanted before; and what the program wants besides. */
void cc__trace_set(uint32_t categories);
void cc__trace_add(uint32_t categories);
/* A simulation begins, or is over. */
void cc__trace_simulated(bool on);
/* All categories off, whoever wanted them. */
void cc__trace_clear(void);

/* The categories of a list "park,wake", or "all". Names that there are not are left out: the first of them is stored in
 * *unknown, with its length; NULL: all are known. */
uint32_t cc__trace_parse(const char *list, const char **unknown, int *length);
extern const char cc__trace_known[]; /* all names, for a sentence */

/* One line on stderr: time, worker and fiber, or thread; then the text. Keeps errno. Implemented by diag/. */
CC_COLD void cc__trace_line(const char *fmt, ...) CC_PRINTF(1, 2);
/* The same on behalf of a fiber that has just left this worker, by its after-switch action. */
struct fiber;
CC_COLD void cc__trace_line_of(struct fiber *f, const char *fmt, ...) CC_PRINTF(2, 3);

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
