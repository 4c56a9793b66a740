/* elastic.c - workers are added when all are stuck and fibers wait, and retire when they are idle. */
#include "harness.h"

#include "../capture.h"
#include "os/thread.h"
#include "sched/elastic.h"
#include "sched/idle.h"
#include "sched/sysmon.h"

#include <ccc/ccc.h>

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MS UINT64_C(1000000)

static void start(unsigned workers, unsigned max) {
    CCRuntimeConfig config = {.workers = workers, .max_workers = max};
    CHECK_EQ(cc_runtime_init(&config), 0);
    CHECK_EQ(cc_worker_count(), workers);
}

static void stop(void) {
    CHECK_EQ(cc_runtime_shutdown(UINT64_MAX), 0);
}

static uint64_t gate_count(enum gate gate) {
    struct sysmon_stats stats;
    cc__sysmon_stats(&stats);
    return stats.gates[gate];
}

static void nap(void) {
    nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
}

/* ---- fibers that block their workers, in a read that another fiber has to end ---- */

enum { BLOCKERS_MAX = 64 };
static int pipes[BLOCKERS_MAX][2];
static atomic_int blocked;

static void *block(void *arg) {
    int *ends = arg;
    char byte;
    atomic_fetch_add(&blocked, 1);
    CHECK_EQ(read(ends[0], &byte, 1), 1);
    atomic_fetch_sub(&blocked, 1);
    return NULL;
}

static void spawn_blockers(CCTask *tasks, unsigned n) {
    for (unsigned i = 0; i < n; i++) {
        CHECK_EQ(pipe(pipes[i]), 0);
        CHECK_EQ(cc_spawn(&tasks[i], block, pipes[i], NULL), 0);
    }
    while (atomic_load(&blocked) != (int)n) nap(); /* every worker is blocked in a read */
}

static void *unblock(void *arg) {
    for (unsigned i = 0; i < (unsigned)(uintptr_t)arg; i++) CHECK_EQ(write(pipes[i][1], "x", 1), 1);
    return NULL;
}

static void join_all(CCTask *tasks, unsigned n) {
    for (unsigned i = 0; i < n; i++) {
        CHECK_EQ(cc_task_join(&tasks[i], NULL), 0);
        close(pipes[i][0]);
        close(pipes[i][1]);
    }
}

static void await_base(void) {
    while (cc_worker_count() != cc__sched.base || cc__elastic_grown() != cc__elastic_retired()) nap();
}

static const unsigned sizes[] = {1, 2, 3, 8, 16};

/* The fiber that ends the reads is spawned by an OS thread, and is in an inbox. Without another worker it never runs.
 */
TEST(others_run_while_all_workers_block) {
    for (unsigned k = 0; k < sizeof sizes / sizeof *sizes; k++) {
        unsigned n = sizes[k];
        CCTask tasks[BLOCKERS_MAX];
        cc__elastic_set_retire(20 * MS);
        start(n, 2 * n);
        spawn_blockers(tasks, n);
        CHECK_EQ(cc_run(unblock, (void *)(uintptr_t)n, NULL), 0);
        CHECK(cc__elastic_grown() > 0);
        CHECK(cc_worker_count() <= 2 * n);
        join_all(tasks, n);
        await_base();
        stop();
    }
}

/* One fewer than the limit of workers block: workers are added until one is left to run fibers. */
TEST(grows_up_to_the_limit) {
    CCTask tasks[BLOCKERS_MAX];
    unsigned n = 7;
    start(2, n + 1);
    spawn_blockers(tasks, n); /* returns when all are in their reads: two workers alone would take for ever */
    CHECK_EQ(cc_run(unblock, (void *)(uintptr_t)n, NULL), 0);
    CHECK_EQ(cc_worker_count(), n + 1);
    join_all(tasks, n);
    stop();
}

static atomic_int parts;

static void *count_part(void *arg) {
    atomic_fetch_add(&parts, 1);
    return arg;
}

/* The waiting fibers are in the local queue of a blocked worker. */
static void *spawn_and_block(void *arg) {
    for (int i = 0; i < 100; i++) CHECK_EQ(cc_spawn(NULL, count_part, NULL, NULL), 0);
    CHECK_EQ(cc_spawn(NULL, unblock, (void *)1, NULL), 0);
    return block(arg);
}

