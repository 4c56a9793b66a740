/* parallel.c - joins of several tasks, ranges and broadcasts when each allocation fails in turn: the call returns
 * ENOMEM or works without it, and nothing is lost. */
#include "fail.h"
#include "harness.h"

#include <ccc/ccc.h>
#include <errno.h>
#include <stdatomic.h>
#include <string.h>

enum { MANY = 300 };

static void *wait_for_event(void *event) {
    return cc_event_wait(event) == 0 ? event : NULL;
}

static void *any_of_many(void *unused) {
    static CCTask tasks[MANY];
    CCEvent never = {0}, now = {0};
    for (int i = 0; i < MANY; i++) tasks[i] = cc_fiber_spawn_task(wait_for_event, i == MANY - 1 ? &now : &never);
    int rc = ENOMEM;
    size_t which = 0;
    for (long k = 1; rc != ETIMEDOUT; k++) {
        CHECK(k < 1000);
        fail_arm(k, FAIL_MEMORY, false);
        rc = cc_join_any(tasks, MANY, cc_after_ms(1), &which, NULL);
        (void)fail_disarm();
        CHECK(rc == ENOMEM || rc == ETIMEDOUT);
        for (int i = 0; i < MANY; i++) CHECK(tasks[i].id != 0);
    }
    CHECK_EQ(cc_event_set(&now), 0);
    CHECK_EQ(cc_join_any(tasks, MANY, CC_FOREVER, &which, NULL), 0);
    CHECK_EQ(which, MANY - 1);
    CHECK_EQ(cc_event_set(&never), 0);
    CHECK_EQ(cc_join_all(tasks, MANY, NULL, CC_FOREVER), 0);
    return unused;
}

TEST_WORKERS(any_of_many) {
    fail_begin();
    CHECK_EQ(cc_run(any_of_many, NULL, NULL), 0);
    CHECK_EQ(cc_runtime_shutdown(10000), 0);
}

/* All stacks are in use: a watcher never runs, and the call does not wait for it. */
static void *any_without_a_stack(void *unused) {
    static CCTask tasks[MANY];
    CCEvent never = {0};
    for (int i = 0; i < MANY; i++) tasks[i] = cc_fiber_spawn_task(wait_for_event, &never);
    for (int i = 0; i < 10; i++) cc_yield(); /* they have begun */
    CCNursery *many = cc_nursery_create_ex(&(CCNurseryConfig){.root = true, .mode = CC_NURSERY_KEEP_GOING});
    fail_arm(1, FAIL_MAP, true);
    for (long started = 0; cc_nursery_failures(many) == 0; started++) {
        CHECK_EQ(cc_nursery_spawn(many, wait_for_event, &never), 0);
        if (started % 16 == 0) cc_yield();
    }
    CHECK_EQ(cc_join_any(tasks, MANY, CC_FOREVER, NULL, NULL), ENOMEM);
    CHECK(fail_disarm() > 0);
    CHECK_EQ(cc_event_set(&never), 0);
    CHECK_EQ(cc_join_all(tasks, MANY, NULL, CC_FOREVER), 0);
    CHECK_EQ(cc_nursery_wait(many), ENOMEM);
    CHECK_EQ(cc_nursery_free(many), 0);
    return unused;
}

TEST(any_without_a_stack) {
    if (test_scale(100) < 20) SKIP("thousands of stacks take too long here");
    fail_begin();
    CHECK_EQ(cc_runtime_init(&(CCRuntimeConfig){.workers = 1}), 0);
    CHECK_EQ(cc_run(any_without_a_stack, NULL, NULL), 0);
    CHECK_EQ(cc_runtime_shutdown(UINT64_MAX), 0);
}

static int add(size_t begin, size_t end, void *value, void *arg) {
    (void)arg;
    for (size_t i = begin; i < end; i++) {
        if (i % 50 == 0) cc_yield();
        *(size_t *)value += i;
    }
    return 0;
}

static void add_up(void *value, const void *right, void *arg) {
    (void)arg;
    *(size_t *)value += *(const size_t *)right;
}

/* A split that finds no memory is executed by the piece itself. */
static void *sum(void *unused) {
    size_t zero = 0, value = 0;
    CCReduction plus = {.size = sizeof value, .identity = &zero, .range = add, .combine = add_up};
    for (long k = 1; k <= 12; k++) {
        fail_arm(k, FAIL_MEMORY, true);
        int rc = cc_parallel_reduce(0, 1000, &plus, NULL, &value);
        (void)fail_disarm();
        CHECK(rc == 0 || rc == ENOMEM);
        if (rc == 0) CHECK_EQ(value, 1000 * 999 / 2);
    }
    return unused;
}

TEST_WORKERS(ranges) {
    fail_begin();
    CHECK_EQ(cc_run(sum, NULL, NULL), 0);
    CHECK_EQ(cc_runtime_shutdown(10000), 0);
}

TEST(broadcasts) {
    CCBroadcastConfig config = {.elem_size = 300, .capacity = 1, .slow = CC_SLOW_DROP_OLD};
    char value[300] = "news";
    uint64_t seen = 0;
    fail_begin();
    fail_arm(1, FAIL_MEMORY, false);
    CHECK(cc_broadcast_create(&config) == NULL && errno == ENOMEM);
    fail_arm(1, FAIL_MEMORY, false);
    CHECK(cc_latest_create(value, sizeof value) == NULL && errno == ENOMEM);
    CHECK(fail_disarm() > 0);
    CCBroadcast *b = cc_broadcast_create(&config);
    for (long k = 1; k <= 3; k++) { /* the subscriber, its channel, its ring */
        fail_arm(k, FAIL_MEMORY, false);
        CHECK(cc_broadcast_subscribe(b) == NULL && errno == ENOMEM);
        CHECK(fail_disarm() > 0);
        CHECK_EQ(cc_broadcast_subscribers(b), 0);
    }
    CCChan *ch = cc_broadcast_subscribe(b);
    CHECK_EQ(cc_broadcast_send(b, value, sizeof value), 0);
    CHECK_EQ(cc_broadcast_unsubscribe(b, ch), 0);
    cc_broadcast_free(b);
    CCLatest *latest = cc_latest_create(value, sizeof value);
    CHECK_EQ(cc_latest_wait(latest, &seen, value, sizeof value), 0);
    cc_latest_free(latest);
}

static atomic_int drops;

static void count_drop(void *value, void *context) {
    (void)value, (void)context;
    drops++;
}

/* A drop of a large value needs memory for a copy: without it nothing is dropped, and nothing is sent. */
TEST(large_drops) {
    CCChanConfig config = {
        .elem_size = 1000, .capacity = 1, .mode = CC_CHAN_MODE_DROP_OLD, .on_drop = count_drop, .context = NULL};
    static char value[1000] = "1", got[1000];
    CCChan *ch = cc_chan_create_ex(&config);
    CHECK_EQ(cc_chan_send(ch, value, sizeof value), 0);
    value[0] = '2';
    fail_begin();
    fail_arm(1, FAIL_MEMORY, false);
    CHECK_EQ(cc_chan_send(ch, value, sizeof value), ENOMEM);
    CHECK(fail_disarm() > 0);
    CHECK_EQ(drops, 0);
    CHECK_EQ(cc_chan_recv(ch, got, sizeof got), 0);
    CHECK_EQ(got[0], '1');
    cc_chan_free(ch);
}
