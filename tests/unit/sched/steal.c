/* steal.c - fibers of a worker that is stuck in one turn are stolen by another worker, from whatever queue they are in.
 */
#include "harness.h"

#include "../gate.h"
#include "os/thread.h"
#include "sched/idle.h"
#include "sched/policy.h"
#include "sched/runq.h"

#include <ccc/ccc.h>

/* At least one worker is stuck in every case, so there have to be two. */
static void with_workers(unsigned workers, CCTaskFn fn) {
    CCRuntimeConfig config = {.workers = workers};
    CHECK_EQ(cc_runtime_init(&config), 0);
    CHECK_EQ(cc_run(fn, NULL, NULL), 0);
    CHECK_EQ(cc_runtime_shutdown(UINT64_MAX), 0);
}

static void with_each_count(CCTaskFn fn, int rounds) {
    for (unsigned workers = 2; workers <= 16; workers *= 2)
        for (int i = 0; i < rounds; i++) with_workers(workers, fn);
}

static _Atomic int ran;

static void *note(void *arg) {
    cc__add(&ran, 1);
    return arg;
}

/* Hogs its worker until `n` others have run. */
static void spin_until_ran(int n) {
    while (cc__get_acquire(&ran) < n) {
    }
}

/* ---- fresh children ---- */

static void *wait_for_children_spinning(void *arg) {
    CCTask children[10];
    cc__set(&ran, 0);
    for (int i = 0; i < 10; i++) children[i] = cc_fiber_spawn_task(note, NULL);
    spin_until_ran(10);
    for (int i = 0; i < 10; i++) CHECK_EQ(cc_task_join(&children[i], NULL), 0);
    return arg;
}

TEST(children_of_a_busy_fiber) {
    with_each_count(wait_for_children_spinning, 3);
}

static void *wait_for_child_spinning(void *arg) {
    for (long i = 0; i < test_rounds(20, 1000); i++) {
        cc__set(&ran, 0);
        CCTask child = cc_fiber_spawn_task(note, NULL);
        spin_until_ran(1);
        CHECK_EQ(cc_task_join(&child, NULL), 0);
    }
    return arg;
}

TEST(lone_child_of_a_busy_fiber) {
    with_each_count(wait_for_child_spinning, 1);
}

/* A steal takes SHARE_MAX of them at most. Their work is short, and does not pay; the thief sleeps only when the queue
 * is empty, because a tick of the watcher for each such part would be a millisecond for each. */
enum { MANY_CHILDREN = 20 * SHARE_MAX };

static void *wait_for_many_spinning(void *arg) {
    static CCTask children[MANY_CHILDREN];
    CCStats before, after;
    cc__set(&ran, 0);
    for (int i = 0; i < MANY_CHILDREN; i++) children[i] = cc_fiber_spawn_task(note, NULL);
    spin_until_ran(1);
    CHECK_EQ(cc_stats(&before, sizeof before), 0);
    spin_until_ran(MANY_CHILDREN);
    CHECK_EQ(cc_stats(&after, sizeof after), 0);
    printf("the thief has slept %d times\n", (int)(after.sleeps - before.sleeps));
    CHECK(after.sleeps - before.sleeps < MANY_CHILDREN / SHARE_MAX / 2);
    for (int i = 0; i < MANY_CHILDREN; i++) CHECK_EQ(cc_task_join(&children[i], NULL), 0);
    return arg;
}

TEST(many_children_of_a_busy_fiber) {
    for (int i = 0; i < 3; i++) with_workers(2, wait_for_many_spinning);
}

/* ---- a woken fiber in the slot ---- */

static struct gate gate;

static void *wait_at_gate(void *arg) {
    gate_wait(&gate);
    return note(arg);
}

static void *wake_then_spin(void *arg) {
    gate_close(&gate);
    cc__set(&ran, 0);
    CCTask waiter = cc_fiber_spawn_task(wait_at_gate, NULL);
    while (cc__get_seq(&gate.fiber) == NULL) cc_yield();
    (void)gate_open(&gate);
    spin_until_ran(1);
    CHECK_EQ(cc_task_join(&waiter, NULL), 0);
    return arg;
}

TEST(woken_by_a_busy_fiber) {
    with_each_count(wake_then_spin, 3);
}

/* ---- a yielded fiber in the FIFO ---- */

static void *yield_then_note(void *arg) {
    for (int i = 0; i < 10; i++) cc_yield();
    return note(arg);
}