TEST(a_blocked_workers_own_queue_is_run) {
    start(1, 2);
    CHECK_EQ(pipe(pipes[0]), 0);
    CHECK_EQ(cc_run(spawn_and_block, pipes[0], NULL), 0);
    stop();
    CHECK_EQ(atomic_load(&parts), 100);
}

/* Nothing waits but a timer. */
static void *sleep_and_unblock(void *arg) {
    CHECK_EQ(cc_sleep_ms(5), 0);
    return unblock(arg);
}

TEST(a_timer_fires_while_all_workers_block) {
    for (unsigned n = 1; n <= 4; n++) {
        CCTask tasks[BLOCKERS_MAX], sleeper;
        start(n, 2 * n);
        for (unsigned i = 0; i < n; i++) CHECK_EQ(pipe(pipes[i]), 0);
        CHECK_EQ(cc_spawn(&sleeper, sleep_and_unblock, (void *)(uintptr_t)n, NULL), 0);
        for (unsigned i = 0; i < n; i++) CHECK_EQ(cc_spawn(&tasks[i], block, pipes[i], NULL), 0);
        CHECK_EQ(cc_task_join(&sleeper, NULL), 0);
        join_all(tasks, n);
        stop();
    }
}

/* ---- when there are not more ---- */

static atomic_bool released;

static void *compute(void *arg) {
    atomic_fetch_add(&blocked, 1);
    while (!atomic_load(&released)) {
    }
    atomic_fetch_sub(&blocked, 1);
    return arg;
}

/* They delay nobody. */
TEST(computing_alone_adds_no_worker) {
    CCTask tasks[2];
    start(2, 4);
    for (int i = 0; i < 2; i++) CHECK_EQ(cc_spawn(&tasks[i], compute, NULL, NULL), 0);
    while (atomic_load(&blocked) != 2) nap();
    uint64_t before = gate_count(GATE_NO_WORK);
    while (gate_count(GATE_NO_WORK) < before + 10) nap(); /* ten polls found that nothing waits */
    CHECK_EQ(cc__elastic_grown(), 0);
    atomic_store(&released, true);
    for (int i = 0; i < 2; i++) CHECK_EQ(cc_task_join(&tasks[i], NULL), 0);
    stop();
}

static void *release(void *arg) {
    atomic_store(&released, true);
    return arg;
}

static void compute_in_front_of_others(void) {
    CCTask tasks[2];
    start(2, 4);
    for (int i = 0; i < 2; i++) CHECK_EQ(cc_spawn(&tasks[i], compute, NULL, NULL), 0);
    while (atomic_load(&blocked) != 2) nap();
    CHECK_EQ(cc_run(release, NULL, NULL), 0);
    CHECK(cc__elastic_grown() > 0);
    for (int i = 0; i < 2; i++) CHECK_EQ(cc_task_join(&tasks[i], NULL), 0);
    stop();
}

/* They do: the fiber that would end them never gets a turn. */
TEST(computing_in_front_of_others_does) {
    compute_in_front_of_others();
}

static void *compute_beside(void *arg) {
    while (!atomic_load(&released)) {
    }
    return arg;
}

/* The workers get a small share of the CPU, and what they use of it still counts as computing. */
TEST(computing_on_a_busy_machine_does) {
    enum { MANY = 24 };
    pthread_t threads[MANY];
    cpu_set_t all, one;
    CHECK_EQ(sched_getaffinity(0, sizeof all, &all), 0);
    CPU_ZERO(&one);
    for (int i = 0; i < CPU_SETSIZE && CPU_COUNT(&one) == 0; i++)
        if (CPU_ISSET(i, &all)) CPU_SET(i, &one);
    CHECK_EQ(sched_setaffinity(0, sizeof one, &one), 0);
    for (int i = 0; i < MANY; i++) CHECK_EQ(pthread_create(&threads[i], NULL, compute_beside, NULL), 0);
    compute_in_front_of_others();
    for (int i = 0; i < MANY; i++) CHECK_EQ(pthread_join(threads[i], NULL), 0);
}

TEST(a_fixed_pool_stays_as_it_is) {
    CCTask tasks[2], other;
    start(2, 2);
    spawn_blockers(tasks, 2);
    atomic_store(&parts, 0);
    CHECK_EQ(cc_spawn(&other, count_part, NULL, NULL), 0);
    while (gate_count(GATE_AT_CAP) < 5) nap(); /* sysmon has seen it, and may not add one */
    CHECK_EQ(cc_worker_count(), 2);
    CHECK_EQ(atomic_load(&parts), 0);
    (void)unblock((void *)2);
    join_all(tasks, 2);
    CHECK_EQ(cc_task_join(&other, NULL), 0);
    CHECK_EQ(cc__elastic_grown(), 0);
    stop();
}

