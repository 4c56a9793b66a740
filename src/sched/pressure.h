/* pressure.h - whether there are enough workers. */
#ifndef CC_SCHED_PRESSURE_H
#define CC_SCHED_PRESSURE_H

#include "sched/sysmon.h"

/* What sysmon remembers of a worker: its own, and nobody else's. */
struct worker_sample {
    uint64_t turns;  /* of the worker at the last sample */
    uint64_t since;  /* when this number was first seen; now, if it runs no fiber */
    uint64_t cpu_at; /* when its CPU time was read, in this turn; 0: not yet */
    uint64_t cpu;
    bool reported; /* that it stalls */
};

/* The runtime starts. */
void cc__pressure_reset(void);

/* Samples all queues and adds workers if needed. Returns when a worker that does not get on will count as
 * stuck: then another sample is due; UINT64_MAX: everybody gets on, or nothing waits. On the sysmon thread. */
uint64_t cc__pressure_sample(struct worker_sample *samples, uint64_t now);

/* How long a worker may take before it counts as stuck: the longest time between two ticks. */
uint64_t cc__pressure_pace(void);

#endif
