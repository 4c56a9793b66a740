/* cc_diag.h - diagnostics: counters, use of stacks, dumps, traces.
 *
 * All of it may be called from any thread, fibers included; nothing here switches. Structures may grow at their end:
 * a call takes the caller's size, fills in what it knows of that, and sets the rest to 0.
 */
#ifndef CCC_CC_DIAG_H
#define CCC_CC_DIAG_H

#include <ccc/cc_base.h>

#include <stdio.h>

CC_BEGIN_DECLS

#define CC_STATS_REASONS 32 /* there are fewer: room for those to come */

/* Counted since the runtime was started; the next start begins at 0 again. While fibers run, each number is
 * exact, but they are not all taken at the same moment. */
typedef struct CCStats {
    uint64_t workers;  /* how many this is the sum of */
    uint64_t spawned;  /* tasks */
    uint64_t finished; /* of them */
    uint64_t switches; /* turns: a fiber left, or another one was chosen; over the worker's own stack it takes two */
    uint64_t parks;    /* waits that parked their fiber */
    uint64_t parks_by[CC_STATS_REASONS]; /* the same by reason: cc_stats_reason names them */
    uint64_t wakes_local;                /* fibers made ready by a fiber, in the queue of its worker */
    uint64_t wakes_remote; /* fibers made ready by an OS thread; each counts for the worker it was meant for */
    uint64_t wakes_wasted; /* times that a worker was woken, or was given fibers, and it gained nothing */
    uint64_t timers_armed;
    uint64_t timers_fired; /* that ended a wait: the other wakes */
    uint64_t steals;       /* fibers taken from other workers */
    uint64_t shared;       /* fibers given away, because others had none */
    uint64_t overflows;    /* fibers that found the global queue's ring full and went on the list behind it */
    uint64_t sleeps;       /* times that a worker slept */
    uint64_t notifies;     /* times that a worker woke another one */
    uint64_t polls;        /* times that a worker looked beyond its own queues */
} CCStats;

/* The totals. What OS threads did counts here only, so that the workers may sum up to less. EINVAL: out is NULL;
 * ESRCH: the runtime does not run, and *out is all 0. */
CC_API int cc_stats(CCStats *out, size_t size);

/* One worker's; EINVAL also: there is no worker of that number. */
CC_API int cc_stats_worker(unsigned index, CCStats *out, size_t size);

/* What parks_by[reason] counts: "join", "sleep", "channel" …; NULL: nothing, and nothing beyond. Reason 0 is "". */
CC_API const char *cc_stats_reason(unsigned reason);

#define CC_STACK_STATS_BUCKETS 20

/* The high-water marks of stacks. They are read off the resident pages, at no cost while fibers run, and include
 * stacks of fibers that have ended, unless their pages were given back since. */
typedef struct CCStackStats {
    uint64_t stacks;    /* that there are */
    uint64_t looked_at; /* up to 1024 of them, evenly spread */
    uint64_t page;      /* bytes */
    uint64_t most;      /* bytes, in whole pages */
    uint64_t
        up_to[CC_STACK_STATS_BUCKETS]; /* [k]: stacks of which at most 2^k pages were used, and more than in [k-1] */
} CCStackStats;

/* A system call for each stack that is looked at. Errors as cc_stats. */
CC_API int cc_stats_stacks(CCStackStats *out, size_t size);

/* ---- dumps ---- */

/* What the runtime is doing: workers and their queues, the tree of nurseries, every fiber with its state, what it waits
 * for and since when, where it was started, and its backtrace; and the OS threads that wait in a call of this library.
 * Fibers in the same place are shown together, and beyond a limit only counted. The workers are not asked:
 * it works when all of them are stuck. 0, EINVAL: NULL; ESRCH: the runtime does not run; ENOMEM; EIO. */
CC_API int cc_dump(FILE *file);
/* The same for programs: one JSON object, described in cc_diag(3). */
CC_API int cc_dump_json(FILE *file);

/* ---- deadlocks ---- */

/* Called when a deadlock was found and its report is on stderr; `report` is the same text, for the time of the call.
 * true: the program ends, with the status of CCRuntimeConfig.deadlock_status (124). false: it goes on waiting, or with
 * what the function has done about it: it may send, unlock, cancel or exit. It must not wait. On a thread of the
 * runtime's; while no runtime runs, on the thread that has found the deadlock. */
typedef bool (*CCDeadlockFn)(const char *report, void *arg);

/* Sets the function; NULL removes it. There is one function for the process; it gets arg. With or without a runtime.
 * Any context; does not switch. */
CC_API void cc_on_deadlock(CCDeadlockFn fn, void *arg);

/* ---- what the library says ---- */

/* Gets what the library would write to stderr: messages, reports, traces; whole lines or parts of them, not terminated
 * by a 0. On any thread, in fibers, several at a time, and in the signal handlers of faults and of SIGQUIT: so it does
 * no more than such a handler may, write(2) for one, and calls nothing of this library. */
typedef void (*CCLogFn)(const char *text, size_t size, void *arg);

/* Sets the function; NULL: stderr again. While the runtime does not run, and no other call is under way. Does not
 * switch. */
CC_API void cc_on_log(CCLogFn fn, void *arg);

/* ---- traces ---- */

/* Turns on further trace categories: lines on stderr that show what fibers do. The list is "all" or
 * names with commas between them: park, wake, join, inbox, sysmon, chan, chan-verbose, spawn, steal, timer, nursery,
 * panic, file, timing. Channels are traced if they were created while chan, chan-verbose or timing was on. EINVAL:
 * NULL, or an unknown name; nothing has changed. With or without a runtime. */
CC_API int cc_trace_start(const char *categories);

/* Turns all of them off, those of the environment too; a later start of the runtime reads the environment again. */
CC_API void cc_trace_stop(void);

CC_END_DECLS

#endif
