/* ticker.c - tickers and their modes, deadline arithmetic, and whether a block's deadline has passed. */
#include "../contexts.h"
#include "sched/sched.h"
#include "sync/atomic.h"
#include "timer/timer.h"

#include <errno.h>

enum { MS = 1000000 };

static void ticks(void) {
    CCTicker t;
    CHECK_EQ(cc_ticker_init(NULL, MS, CC_TICKER_SKIP), EINVAL);
    CHECK_EQ(cc_ticker_init(&t, 0, CC_TICKER_SKIP), EINVAL);
    CHECK_EQ(cc_ticker_init(&t, MS, (CCTickerMode)9), EINVAL);
    CCTicker none = {{0}, 0, 0, CC_TICKER_SKIP, {0}};
    CHECK_EQ(cc_ticker_wait(&none), EINVAL);
    CHECK_EQ(cc_ticker_wait_try(NULL), EINVAL);
    uint64_t start = cc_now_ns();
    CHECK_EQ(cc_ticker_init(&t, MS, CC_TICKER_SKIP), 0);
    for (int i = 0; i < 5; i++) CHECK_EQ(cc_ticker_wait(&t), 0);
    CHECK(cc_now_ns() - start >= 5 * MS); /* never early */
    CHECK_EQ(cc_ticker_init(&t, 3600 * UINT64_C(1000) * MS, CC_TICKER_SKIP), 0);
    CHECK_EQ(cc_ticker_wait_try(&t), EAGAIN);
    CHECK_EQ(cc_ticker_init(&t, UINT64_MAX, CC_TICKER_SKIP), 0);
    CHECK_EQ(cc_ticker_wait_try(&t), EAGAIN);
}

TEST_WORKERS(ticks) {
    in_both_contexts(ticks);
}

/* The next tick was three periods and a half ago. */
TEST(modes) {
    uint64_t now = cc_now_ns(), period = now / 10;
    CCTicker t;
    CHECK_EQ(cc_ticker_init(&t, period, CC_TICKER_SKIP), 0);
    uint64_t first = t.next.ns = now - period * 7 / 2;
    CHECK_EQ(cc_ticker_wait(&t), 0);
    CHECK_EQ(t.missed, 3);
    CHECK_EQ(t.next.ns, first + 4 * period);
    CHECK_EQ(cc_ticker_wait_try(&t), EAGAIN);
    CHECK_EQ(cc_ticker_init(&t, period, CC_TICKER_BURST), 0);
    t.next.ns = first;
    for (int i = 0; i < 4; i++) CHECK_EQ(cc_ticker_wait(&t), 0);
    CHECK_EQ(t.missed, 0);
    CHECK_EQ(cc_ticker_wait_try(&t), EAGAIN);
    CHECK_EQ(t.next.ns, first + 4 * period);
    CHECK_EQ(cc_ticker_init(&t, period, CC_TICKER_DELAY), 0);
    t.next.ns = first;
    CHECK_EQ(cc_ticker_wait(&t), 0);
    CHECK_EQ(t.missed, 3);
    CHECK(t.next.ns >= now + period);
}

/* Several callers: each tick is taken by one of them. */
enum { TAKERS = 4, TAKES = 100 };

CC_CHILD(take_ticks, { CCTicker *ticker; }) {
    for (int i = 0; i < TAKES;) {
        int rc = i % 2 == 0 ? cc_ticker_wait(self->ticker) : cc_ticker_wait_try(self->ticker);
        if (rc == 0)
            i++;
        else if (rc == EAGAIN)
            cc_yield();
        else
            return rc;
    }
    return 0;
}

static void shared(void) {
    for (int mode = CC_TICKER_SKIP; mode <= CC_TICKER_BURST; mode++) {
        CCTicker t;
        int rc = -1;
        CHECK_EQ(cc_ticker_init(&t, 1000, (CCTickerMode)mode), 0);
        uint64_t first = t.next.ns;
        CC_NURSERY(n, .result = &rc) {
            for (int i = 0; i < TAKERS; i++) CHECK_EQ(CC_GO_IN(n, take_ticks, .ticker = &t), 0);
        }
        CHECK_EQ(rc, 0);
        CHECK_EQ(t.next.ns - first, (TAKERS * TAKES + t.missed) * 1000);
    }
}

TEST_WORKERS(shared) {
    for (int i = 0; i < 5; i++) in_both_contexts(shared);
}

