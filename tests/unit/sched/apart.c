/* apart.c - a woken worker is kept off its waker's CPU (IDLE-9): for the moment of the wake, and no longer. */
#include "harness.h"

#include "base/attr.h"
#include "os/cpus.h"
#include "os/futex.h"
#include "os/thread.h"
#include "sched/sched.h"

#include <ccc/ccc.h>

#include <dirent.h>
#include <sched.h>
#include <stdlib.h>
#include <unistd.h>

static int cpus_of(int tid) {
    cpu_set_t set;
    CHECK_EQ(sched_getaffinity(tid, sizeof set, &set), 0);
    return CPU_COUNT(&set);
}

/* How many there are. Skips the case if this process may not use them all. */
static int all_cpus(void) {
#ifdef CC_TSAN
    SKIP("under the race detector no thread is kept off a CPU");
#endif
    int n = (int)sysconf(_SC_NPROCESSORS_ONLN);
    if (n < 2) SKIP("this machine has one CPU");
    if (cpus_of(0) != n) SKIP("this process may not use all CPUs");
    return n;
}

static void bind_to(int tid, int cpu) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET((size_t)cpu, &set);
    CHECK_EQ(sched_setaffinity(tid, sizeof set, &set), 0);
}

/* ---- a thread that sleeps, and lifts the restriction when it is woken ---- */

static struct {
    _Atomic uint32_t tid, go;
    bool kept_off;
    int cpu, cpus; /* which one it is kept off; how many it may use in the end */
    pthread_t thread;
} sleeper;

static void *sleeps(void *arg) {
    sleeper.tid = (uint32_t)cc__thread_id();
    while (sleeper.go == 0) cc__futex_wait(&sleeper.go, 0, UINT64_MAX);
    if (sleeper.kept_off) cc__thread_any_cpu(sleeper.cpu);
    sleeper.cpus = cpus_of(0);
    return arg;
}

static int start_sleeper(void) {
    CHECK_EQ(pthread_create(&sleeper.thread, NULL, sleeps, NULL), 0);
    while (sleeper.tid == 0) cc__thread_nap(100000);
    sleeper.cpu = cc__thread_on_cpu();
    return (int)sleeper.tid;
}

static int cpus_when_awake(void) {
    sleeper.go = 1;
    cc__futex_wake(&sleeper.go, 1);
    CHECK_EQ(pthread_join(sleeper.thread, NULL), 0);
    return sleeper.cpus;
}

TEST(for_the_moment_of_a_wake) {
    int n = all_cpus(), tid = start_sleeper();
    cpu_set_t set;
    CHECK(sleeper.kept_off = cc__thread_keep_off(tid, sleeper.cpu));
    CHECK_EQ(sched_getaffinity(tid, sizeof set, &set), 0);
    CHECK_EQ(CPU_COUNT(&set), n - 1);
    CHECK(!CPU_ISSET((size_t)sleeper.cpu, &set));
    CHECK(!cc__thread_keep_off(tid, sleeper.cpu)); /* it is already */
    CHECK_EQ(cpus_when_awake(), n);
}

TEST(the_programs_own_mask_stays) {
    int n = all_cpus(), tid = start_sleeper();
    bind_to(tid, 0);
    CHECK(!cc__thread_keep_off(tid, n - 1));
    CHECK_EQ(cpus_when_awake(), 1);
}

TEST(a_mask_that_is_set_meanwhile_stays) {
    (void)all_cpus();
    int tid = start_sleeper();
    CHECK(sleeper.kept_off = cc__thread_keep_off(tid, sleeper.cpu));
    bind_to(tid, sleeper.cpu);
    CHECK_EQ(cpus_when_awake(), 1);
}

/* While a thread is kept off, another call is refused: what was done is still undone. */
TEST(turned_off_meanwhile) {
    int n = all_cpus(), tid = start_sleeper();
    CHECK(sleeper.kept_off = cc__thread_keep_off(tid, sleeper.cpu));
    cc__thread_keep_off_configure(false);
    CHECK_EQ(cpus_when_awake(), n);
}

TEST(turned_off) {
    int n = all_cpus(), tid = start_sleeper();
    cc__thread_keep_off_configure(false);
    CHECK(!cc__thread_keep_off(tid, sleeper.cpu));
    CHECK_EQ(cpus_of(tid), n);
    CHECK_EQ(cpus_when_awake(), n);
}

TEST(not_a_cpu) {
    (void)all_cpus();
    int tid = start_sleeper();
    CHECK(!cc__thread_keep_off(tid, -1));
    CHECK(!cc__thread_keep_off(tid, 1 << 20));
    (void)cpus_when_awake();
}

/* ---- workers ---- */

enum { BURSTS = 100, TASKS = 8 };

static int n_cpus;
static _Atomic unsigned restricted, ran, woken;

static void *task(void *arg) {
    if (cpus_of(0) != n_cpus) restricted++;
    for (uint64_t end = cc_now_ns() + 50000; cc_now_ns() < end;) continue;
    ran++;
    return arg;
}

static void *bursts(void *arg) {
    for (int i = 0; i < BURSTS; i++) {
        cc__set(&cc__sched.idle.apart, UINT32_MAX); /* as if the last one had run on its waker's CPU */
        CHECK_EQ(cc_sleep_ms(1), 0);
        CC_NURSERY(n) {
            for (int k = 0; k < TASKS; k++) CHECK_EQ(cc_nursery_spawn(n, task, NULL), 0);
        }
        if (cc__get(&cc__sched.idle.apart) != UINT32_MAX) woken++;
    }
    return arg;
}

static void check_threads(void) {
    DIR *dir = opendir("/proc/self/task");
    CHECK(dir != NULL);
    for (struct dirent *e; (e = readdir(dir)) != NULL;)
        if (e->d_name[0] != '.') CHECK_EQ(cpus_of(atoi(e->d_name)), n_cpus);
    closedir(dir);
}

TEST(no_fiber_runs_restricted) {
    n_cpus = all_cpus();
    if (cc__cpus_usable() < 2) SKIP("the quota of this process is one CPU: no second worker is woken");
    CCRuntimeConfig config = {.workers = 4, .max_workers = 4};
    CHECK_EQ(cc_runtime_init(&config), 0);
    CHECK_EQ(cc_run(bursts, NULL, NULL), 0);
    CHECK_EQ(ran, BURSTS * TASKS);
    CHECK_EQ(restricted, 0);
    CHECK(woken > 0); /* some were kept apart; on a busy machine not in each burst */
    CHECK_EQ(cc_runtime_shutdown(10000), 0);
    check_threads();
}
