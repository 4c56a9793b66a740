/* pressure.h - whether there are enough workers. */
#ifndef CC_SCHED_PRESSURE_H
#define CC_SCHED_PRESSURE_H

#include "sched/sysmon.h"

/* Sysmon's sample of a worker; used by sysmon only. */
struct worker_sample {
    uint64_t turns;  /* of the worker at the last sample */
    uint64_t since;  /* when this number was first seen; the time of the sample, if it runs no fiber */
    uint64_t cpu_at; /* when its CPU time was read, in this turn; 0: not yet */
    uint64_t cpu;
    bool reported; /* that it stalls */
    bool marked;   /* as too long (NEXT-3) */
};

/* At the start of the runtime. */
void cc__pressure_reset(void);

/* Samples all queues and adds workers if needed. Returns when a worker that makes no progress will count as stuck,
 * which is when the next sample is due; UINT64_MAX: no worker will, or nothing waits. On the sysmon thread. */
uint64_t cc__pressure_sample(struct worker_sample *samples, uint64_t now);

/* After how long in one turn a worker counts as stuck; also the longest time between two fast ticks. */
uint64_t cc__pressure_pace(void);

#endif
