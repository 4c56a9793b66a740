/* ring.c - the bounded queue delivers each item exactly once, in order for one producer, and knows full and
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

TEST(full_and_empty) {
    for (size_t slots = 2; slots <= 64; slots *= 2) {
        CHECK(cc__ring_init(&ring, slots));
        CHECK(cc__ring_take(&ring) == NULL);
        CHECK_EQ(cc__ring_len(&ring), 0);
        for (size_t i = 1; i <= slots; i++) {
            CHECK(cc__ring_put(&ring, number(i)));
            CHECK_EQ(cc__ring_len(&ring), i);
        }
        CHECK(!cc__ring_put(&ring, number(99)));
        CHECK(!cc__ring_put(&ring, number(99)));
        for (size_t i = 1; i <= slots; i++) CHECK_EQ((uintptr_t)cc__ring_take(&ring), i);
        CHECK(cc__ring_take(&ring) == NULL);
        cc__ring_destroy(&ring);
    }
}

/* Every fill level at every position, many times round. */
TEST(wraps) {
    CHECK(cc__ring_init(&ring, 4));
    uint64_t random = test_seed();
    uintptr_t put = 0, taken = 0;
    for (long i = 0; i < test_rounds(100000, 1000000); i++) {
        if (test_random(&random) & 1) {
            bool ok = cc__ring_put(&ring, number(put + 1));
            CHECK_EQ(ok, put - taken < 4);
            put += ok;
        } else {
            uintptr_t got = (uintptr_t)cc__ring_take(&ring);
            CHECK_EQ(got, put > taken ? taken + 1 : 0);
            taken += got != 0;
        }
        CHECK_EQ(cc__ring_len(&ring), put - taken);
    }
    cc__ring_destroy(&ring);
}

enum { PRODUCERS = 3, CONSUMERS = 3 };

static struct {
    uintptr_t each; /* items of one producer */
    _Atomic uint32_t *seen;
    _Atomic uintptr_t taken;
} run;

/* Item n of producer p is p * each + n + 1. */
static void produce_or_consume(int index, void *arg) {
    (void)arg;
    if (index < PRODUCERS) {
        for (uintptr_t n = 0; n < run.each; n++)
            while (!cc__ring_put(&ring, number((uintptr_t)index * run.each + n + 1))) sched_yield();
        return;
    }
    uintptr_t last[PRODUCERS] = {0};
    while (cc__get(&run.taken) < PRODUCERS * run.each) {
        uintptr_t item = (uintptr_t)cc__ring_take(&ring);
        if (item == 0) {
            sched_yield();
            continue;
        }
        cc__add_relaxed(&run.taken, 1);
        CHECK(item <= PRODUCERS * run.each);
        CHECK_EQ(cc__add_relaxed(&run.seen[item - 1], 1), 0);
        /* One consumer sees the items of one producer in their order. */
        uintptr_t producer = (item - 1) / run.each;
        CHECK(item > last[producer]);
        last[producer] = item;
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
    CHECK(cc__ring_take(&ring) == NULL);
    cc__mem_free(run.seen);
    cc__ring_destroy(&ring);
}

TEST(exactly_once_small) {
    exactly_once(2);
}

TEST(exactly_once_large) {
    exactly_once(1024);
}
