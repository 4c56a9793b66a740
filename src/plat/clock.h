/* clock.h - the one clock: CLOCK_MONOTONIC in nanoseconds. */
#ifndef CC_PLAT_CLOCK_H
#define CC_PLAT_CLOCK_H

#include <stdint.h>

uint64_t cc__clock_now(void);

#endif
