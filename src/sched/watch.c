/* watch.c - the roles of sleepers: watcher, timer sleeper, poller. A worker with a role wakes by itself, so that the
 * others may sleep indefinitely. Sleeping and waking are in idle.c; the protocol of both is in README.md, the numbers
 * are in policy.h.
 *
 * IDLE-4  An owner that sees sleepers may leave the wake to the watcher (defer it) while WANT_WATCH is set. The watcher
 *         is a sleeper that ticks every WATCH_EAGER_NS or WATCH_NS, and steals what waits behind a long turn. While all
 *         sleep, nothing can wait: it ticks every WATCH_NS, or after the next timer. It clears the bit before its last
 *         check, so that no deferred wake is lost; if it is woken while others sleep, it appoints another watcher. So
 *         does that one, if it finds work before it sleeps again.
 * IDLE-5  While timers are armed and all sleep, one of them, the timer sleeper, sleeps only until the next timer. A
 *         worker that goes to work wakes another sleeper if otherwise none would wake for the next timer, or tick. So
 *         does a fiber that arms a timer and continues, if the timer is due soon; for later ones sysmon does. So does
 *         an island that ends, for all its alarms (ISLAND-4).
 * IDLE-7  A worker takes the poller's role under the lock, before others find it on the list, and gives it up when it
 *         is awake. So a thread that wakes it sees the role; it sets the wake word before the interrupt, which is not
 *         lost if it comes before the wait (DRIVER-3). A thread that begins to wait for an event, and is not a worker
 *         that will sleep, looks for the poller after it has told the driver: it sees that there is none, or the one
 *         that gives up the role sees that there is a waiter.
 * IDLE-8  While idle workers wake for timers too often (cc__policy_timer_slack), a timer that is due within `slack`
 *         after such a wake waits until `slack` after it, so that timers that become due meanwhile fire together. Idle
 *         workers use cc__watch_next_timer for all decisions about timers; if two of them see different values, one of
 *         them fires the timer sooner. Busy workers poll their own timers without slack.
 */
#include "sched/watch.h"

#include "arch/cpu.h"
#include "os/clock.h"
#include "sched/driver.h"
#include "sched/elastic.h"
#include "sched/inbox.h"
#include "sched/inject.h"
#include "sched/island.h"
#include "sched/policy.h"
#include "sched/runq.h"
#include "sched/steal.h"

/* ---- the timer sleeper ---- */

static uint64_t slack_max = TIMER_SLACK_NS;

void cc__watch_set_timer_slack(uint64_t ns) {
    slack_max = ns;
}

static uint64_t next_due(void) {
    uint64_t next = cc__islands_next_alarm(false);
    for (unsigned i = 0; i < cc__get(&cc__sched.count); i++) {
        uint64_t at = cc__drivers_next_due(i, false);
        if (at < next) next = at;
    }
    return next;
}

/* When timers that are due at `next` are fired by idle workers. */
static uint64_t with_slack(uint64_t next) {
    uint64_t least = cc__get(&cc__sched.idle.timers.at) + cc__get(&cc__sched.idle.timers.slack);
    return next < least ? least : next;
}

uint64_t cc__watch_next_timer(void) { /* IDLE-8 */
    return with_slack(next_due());
}

static void forget_wakes(uint64_t slack) {
    cc__set(&cc__sched.idle.timers.slack, slack);
    cc__set(&cc__sched.idle.timers.gaps, 0);
    cc__set(&cc__sched.idle.timers.fired, 0);
    cc__set(&cc__sched.idle.timers.wakes, 0);
}

bool cc__watch_timers_due(uint64_t next, uint64_t now, bool slept) {
    if (now < next) return false;
    if (now - cc__get(&cc__sched.idle.timers.at) > TIMER_PAUSE_NS) forget_wakes(0);
    cc__set(&cc__sched.idle.timers.at, now);
    if (slept) cc__set(&cc__sched.idle.timers.woken, 1);
    return true;
}

void cc__watch_timers_fired(uint32_t n) {
    cc__set(&cc__sched.idle.timers.fired, cc__get(&cc__sched.idle.timers.fired) + n);
}

/* The first worker that goes to sleep after a wake for timers knows when the next wake would be. If several workers
 * count at once a count is lost, and the slack is decided later. */
