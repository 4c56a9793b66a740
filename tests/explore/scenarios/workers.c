/* workers.c - two workers: stealing, sharing, joins of unstarted tasks, hand-over from one to the other, timers that
 * the other one fires.
 */
#include "explore.h"
#include "os/futex.h"
#include "sched/driver.h"
#include "sched/elastic.h"
#include "sched/idle.h"
#include "sched/policy.h"
#include "sched/runq.h"
#include "wait/wait.h"

#include <ccc/ccc.h>
#include <errno.h>

static CCTask task, other, third;
static CCEvent go;
static CCChan *ch, *second;
static int counts[3];
static _Atomic uint32_t stolen;
static uint64_t got, got_too;
static int rc[4];

static void spawn(CCTask *t, CCTaskFn fn, void *arg) {
    EX_EQ(cc_spawn(t, fn, arg, NULL), 0);
}
static void join(CCTask *t) {
    EX_EQ(cc_task_join(t, NULL), 0);
}
static void *counts_one(void *arg) {
    ++*(int *)arg;
    return arg;
}

/* ---- a worker that is stuck in one fiber is stolen from ---- */

static void *raises(void *arg) {
    cc__set_release(&stolen, 1);
    return arg;
}
static void *sits(void *arg) {
    CCTask child;
    spawn(&child, raises, NULL);
    while (cc__get_acquire(&stolen) == 0) ex_relax();
    join(&child);
    return arg;
}
static void runs_sitter(void) {
    EX_EQ(cc_run(sits, NULL, NULL), 0);
}
SCENARIO(steal_stuck, "STEAL-1: a worker spins in a fiber; another one steals the fibers behind it", .workers = 2,
         .threads = {runs_sitter});

/* IDLE-1: a worker saw a searcher and shares; the searcher has gone to sleep meanwhile, and the worker that shared
 * blocks. Only a check for sleepers after the share lets the fiber run before the watcher's next tick. */
static void *wakes_sharer(void *arg) {
    cc__set_release(&stolen, 1);
    cc__futex_wake(&stolen, 1);
    return arg;
}
static void *shares_and_blocks(void *arg) {
    CCTask child;
    cc__add_seq(&cc__sched.want, WANT_SEARCHING); /* so that the spawn wakes nobody */
    spawn(&child, wakes_sharer, NULL);
    cc__sub_seq(&cc__sched.want, WANT_SEARCHING);
    cc__runq_tell_slow(cc__worker(), WANT_SEARCHING, 0);
    while (cc__get_acquire(&stolen) == 0) cc__futex_wait(&stolen, 0, CC_FUTEX_FOREVER);
    join(&child);
    return arg;
}
static void runs_sharer(void) {
    EX_EQ(cc_run(shares_and_blocks, NULL, NULL), 0);
}
static void all_sleep(void) {
    ex_settle();
}
SCENARIO(share_sleepers, "IDLE-1: a worker shares with one that goes to sleep, and blocks", .workers = 2,
         .setup = all_sleep, .threads = {runs_sharer}, .no_timer = true);

/* IDLE-1: a worker publishes in its own queue and blocks, while the other one goes to sleep. Either it sees a sleeper
 * and wakes it, or the sleeper's heavy barrier shows what was published. */
static void *publishes_and_blocks(void *arg) {
    CCTask child[2];
    spawn(&child[0], wakes_sharer, NULL);
    spawn(&child[1], counts_one, &counts[0]);
    while (cc__get_acquire(&stolen) == 0) cc__futex_wait(&stolen, 0, CC_FUTEX_FOREVER);
    for (int i = 0; i < 2; i++) join(&child[i]);
    return arg;
}
static void runs_publisher(void) {
    EX_EQ(cc_run(publishes_and_blocks, NULL, NULL), 0);
}
static void runs_something(void) {
    EX_EQ(cc_run(counts_one, &counts[1], NULL), 0);
}
SCENARIO(publish_sleep, "IDLE-1: a worker publishes in its own queue, another one goes to sleep", .workers = 2,
         .threads = {runs_publisher, runs_something}, .no_timer = true);

