/* done.h - reports the amount of work of a case, for the table of the long profile. */
#ifndef CCC_TESTS_STRESS_DONE_H
#define CCC_TESTS_STRESS_DONE_H

#include "harness.h"

#include <ccc/ccc.h>

/* Adds what the runtime has done since its start to the counts of the case; called before the shutdown. */
__attribute__((unused)) static void count_what_was_done(void) {
    CCStats stats;
    if (cc_stats(&stats, sizeof stats) != 0) return;
    test_count("parks", stats.parks);
    test_count("fibers", stats.finished);
}

#endif
