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

/* A deadline that has passed: the call does what it can without waiting. */
static inline CCDeadline cc_passed(void) {
    CCDeadline passed;
    passed.ns = 1;
    return passed;
}
#define CC_PASSED cc_passed()

/* Now, in CLOCK_MONOTONIC nanoseconds. Any context; does not switch. */
CC_API uint64_t cc_now_ns(void);

/* The deadline `ns` or `ms` from now; saturates at CC_FOREVER. Any context; does not switch. */
CC_API CCDeadline cc_after_ns(uint64_t ns);
CC_API CCDeadline cc_after_ms(uint64_t ms);

static inline CCDeadline cc_after_s(uint64_t s) {
    return cc_after_ms(s < UINT64_MAX / 1000 ? s * 1000 : UINT64_MAX);
}

/* Arithmetic. A deadline of never, {0} included, stays never, and sums saturate there. */
static inline bool cc_deadline_is_never(CCDeadline d) {
    return d.ns == 0 || d.ns == UINT64_MAX;
}
static inline CCDeadline cc_deadline_plus_ns(CCDeadline d, uint64_t ns) {
    if (cc_deadline_is_never(d) || ns > UINT64_MAX - d.ns) return cc_forever();
    d.ns += ns;
    return d;
}
static inline CCDeadline cc_deadline_plus_ms(CCDeadline d, uint64_t ms) {
    return cc_deadline_plus_ns(d, ms < UINT64_MAX / 1000000 ? ms * 1000000 : UINT64_MAX);
}
/* The earlier of the two. */
static inline CCDeadline cc_deadline_earlier(CCDeadline a, CCDeadline b) {
    if (cc_deadline_is_never(a)) return b;
    return cc_deadline_is_never(b) || a.ns < b.ns ? a : b;
}
/* The time left: 0 if it has passed, UINT64_MAX if it never comes. Any context; does not switch. */
static inline uint64_t cc_deadline_left_ns(CCDeadline d) {
    uint64_t now;
    if (cc_deadline_is_never(d)) return UINT64_MAX;
    now = cc_now_ns();
    return d.ns > now ? d.ns - now : 0;
}
static inline bool cc_deadline_has_passed(CCDeadline d) {
    return cc_deadline_left_ns(d) == 0;
}

/* Sleeps: a fiber parks, an OS thread blocks. Returns 0, never early; up to 1 ms late while workers are idle and
 * would have to wake for timers more than 3,000 times a second (CC_TIMER_SLACK_US, ccc(7)), and by a turn or two of
 * other fibers while all workers are busy, or some 10 ms when their turns have just become longer. ECANCELED: the
 * caller, a fiber or an OS thread in a block, is cancelled (cc_nursery.h), or is a fiber and the runtime shuts down;
 * ENOMEM: no memory for a fiber's timer. A time in the past returns at once; without a deadline a fiber sleeps until
 * it is cancelled. Any context; switches. */
CC_API int cc_sleep_ms(uint64_t ms);
CC_API int cc_sleep_until(CCDeadline deadline);
static inline int cc_sleep_s(uint64_t s) {
    return cc_sleep_until(cc_after_s(s));
}

/* ---- tickers ---- */

/* What happens when several ticks are due by the time a caller waits for one. In every mode one of them is delivered at
 * once; the others are ... */
typedef enum CCTickerMode {
    CC_TICKER_SKIP,  /* skipped and counted; the next comes at a whole number of periods from the first */
    CC_TICKER_BURST, /* delivered at once too, one after the other */
    CC_TICKER_DELAY  /* skipped and counted; the next comes a period after the late one was taken */
} CCTickerMode;

/* A periodic point in time: no task, nothing to free. Several callers may wait for one ticker: each tick goes to an
 * arbitrary one of them. So it can also serve as a rate limiter. A ticker in use must not be copied or moved.
 *
 *   CCTicker second;
 *   cc_ticker_init(&second, 1000000000, CC_TICKER_SKIP);
 *   while (cc_ticker_wait(&second) == 0) print_statistics();
 *
 * CC_ON_TICK is an arm of CC_WHEN (cc_when.h). */
typedef struct CCTicker {
    CCDeadline next; /* tick */
    uint64_t period; /* in nanoseconds */
    uint64_t missed; /* ticks skipped so far; CC_TICKER_SKIP and CC_TICKER_DELAY */
    CCTickerMode mode;
    uint64_t reserved[2]; /* the library's */
} CCTicker;

/* The first tick comes a period from now. No other call may be in progress. EINVAL: NULL, a period of 0, an unknown
 * mode. Any context; does not switch. */
CC_API int cc_ticker_init(CCTicker *ticker, uint64_t period_ns, CCTickerMode mode);
/* Sleeps until the next tick, and takes it. Errors as cc_sleep_until; after an error the tick is not taken. EINVAL:
 * NULL, or not initialised. Any context; switches. */
CC_API int cc_ticker_wait(CCTicker *ticker);
/* Takes a tick that is due, without waiting, and advances `next`. EAGAIN: none is due; EINVAL as above. Any context;
 * does not switch. */
CC_API int cc_ticker_wait_try(CCTicker *ticker);

CC_END_DECLS

#endif
