/* next.c - the full choice of the next fiber, on the worker's own stack.
 *
 * Order: slot, FIFO, fresh (newest), inbox, global, timers, others. Every `interval` turns the order is the
 * other way round: timers, inbox and global queue are emptied into the FIFO, and the oldest fiber of all gets
 * the turn, so nobody waits for ever. The interval adapts to keep the time between two looks near POLL_NS,
 * whether turns take ten nanoseconds or ten milliseconds; so the hot path reads no clock.
 *
 * NEXT-1  A runnable fiber gets its turn after a bounded number of turns of others on the worker that holds it,
 *         wherever it sits.
 */
#include "sched/next.h"

#include "plat/clock.h"
#include "sched/driver.h"
#include "sched/idle.h"
#include "sched/inbox.h"
#include "sched/inject.h"
#include "sched/steal.h"

enum {
    POLL_NS = 50 * 1000,          /* short against a wake-up (28 us measured), long against 64 turns. Guess */
    INTERVAL_MAX = 256,           /* the bound of NEXT-1; POLL_NS is the usual one */
    OTHERS_LATE_NS = 1000 * 1000, /* another worker's timer is fired by us when its owner is this late */
    STUCK_NS = 10 * 1000 * 1000,  /* a worker that stays in one fiber for so long is helped even by busy ones */
    GLOBAL_BATCH = 64,
};

/* Appends what the own inbox holds, a fair share of the global queue and what timers have due; returns how many. */
static uint32_t collect(struct worker *w, uint64_t now, struct link *list) {
    uint32_t n = 0;
    unsigned self = w->core.owner - 1;
    if (cc__driver_timers_next(self) <= now) n += cc__driver_timers_fire(self, now, list);
    uint32_t left = 0; /* to workers that have retired */
    unsigned count = cc__get(&cc__sched.count);
    for (unsigned i = 0; i < count; i++) {
        if (i == self) continue;
        struct worker *other = &cc__sched.workers[i];
        bool retired = i >= cc__sched.base && !cc__worker_open(other);
        uint64_t patience = retired ? 0 : OTHERS_LATE_NS;
        if (now > patience && cc__driver_timers_next(i) <= now - patience) n += cc__driver_timers_fire(i, now, list);
        if (unlikely(retired)) left += cc__inbox_take(other, list);
    }
    if (n != 0) cc__count_n(w, timers, n);
    n += left;
    n += cc__inbox_take(w, list);
    uint64_t global = cc__inject_len();
    if (global != 0) {
        uint64_t fair = global / cc__sched_open() + 1;
        n += cc__inject_take(fair < GLOBAL_BATCH ? (uint32_t)fair : GLOBAL_BATCH, list);
    }
    return n;
}

/* How many turns until the next look, so that it comes about POLL_NS from now. */
static void adapt(struct worker *w, uint64_t now) {
    uint64_t took = now - w->polled_at;
    if (took > 2 * POLL_NS && w->interval > 1)
        w->interval /= 2;
    else if (took < POLL_NS && w->interval < INTERVAL_MAX)
        w->interval *= 2;
    if (cc__trace_on(TRACE_SPEC)) w->interval = 1; /* every turn comes here, where it is checked (fiber/spec.h) */
    w->polled_at = now;
    cc__diary_write(&w->diary, cc__get(&w->core.rounds), now);
    cc__set(&w->core.poll_at, cc__get(&w->core.rounds) + w->interval);
    cc__set(&w->core.share_at, 1);
}

static struct fiber *pick(struct worker *w) {
    cc__bias_enter(&w->runq.bias);
    struct fiber *f = cc__runq_pick_owner(w);
    cc__bias_leave(&w->runq.bias);
    return f;
}

/* The oldest of the FIFO and the oldest of the fresh take turns. */
static struct fiber *pick_oldest(struct worker *w) {
    struct runq *q = &w->runq;
    struct fiber *f = NULL;
    w->fair_fresh = !w->fair_fresh;
    cc__bias_enter(&q->bias);
    if (!cc__list_empty(&q->fresh) && (w->fair_fresh || cc__list_empty(&q->fifo)))
        f = cc__fiber_of(cc__list_pop_back(&q->fresh));
    else if (!cc__list_empty(&q->fifo))
        f = cc__fiber_of(cc__list_pop_front(&q->fifo));
    if (f != NULL)
        cc__runq_sub_owner(q, 1);
    else
        f = cc__runq_pick_owner(w);
    cc__bias_leave(&q->bias);
    return f;
}

/* Everybody is busy, and one is stuck in front of its queue: now and then the others take some of it (NEXT-1). True:
 * taken. */
static bool help_stuck(struct worker *w, uint64_t now) {
    if (now - w->helped_at < STUCK_NS) return false;
    w->helped_at = now;
    bool helped = cc__steal_from_stuck(w);
    cc__steal_remember(w);
    return helped;
}

/* Looks at everything that is not the worker's own. True: there is something in its own queue now. */
static bool poll(struct worker *w) {
    uint64_t now = cc__clock_now();
    struct link list;
    cc__list_init(&list);
    uint32_t n = collect(w, now, &list);
    if (n != 0) cc__runq_append(w, &list, n);
    w->received += n;
    bool helped = cc__get(&cc__sched.count) > 1 && help_stuck(w, now);
    adapt(w, now);
    cc__count(w, polls);
    return n != 0 || helped;
}

static struct fiber *found(struct worker *w, struct fiber *f) {
    if (unlikely(w->rested)) cc__idle_left(w);
    return f;
}

struct fiber *cc__next(struct worker *w) {
    struct fiber *f = cc__get(&w->core.pending);
    if (f != NULL) {
        cc__set(&w->core.pending, NULL);
        return f;
    }
    for (;;) {
        if (cc__get(&w->core.rounds) >= cc__get(&w->core.poll_at)) {
            (void)poll(w);
            f = pick_oldest(w);
            cc__runq_tell(w, 0);
        } else {
            f = pick(w);
        }
        if (f != NULL) return found(w, f);
        if (poll(w) || cc__steal(w)) {
            cc__runq_tell(w, 1);
            continue;
        }
        if (!cc__idle(w)) return NULL;
    }
}
