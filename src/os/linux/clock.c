/* clock.c - the real time. */
#include "os/clock.h"

#include "arch/cpu.h"
#include "base/attr.h"
#include "base/error.h"

#include <fcntl.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* The race detector intercepts the C library's function, and would report its write to a worker's stack, on behalf of a
 * fiber that has just been left, as a race with other uses of that stack. */
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

/* On x86-64 the kernel knows whether the counter can be a clock, and then uses it; other CPUs define it as one. */
bool cc__clock_real_counts_cycles(void) {
#ifdef __x86_64__
    static const char path[] = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
    CC_KEEP_ERRNO;
    char name[8] = "";
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return false;
    ssize_t n = read(fd, name, sizeof name - 1);
    (void)close(fd);
    return n >= 4 && memcmp(name, "tsc\n", 4) == 0;
#else
    return cc__cpu_cycles() != 0;
#endif
}
