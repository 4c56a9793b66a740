/* thread_ended.c - a function that ends the OS thread that called it, where that belongs to the runtime: each dies with
 * a message, while guests may end their threads. */
#include "../../programs/where.h"
#include "harness.h"

#include <ccc/ccc.h>
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <threads.h>
#include <time.h>
#include <unistd.h>

static void *leaves(void *unused) {
    pthread_exit(unused);
}

static void *leaves_by_thrd_exit(void *unused) {
    (void)unused;
    thrd_exit(0);
}

static void run_named(CCTaskFn fn, void *arg) {
    CCTask task;
    CHECK_EQ(cc_spawn(&task, fn, arg, &(CCSpawnOptions){.name = "leaver"}), 0);
    CHECK_EQ(cc_task_join(&task, NULL), 0);
}

/* The race detector checks in pthread_exit that its caller is a thread of its own, and ends the program. */
#define WHO (UNDER_TSAN ? "pthread_exit" : "'leaver' has ended its OS thread, which belongs to the runtime")
#define BY_SIGNAL (UNDER_TSAN ? 0 : SIGABRT)

TEST_DIES(by_pthread_exit, WHO, .workers = true, .signal = BY_SIGNAL) {
    run_named(leaves, NULL);
}

TEST_DIES(by_thrd_exit, WHO, .signal = SIGABRT) {
    run_named(leaves_by_thrd_exit, NULL);
}

static void leaves_here(void *arg) {
    (void)leaves(arg);
}

static void ignore(void *unused) {
    (void)unused;
}

/* Its frames have a block that defers, a protected call, and a place in a wait before. */
static void *leaves_from_inside(void *unused) {
    CHECK_EQ(cc_sleep_ms(1), 0);
    CC_DEFER(ignore, NULL);
    MAY_FAIL(cc_try(leaves_here, NULL, NULL));
    return unused;
}

TEST_DIES(from_inside, WHO, .workers = true, .signal = BY_SIGNAL) {
    run_named(leaves_from_inside, NULL);
}

static void *joins(void *fn) {
    run_named(*(CCTaskFn *)fn, NULL);
    return fn;
}

/* The task runs as a call from its joiner. */
TEST_DIES(in_a_joined_task, WHO, .workers = true, .signal = BY_SIGNAL) {
    CCTaskFn fn = leaves;
    CCTask task = cc_fiber_spawn_task(joins, &fn);
    CHECK_EQ(cc_task_join(&task, NULL), 0);
}

static void *waits_outside(void *ready) {
    __atomic_store_n((bool *)ready, true, __ATOMIC_RELEASE);
    for (;;) (void)pause();
    return NULL;
}

static void *tells_thread(void *thread) {
    *(pthread_t *)thread = pthread_self();
    return NULL;
}

/* The worker is inside a fiber, or has none. */
TEST_DIES(by_pthread_cancel, "has ended its OS thread", .signal = SIGABRT) {
    CHECK_EQ(cc_runtime_init(&(CCRuntimeConfig){.workers = 1, .max_workers = 1}), 0);
    pthread_t thread;
    CCTask task = cc_fiber_spawn_task(tells_thread, &thread);
    CHECK_EQ(cc_task_join(&task, NULL), 0);
    bool ready = false;
    task = cc_fiber_spawn_task(waits_outside, &ready);
    while (!__atomic_load_n(&ready, __ATOMIC_ACQUIRE)) (void)sched_yield();
    CHECK_EQ(pthread_cancel(thread), 0);
    CHECK_EQ(cc_task_join(&task, NULL), 0);
}

TEST_DIES(on_an_island, WHO, .signal = BY_SIGNAL) {
    CCIsland *island;
    CHECK_EQ(cc_island_create(&island, &(CCIslandConfig){.name = "far"}), 0);
    CCTask task;
    CHECK_EQ(cc_spawn(&task, leaves, NULL, &(CCSpawnOptions){.name = "leaver", .island = island}), 0);
    CHECK_EQ(cc_task_join(&task, NULL), 0);
}

static void *calls_out(void *may_abandon) {
    CCBlockingOptions options = {.may_abandon = may_abandon != NULL};
    MAY_FAIL(cc_blocking_ex(leaves, NULL, NULL, &options, CC_FOREVER));
    return NULL;
}

TEST_DIES(in_a_blocking_call, "a function called by cc_blocking has ended its OS thread", .signal = SIGABRT) {
    run_named(calls_out, NULL);
}

/* The pool's thread makes the call of an OS thread, too, if that may abandon it. */
TEST_DIES(in_a_blocking_call_of_a_thread, "a function called by cc_blocking has ended its OS thread",
          .signal = SIGABRT) {
    (void)calls_out(&(int){0});
}

/* Without the fake stacks that the harness asks for, as gcc's programs have by default, the frames that the thread has
 * left are on its own stack. */
TEST(on_stacks_that_are_not_fake, .timeout = 60) {
    if (!UNDER_ASAN) SKIP("only the address sanitizer has fake stacks");
    CHECK_EQ(setenv("ASAN_OPTIONS", "detect_stack_use_after_return=0", 1), 0);
    pid_t child = fork();
    if (child == 0) {
        execl("/proc/self/exe", "thread_ended", "by_p", "by_thrd_exit", "inside", "joined", "island", (char *)NULL);
        _exit(1);
    }
    int status;
    CHECK_EQ(waitpid(child, &status, 0), child);
    CHECK_EQ(status, 0);
}

/* ---- guests ---- */

static CCChan *channel;

static void *guest_leaves(void *unused) {
    uint64_t value = 7;
    CHECK_EQ(cc_chan_send(channel, &value, sizeof value), 0);
    return leaves(unused);
}

static void *guest_leaves_a_try(void *unused) {
    MAY_FAIL(cc_try(leaves_here, unused, NULL));
    return NULL;
}

static void *guest_leaves_a_blocking_call(void *unused) {
    MAY_FAIL(cc_blocking(leaves, unused, NULL));
    return NULL;
}

static void *guest_leaves_a_hosted_call(void *unused) {
    MAY_FAIL(cc_hosted_call(leaves, unused, NULL, NULL));
    return NULL;
}

static void *echo(void *ch) {
    uint64_t value;
    while (cc_chan_recv(ch, &value, sizeof value) == 0) {
    }
    return NULL;
}

TEST_WORKERS(guests_may_end_their_threads) {
    void *(*const ways[])(void *) = {guest_leaves, guest_leaves_a_try, guest_leaves_a_blocking_call,
                                     guest_leaves_a_hosted_call};
    channel = cc_chan_create(sizeof(uint64_t), 0);
    CCTask task = cc_fiber_spawn_task(echo, channel);
    for (int i = 0; i < (UNDER_TSAN ? 3 : 4); i++) {
        pthread_t thread;
        void *result = NULL;
        CHECK_EQ(pthread_create(&thread, NULL, ways[i], &channel), 0);
        CHECK_EQ(pthread_join(thread, &result), 0);
        CHECK(result == (i == 0 ? (void *)&channel : result));
    }
    cc_chan_close(channel);
    CHECK_EQ(cc_task_join(&task, NULL), 0);
    cc_chan_free(channel);
    CHECK_EQ(cc_runtime_shutdown(UINT64_MAX), 0);
}
