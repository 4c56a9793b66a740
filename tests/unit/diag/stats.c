/* stats.c - counters: a known program is counted exactly, read from any context, with any struct size. */
#include "harness.h"
#include "parks.h"

#include "../depth.h"

#include <ccc/ccc.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

static CCStats stats_now(void) {
    CCStats stats;
    CHECK_EQ(cc_stats(&stats, sizeof stats), 0);
    return stats;
}

static unsigned reason_of(const char *name) {
    for (unsigned i = 0; cc_stats_reason(i) != NULL; i++)
        if (strcmp(cc_stats_reason(i), name) == 0) return i;
    test_fail(__FILE__, __LINE__, "there is no reason '%s'", name);
}

static uint64_t parks_by(const CCStats *stats, const char *name) {
    return stats->parks_by[reason_of(name)];
}

TEST(reasons_have_names) {
    CHECK_EQ(cc_stats_reason(0)[0], '\0');
    CHECK(reason_of("join") != reason_of("sleep"));
    CHECK(reason_of("channel") < CC_STATS_REASONS);
    CHECK(cc_stats_reason(CC_STATS_REASONS) == NULL);
    CHECK(cc_stats_reason(UINT32_MAX) == NULL);
}

/* Without a runtime everything is 0, and nothing starts one. */
TEST(not_running) {
    CCStats stats;
    CCStackStats stacks;
    memset(&stats, 0x55, sizeof stats);
    memset(&stacks, 0x55, sizeof stacks);
    static const CCStats zero;
    CHECK_EQ(cc_stats(&stats, sizeof stats), ESRCH);
    CHECK_EQ(memcmp(&stats, &zero, sizeof zero), 0);
    CHECK_EQ(cc_stats_worker(0, &stats, sizeof stats), ESRCH);
    CHECK_EQ(cc_stats_stacks(&stacks, sizeof stacks), ESRCH);
    CHECK_EQ(stacks.stacks, 0);
    CHECK_EQ(cc_worker_count(), 0);
    CHECK_EQ(cc_stats(NULL, sizeof stats), EINVAL);
    CHECK_EQ(cc_stats_worker(0, NULL, sizeof stats), EINVAL);
    CHECK_EQ(cc_stats_stacks(NULL, sizeof stacks), EINVAL);
}

static void *nothing(void *arg) {
    return arg;
}

/* An older program's structure is shorter, a newer one's longer. */
TEST(any_size) {
    struct {
        CCStats stats;
        uint64_t more[2];
    } longer;
    memset(&longer, 0x55, sizeof longer);
    CHECK_EQ(cc_run(nothing, NULL, NULL), 0);
    CHECK_EQ(cc_stats(&longer.stats, sizeof longer), 0);
    CHECK_EQ(longer.stats.spawned, 1);
    CHECK_EQ(longer.more[0] + longer.more[1], 0);
    memset(&longer, 0x55, sizeof longer);
    CHECK_EQ(cc_stats(&longer.stats, offsetof(CCStats, finished)), 0);
    CHECK_EQ(longer.stats.spawned, 1);
    CHECK_EQ(longer.stats.finished, UINT64_C(0x5555555555555555));
    CHECK_EQ(cc_stats(&longer.stats, 0), 0);
    CHECK_EQ(longer.stats.spawned, 1);
}

enum { ROUNDS = 100, SLEEPERS = 20 };

static void *echo(void *arg) {
    CCChan **ch = arg;
    int value;
    while (cc_chan_recv(ch[0], &value, sizeof value) == 0) CHECK_EQ(cc_chan_send(ch[1], &value, sizeof value), 0);
    return NULL;
}

static void *doze(void *arg) {
    uint64_t before = test_parks("sleep"); /* of this worker, the only one */
    do CHECK_EQ(cc_sleep_ms(20), 0);
    while (test_parks("sleep") == before);
    return arg;
}

