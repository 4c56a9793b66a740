/* contexts.h - runs a check on an OS thread and in a fiber. */
#ifndef CCC_TESTS_UNIT_CONTEXTS_H
#define CCC_TESTS_UNIT_CONTEXTS_H

#include "harness.h"

#include <ccc/ccc.h>

static void *contexts_in_fiber(void *body) {
    CHECK(cc_in_fiber());
    (*(void (**)(void))body)();
    return NULL;
}

static inline void in_both_contexts(void (*body)(void)) {
    CHECK(!cc_in_fiber());
    body();
    CHECK_EQ(cc_run(contexts_in_fiber, &body, NULL), 0);
}

#endif
