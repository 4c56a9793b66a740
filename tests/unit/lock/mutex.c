/* mutex.c - mutual exclusion; no waiter starves; an unlock does not access the mutex once another may free it. */
#include "../../programs/where.h"
#include "one_worker.h"
#include "waiters.h"

/* ---- alone: the zero value, three forms, bad arguments ---- */

static void no_object(void) {
    CHECK_EQ(cc_mutex_lock(NULL), EINVAL);
    CHECK_EQ(cc_mutex_lock_try(NULL), EINVAL);
    CHECK_EQ(cc_mutex_lock_until(NULL, CC_FOREVER), EINVAL);
    CHECK_EQ(cc_mutex_unlock(NULL), EINVAL);
    CHECK_EQ(cc_mutex_lock_uncancellable(NULL), EINVAL);
}

static void use_alone(void) {
    static CCMutex m;
    for (int i = 0; i < 3; i++) {
        CHECK_EQ(cc_mutex_lock(&m), 0);
        CHECK_EQ(cc_mutex_lock_try(&m), EAGAIN);
        CHECK_EQ(cc_mutex_unlock(&m), 0);
        CHECK_EQ(cc_mutex_lock_try(&m), 0);
        CHECK_EQ(cc_mutex_unlock(&m), 0);
        CHECK_EQ(cc_mutex_lock_until(&m, past), 0); /* a free lock is taken, whatever the deadline */
        CHECK_EQ(cc_mutex_unlock(&m), 0);
    }
    CHECK_EQ(m.word, 0);
}

TESTS_ALONE(no_object, use_alone)

/* ---- exclusion ---- */

struct counter {
    CCMutex mutex;
    long value; /* not atomic: two at a time lose counts, and a race detector sees them */
    long each;
    bool park;
};

static void *count_up(void *arg) {
    struct counter *c = arg;
    for (long i = 0; i < c->each; i++) {
        if (i % 7 == 3)
            while (cc_mutex_lock_try(&c->mutex) != 0) cc_yield();
        else if (i % 7 == 5)
            while (cc_mutex_lock_until(&c->mutex, cc_after_ns(1000)) != 0) {
            }
        else
            CHECK_EQ(cc_mutex_lock(&c->mutex), 0);
        long seen = c->value;
        if (c->park && i % 16 == 0) cc_yield(); /* the others find it locked */
        c->value = seen + 1;
        CHECK_EQ(cc_mutex_unlock(&c->mutex), 0);
    }
    return NULL;
}

static void exclusion_with(enum parties who, size_t park) {
    enum { PARTIES = 8 };
    struct counter c = {.each = test_scale(park ? 4000 : 20000), .park = park};
    struct party parties[PARTIES];
    for (int i = 0; i < PARTIES; i++) parties[i] = party_start(who, i, count_up, &c);
    parties_end(parties, PARTIES);
    CHECK_EQ(c.value, PARTIES * c.each);
    CHECK_EQ(c.mutex.word, 0);
    CHECK_EQ(mutex_waiters(&c.mutex), 0);
}

TEST_WORKERS(one_at_a_time, .timeout = 120) {
    for_each_kind(exclusion_with, false);
    for_each_kind(exclusion_with, true);
}

/* ---- turns ---- */

static CCMutex mutex;
static int relocks;
static bool served;

static void *wait_for_it(void *arg) {
    CHECK_EQ(cc_mutex_lock(&mutex), 0);
    served = true;
    CHECK_EQ(cc_mutex_unlock(&mutex), 0);
    return arg;
}

/* Takes it again at once after each unlock, and lets the other run only while it holds it. */
static void *relock_at_once(void *unused) {
    CHECK_EQ(cc_mutex_lock(&mutex), 0);
    CCTask waiter = cc_fiber_spawn_task(wait_for_it, NULL);
    await_mutex_waiters(&mutex, 1);
    for (; !served && relocks < 1000; relocks++) {
        CHECK_EQ(cc_mutex_unlock(&mutex), 0);
        CHECK_EQ(cc_mutex_lock(&mutex), 0);
        for (int i = 0; i < 3; i++) cc_yield();
    }
    CHECK_EQ(cc_mutex_unlock(&mutex), 0);
    CHECK_EQ(cc_task_join(&waiter, NULL), 0);
    return unused;
}

/* On one worker the waiter can run only while the lock is held: without a hand-over it would starve. */
TEST(no_waiter_starves) {
    CHECK_EQ(cc_runtime_init(&(CCRuntimeConfig){.workers = 1}), 0);
    CHECK_EQ(cc_run(relock_at_once, NULL, NULL), 0);
    CHECK(relocks > 0);
    CHECK(relocks <= 17); /* by the rule: 16 lost attempts, and the hand-over */
}