/* On one worker the parks are known: each value is received by a waiting fiber. */
static void *program(void *unused) {
    (void)unused;
    CCChan *ch[2] = {cc_chan_create(sizeof(int), 0), cc_chan_create(sizeof(int), 0)};
    CCTask task = cc_fiber_spawn_task(echo, ch), dozing[SLEEPERS];
    for (int i = 0; i < ROUNDS; i++) {
        int value = i;
        CHECK_EQ(cc_chan_send(ch[0], &value, sizeof value), 0);
        CHECK_EQ(cc_chan_recv(ch[1], &value, sizeof value), 0);
    }
    CHECK_EQ(cc_chan_close(ch[0]), 0);
    CHECK_EQ(cc_task_join(&task, NULL), 0);
    cc_chan_free(ch[0]);
    cc_chan_free(ch[1]);
    for (int i = 0; i < SLEEPERS; i++) dozing[i] = cc_fiber_spawn_task(doze, NULL);
    cc_yield();
    for (int i = 0; i < SLEEPERS; i++) CHECK_EQ(cc_task_join(&dozing[i], NULL), 0);
    return NULL;
}

TEST(a_known_program) {
    CHECK_EQ(cc_runtime_init(&(CCRuntimeConfig){.workers = 1, .max_workers = 1}), 0); /* no other worker takes over */
    CHECK_EQ(cc_run(program, NULL, NULL), 0);
    CCStats s = stats_now(), one;
    CHECK_EQ(s.workers, 1);
    CHECK_EQ(s.spawned, 2 + SLEEPERS);
    CHECK_EQ(s.finished, 2 + SLEEPERS);
    CHECK_EQ(parks_by(&s, "sleep"), SLEEPERS);
    CHECK_EQ(s.timers_armed, SLEEPERS);
    CHECK_EQ(s.timers_fired, SLEEPERS);
    CHECK(parks_by(&s, "channel") >= ROUNDS && parks_by(&s, "channel") <= 4 * ROUNDS);
    uint64_t sum = 0;
    for (unsigned i = 0; i < CC_STATS_REASONS; i++) sum += s.parks_by[i];
    CHECK_EQ(s.parks, sum);
    CHECK_EQ(s.parks_by[0], 0);
    /* Nobody waits any more: every park was ended by one of the three. */
    CHECK_EQ(s.wakes_local + s.wakes_remote + s.timers_fired, s.parks);
    CHECK_EQ(s.wakes_remote, 0);
    CHECK(s.switches >= s.parks);
    CHECK_EQ(s.steals + s.shared + s.overflows, 0);
    /* The worker has done everything except spawning the first task. */
    CHECK_EQ(cc_stats_worker(0, &one, sizeof one), 0);
    CHECK_EQ(one.workers, 1);
    CHECK_EQ(one.spawned, s.spawned - 1);
    CHECK_EQ(one.parks, s.parks);
    CHECK_EQ(one.wakes_local, s.wakes_local);
    CHECK_EQ(cc_stats_worker(1, &one, sizeof one), EINVAL);
    CHECK_EQ(one.spawned, 0);
}

static CCChan *from_thread;

static void *receive(void *unused) {
    (void)unused;
    for (int value; cc_chan_recv(from_thread, &value, sizeof value) == 0;) {
    }
    return NULL;
}

/* A fiber that an OS thread wakes is a remote wake; it is woken for each value on which it waits. */
TEST_WORKERS(remote_wakes) {
    unsigned workers = (unsigned)atoi(getenv("CC_WORKERS")); /* no worker is added, or retires with its counters */
    CHECK_EQ(cc_runtime_init(&(CCRuntimeConfig){.workers = workers, .max_workers = workers}), 0);
    from_thread = cc_chan_create(sizeof(int), 0);
    CCTask task = cc_fiber_spawn_task(receive, NULL);
    for (int i = 0; i < ROUNDS; i++) CHECK_EQ(cc_chan_send(from_thread, &i, sizeof i), 0);
    CHECK_EQ(cc_chan_close(from_thread), 0);
    CHECK_EQ(cc_task_join(&task, NULL), 0);
    cc_chan_free(from_thread);
    CCStats s = stats_now(), sum = {0};
    CHECK_EQ(s.workers, cc_worker_count());
    CHECK_EQ(s.wakes_remote, s.parks); /* nobody else wakes here */
    CHECK_EQ(s.wakes_local, 0);
    CHECK_EQ(parks_by(&s, "channel"), s.parks);
    for (unsigned i = 0; i < cc_worker_count(); i++) {
        CCStats one;
        CHECK_EQ(cc_stats_worker(i, &one, sizeof one), 0);
        sum.wakes_remote += one.wakes_remote;
        sum.parks += one.parks;
        sum.finished += one.finished;
        sum.spawned += one.spawned;
    }
    CHECK_EQ(sum.wakes_remote, s.wakes_remote);
    CHECK_EQ(sum.parks, s.parks);
    CHECK_EQ(sum.finished, 1);
    CHECK_EQ(sum.spawned, 0); /* an OS thread did */
}