/* An added worker stays while it is the only one that sleeps, because it is the timer sleeper for the others. It does
 * not try to retire at each tick, for then it would search all queues each time. */
TEST(the_only_sleeper_does_not_try_to_retire) {
    CCTask tasks[1];
    CCStats before, after;
    cc__elastic_set_retire(5 * MS);
    start(1, 2);
    spawn_blockers(tasks, 1);
    CHECK_EQ(cc_run(count_part, NULL, NULL), 0); /* by the added one */
    for (int i = 0; i < 50; i++) nap();
    CHECK_EQ(cc_stats(&before, sizeof before), 0);
    for (int i = 0; i < 200; i++) nap();
    CHECK_EQ(cc_stats(&after, sizeof after), 0);
    CHECK_EQ(cc_worker_count(), 2);
    CHECK(after.sleeps - before.sleeps < 20);
    (void)unblock((void *)1);
    join_all(tasks, 1);
    await_base();
    stop();
}

/* ---- what is left of a worker that has retired ---- */

static atomic_int on_extra;

/* Runs on an added worker, arms a timer there, and is to be woken when the worker is gone. */
static void *sleep_on_an_extra_worker(void *arg) {
    while (cc__worker()->core.owner <= cc__sched.base) cc_yield();
    atomic_fetch_add(&on_extra, 1);
    CHECK_EQ(cc_sleep_ms((uint64_t)(uintptr_t)arg), 0);
    return NULL;
}

TEST(timers_of_a_retired_worker_fire) {
    CCTask tasks[1], sleeper;
    cc__elastic_set_retire(5 * MS);
    start(1, 2);
    spawn_blockers(tasks, 1);
    CHECK_EQ(cc_spawn(&sleeper, sleep_on_an_extra_worker, (void *)300, NULL), 0);
    while (atomic_load(&on_extra) == 0) nap();
    (void)unblock((void *)1);
    join_all(tasks, 1);
    await_base();
    CHECK_EQ(cc_task_join(&sleeper, NULL), 0);
    stop();
}

/* The system may give the number of its thread to one of the program's, which the deadlock detector would take for a
 * worker; and a dump must not say that it looks for work. */
TEST(a_retired_worker_has_no_thread) {
    CCTask tasks[1];
    char *text = NULL;
    size_t size;
    cc__elastic_set_retire(5 * MS);
    start(1, 2);
    spawn_blockers(tasks, 1);
    CHECK_EQ(cc_run(unblock, (void *)1, NULL), 0);
    join_all(tasks, 1);
    await_base();
    while (cc__get(&cc__sched.workers[1].remote.tid) != 0) nap(); /* until the thread has ended */
    FILE *file = open_memstream(&text, &size);
    CHECK_EQ(cc_dump(file), 0);
    fclose(file);
    CHECK(contains(text, "ccc: dump: 1 worker, 0 fibers\n"));
    CHECK(contains(text, "\nworker 1 has no thread now; 0 in its queue"));
    free(text);
    stop();
}

static void *wait_on_an_extra_worker(void *arg) {
    while (cc__worker()->core.owner <= cc__sched.base) cc_yield();
    atomic_fetch_add(&on_extra, 1);
    CCChan *chan = arg;
    int value = 0;
    CHECK_EQ(cc_chan_recv(chan, &value, sizeof value), 0);
    CHECK_EQ(value, 42);
    return NULL;
}

/* A thread wakes a fiber whose last worker has retired. */
TEST(fibers_of_a_retired_worker_are_woken) {
    CCTask tasks[1], waiter;
    CCChan *chan = NULL;
    cc__elastic_set_retire(5 * MS);
    start(1, 2);
    CHECK((chan = cc_chan_create(sizeof(int), 0)) != NULL);
    spawn_blockers(tasks, 1);
    CHECK_EQ(cc_spawn(&waiter, wait_on_an_extra_worker, chan, NULL), 0);
    while (atomic_load(&on_extra) == 0) nap();
    (void)unblock((void *)1);
    join_all(tasks, 1);
    await_base();
    int value = 42;
    CHECK_EQ(cc_chan_send(chan, &value, sizeof value), 0);
    CHECK_EQ(cc_task_join(&waiter, NULL), 0);
    cc_chan_free(chan);
    stop();
}

