/* tls_migration.c - no thread-local address survives a move to another thread: not the test's, and not the
 * library's.
 * variants: shared lto
 *
 * Fibers that constantly move between workers query their identity and thread, in loops that the compiler might
 * simplify. The reference is gettid: each thread writes its id into its own thread-local variable when it is first
 * seen.
 */
#include "harness.h"
#include "where.h"

#include <ccc/ccc.h>

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static _Thread_local volatile pid_t here;

/* What the documentation tells users to do: a function that is not inlined and that the compiler cannot see
 * through. */
__attribute__((noinline)) static volatile pid_t *where(void) {
    volatile pid_t *address = &here;
    __asm__ volatile("" : "+r"(address));
    return address;
}

/* What this thread's variable holds, after the first fiber has written it. Hidden from the race detector,
 * to which fibers are threads, and threads do not share these. */
__attribute__((noinline, no_sanitize("thread"))) static pid_t first_writer(pid_t id) {
    volatile pid_t *place = where();
    if (*place == 0) *place = id;
    return *place;
}

static pid_t thread_id(void) {
    return (pid_t)syscall(SYS_gettid);
}

static atomic_long moves, checks;

/* The results match the current thread. */
static void check_place(pid_t *last) {
    pid_t id = thread_id();
    CHECK_EQ(first_writer(id), id);
    if (*last != id && *last != 0) atomic_fetch_add(&moves, 1);
    *last = id;
    atomic_fetch_add(&checks, 1);
}

static void *echo(void *arg) {
    return arg;
}

static void *yield_once(void *arg) {
    cc_yield();
    return arg;
}

/* Hogs the worker long enough for others to steal the fibers behind this one. */
static void compute(uint64_t ns) {
    uint64_t end = cc_now_ns() + ns;
    while (cc_now_ns() < end) {
    }
}

/* All calls in one loop of one function: where a compiler that takes &this_worker for a constant would keep
 * it in a register. */
static void *migrate(void *arg) {
    uint64_t rng = (uintptr_t)arg;
    pid_t last = 0;
    CCFiberId id = cc_fiber_id();
    char name[CC_FIBER_NAME_MAX];
    snprintf(name, sizeof name, "fiber %llu", (unsigned long long)(id & 0xffff));
    CHECK_EQ(cc_fiber_set_name(name), 0);
    long rounds = test_rounds(3000, 300000);
    /* Fibers that do not migrate test nothing, and how many migrate depends on the machine. */
    for (long i = 0; i < rounds || atomic_load(&moves) < test_scale(200); i++) {
        check_place(&last);
        if (test_random(&rng) % 32 == 0) compute(100000);
        CHECK(cc_in_fiber());
        CHECK_EQ(cc_fiber_id(), id);
        switch (test_random(&rng) % 6) {
        case 0:
        case 1:
            cc_yield();
            break;
        case 2:
            CHECK_EQ(cc_sleep_until(cc_after_ns(test_random(&rng) % 20000)), 0);
            break;
        case 3: {
            CCTask task = cc_fiber_spawn_task(echo, &rng);
            cc_yield();
            CHECK(cc_block_on(task) == &rng);
            break;
        }
        case 4: {
            CCTask task = cc_fiber_spawn_task(yield_once, &rng);
            void *result = NULL;
            /* With a deadline: waits in the task's list rather than running it here. */
            CHECK_EQ(cc_task_join_until(&task, &result, cc_after_ms(3600 * 1000)), 0);
            CHECK(result == &rng);
            break;
        }
        default: {
            CCTask task;
            void *result = NULL;
            CHECK_EQ(cc_spawn(&task, yield_once, &rng, NULL), 0);
            CHECK_EQ(cc_task_join(&task, &result), 0); /* perhaps on this stack, which then migrates with it */
            CHECK(result == &rng);
        }
        }
        check_place(&last);
        CHECK_EQ(cc_fiber_id(), id);
        CHECK_EQ(strcmp(cc_fiber_name(), name), 0);
    }
    return NULL;
}

static void migrate_over(unsigned workers) {
    enum { FIBERS = 24 };
    CCTask tasks[FIBERS];
    CCRuntimeConfig config = {.workers = workers};
    CHECK_EQ(cc_runtime_init(&config), 0);
    uint64_t rng = test_seed();
    for (int i = 0; i < FIBERS; i++)
        CHECK_EQ(cc_spawn(&tasks[i], migrate, (void *)(uintptr_t)test_random(&rng), NULL), 0);
    for (int i = 0; i < FIBERS; i++) CHECK_EQ(cc_task_join(&tasks[i], NULL), 0);
    printf("%ld checks, %ld moves\n", atomic_load(&checks), atomic_load(&moves));
    CHECK_EQ(cc_runtime_shutdown(10000), 0);
}

TEST(fibers_migrate_over_4_workers) {
    migrate_over(4);
}

TEST(fibers_migrate_over_16_workers) {
    migrate_over(16);
}

/* Yields and little else, in the tightest loop. */
static void *yield_and_ask(void *arg) {
    pid_t last = 0;
    CCFiberId id = cc_fiber_id();
    long rounds = test_rounds(100000, 10000000);
    for (long i = 0; i < rounds || atomic_load(&moves) == 0; i++) {
        cc_yield();
        CHECK(cc_fiber_id() == id);
        if (i % 64 == 0) check_place(&last);
        if (i % 2048 == 0) {
            compute(50000);
            CHECK_EQ(cc_sleep_until(cc_after_ns(20000)), 0);
        }
    }
    return arg;
}

TEST(the_tightest_loop) {
    if (under_valgrind()) SKIP("valgrind runs one thread at a time, and nothing migrates");
    enum { FIBERS = 12 };
    CCTask tasks[FIBERS];
    CCRuntimeConfig config = {.workers = 5};
    CHECK_EQ(cc_runtime_init(&config), 0);
    for (int i = 0; i < FIBERS; i++) CHECK_EQ(cc_spawn(&tasks[i], yield_and_ask, NULL, NULL), 0);
    for (int i = 0; i < FIBERS; i++) CHECK_EQ(cc_task_join(&tasks[i], NULL), 0);
    printf("%ld checks, %ld moves\n", atomic_load(&checks), atomic_load(&moves));
    CHECK_EQ(cc_runtime_shutdown(10000), 0);
}
