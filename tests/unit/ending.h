/* ending.h - shuts the runtime down while fibers wait: they are cancelled. */
#ifndef CCC_TESTS_UNIT_ENDING_H
#define CCC_TESTS_UNIT_ENDING_H

#include "harness.h"

#include <ccc/ccc.h>
#include <errno.h>

/* They have so long to end by themselves. On a machine that is very busy the shortest grace (100 ms) may not do; who
 * has been lost for good does not end in further attempts either, and the case runs out of time. False: a second one
 * was needed, and the first has reported who was late. */
static inline bool end_after(uint64_t ms) {
    int first = cc_runtime_shutdown(ms), rc = first;
    while (rc == ETIMEDOUT) rc = cc_runtime_shutdown(1000);
    CHECK_EQ(rc, 0);
    CHECK_EQ(cc_worker_count(), 0);
    return first == 0;
}

static inline bool end_by_cancelling(void) {
    return end_after(1);
}

#endif
