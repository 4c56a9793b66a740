/* config.h - what the runtime is told: by the caller, the environment, the compiler, in this order. */
#ifndef CC_RT_CONFIG_H
#define CC_RT_CONFIG_H

#include <ccc/cc_sched.h>

struct config {
    unsigned workers, max_workers;
    size_t stack_size;
    size_t queue_slots;
    bool membarrier; /* may be called */
    bool verbose;
    bool stats;
    uint32_t trace; /* categories of trace/trace.h */
    bool panic_abort;
    bool pressure_stats;
    bool deadlock_abort;
    unsigned deadlock_status;
    uint64_t stall_ns; /* 0: off */
    bool leak_report;
    bool debug_locks;
    int dump_signal;   /* 0: none */
    uint64_t sim_seed; /* 0: nothing is simulated */
};

/* 0, or EINVAL: the caller's values are out of range. Bad values in the environment are named on stderr and
 * ignored. */
int cc__config_read(const CCRuntimeConfig *from, struct config *config);

/* Simulates what follows: the clock first, since deadlines are made before the runtime starts. By the environment's
 * wish, or, once == true, for one start of the runtime; 0: what the environment wants. */
void cc__config_simulate(uint64_t seed, bool once);

#endif
