/* idle.c - search, sleep, notify. The protocol, its race and its ordering table are in README.md.
 *
 * IDLE-1  No runnable fiber waits while a worker sleeps: publish, then look for sleepers, against: say that one
 *         sleeps, then look at everything. For private queues the first side is light and the second heavy. An
 *         owner that sees sleepers may let them sleep when waking has not paid of late, or takes longer than all that
 *         waits; then the watcher is the bound.
 * IDLE-2  At most searchers_max workers search at a time; whoever wakes a sleeper takes the place for it, so
 *         that wakes do not pile up.
 * IDLE-3  A searcher that finds something wakes the next if there is more: parallelism grows while there is work.
 * IDLE-4  While some worker runs and another sleeps, one sleeper is the watcher and wakes now and then (100 us
 *         ... 5 ms): it reaches what sits behind a worker that is stuck in one fiber. When all have slept for a
 *         few ticks, nobody watches and nothing ticks.
 * IDLE-5  While timers are armed and all sleep, one of them, the keeper, sleeps until the next timer only.
 * IDLE-6  Whoever goes to work looks whether sysmon has to be up for that; sysmon goes to sleep, then looks
 *         whether anybody works.
 */
#include "sched/idle.h"

#include "arch/cpu.h"
#include "base/fatal.h"
#include "plat/clock.h"
#include "sched/driver.h"
#include "sched/elastic.h"
#include "sched/inbox.h"
#include "sched/inject.h"
#include "sched/steal.h"
#include "sched/sysmon.h"

enum {
    /* Of the order of one wake-up (28 us measured): searching is cheaper than sleeping too early. */
    SEARCH_NS = 20 * 1000,
    TICK_MIN_NS = 100 * 1000, /* the watcher's first look; doubles */
    TICK_MAX_NS = 5 * 1000 * 1000,
    QUIET_TICKS = 5,   /* some 25 ms in which nobody ran */
    LONELY_SKIPS = 15, /* when all others sleep, a search in vain is followed by so many sleeps without one. Guess */
    SKIP_MAX = 1 << 16,
    /* Moving a fiber to another core costs about that much (two cache lines and the queue): running it should take
     * longer. A fresh one should take twice as long, as it meets its siblings at the same lock, of a nursery say. */
    MEAL_NS = 250,
    TRIM_BATCH = 64,
};

enum wake_word { WAKE_NONE, WAKE_LOOK, WAKE_SEARCH /* and a searcher's place is yours */ };

static bool take_place(void) {
    uint64_t want = cc__get(&cc__sched.want);
    while (want_hungry(want) < cc__sched.searchers_max)
        if (cc__cas_seq(&cc__sched.want, &want, want + WANT_HUNGRY)) return true;
    return false;
}

static void leave_place(void) {
    cc__sub_seq(&cc__sched.want, WANT_HUNGRY);
}

/* ---- notify ---- */

static void remove_locked(struct worker *w) {
    cc__list_remove(&w->remote.idle);
    w->remote.asleep = false;
    if (cc__sched.idle.watcher == w) cc__sched.idle.watcher = NULL;
    if (cc__sched.idle.keeper == w) {
        cc__sched.idle.keeper = NULL;
        cc__sched.idle.keeper_until = UINT64_MAX;
    }
    cc__bump(&cc__sched.idle.epoch);
    cc__sub_seq(&cc__sched.want, WANT_IDLE);
}

static void wake(struct worker *w, enum wake_word word) {
    cc__set_release(&w->remote.wake, word); /* pairs with the sleeper's acquire */
    cc__futex_wake(&w->remote.wake, 1);
}

/* Any sleeper, the watcher last: while others sleep it has a job. */
static struct worker *choose_locked(void) {
    struct worker *last = NULL;
    struct link *list = &cc__sched.idle.list;
    for (struct link *l = cc__get(&list->prev); l != list; l = cc__get(&l->prev)) {
        struct worker *w = container_of(l, struct worker, remote.idle);
        if (w != cc__sched.idle.watcher) return w;
        last = w;
    }
    return last;
}

