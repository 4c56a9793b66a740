/* alone.h - serialises tests at real-time priority: two of them at once would compete for the same CPUs. */
#ifndef CCC_TESTS_UNIT_SCHED_ALONE_H
#define CCC_TESTS_UNIT_SCHED_ALONE_H

#include "harness.h"

#include <fcntl.h>
#include <sys/file.h>

/* Until the end of the process. */
static inline void be_alone(void) {
    int fd = open("/tmp/ccc-tests-realtime.lock", O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (fd < 0) SKIP("the tests at real-time priority cannot take turns here");
    CHECK_EQ(flock(fd, LOCK_EX), 0);
}

#endif
