/* cc_time.h - points in time, and sleeping until one.
 *
 * All times are CLOCK_MONOTONIC nanoseconds. A deadline is a point in time, not a duration, so
 * one deadline can be passed through any number of calls. A sleep never ends early.
 */
#ifndef CCC_CC_TIME_H
#define CCC_CC_TIME_H

#include <ccc/cc_base.h>

CC_BEGIN_DECLS

/* {0} means no deadline, both in an options struct and as an argument. It is the
 * same as CC_FOREVER. */
typedef struct CCDeadline {
    uint64_t ns; /* CLOCK_MONOTONIC; 0, UINT64_MAX: never */
} CCDeadline;

/* No deadline. */
static inline CCDeadline cc_forever(void) {
    CCDeadline never;
    never.ns = UINT64_MAX;
    return never;
}
#define CC_FOREVER cc_forever()

/* A deadline that has passed: what can be done at once is done, without waiting. */
static inline CCDeadline cc_passed(void) {
    CCDeadline passed;
    passed.ns = 1;
    return passed;
}
#define CC_PASSED cc_passed()

/* Now, in CLOCK_MONOTONIC nanoseconds. Any context; does not switch. */
CC_API uint64_t cc_now_ns(void);

/* The deadline that lies `ns` or `ms` from now; saturates at CC_FOREVER. Any context; does not switch. */
CC_API CCDeadline cc_after_ns(uint64_t ns);
CC_API CCDeadline cc_after_ms(uint64_t ms);

/* Sleeps: a fiber parks, an OS thread blocks. Returns 0, never early; ECANCELED when the caller, a fiber or an OS
 * thread in a block, is cancelled (cc_nursery.h), or is a fiber and the runtime shuts down meanwhile; ENOMEM when a
 * fiber's timer finds no memory. A time in the past returns at once; without a deadline a fiber sleeps until it is
 * cancelled. Any context; switches. */
CC_API int cc_sleep_ms(uint64_t ms);
CC_API int cc_sleep_until(CCDeadline deadline);

CC_END_DECLS

#endif
