/* realtime.c - a thread at real-time priority waits for a worker that it has preempted inside the biased lock. It has
 * to sleep for that: sched_yield does not let a thread of lower priority run. */
#include "alone.h"
#include "harness.h"

#include "chan/chan.h"
#include "sched/sched.h"

#include <ccc/ccc.h>
#include <errno.h>
#include <sched.h>
#include <time.h>

static CCChan *ch, *never;
static _Atomic bool is_inside, may_leave, has_begun;

/* Enters its worker's biased lock and stays inside until the other thread is about to wait and has the CPU. */
static void *stays_inside(void *arg) {
    uint64_t value = 1;
    for (int i = 0; i < 200; i++) (void)cc_chan_send_try(ch, &value, sizeof value);
    struct worker *w = cc__worker();
    cc__bias_enter(&w->runq.bias);
    cc__set_release(&is_inside, true);
    while (!cc__get_acquire(&may_leave)) {
    }
    cc__bias_leave(&w->runq.bias);
    return arg;
}

static void *waits(void *arg) {
    uint64_t value;
    cc__set_release(&has_begun, true);
    CHECK_EQ(cc_chan_recv(never, &value, sizeof value), ECANCELED);
    return arg;
}

static void *nothing(void *arg) {
    return arg;
}

static void share_one_cpu(void) {
    cpu_set_t all, one;
    CHECK_EQ(sched_getaffinity(0, sizeof all, &all), 0);
    int cpu = 0;
    while (!CPU_ISSET(cpu, &all)) cpu++;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    CHECK_EQ(sched_setaffinity(0, sizeof one, &one), 0);
}

static void become_realtime(void) {
    be_alone();
    if (sched_setscheduler(0, SCHED_FIFO | SCHED_RESET_ON_FORK, &(struct sched_param){.sched_priority = 1}) != 0)
        SKIP("real-time priority is not permitted here");
}

static long long cpu_ms(void) {
    struct timespec ts;
    CHECK_EQ(clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts), 0);
    return ts.tv_sec * 1000LL + ts.tv_nsec / 1000000;
}

static void nap(void) {
    (void)nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
}

static CCTask inside, parked;

/* The worker is inside, ready, and on the same CPU. */
static void let_worker_in(void) {
    share_one_cpu();
    ch = cc_chan_create(sizeof(uint64_t), 4);
    never = cc_chan_create(sizeof(uint64_t), 0);
    CHECK_EQ(cc_runtime_init(&(CCRuntimeConfig){.workers = 1, .max_workers = 1}), 0);
    CHECK_EQ(cc_spawn(&parked, waits, NULL, NULL), 0);
    while (!cc__get_acquire(&has_begun)) nap();
    CHECK_EQ(cc_run(nothing, NULL, NULL), 0); /* by then it has parked: there is one worker */
    CHECK_EQ(cc_spawn(&inside, stays_inside, NULL, NULL), 0);
    while (!cc__get_acquire(&is_inside)) nap();
    become_realtime();
    cc__set_release(&may_leave, true);
}

/* The kernel takes the CPU away from a real-time thread after 950 ms, and so ends what would otherwise last for ever.
 * What counts is the time that we have used, whatever else runs on this machine. */
static void check_slept(long long before) {
    long long used = cpu_ms() - before;
    CHECK(used < 300);
    CHECK_EQ(cc_task_join(&inside, NULL), 0);
    (void)cc_task_cancel(&parked);
    CHECK_EQ(cc_task_join(&parked, NULL), 0);
    CHECK_EQ(sched_setscheduler(0, SCHED_OTHER, &(struct sched_param){0}), 0);
    CHECK_EQ(cc_runtime_shutdown(UINT64_MAX), 0);
    cc_chan_free(ch);
    cc_chan_free(never);
}

TEST(revoking) {
    uint64_t value;
    let_worker_in();
    if (!ch->may_bias) SKIP("channels are never biased here");
    long long before = cpu_ms();
    CHECK_EQ(cc_chan_recv_try(ch, &value, sizeof value), 0);
    check_slept(before);
}

TEST(cancelling) {
    let_worker_in();
    long long before = cpu_ms();
    CHECK_EQ(cc_task_cancel(&parked), 0);
    check_slept(before);
}
