/* cpus.h - how many CPUs this process may really use. */
#ifndef CC_PLAT_CPUS_H
#define CC_PLAT_CPUS_H

/* The smaller of the affinity mask and the cgroup's CPU quota (rounded up); at least 1. */
unsigned cc__cpus_usable(void);

#endif
