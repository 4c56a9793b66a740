/* variants: shared
 * debug_locks.c - CC_DEBUG_LOCKS=1: a fiber that waits while it holds a pthread mutex is reported, and no other. */
#include "child.h"
#include "where.h"

#include <ccc/ccc.h>

#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER, second = PTHREAD_MUTEX_INITIALIZER;
static CCChan *ch;
static struct child child;

static long times(const char *text, const char *word) {
    long n = 0;
    for (const char *at = text; (at = strstr(at, word)) != NULL; at += strlen(word)) n++;
    return n;
}

static CCTask start(const char *name, CCTaskFn fn, void *arg) {
    CCTask task;
    CHECK_EQ(cc_spawn(&task, fn, arg, &(CCSpawnOptions){.name = name}), 0);
    return task;
}

static void join(CCTask task) {
    CHECK_EQ(cc_task_join(&task, NULL), 0);
}

static void run(void (*body)(void *), void *arg) {
    if (UNDER_TSAN) SKIP("the race detector's functions are linked into the program");
    run_child(&child, body, arg);
    bool good = WIFEXITED(child.status) && WEXITSTATUS(child.status) == 0;
    if (!good) show_child(&child);
    CHECK(good);
}

/* Checks the report; if that fails, the case prints all of it. */
static void check_said(const char *text, bool expected) {
    if (said(&child, text) != expected) {
        printf("%ssaid: %s\n", expected ? "not " : "", text);
        show_child(&child);
    }
    CHECK(said(&child, text) == expected);
}

/* ---- one that waits with it ---- */

enum how { BY_LOCK, BY_TRYLOCK, BY_TIMEDLOCK, BY_CLOCKLOCK };

static int lock_somehow(enum how how) {
    struct timespec far = {.tv_sec = time(NULL) + 1000};
    switch (how) {
    case BY_TRYLOCK:
        return pthread_mutex_trylock(&mutex);
    case BY_TIMEDLOCK:
        return pthread_mutex_timedlock(&mutex, &far);
    case BY_CLOCKLOCK:
        return pthread_mutex_clocklock(&mutex, CLOCK_REALTIME, &far);
    default:
        return pthread_mutex_lock(&mutex);
    }
}

static CCEvent event;
static atomic_bool over;

static void *sets_again_and_again(void *arg) {
    while (!atomic_load(&over)) {
        CHECK_EQ(cc_event_set(&event), 0);
        cc_yield();
    }
    return arg;
}

/* On one worker this always waits: nobody sets the event before. A sleep might not wait, if its deadline has already
 * passed. */
static void wait_once(void) {
    CHECK_EQ(cc_event_reset(&event), 0);
    CHECK_EQ(cc_event_wait(&event), 0);
}

static void *waits_with_it(void *how) {
    CCTask other = start("other", sets_again_and_again, NULL);
    for (volatile int i = 0; i < 3; i++) { /* not unrolled: one place that locks */
        CHECK_EQ(lock_somehow((enum how)(intptr_t)how), 0);
        wait_once();
        wait_once();
        CHECK_EQ(pthread_mutex_unlock(&mutex), 0);
    }
    atomic_store(&over, true);
    join(other);
    return NULL;
}

/* One worker: it resumes on the same thread. */
static void one_waits(void *how) {
    setenv("CC_DEBUG_LOCKS", "1", 1);
    CHECK_EQ(cc_runtime_init(&(CCRuntimeConfig){.workers = 1, .max_workers = 1}), 0);
    join(start("holder", waits_with_it, how));
}

TEST(a_wait_with_a_mutex_is_reported_once) {
    for (intptr_t how = BY_LOCK; how <= BY_CLOCKLOCK; how++) {
        run(one_waits, (void *)how);
        check_said("'holder' held pthread mutex", true);
        check_said("across 2 waits\n", true);
        check_said("another OS thread", false);
        CHECK_EQ(times(child.output, "ccc: locks:"), 1);
    }
}

/* ---- on another thread ---- */

/* Hogs its worker until the other one has resumed, on any worker. */
struct meeting {
    CCEvent go;
    atomic_bool gone_on;
};

static void *hogs_worker(void *meeting) {
    struct meeting *m = meeting;
    cc_event_set(&m->go);
    while (!atomic_load(&m->gone_on)) {
    }
    return NULL;
}

/* If the other one hogs this worker, this fiber resumes on another; else it is tried again. */
static void *goes_elsewhere(void *unused) {
    for (bool moved = false; !moved;) {
        struct meeting m = {0};
        pid_t locked_on = gettid(); /* pthread_self is declared const: the compiler would call it once */
        CHECK_EQ(pthread_mutex_lock(&mutex), 0);
        CCTask other = start("hog", hogs_worker, &m);
        CHECK_EQ(cc_event_wait(&m.go), 0);
        atomic_store(&m.gone_on, true);
        moved = locked_on != gettid();
        CHECK_EQ(pthread_mutex_unlock(&mutex), 0);
        join(other);
    }
    return unused;
}

