/* stuck_output.c - a report that nobody reads blocks only its own thread: sysmon goes on, and a shutdown ends. */
#include "harness.h"

#include "os/thread.h"
#include "sched/sched.h"

#include <ccc/ccc.h>

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The writing end of a full pipe, in blocking mode. */
static int full_pipe(void) {
    int ends[2];
    char bytes[4096] = {0};
    CHECK_EQ(pipe(ends), 0);
    CHECK_EQ(fcntl(ends[1], F_SETFL, O_NONBLOCK), 0);
    for (size_t n = sizeof bytes; n > 0; n /= 2)
        while (write(ends[1], bytes, n) > 0) continue;
    CHECK_EQ(fcntl(ends[1], F_SETFL, 0), 0);
    return ends[1];
}

static _Atomic bool stop;
static _Atomic long ticks;

static void *tick(void *arg) {
    while (!stop) {
        if (cc_sleep_ms(1) != 0) break;
        ticks++;
    }
    return arg;
}

/* Keeps its worker for 0.4 s: that is reported. */
static void *block(void *arg) {
    for (uint64_t end = cc_now_ns() + 400000000; cc_now_ns() < end;) cc__thread_nap(10000000);
    return arg;
}

static _Atomic bool too_late;

/* Keeps its worker until others have made progress. */
static void *block_until_ticks(void *arg) {
    for (uint64_t end = cc_now_ns() + 10000000000; ticks < 20 && !too_late; cc__thread_nap(10000000))
        if (cc_now_ns() > end) too_late = true;
    return arg;
}

/* All workers are blocked: only sysmon can add others. */
static void check_growth(void) {
    CCTask tasks[3];
    for (int i = 0; i < 2; i++) tasks[i] = cc_fiber_spawn_task(block_until_ticks, NULL);
    tasks[2] = cc_fiber_spawn_task(tick, NULL);
    for (int i = 0; i < 2; i++) CHECK_EQ(cc_task_join(&tasks[i], NULL), 0);
    stop = true;
    CHECK_EQ(cc_task_join(&tasks[2], NULL), 0);
    CHECK(!too_late);
}

static void check_shutdown(void) {
    uint64_t begin = cc_now_ns();
    CHECK_EQ(cc_runtime_shutdown(1000), 0);
    CHECK(cc_now_ns() - begin < UINT64_C(10000000000));
}

static void start(void) {
    CCRuntimeConfig config = {.workers = 2, .max_workers = 4};
    CHECK_EQ(setenv("CC_STALL_MS", "100", 1), 0);
    CHECK_EQ(cc_runtime_init(&config), 0);
}

TEST(a_stall_report) {
    start();
    int fd = full_pipe(), before = dup(2);
    CHECK_EQ(dup2(fd, 2), 2);
    CCTask task = cc_fiber_spawn_task(block, NULL); /* is reported */
    CHECK_EQ(cc_task_join(&task, NULL), 0);
    check_growth();
    check_shutdown();
    CHECK_EQ(dup2(before, 2), 2);
}

TEST(a_dump_by_a_signal) {
    start();
    int fd = full_pipe(), before = dup(2);
    CHECK_EQ(dup2(fd, 2), 2);
    CHECK_EQ(raise(SIGQUIT), 0);
    check_growth();
    check_shutdown();
    CHECK_EQ(dup2(before, 2), 2);
}

static void *dump_for_ever(void *file) {
    (void)cc_dump(file);
    return NULL;
}

TEST(a_dump_of_another_thread) {
    start();
    FILE *file = fdopen(full_pipe(), "w");
    pthread_t thread;
    CHECK(file != NULL);
    setbuf(file, NULL);
    CHECK_EQ(pthread_create(&thread, NULL, dump_for_ever, file), 0);
    cc__thread_nap(100000000);
    CHECK_EQ(raise(SIGQUIT), 0);
    check_growth();
    DONE();
    _exit(0); /* that thread is inside the runtime, for ever: no shutdown */
}