static void *yield_then_spin(void *arg) {
    cc__set(&ran, 0);
    CCTask other = cc_fiber_spawn_task(yield_then_note, NULL);
    for (int i = 0; i < 5; i++) cc_yield();
    spin_until_ran(1);
    CHECK_EQ(cc_task_join(&other, NULL), 0);
    return arg;
}

TEST(yielded_beside_a_busy_fiber) {
    with_each_count(yield_then_spin, 3);
}

/* ---- a timer on a stuck worker's heap ---- */

static void *sleep_then_note(void *arg) {
    CHECK_EQ(cc_sleep_ms(2), 0);
    return note(arg);
}

static void *spin_beside_a_sleeper(void *arg) {
    cc__set(&ran, 0);
    CCTask sleeper = cc_fiber_spawn_task(sleep_then_note, NULL);
    cc_yield(); /* it has armed its timer here, unless it was stolen before */
    spin_until_ran(1);
    CHECK_EQ(cc_task_join(&sleeper, NULL), 0);
    return arg;
}

TEST(sleeper_beside_a_busy_fiber) {
    with_each_count(spin_beside_a_sleeper, 3);
}

/* The other worker has its own work, and still polls. */
static _Atomic bool enough;

static void *stay_busy(void *arg) {
    while (!cc__get_acquire(&enough)) cc_yield();
    return arg;
}

static void *note_where_and_sleep(void *worker) {
    cc__set_release((_Atomic unsigned *)worker, cc__worker()->core.owner);
    return sleep_then_note(NULL);
}

static void *spin_beside_busy_workers(void *arg) {
    enum { BUSY = 8, ROUNDS_MAX = 1000 };
    CCTask busy[BUSY];
    bool here = false;
    cc__set(&enough, false);
    for (int i = 0; i < BUSY; i++) busy[i] = cc_fiber_spawn_task(stay_busy, NULL);
    for (int round = 0; round < ROUNDS_MAX && !here; round++) {
        _Atomic unsigned armed_on = 0;
        cc__set(&ran, 0);
        CCTask sleeper = cc_fiber_spawn_task(note_where_and_sleep, &armed_on);
        cc_yield();
        /* The timer belongs to this worker, and another worker is busy. */
        here = cc__get_acquire(&armed_on) == cc__worker()->core.owner && cc__get(&cc__worker()->runq.count) < BUSY;
        uint64_t end = cc_now_ns() + UINT64_C(20) * 1000000000;
        while (here && cc__get_acquire(&ran) == 0) CHECK(cc_now_ns() < end);
        CHECK_EQ(cc_task_join(&sleeper, NULL), 0);
    }
    CHECK(here);
    cc__set_release(&enough, true);
    for (int i = 0; i < BUSY; i++) CHECK_EQ(cc_task_join(&busy[i], NULL), 0);
    return arg;
}

TEST(sleeper_beside_busy_workers) {
    CHECK_EQ(cc_runtime_init(&(CCRuntimeConfig){.workers = 2, .max_workers = 2}), 0);
    CHECK_EQ(cc_run(spin_beside_busy_workers, NULL, NULL), 0);
    CHECK_EQ(cc_runtime_shutdown(UINT64_MAX), 0);
}

/* ---- fibers that talk to each other ---- */

enum { WORDS = 20000 };
static CCChan *talk[2];

static void *say(void *which) {
    CCChan *ch = talk[(intptr_t)which];
    for (uint64_t i = 0, n = (uint64_t)test_rounds(WORDS, WORDS); i < n; i++)
        CHECK_EQ(cc_chan_send(ch, &i, sizeof i), 0);
    return NULL;
}

static void *listen_to_both(void *arg) {
    CCTask tasks[2];
    uint64_t value, n = 2 * (uint64_t)test_rounds(WORDS, WORDS);
    CCCase cases[2] = {CC_RECV(talk[0], &value, NULL), CC_RECV(talk[1], &value, NULL)};
    for (int i = 0; i < 2; i++) tasks[i] = cc_fiber_spawn_task(say, (void *)(intptr_t)i);
    for (uint64_t i = 0; i < n; i++) {
        size_t chosen;
        CHECK_EQ(cc_select(cases, 2, CC_FOREVER, &chosen), 0);
    }
    for (int i = 0; i < 2; i++) CHECK_EQ(cc_task_join(&tasks[i], NULL), 0);
    return arg;
}

/* Runs fn while a worker seems to search all the time; returns the counters, and how long it took. */
static uint64_t run_beside_a_searcher(CCTaskFn fn, CCStats *stats) {
    cc__add_seq(&cc__sched.want, WANT_SEARCHING);
    uint64_t start = cc_now_ns();
    CHECK_EQ(cc_run(fn, NULL, NULL), 0);
    uint64_t ns = cc_now_ns() - start;
    cc__sub_seq(&cc__sched.want, WANT_SEARCHING);
    CHECK_EQ(cc_stats(stats, sizeof *stats), 0);
    return ns;
}

