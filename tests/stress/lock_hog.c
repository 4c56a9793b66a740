/* lock_hog.c - some fibers lock a mutex again as soon as they have unlocked it, while others lock it occasionally, with
 * a deadline or without, and hold it for so long that others have to wait.
 *
 * The count of failed spins is changed all the time, so that waits with and without a spin race. A forgotten waiter is
 * a hang; a starved one does not complete its turns.
 */
#include "stress.h"

#include "lock/parking_lot.h"

struct contest {
    CCMutex mutex;
    long value, added;     /* under the mutex */
    long turns;            /* for each contender */
    atomic_int contenders; /* that are not done */
    atomic_long late, locked;
};

/* Stops when the last contender has had its turns. */
static void *hog(void *arg) {
    struct contest *r = arg;
    long own = 0;
    while (atomic_load_explicit(&r->contenders, memory_order_relaxed) > 0) {
        for (int i = 0; i < 1000; i++, own++) {
            CHECK_EQ(cc_mutex_lock(&r->mutex), 0);
            r->value++;
            CHECK_EQ(cc_mutex_unlock(&r->mutex), 0);
        }
        cc_yield(); /* more fibers than workers */
    }
    CHECK_EQ(cc_mutex_lock(&r->mutex), 0);
    r->added += own;
    CHECK_EQ(cc_mutex_unlock(&r->mutex), 0);
    return NULL;
}

static void *contender(void *arg) {
    struct contest *r = arg;
    struct bucket *bucket = cc__bucket_of(&r->mutex);
    uint64_t rng = test_seed() ^ (uint64_t)(uintptr_t)&rng;
    long own = 0;
    for (long i = 0; i < r->turns; i++) {
        if (below(&rng, 4) == 0)
            cc__set(&bucket->spin_failures, (uint32_t)below(&rng, 16)); /* from 8 on waiters do not spin */
        int rc = below(&rng, 2) ? cc_mutex_lock(&r->mutex)
                                : cc_mutex_lock_until(&r->mutex, cc_after_ns(below(&rng, 200000)));
        atomic_fetch_add(rc == 0 ? &r->locked : &r->late, 1);
        if (rc != 0) {
            CHECK_EQ(rc, ETIMEDOUT);
            continue;
        }
        r->value++;
        own++;
        if (below(&rng, 16) == 0) compute_ns(below(&rng, 100000)); /* somebody has to wait */
        CHECK_EQ(cc_mutex_unlock(&r->mutex), 0);
        if (below(&rng, 4) == 0) compute_ns(below(&rng, 5000));
    }
    CHECK_EQ(cc_mutex_lock(&r->mutex), 0);
    r->added += own;
    CHECK_EQ(cc_mutex_unlock(&r->mutex), 0);
    atomic_fetch_sub(&r->contenders, 1);
    return NULL;
}

enum { HOGS = 3, CONTENDERS = 3 };

TEST_WORKERS(no_waiter_is_forgotten, .timeout = 240) {
    struct contest r = {.turns = test_rounds(10000, 400000), .contenders = CONTENDERS + 1};
    CCTask tasks[HOGS + CONTENDERS];
    for (int i = 0; i < HOGS + CONTENDERS; i++) tasks[i] = spawn(i < HOGS ? hog : contender, &r);
    pthread_t thread = start_thread(contender, &r);
    for (int i = 0; i < HOGS + CONTENDERS; i++) join(tasks[i]);
    join_thread(thread);
    CHECK_EQ(r.value, r.added);
    CHECK(atomic_load(&r.locked) > 0);
    CHECK_EQ(r.mutex.word, 0);
    struct bucket *bucket = cc__bucket_of(&r.mutex);
    CHECK(bucket->heads == NULL);
    CHECK_EQ(bucket->disabling, 0);
    finish();
}

/* A waiter behind two hogs gets its turns. */
TEST(every_fiber_gets_a_turn, .timeout = 120) {
    start(2);
    struct contest r = {.turns = test_rounds(2000, 40000), .contenders = 1};
    CCTask hogs[2] = {spawn(hog, &r), spawn(hog, &r)};
    pthread_t thread = start_thread(contender, &r);
    join(hogs[0]);
    join(hogs[1]);
    join_thread(thread);
    CHECK_EQ(r.value, r.added);
    finish();
}
