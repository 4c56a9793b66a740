/* holder.c - an unlock by a caller that does not hold the lock aborts the program, with a message that names both. */
#include "waiters.h"

#include "lock/mutex.h"
#include "lock/wait_word.h"

#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static void *use_wrongly(void *fn) {
    CHECK_EQ(cc_fiber_set_name("clumsy"), 0);
    (*(void (**)(void))fn)();
    return NULL;
}

static void in_a_fiber(void (*fn)(void)) {
    (void)cc_run(use_wrongly, &fn, NULL);
}

static CCMutex m;
static CCRWLock rw;

static void unlock_free(void) {
    CHECK_EQ(cc_mutex_lock(&m), 0);
    CHECK_EQ(cc_mutex_unlock(&m), 0);
    (void)cc_mutex_unlock(&m);
}

TEST_DIES(unlock_of_a_free_mutex, "is free; fiber ", .signal = SIGABRT) {
    in_a_fiber(unlock_free);
}

TEST_DIES(unlock_of_a_free_mutex_names_the_fiber, "'clumsy' does not hold it", .signal = SIGABRT) {
    in_a_fiber(unlock_free);
}

TEST_DIES(unlock_of_a_free_mutex_by_a_thread, "OS thread", .signal = SIGABRT) {
    unlock_free();
}

/* A fast unlock checks the holder, too. */
TEST_DIES(unlock_of_a_free_mutex_with_fast_unlock, "is free; ", .signal = SIGABRT) {
    CHECK_EQ(cc_runtime_init(NULL), 0);
    for (int i = 0; i < 3 * FAST_UNLOCK_AFTER; i++) {
        CHECK_EQ(cc_mutex_lock(&m), 0);
        CHECK_EQ(cc_mutex_unlock(&m), 0);
    }
    in_a_fiber(unlock_free);
}

static void wait_without_mutex(void) {
    CCCond c = {0};
    MAY_FAIL(cc_cond_wait(&c, &m));
}

TEST_DIES(cond_wait_without_the_mutex, "cc_cond_wait: mutex ", .signal = SIGABRT) {
    in_a_fiber(wait_without_mutex);
}

static void read_unlock_free(void) {
    (void)cc_rwlock_read_unlock(&rw);
}

TEST_DIES(read_unlock_of_a_free_lock, "is free; ", .signal = SIGABRT) {
    in_a_fiber(read_unlock_free);
}

static void write_unlock_free(void) {
    (void)cc_rwlock_write_unlock(&rw);
}

TEST_DIES(write_unlock_of_a_free_lock, "is free; ", .signal = SIGABRT) {
    in_a_fiber(write_unlock_free);
}

static void read_unlock_of_writer(void) {
    CHECK_EQ(cc_rwlock_write_lock(&rw), 0);
    (void)cc_rwlock_read_unlock(&rw);
}

TEST_DIES(read_unlock_of_a_writer, "is held by a writer; fiber ", .signal = SIGABRT) {
    in_a_fiber(read_unlock_of_writer);
}

static void write_unlock_of_reader(void) {
    CHECK_EQ(cc_rwlock_read_lock(&rw), 0);
    (void)cc_rwlock_write_unlock(&rw);
}

TEST_DIES(write_unlock_of_a_reader, "is held by readers; fiber ", .signal = SIGABRT) {
    in_a_fiber(write_unlock_of_reader);
}

/* Two callers give back one read lock at the same time, while a writer waits: one of them gets an error, however close
 * they are. Once in forty rounds both had seen the reader, and the second unlocked what was not locked: that went
 * unnoticed, and the lock was never free again. They hold read locks of their own: a caller that holds none, or only
 * one, is refused before it looks at the lock (HOLDER-3). */
static _Atomic int ready;

static void *give_back(void *arg) {
    CCRWLock own[2] = {{0}, {0}};
    for (int i = 0; i < 2; i++) CHECK_EQ(cc_rwlock_read_lock(&own[i]), 0);
    atomic_fetch_add(&ready, 1);
    while (atomic_load(&ready) < 2) {
    }
    (void)cc_rwlock_read_unlock(&rw);
    return arg;
}

