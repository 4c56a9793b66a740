/* ending.h - ends the runtime while fibers wait: they are cancelled. */
#ifndef CCC_TESTS_UNIT_ENDING_H
#define CCC_TESTS_UNIT_ENDING_H

#include "harness.h"

#include <ccc/ccc.h>
#include <errno.h>

/* Waits for no longer than it has to. On a machine that is very busy the shortest grace (100 ms) may not do; who
 * has been lost for good does not end in the second attempt either. False: a second one was needed, and the first has
 * reported who was late. */
static inline bool end_by_cancelling(void) {
    int first = cc_runtime_shutdown(1), rc = first;
    if (rc == ETIMEDOUT) rc = cc_runtime_shutdown(3000);
    CHECK_EQ(rc, 0);
    CHECK_EQ(cc_worker_count(), 0);
    return first == 0;
}

#endif