static void count_wake(uint64_t next) {
    if (cc__get(&cc__sched.idle.timers.woken) == 0) return;
    cc__set(&cc__sched.idle.timers.woken, 0);
    uint64_t at = cc__get(&cc__sched.idle.timers.at), gap = next > at ? next - at : 0, fired;
    uint64_t gaps = cc__get(&cc__sched.idle.timers.gaps) + (gap < TIMER_SLACK_NS ? gap : TIMER_SLACK_NS);
    uint32_t wakes = cc__get(&cc__sched.idle.timers.wakes) + 1;
    cc__set(&cc__sched.idle.timers.gaps, gaps);
    cc__set(&cc__sched.idle.timers.wakes, wakes);
    if (wakes < TIMER_WAKES) return;
    fired = cc__get(&cc__sched.idle.timers.fired);
    forget_wakes(cc__policy_timer_slack(cc__get(&cc__sched.idle.timers.slack), slack_max, gaps, fired));
}

/* A change of the timer sleeper or of the watcher came before the caller left the list, or is made by a worker that
 * sees that not all sleep. */
bool cc__watch_timers_forgotten(void) {
    return cc__get(&cc__sched.idle.watcher) == NULL &&
           cc__watch_next_timer() < cc__get(&cc__sched.idle.timer_sleeper_until);
}

/* Until when this sleeper waits for the next timer; UINT64_MAX: another one does, or there is none. timer: the next
 * one, as read under the lock, or by a sleeper without this role after it went on the list. The one that it waited for
 * may have been fired by another thread, or disarmed. */
static uint64_t sleep_for_timer_locked(struct worker *w, uint64_t timer) {
    bool ours = cc__sched.idle.timer_sleeper == w;
    if (!ours && timer >= cc__get(&cc__sched.idle.timer_sleeper_until)) return UINT64_MAX;
    cc__sched.idle.timer_sleeper = timer != UINT64_MAX ? w : NULL;
    cc__set(&cc__sched.idle.timer_sleeper_until, timer);
    return timer;
}

/* Reads every worker's timers, which takes longer than everything under the lock, and is therefore done without it
 * (README.md). */
uint64_t cc__watch_sleep_for_timer(struct worker *w) {
    uint64_t next = next_due();
    count_wake(next);
    uint64_t timer = with_slack(next);
    if (timer >= cc__get(&cc__sched.idle.timer_sleeper_until)) return UINT64_MAX;
    cc__lock_take(&cc__sched.idle.lock);
    timer = w->remote.asleep ? sleep_for_timer_locked(w, timer) : UINT64_MAX;
    cc__lock_release(&cc__sched.idle.lock);
    return timer;
}

/* ---- the poller ---- */

static void poll_locked(struct worker *w) {
    const struct driver *d = cc__drivers_blocking();
    if (d != NULL && cc__get(&cc__sched.idle.poller) == NULL && d->pending()) cc__set(&cc__sched.idle.poller, w);
}

bool cc__watch_stop_polling(struct worker *w) {
    bool polls = cc__get(&cc__sched.idle.poller) == w;
    if (unlikely(polls)) {
        cc__set(&cc__sched.idle.poller, NULL);
        cc__full_fence(); /* before w checks again whether there are waiters: see cc__idle_listen (IDLE-7) */
        w->polled = true;
    }
    return polls;
}

/* ---- taking and leaving roles ---- */

static void watch_begins_locked(void) {
    if (!want_watch(cc__get(&cc__sched.want))) cc__add_seq(&cc__sched.want, WANT_WATCH);
}

/* From now on no wake may be deferred. */
static void watch_ends_locked(void) {
    if (want_watch(cc__get(&cc__sched.want))) cc__sub_seq(&cc__sched.want, WANT_WATCH);
}

static void unwatch_locked(void) {
    cc__set(&cc__sched.idle.watcher, NULL);
    watch_ends_locked();
}

/* The caller reads `want` once, because others write it all the time. */
uint64_t cc__watch_take_roles_locked(struct worker *w, uint64_t want, uint64_t now) {
    uint64_t until = UINT64_MAX;
    struct worker *watcher = cc__get(&cc__sched.idle.watcher);
    poll_locked(w);
    /* The timer sleeper and the poller go to work when they wake, and would have to appoint another watcher then. */
    bool wanted = watcher == NULL || watcher == cc__sched.idle.timer_sleeper ||
                  watcher == cc__get(&cc__sched.idle.poller) || !want_watch(want);
    if (wanted && cc__sched_open() > 1) {
        watch_begins_locked();
        cc__set(&cc__sched.idle.watcher, w);
        w->watched = true;
        w->quiet = 0;
        until = now + cc__policy_watch_interval(now);
    }
    uint64_t end = cc__elastic_until(w, now);
    return end < until ? end : until;
}

bool cc__watch_has_role_locked(struct worker *w) {
    return cc__get(&cc__sched.idle.watcher) == w || cc__sched.idle.timer_sleeper == w;
}