static _Atomic int spinning, enough;

/* Hogs the only worker, so that it does not poll its inbox. */
static void *spin(void *unused) {
    (void)unused;
    spinning = 1;
    while (!enough) {
    }
    return NULL;
}

/* More fibers than the inbox and the ring of the global queue take, while the only worker does not poll. */
TEST(overflows) {
    enum { MANY = 2000 };
    static CCTask tasks[MANY];
    CHECK_EQ(cc_runtime_init(&(CCRuntimeConfig){.workers = 1, .max_workers = 1, .queue_slots = 2}), 0);
    CCTask busy = cc_fiber_spawn_task(spin, NULL);
    while (!spinning) cc_yield();
    for (int i = 0; i < MANY; i++) tasks[i] = cc_fiber_spawn_task(nothing, NULL);
    uint64_t overflows = stats_now().overflows;
    enough = 1;
    CHECK_EQ(cc_task_join(&busy, NULL), 0);
    for (int i = 0; i < MANY; i++) CHECK_EQ(cc_task_join(&tasks[i], NULL), 0);
    CHECK(overflows > MANY / 2 && overflows < MANY);
    CHECK_EQ(stats_now().overflows, overflows);
    CHECK_EQ(stats_now().finished, MANY + 1);
}

/* Every start counts from 0. */
TEST(restart) {
    for (int i = 0; i < 3; i++) {
        CHECK_EQ(cc_run(nothing, NULL, NULL), 0);
        CHECK_EQ(stats_now().finished, 1);
        CHECK_EQ(cc_runtime_shutdown(UINT64_MAX), 0);
    }
}

static void *ask(void *expected) {
    CCStats s = stats_now();
    CHECK(s.spawned >= (uintptr_t)expected && s.finished <= s.spawned);
    CCStackStats stacks;
    CHECK_EQ(cc_stats_stacks(&stacks, sizeof stacks), 0);
    return NULL;
}

/* While others start and end, finished never exceeds spawned. */
TEST_WORKERS(from_fibers_and_threads) {
    pthread_t thread;
    enum { MANY = 50 };
    CCTask tasks[MANY];
    for (uintptr_t i = 0; i < MANY; i++) tasks[i] = cc_fiber_spawn_task(ask, (void *)i);
    CHECK_EQ(pthread_create(&thread, NULL, ask, (void *)(uintptr_t)1), 0);
    for (int i = 0; i < MANY; i++) CHECK_EQ(cc_task_join(&tasks[i], NULL), 0);
    CHECK_EQ(pthread_join(thread, NULL), 0);
    CHECK_EQ(stats_now().finished, MANY);
}

static void *use_bytes(void *bytes) {
    use_stack((size_t)bytes, NULL, NULL);
    return bytes;
}

static CCStackStats stacks_now(void) {
    CCStackStats stacks;
    CHECK_EQ(cc_stats_stacks(&stacks, sizeof stacks), 0);
    uint64_t sum = 0;
    for (int i = 0; i < CC_STACK_STATS_BUCKETS; i++) sum += stacks.up_to[i];
    CHECK_EQ(sum, stacks.looked_at);
    CHECK(stacks.looked_at <= stacks.stacks);
    return stacks;
}

/* The high-water mark of stacks shows a fiber that has used that much, and only such a one. */
TEST(high_water) {
    CHECK_EQ(cc_runtime_init(&(CCRuntimeConfig){.workers = 1, .stack_size = 1024 * 1024}), 0);
    CHECK_EQ(cc_run(nothing, NULL, NULL), 0);
    CCStackStats little = stacks_now();
    CHECK_EQ(little.looked_at, little.stacks);
    if (little.most == 0) SKIP("the system does not show which pages are in use");
    CHECK(little.most < 300 * 1024);
    CHECK_EQ(cc_run(use_bytes, (void *)(uintptr_t)(600 * 1024), NULL), 0);
    CCStackStats much = stacks_now();
    CHECK(much.stacks >= little.stacks); /* the build for the race detector prefers fresh ones */
    CHECK(much.most >= 600 * 1024 && much.most < 1024 * 1024);
    unsigned bucket = 0;
    while (much.page << bucket < much.most) bucket++;
    CHECK_EQ(much.up_to[bucket], 1);
}
