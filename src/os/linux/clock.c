/* clock.c - the real time. */
#include "os/clock.h"

#include "base/attr.h"

#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* The race detector watches the C library's function, and what it writes to a worker's stack on behalf of a fiber that
 * has just been left would be a race with whatever was, or comes, there. */
CC_INLINE void ask(struct timespec *ts) {
#ifdef CC_TSAN
    (void)syscall(SYS_clock_gettime, CLOCK_MONOTONIC, ts);
#else
    (void)clock_gettime(CLOCK_MONOTONIC, ts);
#endif
}

CC_NO_TSAN uint64_t cc__clock_real(void) {
    struct timespec ts;
    ask(&ts);
    return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}