/* A worker searches all the time, and one of three fibers always waits, for a turn that comes soon. If it were given
 * away, every message would move between cores. */
TEST(fibers_that_communicate_stay_together) {
    CCStats stats;
    CHECK_EQ(cc_runtime_init(&(CCRuntimeConfig){.workers = 2, .max_workers = 2}), 0);
    for (int i = 0; i < 2; i++) CHECK((talk[i] = cc_chan_create(sizeof(uint64_t), 0)) != NULL);
    uint64_t ns = run_beside_a_searcher(listen_to_both, &stats);
    for (int i = 0; i < 2; i++) cc_chan_free(talk[i]);
    CHECK_EQ(cc_runtime_shutdown(UINT64_MAX), 0);
    /* After an interruption turns seem long. If their length were not checked, fifty would be given away in a
     * millisecond. */
    if (stats.shared > 10 + ns / 250000 && ns / (2 * (uint64_t)test_rounds(WORDS, WORDS)) > WORTH_NS / 4)
        SKIP("turns are long in this build or on this machine: it is right to share");
    CHECK(stats.shared <= 10 + ns / 250000);
}

enum { MANY = 64, MANY_YIELDS = 5000 };

static void *yield_often(void *arg) {
    for (long i = test_rounds(MANY_YIELDS, MANY_YIELDS); i > 0; i--) cc_yield();
    return arg;
}

static void *yield_among_many(void *arg) {
    CC_NURSERY(nursery)
    for (int i = 0; i < MANY; i++) CHECK_EQ(cc_nursery_spawn(nursery, yield_often, NULL), 0);
    return arg;
}

/* A worker searches all the time and is always too late: the fibers that the worker gives away it takes back at its
 * next poll. */
TEST(returned_fibers_are_not_shared_again) {
    CCStats stats;
    CHECK_EQ(cc_runtime_init(&(CCRuntimeConfig){.workers = 1, .max_workers = 1}), 0);
    uint64_t ns = run_beside_a_searcher(yield_among_many, &stats);
    CHECK_EQ(cc_runtime_shutdown(UINT64_MAX), 0);
    printf("%llu fibers were shared in %llu turns\n", (unsigned long long)stats.shared,
           (unsigned long long)stats.switches);
    if (ns / stats.switches * MANY > WORTH_MAX_NS)
        SKIP("turns are long in this build or on this machine: it is right to share");
    CHECK(stats.shared < 5000 + stats.switches / 20); /* at first nothing is known; else nine a turn */
}

/* Nor does it earn anything with them: credit is for work that another worker was given. */
TEST(returned_fibers_pay_nothing) {
    CCStats stats;
    CHECK_EQ(cc_runtime_init(&(CCRuntimeConfig){.workers = 1, .max_workers = 1}), 0);
    cc__set(&cc__sched.credit, 0);
    (void)run_beside_a_searcher(yield_among_many, &stats);
    CHECK(stats.shared > 0);
    while (!cc__sched_all_asleep()) cc__thread_nap(100000);
    CHECK_EQ(cc__get(&cc__sched.credit), 0);
    CHECK_EQ(cc_runtime_shutdown(UINT64_MAX), 0);
}

static atomic_bool quiet;

static void *say_nothing(void *arg) {
    while (!atomic_load(&quiet)) cc_yield();
    return arg;
}

/* How long turns take at worst is known after one of them, and forgotten when there was none for some time. */
static void *take_long_once(void *arg) {
    struct worker *w = cc__worker();
    CCTask other = cc_fiber_spawn_task(say_nothing, NULL);
    uint64_t end = cc_now_ns() + 5000000;
    while (cc_now_ns() < end) {
    }
    while (cc__get(&w->slow_ns) < 1000 * 1000) cc_yield();
    for (uint32_t most = cc__get(&w->slow_ns); cc__get(&w->slow_ns) > most / 2;) cc_yield();
    atomic_store(&quiet, true);
    CHECK_EQ(cc_task_join(&other, NULL), 0);
    return arg;
}

TEST(long_turns_are_remembered, .timeout = 120) {
    CHECK_EQ(cc_runtime_init(&(CCRuntimeConfig){.workers = 1, .max_workers = 1}), 0);
    CHECK_EQ(cc_run(take_long_once, NULL, NULL), 0);
    CHECK_EQ(cc_runtime_shutdown(UINT64_MAX), 0);
}