static void *computes(void *unused) {
    uint64_t until = cc_now_ns() + 5 * 1000 * 1000;
    while (cc_now_ns() < until) {
    }
    return unused;
}

static void one_moves(void *unused) {
    setenv("CC_DEBUG_LOCKS", "1", 1);
    CHECK_EQ(cc_runtime_init(&(CCRuntimeConfig){.workers = 4, .max_workers = 4}), 0);
    join(start("nomad", goes_elsewhere, unused));
}

TEST(the_report_mentions_another_thread) {
    run(one_moves, NULL);
    check_said("'nomad' held pthread mutex", true);
    check_said("on another OS thread, which is undefined", true);
}

/* ---- those that do nothing wrong ---- */

static void *locks_and_goes_on(void *unused) {
    pthread_mutex_t recursive;
    pthread_mutexattr_t attr;
    pthread_mutexattr_init(&attr);
    pthread_mutexattr_settype(&attr, PTHREAD_MUTEX_RECURSIVE);
    pthread_mutex_init(&recursive, &attr);
    for (int i = 0; i < 100; i++) {
        CHECK_EQ(pthread_mutex_lock(&mutex), 0);
        CHECK_EQ(pthread_mutex_unlock(&mutex), 0);
        CHECK_EQ(pthread_mutex_lock(&recursive), 0);
        CHECK_EQ(pthread_mutex_lock(&recursive), 0);
        CHECK_EQ(pthread_mutex_unlock(&recursive), 0);
        CHECK_EQ(pthread_mutex_unlock(&recursive), 0);
        CHECK_EQ(cc_sleep_ms(0), 0);
        cc_yield();
    }
    pthread_mutex_destroy(&recursive);
    return unused;
}

static void many_are_good(void *unused) {
    setenv("CC_DEBUG_LOCKS", "1", 1);
    CCTask tasks[8];
    for (int i = 0; i < 8; i++) tasks[i] = start("good", locks_and_goes_on, unused);
    for (int i = 0; i < 8; i++) join(tasks[i]);
    /* An OS thread may wait with one. */
    CHECK_EQ(pthread_mutex_lock(&mutex), 0);
    join(start("task", computes, NULL));
    CHECK_EQ(pthread_mutex_unlock(&mutex), 0);
}

TEST(others_are_not_reported) {
    run(many_are_good, NULL);
    check_said("ccc: locks:", false);
}

static void one_waits_unwatched(void *how) {
    join(start("holder", waits_with_it, how));
}

TEST(nothing_is_printed_unless_enabled) {
    setenv("CC_WORKERS", "1", 1);
    setenv("CC_MAX_WORKERS", "1", 1);
    run(one_waits_unwatched, (void *)(intptr_t)BY_LOCK);
    check_said("ccc: locks:", false);
}

/* ---- dumps ---- */

static void *receives_with_it(void *unused) {
    uint64_t v;
    CHECK_EQ(pthread_mutex_lock(&second), 0);
    (void)cc_chan_recv(ch, &v, sizeof v);
    CHECK_EQ(pthread_mutex_unlock(&second), 0);
    return unused;
}

static void deadlocked(void *unused) {
    (void)unused;
    setenv("CC_DEBUG_LOCKS", "1", 1);
    ch = cc_chan_create(sizeof(uint64_t), 1);
    join(start("hoarder", receives_with_it, NULL));
}

TEST(a_deadlock_report_lists_them) {
    if (under_qemu()) SKIP("qemu has its own threads in the process");
    if (UNDER_TSAN) SKIP("the race detector's functions are linked into the program");
    run_child(&child, deadlocked, NULL);
    check_said("'hoarder' waits to receive", true);
    check_said("holds pthread mutex", true);
    check_said("receives_with_it", true);
}

static void dumped(void *unused) {
    (void)unused;
    setenv("CC_DEBUG_LOCKS", "1", 1);
    CHECK_EQ(cc_runtime_init(&(CCRuntimeConfig){.workers = 1, .max_workers = 1}), 0);
    ch = cc_chan_create(sizeof(uint64_t), 0);
    CCTask task = start("hoarder", receives_with_it, NULL);
    uint64_t v = 1;
    while (pthread_mutex_trylock(&second) == 0) CHECK_EQ(pthread_mutex_unlock(&second), 0);
    join(start("later", computes, NULL)); /* on the same worker, which was free for it */
    CHECK_EQ(cc_dump(stderr), 0);
    CHECK_EQ(cc_chan_send(ch, &v, sizeof v), 0);
    join(task);
}

TEST(a_dump_lists_them) {
    run(dumped, NULL);
    check_said("'hoarder' waits to receive", true);
    check_said("holds pthread mutex", true);
}
