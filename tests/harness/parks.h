/* parks.h - checks that a wait has really parked: one whose deadline has passed before it begins does not, and a busy
 * machine may delay a thread for longer than any timeout of a test. */
#ifndef CCC_TESTS_PARKS_H
#define CCC_TESTS_PARKS_H

#include "harness.h"

#include <ccc/cc_diag.h>
#include <string.h>

/* How many waits for that reason ("sleep", "join") have parked a fiber so far. */
static inline uint64_t test_parks(const char *name) {
    CCStats stats;
    CHECK_EQ(cc_stats(&stats, sizeof stats), 0);
    unsigned reason = 0;
    while (strcmp(cc_stats_reason(reason), name) != 0) reason++;
    return stats.parks_by[reason];
}

#endif