/* Waiters get it in the order of arrival, if no other caller barges in. */
static atomic_int order;

static void *take_turn(void *arg) {
    CHECK_EQ(cc_mutex_lock(&mutex), 0);
    CHECK_EQ(atomic_fetch_add(&order, 1), (intptr_t)arg);
    CHECK_EQ(cc_mutex_unlock(&mutex), 0);
    return NULL;
}

TEST_WORKERS(first_come_first_served) {
    enum { TURNS = 20 };
    CCTask tasks[TURNS];
    CHECK_EQ(cc_mutex_lock(&mutex), 0);
    for (int i = 0; i < TURNS; i++) {
        tasks[i] = cc_fiber_spawn_task(take_turn, (void *)(intptr_t)i);
        await_mutex_waiters(&mutex, i + 1);
    }
    CHECK_EQ(cc_mutex_unlock(&mutex), 0);
    for (int i = 0; i < TURNS; i++) CHECK_EQ(cc_task_join(&tasks[i], NULL), 0);
}

/* ---- many mutexes in few buckets ---- */

static void *lock_one_of_many(void *arg) {
    CHECK_EQ(cc_mutex_lock(arg), 0);
    CHECK_EQ(cc_mutex_unlock(arg), 0);
    return NULL;
}

/* More than there are buckets: waiters of different mutexes share one, and each unlock wakes its own. */
TEST_WORKERS(buckets_are_shared) {
    enum { MUTEXES = 3 << BUCKETS_LOG2, EACH = 2 };
    CCMutex *m = calloc(MUTEXES, sizeof *m);
    CCTask *tasks = calloc(MUTEXES * EACH, sizeof *tasks);
    CHECK(m != NULL && tasks != NULL);
    for (int i = 0; i < MUTEXES; i++) {
        CHECK_EQ(cc_mutex_lock(&m[i]), 0);
        for (int k = 0; k < EACH; k++) tasks[i * EACH + k] = cc_fiber_spawn_task(lock_one_of_many, &m[i]);
    }
    for (int i = 0; i < MUTEXES; i++) await_mutex_waiters(&m[i], EACH);
    for (int i = MUTEXES - 1; i >= 0; i--) {
        CHECK_EQ(cc_mutex_unlock(&m[i]), 0);
        for (int k = 0; k < EACH; k++) CHECK_EQ(cc_task_join(&tasks[i * EACH + k], NULL), 0);
        if (i > 0) CHECK_EQ(mutex_waiters(&m[i - 1]), EACH);
    }
    free(m);
    free(tasks);
}

/* ---- fast unlock ---- */

static void use_quietly(CCMutex *m) {
    for (int i = 0; i < 2 * FAST_UNLOCK_AFTER; i++) {
        CHECK_EQ(cc_mutex_lock(m), 0);
        CHECK_EQ(cc_mutex_unlock(m), 0);
    }
}

/* Unlocks without a waiter enable fast unlock, where the system has membarrier; a waiter disables it; and again. */
static void *on_off_on(void *unused) {
    CCMutex m = {0};
    struct bucket *bucket = cc__bucket_of(&m);
    for (int i = 0; i < 5; i++) {
        use_quietly(&m);
        if (cc__barrier_asymmetric) CHECK_EQ(cc__get(&bucket->fast_unlock), 1);
        CHECK_EQ(cc_mutex_lock(&m), 0);
        CCTask task = cc_fiber_spawn_task(lock_one_of_many, &m);
        await_mutex_waiters(&m, 1);
        CHECK_EQ(cc__get(&bucket->fast_unlock), 0);
        CHECK_EQ(cc_mutex_unlock(&m), 0);
        CHECK_EQ(cc_task_join(&task, NULL), 0);
    }
    return unused;
}

TEST_WORKERS(fast_unlock_on_and_off) {
    CHECK_EQ(cc_run(on_off_on, NULL, NULL), 0);
}

/* ---- the waiters of many mutexes in one bucket ---- */

static struct bucket_node *queue_in(struct bucket *bucket, struct bucket_node *node, const void *key, bool front) {
    node->key = key;
    cc__bucket_push_locked(bucket, node, front);
    return node;
}

/* Three for each mutex: the first, one after it, one that is put to the front. They leave in another order than they
 * arrived. Unlinking is constant time: a search of all mutexes with waiters would take minutes. */
