/* config.h - the runtime's settings: from the caller, the environment, and compile-time defaults, in this order. */
#ifndef CC_RT_CONFIG_H
#define CC_RT_CONFIG_H

#include <ccc/cc_sched.h>
#include <ccc/cc_view.h>

struct config {
    unsigned workers, max_workers;
    unsigned min_workers; /* that have a thread from the start */
    bool adapts;          /* follows the number of usable CPUs while the runtime runs */
    size_t stack_size;
    size_t queue_slots;
    bool membarrier; /* may be used */
    bool verbose;
    bool stats;
    const char *record_file; /* NULL: none */
    int record_level;        /* 0 to 2; -1: not set */
    bool view;               /* CC_VIEW is set */
    CCViewConfig view_config;
    const char *view_folder; /* NULL: none */
    bool pressure_stats;
    bool leak_report;
    bool debug_locks;
    int dump_signal;   /* 0: none */
    uint64_t sim_seed; /* 0: nothing is simulated */
};

/* 0, or EINVAL: the caller's values are out of range. Invalid values in the environment are reported on stderr and
 * ignored. Settings of a single room are passed to it and not stored here. */
int cc__config_read(const CCRuntimeConfig *from, struct config *config);

/* Switches to simulation, first of the clock, since deadlines may be created before the runtime starts. For the
 * environment's seed or, if `once`, for one start of the runtime; 0: back to the environment's setting. */
void cc__config_simulate(uint64_t seed, bool once);

#endif