static void *write_once(void *arg) {
    CHECK_EQ(cc_rwlock_write_lock(&rw), 0);
    CHECK_EQ(cc_rwlock_write_unlock(&rw), 0);
    return arg;
}

static void give_back_twice(void) {
    pthread_t writer, threads[2];
    CHECK_EQ(setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0}), 0);
    CHECK(freopen("/dev/null", "w", stderr) != NULL);
    CHECK_EQ(cc_rwlock_read_lock(&rw), 0);
    CHECK_EQ(pthread_create(&writer, NULL, write_once, NULL), 0);
    while (!(cc__get(&cc__wait_word_of(&rw)->word) & HAS_WAITERS)) sched_yield();
    for (int i = 0; i < 2; i++) CHECK_EQ(pthread_create(&threads[i], NULL, give_back, NULL), 0);
    for (int i = 0; i < 2; i++) CHECK_EQ(pthread_join(threads[i], NULL), 0);
    _exit(0);
}

TEST(one_read_lock_is_given_back_twice) {
    for (long i = test_rounds(300, 5000); i > 0; i--) {
        pid_t child = fork();
        CHECK(child >= 0);
        if (child == 0) give_back_twice();
        int status;
        CHECK_EQ(waitpid(child, &status, 0), child);
        CHECK(WIFSIGNALED(status));
        CHECK_EQ(WTERMSIG(status), SIGABRT);
    }
}

/* ---- what another holds ---- */

static void unlock_it(void) {
    (void)cc_mutex_unlock(&m);
}

TEST_DIES(unlock_by_another, " is held by ", .signal = SIGABRT) {
    CHECK_EQ(cc_mutex_lock(&m), 0);
    in_a_fiber(unlock_it);
}

static void write_unlock_it(void) {
    (void)cc_rwlock_write_unlock(&rw);
}

TEST_DIES(write_unlock_by_another, "OS thread", .signal = SIGABRT) {
    CHECK_EQ(cc_rwlock_write_lock(&rw), 0);
    in_a_fiber(write_unlock_it);
}

static void *in_thread(void *fn) {
    (*(void (**)(void))fn)();
    return NULL;
}

static void in_another_thread(void (*fn)(void)) {
    pthread_t thread;
    CHECK_EQ(pthread_create(&thread, NULL, in_thread, &fn), 0);
    CHECK_EQ(pthread_join(thread, NULL), 0);
}

TEST_DIES(unlock_by_another_thread, "OS thread", .signal = SIGABRT) {
    CHECK_EQ(cc_mutex_lock(&m), 0);
    in_another_thread(unlock_it);
}

TEST_DIES(unlock_by_another_thread_after_a_try, " unlocks it. ", .signal = SIGABRT) {
    CHECK_EQ(cc_mutex_lock_try(&m), 0);
    in_another_thread(unlock_it);
}

TEST_DIES(write_unlock_by_another_thread, " unlocks it. ", .signal = SIGABRT) {
    CHECK_EQ(cc_rwlock_write_lock(&rw), 0);
    in_another_thread(write_unlock_it);
}

static CCEvent taken;

static void *take_and_stay(void *unused) {
    CHECK_EQ(cc_fiber_set_name("owner"), 0);
    CHECK_EQ(cc_mutex_lock(&m), 0);
    CHECK_EQ(cc_rwlock_write_lock(&rw), 0);
    CHECK_EQ(cc_event_set(&taken), 0);
    MAY_FAIL(cc_sleep_ms(60 * 1000));
    return unused;
}

static void let_another_take(void) {
    (void)cc_fiber_spawn_task(take_and_stay, NULL);
    CHECK_EQ(cc_event_wait(&taken), 0);
}

/* The mistake that this check is for: the lock was not taken, and is released nevertheless. */
static void unlock_after_a_timeout(void) {
    let_another_take();
    CHECK_EQ(cc_mutex_lock_until(&m, cc_after_ms(1)), ETIMEDOUT);
    (void)cc_mutex_unlock(&m);
}

