/* stats.c - the table that CC_FIBER_STATS=1 prints at the end of a runtime, or of the process. */
#include "child.h"

#include <ccc/ccc.h>

#include <inttypes.h>

static struct child child;

static void *sleeper(void *arg) {
    CHECK_EQ(cc_sleep_ms(100), 0); /* it is to park: an emulator may need more than a millisecond for that */
    return arg;
}

static void *parent(void *unused) {
    (void)unused;
    CCTask tasks[5];
    for (int i = 0; i < 5; i++) tasks[i] = cc_fiber_spawn_task(sleeper, NULL);
    for (int i = 0; i < 5; i++) CHECK_EQ(cc_task_join_until(&tasks[i], NULL, cc_after_ms(60000)), 0);
    return NULL;
}

struct program {
    unsigned workers;
    bool shutdown;
};

static void run_program(void *arg) {
    const struct program *p = arg;
    CHECK_EQ(setenv("CC_FIBER_STATS", "1", 1), 0);
    CHECK_EQ(cc_runtime_init(&(CCRuntimeConfig){.workers = p->workers}), 0);
    CHECK_EQ(cc_run(parent, NULL, NULL), 0);
    if (p->shutdown) CHECK_EQ(cc_runtime_shutdown(UINT64_MAX), 0);
}

static void run(struct program program) {
    run_child(&child, run_program, &program);
    if (child.status != 0) show_child(&child);
    CHECK_EQ(child.status, 0);
}

/* The numbers of a row: the total, then the workers'. Returns how many. */
static int row(const char *name, uint64_t *values, int max) {
    char head[64];
    snprintf(head, sizeof head, "ccc: stats: %-18s ", name);
    const char *at = strstr(child.output, head);
    if (at == NULL) {
        show_child(&child);
        test_fail(__FILE__, __LINE__, "there is no row '%s'", name);
    }
    at += strlen(head);
    int n = 0;
    for (char *end; *at != '\n' && *at != '\0' && n < max; at = end) {
        values[n++] = strtoull(at, &end, 10);
        CHECK(end != at);
    }
    return n;
}

/* Not "  join": children that have ended are not waited for, and a reason that nobody had has no row. */
static void check_table(unsigned workers) {
    static const char *const rows[] = {"spawned",       "finished",     "switches",        "parks",
                                       "  sleep",       "wakes, local", "timers armed",    "wakes, remote",
                                       "wakes, wasted", "timers fired", "steals",          "shared",
                                       "sleeps",        "notifies",     "overflow pushes", "polls"};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        uint64_t values[20], sum = 0;
        CHECK_EQ(row(rows[i], values, 20), 1 + (int)workers);
        for (unsigned k = 1; k <= workers; k++) sum += values[k];
        CHECK_EQ(values[0], sum + (i == 0)); /* the first task was started by an OS thread */
        if (i < 2) CHECK_EQ(values[0], 6);
        if (strcmp(rows[i], "  sleep") == 0) CHECK_EQ(values[0], 5);
    }
    CHECK(said(&child, "ccc: stats: stacks: "));
    CHECK(said(&child, " sampled; maximum used "));
    CHECK(said(&child, "worker  0"));
}

TEST(one_worker) {
    run((struct program){1, true});
    CHECK(said(&child, "ccc: stats: 1 workers, 6 spawned, 6 finished\n"));
    check_table(1);
    CHECK(!said(&child, "worker  1"));
}

TEST(three_workers_at_exit) {
    run((struct program){3, false});
    CHECK(said(&child, "ccc: stats: 3 workers, 6 spawned, 6 finished\n"));
    check_table(3);
    CHECK(said(&child, "worker  2"));
}

/* There is room for 16 columns; the total counts all. */
TEST(forty_workers) {
    run((struct program){40, true});
    CHECK(said(&child, "ccc: stats: 40 workers, 6 spawned, 6 finished; of the workers the first 16:\n"));
    uint64_t values[20];
    CHECK_EQ(row("finished", values, 20), 17);
    CHECK_EQ(values[0], 6);
    CHECK(!said(&child, "worker 16"));
}

static void run_island(void *unused) {
    CCIsland *island;
    (void)unused;
    CHECK_EQ(setenv("CC_FIBER_STATS", "1", 1), 0);
    CHECK_EQ(cc_runtime_init(&(CCRuntimeConfig){.workers = 1}), 0);
    CHECK_EQ(cc_island_create(&island, NULL), 0);
    CHECK_EQ(cc_island_call(island, parent, NULL, NULL), 0);
    CHECK_EQ(cc_island_free(island), 0);
    CHECK_EQ(cc_runtime_shutdown(UINT64_MAX), 0);
}

/* The fibers of an island count in the total, and belong to no worker. */
TEST(an_island) {
    run_child(&child, run_island, NULL);
    if (child.status != 0) show_child(&child);
    CHECK_EQ(child.status, 0);
    CHECK(said(&child, "ccc: stats: 1 workers, 6 spawned, 6 finished\n"));
    uint64_t values[20];
    CHECK_EQ(row("finished", values, 20), 2);
    CHECK_EQ(values[0], 6);
    CHECK_EQ(values[1], 0);
}