/* ---- whoever gives must have enough left ---- */

static void work_for_ns(uint64_t ns) {
    for (uint64_t end = cc_now_ns() + ns; cc_now_ns() < end;) {
    }
}

static uint64_t wasted(void) {
    CCStats stats;
    CHECK_EQ(cc_stats(&stats, sizeof stats), 0);
    return stats.wakes_wasted;
}

/* Behaves as if it had given a fiber to another worker, and leaves its own idle. */
static void *give_and_rest(void *arg) {
    struct worker *w = cc__worker();
    work_for_ns(1000 * 1000); /* stealing this fiber has paid off */
    uint64_t before = wasted();
    cc__idle_gave(w, 1);
    work_for_ns(10 * WORTH_NS);
    CHECK_EQ(cc_sleep_ms(1), 0);
    CHECK_EQ(wasted(), before);
    work_for_ns(1000 * 1000);
    cc__idle_gave(w, 1000);
    cc__idle_gave(w, 1000 * 1000);
    do CHECK_EQ(cc_sleep_ms(1), 0); /* a point in time that has passed is no rest */
    while (wasted() == before);
    CHECK_EQ(wasted(), before + 1);
    CHECK_EQ(cc__get(&cc__sched.credit), WAKE_CREDIT - 1);
    work_for_ns(1000 * 1000); /* what was given is forgotten by then */
    CHECK_EQ(cc_sleep_ms(1), 0);
    CHECK_EQ(wasted(), before + 1);
    CHECK_EQ(cc__get(&cc__sched.credit), WAKE_CREDIT - 1);
    return arg;
}

TEST(sharing_needs_enough_work) {
    CHECK_EQ(cc_runtime_init(&(CCRuntimeConfig){.workers = 1, .max_workers = 1}), 0);
    CHECK_EQ(cc_run(give_and_rest, NULL, NULL), 0);
    CHECK_EQ(cc_runtime_shutdown(UINT64_MAX), 0);
}

/* ---- what a wake earns ---- */

static uint32_t earned(uint64_t ns) {
    cc__set(&cc__sched.credit, 0);
    cc__policy_paid(ns);
    return cc__get(&cc__sched.credit);
}

TEST(wakes_are_earned_by_the_work_that_was_moved) {
    CHECK_EQ(earned(0), 1); /* otherwise no worker would ever try again */
    CHECK_EQ(earned(WAKE_PAYS_NS), 1);
    CHECK_EQ(earned(3 * WAKE_PAYS_NS), 3);
    CHECK_EQ(earned(1000 * WAKE_PAYS_NS), WAKE_CREDIT);
    CHECK_EQ(earned(UINT64_MAX), WAKE_CREDIT);
    cc__policy_paid(WAKE_PAYS_NS); /* less than there is already */
    CHECK_EQ(cc__get(&cc__sched.credit), WAKE_CREDIT);
}

TEST(stolen_work_pays_if_it_lasts_longer_than_its_price) {
    CHECK(cc__policy_steal_paid(1, 0, STEAL_PAYS_NS, false));
    CHECK(!cc__policy_steal_paid(2, 0, STEAL_PAYS_NS, false));
    CHECK(!cc__policy_steal_paid(1, 0, WAKE_PAYS_NS - 1, true));
    CHECK(cc__policy_steal_paid(1, 0, WAKE_PAYS_NS, true));
    CHECK(!cc__policy_steal_paid(1, 1, LOCK_WAIT_PAYS_NS, true));
    CHECK(cc__policy_steal_paid(1, 1, LOCK_WAIT_PAYS_NS + STEAL_PAYS_NS, true));
}

static CCMutex held;

static void *lock_and_unlock(void *arg) {
    CHECK_EQ(cc_mutex_lock(&held), 0);
    CHECK_EQ(cc_mutex_unlock(&held), 0);
    return arg;
}

static uint64_t waits_for_mutexes(void) {
    uint64_t n = 0;
    for (unsigned i = 0; i < 2; i++) n += cc__get(&cc__sched.workers[i].core.counters.parks[PARK_MUTEX]);
    return n;
}

enum { LOCK_ROUNDS = 300 };
static _Atomic bool judged;

/* The other worker steals a fiber that waits for the mutex which the victim's fiber holds: no time was saved. A round
 * in which that takes as long as the price of a wait says nothing. */