TEST_DIES(unlock_of_what_was_not_locked, "'clumsy' unlocks it. A lock call that has returned an error",
          .signal = SIGABRT) {
    in_a_fiber(unlock_after_a_timeout);
}

TEST_DIES(unlock_of_what_was_not_locked_names_the_holder, "'owner', and fiber ", .signal = SIGABRT) {
    in_a_fiber(unlock_after_a_timeout);
}

TEST_DIES(unlock_of_what_was_not_locked_by_a_thread, "'owner', and OS thread ", .signal = SIGABRT) {
    unlock_after_a_timeout();
}

static void write_unlock_after_a_timeout(void) {
    let_another_take();
    CHECK_EQ(cc_rwlock_write_lock_until(&rw, cc_after_ms(1)), ETIMEDOUT);
    (void)cc_rwlock_write_unlock(&rw);
}

TEST_DIES(write_unlock_of_what_was_not_locked, "'owner', and fiber ", .signal = SIGABRT) {
    in_a_fiber(write_unlock_after_a_timeout);
}

static void *lock_cancelled(void *unused) {
    CHECK_EQ(cc_fiber_set_name("clumsy"), 0);
    CHECK_EQ(cc_mutex_lock(&m), ECANCELED);
    (void)cc_mutex_unlock(&m);
    return unused;
}

TEST_DIES(unlock_after_a_cancelled_lock, "'clumsy' unlocks it", .signal = SIGABRT) {
    let_another_take();
    CCTask task = cc_fiber_spawn_task(lock_cancelled, NULL);
    CHECK_EQ(cc_task_cancel(&task), 0);
    (void)cc_task_join(&task, NULL);
}

/* The joiner runs the task as a call; still the task is not the holder. */
static void *unlock_for_joiner(void *unused) {
    unlock_it();
    return unused;
}

static void lock_and_join(void) {
    CHECK_EQ(cc_mutex_lock(&m), 0);
    CCTask task = cc_fiber_spawn_task(unlock_for_joiner, NULL);
    (void)cc_task_join(&task, NULL);
}

TEST_DIES(unlock_for_the_joiner, " unlocks it. ", .signal = SIGABRT) {
    in_a_fiber(lock_and_join);
}

/* After an unlock that hands the mutex over, the next waiter is the holder, though it has not run yet. */
static void *starve(void *unused) {
    CHECK_EQ(cc_mutex_lock(&m), 0);
    return unused;
}

static void unlock_after_hand_over(void) {
    CHECK_EQ(cc_mutex_lock(&m), 0);
    CCTask task = cc_fiber_spawn_task(starve, NULL);
    while (cc_task_join_until(&task, NULL, cc_after_ms(2)) == ETIMEDOUT) {
        CHECK_EQ(cc_mutex_unlock(&m), 0);
        CHECK_EQ(cc_mutex_lock_try(&m), 0);
        cc_yield();
        struct mutex *mutex = cc__mutex_of(&m);
        struct bucket *bucket = cc__bucket_of(mutex);
        cc__lock_take(&bucket->lock);
        struct bucket_node *node = cc__bucket_first_locked(bucket, mutex);
        bool starves = node != NULL && node->node.flag;
        cc__lock_release(&bucket->lock);
        if (!starves) continue;
        (void)cc_mutex_unlock(&m);
        (void)cc_mutex_unlock(&m);
    }
}

TEST_DIES(unlock_after_a_hand_over, "is held by a waiter that it was handed to", .signal = SIGABRT) {
    CHECK_EQ(cc_runtime_init(&(CCRuntimeConfig){.workers = 1, .max_workers = 1}), 0);
    in_a_fiber(unlock_after_hand_over);
}

/* ---- a holder that has ended ---- */

static void *lock_and_end(void *arg) {
    CHECK_EQ(cc_mutex_lock(&m), 0);
    CHECK_EQ(cc_rwlock_write_lock(&rw), 0);
    return arg; /* and keeps both */
}

static void leave_them_locked(void) {
    CHECK_EQ(cc_run(lock_and_end, NULL, NULL), 0);
}

static void leave_them_locked_by_a_thread(void) {
    pthread_t thread;
    CHECK_EQ(pthread_create(&thread, NULL, lock_and_end, NULL), 0);
    CHECK_EQ(pthread_join(thread, NULL), 0);
}