void cc__watch_leave_roles_locked(struct worker *w) {
    if (cc__get(&cc__sched.idle.watcher) == w) unwatch_locked();
    if (cc__sched.idle.timer_sleeper == w) {
        cc__sched.idle.timer_sleeper = NULL;
        cc__set(&cc__sched.idle.timer_sleeper_until, UINT64_MAX);
    }
}

/* ---- the watcher ---- */

static bool has_fibers(struct worker *other) {
    return cc__get(&other->runq.count) != 0 || !cc__inbox_empty(other);
}

/* Whether the worker is still in the turn of the last tick, or its present turn lasts for STUCK_NS. */
static bool stays_in_turn(struct worker *other, uint64_t seen) {
    uint64_t turns = cc__get(&other->core.turns);
    if (turns != seen) {
        for (uint64_t end = cc__clock_now() + STUCK_NS; cc__clock_now() < end; cc__cpu_relax())
            if (cc__get(&other->core.turns) != turns) return false;
    }
    return has_fibers(other);
}

/* The worker that the watcher has to help: one that stays in its turn while fibers wait, or that has a backlog. Counts
 * the ticks at which nothing waited and no wake was deferred. */
static struct worker *watcher_poll(struct worker *w) {
    struct worker *victim = NULL;
    bool quiet = true;
    for (unsigned i = 0; i < cc__get(&cc__sched.count) && victim == NULL; i++) {
        struct worker *other = &cc__sched.workers[i];
        if (other == w) continue;
        uint64_t deferred = cc__get(&other->core.deferred);
        if (deferred != w->deferrals[i]) quiet = false;
        w->deferrals[i] = deferred;
        if (!has_fibers(other)) continue;
        quiet = false;
        if (cc__policy_backlog(other) || stays_in_turn(other, w->seen[i])) victim = other;
    }
    w->quiet = quiet ? w->quiet + 1 : 0;
    cc__steal_remember(w);
    return victim;
}

static bool all_asleep(void) {
    return want_idle(cc__get(&cc__sched.want)) == cc__sched_open();
}

/* No wake was deferred for a while: from now on owners wake sleepers themselves (IDLE-4). */
static void stop_watching(struct worker *w) {
    cc__lock_take(&cc__sched.idle.lock);
    bool ours = cc__get(&cc__sched.idle.watcher) == w;
    if (ours) watch_ends_locked();
    cc__lock_release(&cc__sched.idle.lock);
    if (!ours) return;
    cc__barrier_heavy(); /* pairs with the light barrier of cc__runq_tell */
    if (!cc__inbox_waits_elsewhere(w) && !cc__runq_waits_elsewhere(w) && cc__inject_len() == 0) return;
    w->quiet = 0;
    cc__lock_take(&cc__sched.idle.lock);
    if (cc__get(&cc__sched.idle.watcher) == w) watch_begins_locked();
    cc__lock_release(&cc__sched.idle.lock);
}

/* While all sleep no wake is deferred; the next to work is woken by a timer, or from outside. */
static uint64_t next_tick(uint64_t now) {
    uint64_t interval = cc__policy_watch_interval(now), timer = cc__watch_next_timer();
    if (!all_asleep()) return now + interval;
    return timer < now + WATCH_NS - interval ? timer + interval : now + WATCH_NS;
}

/* When the watcher ticks next, after a tick at which there was nothing to do. */
static uint64_t watch_again(struct worker *w, uint64_t now) {
    uint64_t until = UINT64_MAX;
    if (w->quiet == WATCH_QUIET) stop_watching(w);
    cc__lock_take(&cc__sched.idle.lock);
    if (cc__get(&cc__sched.idle.watcher) == w) {
        if (w->quiet < WATCH_QUIET)
            until = next_tick(now);
        else if (all_asleep())
            unwatch_locked();
        else
            until = now + WATCH_TIMERS_NS; /* a busy worker may arm timers and not fire them */
    }
    if (w->remote.asleep) poll_locked(w); /* the poller may have gone to work */
    uint64_t timer = w->remote.asleep ? sleep_for_timer_locked(w, cc__watch_next_timer()) : UINT64_MAX;
    cc__lock_release(&cc__sched.idle.lock);
    return timer < until ? timer : until;
}

bool cc__watch_tick(struct worker *w, uint64_t *until, struct worker **victim) {
    uint64_t now = cc__clock_now();
    if (cc__watch_timers_due(cc__watch_next_timer(), now, true) || cc__elastic_over(w)) return true;
    *victim = watcher_poll(w);
    if (*victim != NULL || cc__inject_len() != 0) return true; /* CONTENTION-2 */
    uint64_t next = watch_again(w, now), end = cc__elastic_until(w, now);
    *until = next < end ? next : end;
    return false;
}
