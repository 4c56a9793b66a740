/* defer.h - the list of deferred functions: one for each fiber, one for each OS thread.
 *
 * Newest first. Between the functions that CC_DEFER and cc_defer add there are marks: where a protected call begins,
 * and where a panic is in progress. There is no other state (panic/README.md).
 */
#ifndef CC_FIBER_DEFER_H
#define CC_FIBER_DEFER_H

#include "arch/escape.h"

#include <ccc/cc_panic.h>

/* Marks, in place of a function. */
#define MARK_FIBER ((CCDeferFn)(uintptr_t)1) /* a struct boundary: the fiber itself, its outermost protected call */
#define MARK_TRY ((CCDeferFn)(uintptr_t)2)   /* a struct boundary: cc_try, cc_hosted_call */
#define MARK_PANIC ((CCDeferFn)(uintptr_t)3) /* a panic that runs the functions below it */

/* The start of a protected call, in the frame of the caller. */
struct boundary {
    CCDefer node;
    struct escape escape;
};

#endif
