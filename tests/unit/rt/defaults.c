/* defaults.c - the library uses its compile-time settings unless others are given. The `small` preset sets all of them.
 */
#include "harness.h"

#include "fiber/stack.h"
#include "os/cpus.h"
#include "sched/sched.h"

#include <ccc/ccc.h>
#include <stdlib.h>

#ifndef CC_FIBER_WORKERS
#define CC_FIBER_WORKERS cc__cpus_usable()
#endif
#ifndef CC_FIBER_STACK_SIZE
#define CC_FIBER_STACK_SIZE (256 * 1024)
#endif
#ifndef CC_FIBER_QUEUE_INITIAL
#define CC_FIBER_QUEUE_INITIAL 4096
#endif

static void *nothing(void *arg) {
    return arg;
}

TEST(compiled_defaults_are_used) {
    unsetenv("CC_WORKERS");
    unsetenv("CC_STACK_SIZE");
    CHECK_EQ(cc_run(nothing, NULL, NULL), 0);
    CHECK_EQ(cc_worker_count(), CC_FIBER_WORKERS);
    CHECK_EQ(cc__stack_default(), CC_FIBER_STACK_SIZE);
    CHECK_EQ(cc__sched.rings[0].mask + 1, CC_FIBER_QUEUE_INITIAL);
}

TEST(the_caller_wins_over_them) {
    CCRuntimeConfig config = {.workers = 5, .stack_size = 128 * 1024, .queue_slots = 16};
    setenv("CC_WORKERS", "2", 1);
    setenv("CC_STACK_SIZE", "64K", 1);
    CHECK_EQ(cc_runtime_init(&config), 0);
    CHECK_EQ(cc_worker_count(), 5);
    CHECK_EQ(cc__stack_default(), 128 * 1024);
    CHECK_EQ(cc__sched.rings[0].mask + 1, 16);
}
