/* sysmon.h - a thread that monitors the workers while they work, and sleeps while they sleep. */
#ifndef CC_SCHED_SYSMON_H
#define CC_SCHED_SYSMON_H

#include "sched/sched.h"

/* The outcome of one sample while all workers were busy. */
enum gate {
    GATE_PASSED,        /* workers were added */
    GATE_NO_WORK,       /* nothing runnable waits */
    GATE_IDLE_CAPACITY, /* a worker sleeps: the watcher finds what waits */
    GATE_NONPOSITIVE,   /* no more fibers wait than workers search */
    GATE_NOT_STUCK,     /* no worker is stuck */
    GATE_AT_CAP,        /* there are `max` workers */
    GATE_DESCHEDULED,   /* the system gives the stuck workers no CPU: more threads make it worse */
    GATE_PROGRESS,      /* some compute for long, no CPU is free, and others make progress */
    GATE_RATE_LIMITED,  /* workers were added a moment ago */
    GATE_NO_THREAD,     /* the system had no thread */
    GATE_KINDS,
};

struct sysmon_stats {
    uint64_t positive_samples, negative_samples;
    int64_t current_pressure; /* fibers that wait, less the workers that search or sleep, at the last sample */
    uint64_t neg_streak_max;
    uint64_t gates[GATE_KINDS];
    uint64_t promoted; /* workers added */
};

extern struct sysmon { _Alignas(CC_LINE) _Atomic uint32_t mode; /* enum sysmon_mode */ } cc__sysmon;

enum sysmon_mode {
    SYSMON_ASLEEP, /* wakes when a worker goes to work */
    SYSMON_SLOW,   /* ticks slowly; wakes when no worker sleeps any more */
    SYSMON_FAST,   /* ticks */
};

void cc__sysmon_nudge_slow(void);

/* A worker goes to work. It has left the list of sleepers before, with a seq_cst subtraction from `want` (IDLE-6). */
CC_INLINE void cc__sysmon_nudge(void) {
    if (cc__get_seq(&cc__sysmon.mode) != SYSMON_FAST) cc__sysmon_nudge_slow();
}

/* Started after the workers, stopped before them. adapts: reads the number of usable CPUs regularly. 0, ENOMEM or an
 * error of pthread_create. */
int cc__sysmon_start(bool adapts);
void cc__sysmon_stop(void);

/* The system's number of the thread; 0: it does not run. */
int cc__sysmon_thread(void);

/* By cc__upcall_asked: it is called again with the next tick. */
void cc__sysmon_ask_later(void);
/* Requests cc__upcall_asked on the sysmon thread; false: there is none. Any thread, also in a signal handler. */
bool cc__sysmon_ask(void);
/* Something has changed that cc__upcall_quiet may depend on: it is called again after a while, if all sleep then. Any
 * thread; cheap. */
void cc__sysmon_recheck(void);

/* After how long in one turn a worker counts as stalled (5 s); 0: never. Any thread. */
void cc__sysmon_set_stall(uint64_t ns);
/* Whether fibers are asked to yield when their turns are long (NEXT-3). Any thread. */
void cc__sysmon_set_preempt(bool on);
bool cc__sysmon_may_preempt(void);
/* After how long in one turn it counts as stuck (10 ms), and how long to wait after workers were added (10 ms). For
 * tests; any thread. */
void cc__sysmon_set_pace(uint64_t stuck_ns, uint64_t grow_ns);

const char *cc__gate_name(enum gate gate);
/* Any thread, inside the runtime; a snapshot. */
void cc__sysmon_stats(struct sysmon_stats *stats);

#endif
