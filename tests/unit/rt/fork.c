/* fork.c - a child process that was forked before the runtime started may use it; one forked later may exec or exit,
 * and gets an error message if it does more. */
#include "harness.h"

#include "../capture.h"
#include "lock/parking_lot.h"

#include <ccc/ccc.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static void *give_back(void *arg) {
    return arg;
}

static int status_of(pid_t child) {
    int status;
    CHECK(child > 0);
    CHECK_EQ(waitpid(child, &status, 0), child);
    return status;
}

TEST_WORKERS(before_the_start) {
    pid_t child = test_fork();
    if (child == 0) {
        int rc = cc_run(give_back, NULL, NULL);
        _exit(rc == 0 && cc_runtime_shutdown(UINT64_MAX) == 0 ? 7 : 1);
    }
    CHECK_EQ(cc_run(give_back, NULL, NULL), 0);
    int status = status_of(child);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 7);
}

/* After a shutdown it is as before the start. */
TEST_WORKERS(after_the_end) {
    CHECK_EQ(cc_run(give_back, NULL, NULL), 0);
    CHECK_EQ(cc_runtime_shutdown(UINT64_MAX), 0);
    pid_t child = test_fork();
    if (child == 0) _exit(cc_run(give_back, NULL, NULL) == 0 ? 7 : 1);
    int status = status_of(child);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 7);
    CHECK_EQ(cc_run(give_back, NULL, NULL), 0);
}

/* Each call that would need the workers reports why it fails. */
static void use_in_child(int call) {
    CCTask task = {1}, copy;
    switch (call) {
    case 0:
        (void)cc_run(give_back, NULL, NULL);
        break;
    case 1:
        (void)cc_fiber_spawn_task(give_back, NULL);
        break;
    case 2:
        (void)cc_task_join(&task, NULL);
        break;
    case 3:
        (void)cc_task_detach(&task);
        break;
    case 4:
        (void)cc_task_dup(&task, &copy);
        break;
    case 5:
        (void)cc_runtime_init(NULL);
        break;
    case 6:
        (void)cc_runtime_shutdown(0);
        break;
    default:
        (void)cc_worker_count();
        break;
    }
}

TEST(use_in_the_child) {
    static struct capture capture;
    CHECK_EQ(cc_run(give_back, NULL, NULL), 0);
    for (int call = 0; call < 8; call++) {
        capture_start(&capture);
        pid_t child = test_fork();
        if (child == 0) {
            use_in_child(call);
            _exit(0);
        }
        int status = status_of(child);
        const char *said = capture_end(&capture);
        CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
        CHECK(contains(said, "after fork"));
    }
    CHECK_EQ(cc_run(give_back, NULL, NULL), 0); /* the parent is not affected */
}

/* Calls that need no worker work. */
static void *fork_and_look(void *arg) {
    pid_t child = test_fork();
    if (child == 0) _exit(!cc_in_fiber() && cc_fiber_id() == 0 && cc_sleep_ms(1) == 0 && cc_now_ns() > 0 ? 7 : 1);
    int status = status_of(child);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 7);
    return arg;
}

TEST_WORKERS(harmless_calls_in_the_child) {
    CHECK_EQ(cc_run(fork_and_look, NULL, NULL), 0);
    (void)fork_and_look(NULL);
    CHECK_EQ(cc_run(give_back, NULL, NULL), 0);
}

static void *fork_and_exec(void *arg) {
    pid_t child = fork();
    if (child == 0) {
        execl("/bin/sh", "sh", "-c", "exit 9", (char *)NULL);
        _exit(1);
    }
    int status = status_of(child);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 9);
    return arg;
}

TEST_WORKERS(exec_in_the_child) {
    CCTask tasks[10];
    for (int i = 0; i < 10; i++) tasks[i] = cc_fiber_spawn_task(fork_and_exec, NULL);
    for (int i = 0; i < 10; i++) CHECK_EQ(cc_task_join(&tasks[i], NULL), 0);
}

/* ---- descriptors ---- */

static void *read_a_byte(void *pipe) {
    char byte;
    size_t n = 0;
    CHECK_EQ(cc_fd_read(((int *)pipe)[0], &byte, 1, &n), 0);
    CHECK_EQ(n, 1);
    return NULL;
}

