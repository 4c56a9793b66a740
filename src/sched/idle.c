/* idle.c - search, sleep, notify. The protocol, its race and its ordering table are in README.md; the numbers are in
 * policy.h. The roles of sleepers, and their rules (IDLE-4, 5, 7, 8), are in watch.c.
 *
 * IDLE-1  No runnable fiber waits while a worker sleeps. A producer publishes the fiber, then checks for sleepers; a
 *         sleeper announces its sleep, then checks every place. For private queues the producer's side is light and the
 *         sleeper's is heavy.
 * IDLE-2  At most searchers_max workers search at a time. A thread that wakes a sleeper counts it as a searcher, so
 *         that wakes do not pile up. If it finds no sleeper, it gives the place back and checks again, because others
 *         may have seen it as a searcher meanwhile.
 * IDLE-3  A searcher that finds something wakes the next if there is more: parallelism grows while there is work. A
 *         producer that sees a searcher leaves the wake to it. So a searcher checks again after it has given up its
 *         place, its own inbox included; and if other workers are awake and there is no watcher, it appoints one.
 * IDLE-6  A worker that goes to work checks whether sysmon is up; sysmon announces its sleep, then checks whether any
 *         worker works.
 * IDLE-9  A worker that was kept off its waker's CPU lifts that before it runs a fiber.
 */
#include "sched/idle.h"

#include "arch/cpu.h"
#include "base/fatal.h"
#include "os/clock.h"
#include "os/thread.h"
#include "sched/driver.h"
#include "sched/elastic.h"
#include "sched/inbox.h"
#include "sched/inject.h"
#include "sched/island.h"
#include "sched/policy.h"
#include "sched/runq.h"
#include "sched/steal.h"
#include "sched/sysmon.h"
#include "sched/watch.h"
#include "sync/backoff.h"

enum wake_word {
    WAKE_NONE,
    WAKE_POLL,
    WAKE_SEARCH, /* the waker has counted it as a searcher */
    WAKE_ROLE,   /* a role is free: a worker that goes to work instead of taking it appoints another (IDLE-4) */
    WAKE_EVENT,  /* never stored in a worker's word: a driver has something to poll */
};

static bool take_place(void) {
    for (unsigned pauses = 1;; cc__backoff_contended(&pauses)) {
        uint64_t want = cc__get(&cc__sched.want);
        if (want_searching(want) >= cc__sched.searchers_max) return false;
        if (cc__cas_seq(&cc__sched.want, &want, want + WANT_SEARCHING)) return true;
    }
}

static void leave_place(void) {
    cc__sub_seq(&cc__sched.want, WANT_SEARCHING);
}

/* ---- notify ---- */

static void remove_locked(struct worker *w) {
    cc__list_remove(&w->remote.idle);
    w->remote.asleep = false;
    cc__watch_leave_roles_locked(w);
    cc__bump(&cc__sched.idle.epoch);
    cc__sub_seq(&cc__sched.want, WANT_IDLE);
}

/* The system may run a woken thread on the CPU of its waker although another one is idle, above all on virtual
 * machines: then it waits until the waker sleeps. A worker that was woken so reports it, and the next ones are kept off
 * that CPU. */
static void keep_apart(struct worker *w) { /* IDLE-9 */
    int cpu = cc__thread_on_cpu();
    uint32_t left = cc__get(&cc__sched.idle.apart);
    w->remote.waker_cpu = cpu + 1;
    if (likely(left == 0)) return;
    cc__set(&cc__sched.idle.apart, left - 1);
    w->remote.kept_off = cc__thread_keep_off((int)cc__get(&w->remote.tid), cpu);
}

static void woken(struct worker *w) { /* IDLE-9 */
    int cpu = w->remote.waker_cpu - 1;
    if (w->remote.kept_off)
        cc__thread_any_cpu(cpu);
    else if (cpu >= 0 && cpu == cc__thread_on_cpu())
        cc__set(&cc__sched.idle.apart, APART_WAKES);
    w->remote.kept_off = false;
    w->remote.waker_cpu = 0;
}