/* CONTENTION-1: a worker leaves its fibers to another one, which goes to sleep at that moment. */
static void *gives_back(void *arg) {
    CCTask child;
    cc__add_seq(&cc__sched.want, WANT_SEARCHING); /* so that the spawn wakes nobody */
    spawn(&child, counts_one, &counts[0]);
    cc__sub_seq(&cc__sched.want, WANT_SEARCHING);
    struct worker *w = cc__worker();
    cc__set(&w->moves.give_back, true);
    cc__set(&w->core.poll_at, 0);
    cc_yield();
    join(&child);
    return arg;
}
static void runs_giver(void) {
    EX_EQ(cc_run(gives_back, NULL, NULL), 0);
}
SCENARIO(give_back_sleep, "CONTENTION-1: a worker leaves its fibers to one that goes to sleep", .workers = 2,
         .threads = {runs_giver, runs_something}, .no_timer = true);

/* RUNQ-2: the joiner tries to run the fresh fiber itself while a thief takes it. */
static void *spawns_and_joins(void *arg) {
    CCTask child[2];
    for (int i = 0; i < 2; i++) spawn(&child[i], counts_one, &counts[i]);
    ex_nap(STUCK_NS);
    for (int i = 0; i < 2; i++) join(&child[i]);
    return arg;
}
static void waits_to_steal(void) {
    ex_settle();
}
static void runs_spawner(void) {
    EX_EQ(cc_run(spawns_and_joins, NULL, NULL), 0);
    EX_EQ(counts[0] + counts[1], 2);
}
SCENARIO(join_fresh, "RUNQ-2: a joiner and a thief at one fresh fiber", .workers = 2, .setup = waits_to_steal,
         .threads = {runs_spawner});

/* ---- fibers on two workers ---- */

static void *joins_other(void *arg) {
    EX_EQ(cc_event_wait(&go), 0);
    join(arg);
    return NULL;
}
static void *ends_on_signal(void *arg) {
    EX_EQ(cc_event_wait(&go), 0);
    counts[0]++;
    return arg;
}
static void fiber_joins_fiber(void) {
    spawn(&task, ends_on_signal, NULL);
    spawn(&other, joins_other, &task);
    ex_settle();
}
static void starts_both(void) {
    EX_EQ(cc_event_set(&go), 0);
    join(&other);
    EX_EQ(counts[0], 1);
}
SCENARIO(fiber_join_fiber, "a fiber joins one that ends on another worker", .workers = 2, .setup = fiber_joins_fiber,
         .threads = {starts_both}, .no_timer = true);

static CCMutex mutex;
static void *locks(void *arg) {
    EX_EQ(cc_event_wait(&go), 0);
    EX_EQ(cc_mutex_lock(&mutex), 0);
    ++*(int *)arg;
    EX_EQ(cc_mutex_unlock(&mutex), 0);
    return NULL;
}
static void two_lockers(void) {
    spawn(&task, locks, &counts[0]);
    spawn(&other, locks, &counts[0]);
    ex_settle();
}
static void lets_lock(void) {
    EX_EQ(cc_event_set(&go), 0);
    join(&task);
    join(&other);
    EX_EQ(counts[0], 2);
}
SCENARIO(fiber_mutex, "MUTEX-1: two fibers, two workers", .workers = 2, .setup = two_lockers, .threads = {lets_lock},
         .no_timer = true);

/* Two fibers at the two arms of a third one's select: claims from two workers. */
static void *selects(void *arg) {
    (void)arg;
    size_t chosen;
    CCCase cases[] = {CC_RECV(ch, &got, NULL), CC_RECV(second, &got_too, NULL)};
    rc[3] = cc_select(cases, 2, CC_FOREVER, &chosen);
    return NULL;
}
static void *sends_try(void *arg) {
    uint64_t value = 1;
    EX_EQ(cc_event_wait(&go), 0);
    rc[arg == &second] = cc_chan_send_try(*(CCChan **)arg, &value, sizeof value);
    return NULL;
}
static void select_and_two(void) {
    ch = cc_chan_create(sizeof(uint64_t), 0);
    second = cc_chan_create(sizeof(uint64_t), 0);
    spawn(&task, selects, NULL);
    ex_settle();
    spawn(&other, sends_try, &ch);
    spawn(&third, sends_try, &second);
    ex_settle();
}
static void lets_send(void) {
    EX_EQ(cc_event_set(&go), 0);
    join(&task);
    join(&other);
    join(&third);
    EX_EQ(rc[3], 0);
    EX_EQ((rc[0] == 0) + (rc[1] == 0), 1);
    EX_EQ(got, rc[0] == 0);
    EX_EQ(got_too, rc[1] == 0);
}
SCENARIO(fiber_select_two, "SELECT-2: two workers at the arms of one select", .workers = 2, .setup = select_and_two,
         .threads = {lets_send}, .no_timer = true);

