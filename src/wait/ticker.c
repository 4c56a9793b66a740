/* ticker.c - a point in time that comes again and again (cc_time.h). It is computed; nothing waits in between. */
#include "base/attr.h"
#include "os/clock.h"

#include <ccc/cc_time.h>
#include <errno.h>

/* The tick at `next` is taken. */
static void advance(CCTicker *t, uint64_t now) {
    uint64_t late = now - t->next.ns, passed = late / t->period; /* that many more have come since */
    switch (t->mode) {
    case CC_TICKER_SKIP:
        t->missed += passed;
        t->next = cc_deadline_plus_ns(t->next, (passed + 1) * t->period);
        break;
    case CC_TICKER_BURST:
        t->next = cc_deadline_plus_ns(t->next, t->period);
        break;
    case CC_TICKER_DELAY:
        t->missed += passed;
        t->next = cc_deadline_plus_ns((CCDeadline){now}, t->period);
        break;
    }
}

static bool valid(const CCTicker *t) {
    return t != NULL && t->period != 0 && t->next.ns != 0;
}

int cc_ticker_init(CCTicker *t, uint64_t period_ns, CCTickerMode mode) {
    if (t == NULL || period_ns == 0) return EINVAL;
    if (mode != CC_TICKER_SKIP && mode != CC_TICKER_BURST && mode != CC_TICKER_DELAY) return EINVAL;
    *t = (CCTicker){.next = cc_after_ns(period_ns), .period = period_ns, .mode = mode};
    return 0;
}

int cc_ticker_wait_try(CCTicker *t) {
    if (!valid(t)) return EINVAL;
    uint64_t now = cc__clock_look();
    if (t->next.ns == UINT64_MAX || now < t->next.ns) return EAGAIN;
    advance(t, now);
    return 0;
}

int cc_ticker_wait(CCTicker *t) {
    if (!valid(t)) return EINVAL;
    int rc = cc_sleep_until(t->next);
    return rc != 0 ? rc : cc_ticker_wait_try(t);
}
