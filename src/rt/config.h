/* config.h - what the runtime is told: by the caller, the environment, the compiler, in this order. */
#ifndef CC_RT_CONFIG_H
#define CC_RT_CONFIG_H

#include <ccc/cc_sched.h>
#include <ccc/cc_view.h>

struct config {
    unsigned workers, max_workers;
    unsigned min_workers; /* that have a thread from the start */
    bool adapts;          /* to the number of usable CPUs, as long as the runtime runs */
    size_t stack_size;
    size_t queue_slots;
    bool membarrier; /* may be called */
    bool verbose;
    bool stats;
    const char *record_file; /* NULL: none */
    int record_level;        /* 0 to 2; -1: none is asked for */
    bool view;               /* CC_VIEW asks for it */
    CCViewConfig view_config;
    const char *view_folder; /* NULL: none can be named */
    bool pressure_stats;
    bool leak_report;
    bool debug_locks;
    int dump_signal;   /* 0: none */
    uint64_t sim_seed; /* 0: nothing is simulated */
};

/* 0, or EINVAL: the caller's values are out of range. Bad values in the environment are reported on stderr and ignored.
 * What one room alone needs to know is told to that room, and not stored here. */
int cc__config_read(const CCRuntimeConfig *from, struct config *config);

/* Simulates what follows: the clock first, since deadlines are made before the runtime starts. By the environment's
 * wish, or, once == true, for one start of the runtime; 0: what the environment wants. */
void cc__config_simulate(uint64_t seed, bool once);

#endif
