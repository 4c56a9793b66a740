/* timing.c - durations are summed by kind, by any thread, and reported once. */
#include "harness.h"

#include "trace/timing.h"

#include <pthread.h>

TEST(times_are_sorted_into_powers_of_two) {
    static const uint64_t times[] = {0, 1, 2, 3, 4, 1023, 1024, UINT64_C(1) << 39, UINT64_C(1) << 50};
    uint64_t sum = 0;
    for (size_t i = 0; i < array_len(times); i++) {
        cc__timing_add(TIMED_RECV, times[i]);
        sum += times[i];
    }
    struct timing t;
    cc__timing_take(TIMED_RECV, &t);
    CHECK_EQ(t.count, array_len(times));
    CHECK_EQ(t.sum, sum);
    CHECK_EQ(t.least, 0);
    CHECK_EQ(t.most, UINT64_C(1) << 50);
    CHECK_EQ(t.bucket[0], 2);
    CHECK_EQ(t.bucket[1], 2);
    CHECK_EQ(t.bucket[2], 1);
    CHECK_EQ(t.bucket[9], 1);
    CHECK_EQ(t.bucket[10], 1);
    CHECK_EQ(t.bucket[TIMING_BUCKETS - 1], 2);
}

TEST(kinds_are_apart_and_taken_once) {
    cc__timing_add(TIMED_SEND, 100);
    cc__timing_add(TIMED_SEND, 50);
    struct timing t;
    cc__timing_take(TIMED_SELECT, &t);
    CHECK_EQ(t.count, 0);
    cc__timing_take(TIMED_SEND, &t);
    CHECK_EQ(t.count, 2);
    CHECK_EQ(t.least, 50);
    CHECK_EQ(t.most, 100);
    cc__timing_take(TIMED_SEND, &t);
    CHECK_EQ(t.count, 0);
    cc__timing_add(TIMED_SEND, 70); /* what was before is forgotten */
    cc__timing_take(TIMED_SEND, &t);
    CHECK_EQ(t.count, 1);
    CHECK_EQ(t.least, 70);
    CHECK_EQ(t.most, 70);
}

enum { THREADS = 4 };

static void *add(void *arg) {
    long n = test_scale(100000);
    for (long i = 1; i <= n; i++) cc__timing_add(TIMED_CLOSE, (uint64_t)i);
    return arg;
}

TEST(nothing_is_lost_between_threads) {
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++) CHECK_EQ(pthread_create(&threads[i], NULL, add, NULL), 0);
    for (int i = 0; i < THREADS; i++) CHECK_EQ(pthread_join(threads[i], NULL), 0);
    uint64_t n = (uint64_t)test_scale(100000);
    struct timing t;
    cc__timing_take(TIMED_CLOSE, &t);
    CHECK_EQ(t.count, THREADS * n);
    CHECK_EQ(t.sum, THREADS * n * (n + 1) / 2);
    CHECK_EQ(t.least, 1);
    CHECK_EQ(t.most, n);
}
