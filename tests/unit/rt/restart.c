/* restart.c - the runtime starts and stops many times, with fibers in every state. (Memory leaks: fault/start.c.) */
#include "harness.h"

#include "../ending.h"
#include "../gate.h"

#include <ccc/ccc.h>
#include <dirent.h>
#include <errno.h>

static _Atomic long begun, ended;

static void *sleep_for_ever(void *arg) {
    cc__add(&begun, 1);
    int rc = cc_sleep_until((CCDeadline){(uint64_t)(uintptr_t)arg});
    CHECK(rc == 0 || rc == ECANCELED);
    cc__add(&ended, 1);
    return NULL;
}

static void *park(void *arg) {
    cc__add(&begun, 1);
    struct fiber *self = cc__sched_current(cc__worker());
    _Atomic uint32_t flag = 0;
    (void)cc__park_open(self, PARK_FLAG);
    CHECK_EQ(cc__park_if(self, &flag, 0), WAKE_CANCEL);
    cc__add(&ended, 1);
    return arg;
}

static void *join_a_sleeper(void *arg) {
    cc__add(&begun, 1);
    CCTask task;
    int rc = cc_spawn(&task, sleep_for_ever, arg, NULL);
    CHECK(rc == 0 || rc == ECANCELED);
    if (rc == 0) rc = cc_task_join(&task, NULL);
    CHECK(rc == 0 || rc == ECANCELED);
    cc__add(&ended, 1);
    return arg;
}

static void *yield_some(void *arg) {
    cc__add(&begun, 1);
    for (int i = 0; i < 50; i++) cc_yield();
    cc__add(&ended, 1);
    return arg;
}

/* Fibers that have not started, run, yield, sleep, join and park at the shutdown. */
static void start_all_kinds(void) {
    static const CCTaskFn kinds[] = {sleep_for_ever, park, join_a_sleeper, yield_some};
    for (uint64_t i = 0; i < 16; i++) {
        uint64_t until = i < 8 ? UINT64_MAX - i % 2 : cc_after_ns(i * 10000).ns;
        CCSpawnOptions options = {.stack_size = i == 5 ? 64 * 1024 : 0, .name = i == 6 ? "named" : NULL};
        CHECK_EQ(cc_spawn(NULL, kinds[i % 4], (void *)(uintptr_t)until, &options), 0);
    }
}

static int open_files(void) {
    DIR *dir = opendir("/proc/self/fd");
    CHECK(dir != NULL);
    int n = 0;
    while (readdir(dir) != NULL) n++;
    closedir(dir);
    return n;
}

static void end(void) {
    end_by_cancelling();
    CHECK_EQ(cc__get(&ended), cc__get(&begun)); /* every fiber that started has ended */
}

TEST_WORKERS(with_fibers_in_every_state) {
    int files = open_files();
    long rounds = test_rounds(60, 5000);
    for (long round = 0; round < rounds; round++) {
        start_all_kinds();
        if (round % 3 == 0) {
            CCTask last = cc_fiber_spawn_task(yield_some, NULL);
            CHECK_EQ(cc_task_join(&last, NULL), 0);
        }
        end();
        CHECK_EQ(open_files(), files);
    }
    CHECK(ended >= rounds * 16);
}

/* Nothing at all happens in between. */
TEST_WORKERS(empty_runs) {
    for (long round = 0; round < test_rounds(200, 20000); round++) {
        CHECK_EQ(cc_runtime_init(NULL), 0);
        CHECK_EQ(cc_runtime_shutdown(round % 2 ? UINT64_MAX : 0), 0);
    }
    CHECK_EQ(cc_worker_count(), 0);
}

static void *give_back(void *arg) {
    return arg;
}

/* Work that is spawned before a worker has come up. */
TEST_WORKERS(work_at_once) {
    for (long round = 0; round < test_rounds(200, 20000); round++) {
        CHECK_EQ(cc_run(give_back, NULL, NULL), 0);
        CHECK_EQ(cc_runtime_shutdown(UINT64_MAX), 0);
    }
}

/* Another number of workers each time. */
TEST(changing_sizes) {
    uint64_t random = test_seed();
    for (long round = 0; round < test_rounds(60, 2000); round++) {
        CCRuntimeConfig config = {
            .workers = 1 + (unsigned)(test_random(&random) % 12),
            .stack_size = CC_STACK_SIZE_MIN << test_random(&random) % 6,
            .queue_slots = (size_t)2 << test_random(&random) % 10,
        };
        CHECK_EQ(cc_runtime_init(&config), 0);
        CHECK_EQ(cc_worker_count(), config.workers);
        start_all_kinds();
        end();
    }
}