/* A canceller that is a fiber, on another worker than the one that hands over. */
static void *receives(void *arg) {
    rc[3] = cc_chan_recv(ch, arg, sizeof(uint64_t));
    return NULL;
}
static void *cancels(void *arg) {
    EX_EQ(cc_event_wait(&go), 0);
    EX_EQ(cc_task_cancel(arg), 0);
    return NULL;
}
static void hand_and_cancel(void) {
    ch = cc_chan_create(sizeof(uint64_t), 0);
    spawn(&task, receives, &got);
    ex_settle();
    spawn(&other, sends_try, &ch);
    spawn(&third, cancels, &task);
    ex_settle();
}
static void one_of_them(void) {
    EX_EQ(cc_event_set(&go), 0);
    join(&other);
    join(&third);
    join(&task);
    EX_EQ(rc[0] == 0, rc[3] == 0);
    EX_CHECK(rc[3] == 0 || rc[3] == ECANCELED);
    EX_EQ(got, rc[3] == 0);
}
SCENARIO(fiber_cancel_fiber, "CLAIM-1: one worker hands over, another one cancels", .workers = 2,
         .setup = hand_and_cancel, .threads = {one_of_them}, .no_timer = true);

/* ---- a timer that another worker fires ---- */

static void *sleeps(void *arg) {
    EX_EQ(cc_sleep_ms(1), 0);
    counts[0]++;
    return arg;
}
static void *keeps_busy(void *arg) {
    EX_EQ(cc_event_wait(&go), 0);
    while (cc__get_acquire(&stolen) == 0) ex_relax();
    return arg;
}
static void *sleeps_then_raises(void *arg) {
    EX_EQ(cc_sleep_ms(1), 0);
    cc__set_release(&stolen, 1);
    return arg;
}
static void sleeper_and_spinner(void) {
    spawn(&task, sleeps_then_raises, NULL);
    spawn(&other, keeps_busy, NULL);
    ex_settle();
}
static void starts_spinner(void) {
    EX_EQ(cc_event_set(&go), 0);
    join(&task);
    join(&other);
}
SCENARIO(timer_of_another, "IDLE-5: a sleeper ends while a worker is busy", .workers = 2, .setup = sleeper_and_spinner,
         .threads = {starts_spinner});
/* The wait begins in the run, and another worker may fire its timer as soon as that is there. */
static void *sleeps_on_signal(void *arg) {
    EX_EQ(cc_event_wait(&go), 0);
    EX_EQ(cc_sleep_until(cc_after_ns(500)), 0);
    counts[0]++;
    return arg;
}
static void about_to_sleep(void) {
    spawn(&task, sleeps_on_signal, NULL);
    ex_settle();
}
static void lets_sleep(void) {
    EX_EQ(cc_event_set(&go), 0);
    join(&task);
    EX_EQ(counts[0], 1);
}
SCENARIO(timer_begins, "TIMER-1: a sleep begins while another worker polls timers", .workers = 2,
         .setup = about_to_sleep, .threads = {lets_sleep});

static void two_sleep(void) {
    spawn(&task, sleeps, NULL);
    ex_settle();
}
static void join_sleeper(void) {
    join(&task);
    EX_EQ(counts[0], 1);
}
SCENARIO(timer_sleeper, "IDLE-5: all workers sleep, one of them until the next timer", .workers = 2, .setup = two_sleep,
         .threads = {join_sleeper});

/* The timer sleeper is woken for other work, which takes long. The other worker has given up the watcher's role, as all
 * slept; or is about to. */