/* ---- an added worker is like the others ---- */

static void *look_at_signals(void *arg) {
    sigset_t *blocked_there = arg;
    while (cc__worker()->core.owner <= cc__sched.base) cc_yield();
    CHECK_EQ(pthread_sigmask(SIG_BLOCK, NULL, blocked_there), 0);
    return NULL;
}

TEST(a_new_worker_has_the_same_signal_mask) {
    CCTask tasks[1];
    sigset_t some, there;
    sigemptyset(&some);
    sigaddset(&some, SIGUSR1);
    CHECK_EQ(pthread_sigmask(SIG_SETMASK, &some, NULL), 0);
    start(1, 2);
    spawn_blockers(tasks, 1);
    CHECK_EQ(cc_run(look_at_signals, &there, NULL), 0);
    CHECK_EQ(sigismember(&there, SIGUSR1), 1);
    CHECK_EQ(sigismember(&there, SIGUSR2), 0);
    CHECK_EQ(sigismember(&there, SIGTERM), 0);
    (void)unblock((void *)1);
    join_all(tasks, 1);
    stop();
}

/* ---- where the system does not tell what a thread does ---- */

TEST(others_run_while_all_are_stuck_unknown_why) {
    CCTask tasks[BLOCKERS_MAX];
    cc__thread_state_hide(true);
    start(2, 4);
    spawn_blockers(tasks, 2);
    CHECK_EQ(cc_run(unblock, (void *)2, NULL), 0);
    CHECK(cc__elastic_grown() > 0);
    join_all(tasks, 2);
    stop();
    cc__thread_state_hide(false);
}

static atomic_bool yields;

static void *yield_on(void *arg) {
    while (atomic_load(&yields)) cc_yield();
    return arg;
}

/* One worker is stuck for an unknown reason, and the other one makes progress: no CPU is known to be free. */
TEST(unknown_is_not_blocked) {
    enum { YIELDERS = 4 };
    CCTask blocker[1], tasks[YIELDERS];
    cc__sysmon_set_pace(1000 * MS, 10 * MS); /* even a busy machine does not preempt a worker for that long */
    cc__thread_state_hide(true);
    atomic_store(&yields, true);
    start(2, 4);
    spawn_blockers(blocker, 1);
    for (int i = 0; i < YIELDERS; i++) CHECK_EQ(cc_spawn(&tasks[i], yield_on, NULL, NULL), 0);
    while (gate_count(GATE_PROGRESS) < 2 && cc__elastic_grown() == 0) nap();
    CHECK_EQ(cc__elastic_grown(), 0);
    atomic_store(&yields, false);
    for (int i = 0; i < YIELDERS; i++) CHECK_EQ(cc_task_join(&tasks[i], NULL), 0);
    CHECK_EQ(cc_run(unblock, (void *)1, NULL), 0);
    join_all(blocker, 1);
    stop();
    cc__thread_state_hide(false);
    cc__sysmon_set_pace(10 * MS, 10 * MS);
}

/* ---- what it says ---- */

TEST(explains_itself) {
    CCTask tasks[1];
    CHECK_EQ(setenv("CC_DEBUG_SYSMON", "1", 1), 0);
    CHECK_EQ(setenv("CC_PRESSURE_STATS_DUMP", "1", 1), 0);
    cc__elastic_set_retire(5 * MS);
    static struct capture capture;
    capture_start(&capture);
    start(1, 2);
    spawn_blockers(tasks, 1);
    CHECK_EQ(cc_run(unblock, (void *)1, NULL), 0);
    join_all(tasks, 1);
    await_base();
    stop();
    const char *said = capture_end(&capture);
    CHECK(contains(said, "added 1, now 2"));
    CHECK(contains(said, "worker 1 retires"));
    CHECK(contains(said, "none added: "));
    CHECK(contains(said, "pressure: positive_samples "));
    CHECK(contains(said, "workers 1 of 1 to 2"));
    CHECK(contains(said, "gate_blocks: no_work "));
}

/* ---- limits, start and end ---- */

