/* cond.c - no signal is lost, none is used twice. */
#include "one_worker.h"
#include "waiters.h"

/* ---- alone: the zero value, three forms, bad arguments ---- */

static void no_object(void) {
    CCMutex m = {0};
    CCCond c = {0};
    CHECK_EQ(cc_cond_wait(NULL, &m), EINVAL);
    CHECK_EQ(cc_cond_wait(&c, NULL), EINVAL);
    CHECK_EQ(cc_cond_wait_until(&c, NULL, CC_FOREVER), EINVAL);
    CHECK_EQ(cc_cond_signal(NULL), EINVAL);
    CHECK_EQ(cc_cond_broadcast(NULL), EINVAL);
}

static void use_alone(void) {
    static struct watch w;
    CHECK_EQ(cc_cond_signal(&w.cond), 0); /* no waiter: the signal is not kept */
    CHECK_EQ(cc_cond_broadcast(&w.cond), 0);
    times_out(call_cond, &w);
    CHECK(w.cond.first == NULL);
    CHECK_EQ(w.mutex.word, 0);
}

TESTS_ALONE(no_object, use_alone)

/* ---- a buffer of one, as in every textbook: it hangs if a signal is lost ---- */

struct box {
    CCMutex mutex;
    CCCond filled, emptied;
    bool full;
    long value, each;
    atomic_long sum;
};

static void *fill_box(void *arg) {
    struct box *b = arg;
    for (long i = 1; i <= b->each; i++) {
        CHECK_EQ(cc_mutex_lock(&b->mutex), 0);
        while (b->full) CHECK_EQ(cc_cond_wait(&b->emptied, &b->mutex), 0);
        b->full = true;
        b->value = i;
        if (i % 2) CHECK_EQ(cc_cond_signal(&b->filled), 0); /* with the mutex, */
        CHECK_EQ(cc_mutex_unlock(&b->mutex), 0);
        if (i % 2 == 0) CHECK_EQ(cc_cond_signal(&b->filled), 0); /* and without */
    }
    return NULL;
}

static void *empty_box(void *arg) {
    struct box *b = arg;
    for (long i = 1; i <= b->each; i++) {
        CHECK_EQ(cc_mutex_lock(&b->mutex), 0);
        while (!b->full) {
            int rc = i % 3 ? cc_cond_wait(&b->filled, &b->mutex)
                           : cc_cond_wait_until(&b->filled, &b->mutex, cc_after_ns(3000));
            CHECK(rc == 0 || (rc == ETIMEDOUT && i % 3 == 0));
        }
        b->full = false;
        atomic_fetch_add(&b->sum, b->value);
        CHECK_EQ(cc_cond_signal(&b->emptied), 0);
        CHECK_EQ(cc_mutex_unlock(&b->mutex), 0);
    }
    return NULL;
}

static void box_with(enum parties who, size_t pairs) {
    struct box b = {.each = test_scale(3000)};
    struct party parties[PARTY_MAX];
    for (size_t i = 0; i < pairs; i++) {
        parties[2 * i] = party_start(who, (int)i, fill_box, &b);
        parties[2 * i + 1] = party_start(who, (int)i + 1, empty_box, &b);
    }
    parties_end(parties, (int)(2 * pairs));
    CHECK_EQ(b.sum, (long)pairs * b.each * (b.each + 1) / 2);
    CHECK_EQ(queued(&b.filled), 0);
    CHECK_EQ(queued(&b.emptied), 0);
}

TEST_WORKERS(a_box_of_one, .timeout = 120) {
    for_each_kind(box_with, 1);
    for_each_kind(box_with, 4);
}

/* ---- one signal, one waiter ---- */

static struct watch watch;
static atomic_int returned;

static void *wait_once(void *unused) {
    CHECK_EQ(call_cond(&watch, CC_FOREVER), 0);
    atomic_fetch_add(&returned, 1);
    return unused;
}

static void one_each_with(enum parties who, size_t unused) {
    (void)unused;
    enum { MANY = 8 };
    struct party parties[MANY];
    atomic_store(&returned, 0);
    for (int i = 0; i < MANY; i++) parties[i] = party_start(who, i, wait_once, NULL);
    await_queued(&watch, MANY);
    for (int i = 1; i <= 3; i++) {
        CHECK_EQ(cc_cond_signal(&watch.cond), 0);
        CHECK_EQ(queued(&watch), MANY - i);
        while (returned != i) cc_yield();
    }
    CHECK_EQ(cc_cond_broadcast(&watch.cond), 0);
    parties_end(parties, MANY);
    CHECK_EQ(returned, MANY);
}

TEST_WORKERS(one_signal_one_waiter) {
    for_each_kind(one_each_with, 0);
}

/* ---- a signal between the unlock of the mutex and the wait ---- */

/* The waiter's unlock wakes a fiber that signals at once, while the waiter is about to queue. */
static void *signal_at_once(void *unused) {
    CHECK_EQ(cc_mutex_lock(&watch.mutex), 0);
    CHECK_EQ(cc_mutex_unlock(&watch.mutex), 0);
    CHECK_EQ(cc_cond_signal(&watch.cond), 0);
    return unused;
}

static void on_its_way_with(enum parties who) {
    for (long i = 0; i < test_rounds(300, 100000); i++) {
        CHECK_EQ(cc_mutex_lock(&watch.mutex), 0);
        struct party p = party_start(who, 0, signal_at_once, NULL);
        if (i % 2) await_mutex_waiters(&watch.mutex, 1);
        CHECK_EQ(cc_cond_wait(&watch.cond, &watch.mutex), 0);
        CHECK_EQ(cc_mutex_unlock(&watch.mutex), 0);
        party_end(&p);
    }
}