/* The caller has removed it from the list. continues: the caller is a worker, which has work to do. */
static void wake(struct worker *w, enum wake_word word, bool continues) {
    if (continues) keep_apart(w);
    cc__set_release(&w->remote.wake, word); /* pairs with the sleeper's acquire */
    cc__futex_wake(&w->remote.wake, 1);
    if (unlikely(cc__get(&cc__sched.idle.poller) == w)) cc__drivers_blocking()->interrupt(); /* IDLE-7 */
}

/* Any sleeper, but the watcher last: while others sleep it has work to do. */
static struct worker *choose_locked(void) {
    struct worker *last = NULL;
    struct link *list = &cc__sched.idle.list;
    for (struct link *l = cc__get(&list->prev); l != list; l = cc__get(&l->prev)) {
        struct worker *w = container_of(l, struct worker, remote.idle);
        if (w != cc__get(&cc__sched.idle.watcher)) return w;
        last = w;
    }
    return last;
}

/* Removes a sleeper from the list, for the caller to wake; NULL: none sleeps. */
static struct worker *take_sleeper(void) {
    cc__lock_take(&cc__sched.idle.lock);
    struct worker *w = choose_locked();
    if (w != NULL) remove_locked(w);
    cc__lock_release(&cc__sched.idle.lock);
    return w;
}

void cc__idle_notify(struct worker *w) {
    for (;;) {
        uint64_t want = cc__get_seq(&cc__sched.want); /* after a publication to a shared place (IDLE-1) */
        do {
            if (want_searching(want) != 0 || want_idle(want) == 0) return;
        } while (!cc__cas_seq(&cc__sched.want, &want, want + WANT_SEARCHING));
        struct worker *sleeper = take_sleeper();
        if (likely(sleeper != NULL)) {
            if (w != NULL) cc__count(w, notifies);
            wake(sleeper, WAKE_SEARCH, w != NULL);
            return;
        }
        /* All have left the list. A producer that saw our place meanwhile has left a wake to us, and a worker that has
         * gone to sleep since may not have seen its fiber (IDLE-2). */
        leave_place();
    }
}

void cc__idle_offer(struct worker *w, uint64_t want) {
    if (cc__policy_defers(want))
        cc__set(&w->core.deferred, cc__get(&w->core.turns)); /* IDLE-4 */
    else
        cc__idle_notify(w);
}

bool cc__idle_notify_worker(struct worker *target) {
    if (want_idle(cc__get_seq(&cc__sched.want)) == 0) return false;
    cc__lock_take(&cc__sched.idle.lock);
    bool asleep = target->remote.asleep;
    if (asleep) remove_locked(target);
    cc__lock_release(&cc__sched.idle.lock);
    if (asleep) wake(target, WAKE_POLL, false);
    return asleep;
}

void cc__idle_notify_all(void) {
    for (unsigned i = 0; i < cc__get(&cc__sched.count); i++) (void)cc__idle_notify_worker(&cc__sched.workers[i]);
}

/* Wakes a sleeper to take the roles that are free. */
static void wake_for_roles(void) {
    struct worker *sleeper = take_sleeper();
    if (sleeper != NULL) wake(sleeper, WAKE_ROLE, cc__worker() != NULL);
}

/* ---- search ---- */

/* A producer that made a fiber ready while we searched may have left the wake to us. The worker that has the fiber runs
 * it at its next poll or turn, but may be blocked in this one; so may we, with fibers in our own inbox. want: as loaded
 * after we left our place. For private queues this is a hint: what it misses is found by a watcher. */
static bool left_to_us(struct worker *w, uint64_t want) {
    if (cc__inbox_waits_elsewhere(w)) return true;
    return !want_watch(want) && (!cc__inbox_empty(w) || cc__runq_waits_elsewhere(w));
}

/* We searched, so others may rely on us: for what they publish, and for the timer of a fiber that parks while the next
 * one is about to block (IDLE-3). Another searcher, also one that was just woken, will do this check itself; a watcher
 * stays until all sleep. A retiring sleeper is subtracted from `want` first and from `open` second, so they are loaded
 * in the opposite order: otherwise a worker that has retired could hide one that is awake. */
