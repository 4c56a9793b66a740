/* fiber_wait.c - waits on an object without a lock: by fibers and OS threads; of waker, timer and canceller one
 * wins. */
#include "harness.h"

#include "../crew.h"
#include "../ending.h"
#include "wait/wait.h"

#include <ccc/ccc.h>
#include <errno.h>
#include <sched.h>

/* ---- a semaphore of atomics: permits, and slots where waiters show themselves ---- */

enum { SLOTS = 64 };

struct sem {
    _Atomic int permits;
    _Atomic bool closed;
    _Atomic uintptr_t slots[SLOTS]; /* a waiter's address; + 1: a waker uses it, and the waiter must not return yet */
};

static bool sem_try(struct sem *sem) {
    int permits = cc__get(&sem->permits);
    while (permits > 0)
        if (cc__cas(&sem->permits, &permits, permits - 1)) return true;
    return false;
}

static int sem_publish(void *object, struct waiter *waiter, void *io) {
    struct sem *sem = object;
    (void)io;
    if (cc__get(&sem->closed)) return EPIPE;
    for (int i = 0;; i = (i + 1) % SLOTS) {
        uintptr_t empty = 0;
        if (cc__cas_seq(&sem->slots[i], &empty, (uintptr_t)waiter)) break;
    }
    if (cc__get_seq(&sem->permits) > 0) (void)cc__waiter_wake(waiter, WAKE_OBJECT);
    return 0;
}

static void sem_unpublish(void *object, struct waiter *waiter) {
    struct sem *sem = object;
    for (int i = 0; i < SLOTS; i++) {
        uintptr_t mine = (uintptr_t)waiter;
        while (!cc__cas_seq(&sem->slots[i], &mine, 0) && mine == (uintptr_t)waiter + 1) {
            sched_yield(); /* a waker is about to leave it */
            mine = (uintptr_t)waiter;
        }
    }
}

static const struct waitable_ops sem_ops = {sem_publish, sem_unpublish};

static void sem_post(struct sem *sem) {
    cc__add_seq(&sem->permits, 1);
    for (int i = 0; i < SLOTS; i++) {
        uintptr_t waiter = cc__get_seq(&sem->slots[i]);
        if (waiter == 0 || waiter % 2 != 0 || !cc__cas_seq(&sem->slots[i], &waiter, waiter + 1)) continue;
        bool woken = cc__waiter_wake((struct waiter *)waiter, WAKE_OBJECT);
        cc__set_seq(&sem->slots[i], 0);
        if (woken) return;
    }
}

static int sem_take(struct sem *sem, uint64_t deadline) {
    int rc = 0;
    while (rc == 0 && !sem_try(sem)) rc = cc__fiber_wait(sem, NULL, &sem_ops, deadline, PARK_QUEUE);
    return rc;
}

/* ---- plain use ---- */

static struct sem sem;

static void *use_alone(void *arg) {
    sem_post(&sem);
    sem_post(&sem);
    CHECK_EQ(sem_take(&sem, WAIT_FOREVER), 0);
    CHECK_EQ(sem_take(&sem, 0), 0); /* an available token is taken, deadline or not */
    CHECK_EQ(sem_take(&sem, 0), ETIMEDOUT);
    CCDeadline soon = cc_after_ms(1);
    CHECK_EQ(sem_take(&sem, soon.ns), ETIMEDOUT);
    CHECK(cc_now_ns() >= soon.ns);
    cc__set(&sem.closed, true);
    CHECK_EQ(sem_take(&sem, WAIT_FOREVER), EPIPE);
    sem_post(&sem);
    CHECK_EQ(sem_take(&sem, WAIT_FOREVER), 0);
    for (int i = 0; i < SLOTS; i++) CHECK_EQ(cc__get(&sem.slots[i]), 0);
    if (cc_in_fiber()) cc_yield();
    return arg;
}

TEST_WORKERS(one_fiber) {
    CHECK_EQ(cc_run(use_alone, NULL, NULL), 0);
}

TEST(one_thread) {
    (void)use_alone(NULL);
    CHECK_EQ(cc_worker_count(), 0);
}

/* ---- posts and takes of fibers and threads ---- */

static long each;
static _Atomic long taken, timed_out;

static void post_some(void) {
    for (long i = 0; i < each; i++) sem_post(&sem);
}

/* Every other take has a deadline that may or may not come first. */
static void take_some(void) {
    for (long i = 0; i < each;) {
        int result = sem_take(&sem, i % 2 ? WAIT_FOREVER : cc_after_ns(20 * 1000).ns);
        if (result == 0) {
            cc__add(&taken, 1);
            i++;
        } else {
            CHECK_EQ(result, ETIMEDOUT);
            cc__add(&timed_out, 1);
        }
    }
}

static void *post_in_fiber(void *arg) {
    post_some();
    return arg;
}

static void *take_in_fiber(void *arg) {
    take_some();
    return arg;
}

static void post_or_take(int index, void *arg) {
    (void)arg;
    if (index % 2)
        take_some();
    else
        post_some();
}