TEST(many_mutexes_in_a_bucket, .timeout = 30) {
    bool cheap = !(UNDER_ASAN || UNDER_TSAN || under_valgrind() || under_qemu());
    enum { STEP = 7919 }; /* a prime */
    size_t count = cheap ? 100000 : 3000, n = 0;
    struct bucket *bucket = &cc__parking_lot[0];
    struct bucket_node(*nodes)[3] = calloc(count, sizeof *nodes);
    CHECK(nodes != NULL);
    cc__lock_take(&bucket->lock);
    for (uintptr_t key = 16; n < count; key += 16)
        if (cc__bucket_of((void *)key) == bucket) (void)queue_in(bucket, &nodes[n++][1], (void *)key, false);
    for (size_t i = 0; i < count; i++) {
        const void *key = nodes[i][1].key;
        CHECK(cc__bucket_first_locked(bucket, key) == &nodes[i][1]);
        (void)queue_in(bucket, &nodes[i][2], key, false);
        CHECK(cc__bucket_first_locked(bucket, key) == &nodes[i][1]);
        CHECK(cc__bucket_first_locked(bucket, queue_in(bucket, &nodes[i][0], key, true)->key) == &nodes[i][0]);
    }
    for (size_t i = 0, at = 0; i < count; i++, at = (at + STEP) % count)
        for (int k = 0; k < 3; k++) {
            CHECK(cc__bucket_first_locked(bucket, nodes[at][k].key) == &nodes[at][k]);
            cc__bucket_remove_locked(bucket, &nodes[at][k]);
            if (k == 2) CHECK(cc__bucket_first_locked(bucket, nodes[at][k].key) == NULL);
        }
    CHECK(cc__get(&bucket->heads) == NULL);
    cc__lock_release(&bucket->lock);
    free(nodes);
}

/* Fast unlock stays off while somebody waits in the bucket, however often another mutex there is unlocked: a fast
 * unlock would overwrite the mark of the waiter. */
static void *wait_beside_a_busy_one(void *unused) {
    enum { CANDIDATES = 64 << BUCKETS_LOG2 };
    CCMutex *m = calloc(CANDIDATES, sizeof *m);
    CHECK(m != NULL);
    int other = 1;
    while (other < CANDIDATES && cc__bucket_of(&m[other]) != cc__bucket_of(&m[0])) other++;
    CHECK(other < CANDIDATES);
    CHECK_EQ(cc_mutex_lock(&m[0]), 0);
    CCTask task = cc_fiber_spawn_task(lock_one_of_many, &m[0]);
    await_mutex_waiters(&m[0], 1);
    use_quietly(&m[other]);
    CHECK_EQ(cc__get(&cc__bucket_of(&m[0])->fast_unlock), 0);
    CHECK_EQ(cc_mutex_unlock(&m[0]), 0);
    CHECK_EQ(cc_task_join(&task, NULL), 0);
    free(m);
    return unused;
}

TEST_WORKERS(no_fast_unlock_beside_a_waiter) {
    CHECK_EQ(cc_run(wait_beside_a_busy_one, NULL, NULL), 0);
}

/* ---- the last one out frees it ---- */

struct shared {
    CCMutex mutex;
    int holders;
};

static void *drop(void *arg) {
    struct shared *s = arg;
    CHECK_EQ(cc_mutex_lock(&s->mutex), 0);
    bool last = --s->holders == 0;
    CHECK_EQ(cc_mutex_unlock(&s->mutex), 0);
    if (last) {
        memset(s, 0xff, sizeof *s); /* for those builds that do not notice a use after it is freed */
        free(s);
    }
    return NULL;
}

static void last_frees_with(enum parties who, size_t unused) {
    (void)unused;
    enum { HOLDERS = 4 };
    for (long round = 0; round < test_rounds(300, 100000); round++) {
        struct shared *s = calloc(1, sizeof *s);
        struct party parties[HOLDERS];
        CHECK(s != NULL);
        s->holders = HOLDERS;
        for (int i = 0; i < HOLDERS; i++) parties[i] = party_start(who, i, drop, s);
        parties_end(parties, HOLDERS);
    }
}

TEST_WORKERS(the_last_frees_it) {
    for_each_kind(last_frees_with, 0);
}

/* ---- a wait was cancelled, and its fiber has not run yet, when it would be served: the next waiter is served instead
 * ---- */

static void *lock_and_unlock(void *arg) {
    (void)arg;
    int rc = cc_mutex_lock(&mutex);
    if (rc == 0) CHECK_EQ(cc_mutex_unlock(&mutex), 0);
    return result_of(rc);
}

static void unlock(void) {
    CHECK_EQ(cc_mutex_unlock(&mutex), 0);
}

static void *mutexes(void *arg) {
    CHECK_EQ(cc_mutex_lock(&mutex), 0);
    past_the_first(lock_and_unlock, unlock);
    CHECK_EQ(cc_mutex_lock_try(&mutex), 0);
    unlock();
    return arg;
}

TEST(it_goes_past_a_cancelled_waiter) {
    on_one_worker(mutexes);
}