static void *spins_on_signal(void *arg) {
    EX_EQ(cc_event_wait(&go), 0);
    for (int i = 0; i < 1000 && cc__get_acquire(&stolen) == 0; i++) ex_nap(WATCH_TIMERS_NS);
    EX_EQ(cc__get_acquire(&stolen), 1);
    return arg;
}
static void *lets_others_sleep(void *arg) {
    spawn(&other, spins_on_signal, NULL);
    cc_yield(); /* it waits on this worker */
    while (want_idle(cc__get(&cc__sched.want)) == 0) ex_nap(STUCK_NS);
    EX_EQ(cc_sleep_ms(1000), 0);
    cc__set_release(&stolen, 1);
    return arg;
}
static void timer_sleeper_alone(int ticks) {
    all_sleep();
    spawn(&task, lets_others_sleep, NULL);
    ex_settle();
    for (int i = 0; i < ticks; i++) {
        ex_nap(WATCH_NS);
        ex_settle();
    }
}
static void nobody_watches(void) {
    timer_sleeper_alone(WATCH_QUIET + 2);
}
static void last_ticks(void) {
    timer_sleeper_alone(WATCH_QUIET - 1);
}
SCENARIO(timer_sleeper_leaves, "IDLE-5: the timer sleeper finds work while there is no watcher", .workers = 2,
         .setup = nobody_watches, .threads = {starts_spinner});
SCENARIO(timer_sleeper_leaves_watcher, "the same, while the watcher gives up its role", .workers = 2,
         .setup = last_ticks, .threads = {starts_spinner});

/* A fiber arms a timer, a deadline of others, and continues for long. It was woken while all slept and there was no
 * watcher. */
static CCNursery *under;
static CCEvent nobody_sets;
static void *waits_below(void *arg) {
    EX_EQ(cc_event_wait(&nobody_sets), ECANCELED);
    cc__set_release(&stolen, 1);
    return arg;
}
static void *arms_and_spins(void *arg) {
    EX_EQ(cc_nursery_spawn(under, waits_below, NULL), 0);
    cc_yield();                                                        /* it waits */
    while (want_idle(cc__get(&cc__sched.want)) == 0) ex_nap(STUCK_NS); /* the other worker is the watcher */
    EX_EQ(cc_event_wait(&go), 0);
    EX_EQ(cc_nursery_set_deadline(under, cc_after_ms(1)), 0);
    for (int i = 0; i < 1000 && cc__get_acquire(&stolen) == 0; i++) ex_nap(WATCH_TIMERS_NS);
    EX_EQ(cc__get_acquire(&stolen), 1);
    return arg;
}
static void about_to_arm(int ticks) {
    all_sleep();
    under = cc_nursery_create_ex(&(CCNurseryConfig){.root = true});
    spawn(&task, arms_and_spins, NULL);
    ex_settle();
    for (int i = 0; i < ticks; i++) {
        ex_nap(WATCH_NS);
        ex_settle();
    }
}
static void arms_unwatched(void) {
    about_to_arm(WATCH_QUIET + 2);
}
static void arms_at_last_tick(void) {
    about_to_arm(WATCH_QUIET - 1);
}
static void lets_arm(void) {
    EX_EQ(cc_event_set(&go), 0);
    join(&task);
    EX_EQ(cc_nursery_wait(under), ETIMEDOUT);
    EX_EQ(cc_nursery_free(under), 0);
}
SCENARIO(timer_armed_and_on, "IDLE-5: a fiber arms a timer and continues while there is no watcher", .workers = 2,
         .setup = arms_unwatched, .threads = {lets_arm});
SCENARIO(timer_armed_and_on_watcher, "the same, while the watcher gives up its role", .workers = 2,
         .setup = arms_at_last_tick, .threads = {lets_arm});

/* IDLE-4: a fiber is in the queue of a blocked worker, and its wake was deferred to the watcher. The watcher is woken
 * for a fiber that blocks, too, and appoints another sleeper. A timer is due meanwhile, which the appointed one fires
 * before it sleeps; its fiber blocks as well. The fourth worker has to become the watcher. */