static bool no_other_will_check(void) {
    uint32_t open = cc__get_acquire(&cc__sched.idle.open); /* pairs with cc__elastic_close_locked */
    uint64_t want = cc__get_seq(&cc__sched.want);
    return want_searching(want) == 0 && cc__get(&cc__sched.idle.watcher) == NULL && want_idle(want) + 1 < open;
}

/* How often fibers have waited for mutexes and reader-writer locks on this worker. */
static uint64_t lock_waits(const struct worker *w) {
    const struct counters *c = &w->core.counters;
    return cc__get(&c->parks[PARK_MUTEX]) + cc__get(&c->parks[PARK_RWLOCK]);
}

void cc__idle_left(struct worker *w) { /* IDLE-3 */
    w->rested = false;
    w->skip_search = false;
    w->woken_for_work = w->called;
    w->called = false;
    bool searched = w->searching;
    if (searched) {
        w->searching = false;
        leave_place();
    }
    w->busy_since = cc__clock_now();
    w->lock_waits = lock_waits(w);
    cc__sysmon_nudge();
    uint64_t want = cc__get_seq(&cc__sched.want);
    if (want_idle(want) == 0) return;
    if (cc__inject_len() != 0 || (searched && left_to_us(w, want)))
        cc__idle_notify(w);
    else if (cc__get(&w->runq.count) != 0)
        cc__idle_offer(w, want);
    /* Deferred wakes (IDLE-4), descriptors and timers need another sleeper: we may compute for long. */
    if (!want_watch(want) &&
        (w->watched || w->polled || (searched && no_other_will_check()) || cc__watch_timers_forgotten()))
        wake_for_roles();
    w->watched = w->polled = false;
}

void cc__idle_armed(void) { /* IDLE-5 */
    /* After the timer was armed: a worker that goes to sleep, or searches, announces that, then checks the timers. */
    uint64_t want = cc__get_seq(&cc__sched.want);
    if (want_idle(want) == 0 || want_searching(want) != 0) return;
    if (cc__watch_timers_forgotten() && cc__policy_due_soon(cc__watch_next_timer(), cc__clock_now())) wake_for_roles();
}

void cc__idle_check_timers(uint64_t now) { /* IDLE-5 */
    if (cc__watch_timers_forgotten() && cc__policy_due_soon(cc__watch_next_timer(), now)) wake_for_roles();
}

/* A worker that goes to sleep takes the lock, then reads the timers: it sees this one, or is found here. */
void cc__idle_leave_timers(void) { /* IDLE-5 */
    cc__lock_take(&cc__sched.idle.lock);
    bool forgotten = cc__watch_timers_forgotten();
    cc__lock_release(&cc__sched.idle.lock);
    if (forgotten) wake_for_roles();
}

static bool something_shared(struct worker *w) {
    return !cc__inbox_empty(w) || cc__inject_len() != 0 || cc__get(&cc__sched.stop);
}

/* Leaves its fibers to the workers that are awake (contention.h). In batches: whoever revokes the lock of the queue
 * waits for one of them at most. */
static void give_back(struct worker *w) {
    uint32_t n;
    do {
        struct link list;
        cc__list_init(&list);
        cc__bias_enter(&w->runq.bias);
        n = cc__runq_take_oldest(&w->runq, SHARE_MAX, true, &list);
        cc__bias_leave(&w->runq.bias);
        cc__inject_put_all(&list, n);
        if (n > 0) cc__event(share, n);
    } while (n == SHARE_MAX);
}

enum found {
    FOUND_NOTHING,
    FOUND_FIBERS, /* of other workers, or the runtime stops */
    FOUND_TIMER,  /* a timer is due, which has nothing to do with the wake, if there was one */
};

/* Waits briefly for another worker to share. Mostly reads locations that are written only when there is work, because
 * reading a busy worker's cache lines slows it down; checks every STUCK_NS for a worker that stays in its turn. */