/* The child has the parent's poller, and must not touch it; the waiters belong to the parent. */
TEST_WORKERS(a_descriptor_closed_in_the_child) {
    int ends[2];
    size_t n;
    CHECK_EQ(pipe(ends), 0);
    CHECK_EQ(cc_fd_adopt(ends[0]), 0);
    CCTask reader = cc_fiber_spawn_task(read_a_byte, ends);
    while (cc_io_waiters() == 0) sched_yield();
    pid_t child = test_fork();
    if (child == 0) _exit(cc_io_waiters() == 0 && cc_fd_close(ends[0]) == 0 ? 7 : 1);
    int status = status_of(child);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 7);
    CHECK_EQ(cc_fd_write(ends[1], "x", 1, &n), 0);
    CHECK_EQ(cc_task_join(&reader, NULL), 0);
    CHECK_EQ(cc_fd_close(ends[0]), 0);
    CHECK_EQ(cc_fd_close(ends[1]), 0);
}

/* ---- a lock that is held across the fork ---- */

static CCMutex kept;

static void *want_it(void *arg) {
    if (cc_mutex_lock(&kept) != 0) return NULL;
    (void)cc_mutex_unlock(&kept);
    return arg;
}

/* In the child, whose only thread holds the lock: a dump says so. */
static bool dump_while_one_waits(void) {
    char *text = NULL, holder[64];
    size_t size;
    CCTask task;
    void *result = NULL;
    FILE *file = open_memstream(&text, &size);
    if (file == NULL || cc_spawn(&task, want_it, &kept, NULL) != 0) return false;
    while (cc__get(&cc__bucket_of(&kept)->heads) == NULL) sched_yield();
    if (cc_dump(file) != 0 || fclose(file) != 0) return false;
    snprintf(holder, sizeof holder, "held by OS thread %d", (int)getpid());
    bool named = contains(text, holder) && !contains(text, "which has ended");
    if (!named) fputs(text, stderr);
    free(text);
    return named && cc_mutex_unlock(&kept) == 0 && cc_task_join(&task, &result) == 0 && result == &kept;
}

TEST_WORKERS(a_lock_that_is_held_across_the_fork) {
    CHECK_EQ(cc_mutex_lock(&kept), 0);
    pid_t child = test_fork();
    if (child == 0) _exit(dump_while_one_waits() ? 7 : 1);
    int status = status_of(child);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 7);
    CHECK_EQ(cc_mutex_unlock(&kept), 0);
}

/* ---- the runtime is stopped, and threads are in the middle of something ---- */

static CCMutex contended;
static atomic_bool busy, inside, over;
static atomic_int have_waited;

/* Holds a lock of the library's while the process forks. */
static void *hold_a_bucket(void *unused) {
    struct bucket *bucket = cc__bucket_of(&contended);
    cc__lock_take(&bucket->lock);
    atomic_store(&inside, true);
    while (!atomic_load(&over)) sched_yield();
    cc__lock_release(&bucket->lock);
    return unused;
}

static void *wait_again_and_again(void *ch) {
    char byte;
    CHECK_EQ(cc_chan_recv_until(ch, &byte, 1, cc_after_ns(1000)), ETIMEDOUT);
    atomic_fetch_add(&have_waited, 1);
    while (atomic_load(&busy)) (void)cc_chan_recv_until(ch, &byte, 1, cc_after_ns(1000));
    return NULL;
}

static void *change_keys(void *unused) {
    CCLocalKey key;
    while (atomic_load(&busy))
        if (cc_local_key_create(&key, NULL) == 0) CHECK_EQ(cc_local_key_delete(key), 0);
    return unused;
}

static void *change_hook(void *unused) {
    while (atomic_load(&busy)) cc_on_deadlock(NULL, NULL);
    return unused;
}

static int shared[2]; /* a pipe */

static void *change_descriptor(void *unused) {
    while (atomic_load(&busy)) {
        CHECK_EQ(cc_fd_adopt(shared[0]), 0);
        CHECK_EQ(cc_fd_release(shared[0]), 0);
    }
    return unused;
}

/* The calls that the threads were in work, and so does a runtime. */
static void change_all(void) {
    CCLocalKey key;
    size_t n;
    alarm(20);
    CHECK_EQ(cc_local_key_create(&key, NULL), 0);
    cc_on_deadlock(NULL, NULL);
    CHECK_EQ(cc_fd_adopt(shared[0]), 0);
    CHECK_EQ(cc_fd_write(shared[1], "x", 1, &n), 0);
    CHECK_EQ(cc_run(read_a_byte, shared, NULL), 0);
    CHECK_EQ(cc_fd_close(shared[0]), 0);
    CHECK_EQ(cc_runtime_shutdown(UINT64_MAX), 0);
    _exit(7);
}