TEST_WORKERS(signalled_before_it_queues) {
    in_all_pairs(on_its_way_with);
}

/* ---- signals and deadlines: as many waits return 0 as were signalled ---- */

static atomic_int given;

static void *wait_shortly(void *arg) {
    uint64_t rng = (uintptr_t)arg;
    for (long i = 0; i < test_rounds(300, 100000); i++) {
        int rc = call_cond(&watch, cc_after_ns(test_random(&rng) % 30000));
        CHECK(rc == 0 || rc == ETIMEDOUT);
        if (rc == 0) atomic_fetch_add(&returned, 1);
    }
    return NULL;
}

static void *signal_often(void *over) {
    while (!atomic_load((atomic_bool *)over)) {
        struct wait_word *ww = cc__wait_word_of(&watch.cond);
        CHECK_EQ(cc_mutex_lock(&watch.mutex), 0);
        int before = queued(ww);
        CHECK_EQ(cc_cond_signal(&watch.cond), 0);
        /* No waiter can arrive without the mutex: at most the one that was signalled, and those that timed out, have
         * left. */
        if (before > 0) atomic_fetch_add(&given, 1);
        CHECK_EQ(cc_mutex_unlock(&watch.mutex), 0);
        cc_yield();
    }
    return NULL;
}

TEST_WORKERS(no_more_than_signalled) {
    atomic_bool over = false;
    CCTask waiters[4], signaller = cc_fiber_spawn_task(signal_often, &over);
    for (intptr_t i = 0; i < 4; i++) waiters[i] = cc_fiber_spawn_task(wait_shortly, (void *)(i + 1));
    for (int i = 0; i < 4; i++) CHECK_EQ(cc_task_join(&waiters[i], NULL), 0);
    over = true;
    CHECK_EQ(cc_task_join(&signaller, NULL), 0);
    CHECK(returned <= given);
    CHECK_EQ(queued(&watch), 0);
}

/* ---- a wait was cancelled, and its fiber has not run yet, when it would be served: the next waiter is served instead
 * ---- */

static void *wait_for_signal(void *arg) {
    (void)arg;
    CHECK_EQ(cc_mutex_lock(&watch.mutex), 0);
    int rc = cc_cond_wait(&watch.cond, &watch.mutex);
    CHECK_EQ(cc_mutex_unlock(&watch.mutex), 0);
    return result_of(rc);
}

static void signal_once(void) {
    CHECK_EQ(cc_cond_signal(&watch.cond), 0);
}

static void *signals(void *arg) {
    past_the_first(wait_for_signal, signal_once);
    return arg;
}

TEST(a_signal_goes_past_a_cancelled_waiter) {
    on_one_worker(signals);
}

/* ---- cancelled ---- */

/* A cancelled wait for a condition holds the mutex when it returns, although others want it, too. */
static struct watch held;
static int inside, most;

static void *wait_and_count(void *arg) {
    CHECK_EQ(cc_mutex_lock(&held.mutex), 0);
    CHECK_EQ(cc_cond_wait(&held.cond, &held.mutex), ECANCELED);
    if (++inside > most) most = inside;
    cc_yield();
    inside--;
    CHECK_EQ(cc_mutex_unlock(&held.mutex), 0);
    return arg;
}

TEST_WORKERS(cancelled_with_the_mutex) {
    for (int i = 0; i < 20; i++) {
        CCTask task = cc_fiber_spawn_task(wait_and_count, NULL);
        CHECK_EQ(cc_task_detach(&task), 0);
    }
    await_queued(&held.cond, 20);
    end_by_cancelling();
    CHECK_EQ(most, 1);
    CHECK_EQ(inside, 0);
    CHECK_EQ(mutex_waiters(&held.mutex), 0);
    CHECK_EQ(cc_mutex_lock_try(&held.mutex), 0);
    CHECK_EQ(cc_mutex_unlock(&held.mutex), 0);
}

/* Nor does the end of a grace period split the wait, however long the mutex is held. */
static void *wait_cancelled(void *arg) {
    CHECK_EQ(cc_mutex_lock(&held.mutex), 0);
    CHECK_EQ(cc_cond_wait(&held.cond, &held.mutex), ECANCELED);
    CHECK_EQ(cc_mutex_unlock(&held.mutex), 0);
    return arg;
}

TEST_WORKERS(grace_is_over_while_the_mutex_is_held) {
    CCNursery *n = cc_nursery_create_ex(&(CCNurseryConfig){.grace_ms = 1});
    CCTask task;
    CHECK(n != NULL);
    CHECK_EQ(cc_nursery_spawn_ex(n, &task, wait_cancelled, NULL, NULL), 0);
    await_queued(&held.cond, 1);
    CHECK_EQ(cc_mutex_lock(&held.mutex), 0);
    CHECK_EQ(cc_nursery_cancel(n), 0);
    await_mutex_waiters(&held.mutex, 1);
    struct fiber *f = cc__pool_find(task.id);
    uint64_t wait = cc__get(&f->word) & WORD_TICKET;
    CHECK_EQ(cc_sleep_ms(20), 0);
    CHECK_EQ(cc__get(&f->word) & WORD_TICKET, wait);
    CHECK_EQ(cc_mutex_unlock(&held.mutex), 0);
    CHECK_EQ(cc_nursery_wait(n), ECANCELED);
    CHECK_EQ(cc_task_detach(&task), 0);
    CHECK_EQ(cc_nursery_free(n), 0);
    CHECK_EQ(mutex_waiters(&held.mutex), 0);
    CHECK_EQ(cc_mutex_lock_try(&held.mutex), 0);
    CHECK_EQ(cc_mutex_unlock(&held.mutex), 0);
}