/* The next fiber has the same stack. */
TEST_DIES(unlock_by_the_next_fiber, ", which has ended, and fiber ", .signal = SIGABRT) {
    CHECK_EQ(cc_runtime_init(&(CCRuntimeConfig){.workers = 1, .max_workers = 1}), 0);
    leave_them_locked();
    in_a_fiber(unlock_it);
}

TEST_DIES(write_unlock_by_the_next_fiber, ", which has ended, and fiber ", .signal = SIGABRT) {
    CHECK_EQ(cc_runtime_init(&(CCRuntimeConfig){.workers = 1, .max_workers = 1}), 0);
    leave_them_locked();
    in_a_fiber(write_unlock_it);
}

/* From the frame that the lock was taken in. */
static void *lock_or_unlock(void *locks) {
    int rc = locks != NULL ? cc_mutex_lock(&m) : cc_mutex_unlock(&m);
    CHECK_EQ(rc, 0);
    return locks;
}

TEST_DIES(unlock_by_the_next_fiber_in_the_same_frame, ", which has ended, and fiber ", .signal = SIGABRT) {
    CHECK_EQ(cc_runtime_init(&(CCRuntimeConfig){.workers = 1, .max_workers = 1}), 0);
    CHECK_EQ(cc_run(lock_or_unlock, &m, NULL), 0);
    (void)cc_run(lock_or_unlock, NULL, NULL);
}

/* The fiber's id is that of the holder but for the generation. */
static void *unlock_if_record_is(void *holder) {
    if ((uint32_t)cc_fiber_id() == *(uint32_t *)holder) (void)cc_mutex_unlock(&m);
    return NULL;
}

static void *lock_and_say(void *holder) {
    CHECK_EQ(cc_mutex_lock(&m), 0);
    *(uint32_t *)holder = (uint32_t)cc_fiber_id();
    return NULL;
}

static void unlock_by_the_same_record(void) {
    static uint32_t holder;
    enum { MOST = 1000 }; /* the worker reuses the record */
    CCTask task = cc_fiber_spawn_task(lock_and_say, &holder);
    CHECK_EQ(cc_task_join(&task, NULL), 0);
    for (int i = 0; i < MOST; i++) {
        task = cc_fiber_spawn_task(unlock_if_record_is, &holder);
        CHECK_EQ(cc_task_join(&task, NULL), 0);
    }
}

TEST_DIES(unlock_by_the_next_fiber_with_the_same_record, ", which has ended, and fiber ", .signal = SIGABRT) {
    CHECK_EQ(cc_runtime_init(&(CCRuntimeConfig){.workers = 1, .max_workers = 1}), 0);
    in_a_fiber(unlock_by_the_same_record);
}

/* The task has ended, and its handle is still there. */
static void *lock_then_set(void *unused) {
    CHECK_EQ(cc_mutex_lock(&m), 0);
    return unused;
}

static void unlock_after_its_end(void) {
    CCTask task = cc_fiber_spawn_task(lock_then_set, NULL);
    while (cc_mutex_lock_try(&m) == 0) {
        CHECK_EQ(cc_mutex_unlock(&m), 0);
        cc_yield();
    }
    while (cc__sched_active() > 1) cc_yield();
    (void)cc_mutex_unlock(&m);
    (void)cc_task_join(&task, NULL);
}

TEST_DIES(unlock_of_a_task_that_was_not_joined, ", which has ended, and fiber ", .signal = SIGABRT) {
    in_a_fiber(unlock_after_its_end);
}

/* The next thread has the same stack and the same thread pointer. */
TEST_DIES(unlock_by_the_next_thread, ", which has ended, and OS thread ", .signal = SIGABRT) {
    leave_them_locked_by_a_thread();
    in_another_thread(unlock_it);
}

TEST_DIES(write_unlock_by_the_next_thread, ", which has ended, and OS thread ", .signal = SIGABRT) {
    leave_them_locked_by_a_thread();
    in_another_thread(write_unlock_it);
}