void cc__idle_notify(struct worker *w) {
    uint64_t want = cc__get_seq(&cc__sched.want); /* after a publication to a shared place (IDLE-1) */
    do {
        if (want_hungry(want) != 0 || want_idle(want) == 0) return;
    } while (!cc__cas_seq(&cc__sched.want, &want, want + WANT_HUNGRY));
    cc__lock_take(&cc__sched.idle.lock);
    struct worker *sleeper = choose_locked();
    if (sleeper != NULL) remove_locked(sleeper);
    cc__lock_release(&cc__sched.idle.lock);
    if (sleeper == NULL) {
        leave_place();
        return;
    }
    if (w != NULL) cc__count(w, notified);
    wake(sleeper, WAKE_SEARCH);
}

void cc__idle_offer(struct worker *w) {
    uint32_t left = cc__get(&w->core.skip_left);
    if (left > 0) {
        cc__set(&w->core.skip_left, left - 1);
        return;
    }
    if (!cc__runq_worth_waking(w)) return;
    cc__set(&w->core.skip_left, cc__get(&cc__sched.skip));
    cc__idle_notify(w);
}

bool cc__idle_notify_worker(struct worker *target) {
    if (want_idle(cc__get_seq(&cc__sched.want)) == 0) return false;
    cc__lock_take(&cc__sched.idle.lock);
    bool asleep = target->remote.asleep;
    if (asleep) remove_locked(target);
    cc__lock_release(&cc__sched.idle.lock);
    if (asleep) wake(target, WAKE_LOOK);
    return asleep;
}

void cc__idle_notify_all(void) {
    for (unsigned i = 0; i < cc__get(&cc__sched.count); i++) (void)cc__idle_notify_worker(&cc__sched.workers[i]);
}

/* ---- search ---- */

/* A worker goes to work: if that leaves sleepers without a watcher, one of them has to become it (IDLE-4). Or a
 * sleeper retires and had a role: another one finds out what is to do. */
static void appoint(bool always) {
    struct worker *sleeper = NULL;
    cc__lock_take(&cc__sched.idle.lock);
    cc__sched.idle.quiet = 0;
    if ((always || cc__sched.idle.watcher == NULL) && (sleeper = choose_locked()) != NULL) remove_locked(sleeper);
    cc__lock_release(&cc__sched.idle.lock);
    if (sleeper != NULL) wake(sleeper, WAKE_LOOK);
}

void cc__idle_left(struct worker *w) {
    w->rested = false;
    w->ticked = false;
    w->called = false;
    w->trims = false;
    if (w->hungry) {
        w->hungry = false;
        leave_place();
    }
    w->fed_at = cc__clock_now();
    cc__sysmon_nudge();
    if (want_idle(cc__get(&cc__sched.want)) == 0) return;
    if (cc__runq_worth_waking(w) || cc__inject_len() != 0) cc__idle_notify(w);
    appoint(false);
}

static bool something_shared(struct worker *w) {
    return !cc__inbox_empty(w) || cc__inject_len() != 0 || cc__get(&cc__sched.stop);
}

uint64_t cc__idle_next_timer(void) {
    uint64_t next = UINT64_MAX;
    for (unsigned i = 0; i < cc__get(&cc__sched.count); i++) {
        uint64_t at = cc__driver_timers_next(i);
        if (at < next) next = at;
    }
    return next;
}

/* Waits a little for somebody to share. Looks only at places that are written when there is news: reading a
 * busy worker's lines would slow it down. */
static bool search(struct worker *w) {
    cc__steal_remember(w);
    uint64_t now = cc__clock_now(), end = now + SEARCH_NS, timer = cc__idle_next_timer();
    do {
        for (int i = 0; i < 16; i++) {
            if (something_shared(w)) return true;
            cc__cpu_relax();
        }
        now = cc__clock_now();
        if (now >= timer) return true;
    } while (now < end);
    return cc__steal_from_stuck(w);
}

/* ---- sleep ---- */

