/* misuse.c - what would go wrong silently ends with a sentence. */
#include "looking.h"

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

TEST_DIES(unlock_of_a_free_mutex, "cc_mutex_unlock: the mutex is free; fiber ", .signal = SIGABRT) {
    in_a_fiber(unlock_free);
}

TEST_DIES(unlock_of_a_free_mutex_names_the_fiber, "'clumsy' does not hold it", .signal = SIGABRT) {
    in_a_fiber(unlock_free);
}

TEST_DIES(unlock_of_a_free_mutex_by_a_thread, "OS thread", .signal = SIGABRT) {
    unlock_free();
}

/* The same after the room has become cold: the short way looks, too. */
TEST_DIES(unlock_of_a_free_mutex_in_a_cold_room, "cc_mutex_unlock: the mutex is free", .signal = SIGABRT) {
    CHECK_EQ(cc_runtime_init(NULL), 0);
    for (int i = 0; i < 3 * LOBBY_QUIET; i++) {
        CHECK_EQ(cc_mutex_lock(&m), 0);
        CHECK_EQ(cc_mutex_unlock(&m), 0);
    }
    in_a_fiber(unlock_free);
}

static void wait_without_mutex(void) {
    CCCond c = {0};
    (void)cc_cond_wait(&c, &m);
}

TEST_DIES(cond_wait_without_the_mutex, "cc_mutex_unlock: the mutex is free", .signal = SIGABRT) {
    in_a_fiber(wait_without_mutex);
}

static void read_unlock_free(void) {
    (void)cc_rwlock_read_unlock(&rw);
}

TEST_DIES(read_unlock_of_a_free_lock, "cc_rwlock_read_unlock: the lock is free", .signal = SIGABRT) {
    in_a_fiber(read_unlock_free);
}

static void write_unlock_free(void) {
    (void)cc_rwlock_write_unlock(&rw);
}

TEST_DIES(write_unlock_of_a_free_lock, "cc_rwlock_write_unlock: the lock is free", .signal = SIGABRT) {
    in_a_fiber(write_unlock_free);
}

TEST_DIES(more_done_than_added, "more is done than was added", .signal = SIGABRT) {
    CCWaitGroup wg = {0};
    CHECK_EQ(cc_wait_group_add(&wg, 1), 0);
    CHECK_EQ(cc_wait_group_done(&wg), 0);
    (void)cc_wait_group_done(&wg);
}

TEST_DIES(too_much_added, "is too much", .signal = SIGABRT) {
    CCWaitGroup wg = {0};
    CHECK_EQ(cc_wait_group_add(&wg, INT32_MAX), 0);
    (void)cc_wait_group_add(&wg, 1);
}

/* ---- in debug builds ---- */

#ifdef CC_DEBUG
static void unlock_it(void) {
    (void)cc_mutex_unlock(&m);
}

TEST_DIES(unlock_by_another, "wants to give it back", .signal = SIGABRT) {
    CHECK_EQ(cc_mutex_lock(&m), 0);
    in_a_fiber(unlock_it);
}

static void lock_twice(void) {
    CHECK_EQ(cc_mutex_lock(&m), 0);
    (void)cc_mutex_lock(&m);
}

TEST_DIES(lock_again, "'clumsy' itself, which wants it again", .signal = SIGABRT) {
    in_a_fiber(lock_twice);
}

static void write_unlock_it(void) {
    (void)cc_rwlock_write_unlock(&rw);
}

TEST_DIES(write_unlock_by_another, "cc_rwlock_write_unlock: the lock is held by OS thread", .signal = SIGABRT) {
    CHECK_EQ(cc_rwlock_write_lock(&rw), 0);
    in_a_fiber(write_unlock_it);
}

static void write_twice(void) {
    CHECK_EQ(cc_rwlock_write_lock(&rw), 0);
    (void)cc_rwlock_write_lock(&rw);
}

TEST_DIES(write_lock_again, "cc_rwlock_write_lock: the lock is held by fiber", .signal = SIGABRT) {
    in_a_fiber(write_twice);
}

static void read_after_write(void) {
    CHECK_EQ(cc_rwlock_write_lock(&rw), 0);
    (void)cc_rwlock_read_lock(&rw);
}

TEST_DIES(read_lock_by_the_writer, "cc_rwlock_read_lock: the lock is held by fiber", .signal = SIGABRT) {
    in_a_fiber(read_after_write);
}

static CCOnce once;

static void again(void *unused) {
    (void)cc_once(&once, again, unused);
}

static void once_in_once(void) {
    (void)cc_once(&once, again, NULL);
}

TEST_DIES(once_within_once, "cc_once: the object is held by fiber", .signal = SIGABRT) {
    in_a_fiber(once_in_once);
}

/* The lock is the fiber's, not the worker's: it may be given back on another one. */
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
