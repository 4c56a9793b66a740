/* lock_fast_unlock.c - fast unlock is enabled and disabled all the time: an unlock by a plain store races with a new
 * waiter.
 *
 * Every mutex is used by one fiber, often enough for fast unlock to be enabled, and then by two at once: a lost wake is
 * a hang.
 */
#include "stress.h"

#include "lock/parking_lot.h"

struct pair {
    CCMutex mutex;
    _Alignas(64) atomic_long turn;
    long value;
    long rounds, fast;
};

static void count_up(struct pair *p) {
    CHECK_EQ(cc_mutex_lock(&p->mutex), 0);
    p->value++;
    CHECK_EQ(cc_mutex_unlock(&p->mutex), 0);
}

/* Locks on a signal of the other, and has to wait, because the lock is held for a moment. */
static void *come_by(void *arg) {
    struct pair *p = arg;
    for (long i = 1; i <= p->rounds; i++) {
        while (atomic_load(&p->turn) < i) {
        }
        for (int k = 0; k < 3; k++) count_up(p);
    }
    return NULL;
}

static void *stay(void *arg) {
    struct pair *p = arg;
    struct bucket *bucket = cc__bucket_of(&p->mutex);
    uint64_t rng = test_seed();
    for (long i = 1; i <= p->rounds; i++) {
        CHECK_EQ(cc_mutex_lock(&p->mutex), 0);
        atomic_store(&p->turn, i);
        uint64_t until = below(&rng, 3) ? 30000 : below(&rng, 100000); /* longer than it spins, or not */
        compute_ns(until);
        p->value++;
        CHECK_EQ(cc_mutex_unlock(&p->mutex), 0);
        for (int k = 0; k < 3 * FAST_UNLOCK_AFTER && !cc__get(&bucket->fast_unlock); k++) count_up(p);
        p->fast += cc__get(&bucket->fast_unlock) != 0;
        /* Fast unlocks, one after another, while the other begins to wait. */
        for (uint64_t k = below(&rng, 200); k > 0; k--) count_up(p);
    }
    return NULL;
}

static void meet(bool by_thread) {
    start(2);
    struct pair p = {.rounds = test_rounds(4000, 2000000)};
    pthread_t thread = 0;
    CCTask task = {0};
    if (by_thread)
        thread = start_thread(come_by, &p);
    else
        task = spawn(come_by, &p);
    CCTask other = spawn(stay, &p);
    join(other);
    if (by_thread)
        join_thread(thread);
    else
        join(task);
    CHECK_EQ(p.mutex.word, 0);
    CHECK(cc__bucket_of(&p.mutex)->heads == NULL);
    if (cc__barrier_asymmetric) CHECK(p.fast > 0); /* the run was not trivial */
    finish();
}

TEST(fiber_and_fiber, .timeout = 120) {
    meet(false);
}

TEST(fiber_and_thread, .timeout = 120) {
    meet(true);
}
