/* sandbox.c - a program that restricts its own system calls: membarrier may be missing from the start, or be forbidden
 * later, if the program has configured that. */
#include "harness.h"

#include "../crew.h"
#include "chan/chan.h"
#include "lock/parking_lot.h"
#include "sync/barrier.h"

#include <ccc/ccc.h>
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

/* From now on membarrier fails so, in all threads of the process. */
static void forbid(uint32_t action) {
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_membarrier, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, action),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {.len = sizeof code / sizeof *code, .filter = code};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
        syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program) != 0)
        SKIP("the system has no seccomp filters");
}

static void kill_on_membarrier(void) {
    forbid(SECCOMP_RET_KILL_PROCESS);
}

/* ---- all that needs the heavy side ---- */

static CCChan *ch, *never;
static CCMutex mutex;
static long guarded;

/* Biased to its worker, until the thread revokes it. */
static void *moves_in(void *arg) {
    uint64_t value = 1;
    for (int i = 0; i < 200; i++) (void)cc_chan_send_try(ch, &value, sizeof value);
    CHECK(cc__get(&ch->bias) != 0 || !ch->may_bias);
    return arg;
}

static void *waits(void *arg) {
    uint64_t value;
    CHECK_EQ(cc_chan_recv(never, &value, sizeof value), ECANCELED);
    return arg;
}

/* 4096 unlocks without a waiter enable fast unlock, where that is possible. */
static void *enables_fast_unlock(void *arg) {
    for (int i = 0; i < 5000; i++) {
        CHECK_EQ(cc_mutex_lock(&mutex), 0);
        CHECK_EQ(cc_mutex_unlock(&mutex), 0);
    }
    return arg;
}

static void *spawns_and_computes(void *arg) {
    CCTask child[8];
    for (int i = 0; i < 8; i++) CHECK_EQ(cc_spawn(&child[i], enables_fast_unlock, NULL, NULL), 0);
    for (int i = 0; i < 8; i++) CHECK_EQ(cc_task_join(&child[i], NULL), 0);
    return arg;
}

static void contend(int index, void *arg) {
    (void)index, (void)arg;
    for (int i = 0; i < 200; i++) {
        CHECK_EQ(cc_mutex_lock(&mutex), 0);
        guarded++;
        if (i % 20 == 0) sched_yield();
        CHECK_EQ(cc_mutex_unlock(&mutex), 0);
    }
}

static void revoke_and_cancel(void) {
    uint64_t value;
    ch = cc_chan_create(sizeof value, 4);
    never = cc_chan_create(sizeof value, 0);
    CHECK_EQ(cc_run(moves_in, NULL, NULL), 0);
    CHECK_EQ(cc_chan_recv(ch, &value, sizeof value), 0);
    CCTask task;
    CHECK_EQ(cc_spawn(&task, waits, NULL, NULL), 0);
    CHECK_EQ(cc_task_cancel(&task), 0);
    CHECK_EQ(cc_task_join(&task, NULL), 0);
    cc_chan_free(ch);
    cc_chan_free(never);
}

static void use_everything(void) {
    revoke_and_cancel();
    CHECK_EQ(cc_run(enables_fast_unlock, NULL, NULL), 0);
    guarded = 0;
    crew_run(3, contend, NULL);
    CHECK_EQ(guarded, 3 * 200);
    CHECK_EQ(cc_run(spawns_and_computes, NULL, NULL), 0);
    CHECK_EQ(cc_runtime_shutdown(UINT64_MAX), 0);
}

static const CCRuntimeConfig without = {.workers = 2, .no_membarrier = true};

TEST(the_field_disables_the_call) {
    CHECK_EQ(cc_runtime_init(&without), 0);
    CHECK(!cc__barrier_asymmetric);
    kill_on_membarrier();
    use_everything();
}

TEST(the_variable_disables_the_call) {
    CHECK_EQ(setenv("CC_MEMBARRIER", "0", 1), 0);
    kill_on_membarrier(); /* not even asked for at the start */
    CHECK_EQ(cc_runtime_init(&(CCRuntimeConfig){.workers = 2}), 0);
    CHECK(!cc__barrier_asymmetric);
    use_everything();
}

TEST(a_filter_before_the_start_needs_no_switch) {
    forbid(SECCOMP_RET_ERRNO | EPERM);
    CHECK_EQ(cc_runtime_init(&(CCRuntimeConfig){.workers = 2}), 0);
    CHECK(!cc__barrier_asymmetric);
    use_everything();
}

static void start_with_membarrier(void) {
    CHECK_EQ(setenv("CC_MEMBARRIER", "1", 1), 0);
    CHECK_EQ(cc_runtime_init(&(CCRuntimeConfig){.workers = 2}), 0);
    if (!cc__barrier_asymmetric) SKIP("the system has no membarrier");
}

/* An earlier run of the runtime has left fast unlock enabled. */
TEST(a_later_run_without_it) {
    start_with_membarrier();
    CHECK_EQ(cc_run(enables_fast_unlock, NULL, NULL), 0);
    CHECK(cc__get(&cc__bucket_of(&mutex)->fast_unlock));
    CHECK_EQ(cc_runtime_shutdown(UINT64_MAX), 0);
    CHECK_EQ(cc_runtime_init(&without), 0);
    kill_on_membarrier();
    use_everything();
}

TEST_DIES(a_later_filter_is_named, "CC_MEMBARRIER=0 or CCRuntimeConfig.no_membarrier", .signal = SIGABRT) {
    start_with_membarrier();
    forbid(SECCOMP_RET_ERRNO | EPERM);
    revoke_and_cancel();
}