enum { FIRED_NS = 50 * 1000 }; /* sooner than the watcher ticks */
static void *blocks(void *arg) {
    while (cc__get_acquire(&stolen) == 0) cc__futex_wait(&stolen, 0, CC_FUTEX_FOREVER);
    return arg;
}
static void *wakes_blocked(void *arg) {
    cc__set_release(&stolen, 1);
    cc__futex_wake(&stolen, INT32_MAX);
    return arg;
}
static void *sleeps_then_blocks(void *arg) {
    EX_EQ(cc_sleep_until(cc_after_ns(FIRED_NS)), 0);
    return blocks(arg);
}
static void *leaves_one_behind(void *arg) {
    cc__add_seq(&cc__sched.want, WANT_SEARCHING); /* so that the spawns wake nobody */
    spawn(&other, sleeps_then_blocks, NULL);
    cc_yield(); /* it sleeps, on this worker */
    spawn(&third, wakes_blocked, NULL);
    cc__sub_seq(&cc__sched.want, WANT_SEARCHING);
    return blocks(arg);
}
static CCTask woken;
static void left_to_watcher(void) {
    all_sleep();
    spawn(&task, leaves_one_behind, NULL);
    ex_settle();
    ex_nap(FIRED_NS);
    EX_CHECK(cc__get(&cc__sched.idle.watcher) != NULL && want_watch(cc__get(&cc__sched.want)));
    EX_EQ(want_idle(cc__get(&cc__sched.want)), 3);
    cc__set(&cc__sched.round_robin, cc__get(&cc__sched.idle.watcher)->core.owner - 1);
}
static void wakes_watcher(void) {
    spawn(&woken, blocks, NULL);
    join(&woken);
    join(&other);
    join(&third);
    join(&task);
}
SCENARIO(watcher_appointed, "IDLE-4: the watcher finds work, and so does the one that it has appointed", .workers = 4,
         .setup = left_to_watcher, .threads = {wakes_watcher});

/* IDLE-3: there is no watcher, and a fiber is left to the searching worker. The searcher finds another fiber, which
 * blocks. Either the first fiber is queued behind another one that blocks, or it was sent to the searcher itself. The
 * third worker has to run it. */
static CCEvent go_too, go_third;
static void *spawns_and_blocks(void *arg) {
    EX_EQ(cc_event_wait(&go), 0);
    spawn(&third, wakes_blocked, NULL);
    return blocks(arg);
}
static void *blocks_on_signal(void *event) {
    EX_EQ(cc_event_wait(event), 0);
    return blocks(event);
}
static void *wakes_blocked_on_signal(void *arg) {
    EX_EQ(cc_event_wait(&go_third), 0);
    return wakes_blocked(arg);
}
static void start_at(unsigned worker, CCTask *t, CCTaskFn fn, void *arg) {
    cc__set(&cc__sched.round_robin, worker);
    spawn(t, fn, arg);
    ex_settle();
}
/* last: the one of `workers` workers that was the watcher. */
static void until_nobody_watches(unsigned last, unsigned workers) {
    for (int i = 0; i < WATCH_QUIET + 2; i++) {
        ex_nap(WATCH_NS);
        ex_settle();
    }
    EX_CHECK(cc__get(&cc__sched.idle.watcher) == NULL);
    EX_EQ(want_idle(cc__get(&cc__sched.want)), workers);
    for (unsigned i = 0; i < workers; i++) {
        cc__sched.workers[i].watched = i == last;
        cc__set(&cc__sched.workers[i].turn_ns, 1); /* nothing is worth sharing */
    }
}
/* The last to sleep is the first to be woken, and was not the watcher. */
static void left_in_queue(void) {
    all_sleep();
    start_at(0, &task, spawns_and_blocks, NULL);
    start_at(0, &other, blocks_on_signal, &go_too);
    until_nobody_watches(1, 3);
    EX_CHECK(cc__get(&cc__sched.workers[0].remote.idle.prev) == &cc__sched.workers[2].remote.idle);
}
static void left_in_inbox(void) {
    all_sleep();
    start_at(0, &task, blocks_on_signal, &go);
    start_at(0, &other, blocks_on_signal, &go_too);
    start_at(1, &third, wakes_blocked_on_signal, NULL);
    until_nobody_watches(2, 3);
    EX_CHECK(cc__get(&cc__sched.idle.list.prev) == &cc__sched.workers[1].remote.idle);
}
static void starts_first(void) {
    EX_EQ(cc_event_set(&go), 0);
    join(&task);
    join(&third);
}
static void starts_first_two(void) {
    EX_EQ(cc_event_set(&go), 0);
    EX_EQ(cc_event_set(&go_too), 0);
    join(&task);
    join(&other);
}
static void starts_second(void) {
    EX_EQ(cc_event_set(&go_too), 0);
    join(&other);
}
static void starts_third(void) {
    EX_EQ(cc_event_set(&go_third), 0);
    join(&third);
}
SCENARIO(searcher_leaves, "IDLE-3: a searcher finds work; it was to steal from a blocked worker", .workers = 3,
         .setup = left_in_queue, .threads = {starts_first, starts_second});