/* A thread that has never held a lock is not the holder of a free one. */
TEST_DIES(unlock_of_a_free_mutex_by_a_new_thread, "is free; OS thread ", .signal = SIGABRT) {
    in_another_thread(unlock_it);
}

/* ---- what is right ---- */

static __attribute__((noinline)) void lock_deeper(int depth) {
    volatile char frame[64];
    frame[0] = 0;
    if (depth > 0)
        lock_deeper(depth - 1);
    else
        CHECK_EQ(cc_mutex_lock(&m), 0);
    frame[1] = frame[0];
}

static __attribute__((noinline)) void unlock_deeper(int depth) {
    volatile char frame[96];
    frame[0] = 0;
    if (depth > 0)
        unlock_deeper(depth - 1);
    else
        CHECK_EQ(cc_mutex_unlock(&m), 0);
    frame[1] = frame[0];
}

static void *lock_and_unlock_elsewhere(void *unused) {
    for (int i = 0; i < 20; i++) {
        lock_deeper(i);
        unlock_deeper(20 - i);
        lock_deeper(i);
        cc_yield();
        CHECK_EQ(cc_mutex_unlock(&m), 0);
        CHECK_EQ(cc_rwlock_write_lock(&rw), 0);
        CHECK_EQ(cc_rwlock_write_unlock(&rw), 0);
    }
    return unused;
}

static void *in_hosted_call(void *unused) {
    unlock_deeper(3);
    lock_deeper(5);
    CHECK_EQ(cc_rwlock_write_unlock(&rw), 0);
    CHECK_EQ(cc_rwlock_write_lock(&rw), 0);
    return unused;
}

/* A lock may be taken in one function and released in another: by fibers, by tasks that their joiner runs, by OS
 * threads, also inside of a hosted call, which has a stack of its own. */
TEST_WORKERS(lock_here_and_unlock_there) {
    CCTask tasks[8];
    for (int i = 0; i < 8; i++) tasks[i] = cc_fiber_spawn_task(lock_and_unlock_elsewhere, NULL);
    (void)lock_and_unlock_elsewhere(NULL);
    for (int i = 0; i < 8; i++) CHECK_EQ(cc_task_join(&tasks[i], NULL), 0);
    CHECK_EQ(cc_run(lock_and_unlock_elsewhere, NULL, NULL), 0);
    CHECK_EQ(cc_mutex_lock(&m), 0);
    CHECK_EQ(cc_rwlock_write_lock(&rw), 0);
    CHECK_EQ(cc_hosted_call(in_hosted_call, NULL, NULL, NULL), 0);
    CHECK_EQ(cc_mutex_unlock(&m), 0);
    CHECK_EQ(cc_rwlock_write_unlock(&rw), 0);
}

TEST_DIES(read_unlock_by_another, "is held by other readers; fiber ", .signal = SIGABRT) {
    CHECK_EQ(cc_rwlock_read_lock(&rw), 0);
    in_a_fiber(read_unlock_free);
}

static void *read_in_a_fiber(void *arg) {
    CHECK_EQ(cc_rwlock_read_lock(&rw), 0);
    return arg; /* and keeps it */
}

TEST_DIES(read_unlock_by_a_thread, "is held by other readers; OS thread ", .signal = SIGABRT) {
    CHECK_EQ(cc_run(read_in_a_fiber, NULL, NULL), 0);
    CHECK_EQ(cc_rwlock_read_lock(&rw), 0);
    CHECK_EQ(cc_rwlock_read_unlock(&rw), 0);
    read_unlock_free();
}

/* It holds none of the locks of the previous fiber on the same stack. */
TEST_DIES(read_unlock_by_the_next_fiber, "is held by other readers; fiber ", .signal = SIGABRT) {
    CHECK_EQ(cc_run(read_in_a_fiber, NULL, NULL), 0);
    in_a_fiber(read_unlock_free);
}

static CCRWLock first, second;

static void *read_first(void *arg) {
    CHECK_EQ(cc_rwlock_read_lock(&first), 0);
    return arg; /* and keeps it */
}

