/* locked.c - waits on an object with a lock: the waiter is found only when it is parked, and is unlinked from every
 * list before it returns. */
#include "harness.h"

#include "../crew.h"
#include "../ending.h"
#include "wait/wait.h"

#include <ccc/ccc.h>
#include <errno.h>

/* A semaphore as a channel or mutex would build it: permits are handed to the oldest waiter, and none is free while one
 * waits. */
struct sem {
    struct lock lock;
    int permits;
    struct link waiters;
};

static struct sem sem;

static void sem_open(void) {
    cc__list_init(&sem.waiters);
}

struct taker {
    struct waiter waiter;
    struct link link;
    bool linked;
};

/* 0, ETIMEDOUT or ECANCELED. */
static int sem_take(uint64_t deadline) {
    struct taker taker;
    CHECK_EQ(cc__waiter_init(&taker.waiter, cc__worker(), deadline), 0);
    cc__lock_take(&sem.lock);
    if (sem.permits > 0) {
        sem.permits--;
        cc__lock_release(&sem.lock);
        return 0;
    }
    cc__list_push_back(&sem.waiters, &taker.link);
    taker.linked = true;
    enum wake_reason reason = cc__wait_locked(&taker.waiter, &sem.lock, (struct wait_what){PARK_QUEUE, NULL});
    if (reason == WAKE_OBJECT) return 0;
    cc__lock_take(&sem.lock);
    if (taker.linked) cc__list_remove(&taker.link);
    cc__lock_release(&sem.lock);
    return reason == WAKE_TIMER ? ETIMEDOUT : ECANCELED;
}

static void sem_post(int n) {
    struct wakes wakes = {.count = 0};
    cc__lock_take(&sem.lock);
    while (n > 0) {
        if (cc__list_empty(&sem.waiters)) {
            sem.permits++;
            n--;
            continue;
        }
        struct taker *taker = container_of(cc__list_pop_front(&sem.waiters), struct taker, link);
        taker->linked = false;
        /* A waiter that timed out or was cancelled is skipped: the permit goes to the next. */
        if (cc__wakes_claim_locked(&wakes, &taker->waiter, WAKE_OBJECT)) n--;
    }
    cc__lock_release(&sem.lock);
    cc__wakes_flush(&wakes);
}

static void check_idle(void) {
    CHECK_EQ(sem.permits, 0);
    CHECK(cc__list_empty(&sem.waiters));
}

/* ---- plain use ---- */

static void *use_alone(void *arg) {
    sem_post(2);
    CHECK_EQ(sem_take(WAIT_FOREVER), 0);
    CHECK_EQ(sem_take(0), 0);
    CHECK_EQ(sem_take(0), ETIMEDOUT); /* a deadline in the past */
    CCDeadline soon = cc_after_ms(1);
    CHECK_EQ(sem_take(soon.ns), ETIMEDOUT);
    CHECK(cc_now_ns() >= soon.ns);
    check_idle();
    return arg;
}

TEST_WORKERS(one_fiber) {
    sem_open();
    CHECK_EQ(cc_run(use_alone, NULL, NULL), 0);
}

TEST(one_thread) {
    sem_open();
    (void)use_alone(NULL);
}

/* ---- first in, first out; one post wakes many ---- */

static _Atomic int order;

static void *take_in_turn(void *arg) {
    (void)arg;
    CHECK_EQ(sem_take(WAIT_FOREVER), 0);
    return (void *)(intptr_t)cc__add(&order, 1);
}

static void *post_in_turn(void *at_once) {
    enum { WAITERS = 10 };
    CCTask waiters[WAITERS];
    cc__set(&order, 0);
    for (int i = 0; i < WAITERS; i++) {
        waiters[i] = cc_fiber_spawn_task(take_in_turn, NULL);
        cc_yield(); /* on one worker: it waits now */
    }
    for (int i = 0; i < WAITERS && !at_once; i++) {
        sem_post(1);
        cc_yield();
        CHECK_EQ(cc__get(&order), i + 1);
    }
    if (at_once) sem_post(WAITERS);
    for (int i = 0; i < WAITERS; i++) {
        void *turn;
        CHECK_EQ(cc_task_join(&waiters[i], &turn), 0);
        CHECK_EQ((intptr_t)turn, i);
    }
    check_idle();
    return NULL;
}