static enum found search(struct worker *w) {
    cc__steal_remember(w);
    uint64_t now = cc__clock_now(), end = now + SEARCH_NS, check = now + STUCK_NS, timer = cc__watch_next_timer();
    do {
        for (int i = 0; i < 16; i++) {
            if (something_shared(w)) return FOUND_FIBERS;
            cc__cpu_relax();
        }
        now = cc__clock_now();
        if (cc__watch_timers_due(timer, now, false)) return FOUND_TIMER;
        if (now < check) continue;
        if (cc__steal_from_stuck(w)) return FOUND_FIBERS;
        cc__steal_remember(w);
        check = now + STUCK_NS;
    } while (now < end);
    return cc__steal_from_stuck(w) ? FOUND_FIBERS : FOUND_NOTHING;
}

/* ---- sleep ---- */

/* The check of every place after the announcement (IDLE-1). Private queues count only if we may search for a share of
 * them, the global queue only if we have not left our fibers there. */
static bool something_anywhere(struct worker *w, bool may_search_again, bool gave_back) {
    if (gave_back ? !cc__inbox_empty(w) || cc__get(&cc__sched.stop) : something_shared(w)) return true;
    uint64_t want = cc__get(&cc__sched.want);
    bool may_search = may_search_again && cc__policy_may_wake(want) && want_searching(want) < cc__sched.searchers_max;
    bool polls = cc__get(&cc__sched.idle.poller) == w;
    for (unsigned i = 0; i < cc__get(&cc__sched.count); i++) {
        struct worker *other = &cc__sched.workers[i];
        if (!cc__inbox_empty(other)) return true;
        if (may_search && other != w && cc__policy_worth_asking(other, polls)) return true;
    }
    return false;
}

/* Sleeps; returns the wake_word, WAKE_NONE at the time, or WAKE_EVENT. */
static enum wake_word sleep_until(struct worker *w, uint64_t until) {
    uint32_t word;
    while ((word = cc__get_acquire(&w->remote.wake)) == WAKE_NONE) { /* pairs with wake() */
        if (until != UINT64_MAX && cc__clock_now() >= until) return WAKE_NONE;
        if (likely(cc__get(&cc__sched.idle.poller) != w))
            cc__futex_wait(&w->remote.wake, WAKE_NONE, until);
        else if (cc__drivers_blocking()->wait(until))
            return WAKE_EVENT;
    }
    return (enum wake_word)word;
}

/* Leaves the list, unless a notifier was faster: then its word has been stored or will be, and must be waited for.
 * Retires if it is time. */
static enum wake_word withdraw(struct worker *w, bool slept, bool *retires) {
    bool had_role = cc__watch_stop_polling(w);
    cc__lock_take(&cc__sched.idle.lock);
    bool listed = w->remote.asleep;
    if (listed) {
        had_role = had_role || cc__watch_has_role_locked(w);
        *retires = slept && cc__elastic_over(w);
        remove_locked(w);
        if (*retires) cc__elastic_close_locked(w);
    }
    cc__lock_release(&cc__sched.idle.lock);
    if (*retires && had_role) wake_for_roles();
    return listed ? WAKE_NONE : sleep_until(w, UINT64_MAX);
}

void cc__idle_listen(void) {
    cc__full_fence(); /* after the driver was told; pairs with the fence in cc__watch_stop_polling */
    if (cc__get(&cc__sched.idle.poller) == NULL) wake_for_roles();
}

uint64_t cc__idle_epoch(void) {
    return cc__get_seq(&cc__sched.idle.epoch) + cc__get_seq(&cc__sched.island_wakes);
}

bool cc__sched_all_asleep(void) {
    cc__lock_take(&cc__sched.idle.lock);
    bool asleep = want_idle(cc__get_seq(&cc__sched.want)) == cc__sched_open() && cc__inject_len() == 0;
    for (unsigned i = 0; asleep && i < cc__get(&cc__sched.count); i++) {
        struct worker *w = &cc__sched.workers[i];
        asleep = cc__inbox_empty(w) && cc__get(&w->runq.count) == 0;
    }
    asleep = asleep && cc__islands_asleep();
    cc__lock_release(&cc__sched.idle.lock);
    return asleep;
}

