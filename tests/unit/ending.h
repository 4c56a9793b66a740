/* ending.h - shuts the runtime down while fibers wait: they are cancelled. */
#ifndef CCC_TESTS_UNIT_ENDING_H
#define CCC_TESTS_UNIT_ENDING_H

#include "harness.h"

#include <ccc/ccc.h>
#include <errno.h>

/* Fibers have this grace period to end by themselves. On a very busy machine the shortest one (100 ms) may be too
 * short, so the shutdown is repeated; a fiber that is really stuck does not end in further attempts either, and the
 * case times out. False: a second attempt was needed, and the first has reported the late fibers. */
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
