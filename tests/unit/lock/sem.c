/* sem.c - never more holders than permits; first come, first served. */
#include "one_worker.h"
#include "waiters.h"

/* ---- alone: the zero value, three forms, bad arguments ---- */

static void no_object(void) {
    CHECK_EQ(cc_sem_acquire(NULL), EINVAL);
    CHECK_EQ(cc_sem_acquire_try(NULL), EINVAL);
    CHECK_EQ(cc_sem_acquire_until(NULL, CC_FOREVER), EINVAL);
    CHECK_EQ(cc_sem_release(NULL, 1), EINVAL);
    CHECK_EQ(cc_sem_acquire_uncancellable(NULL), EINVAL);
}

static void use_alone(void) {
    CCSem s = {0}, three = CC_SEM_INIT(3);
    CHECK_EQ(cc_sem_acquire_try(&s), EAGAIN);
    times_out(call_sem, &s);
    CHECK_EQ(cc_sem_release(&s, 2), 0);
    CHECK_EQ(cc_sem_release(&s, 0), 0);
    CHECK_EQ(cc_sem_acquire(&s), 0);
    CHECK_EQ(cc_sem_acquire_until(&s, past), 0);
    CHECK_EQ(cc_sem_acquire_try(&s), EAGAIN);
    for (int i = 0; i < 3; i++) CHECK_EQ(cc_sem_acquire_try(&three), 0);
    CHECK_EQ(cc_sem_acquire_try(&three), EAGAIN);
    CHECK_EQ(cc_sem_release(&s, UINT32_MAX), EOVERFLOW);
    CHECK_EQ(cc_sem_release(&s, CC_SEM_MAX), 0);
    CHECK_EQ(cc_sem_release(&s, 1), EOVERFLOW);
    CHECK_EQ(cc_sem_acquire(&s), 0);
    CHECK_EQ(cc_sem_release(&s, 1), 0);
    CHECK_EQ(s.word, CC_SEM_MAX);
}

TESTS_ALONE(no_object, use_alone)

/* ---- among several ---- */

struct pool {
    CCSem sem;
    atomic_int inside, most;
    long each;
};

static void *use_pool(void *arg) {
    struct pool *p = arg;
    for (long i = 0; i < p->each; i++) {
        if (i % 5 == 2) {
            if (cc_sem_acquire_until(&p->sem, cc_after_ns(2000)) != 0) continue;
        } else if (i % 5 == 3) {
            if (cc_sem_acquire_try(&p->sem) != 0) continue;
        } else {
            CHECK_EQ(cc_sem_acquire(&p->sem), 0);
        }
        int inside = atomic_fetch_add(&p->inside, 1) + 1;
        CHECK(inside <= 3);
        if (i % 8 == 0) cc_yield();
        atomic_fetch_sub(&p->inside, 1);
        CHECK_EQ(cc_sem_release(&p->sem, 1), 0);
    }
    return NULL;
}

static void pool_with(enum parties who, size_t unused) {
    (void)unused;
    struct pool p = {.sem = CC_SEM_INIT(3), .each = test_scale(4000)};
    struct party parties[8];
    for (int i = 0; i < 8; i++) parties[i] = party_start(who, i, use_pool, &p);
    parties_end(parties, 8);
    CHECK_EQ(p.sem.word, 3);
    CHECK_EQ(queued(&p.sem), 0);
}

TEST_WORKERS(never_more_than_permits) {
    for_each_kind(pool_with, 0);
}

static CCSem sem;
static atomic_int order;

static void *acquire_in_turn(void *turn) {
    CHECK_EQ(cc_sem_acquire(&sem), 0);
    CHECK_EQ(atomic_fetch_add(&order, 1), (intptr_t)turn);
    return NULL;
}

/* And a new caller does not overtake. */
TEST_WORKERS(first_come_first_served) {
    CCTask tasks[8];
    for (int i = 0; i < 8; i++) {
        tasks[i] = cc_fiber_spawn_task(acquire_in_turn, (void *)(intptr_t)i);
        await_queued(&sem, i + 1);
    }
    for (int i = 0; i < 8; i++) {
        CHECK_EQ(cc_sem_release(&sem, 1), 0);
        CHECK_EQ(cc_sem_acquire_try(&sem), EAGAIN);
        CHECK_EQ(cc_task_join(&tasks[i], NULL), 0);
    }
    CHECK_EQ(cc_sem_acquire_try(&sem), EAGAIN);
}

static void *acquire_any(void *unused) {
    CHECK_EQ(cc_sem_acquire(&sem), 0);
    return unused;
}

static void many_with(enum parties who, size_t unused) {
    (void)unused;
    struct party parties[5];
    for (int i = 0; i < 5; i++) parties[i] = party_start(who, i, acquire_any, NULL);
    await_queued(&sem, 5);
    CHECK_EQ(cc_sem_release(&sem, 7), 0);
    parties_end(parties, 5);
    CHECK_EQ(sem.word & CC_SEM_MAX, 2);
    CHECK_EQ(cc_sem_release(&sem, CC_SEM_MAX - 1), EOVERFLOW);
    CHECK_EQ(cc_sem_release(&sem, 1), 0); /* with what was left beside the mark (SEM-3) */
    CHECK_EQ(cc_sem_acquire_try(&sem), 0);
    CHECK_EQ(cc_sem_acquire(&sem), 0);
    CHECK_EQ(cc_sem_acquire_until(&sem, cc_after_ns(0)), 0);
    CHECK_EQ(sem.word, 0);
    CHECK_EQ(cc_sem_acquire_try(&sem), EAGAIN);
}

TEST_WORKERS(many_at_once) {
    for_each_kind(many_with, 0);
}

/* ---- a wait was cancelled, and its fiber has not run yet, when it would be served: the next waiter is served instead
 * ---- */

static void *take_permit(void *arg) {
    (void)arg;
    return result_of(cc_sem_acquire(&sem));
}

static void release_three(void) {
    CHECK_EQ(cc_sem_release(&sem, 3), 0);
}

/* The remaining permits are there for the next caller. */
static void *permits(void *arg) {
    past_the_first(take_permit, release_three);
    for (int left = 2; left > 0; left--) CHECK_EQ(cc_sem_acquire_try(&sem), 0);
    CHECK_EQ(cc_sem_acquire_try(&sem), EAGAIN);
    return arg;
}

TEST(permits_go_past_a_cancelled_waiter) {
    on_one_worker(permits);
}
