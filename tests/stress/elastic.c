/* elastic.c - workers are added and retire ten thousand times under load: every fiber ends, every value arrives,
 * every timer fires, and in the end there are as many workers as in the beginning.
 *
 * Each round blocks all workers of the base in reads, which only a fiber queued behind them can end: without an added
 * worker it hangs. Beside them fibers use channels, sleep, spawn and join; OS threads send.
 */
#include "harness.h"

#include "sched/elastic.h"
#include "sched/sysmon.h"

#include <ccc/ccc.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#define US UINT64_C(1000)

enum { BASE_MAX = 4, TALKERS = 6, VALUES = 20 };

static int pipes[BASE_MAX][2];
static atomic_uint blocked;

static void nap(void) {
    nanosleep(&(struct timespec){.tv_nsec = 20000}, NULL);
}

static void *block(void *arg) {
    char byte;
    atomic_fetch_add(&blocked, 1);
    CHECK_EQ(read(((int *)arg)[0], &byte, 1), 1);
    return NULL;
}

static void *unblock(void *arg) {
    for (unsigned i = 0; i < (unsigned)(uintptr_t)arg; i++) CHECK_EQ(write(pipes[i][1], "x", 1), 1);
    return NULL;
}

/* ---- the load ---- */

static void *send_values(void *arg) {
    CCChan *chan = arg;
    for (int i = 1; i <= VALUES; i++) {
        CHECK_EQ(cc_chan_send(chan, &i, sizeof i), 0);
        if (i % 7 == 0) CHECK_EQ(cc_sleep_until((CCDeadline){cc_after_ms(0).ns + 50 * US}), 0);
    }
    return NULL;
}

static void *receive_values(void *arg) {
    CCChan *chan = arg;
    intptr_t sum = 0;
    for (int i = 1; i <= VALUES; i++) {
        int value = 0;
        CHECK_EQ(cc_chan_recv(chan, &value, sizeof value), 0);
        sum += value;
        if (i % 5 == 0) cc_yield();
    }
    return (void *)sum;
}

static void *talk(void *arg) {
    CCChan *chan = cc_chan_create(sizeof(int), (size_t)(uintptr_t)arg % 3);
    CCTask sender, receiver;
    void *sum = NULL;
    CHECK(chan != NULL);
    CHECK_EQ(cc_spawn(&receiver, receive_values, chan, NULL), 0);
    CHECK_EQ(cc_spawn(&sender, send_values, chan, NULL), 0);
    CHECK_EQ(cc_task_join(&receiver, &sum), 0);
    CHECK_EQ(cc_task_join(&sender, NULL), 0);
    cc_chan_free(chan);
    return sum;
}

/* ---- from outside ---- */

static atomic_bool over;
static CCChan *from_outside;
static long sent;

static void *outsider(void *arg) {
    for (int one = 1; !atomic_load(&over); sent++) {
        CHECK_EQ(cc_chan_send(from_outside, &one, sizeof one), 0);
        nap();
    }
    CHECK_EQ(cc_chan_close(from_outside), 0);
    return arg;
}

static void *count_values(void *arg) {
    intptr_t sum = 0;
    (void)arg;
    for (int value; cc_chan_recv(from_outside, &value, sizeof value) == 0;) sum += value;
    return (void *)sum;
}

/* ---- rounds ---- */

static void one_round(unsigned base) {
    CCTask blockers[BASE_MAX], talkers[TALKERS], end;
    for (unsigned i = 0; i < TALKERS; i++) CHECK_EQ(cc_spawn(&talkers[i], talk, (void *)(uintptr_t)i, NULL), 0);
    for (unsigned i = 0; i < base; i++) CHECK_EQ(cc_spawn(&blockers[i], block, pipes[i], NULL), 0);
    while (atomic_load(&blocked) != base) nap(); /* what is spawned now has no worker */
    atomic_store(&blocked, 0);
    CHECK_EQ(cc_spawn(&end, unblock, (void *)(uintptr_t)base, NULL), 0);
    for (unsigned i = 0; i < TALKERS; i++) {
        void *sum = NULL;
        CHECK_EQ(cc_task_join(&talkers[i], &sum), 0);
        CHECK_EQ((intptr_t)sum, VALUES * (VALUES + 1) / 2);
    }
    for (unsigned i = 0; i < base; i++) CHECK_EQ(cc_task_join(&blockers[i], NULL), 0);
    CHECK_EQ(cc_task_join(&end, NULL), 0);
}

static void await_base(unsigned base) {
    while (cc_worker_count() != base || cc__elastic_grown() != cc__elastic_retired()) nap();
}

static void cycles(unsigned base, uint64_t wanted) {
    CCRuntimeConfig config = {.workers = base, .max_workers = 2 * base};
    CCTask counter;
    pthread_t thread;
    void *received = NULL;
    uint64_t random = test_seed();
    cc__sysmon_set_pace(50 * US, 50 * US);
    CHECK_EQ(cc_runtime_init(&config), 0);
    CHECK((from_outside = cc_chan_create(sizeof(int), 8)) != NULL);
    for (unsigned i = 0; i < base; i++) CHECK_EQ(pipe(pipes[i]), 0);
    CHECK_EQ(cc_spawn(&counter, count_values, NULL, NULL), 0);
    CHECK_EQ(pthread_create(&thread, NULL, outsider, NULL), 0);
    long rounds = 0;
    for (; cc__elastic_retired() < wanted; rounds++) {
        cc__elastic_set_retire(test_random(&random) % 3 * 50 * US);
        one_round(base);
        if (test_random(&random) % 4 == 0) await_base(base);
    }
    atomic_store(&over, true);
    CHECK_EQ(pthread_join(thread, NULL), 0);
    CHECK_EQ(cc_task_join(&counter, &received), 0);
    CHECK_EQ((intptr_t)received, sent);
    await_base(base);
    printf("%ld rounds, %llu workers added, %llu retired\n", rounds, (unsigned long long)cc__elastic_grown(),
           (unsigned long long)cc__elastic_retired());
    cc_chan_free(from_outside);
    CHECK_EQ(cc_runtime_shutdown(UINT64_MAX), 0);
}

TEST(one_worker_and_one_more, .timeout = 300) {
    cycles(1, (uint64_t)test_rounds(2000, 200000));
}

TEST(two_workers_and_two_more, .timeout = 300) {
    cycles(2, (uint64_t)test_rounds(4000, 400000));
}

TEST(four_workers_and_four_more, .timeout = 300) {
    cycles(4, (uint64_t)test_rounds(4000, 400000));
}
