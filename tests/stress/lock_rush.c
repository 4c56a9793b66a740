/* lock_rush.c - a mutex that some take again as soon as they have given it back, while others come by, with a
 * deadline or without, and hold it for so long that somebody has to sit.
 *
 * What is known about the rush is stirred all the time, so that counts, long pauses and short ones meet each other, cold
 * rooms and those who wait. Whoever is forgotten is a hang; one who is passed over for ever never gets its turns.
 */
#include "stress.h"

#include "lock/rush.h"

struct rush {
    CCMutex mutex;
    long value, added; /* under the mutex */
    long turns;        /* for each guest */
    atomic_int guests; /* that are not through */
    atomic_long late, locked;
};

/* Stops when the last guest has had its turns. */
static void *hog(void *arg) {
    struct rush *r = arg;
    long own = 0;
    while (atomic_load_explicit(&r->guests, memory_order_relaxed) > 0) {
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

static void *guest(void *arg) {
    struct rush *r = arg;
    struct lobby *lobby = cc__lobby_of(&r->mutex);
    uint64_t rng = test_seed() ^ (uint64_t)(uintptr_t)&rng;
    long own = 0;
    for (long i = 0; i < r->turns; i++) {
        cc__set(&lobby->turn,
                (uint32_t)below(&rng, 2)); /* the next collision is counted, or the one after that is not */
        if (below(&rng, 4) == 0) cc__set(&lobby->rush, (uint32_t)below(&rng, RUSH_LEVELS + 1));
        int rc = below(&rng, 2) ? cc_mutex_lock(&r->mutex)
                                : cc_mutex_lock_until(&r->mutex, cc_after_ns(below(&rng, 200000)));
        atomic_fetch_add(rc == 0 ? &r->locked : &r->late, 1);
        if (rc != 0) {
            CHECK_EQ(rc, ETIMEDOUT);
            continue;
        }
        r->value++;
        own++;
        if (below(&rng, 16) == 0) compute_ns(below(&rng, 100000)); /* somebody sits down */
        CHECK_EQ(cc_mutex_unlock(&r->mutex), 0);
        if (below(&rng, 4) == 0) compute_ns(below(&rng, 5000));
    }
    CHECK_EQ(cc_mutex_lock(&r->mutex), 0);
    r->added += own;
    CHECK_EQ(cc_mutex_unlock(&r->mutex), 0);
    atomic_fetch_sub(&r->guests, 1);
    return NULL;
}

enum { HOGS = 3, GUESTS = 3 };

TEST_WORKERS(nobody_is_forgotten_in_a_rush, .timeout = 240) {
    struct rush r = {.turns = test_rounds(10000, 400000), .guests = GUESTS + 1};
    CCTask tasks[HOGS + GUESTS];
    for (int i = 0; i < HOGS + GUESTS; i++) tasks[i] = spawn(i < HOGS ? hog : guest, &r);
    pthread_t thread = start_thread(guest, &r);
    for (int i = 0; i < HOGS + GUESTS; i++) join(tasks[i]);
    join_thread(thread);
    CHECK_EQ(r.value, r.added);
    CHECK(atomic_load(&r.locked) > 0);
    CHECK_EQ(r.mutex.word, 0);
    struct lobby *lobby = cc__lobby_of(&r.mutex);
    CHECK(lobby->queues == NULL);
    CHECK_EQ(lobby->heating, 0);
    finish();
}

/* One who has to wait behind two that never rest gets its turns, although it stands back and they do not. */
TEST(everybody_gets_a_turn, .timeout = 120) {
    start(2);
    struct rush r = {.turns = test_rounds(2000, 40000), .guests = 1};
    CCTask hogs[2] = {spawn(hog, &r), spawn(hog, &r)};
    pthread_t thread = start_thread(guest, &r);
    join(hogs[0]);
    join(hogs[1]);
    join_thread(thread);
    CHECK_EQ(r.value, r.added);
    finish();
}
