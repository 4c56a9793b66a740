/* cpus.h - how many CPUs this process may use. */
#ifndef CC_OS_CPUS_H
#define CC_OS_CPUS_H

/* The smaller of the affinity mask and the cgroup's CPU quota (rounded up); at least 1. */
unsigned cc__cpus_usable(void);

/* The same with given files: `limit` CPUs by affinity, groups in `proc_file`, controllers below `mount`. */
unsigned cc__cpus_limit(unsigned limit, const char *proc_file, const char *mount);

#endif