void cc__idle_say_drained(void) {
    if (!cc__get_seq(&cc__sched.draining)) return;
    cc__add_seq(&cc__sched.drained, 1);
    cc__futex_wake(&cc__sched.drained, INT32_MAX);
}

/* A wake that led to nothing, or stolen work that took less time than moving it, uses up credit; one that paid restores
 * the credit. */
static void count_payoff(struct worker *w, bool paid, uint64_t ns) {
    if (paid) {
        cc__policy_paid(ns);
        return;
    }
    cc__policy_unpaid();
    cc__count(w, wakes_wasted);
}

void cc__idle_gave(struct worker *w, uint32_t n) {
    uint64_t now = cc__clock_now(), until = cc__get(&w->payoff_deadline);
    cc__set(&w->payoff_deadline, (until > now ? until : now) + (uint64_t)n * WORTH_NS);
}

/* Whether the victim is still in the turn in which fibers were stolen from it. */
static bool victim_stays(struct worker *w) {
    return w->victim != NULL && cc__get(&w->victim->core.turns) == w->victim_turn;
}

/* Whether the stolen fibers would still be waiting, and the victim has not made others ready. It would run those itself
 * sooner than they could be moved. */
static bool saved_time(struct worker *w) {
    return victim_stays(w) && cc__get(&w->victim->runq.count) == 0;
}

/* Whether fibers that the steal has left still wait behind that turn (STEAL-1). Then more are taken at once, however
 * short their work is: otherwise SHARE_MAX of them would get their turns for each tick of the watcher. If those that
 * were stolen have waited for locks: not if the victim has made fibers ready since, because it is the holder then. */
static bool left_some(struct worker *w, uint64_t waits) {
    uint32_t left = w->victim_left, count = victim_stays(w) ? cc__get(&w->victim->runq.count) : 0;
    return left != 0 && count != 0 && (waits == 0 || count <= left);
}

static void judge_stolen_work(struct worker *w, bool gives_back) {
    w->idle_since = cc__clock_now();
    bool gave_too_much = gives_back || w->idle_since < cc__get(&w->payoff_deadline);
    if (w->received != 0 || gave_too_much) {
        uint64_t ns = w->idle_since - w->busy_since, waits = lock_waits(w) - w->lock_waits;
        bool interrupted = w->woken_for_work || (w->victim != NULL && !victim_stays(w));
        bool saved = waits == 0 && !gives_back && saved_time(w);
        bool paid = cc__policy_steal_paid(w->received, waits, ns, interrupted);
        if (saved) {
            cc__set(&cc__sched.idle.long_turn_at, w->idle_since);
            if (!paid) paid = (ns = cc__policy_short_work(w->idle_since)) != 0;
        }
        paid = paid && !gave_too_much;
        count_payoff(w, paid, ns);
        w->skip_search = gives_back || (!paid && !left_some(w, waits));
    }
    w->victim = NULL;
    w->received = 0;
    cc__set(&w->payoff_deadline, 0);
}

/* Whether this worker, if it sleeps, will block in a driver, which wakes it sooner than a search would find the event:
 * it need not search, unless another worker has a backlog. Measured: an echo server with two workers takes 11 to 16 %
 * less CPU time. */
static bool would_poll(struct worker *w) {
    const struct driver *d = cc__drivers_blocking();
    if (d == NULL || cc__get(&cc__sched.idle.poller) != NULL || !d->pending()) return false;
    for (unsigned i = 0; i < cc__get(&cc__sched.count); i++) {
        struct worker *other = &cc__sched.workers[i];
        if (other != w && cc__policy_worth_asking(other, true)) return false;
    }
    return true;
}

/* A sleeper must not be counted as a searcher: producers that see a searcher wake nobody (IDLE-2). */
static void give_up(struct worker *w) {
    if (w->searching) leave_place();
    w->searching = w->called = false;
}

