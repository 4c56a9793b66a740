/* self.c - queries about the caller: whether it is a fiber, and which. */
#include "harness.h"

#include "../crew.h"

#include <ccc/ccc.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

static void check_outside(void) {
    CHECK(!cc_in_fiber());
    CHECK_EQ(cc_fiber_id(), 0);
    CHECK_EQ(cc_fiber_name()[0], '\0');
}

static void check_outside_in_thread(int index, void *arg) {
    (void)index, (void)arg;
    check_outside();
}

static void *check_inside(void *id) {
    CHECK(cc_in_fiber());
    CHECK(cc_fiber_id() != 0);
    CCFiberId mine = cc_fiber_id();
    for (int i = 0; i < 10; i++) {
        cc_yield();
        CHECK(cc_fiber_id() == mine); /* on whichever worker */
    }
    CHECK_EQ(cc_sleep_ms(1), 0);
    CHECK(cc_fiber_id() == mine);
    CHECK(cc_in_fiber());
    *(CCFiberId *)id = mine;
    return NULL;
}

TEST_WORKERS(inside_and_outside) {
    check_outside();
    CCFiberId id = 0;
    CHECK_EQ(cc_run(check_inside, &id, NULL), 0);
    check_outside();
    crew_run(4, check_outside_in_thread, NULL);
    CHECK_EQ(cc_runtime_shutdown(UINT64_MAX), 0);
    check_outside();
}

/* The handle carries the id. */
TEST_WORKERS(id_is_the_handle) {
    for (int i = 0; i < 20; i++) {
        CCFiberId id = 0;
        CCTask task = cc_fiber_spawn_task(check_inside, &id), before = task;
        CHECK_EQ(cc_task_join(&task, NULL), 0);
        CHECK(id == before.id);
    }
}

static int compare(const void *a, const void *b) {
    CCFiberId x = *(const CCFiberId *)a, y = *(const CCFiberId *)b;
    return x < y ? -1 : x > y;
}

/* Over many tasks, one after another and at once, and over restarts of the runtime. */
TEST_WORKERS(ids_differ) {
    enum { BATCH = 500, ROUNDS = 8 };
    static CCFiberId ids[BATCH * ROUNDS];
    static CCTask tasks[BATCH];
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < BATCH; i++) tasks[i] = cc_fiber_spawn_task(check_inside, &ids[round * BATCH + i]);
        for (int i = 0; i < BATCH; i++) CHECK_EQ(cc_task_join(&tasks[i], NULL), 0);
        if (round % 2) CHECK_EQ(cc_runtime_shutdown(UINT64_MAX), 0);
    }
    qsort(ids, BATCH * ROUNDS, sizeof ids[0], compare);
    CHECK(ids[0] != 0);
    for (int i = 1; i < BATCH * ROUNDS; i++) CHECK(ids[i] != ids[i - 1]);
}

/* Uses so many bytes of the stack, and looks at them again behind a call. */
static __attribute__((noinline)) unsigned go_deep(unsigned depth, unsigned (*then)(void)) {
    volatile unsigned char bytes[1024];
    for (unsigned i = 0; i < sizeof bytes; i++) bytes[i] = (unsigned char)(i * depth + 1);
    unsigned sum = depth > 0 ? go_deep(depth - 1, then) : then != NULL ? then() : 0;
    for (unsigned i = 0; i < sizeof bytes; i++) sum += bytes[i] != (unsigned char)(i * depth + 1);
    return sum;
}

static unsigned trim_here(void) {
    CHECK_EQ(cc_fiber_trim_stack(), 0);
    return 0;
}

/* Pages of the running fiber's stack that the system has, of so many bytes some way below. */
static size_t pages_below(const char *here, size_t size) {
    size_t page = (size_t)sysconf(_SC_PAGESIZE), pages = 0;
    uintptr_t high = ((uintptr_t)here - 3 * page) & ~(uintptr_t)(page - 1);
    unsigned char there[64];
    CHECK(size / page <= sizeof there);
    CHECK_EQ(mincore((void *)(high - size), size, there), 0);
    for (size_t i = 0; i < size / page; i++) pages += there[i] & 1;
    return pages;
}

static void *trim(void *arg) {
    const char *here = __builtin_frame_address(0); /* a variable need not be on the stack with a sanitizer */
    CHECK_EQ(go_deep(80, NULL), 0);                /* 80 KiB */
    size_t before = pages_below(here, 32 * 1024);
    CHECK(before > 0);
    CHECK_EQ(cc_fiber_trim_stack(), 0);
    CHECK_EQ(pages_below(here, 32 * 1024), 0);
    CHECK_EQ(go_deep(80, trim_here), 0); /* what functions use stays, wherever they are */
    for (unsigned depth = 0; depth < 40; depth++) CHECK_EQ(go_deep(depth, trim_here), 0);
    return arg;
}

TEST_WORKERS(trimming_the_stack) {
    CCTask task;
    CHECK_EQ(cc_fiber_trim_stack(), EPERM);
    CHECK_EQ(cc_spawn(&task, trim, NULL, &(CCSpawnOptions){.stack_size = 256 * 1024}), 0);
    CHECK_EQ(cc_task_join(&task, NULL), 0);
    CHECK_EQ(cc_fiber_trim_stack(), EPERM);
}
