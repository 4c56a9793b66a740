/* ring.c - the bounded queue delivers each item exactly once, in order for one producer, and reports full and
 * empty. */
#include "harness.h"

#include "../crew.h"
#include "base/mem.h"
#include "sync/ring.h"

#include <sched.h>

static struct ring_mpmc ring;

static void *number(uintptr_t n) {
    return (void *)n;
}

static uint32_t put(void *const *items, uint32_t n) {
    struct ring_claim c = cc__ring_claim_put(&ring, n);
    for (uint32_t i = 0; i < c.n; i++) cc__ring_fill(&ring, c.position + i, items[i]);
    return c.n;
}
static uint32_t take(void **items, uint32_t n) {
    struct ring_claim c = cc__ring_claim_take(&ring, n);
    for (uint32_t i = 0; i < c.n; i++) items[i] = cc__ring_empty(&ring, c.position + i);
    return c.n;
}
static bool put_one(void *item) {
    return put(&item, 1) == 1;
}
static void *take_one(void) {
    void *item;
    return take(&item, 1) == 1 ? item : NULL;
}

TEST(full_and_empty) {
    for (size_t slots = 2; slots <= 64; slots *= 2) {
        CHECK(cc__ring_init(&ring, slots));
        CHECK(take_one() == NULL);
        CHECK_EQ(cc__ring_len(&ring), 0);
        for (size_t i = 1; i <= slots; i++) {
            CHECK(put_one(number(i)));
            CHECK_EQ(cc__ring_len(&ring), i);
        }
        CHECK(!put_one(number(99)));
        CHECK(!put_one(number(99)));
        for (size_t i = 1; i <= slots; i++) CHECK_EQ((uintptr_t)take_one(), i);
        CHECK(take_one() == NULL);
        cc__ring_destroy(&ring);
    }
}

/* Every fill level at every position, many times round. */
TEST(wraps) {
    CHECK(cc__ring_init(&ring, 4));
    uint64_t random = test_seed();
    uintptr_t sent = 0, taken = 0;
    for (long i = 0; i < test_rounds(100000, 1000000); i++) {
        if (test_random(&random) & 1) {
            bool ok = put_one(number(sent + 1));
            CHECK_EQ(ok, sent - taken < 4);
            sent += ok;
        } else {
            uintptr_t got = (uintptr_t)take_one();
            CHECK_EQ(got, sent > taken ? taken + 1 : 0);
            taken += got != 0;
        }
        CHECK_EQ(cc__ring_len(&ring), sent - taken);
    }
    cc__ring_destroy(&ring);
}

/* Several at a time: as many as there is room for, and as many as there are. */
TEST(many_at_a_time) {
    void *in[5], *out[5];
    uintptr_t put_so_far = 0, taken_so_far = 0;
    uint64_t random = test_seed();
    CHECK(cc__ring_init(&ring, 4));
    for (long i = 0; i < test_rounds(20000, 1000000); i++) {
        uint32_t n = (uint32_t)test_random(&random) % 6, full = (uint32_t)(put_so_far - taken_so_far);
        if (test_random(&random) & 1) {
            for (uint32_t k = 0; k < n; k++) in[k] = number(put_so_far + k + 1);
            uint32_t done = put(in, n);
            CHECK_EQ(done, n < 4 - full ? n : 4 - full);
            put_so_far += done;
        } else {
            uint32_t done = take(out, n);
            CHECK_EQ(done, n < full ? n : full);
            for (uint32_t k = 0; k < done; k++) CHECK_EQ((uintptr_t)out[k], taken_so_far + k + 1);
            taken_so_far += done;
        }
    }
    cc__ring_destroy(&ring);
}

enum { PRODUCERS = 3, CONSUMERS = 3, BATCH = 5 };

static struct {
    uintptr_t each; /* items of one producer */
    _Atomic uint32_t *seen;
    _Atomic uintptr_t taken;
} run;

/* Item n of producer p is p * each + n + 1. */
static void produce_or_consume(int index, void *arg) {
    (void)arg;
    if (index < PRODUCERS) {
        for (uintptr_t n = 0; n < run.each;) {
            void *items[BATCH];
            uint32_t some = 1 + (uint32_t)(n % BATCH), done;
            if (some > run.each - n) some = (uint32_t)(run.each - n);
            for (uint32_t k = 0; k < some; k++) items[k] = number((uintptr_t)index * run.each + n + k + 1);
            while ((done = put(items, some)) == 0) sched_yield();
            n += done;
        }
        return;
    }
    uintptr_t last[PRODUCERS] = {0};
    while (cc__get(&run.taken) < PRODUCERS * run.each) {
        void *items[BATCH];
        uint32_t n = take(items, 1 + (uint32_t)(cc__get(&run.taken) % BATCH));
        if (n == 0) sched_yield();
        cc__add_relaxed(&run.taken, n);
        for (uint32_t k = 0; k < n; k++) {
            uintptr_t item = (uintptr_t)items[k];
            CHECK(item <= PRODUCERS * run.each);
            CHECK_EQ(cc__add_relaxed(&run.seen[item - 1], 1), 0);
            /* One consumer sees the items of one producer in their order. */
            uintptr_t producer = (item - 1) / run.each;
            CHECK(item > last[producer]);
            last[producer] = item;
        }
    }
}

static void exactly_once(size_t slots) {
    run.each = (uintptr_t)test_rounds(30000, 1000000);
    CHECK(cc__ring_init(&ring, slots));
    run.seen = cc__mem_alloc(PRODUCERS * run.each * sizeof *run.seen);
    cc__set(&run.taken, 0);
    crew_run(PRODUCERS + CONSUMERS, produce_or_consume, NULL);
    CHECK_EQ(run.taken, PRODUCERS * run.each);
    for (uintptr_t i = 0; i < PRODUCERS * run.each; i++) CHECK_EQ(run.seen[i], 1);
    CHECK(take_one() == NULL);
    cc__mem_free(run.seen);
    cc__ring_destroy(&ring);
}

TEST(exactly_once_small) {
    exactly_once(2);
}

TEST(exactly_once_large) {
    exactly_once(1024);
}
