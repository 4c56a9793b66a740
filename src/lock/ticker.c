/* ticker.c - periodic deadlines (cc_time.h). They are computed; no timer runs in between.
 *
 * TICKER-1  The caller whose compare-and-swap advances `next` takes the tick. Other callers that slept for that tick
 *           sleep again.
 * TICKER-2  At most SLEEPERS callers sleep, each with a permit, which it releases however its wait ends. The others
 *           wait for a permit, in FIFO order. So the cost of a tick does not depend on the number of callers.
 */
#include "lock/sem.h"
#include "os/clock.h"
#include "sched/sched.h"

#include <ccc/cc_nursery.h>
#include <ccc/cc_sched.h>
#include <ccc/cc_time.h>
#include <errno.h>
#include <string.h>

/* With one, ticks that became due together would be taken in as many turns, one after the other, and a ticker whose
 * callers run beside long turns would fall behind. Guess. */
enum { SLEEPERS = 64 };

_Static_assert(sizeof(CCSem) == sizeof((CCTicker){0}.reserved), "the permits are in the reserved words");

static CCSem *permits_of(CCTicker *t) {
    return (CCSem *)(void *)t->reserved;
}

/* C++ has no _Atomic, so the public struct has plain fields. */
static _Atomic uint64_t *next_of(CCTicker *t) {
    return (_Atomic uint64_t *)&t->next.ns;
}

/* The tick after the one at `next`, which is taken now; and how many are skipped in between. */
static uint64_t following(const CCTicker *t, uint64_t next, uint64_t now, uint64_t *missed) {
    uint64_t passed = (now - next) / t->period; /* ticks that have passed since */
    CCDeadline from = {t->mode == CC_TICKER_DELAY ? now : next};
    *missed = t->mode == CC_TICKER_BURST ? 0 : passed;
    return cc_deadline_plus_ns(from, t->mode == CC_TICKER_SKIP ? (passed + 1) * t->period : t->period).ns;
}

static bool valid(CCTicker *t) {
    return t != NULL && t->period != 0 && cc__get(next_of(t)) != 0;
}

int cc_ticker_init(CCTicker *t, uint64_t period_ns, CCTickerMode mode) {
    if (t == NULL || period_ns == 0) return EINVAL;
    if (mode != CC_TICKER_SKIP && mode != CC_TICKER_BURST && mode != CC_TICKER_DELAY) return EINVAL;
    *t = (CCTicker){.next = cc_after_ns(period_ns), .period = period_ns, .mode = mode};
    memcpy(t->reserved, &(CCSem)CC_SEM_INIT(SLEEPERS), sizeof(CCSem));
    return 0;
}

int cc_ticker_wait_try(CCTicker *t) {
    if (!valid(t)) return EINVAL;
    uint64_t now = cc__clock_look(), missed, next = cc__get(next_of(t));
    do {
        if (next == UINT64_MAX || now < next) return EAGAIN;
    } while (!cc__cas(next_of(t), &next, following(t, next, now, &missed))); /* TICKER-1 */
    if (missed > 0) (void)cc__add((_Atomic uint64_t *)&t->missed, missed);
    return 0;
}

/* Two polls: a fiber that makes up for a few ticks goes on. Guess. */
enum { BEHIND_NS = 100 * 1000 };

/* A loop whose ticker is always behind must not starve others, or outlive its cancellation. */
static int check_and_yield(uint64_t now) {
    int rc = cc_check_cancel();
    struct worker *w = cc__worker();
    if (rc == 0 && cc__sched_current(w) != NULL && now > cc__get(&w->polled_at) + BEHIND_NS) cc_yield();
    return rc;
}

/* Takes the next tick: 0, or the error that ended the wait. */
static int sleep_and_take(CCTicker *t) {
    int rc;
    do {
        rc = cc_sleep_until((CCDeadline){cc__get(next_of(t))});
        if (rc == 0) rc = cc_ticker_wait_try(t);
    } while (rc == EAGAIN); /* another caller has taken it */
    return rc;
}

int cc_ticker_wait(CCTicker *t) {
    if (!valid(t)) return EINVAL;
    uint64_t now = cc__clock_look();
    int rc = now < cc__get(next_of(t)) ? EAGAIN : check_and_yield(now);
    if (rc == 0) rc = cc_ticker_wait_try(t);
    if (rc != EAGAIN) return rc;
    rc = cc__sem_acquire_for(permits_of(t), PARK_SLEEP); /* TICKER-2 */
    if (rc != 0) return rc;
    rc = sleep_and_take(t);
    (void)cc_sem_release(permits_of(t), 1);
    return rc;
}
