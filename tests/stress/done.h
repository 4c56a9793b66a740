/* done.h - reports the amount of work of a case, for the table of the long profile. */
#ifndef CCC_TESTS_STRESS_DONE_H
#define CCC_TESTS_STRESS_DONE_H

#include "harness.h"

#include <ccc/ccc.h>

/* What the runtime has done since its start goes into the account of the case; called before it ends. */
__attribute__((unused)) static void count_what_was_done(void) {
    CCStats stats;
    if (cc_stats(&stats, sizeof stats) != 0) return;
    test_count("parks", stats.parks);
    test_count("fibers", stats.finished);
}

#endif
