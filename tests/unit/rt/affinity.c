/* affinity.c - by default there are as many workers as CPUs that the process may use. */
#include "harness.h"

#include "os/cpus.h"

#include <ccc/ccc.h>
#include <sched.h>
#include <stdlib.h>

#ifdef CC_FIBER_WORKERS
#define COMPILED_IN true
#else
#define COMPILED_IN false
#endif

static void *give_back(void *arg) {
    return arg;
}

static unsigned workers_now(void) {
    CHECK_EQ(cc_run(give_back, NULL, NULL), 0);
    unsigned workers = cc_worker_count();
    CHECK_EQ(cc_runtime_shutdown(UINT64_MAX), 0);
    return workers;
}

TEST(workers_follow_the_mask) {
    if (COMPILED_IN) SKIP("this build has its own number of workers");
    unsetenv("CC_WORKERS");
    cpu_set_t usable, chosen;
    CHECK_EQ(sched_getaffinity(0, sizeof usable, &usable), 0);
    CHECK(workers_now() <= (unsigned)CPU_COUNT(&usable));
    CPU_ZERO(&chosen);
    unsigned count = 0;
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
        if (!CPU_ISSET(cpu, &usable)) continue;
        CPU_SET(cpu, &chosen);
        count++;
        CHECK_EQ(sched_setaffinity(0, sizeof chosen, &chosen), 0);
        CHECK_EQ(cc__cpus_usable() <= count, true); /* a quota may allow less */
        CHECK_EQ(workers_now(), cc__cpus_usable());
        if (count == 1) CHECK_EQ(workers_now(), 1);
    }
    CHECK(count >= 1);
}

/* A program that asks for more workers than CPUs gets them. */
TEST(settings_win_over_the_mask) {
    cpu_set_t chosen;
    CHECK_EQ(sched_getaffinity(0, sizeof chosen, &chosen), 0);
    int cpu = 0;
    while (!CPU_ISSET(cpu, &chosen)) cpu++;
    CPU_ZERO(&chosen);
    CPU_SET(cpu, &chosen);
    CHECK_EQ(sched_setaffinity(0, sizeof chosen, &chosen), 0);
    CHECK_EQ(setenv("CC_WORKERS", "6", 1), 0);
    CHECK_EQ(workers_now(), 6);
    CCRuntimeConfig config = {.workers = 4};
    CHECK_EQ(cc_runtime_init(&config), 0);
    CHECK_EQ(workers_now(), 4);
}