TEST(limits) {
    CCRuntimeConfig config = {.workers = 4, .max_workers = 3};
    CHECK_EQ(cc_runtime_init(&config), EINVAL);
    config = (CCRuntimeConfig){.max_workers = CC_WORKERS_MAX + 1};
    CHECK_EQ(cc_runtime_init(&config), EINVAL);
    unsetenv("CC_MAX_WORKERS");
    config = (CCRuntimeConfig){.workers = 3};
    CHECK_EQ(cc_runtime_init(&config), 0);
    CHECK_EQ(cc__sched.max, 6);
    stop();
    CHECK_EQ(setenv("CC_MAX_WORKERS", "5", 1), 0);
    CHECK_EQ(cc_runtime_init(&config), 0);
    CHECK_EQ(cc__sched.max, 5);
    stop();
    CHECK_EQ(setenv("CC_MAX_WORKERS", "2", 1), 0); /* fewer than there are: a fixed pool */
    CHECK_EQ(cc_runtime_init(&config), 0);
    CHECK_EQ(cc__sched.base, 3);
    CHECK_EQ(cc__sched.max, 3);
    stop();
    CHECK_EQ(setenv("CC_WORKERS", "3", 1), 0); /* a number that the environment asks for is that number */
    unsetenv("CC_MAX_WORKERS");
    CHECK_EQ(cc_runtime_init(NULL), 0);
    CHECK_EQ(cc__sched.base, 3);
    CHECK_EQ(cc__sched.max, 3);
    stop();
    CHECK_EQ(setenv("CC_MAX_WORKERS", "5", 1), 0); /* unless it allows more */
    CHECK_EQ(cc_runtime_init(NULL), 0);
    CHECK_EQ(cc__sched.max, 5);
    stop();
    CHECK_EQ(setenv("CC_MAX_WORKERS", "2", 1), 0);
    CHECK_EQ(setenv("CC_WORKERS", "8", 1), 0);
    config = (CCRuntimeConfig){.max_workers = 4}; /* the caller's limit also bounds the environment's setting */
    CHECK_EQ(cc_runtime_init(&config), 0);
    CHECK_EQ(cc__sched.base, 4);
    CHECK_EQ(cc__sched.max, 4);
    stop();
    config = (CCRuntimeConfig){.workers = CC_WORKERS_MAX};
    unsetenv("CC_MAX_WORKERS");
    if (test_scale(2) == 2) {
        CHECK_EQ(cc_runtime_init(&config), 0);
        CHECK_EQ(cc__sched.max, CC_WORKERS_MAX);
        stop();
    }
}

/* Shutdown comes at any moment of growing and retiring. */
TEST(start_and_stop_while_growing) {
    uint64_t random = test_seed();
    cc__sysmon_set_pace(MS / 5, MS / 5);
    for (long round = 0; round < test_rounds(60, 3000); round++) {
        CCTask tasks[BLOCKERS_MAX];
        unsigned n = 1 + (unsigned)(test_random(&random) % 3);
        cc__elastic_set_retire(test_random(&random) % 2 ? 0 : MS);
        start(n, 3 * n);
        spawn_blockers(tasks, n);
        CHECK_EQ(cc_spawn(NULL, unblock, (void *)(uintptr_t)n, NULL), 0);
        for (uint64_t i = test_random(&random) % 8; i > 0; i--) CHECK_EQ(cc_spawn(NULL, count_part, NULL, NULL), 0);
        join_all(tasks, n);
        stop();
        CHECK_EQ(cc_worker_count(), 0);
    }
}

/* An exit handler that is older than the runtime's, so it runs after that. */
static void no_thread_left_to_join(void) {
    for (unsigned i = 0; i < cc__get(&cc__sched.count); i++)
        if (cc__get(&cc__sched.workers[i].remote.status) == WORKER_CLOSED) _exit(1);
    _exit(42);
}

/* ELASTIC-5. The program ends without a shutdown: no thread that has retired stays unjoined, which the race detector
 * would call a leak, and those that idle now do not retire any more. */
TEST(an_exit_joins_the_retired) {
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        CCTask tasks[BLOCKERS_MAX];
        CHECK_EQ(atexit(no_thread_left_to_join), 0);
        cc__elastic_set_retire(0);
        start(2, 8);
        spawn_blockers(tasks, 2);
        CHECK_EQ(cc_run(unblock, (void *)2, NULL), 0);
        join_all(tasks, 2);
        await_base();
        CHECK(cc__elastic_retired() > 0);
        exit(0);
    }
    int status;
    CHECK_EQ(waitpid(child, &status, 0), child);
    CHECK(WIFEXITED(status));
    CHECK_EQ(WEXITSTATUS(status), 42);
}
