/* cc_diag.h - diagnostics: counters, stack usage, dumps, traces.
 *
 * All calls may be made from any thread, fibers included; none switches. Structs may grow at their end: a call takes
 * the caller's size, fills in the fields that it knows, and zeroes the rest.
 */
#ifndef CCC_CC_DIAG_H
#define CCC_CC_DIAG_H

#include <ccc/cc_base.h>

#include <stdio.h>

CC_BEGIN_DECLS

#define CC_STATS_REASONS 32 /* there are fewer: room for those to come */

/* Counted since the start of the runtime; a restart resets them to 0. While fibers run, each number is exact, but the
 * numbers are not one consistent snapshot. */
typedef struct CCStats {
    uint64_t workers;                    /* the number of workers summed up */
    uint64_t spawned;                    /* tasks; the deadline of a scope counts as one */
    uint64_t finished;                   /* of them */
    uint64_t switches;                   /* context switches; a switch through the worker's own stack counts as two */
    uint64_t parks;                      /* waits that parked their fiber */
    uint64_t parks_by[CC_STATS_REASONS]; /* the same by reason: cc_stats_reason names them */
    uint64_t wakes_local;                /* fibers made ready by a fiber, in the queue of its worker */
    uint64_t wakes_remote; /* fibers made ready by an OS thread; counted for the worker they were sent to */
    uint64_t wakes_wasted; /* times that a worker was woken, or was given fibers, without benefit */
    uint64_t timers_armed;
    uint64_t timers_fired; /* timers that ended a wait: the remaining wakes */
    uint64_t steals;       /* fibers taken from other workers */
    uint64_t shared;       /* fibers given to other workers that had none */
    uint64_t overflows;    /* fibers put on the list behind the global queue's ring, which was full */
    uint64_t sleeps;       /* times that a worker slept */
    uint64_t notifies;     /* times that a worker woke another one */
    uint64_t polls;        /* times that a worker polled beyond its own queues */
} CCStats;

/* The totals. Operations of OS threads count only here, so the workers may sum up to less. EINVAL: out is NULL; ESRCH:
 * the runtime is not running, and *out is all 0. */
CC_API int cc_stats(CCStats *out, size_t size);

/* The counters of one worker; EINVAL also: no worker has that index. */
CC_API int cc_stats_worker(unsigned index, CCStats *out, size_t size);

/* The name of the wait reason that parks_by[reason] counts: "join", "sleep", "channel" and so on; NULL from the first
 * unused reason on. Reason 0 is "". */
CC_API const char *cc_stats_reason(unsigned reason);

#define CC_STACK_STATS_BUCKETS 20

/* The high-water marks of stacks. They are derived from the resident pages, at no cost while fibers run, and include
 * stacks of fibers that have ended, unless their pages have been returned to the system. */
typedef struct CCStackStats {
    uint64_t stacks;                        /* how many exist */
    uint64_t looked_at;                     /* how many were examined: up to 1024, evenly spread */
    uint64_t page;                          /* bytes */
    uint64_t most;                          /* bytes, in whole pages */
    uint64_t up_to[CC_STACK_STATS_BUCKETS]; /* [k]: stacks that used at most 2^k pages, and more than 2^(k-1) */
} CCStackStats;

/* Costs one system call for each stack examined. Errors as cc_stats. */
CC_API int cc_stats_stacks(CCStackStats *out, size_t size);

/* ---- dumps ---- */

/* What the runtime is doing: workers and their queues, the tree of nurseries, every fiber with its state, what it waits
 * for and since when, where it was started, and its backtrace; and the OS threads that wait in a call of this library.
 * Fibers at the same location are grouped, and beyond a limit only counted. It needs no cooperation of the workers: it
 * works when all of them are stuck. EINVAL: NULL; ESRCH: the runtime is not running; ENOMEM; EIO. */
CC_API int cc_dump(FILE *file);
/* The same for programs: one JSON object, described in cc_diag(3). */
CC_API int cc_dump_json(FILE *file);

/* ---- deadlocks ---- */

/* Called when a deadlock was found, after its report was written to stderr; `report` is the same text, valid during the
 * call. true: the program exits with CCRuntimeConfig.deadlock_status (124). false: the program continues; the function
 * may have resolved the deadlock by a send, an unlock or a cancellation. It may also exit, but must not wait. It runs
 * on a runtime thread or, while no runtime is running, on the thread that found the deadlock. */
typedef bool (*CCDeadlockFn)(const char *report, void *arg);

/* Sets the function; NULL removes it. There is one per process; it gets arg. With or without a running runtime. Any
 * context; does not switch. */
CC_API void cc_on_deadlock(CCDeadlockFn fn, void *arg);

/* ---- log output ---- */

/* Gets what the library would write to stderr: messages, reports, traces; whole lines or parts of them, not
 * 0-terminated. Called on any thread, in fibers, concurrently, and in the signal handlers for faults and SIGQUIT: it
 * must be async-signal-safe, such as write(2), and must not call this library. */
typedef void (*CCLogFn)(const char *text, size_t size, void *arg);

/* Sets the function; NULL restores stderr. Call it while the runtime is not running and no other call is in progress.
 * Does not switch. */
CC_API void cc_on_log(CCLogFn fn, void *arg);

/* ---- traces ---- */

/* Enables further trace categories: lines on stderr that show what fibers do. The list is "all" or comma-separated
 * names: park, wake, join, inbox, sysmon, chan, chan-verbose, spawn, steal, timer, nursery, panic, file, timing.
 * Channels are traced if they were created while chan, chan-verbose or timing was on. EINVAL: NULL, or an unknown name;
 * nothing is changed. With or without a running runtime. */
CC_API int cc_trace_start(const char *categories);

/* Disables all categories, those of the environment too; the next start of the runtime reads the environment again. */
CC_API void cc_trace_stop(void);

CC_END_DECLS

#endif
