/* lowest_fd.h - the lowest free descriptor, to detect leaks. */
#ifndef CCC_TESTS_HARNESS_LOWEST_FD_H
#define CCC_TESTS_HARNESS_LOWEST_FD_H

#include "harness.h"

#include <time.h>
#include <unistd.h>

static int free_fd(void) {
    int fd = dup(0);
    CHECK(fd >= 0);
    close(fd);
    return fd;
}

/* The least of three: now and then the runtime reads a file, for less than a millisecond. */
static int lowest_fd(void) {
    int lowest = free_fd();
    for (int i = 0; i < 2; i++) {
        nanosleep(&(struct timespec){.tv_nsec = 1000 * 1000}, NULL);
        int fd = free_fd();
        if (fd < lowest) lowest = fd;
    }
    return lowest;
}

#endif