static void *hold_in_a_long_turn(void *arg) {
    for (int i = 0; i < LOCK_ROUNDS && !judged; i++) {
        CHECK_EQ(cc_mutex_lock(&held), 0);
        while (cc__sched_open() > 1 && want_idle(cc__get(&cc__sched.want)) == 0) continue; /* earlier work is judged */
        cc__set(&cc__sched.credit, 0);
        uint64_t waits = waits_for_mutexes(), left = cc_now_ns();
        CCTask task = cc_fiber_spawn_task(lock_and_unlock, NULL);
        for (;;) {
            uint64_t now = cc_now_ns();
            bool sleeps = want_idle(cc__get(&cc__sched.want)) != 0;
            if (waits_for_mutexes() != waits) break; /* it may sleep again */
            if (sleeps) left = now;
        }
        while (want_idle(cc__get(&cc__sched.want)) == 0) continue; /* it has judged that when it sleeps */
        uint32_t credit = cc__get(&cc__sched.credit);
        judged = cc_now_ns() - left < LOCK_WAIT_PAYS_NS;
        if (judged) CHECK_EQ(credit, 0);
        CHECK_EQ(cc_mutex_unlock(&held), 0);
        CHECK_EQ(cc_task_join(&task, NULL), 0);
    }
    return arg;
}

/* Two workers, no more: a third one that sleeps would hide when the thief has left its sleep. */
TEST(stolen_work_that_waits_for_a_lock_earns_nothing) {
    CHECK_EQ(cc_runtime_init(&(CCRuntimeConfig){.workers = 2, .max_workers = 2}), 0);
    CHECK_EQ(cc_run(hold_in_a_long_turn, NULL, NULL), 0);
    CHECK_EQ(cc_runtime_shutdown(UINT64_MAX), 0);
    if (!judged) SKIP("no round took less than the price of a wait");
}

/* A long turn of 3 ms after each of a few wakes earns as many as before; one batch after another of a few microseconds,
 * next to a turn that does not end because of them, does not. */
TEST(short_work_behind_a_long_turn_earns_by_the_time_between) {
    uint64_t now = 1000 * UINT64_C(1000000000);
    (void)cc__policy_short_work(now);
    for (int i = 0; i < 100; i++) CHECK_EQ(cc__policy_short_work(now += 30 * 1000), 0);
    CHECK_EQ(earned(cc__policy_short_work(now += SHORT_WORK_NS)), 1);
    CHECK_EQ(earned(cc__policy_short_work(now += 2 * SHORT_WORK_NS)), 2);
    CHECK_EQ(earned(cc__policy_short_work(now += 3 * POLICY_MS)), WAKE_CREDIT);
    CHECK_EQ(cc__policy_short_work(now), 0);
    cc__set(&cc__sched.credit, 0);
    cc__set(&cc__sched.idle.short_work_at, 0);
}

/* ---- an inbox ---- */

static void *spin(void *arg) {
    spin_until_ran((int)(intptr_t)arg);
    return NULL;
}

/* As many spawns from an OS thread as there are workers: one lands in the inbox of the worker that spins. */
TEST(sent_to_a_busy_worker) {
    for (unsigned workers = 2; workers <= 8; workers *= 2) {
        CCRuntimeConfig config = {.workers = workers};
        CHECK_EQ(cc_runtime_init(&config), 0);
        for (int round = 0; round < 5; round++) {
            cc__set(&ran, 0);
            CCTask busy = cc_fiber_spawn_task(spin, (void *)(intptr_t)(2 * workers));
            for (unsigned i = 0; i < 2 * workers; i++) CHECK_EQ(cc_spawn(NULL, note, NULL, NULL), 0);
            CHECK_EQ(cc_task_join(&busy, NULL), 0);
        }
        CHECK_EQ(cc_runtime_shutdown(UINT64_MAX), 0);
    }
}

/* ---- all but one worker stuck ---- */

static void *spawn_and_spin(void *arg) {
    CCTask child = cc_fiber_spawn_task(note, NULL);
    spin_until_ran((int)(intptr_t)arg);
    CHECK_EQ(cc_task_join(&child, NULL), 0);
    return NULL;
}

TEST(one_worker_serves_all_the_stuck) {
    for (unsigned workers = 2; workers <= 8; workers *= 2) {
        CCRuntimeConfig config = {.workers = workers};
        CHECK_EQ(cc_runtime_init(&config), 0);
        cc__set(&ran, 0);
        CCTask stuck[8];
        for (unsigned i = 0; i + 1 < workers; i++)
            stuck[i] = cc_fiber_spawn_task(spawn_and_spin, (void *)(intptr_t)(workers - 1));
        for (unsigned i = 0; i + 1 < workers; i++) CHECK_EQ(cc_task_join(&stuck[i], NULL), 0);
        CHECK_EQ(cc_runtime_shutdown(UINT64_MAX), 0);
    }
}