/* When this sleeper has to wake by itself, and in which role. */
static uint64_t choose_role_locked(struct worker *w, uint64_t now) {
    uint64_t until = UINT64_MAX;
    bool all_asleep = want_idle(cc__get(&cc__sched.want)) == cc__sched_open();
    if (!all_asleep) cc__sched.idle.quiet = 0;
    /* The keeper will go to work when it wakes, and would have to find another watcher then. */
    bool wanted = cc__sched.idle.watcher == NULL || cc__sched.idle.watcher == cc__sched.idle.keeper;
    if (wanted && cc__sched.idle.quiet < QUIET_TICKS && cc__sched_open() > 1) {
        cc__sched.idle.watcher = w;
        until = now + (all_asleep ? TICK_MAX_NS : w->tick);
    }
    uint64_t timer = cc__idle_next_timer();
    if (timer < cc__sched.idle.keeper_until) {
        cc__sched.idle.keeper = w;
        cc__sched.idle.keeper_until = timer;
        if (timer < until) until = timer;
    }
    uint64_t end = cc__elastic_until(w, now);
    return end < until ? end : until;
}

/* The look at everything that follows the announcement (IDLE-1). Private queues count only when a searcher may
 * have a share of them. */
static bool something_anywhere(struct worker *w, bool hopeful) {
    if (something_shared(w)) return true;
    bool may_search = hopeful && want_hungry(cc__get(&cc__sched.want)) < cc__sched.searchers_max;
    for (unsigned i = 0; i < cc__get(&cc__sched.count); i++) {
        struct worker *other = &cc__sched.workers[i];
        if (!cc__inbox_empty(other)) return true;
        if (may_search && other != w && cc__get(&other->runq.count) > 1 && cc__runq_worth(other)) return true;
    }
    return false;
}

static uint64_t longer(uint64_t tick) {
    return tick < TICK_MIN_NS ? TICK_MIN_NS : tick * 2 < TICK_MAX_NS ? tick * 2 : TICK_MAX_NS;
}

/* Runs as the watcher: true if somebody is stuck in front of work, or has more than it can run. */
static bool tick(struct worker *w) {
    bool work = false;
    if (take_place()) {
        w->hungry = true;
        for (unsigned i = 0; i < cc__get(&cc__sched.count); i++) {
            struct worker *other = &cc__sched.workers[i];
            if (other != w && cc__get(&other->runq.count) > 1 && cc__runq_worth(other)) work = true;
        }
        work = work || cc__steal_from_stuck(w);
        if (!work) {
            w->hungry = false;
            leave_place();
        }
    }
    cc__steal_remember(w);
    w->tick = longer(w->tick);
    return work;
}

/* Sleeps; returns how it woke: a wake_word, or WAKE_NONE for the time. */
static enum wake_word sleep_until(struct worker *w, uint64_t until) {
    uint32_t word;
    while ((word = cc__get_acquire(&w->remote.wake)) == WAKE_NONE) { /* pairs with wake() */
        if (until != UINT64_MAX && cc__clock_now() >= until) return WAKE_NONE;
        cc__futex_wait(&w->remote.wake, WAKE_NONE, until);
    }
    return (enum wake_word)word;
}

/* Off the list, unless a notifier was faster: then its word is there or about to come, and must be waited for. From
 * there the worker goes on or, its time being over, retires. */
static enum wake_word withdraw(struct worker *w, bool slept, bool *was_watcher, bool *retires) {
    bool had_role = false;
    cc__lock_take(&cc__sched.idle.lock);
    bool listed = w->remote.asleep;
    *was_watcher = cc__sched.idle.watcher == w;
    if (listed) {
        uint32_t sleepers = want_idle(cc__get(&cc__sched.want));
        if (*was_watcher && sleepers == cc__sched_open()) cc__sched.idle.quiet++;
        had_role = *was_watcher || cc__sched.idle.keeper == w;
        *retires = slept && sleepers > 1 && cc__elastic_over(w);
        remove_locked(w);
        if (*retires) cc__elastic_close_locked(w);
    }
    cc__lock_release(&cc__sched.idle.lock);
    if (*retires && had_role) appoint(true);
    return listed ? WAKE_NONE : sleep_until(w, UINT64_MAX);
}

uint64_t cc__idle_epoch(void) {
    return cc__get_seq(&cc__sched.idle.epoch);
}

bool cc__sched_all_asleep(void) {
    cc__lock_take(&cc__sched.idle.lock);
    bool asleep = want_idle(cc__get_seq(&cc__sched.want)) == cc__sched_open() && cc__inject_len() == 0;
    for (unsigned i = 0; asleep && i < cc__get(&cc__sched.count); i++) {
        struct worker *w = &cc__sched.workers[i];
        asleep = cc__inbox_empty(w) && cc__get(&w->runq.count) == 0;
    }
    cc__lock_release(&cc__sched.idle.lock);
    return asleep;
}

