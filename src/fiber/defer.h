/* defer.h - the list of deferred functions: one for each fiber, one for each OS thread.
 *
 * Newest first. Between the functions that CC_DEFER and cc_defer put there are marks: where a protected call begins,
 * and where a panic is under way. No other state exists (panic/README.md).
 */
#ifndef CC_FIBER_DEFER_H
#define CC_FIBER_DEFER_H

#include "arch/escape.h"

#include <ccc/cc_panic.h>

/* Marks, in the place of a function. */
#define MARK_FIBER ((CCDeferFn)(uintptr_t)1) /* a struct boundary: the fiber itself, its outermost protected call */
#define MARK_TRY ((CCDeferFn)(uintptr_t)2)   /* a struct boundary: cc_try, cc_hosted_call */
#define MARK_PANIC ((CCDeferFn)(uintptr_t)3) /* a panic runs what is below */

/* Where a protected call begins, in the frame of the caller. */
struct boundary {
    CCDefer node;
    struct escape escape;
};

#endif