SCENARIO(searcher_leaves_inbox, "IDLE-3: a searcher finds work; a fiber was sent to it meanwhile", .workers = 3,
         .setup = left_in_inbox, .threads = {starts_first_two, starts_third});

/* The same with the timer of a fiber that parks: the worker goes on with one that blocks. */
static void *sleeps_then_wakes(void *arg) {
    EX_EQ(cc_sleep_until(cc_after_ns(FIRED_NS)), 0);
    return wakes_blocked(arg);
}
static void *lets_sleep_and_blocks(void *arg) {
    EX_EQ(cc_event_wait(&go), 0);
    spawn(&third, sleeps_then_wakes, NULL);
    cc_yield();
    return blocks(arg);
}
static void left_in_heap(void) {
    all_sleep();
    start_at(0, &task, lets_sleep_and_blocks, NULL);
    start_at(0, &other, blocks_on_signal, &go_too);
    until_nobody_watches(1, 3);
}
SCENARIO(searcher_leaves_timer, "IDLE-3: a searcher finds work; another worker arms a timer, and blocks", .workers = 3,
         .setup = left_in_heap, .threads = {starts_first, starts_second});

/* A worker is woken to search, and may not: more of them are awake than there are CPUs. It must not stay counted as a
 * searcher. */
static void *counts_on_signal(void *event) {
    EX_EQ(cc_event_wait(event), 0);
    return counts_one(&counts[event == &go_too]);
}
static void too_many_workers(void) {
    all_sleep();
    start_at(0, &task, counts_on_signal, &go);
    start_at(0, &other, counts_on_signal, &go_too);
    cc__set(&cc__sched.surplus, 2);
}
static void counts_first(void) {
    EX_EQ(cc_event_set(&go), 0);
    join(&task);
}
static void nobody_searches(void) {
    EX_EQ(want_searching(cc__get(&cc__sched.want)), 0);
}
SCENARIO(searcher_may_not, "IDLE-2: a worker is woken to search, but may not", .workers = 3, .setup = too_many_workers,
         .threads = {counts_first, starts_second}, .check = nobody_searches);

/* A notifier counts a searcher on behalf of the only sleeper, and finds that this one has left the list: until it
 * undoes the count, others assume a searcher. One of them shares with it, while the worker that had left goes to sleep
 * again, before the shared fiber was visible. */
static _Atomic uint32_t signalled;
static void *publishes_on_signal(void *arg) {
    while (cc__get_acquire(&signalled) == 0) cc__futex_wait(&signalled, 0, CC_FUTEX_FOREVER);
    return publishes_and_blocks(arg);
}
static void about_to_share(void) {
    all_sleep();
    start_at(0, &task, publishes_on_signal, NULL);
    EX_EQ(want_idle(cc__get(&cc__sched.want)), 1);
    cc__policy_paid(UINT64_MAX); /* no wake is deferred */
}
static void wakes_and_tells(void) {
    (void)cc__idle_notify_worker(&cc__sched.workers[1]); /* as for a stack; it finds nothing */
    cc__set_release(&signalled, 1);
    cc__futex_wake(&signalled, 1);
    join(&task);
}
static void notifies(void) {
    cc__idle_notify(NULL);
}
SCENARIO(notifier_finds_no_sleeper, "IDLE-2: a notifier undoes a searcher count that others have relied on",
         .workers = 2, .setup = about_to_share, .threads = {notifies, wakes_and_tells}, .check = nobody_searches,
         .no_timer = true);