void cc__idle_say_drained(void) {
    if (!cc__get_seq(&cc__sched.draining)) return;
    cc__add_seq(&cc__sched.drained, 1);
    cc__futex_wake(&cc__sched.drained, INT32_MAX);
}

/* Was it worth it? A worker that got fibers from others and ran them in less time than it takes to move them
 * does harm by searching: it goes straight to sleep, for longer each time, and others offer less often. So does one
 * that has given fibers away and soon has nothing left: it could have run them itself. */
static void judge(struct worker *w, bool paid) {
    uint32_t skip = cc__get(&cc__sched.skip);
    cc__set(&cc__sched.skip, paid ? 0 : skip < SKIP_MAX ? skip * 2 + 1 : skip);
    if (!paid) cc__count(w, wasted);
}

void cc__idle_gave(struct worker *w, uint32_t n) {
    uint64_t now = cc__clock_now(), until = cc__get(&w->owes_until);
    cc__set(&w->owes_until, (until > now ? until : now) + (uint64_t)n * WORTH_NS);
}

static void judge_meal(struct worker *w) {
    w->idle_since = cc__clock_now();
    bool gave_too_much = w->idle_since < cc__get(&w->owes_until);
    if (w->received != 0 || gave_too_much) {
        bool paid = !gave_too_much && w->idle_since - w->fed_at >= (uint64_t)w->received * MEAL_NS;
        judge(w, paid);
        w->ticked = !paid;
        w->tick = paid ? TICK_MIN_NS : longer(w->tick);
    } else {
        w->tick = TICK_MIN_NS;
    }
    w->received = 0;
    cc__set(&w->owes_until, 0);
}

/* Searches, if there is a place and reason to hope. True: found. */
static bool search_first(struct worker *w) {
    if (w->ticked) return false;
    /* Nobody can share while all others sleep. OS threads may have something soon: that is tried, and done again as
     * long as it pays. */
    bool lonely = want_idle(cc__get(&cc__sched.want)) + 1 >= cc__sched_open();
    if (lonely && !w->called && w->skips > 0) {
        w->skips--;
        return false;
    }
    if (!w->hungry) w->hungry = take_place();
    if (!w->hungry) return false;
    if (search(w)) {
        w->skips = 0;
        return true;
    }
    if (lonely) w->skips = LONELY_SKIPS;
    w->hungry = false;
    leave_place();
    if (w->called) judge(w, false); /* somebody paid for waking us */
    w->called = false;
    return false;
}

bool cc__idle(struct worker *w) {
    if (cc__get(&cc__sched.stop)) return false;
    if (!w->rested) judge_meal(w);
    w->rested = true;
    if (!w->trims && search_first(w)) return true;
    bool hopeful = !w->ticked;
    w->ticked = false;
    /* A burst is over: give stacks back, a few at a time, looking at everything else in between. */
    w->trims = cc__stack_trim(TRIM_BATCH) != 0;
    if (w->trims) return true;

    cc__debug_assert(cc__get(&w->runq.count) == 0, "IDLE-1: a worker sleeps in front of its own queue");
    cc__set(&w->remote.wake, WAKE_NONE);
    cc__lock_take(&cc__sched.idle.lock);
    cc__list_push_back(&cc__sched.idle.list, &w->remote.idle);
    w->remote.asleep = true;
    cc__add_seq(&cc__sched.want, WANT_IDLE);
    uint64_t until = choose_role_locked(w, cc__clock_now());
    cc__lock_release(&cc__sched.idle.lock);
    cc__barrier_heavy(); /* the heavy side of IDLE-1; the light side is cc__runq_tell */

    enum wake_word word = WAKE_NONE;
    bool slept = !something_anywhere(w, hopeful), was_watcher = false, retires = false;
    if (slept) {
        cc__idle_say_drained();
        cc__count(w, slept);
        word = sleep_until(w, until);
    }
    if (word == WAKE_NONE) word = withdraw(w, slept, &was_watcher, &retires);
    if (retires) {
        cc__elastic_drain(w);
        return false;
    }
    if (word == WAKE_SEARCH) w->hungry = w->called = true;
    if (word == WAKE_NONE && was_watcher) w->ticked = !tick(w);
    return true;
}