TEST(while_threads_change_things, .timeout = 120) {
#ifdef CC_TSAN
    SKIP("the race detector allows no threads in a child of a multi-threaded process");
#endif
#ifdef CC_ASAN
    SKIP("a child hangs in the address sanitizer's allocator, if another thread was in there");
#endif
    void *(*const changes[])(void *) = {change_keys, change_hook, change_descriptor};
    pthread_t threads[3];
    CHECK_EQ(pipe(shared), 0);
    atomic_store(&busy, true);
    for (int i = 0; i < 3; i++) CHECK_EQ(pthread_create(&threads[i], NULL, changes[i], NULL), 0);
    for (long i = 0; i < test_rounds(200, 2000); i++) {
        pid_t pid = fork();
        if (pid == 0) change_all();
        int status = status_of(pid);
        CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 7);
    }
    atomic_store(&busy, false);
    for (int i = 0; i < 3; i++) CHECK_EQ(pthread_join(threads[i], NULL), 0);
}

static void *try_to_lock(void *unused) {
    CHECK_EQ(cc_mutex_lock_until(&contended, cc_after_ms(1)), ETIMEDOUT);
    return unused;
}

/* Waits of every kind, and a runtime. */
static void live_on(CCChan *ch) {
    char byte;
    pthread_t thread;
    alarm(60);
    CHECK_EQ(cc_mutex_lock(&contended), 0);
    CHECK_EQ(pthread_create(&thread, NULL, try_to_lock, NULL), 0);
    CHECK_EQ(pthread_join(thread, NULL), 0);
    cc_mutex_unlock(&contended);
    CHECK_EQ(cc_chan_recv_until(ch, &byte, 1, cc_after_ms(1)), ETIMEDOUT);
    CHECK_EQ(cc_run(give_back, NULL, NULL), 0);
    CHECK_EQ(cc_runtime_shutdown(UINT64_MAX), 0);
    _exit(7);
}

TEST(while_threads_hold_internal_locks, .timeout = 120) {
#ifdef CC_TSAN
    SKIP("the race detector allows no threads in a child of a multi-threaded process");
#endif
    enum { THREADS = 3, CHILDREN = 40 };
    pthread_t threads[THREADS], holder;
    static CCChan *ch; /* where a leak checker of a child finds it */
    ch = cc_chan_create(1, 0);
    CHECK(ch != NULL);
    atomic_store(&busy, true);
    for (int i = 0; i < THREADS; i++) CHECK_EQ(pthread_create(&threads[i], NULL, wait_again_and_again, ch), 0);
    CHECK_EQ(pthread_create(&holder, NULL, hold_a_bucket, NULL), 0);
    while (!atomic_load(&inside) || atomic_load(&have_waited) < THREADS) sched_yield(); /* they allocate no more */
    for (int i = 0; i < CHILDREN; i++) {
        static CCChan *own;
        own = cc_chan_create(1, 0); /* whose lock nobody holds */
        pid_t pid = fork();
        if (pid == 0) live_on(own);
        int status = status_of(pid);
        CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 7);
        cc_chan_free(own);
    }
    atomic_store(&over, true);
    atomic_store(&busy, false);
    for (int i = 0; i < THREADS; i++) CHECK_EQ(pthread_join(threads[i], NULL), 0);
    CHECK_EQ(pthread_join(holder, NULL), 0);
    cc_chan_free(ch);
}

/* ---- the runtime starts meanwhile ---- */

static void *start_again_and_again(void *unused) {
    while (atomic_load(&busy)) {
        CHECK_EQ(cc_runtime_init(&(CCRuntimeConfig){.workers = 32}), 0);
        CHECK_EQ(cc_runtime_shutdown(UINT64_MAX), 0);
    }
    return unused;
}

/* A child that got a part of a runtime reports that, as one that got the whole does; one that got none starts its own.
 */
TEST(while_the_runtime_starts, .timeout = 120) {
#ifdef CC_TSAN
    SKIP("the race detector allows no threads in a child of a multi-threaded process");
#endif
#ifdef CC_ASAN
    SKIP("a child hangs in the address sanitizer's allocator, if another thread was in there");
#endif
    static struct capture capture;
    pthread_t starter;
    atomic_store(&busy, true);
    CHECK_EQ(pthread_create(&starter, NULL, start_again_and_again, NULL), 0);
    for (long i = 0; i < test_rounds(100, 1000); i++) {
        capture_start(&capture);
        pid_t pid = fork();
        if (pid == 0) {
            alarm(60);
            _exit(cc_run(give_back, NULL, NULL) == 0 && cc_runtime_shutdown(UINT64_MAX) == 0 ? 7 : 1);
        }
        int status = status_of(pid);
        bool reported = contains(capture_end(&capture), "after fork");
        CHECK(reported ? WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT
                       : WIFEXITED(status) && WEXITSTATUS(status) == 7);
    }
    atomic_store(&busy, false);
    CHECK_EQ(pthread_join(starter, NULL), 0);
}
