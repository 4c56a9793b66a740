/* pthreads.h - pthread mutexes that fibers hold (CC_DEBUG_LOCKS).
 *
 * A fiber that waits with one in its hands blocks whole workers that want it, and may go on upon another thread, where
 * it must not be unlocked.
 */
#ifndef CC_DIAG_PTHREADS_H
#define CC_DIAG_PTHREADS_H

#include "diag/out.h"
#include "fiber/fiber.h"

/* A line for each that the fiber holds. */
void cc__pthreads_print(struct out *out, struct fiber *f);

#endif
