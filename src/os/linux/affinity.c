/* affinity.c - the calling thread's CPU mask. */
#include "os/affinity.h"

#include "base/error.h"

#include <sched.h>

bool cc__affinity_single(void) {
    CC_KEEP_ERRNO;
    cpu_set_t set;
    /* A machine with more CPUs than fit into the mask refuses it, and has more than one. */
    return sched_getaffinity(0, sizeof set, &set) == 0 && CPU_COUNT(&set) == 1;
}