/* Many callers: few of them have timers, so a tick does not wake all. */
enum { CALLERS = 1000, FEW = 100 };

static _Atomic unsigned callers_waiting, callers_with_ticks;
static CCTask callers[CALLERS];

static void *wait_for_tick(void *arg) {
    callers_waiting++;
    int rc = cc_ticker_wait(arg);
    callers_with_ticks += rc == 0;
    return CC_ERROR(rc);
}

static void start_callers(CCNursery *n, CCTicker *ticker) {
    callers_waiting = 0;
    callers_with_ticks = 0;
    for (int i = 0; i < CALLERS; i++) CHECK_EQ(cc_nursery_spawn_ex(n, &callers[i], wait_for_tick, ticker, NULL), 0);
    while (callers_waiting < CALLERS) cc_yield();
}

static void *many_wait(void *arg) {
    CCTicker hour;
    int rc = -1;
    uint32_t others = cc__timer_count(cc__worker());
    CHECK_EQ(cc_ticker_init(&hour, 3600 * UINT64_C(1000) * MS, CC_TICKER_SKIP), 0);
    CC_NURSERY(n, .result = &rc) {
        start_callers(n, &hour);
        uint32_t sleepers = cc__timer_count(cc__worker()) - others;
        CHECK(sleepers >= 1 && sleepers <= FEW);
        CHECK_EQ(cc_nursery_cancel(n), 0);
    }
    CHECK_EQ(rc, ECANCELED);
    CHECK_EQ(callers_with_ticks, 0);
    return arg;
}

/* Those that leave make room for the others, which get their ticks. The first comes after they have left. */
static void *many_leave(void *arg) {
    CCTicker t;
    int rc = -1;
    CHECK_EQ(cc_ticker_init(&t, 200 * MS, CC_TICKER_BURST), 0);
    t.period = 1000;
    CC_NURSERY(n, .result = &rc, .mode = CC_NURSERY_KEEP_GOING) {
        start_callers(n, &t);
        for (int i = 0; i < CALLERS - FEW; i++) CHECK_EQ(cc_task_cancel(&callers[i]), 0);
    }
    CHECK_EQ(rc, ECANCELED);
    CHECK(callers_with_ticks >= FEW);
    return arg;
}

TEST(many_callers_have_few_timers) {
    CCRuntimeConfig config = {.workers = 1, .max_workers = 1};
    CHECK_EQ(cc_runtime_init(&config), 0);
    CHECK_EQ(cc_run(many_wait, NULL, NULL), 0);
    CHECK_EQ(cc_run(many_leave, NULL, NULL), 0);
}

/* Each of them takes a tick, although some are cancelled. */
CC_CHILD(take_tick, {
    CCTicker *ticker;
    bool cancelled;
}) {
    int rc = 0;
    if (self->cancelled) {
        CC_WITH_DEADLINE(CC_PASSED) rc = cc_ticker_wait(self->ticker);
        if (rc == ECANCELED) return 0;
    }
    return rc != 0 ? rc : cc_ticker_wait(self->ticker);
}

static void many(void) {
    for (int mode = CC_TICKER_SKIP; mode <= CC_TICKER_DELAY; mode++) {
        CCTicker t;
        int rc = -1;
        CHECK_EQ(cc_ticker_init(&t, 1000, (CCTickerMode)mode), 0);
        CC_NURSERY(n, .result = &rc) {
            for (int i = 0; i < CALLERS / 2; i++)
                CHECK_EQ(CC_GO_IN(n, take_tick, .ticker = &t, .cancelled = i % 3 == 0), 0);
        }
        CHECK_EQ(rc, 0);
    }
}

TEST_WORKERS(many) {
    in_both_contexts(many);
}

static void arm(void) {
    CCTicker t;
    CCChan *ch = cc_chan_create(sizeof(int), 1);
    int v, ticks_seen = 0;
    CHECK_EQ(cc_ticker_init(&t, MS, CC_TICKER_BURST), 0);
    CCDeadline first = t.next;
    while (ticks_seen < 3) {
        CC_WHEN {
            CC_ON_RECV(ch, &v) {
                CHECK(!"nobody sends");
            }
            CC_ON_TICK(&t) {
                ticks_seen++;
                CHECK_EQ(CC_WHEN_ERROR, 0);
            }
        }
    }
    CHECK_EQ(t.next.ns, first.ns + 3 * MS);
    cc_chan_free(ch);
}

TEST_WORKERS(arm) {
    in_both_contexts(arm);
}

