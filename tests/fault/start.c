/* start.c - the runtime's start, while each of its system calls fails in turn: an error or success, no leak, and
 * the next start succeeds. */
#include "fail.h"
#include "harness.h"

#include "../unit/ending.h"

#include <ccc/ccc.h>
#include <signal.h>

static void *give_back(void *arg) {
    return arg;
}

/* What a failure may lead to. */
static bool is_shortage(int rc) {
    return rc == ENOMEM || rc == EAGAIN;
}

static void check_works(void) {
    int x;
    void *result = NULL;
    CHECK_EQ(cc_run(give_back, &x, &result), 0);
    CHECK(result == &x);
}

/* Nothing that the library allocated is left. The very first run may keep something for ever, so it is not counted. */
static void check_nothing_held(long blocks, long mapped) {
    CHECK_EQ(atomic_load(&fail.blocks), blocks);
    CHECK_EQ(atomic_load(&fail.mapped), mapped);
}

/* Nor is the handler that reports overflows left: the next start would take it for the program's own. */
static struct sigaction of_faults(void) {
    struct sigaction now;
    CHECK_EQ(sigaction(SIGSEGV, NULL, &now), 0);
    return now;
}

static void fail_each(int (*start)(void), bool for_ever) {
    struct sigaction before = of_faults();
    check_works();
    CHECK_EQ(cc_runtime_shutdown(UINT64_MAX), 0);
    long blocks = fail.blocks, mapped = fail.mapped, errors = 0;
    for (long n = 1;; n++) {
        fail_arm(n, FAIL_ALL, for_ever);
        int rc = start();
        long failed = fail_disarm();
        if (rc != 0) {
            CHECK(failed > 0);
            CHECK(is_shortage(rc));
            errors++;
        }
        if (cc_worker_count() > 0) CHECK_EQ(cc_runtime_shutdown(UINT64_MAX), 0);
        check_nothing_held(blocks, mapped);
        CHECK(of_faults().sa_sigaction == before.sa_sigaction);
        check_works();
        CHECK_EQ(cc_runtime_shutdown(UINT64_MAX), 0);
        check_nothing_held(blocks, mapped);
        if (failed == 0) break;
        CHECK(n < 1000);
    }
    CHECK(errors > 0); /* or nothing was tested */
}

static int init(void) {
    CCRuntimeConfig config = {.workers = 3};
    int rc = cc_runtime_init(&config);
    CHECK_EQ(cc_worker_count(), rc == 0 ? 3 : 0);
    return rc;
}

TEST(init_with_one_failure) {
    fail_each(init, false);
}

TEST(init_with_failures_from_then_on) {
    fail_each(init, true);
}

static int spawn(void) {
    CCTask task = {5};
    int rc = cc_spawn(&task, give_back, &task, NULL);
    CHECK_EQ(rc == 0, task.id != 0);
    if (rc != 0) return rc;
    void *result = NULL;
    rc = cc_task_join(&task, &result);
    CHECK(rc == 0 || rc == ENOMEM); /* no stack */
    CHECK(result == (rc == 0 ? &task : NULL) || rc != 0);
    CHECK_EQ(task.id, 0);
    return rc;
}

TEST_WORKERS(first_spawn_with_one_failure) {
    fail_each(spawn, false);
}

TEST_WORKERS(first_spawn_with_failures_from_then_on) {
    fail_each(spawn, true);
}

static int spawn_shortly(void) {
    CCTask task = cc_fiber_spawn_task(give_back, NULL);
    if (task.id == 0) {
        CHECK_EQ(cc_task_join(&task, NULL), EINVAL);
        return ENOMEM;
    }
    return cc_task_join(&task, NULL);
}

TEST(first_short_spawn) {
    fail_each(spawn_shortly, false);
    fail_each(spawn_shortly, true);
}

static int run(void) {
    int x;
    void *result = &x;
    int rc = cc_run(give_back, NULL, &result);
    if (rc == 0) CHECK(result == NULL);
    return rc;
}

TEST(first_run) {
    fail_each(run, false);
    fail_each(run, true);
}

/* ---- nothing fails, and nothing is left ---- */

static void *sleep_for_ever(void *arg) {
    int rc = cc_sleep_until((CCDeadline){arg != NULL ? UINT64_MAX - 1 : UINT64_MAX});
    CHECK(rc == ECANCELED || rc == ENOMEM);
    return arg;
}

TEST_WORKERS(cycles_hold_nothing) {
    fail_begin();
    static const CCSpawnOptions kinds[] = {
        {0}, {.name = "named"}, {.stack_size = 64 * 1024}, {.stack_size = 1024 * 1024, .name = "both"}};
    long blocks = 0, mapped = 0;
    for (long round = 0; round < test_rounds(20, 2000);) {
        for (int i = 0; i < 40; i++)
            CHECK_EQ(cc_spawn(NULL, i % 3 ? sleep_for_ever : give_back, i % 2 ? &fail : NULL, &kinds[i % 4]), 0);
        CCTask unused;
        CHECK_EQ(cc_spawn(&unused, give_back, NULL, &kinds[round % 4]), 0); /* a handle that nobody uses */
        if (end_by_cancelling()) {
            check_nothing_held(blocks, mapped);
            round++;
        } else { /* a report was made, and what was read for its names is kept for good: such a round does not count */
            blocks = fail.blocks;
            mapped = fail.mapped;
        }
    }
}
