/* blocking.c - random blocking calls: small pools, threads that end at once, callers that are cancelled, have deadlines
 * and abandon their calls. Every call has a result, or was cleaned up, or was never made. */
#include "harness.h"

#include <ccc/ccc.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

enum { FIBERS = 12, POOLS = 3 };

static CCPool *pools[POOLS];
static atomic_long made, cleaned, returned, refused;

struct work {
    long nap_ns;
    atomic_int *calls; /* of the fiber that waits; NULL if it may leave */
};

static void *works(void *arg) {
    struct work *work = arg;
    struct timespec nap = {.tv_nsec = work->nap_ns};
    atomic_fetch_add(&made, 1);
    if (work->calls != NULL) atomic_fetch_add(work->calls, 1);
    if (work->nap_ns > 0) nanosleep(&nap, NULL);
    return arg;
}

static void cleans(void *arg, void *result) {
    CHECK(result == NULL || result == arg);
    atomic_fetch_add(&cleaned, 1);
}

/* A call that may be abandoned: with a copy of its argument. */
static void call_and_leave(uint64_t *rng, CCDeadline deadline) {
    struct work work = {.nap_ns = (long)(test_random(rng) % 4) * 50000};
    CCBlockingOptions options = {
        .pool = pools[test_random(rng) % POOLS], .may_abandon = true, .arg_size = sizeof work, .cleanup = cleans};
    void *result = &work;
    int rc = cc_blocking_ex(works, &work, &result, &options, deadline);
    CHECK(rc == 0 || rc == ECANCELED || rc == ETIMEDOUT);
    CHECK((result != NULL) == (rc == 0));
    atomic_fetch_add(rc == 0 ? &returned : &refused, 1);
}

/* One whose argument is in this frame: it has ended, or was never made. */
static void call_and_stay(uint64_t *rng, CCDeadline deadline) {
    atomic_int calls = 0;
    struct work work = {.nap_ns = (long)(test_random(rng) % 4) * 50000, .calls = &calls};
    CCBlockingOptions options = {.pool = pools[test_random(rng) % POOLS]};
    int rc = cc_blocking_ex(works, &work, NULL, &options, deadline);
    CHECK(rc == 0 || rc == ECANCELED || rc == ETIMEDOUT);
    CHECK_EQ(atomic_load(&calls), rc == 0 ? 1 : 0);
}

CC_TASK(caller, {
    uint64_t seed;
    long rounds;
}) {
    uint64_t rng = self->seed;
    for (long i = 0; i < self->rounds; i++) {
        uint64_t kind = test_random(&rng);
        CCDeadline deadline = kind & 8 ? CC_FOREVER : cc_after_ns(kind % 200000);
        if (kind & 16)
            call_and_leave(&rng, deadline);
        else
            call_and_stay(&rng, deadline);
    }
    return NULL;
}

static void *rounds(void *arg) {
    uint64_t rng = test_seed();
    for (long i = 0, n = test_rounds(20, 4000); i < n; i++) {
        for (int p = 0; p < POOLS; p++) CHECK_EQ(cc_pool_create(&pools[p], 1 + (unsigned)p), 0);
        CC_NURSERY(nursery) {
            for (int f = 0; f < FIBERS; f++)
                CHECK_EQ(CC_GO_IN(nursery, caller, .seed = test_random(&rng) | 1, .rounds = test_scale(20)), 0);
            if (i % 2 == 0) {
                cc_sleep_ms(test_random(&rng) % 4);
                cc_nursery_cancel(nursery);
            }
        }
        for (int p = 0; p < POOLS; p++)
            while (cc_pool_free(pools[p]) == EBUSY) cc_sleep_ms(1); /* abandoned calls */
        CHECK_EQ(atomic_load(&cleaned), atomic_load(&refused));
    }
    test_count("blocking calls", (uint64_t)atomic_load(&made));
    return arg;
}

TEST_WORKERS(calls_at_random, .timeout = 300) {
    setenv("CC_BLOCKING_IDLE_MS", "1", 1); /* threads end all the time */
    CHECK_EQ(cc_run(rounds, NULL, NULL), 0);
    CHECK_EQ(cc_runtime_shutdown(10000), 0);
}
