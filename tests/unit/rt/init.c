/* init.c - starting the runtime: once, by one of many threads, with each setting in effect; invalid ones are rejected.
 */
#include "harness.h"

#include "../crew.h"
#include "sched/sched.h"

#include <ccc/ccc.h>
#include <errno.h>
#include <stdlib.h>

static void *give_back(void *arg) {
    return arg;
}

static void check_works(void) {
    int x;
    void *result = NULL;
    CHECK_EQ(cc_run(give_back, &x, &result), 0);
    CHECK(result == &x);
}

TEST(twice) {
    CCRuntimeConfig config = {.workers = 2};
    CHECK_EQ(cc_worker_count(), 0);
    CHECK_EQ(cc_runtime_init(&config), 0);
    CHECK_EQ(cc_worker_count(), 2);
    config.workers = 3;
    CHECK_EQ(cc_runtime_init(&config), EALREADY);
    CHECK_EQ(cc_runtime_init(NULL), EALREADY);
    CHECK_EQ(cc_worker_count(), 2); /* the first one holds */
    check_works();
}

TEST(after_first_use) {
    check_works();
    CHECK_EQ(cc_runtime_init(NULL), EALREADY);
    check_works();
}

TEST(after_shutdown) {
    for (unsigned workers = 1; workers <= 4; workers++) {
        CCRuntimeConfig config = {.workers = workers};
        CHECK_EQ(cc_runtime_init(&config), 0);
        CHECK_EQ(cc_worker_count(), workers);
        check_works();
        CHECK_EQ(cc_runtime_shutdown(UINT64_MAX), 0);
        CHECK_EQ(cc_worker_count(), 0);
    }
}

TEST(impossible_settings) {
    static const CCRuntimeConfig bad[] = {
        {.workers = CC_WORKERS_MAX + 1},
        {.workers = UINT32_MAX},
        {.stack_size = 1},
        {.stack_size = CC_STACK_SIZE_MIN - 1},
        {.stack_size = CC_STACK_SIZE_MAX + 1},
        {.stack_size = SIZE_MAX},
        {.queue_slots = 1},
        {.queue_slots = 3},
        {.queue_slots = 4097},
        {.queue_slots = ((size_t)1 << 24) + 1},
        {.queue_slots = (size_t)1 << 25},
        {.queue_slots = SIZE_MAX},
        {.workers = 1, .stack_size = 65536, .queue_slots = 6}, /* one is enough */
    };
    for (size_t i = 0; i < array_len(bad); i++) {
        CHECK_EQ(cc_runtime_init(&bad[i]), EINVAL);
        CHECK_EQ(cc_worker_count(), 0);
    }
    CHECK_EQ(cc_runtime_init(NULL), 0); /* none of them has had an effect */
    CHECK_EQ(cc_runtime_init(&bad[0]), EALREADY);
    check_works();
}

TEST(extreme_settings) {
    static const CCRuntimeConfig good[] = {
        {.workers = 1, .stack_size = CC_STACK_SIZE_MIN, .queue_slots = 2},
        {.workers = 2, .stack_size = CC_STACK_SIZE_MAX, .queue_slots = (size_t)1 << 20},
        {.workers = 1, .queue_slots = (size_t)1 << 24},
        {0},
    };
    for (size_t i = 0; i < array_len(good); i++) {
        CHECK_EQ(cc_runtime_init(&good[i]), 0);
        check_works();
        CHECK_EQ(cc_runtime_shutdown(UINT64_MAX), 0);
    }
}

TEST(most_workers) {
    CCRuntimeConfig config = {.workers = (unsigned)test_scale(CC_WORKERS_MAX)};
    CHECK_EQ(cc_runtime_init(&config), 0);
    CHECK_EQ(cc_worker_count(), config.workers);
    for (int i = 0; i < 100; i++) check_works();
    CHECK_EQ(cc_runtime_shutdown(UINT64_MAX), 0);
}

/* Each setting is shown to have effect. */
TEST(settings_have_effect) {
    CHECK_EQ(setenv("CC_WORKERS", "2", 1), 0); /* the caller's setting wins */
    CHECK_EQ(setenv("CC_STACK_SIZE", "1M", 1), 0);
    CCRuntimeConfig config = {.workers = 5, .stack_size = 100 * 1000, .queue_slots = 64};
    CHECK_EQ(cc_runtime_init(&config), 0);
    CHECK_EQ(cc_worker_count(), 5);
    CHECK_EQ(cc__stack_default(), 128 * 1024);
    CHECK_EQ(cc__sched.rings[0].mask, 63);
    CHECK_EQ(cc_runtime_shutdown(UINT64_MAX), 0);
    CHECK_EQ(cc_runtime_init(NULL), 0);
    CHECK_EQ(cc_worker_count(), 2);
    CHECK_EQ(cc__stack_default(), 1024 * 1024);
}

/* ---- from a fiber ---- */

static void *init_in_fiber(void *arg) {
    CCRuntimeConfig config = {.workers = 1}, bad = {.queue_slots = 3};
    CHECK_EQ(cc_runtime_init(&config), EDEADLK);
    CHECK_EQ(cc_runtime_init(NULL), EDEADLK);
    CHECK_EQ(cc_runtime_init(&bad), EDEADLK);
    CHECK(cc_worker_count() > 0);
    return arg;
}

TEST_WORKERS(from_a_fiber) {
    CHECK_EQ(cc_run(init_in_fiber, NULL, NULL), 0);
}

TEST_WORKERS(worker_count_in_a_fiber) {
    unsigned workers = (unsigned)atoi(getenv("CC_WORKERS"));
    CHECK_EQ(cc_run(init_in_fiber, NULL, NULL), 0);
    CHECK_EQ(cc_worker_count(), workers);
}

/* ---- many at once ---- */

static _Atomic int started, already;

static void start_at_once(int index, void *arg) {
    (void)index, (void)arg;
    int rc = cc_runtime_init(NULL);
    if (rc == 0)
        cc__add(&started, 1);
    else if (rc == EALREADY)
        cc__add(&already, 1);
    check_works();
}

TEST_WORKERS(one_of_many_starts_it) {
    for (int i = 0; i < 10; i++) {
        cc__set(&started, 0);
        cc__set(&already, 0);
        crew_run(8, start_at_once, NULL);
        CHECK_EQ(cc__get(&started), 1);
        CHECK_EQ(cc__get(&already), 7);
        CHECK_EQ(cc_runtime_shutdown(UINT64_MAX), 0);
    }
}

static void use_at_once(int index, void *arg) {
    (void)index, (void)arg;
    check_works();
}

TEST_WORKERS(many_first_uses) {
    for (int i = 0; i < 10; i++) {
        crew_run(8, use_at_once, NULL);
        CHECK(cc_worker_count() > 0);
        CHECK_EQ(cc_runtime_shutdown(UINT64_MAX), 0);
    }
}
