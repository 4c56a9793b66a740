/* trace.c - categories that the program enables and disables itself. */
#include "harness.h"
#include "parks.h"

#include "../capture.h"
#include "trace/trace.h"

#include <ccc/ccc.h>
#include <errno.h>

static struct capture capture;

static void *nothing(void *arg) {
    return arg;
}

static void *sleep_a_little(void *arg) {
    uint64_t before = test_parks("sleep");
    do CHECK_EQ(cc_sleep_ms(1), 0);
    while (test_parks("sleep") == before);
    return arg;
}

static const char *run_captured(CCTaskFn fn) {
    capture_start(&capture);
    int rc = cc_run(fn, NULL, NULL);
    const char *said = capture_end(&capture);
    CHECK_EQ(rc, 0);
    return said;
}

TEST(arguments) {
    CHECK_EQ(cc_trace_start(NULL), EINVAL);
    CHECK_EQ(cc_trace_start("parks"), EINVAL);
    CHECK_EQ(cc_trace_start("park,wake,no"), EINVAL);
    CHECK_EQ(cc_trace_start("PARK"), EINVAL);
    CHECK_EQ(cc_trace_start("park wake"), EINVAL);
    CHECK_EQ(cc__get(&cc__trace.on) & TRACE_ALL, 0);
    CHECK_EQ(cc_trace_start(""), 0);
    CHECK_EQ(cc__get(&cc__trace.on) & TRACE_ALL, 0);
    CHECK_EQ(cc_trace_start("park,wake"), 0);
    CHECK_EQ(cc_trace_start("join"), 0);
    CHECK_EQ(cc__get(&cc__trace.on) & TRACE_ALL, TRACE_PARK | TRACE_WAKE | TRACE_JOIN);
    CHECK_EQ(cc_trace_start("all"), 0);
    CHECK_EQ(cc__get(&cc__trace.on) & TRACE_ALL, TRACE_ALL);
    cc_trace_stop();
    cc_trace_stop();
    CHECK_EQ(cc__get(&cc__trace.on) & TRACE_ALL, 0);
}

/* Every name that a message lists is a category. */
TEST(known_names) {
    char list[200];
    size_t n = 0;
    for (const char *c = cc__trace_known; *c != '\0'; c++)
        if (*c != ' ') list[n++] = *c;
    list[n] = '\0';
    CHECK_EQ(cc_trace_start(list), 0);
}

/* Before the runtime starts, while it runs, and over a restart. */
TEST_WORKERS(on_and_off) {
    CHECK_EQ(run_captured(nothing)[0], '\0');
    CHECK_EQ(cc_trace_start("spawn,park,wake"), 0);
    const char *said = run_captured(sleep_a_little);
    CHECK(contains(said, "spawns fiber") && contains(said, "parks, waits for: sleep"));
    CHECK(contains(said, "wakes fiber"));
    cc_trace_stop();
    CHECK_EQ(run_captured(sleep_a_little)[0], '\0');
    CHECK_EQ(cc_runtime_shutdown(UINT64_MAX), 0);
    CHECK_EQ(cc_trace_start("park"), 0);
    CHECK_EQ(cc_worker_count(), 0);
    CHECK(contains(run_captured(sleep_a_little), "parks, waits for: sleep"));
    CHECK_EQ(cc_runtime_shutdown(UINT64_MAX), 0);
    CHECK(contains(run_captured(sleep_a_little), "parks, waits for: sleep"));
    cc_trace_stop();
    CHECK_EQ(run_captured(sleep_a_little)[0], '\0');
}

static void *switch_often(void *arg) {
    long n = test_scale(200);
    for (long i = 0; i < n; i++) {
        CHECK_EQ(cc_trace_start(i % 2 ? "wake,park" : "wake,spawn,steal"), 0);
        CHECK_EQ(cc_run(sleep_a_little, arg, NULL), 0);
        cc_trace_stop();
    }
    return arg;
}

/* By several fibers at once, while others wait and wake: nothing is lost, and in the end it is off. */
TEST_WORKERS(by_fibers, .timeout = 120) {
    CCTask tasks[3];
    capture_start(&capture);
    for (int i = 0; i < 3; i++) tasks[i] = cc_fiber_spawn_task(switch_often, NULL);
    for (int i = 0; i < 3; i++) CHECK_EQ(cc_task_join(&tasks[i], NULL), 0);
    (void)capture_end(&capture);
    CHECK_EQ(run_captured(sleep_a_little)[0], '\0');
}