TEST(woken_in_their_order) {
    sem_open();
    CCRuntimeConfig config = {.workers = 1};
    CHECK_EQ(cc_runtime_init(&config), 0);
    for (int i = 0; i < 50; i++) {
        CHECK_EQ(cc_run(post_in_turn, NULL, NULL), 0);
        CHECK_EQ(cc_run(post_in_turn, &sem, NULL), 0);
    }
}

/* ---- fibers and threads, with and without deadlines ---- */

static long each;
static _Atomic long taken;

static void *post_some(void *arg) {
    for (long i = 0; i < each; i++) sem_post(1);
    return arg;
}

static void *take_some(void *arg) {
    for (long i = 0; i < each;) {
        int rc = sem_take(i % 2 ? WAIT_FOREVER : cc_after_ns(20 * 1000).ns);
        if (rc == 0) {
            cc__add(&taken, 1);
            i++;
        } else {
            CHECK_EQ(rc, ETIMEDOUT);
        }
    }
    return arg;
}

static void post_or_take(int index, void *arg) {
    (void)(index % 2 ? take_some(arg) : post_some(arg));
}

TEST_WORKERS(fibers_and_threads) {
    enum { PAIRS = 4, THREAD_PAIRS = 2 };
    CCTask tasks[2 * PAIRS];
    sem_open();
    each = test_rounds(2000, 100000);
    for (int i = 0; i < 2 * PAIRS; i++) tasks[i] = cc_fiber_spawn_task(i % 2 ? take_some : post_some, NULL);
    crew_run(2 * THREAD_PAIRS, post_or_take, NULL);
    for (int i = 0; i < 2 * PAIRS; i++) CHECK_EQ(cc_task_join(&tasks[i], NULL), 0);
    CHECK_EQ(taken, (PAIRS + THREAD_PAIRS) * each);
    check_idle();
}

/* One post for many fibers and threads. */
static void *take_one(void *arg) {
    CHECK_EQ(sem_take(WAIT_FOREVER), 0);
    cc__add(&taken, 1);
    return arg;
}

static void take_one_in_thread(int index, void *arg) {
    (void)index;
    (void)take_one(arg);
}

static int waiting(void) {
    int n = 0;
    cc__lock_take(&sem.lock);
    for (struct link *l = cc__get(&sem.waiters.next); l != &sem.waiters; l = cc__get(&l->next)) n++;
    cc__lock_release(&sem.lock);
    return n;
}

TEST_WORKERS(many_are_woken_at_once) {
    enum { FIBERS = 100, THREADS = 8 };
    sem_open();
    for (int round = 0; round < 10; round++) {
        struct crew crew;
        CCTask tasks[FIBERS];
        cc__set(&taken, 0);
        crew_start(&crew, THREADS, take_one_in_thread, NULL);
        for (int i = 0; i < FIBERS; i++) tasks[i] = cc_fiber_spawn_task(take_one, NULL);
        while (waiting() < FIBERS + THREADS) cc_yield();
        sem_post(FIBERS + THREADS);
        for (int i = 0; i < FIBERS; i++) CHECK_EQ(cc_task_join(&tasks[i], NULL), 0);
        crew_join(&crew);
        CHECK_EQ(cc__get(&taken), FIBERS + THREADS);
        check_idle();
    }
}

/* ---- shutdown ---- */

static void *take_for_ever(void *arg) {
    CHECK_EQ(sem_take(arg != NULL ? UINT64_MAX - 1 : WAIT_FOREVER), ECANCELED);
    cc__add(&taken, 1);
    return arg;
}

TEST_WORKERS(cancelled_by_shutdown) {
    sem_open();
    for (int i = 0; i < 50; i++) CHECK_EQ(cc_spawn(NULL, take_for_ever, i % 2 ? &sem : NULL, NULL), 0);
    end_by_cancelling();
    CHECK_EQ(taken, 50);
    check_idle();
}