/* Searches, if there is a free place and a search may pay. True: found something. */
static bool search_first(struct worker *w) {
    if (!w->searching && would_poll(w)) return false; /* a worker that was woken to search has a place */
    if (w->skip_search || !cc__policy_may_search(cc__get(&cc__sched.want))) {
        give_up(w);
        return false;
    }
    /* While all others sleep only OS threads can make work: search once, and again as long as that pays. */
    bool others_sleep = want_idle(cc__get(&cc__sched.want)) + 1 >= cc__sched_open();
    if (others_sleep && !w->called && w->skips > 0) {
        w->skips--;
        return false;
    }
    if (!w->searching) w->searching = take_place();
    if (!w->searching) return false;
    enum found found = search(w);
    if (found != FOUND_FIBERS) {
        if (w->called) count_payoff(w, false, 0); /* the wake was wasted */
        w->called = false;
    }
    if (found != FOUND_NOTHING) {
        w->skips = 0;
        return true;
    }
    if (others_sleep) w->skips = OTHERS_SLEEP_SKIPS;
    give_up(w);
    return false;
}

/* A victim with a backlog shares with us once we search; from one that stays in its turn we steal. */
static void help(struct worker *w, struct worker *victim) {
    if (cc__steal_from(w, victim) || !cc__policy_backlog(victim)) return;
    if (!w->searching) w->searching = take_place();
    w->called = w->searching;
}

bool cc__idle(struct worker *w) {
    if (cc__get(&cc__sched.stop)) return false;
    if (unlikely(cc__stack_short())) cc__stack_flush(&w->core.stacks);
    bool gives_back = cc__get(&w->moves.give_back);
    cc__set(&w->moves.give_back, false);
    if (!w->rested) judge_stolen_work(w, gives_back);
    w->rested = true;
    if (gives_back) {
        give_up(w);
        give_back(w);
    } else if (search_first(w)) {
        return true;
    }
    bool may_search_again = !w->skip_search;
    w->skip_search = false;

    cc__debug_assert(cc__get(&w->runq.count) == 0, "IDLE-1: a worker sleeps in front of its own queue");
    cc__set(&w->remote.wake, WAKE_NONE);
    uint64_t now = cc__clock_now();
    cc__lock_take(&cc__sched.idle.lock);
    cc__list_push_back(&cc__sched.idle.list, &w->remote.idle);
    w->remote.asleep = true;
    uint64_t want = cc__add_seq(&cc__sched.want, WANT_IDLE) + WANT_IDLE;
    uint64_t until = cc__watch_take_roles_locked(w, want, now);
    bool last = want_idle(want) == cc__sched_open();
    cc__lock_release(&cc__sched.idle.lock);
    /* The heavy side of IDLE-1; the light side is cc__runq_tell. When all sleep, no worker can publish in a private
     * queue, and the lock has made earlier publications visible: a fence suffices, for the other pairs. */
    if (last)
        cc__full_fence();
    else
        cc__barrier_heavy();
    uint64_t timer = cc__watch_sleep_for_timer(w);
    if (timer < until) until = timer;

    enum wake_word word = WAKE_NONE;
    struct worker *victim = NULL;
    bool slept = !something_anywhere(w, may_search_again, gives_back && !last), retires = false;
    if (slept) {
        cc__idle_say_drained();
        cc__count(w, sleeps);
        cc__probe1(worker_sleep, w->core.owner - 1);
        if (w->watched) cc__steal_remember(w);
        do word = sleep_until(w, until);
        while (word == WAKE_NONE && w->watched && !cc__watch_tick(w, &until, &victim));
        if (word == WAKE_NONE) (void)cc__watch_timers_due(timer, cc__clock_now(), true);
        cc__probe2(worker_wake, w->core.owner - 1, word);
    }
    if (word == WAKE_NONE || word == WAKE_EVENT)
        word = withdraw(w, slept && word == WAKE_NONE, &retires); /* an event is polled before the worker may retire */
    else
        (void)cc__watch_stop_polling(w);
    if (retires) {
        cc__elastic_drain(w);
        return false;
    }
    if (word == WAKE_SEARCH || word == WAKE_ROLE) woken(w);
    if (word == WAKE_SEARCH) w->searching = w->called = true;
    if (word == WAKE_ROLE) w->watched = true; /* as if it had had the role: see cc__idle_left */
    if (victim != NULL) help(w, victim);
    return true;
}
