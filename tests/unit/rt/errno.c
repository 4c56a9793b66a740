/* errno.c - errno belongs to the user: no call changes it, whether it succeeds, fails, waits or starts threads. */
#include "harness.h"

#include "../ending.h"

#include <ccc/ccc.h>
#include <errno.h>
#include <stdlib.h>

enum { MINE = 4711 };

/* Checks and sets it again for the next call. */
#define KEEPS_ERRNO(call)      \
    do {                       \
        errno = MINE;          \
        call;                  \
        CHECK_EQ(errno, MINE); \
    } while (0)

static void *give_back(void *arg) {
    return arg;
}

static void *sleep_long(void *arg) {
    (void)cc_sleep_ms(3600 * 1000);
    return arg;
}

static void call_everything(void) {
    CCTask task, copy, none = {0}, invented = {UINT64_MAX};
    CCSpawnOptions named = {.name = "named", .stack_size = 64 * 1024}, bad = {.stack_size = 1};
    void *result;
    KEEPS_ERRNO(CHECK_EQ(cc_spawn(&task, give_back, NULL, &named), 0));
    KEEPS_ERRNO(CHECK_EQ(cc_task_dup(&task, &copy), 0));
    KEEPS_ERRNO(CHECK_EQ(cc_task_detach(&copy), 0));
    KEEPS_ERRNO(CHECK_EQ(cc_task_join(&task, &result), 0));
    KEEPS_ERRNO(CHECK_EQ(cc_spawn(&task, give_back, NULL, &bad), EINVAL));
    KEEPS_ERRNO(CHECK_EQ(cc_spawn(NULL, NULL, NULL, NULL), EINVAL));
    KEEPS_ERRNO(task = cc_fiber_spawn_task(sleep_long, NULL));
    KEEPS_ERRNO(CHECK_EQ(cc_task_join_try(&task, NULL), EAGAIN));
    KEEPS_ERRNO(CHECK_EQ(cc_task_join_until(&task, NULL, CC_PASSED), ETIMEDOUT));
    KEEPS_ERRNO(CHECK_EQ(cc_task_join_until(&task, NULL, cc_after_ms(2)), ETIMEDOUT));
    KEEPS_ERRNO(CHECK_EQ(cc_task_detach(&task), 0));
    KEEPS_ERRNO(CHECK_EQ(cc_task_join(&none, NULL), EINVAL));
    KEEPS_ERRNO(CHECK_EQ(cc_task_join(&invented, NULL), ESRCH));
    KEEPS_ERRNO(CHECK_EQ(cc_task_detach(&invented), ESRCH));
    KEEPS_ERRNO(CHECK_EQ(cc_task_dup(&invented, &copy), ESRCH));
    KEEPS_ERRNO(CHECK(cc_block_on(invented) == NULL));
    KEEPS_ERRNO(CHECK_EQ(cc_run(give_back, NULL, NULL), 0));
    KEEPS_ERRNO(CHECK_EQ(cc_sleep_ms(0), 0));
    KEEPS_ERRNO(CHECK_EQ(cc_sleep_ms(2), 0));
    KEEPS_ERRNO(cc_yield());
    KEEPS_ERRNO(CHECK(cc_now_ns() > 0));
    KEEPS_ERRNO(CHECK(cc_worker_count() > 0));
    KEEPS_ERRNO((void)cc_in_fiber());
    KEEPS_ERRNO((void)cc_fiber_id());
    KEEPS_ERRNO((void)cc_fiber_name());
    KEEPS_ERRNO((void)cc_fiber_set_name("a name"));
    KEEPS_ERRNO(CHECK(cc_runtime_init(NULL) != 0)); /* it runs, or the caller is a fiber */
}

/* The first call starts the runtime: threads, mappings, probes, invalid variables in the environment. */
TEST_WORKERS(in_a_thread) {
    CHECK_EQ(setenv("CC_STACK_SIZE", "much", 1), 0);
    KEEPS_ERRNO(CHECK_EQ(cc_worker_count(), 0));
    KEEPS_ERRNO(CHECK_EQ(cc_runtime_shutdown(0), 0));
    KEEPS_ERRNO(CHECK_EQ(cc_runtime_init(&(CCRuntimeConfig){.queue_slots = 3}), EINVAL));
    call_everything();
    KEEPS_ERRNO(end_by_cancelling());
    KEEPS_ERRNO(CHECK_EQ(cc_runtime_init(NULL), 0));
    KEEPS_ERRNO(CHECK_EQ(cc_runtime_shutdown(UINT64_MAX), 0));
}

static void *call_everything_in_fiber(void *arg) {
    call_everything();
    KEEPS_ERRNO(CHECK_EQ(cc_runtime_shutdown(0), EDEADLK));
    return arg;
}

/* On one worker a fiber stays on one thread, whose errno nobody else touches: neither the scheduler nor its waits. */
TEST(in_a_fiber) {
    CCRuntimeConfig config = {.workers = 1};
    CHECK_EQ(cc_runtime_init(&config), 0);
    for (int i = 0; i < 20; i++) CHECK_EQ(cc_run(call_everything_in_fiber, NULL, NULL), 0);
    end_by_cancelling();
}
