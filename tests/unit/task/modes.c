/* modes.c - a task that its joiner runs keeps its floating-point modes to itself. */
#include "harness.h"

#include <ccc/ccc.h>

#ifdef __x86_64__
#include <xmmintrin.h>

static void *round_up(void *arg) {
    _MM_SET_ROUNDING_MODE(_MM_ROUND_UP);
    return arg;
}

static void *join_it(void *arg) {
    CCTask task;
    for (int i = 0; i < 100; i++) {
        CHECK_EQ(cc_spawn(&task, round_up, NULL, NULL), 0);
        CHECK_EQ(cc_task_join(&task, NULL), 0);
        CHECK_EQ(_MM_GET_ROUNDING_MODE(), _MM_ROUND_NEAREST);
    }
    return arg;
}
#else
static void *join_it(void *arg) {
    SKIP("the modes are set by x86-64's own instructions here");
    return arg;
}
#endif

TEST_WORKERS(stay_with_the_task) {
    CHECK_EQ(cc_run(join_it, NULL, NULL), 0);
    CHECK_EQ(cc_runtime_shutdown(UINT64_MAX), 0);
}