TEST_WORKERS(fibers_and_threads) {
    enum { PAIRS = 4, THREAD_PAIRS = 2 };
    CCTask tasks[2 * PAIRS];
    each = test_rounds(2000, 100000);
    for (int i = 0; i < 2 * PAIRS; i++) tasks[i] = cc_fiber_spawn_task(i % 2 ? take_in_fiber : post_in_fiber, NULL);
    crew_run(2 * THREAD_PAIRS, post_or_take, NULL);
    for (int i = 0; i < 2 * PAIRS; i++) CHECK_EQ(cc_task_join(&tasks[i], NULL), 0);
    CHECK_EQ(taken, (PAIRS + THREAD_PAIRS) * each);
    CHECK_EQ(sem.permits, 0);
    for (int i = 0; i < SLOTS; i++) CHECK_EQ(sem.slots[i], 0);
}

/* ---- waker, timer and canceller at once ---- */

/* Nothing completes this wait by itself; the waiter only publishes itself. */
struct cell {
    struct waiter *_Atomic waiter;
    _Atomic long round; /* published with it */
    _Atomic int answered;
    _Atomic int won_by[2];
};

static int cell_publish(void *object, struct waiter *waiter, void *io) {
    struct cell *cell = object;
    cc__set(&cell->waiter, waiter);
    cc__set_release(&cell->round, *(long *)io);
    return 0;
}

/* The frame may return when both claimants have finished. */
static void cell_unpublish(void *object, struct waiter *waiter) {
    struct cell *cell = object;
    (void)waiter;
    while (cc__get_acquire(&cell->answered) < 2)
        sched_yield(); /* also in a fiber: the claimants are threads and need the CPU */
}

static const struct waitable_ops cell_ops = {cell_publish, cell_unpublish};
static struct cell cell;
static long rounds;
static long outcomes[3]; /* how often each of the three has won */

static const enum wake_reason claims[2] = {WAKE_OBJECT, WAKE_CANCEL};

static void claim_each_round(int index, void *arg) {
    (void)arg;
    uint64_t random = test_seed() + (uint64_t)index;
    for (long round = 1; round <= rounds; round++) {
        while (cc__get_acquire(&cell.round) < round) sched_yield();
        /* Early, late, or when the timer is due. */
        for (uint64_t spin = test_random(&random) % 2000; spin > 0; spin--) cc__compiler_fence();
        if (test_random(&random) % 4 == 0) sched_yield();
        cc__set(&cell.won_by[index], cc__waiter_wake(cc__get(&cell.waiter), claims[index]));
        cc__add(&cell.answered, 1);
    }
}

static void *wait_each_round(void *arg) {
    uint64_t random = test_seed();
    for (long round = 1; round <= rounds; round++) {
        cc__set(&cell.answered, 0);
        uint64_t deadline = cc_after_ns(test_random(&random) % 20000).ns;
        int result = cc__fiber_wait(&cell, &round, &cell_ops, deadline, PARK_QUEUE);
        CHECK_EQ(cc__get(&cell.won_by[0]) + cc__get(&cell.won_by[1]) + (result == ETIMEDOUT), 1);
        CHECK_EQ(result == 0, cc__get(&cell.won_by[0]));
        CHECK_EQ(result == ECANCELED, cc__get(&cell.won_by[1]));
        if (result == ETIMEDOUT) CHECK(cc_now_ns() >= deadline);
        outcomes[result == 0 ? 0 : result == ECANCELED ? 1 : 2]++;
    }
    return arg;
}

TEST_WORKERS(one_outcome_for_a_fiber) {
    struct crew crew;
    rounds = test_rounds(4000, 200000);
    CCTask waiter = cc_fiber_spawn_task(wait_each_round, NULL);
    crew_start(&crew, 2, claim_each_round, NULL);
    CHECK_EQ(cc_task_join(&waiter, NULL), 0);
    crew_join(&crew);
    CHECK_EQ(outcomes[0] + outcomes[1] + outcomes[2], rounds);
}

static void wait_or_claim(int index, void *arg) {
    if (index == 2)
        (void)wait_each_round(arg);
    else
        claim_each_round(index, arg);
}

TEST(one_outcome_for_a_thread) {
    rounds = test_rounds(4000, 200000);
    crew_run(3, wait_or_claim, NULL);
    CHECK_EQ(outcomes[0] + outcomes[1] + outcomes[2], rounds);
}

/* ---- shutdown ---- */

static void *take_for_ever(void *arg) {
    CHECK_EQ(sem_take(&sem, arg != NULL ? UINT64_MAX - 1 : WAIT_FOREVER), ECANCELED);
    cc__add(&taken, 1);
    return arg;
}

TEST_WORKERS(cancelled_by_shutdown) {
    for (int i = 0; i < 20; i++) CHECK_EQ(cc_spawn(NULL, take_for_ever, i % 2 ? &sem : NULL, NULL), 0);
    end_by_cancelling();
    CHECK_EQ(taken, 20);
    for (int i = 0; i < SLOTS; i++) CHECK_EQ(sem.slots[i], 0);
}