static void read_second_unlock_first(void) {
    CHECK_EQ(cc_rwlock_read_lock(&second), 0);
    (void)cc_rwlock_read_unlock(&first);
}

TEST_DIES(read_unlock_of_another_lock, "which holds one read lock, holds another", .signal = SIGABRT) {
    CHECK_EQ(cc_run(read_first, NULL, NULL), 0);
    in_a_fiber(read_second_unlock_first);
}

static void hold_two_unlock_three(void) {
    CHECK_EQ(cc_rwlock_read_lock(&second), 0);
    CHECK_EQ(cc_rwlock_read_lock(&rw), 0);
    CHECK_EQ(cc_rwlock_read_unlock(&first), 0); /* not reported yet */
    (void)cc_rwlock_read_unlock(&rw);
}

TEST_DIES(read_unlock_among_several, "or has unlocked one that it did not hold", .signal = SIGABRT) {
    CHECK_EQ(cc_run(read_first, NULL, NULL), 0);
    in_a_fiber(hold_two_unlock_three);
}

/* In any order, and on other workers than those that took them. */
static void *read_several(void *arg) {
    CCRWLock *locks[] = {&first, &second, &rw, &second};
    for (int i = 0; i < 4; i++) {
        CHECK_EQ(cc_rwlock_read_lock(locks[i]), 0);
        cc_yield();
    }
    for (int i = 0; i < 4; i++) {
        CHECK_EQ(cc_rwlock_read_unlock(locks[(i * 3 + 1) % 4]), 0);
        cc_yield();
    }
    return arg;
}

TEST_WORKERS(several_read_locks) {
    CCTask tasks[8];
    for (int i = 0; i < 8; i++) CHECK_EQ(cc_spawn(&tasks[i], read_several, NULL, NULL), 0);
    CHECK_EQ(cc_run(read_several, NULL, NULL), 0);
    read_several(NULL); /* an OS thread */
    for (int i = 0; i < 8; i++) CHECK_EQ(cc_task_join(&tasks[i], NULL), 0);
}

/* ---- in debug builds ---- */

#ifdef CC_DEBUG
static void lock_twice(void) {
    CHECK_EQ(cc_mutex_lock(&m), 0);
    MAY_FAIL(cc_mutex_lock(&m));
}

TEST_DIES(lock_again, "'clumsy' itself, which wants it again", .signal = SIGABRT) {
    in_a_fiber(lock_twice);
}

static void write_twice(void) {
    CHECK_EQ(cc_rwlock_write_lock(&rw), 0);
    MAY_FAIL(cc_rwlock_write_lock(&rw));
}

TEST_DIES(write_lock_again, "which wants it again", .signal = SIGABRT) {
    in_a_fiber(write_twice);
}

static void read_after_write(void) {
    CHECK_EQ(cc_rwlock_write_lock(&rw), 0);
    MAY_FAIL(cc_rwlock_read_lock(&rw));
}

TEST_DIES(read_lock_by_the_writer, "which wants it again", .signal = SIGABRT) {
    in_a_fiber(read_after_write);
}

static CCOnce once;

static void again(void *unused) {
    MAY_FAIL(cc_once(&once, again, unused));
}

static void once_in_once(void) {
    MAY_FAIL(cc_once(&once, again, NULL));
}

TEST_DIES(once_within_once, "which wants it again", .signal = SIGABRT) {
    in_a_fiber(once_in_once);
}

/* The lock belongs to the fiber, not to the worker: it may be released on another one. */
static void *hold_and_move(void *unused) {
    for (int i = 0; i < 50; i++) {
        CHECK_EQ(cc_mutex_lock(&m), 0);
        CHECK_EQ(cc_sleep_ms(0), 0);
        cc_yield();
        CHECK_EQ(cc_mutex_unlock(&m), 0);
    }
    return unused;
}

TEST_WORKERS(held_across_workers) {
    CCTask tasks[8];
    for (int i = 0; i < 8; i++) tasks[i] = cc_fiber_spawn_task(hold_and_move, NULL);
    for (int i = 0; i < 8; i++) CHECK_EQ(cc_task_join(&tasks[i], NULL), 0);
}
#endif