/* A searcher goes to work while a sleeper retires; a fiber was left to it that it does not see yet. */
static void *spawns_on_signal(void *arg) {
    EX_EQ(cc_event_wait(&go), 0);
    while (cc__get_acquire(&signalled) == 0) cc__futex_wait(&signalled, 0, CC_FUTEX_FOREVER);
    spawn(&third, wakes_blocked, NULL);
    return blocks(arg);
}
static void left_unseen(void) {
    cc__set(&cc__sched.base, 3);
    all_sleep();
    start_at(3, &woken, counts_one, &counts[2]);
    start_at(0, &task, spawns_on_signal, NULL);
    start_at(0, &other, blocks_on_signal, &go_too);
    until_nobody_watches(3, 4);
    EX_EQ(cc_event_set(&go), 0);
    ex_settle();
    EX_EQ(want_idle(cc__get(&cc__sched.want)), 3);
    EX_CHECK(cc__get(&cc__sched.idle.watcher) == NULL);
    cc__list_remove(&cc__sched.workers[3].remote.idle); /* it is woken after the others */
    cc__list_push_front(&cc__sched.idle.list, &cc__sched.workers[3].remote.idle);
}
static void tells_first(void) {
    cc__set_release(&signalled, 1);
    cc__futex_wake(&signalled, 1);
    join(&task);
    join(&third);
}
SCENARIO(searcher_leaves_retiring, "IDLE-3: a searcher finds work while a sleeper retires", .workers = 4,
         .setup = left_unseen, .threads = {tells_first, starts_second});

/* ELASTIC-2: a fiber is in the queue of a blocked worker, and its wake was deferred to the watcher; the watcher
 * retires, and the third worker has to take over its role. The same for the timer sleeper. */
enum { RETIRES_NS = 10 * 1000 }; /* sooner than the watcher ticks */
static void *leaves_one_queued(void *arg) {
    EX_EQ(cc_event_wait(&go), 0);
    cc__set(&cc__sched.credit, 0); /* the wake is deferred, if there is a watcher */
    spawn(&third, wakes_blocked, NULL);
    return blocks(arg);
}
static void one_retires(void) {
    cc__elastic_set_retire(RETIRES_NS);
    cc__set(&cc__sched.base, 2);
}
static void watcher_may_retire(void) {
    all_sleep();
    start_at(0, &task, leaves_one_queued, NULL);
    one_retires();
    start_at(2, &woken, counts_one, &counts[0]); /* from now on it retires */
    struct worker *watcher = cc__get(&cc__sched.idle.watcher), *retires = &cc__sched.workers[2];
    EX_CHECK(watcher != NULL && watcher != retires && want_watch(cc__get(&cc__sched.want)));
    watcher->watched = false; /* as if the other one had gone to sleep first */
    retires->watched = true;
    cc__set(&cc__sched.idle.watcher, retires);
    EX_EQ(want_idle(cc__get(&cc__sched.want)), 3);
}
static void leaves_one_and_waits(void) {
    EX_EQ(cc_event_set(&go), 0);
    join(&task);
    join(&third);
}
SCENARIO(watcher_retires, "ELASTIC-2: the watcher retires", .workers = 3, .setup = watcher_may_retire,
         .threads = {leaves_one_and_waits, runs_something});

static void *sleeps_short(void *arg) {
    EX_EQ(cc_sleep_until(cc_after_ns(100 * RETIRES_NS)), 0);
    return wakes_blocked(arg);
}
static void timer_sleeper_may_retire(void) {
    all_sleep();
    start_at(0, &other, blocks_on_signal, &go);
    one_retires();
    start_at(2, &third, sleeps_short, NULL); /* a timer of the worker that retires */
    EX_EQ(want_idle(cc__get(&cc__sched.want)), 3);
}
static void blocks_one_and_waits(void) {
    EX_EQ(cc_event_set(&go), 0);
    join(&third);
    join(&other);
}
SCENARIO(timer_sleeper_retires, "ELASTIC-1, ELASTIC-2: a worker with a timer retires", .workers = 3,
         .setup = timer_sleeper_may_retire, .threads = {blocks_one_and_waits, runs_something});

/* ---- a condition, a semaphore between fiber and thread ---- */

static CCSem sem;
static void *acquires(void *arg) {
    EX_EQ(cc_event_wait(&go), 0);
    EX_EQ(cc_sem_acquire(&sem), 0);
    return arg;
}
static void about_to_acquire(void) {
    spawn(&task, acquires, NULL);
    ex_settle();
}
static void goes(void) {
    EX_EQ(cc_event_set(&go), 0);
    join(&task);
}
static void releases(void) {
    EX_EQ(cc_sem_release(&sem, 1), 0);
}
SCENARIO(fiber_sem, "a fiber acquires a permit while a thread releases one", .workers = 1, .setup = about_to_acquire,
         .threads = {goes, releases}, .no_timer = true);

