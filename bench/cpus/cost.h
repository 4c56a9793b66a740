/* cost.h - what a row of rows.c tells the model (cost.c). */
#ifndef BENCH_CPUS_COST_H
#define BENCH_CPUS_COST_H

#include "explore.h"

unsigned cost_cpus(void);
/* Work that touches no memory: that many nanoseconds of this CPU. */
void cost_work(uint64_t ns);
/* The measured region is between these two; ops: the number of operations. */
void cost_begin(void);
void cost_end(uint64_t ops);
/* One sample of a latency, in nanoseconds; their percentiles are printed. */
void cost_sample(uint64_t ns);

#endif