TEST(arithmetic) {
    CCDeadline none = {0}, at = {1000}, later = {2000};
    CHECK(cc_deadline_is_never(none) && cc_deadline_is_never(CC_FOREVER) && !cc_deadline_is_never(at));
    CHECK_EQ(cc_deadline_plus_ns(at, 5).ns, 1005);
    CHECK_EQ(cc_deadline_plus_ms(at, 5).ns, 5001000);
    CHECK_EQ(cc_deadline_plus_ns(none, 5).ns, UINT64_MAX);
    CHECK_EQ(cc_deadline_plus_ns(at, UINT64_MAX).ns, UINT64_MAX);
    CHECK_EQ(cc_deadline_plus_ms(at, UINT64_MAX).ns, UINT64_MAX);
    CHECK_EQ(cc_deadline_earlier(at, later).ns, 1000);
    CHECK_EQ(cc_deadline_earlier(later, at).ns, 1000);
    CHECK_EQ(cc_deadline_earlier(none, later).ns, 2000);
    CHECK_EQ(cc_deadline_earlier(at, CC_FOREVER).ns, 1000);
    CHECK_EQ(cc_deadline_left_ns(CC_FOREVER), UINT64_MAX);
    CHECK_EQ(cc_deadline_left_ns(CC_PASSED), 0);
    CHECK(cc_deadline_has_passed(CC_PASSED) && !cc_deadline_has_passed(none));
    uint64_t left = cc_deadline_left_ns(cc_after_s(100));
    CHECK(left > UINT64_C(50000) * MS && left <= UINT64_C(100000) * MS);
    CHECK_EQ(cc_after_s(UINT64_MAX).ns, UINT64_MAX);
    CHECK_EQ(cc_sleep_s(0), 0);
}

static void fired(void) {
    bool late_one = false, in_time = true, with_error = true;
    CC_WITH_DEADLINE(cc_after_ms(1), &late_one) {
        CHECK_EQ(cc_sleep_until(CC_FOREVER), ECANCELED);
        CHECK(!late_one); /* reported at the end */
    }
    CHECK(late_one);
    CC_WITH_DEADLINE(cc_after_s(1000), &in_time) {
        cc_yield();
    }
    CHECK(!in_time);
    int rc;
    CC_NURSERY(n, .result = &rc) {
        CC_WITH_DEADLINE(cc_after_s(1000), &with_error) {
            CHECK_EQ(cc_nursery_cancel(n), 0);
            CHECK_EQ(cc_sleep_until(CC_FOREVER), ECANCELED); /* not by the deadline */
        }
    }
    CHECK(!with_error);
    CC_WITH_DEADLINE(CC_PASSED, &late_one) {
        break;
    }
    CHECK(late_one);
    CC_WITH_DEADLINE(CC_FOREVER, NULL) {
        continue;
    }
}

TEST_WORKERS(fired) {
    in_both_contexts(fired);
}

/* ---- waits that need not wait ---- */

static _Atomic bool over;
static _Atomic unsigned turns;

static void *count_turns(void *arg) {
    while (!cc__get(&over)) {
        cc__add_relaxed(&turns, 1);
        cc_yield();
    }
    return arg;
}

/* A ticker that is always behind: others run, and a cancellation ends it. */
static void *always_behind(void *arg) {
    CCTask other = cc_fiber_spawn_task(count_turns, NULL);
    for (int mode = CC_TICKER_SKIP; mode <= CC_TICKER_DELAY; mode++) {
        CCTicker ticker;
        unsigned before = cc__get(&turns);
        int rc = 0;
        CHECK_EQ(cc_ticker_init(&ticker, 1, (CCTickerMode)mode), 0);
        while (cc__get(&turns) == before) CHECK_EQ(cc_ticker_wait(&ticker), 0);
        CC_WITH_DEADLINE(cc_after_ms(5), NULL) {
            while ((rc = cc_ticker_wait(&ticker)) == 0) continue;
        }
        CHECK_EQ(rc, ECANCELED);
    }
    cc__set(&over, true);
    CHECK_EQ(cc_task_join(&other, NULL), 0);
    return arg;
}

TEST(a_ticker_that_is_always_behind) {
    CCRuntimeConfig config = {.workers = 1, .max_workers = 1};
    CHECK_EQ(cc_runtime_init(&config), 0);
    CHECK_EQ(cc_run(always_behind, NULL, NULL), 0);
}