static CCCond cond;
static bool ready;
static void *waits_cond(void *arg) {
    EX_EQ(cc_event_wait(&go), 0);
    EX_EQ(cc_mutex_lock(&mutex), 0);
    while (!ready) EX_EQ(cc_cond_wait(&cond, &mutex), 0);
    EX_EQ(cc_mutex_unlock(&mutex), 0);
    return arg;
}
static void about_to_wait(void) {
    spawn(&task, waits_cond, NULL);
    ex_settle();
}
static void signals(void) {
    EX_EQ(cc_mutex_lock(&mutex), 0);
    ready = true;
    EX_EQ(cc_mutex_unlock(&mutex), 0);
    EX_EQ(cc_cond_signal(&cond), 0);
}
SCENARIO(fiber_cond, "COND-1: a fiber waits, a thread signals", .workers = 1, .setup = about_to_wait,
         .threads = {goes, signals}, .no_timer = true);

/* ---- a sleeper that blocks in a driver ---- */

enum { INTERRUPTED = 1, RAISED = 2 };
static _Atomic uint32_t driver_word; /* futex */
static struct fiber *_Atomic awaiting;
static _Atomic uint64_t awaiting_ticket;
static _Atomic uint32_t never;

static void signal_driver(uint32_t what) {
    cc__or(&driver_word, what);
    cc__futex_wake(&driver_word, 1);
}
static uint64_t never_due(unsigned worker, bool exact) {
    return UINT64_MAX;
}
static uint32_t poll_signal(unsigned worker, uint64_t now, struct link *list) {
    if (!(cc__get_acquire(&driver_word) & RAISED)) return 0;
    struct fiber *f = cc__swap(&awaiting, NULL);
    if (f == NULL) return 0;
    cc__and_seq(&driver_word, ~(uint32_t)RAISED);
    if (cc__state_claim(f, cc__get(&awaiting_ticket), WAKE_OBJECT) != CLAIM_WON) return 0;
    cc__list_push_back(list, &f->link);
    return 1;
}
static bool is_awaited(void) {
    return cc__get_acquire(&awaiting) != NULL;
}
static bool wait_for_signal(uint64_t until) {
    uint32_t seen = cc__get_acquire(&driver_word);
    if (seen == 0) cc__futex_wait(&driver_word, 0, until);
    if (seen != 0) cc__and_seq(&driver_word, ~(uint32_t)INTERRUPTED);
    return (seen & RAISED) != 0;
}
static void interrupt_driver(void) {
    signal_driver(INTERRUPTED);
}
static const struct driver blocking = {
    NULL, NULL, never_due, poll_signal, is_awaited, wait_for_signal, interrupt_driver};

static void *awaits_signal(void *arg) {
    struct fiber *self = cc__sched_current(cc__worker());
    cc__set(&awaiting_ticket, cc__park_open(self, PARK_IO));
    cc__set_release(&awaiting, self);
    EX_EQ(cc__park_if(self, &never, 0), WAKE_OBJECT);
    return counts_one(arg);
}
static void driver_setup(void) {
    cc__drivers[1] = &blocking;
    spawn(&task, awaits_signal, &counts[0]);
    all_sleep();
}
static void raises_signal(void) {
    signal_driver(RAISED);
    join(&task);
}
static void runs_one(void) {
    EX_EQ(cc_run(counts_one, &counts[1], NULL), 0);
}
static void runs_then_raises(void) {
    runs_one();
    raises_signal();
}
static void driver_check(void) {
    EX_EQ(counts[0], 1);
    EX_EQ(counts[1], 1);
}
SCENARIO(driver_interrupt, "IDLE-7, DRIVER-3: a wake for a worker that blocks in a driver", .workers = 1,
         .setup = driver_setup, .threads = {runs_then_raises}, .check = driver_check);
SCENARIO(driver_blocks, "IDLE-7, DRIVER-3: an event and a wake, for a worker that blocks in a driver", .workers = 1,
         .setup = driver_setup, .threads = {raises_signal, runs_one}, .check = driver_check);
SCENARIO(driver_blocks_2, "the same, two workers", .workers = 2, .setup = driver_setup,
         .threads = {raises_signal, runs_one}, .check = driver_check);
