/* lock.c - mutex, condition variable and the other locks, between OS threads. */
#include "explore.h"
#include "lock/parking_lot.h"
#include "lock/wait_word.h"

#include <ccc/ccc.h>
#include <errno.h>

static int value, done[4];

/* ---- mutex ---- */

static CCMutex m;
static void mutex_add(void) {
    EX_EQ(cc_mutex_lock(&m), 0);
    value++;
    EX_EQ(cc_mutex_unlock(&m), 0);
}
static void mutex_add_soon(void) {
    int rc = cc_mutex_lock_until(&m, cc_after_ns(5000));
    EX_CHECK(rc == 0 || rc == ETIMEDOUT);
    if (rc != 0) return;
    value += 10;
    EX_EQ(cc_mutex_unlock(&m), 0);
}
/* So many spins have failed that a lock call which finds the mutex locked waits at once. */
static void no_spinning(void) {
    cc__set(&cc__bucket_of(&m)->spin_failures, 8);
}
static void mutex_check2(void) {
    EX_EQ(value, 2);
}
static void mutex_check(void) {
    EX_EQ(value % 10, 2);
    EX_EQ(cc_mutex_lock_try(&m), 0);
}
SCENARIO(mutex_two, "MUTEX-1: two lock and unlock", .setup = no_spinning, .threads = {mutex_add, mutex_add},
         .check = mutex_check2);
SCENARIO(mutex_three, "MUTEX-2: and a third that times out", .setup = no_spinning,
         .threads = {mutex_add, mutex_add, mutex_add_soon}, .check = mutex_check);
SCENARIO(mutex_spin, "two lock and unlock, spinning first", .threads = {mutex_add, mutex_add}, .check = mutex_check2);

/* ---- condition ---- */

static CCCond c;
static bool ready;
static void cond_waits(void) {
    EX_EQ(cc_mutex_lock(&m), 0);
    while (!ready) EX_EQ(cc_cond_wait(&c, &m), 0);
    value++;
    EX_EQ(cc_mutex_unlock(&m), 0);
}
static void cond_signals(void) {
    EX_EQ(cc_mutex_lock(&m), 0);
    ready = true;
    EX_EQ(cc_mutex_unlock(&m), 0);
    EX_EQ(cc_cond_signal(&c), 0);
}
static void cond_broadcasts(void) {
    EX_EQ(cc_mutex_lock(&m), 0);
    ready = true;
    EX_EQ(cc_cond_broadcast(&c), 0);
    EX_EQ(cc_mutex_unlock(&m), 0);
}
static void check_one(void) {
    EX_EQ(value, 1);
}
static void check_two(void) {
    EX_EQ(value, 2);
}
SCENARIO(cond_signal, "COND-1: no signal falls between unlock and wait", .setup = no_spinning,
         .threads = {cond_waits, cond_signals}, .check = check_one);
SCENARIO(cond_broadcast, "two wait, one broadcasts", .setup = no_spinning,
         .threads = {cond_waits, cond_waits, cond_broadcasts}, .check = check_two);

/* ---- semaphore ---- */

static CCSem sem;
static void sem_acquires(void) {
    EX_EQ(cc_sem_acquire(&sem), 0);
    EX_CHECK(value > 0);
    value--;
}
static void sem_gives(void) {
    value++;
    EX_EQ(cc_sem_release(&sem, 1), 0);
}
static void check_none(void) {
    EX_EQ(value, 0);
    EX_EQ(cc_sem_acquire_try(&sem), EAGAIN);
}
SCENARIO(sem_pair, "SEM: a permit carries what came before it", .threads = {sem_acquires, sem_gives},
         .check = check_none);
static void sem_soon(void) {
    done[0] = cc_sem_acquire_until(&sem, cc_after_ns(5000)) == 0;
}
static void sem_waits(void) {
    EX_EQ(cc_sem_acquire(&sem), 0);
    done[1] = 1;
}
static void sem_gives_two(void) {
    EX_EQ(cc_sem_release(&sem, 2), 0);
}
static void sem_count(void) {
    int left = 0;
    while (cc_sem_acquire_try(&sem) == 0) left++;
    EX_EQ(left + done[0] + done[1], 2);
}
SCENARIO(sem_deadline, "WAITQ-2: no permit is lost to a wait that timed out",
         .threads = {sem_soon, sem_waits, sem_gives_two}, .check = sem_count);

/* Two release at once, too many permits together: each release succeeds or fails as a whole. */
static uint32_t given;
static void sem_gives_most(void) {
    int rc = cc_sem_release(&sem, CC_SEM_MAX);
    EX_CHECK(rc == 0 || rc == EOVERFLOW);
    if (rc == 0) given += CC_SEM_MAX;
}
static void sem_gives_some(void) {
    int rc = cc_sem_release(&sem, 3);
    EX_CHECK(rc == 0 || rc == EOVERFLOW);
    if (rc == 0) given += 3;
}
static void sem_all_or_nothing(void) {
    EX_EQ(done[1], 1);
    EX_EQ((sem.word & CC_SEM_MAX) + 1, given); /* one was taken */
}
SCENARIO(sem_overflow, "SEM-3: all of a release, or nothing", .threads = {sem_waits, sem_gives_most, sem_gives_some},
         .check = sem_all_or_nothing);

/* ---- event, wait group, once ---- */

static CCEvent e;
static void event_waits(void) {
    EX_EQ(cc_event_wait(&e), 0);
    EX_EQ(value, 7);
}
static void event_sets(void) {
    value = 7;
    EX_EQ(cc_event_set(&e), 0);
}
SCENARIO(event_two, "two wait for an event", .threads = {event_waits, event_waits, event_sets});
static void event_soon(void) {
    int rc = cc_event_wait_until(&e, cc_after_ns(5000));
    EX_CHECK(rc == 0 || rc == ETIMEDOUT);
}
SCENARIO(event_deadline, "one of the waiters times out", .threads = {event_waits, event_soon, event_sets});
/* Work is signalled by an event that may still be set; the worker resets it before it looks for work. */
static _Atomic uint32_t work;
static void event_is_set(void) {
    EX_EQ(cc_event_set(&e), 0);
}
static void event_announces(void) {
    cc__set(&work, 1);
    EX_EQ(cc_event_set(&e), 0);
}
static void event_looks(void) {
    do {
        EX_EQ(cc_event_wait(&e), 0);
        EX_EQ(cc_event_reset(&e), 0);
    } while (cc__get(&work) == 0);
}
SCENARIO(event_again, "EVENT-2: what precedes a set of an event that is set is seen after the next reset",
         .setup = event_is_set, .threads = {event_looks, event_announces});

static CCWaitGroup wg;
static int parts[2];
static void group_two(void) {
    EX_EQ(cc_wait_group_add(&wg, 2), 0);
}
static void group_a(void) {
    parts[0] = 1;
    EX_EQ(cc_wait_group_done(&wg), 0);
}
static void group_b(void) {
    parts[1] = 1;
    EX_EQ(cc_wait_group_done(&wg), 0);
}
static void group_waits(void) {
    EX_EQ(cc_wait_group_wait(&wg), 0);
    EX_EQ(parts[0] + parts[1], 2);
}
SCENARIO(group_three, "GROUP-1: two are done, one waits", .setup = group_two,
         .threads = {group_a, group_b, group_waits});

/* WAITQ-3: a waiter that the last one releases may free the group. */
static CCWaitGroup *group;
static void group_alone(void) {
    group = ex_alloc(sizeof *group);
    EX_EQ(cc_wait_group_add(group, 1), 0);
}
static void group_done(void) {
    EX_EQ(cc_wait_group_done(group), 0);
}
static void group_waits_frees(void) {
    EX_EQ(cc_wait_group_wait(group), 0);
    ex_free(group);
}
SCENARIO(group_free, "GROUP-2: the one that waited frees it", .setup = group_alone,
         .threads = {group_done, group_waits_frees});

static CCOnce once;
static void first_time(void *arg) {
    (void)arg;
    value++;
}
static void once_each(void) {
    EX_EQ(cc_once(&once, first_time, NULL), 0);
    EX_EQ(value, 1);
}
SCENARIO(once_three, "three callers, one runs it", .threads = {once_each, once_each, once_each}, .check = check_one);

/* Of two callers the first panics: the other runs the function, whether it calls before, during or after that. */
static int attempts;
static void panics_first(void *arg) {
    if (attempts++ == 0) cc_panic("not this time");
    first_time(arg);
}
static void once_or_panic(void *arg) {
    EX_EQ(cc_once(&once, panics_first, arg), 0);
    EX_EQ(value, 1);
}
static void once_tried(void) {
    CCPanic why;
    int rc = cc_try(once_or_panic, NULL, &why);
    EX_CHECK(rc == 0 || rc == ENOTRECOVERABLE);
}
static void check_retried(void) {
    EX_EQ(attempts, 2);
    EX_EQ(value, 1);
    EX_EQ(once.word & HAS_WAITERS, 0);
}
SCENARIO(once_panic, "ONCE-1: one panics, the other runs it", .threads = {once_tried, once_tried},
         .check = check_retried);

/* ---- rwlock, barrier ---- */

static CCRWLock rw;
static int copy;
static void writes(void) {
    EX_EQ(cc_rwlock_write_lock(&rw), 0);
    value++;
    copy++;
    EX_EQ(cc_rwlock_write_unlock(&rw), 0);
}
static void reads(void) {
    EX_EQ(cc_rwlock_read_lock(&rw), 0);
    EX_EQ(value, copy);
    EX_EQ(cc_rwlock_read_unlock(&rw), 0);
}
static void no_rw_spinning(void) {
    cc__set(&cc__bucket_of(&rw)->spin_failures, 8);
}
SCENARIO(rwlock_rw, "a reader and a writer", .setup = no_rw_spinning, .threads = {reads, writes}, .check = check_one);
SCENARIO(rwlock_rww, "RW-2: a reader and two writers", .setup = no_rw_spinning, .threads = {reads, writes, writes},
         .check = check_two);
SCENARIO(rwlock_rrw, "two readers and a writer", .setup = no_rw_spinning, .threads = {reads, reads, writes},
         .check = check_one);
SCENARIO(rwlock_spin, "two readers and a writer, spinning first", .threads = {reads, reads, writes},
         .check = check_one);

/* A writer that gives up, perhaps as the designated waiter, between one that holds the lock and one that waits. */
static void writes_soon(void) {
    int rc = cc_rwlock_write_lock_until(&rw, cc_after_ns(5000));
    EX_CHECK(rc == 0 || rc == ETIMEDOUT);
    if (rc == 0) EX_EQ(cc_rwlock_write_unlock(&rw), 0);
}
static void check_one_free(void) {
    EX_EQ(value, 1);
    EX_EQ(rw.word, 0);
}
SCENARIO(rwlock_gives_up, "RW-2: a reader, a writer, and a writer that times out", .setup = no_rw_spinning,
         .threads = {reads, writes, writes_soon}, .check = check_one_free);
static void writes_twice(void) {
    writes();
    writes();
}
static void check_three_free(void) {
    EX_EQ(value, 3);
    EX_EQ(rw.word, 0);
}
SCENARIO(rwlock_gives_up_between, "RW-2: a writer that times out between a designated waiter and a reader",
         .setup = no_rw_spinning, .threads = {writes_twice, writes, writes_soon, reads}, .check = check_three_free);

/* RW-4: the last of those who use the lock frees it, while the others may not have returned from their unlock. */
static CCRWLock *shared_rw;
static int rw_users;
static void rw_of(int users) {
    shared_rw = ex_alloc(sizeof *shared_rw);
    cc__set(&cc__bucket_of(shared_rw)->spin_failures, 8);
    rw_users = users;
}
static void rw_of_three(void) {
    rw_of(3);
}
static void rw_of_two(void) {
    rw_of(2);
}
static void rw_last_frees(void) {
    EX_EQ(cc_rwlock_write_lock(shared_rw), 0);
    int left = --rw_users;
    EX_EQ(cc_rwlock_write_unlock(shared_rw), 0);
    if (left == 0) ex_free(shared_rw);
}
SCENARIO(rwlock_free, "RW-4: the last of three writers frees it", .setup = rw_of_three,
         .threads = {rw_last_frees, rw_last_frees, rw_last_frees});

/* The same with a hand-over: the waiter is starving when the lock is taken again before it has run. */
static void rw_takes_again(void) {
    static CCEvent never;
    EX_EQ(cc_rwlock_write_lock(shared_rw), 0);
    EX_EQ(cc_event_wait_until(&never, cc_after_ms(2)), ETIMEDOUT);
    EX_EQ(cc_rwlock_write_unlock(shared_rw), 0);
    rw_last_frees();
}
SCENARIO(rwlock_starving, "RW-3: handed over to a writer that frees it", .setup = rw_of_two,
         .threads = {rw_takes_again, rw_last_frees});

static void writes_often(void) {
    for (int i = 0; i < 3; i++) writes();
}
static void check_four(void) {
    EX_EQ(value, 4);
    EX_EQ(rw.word, 0);
}
SCENARIO(rwlock_again, "RW-2: a writer that locks again and again, and one that waits", .setup = no_rw_spinning,
         .threads = {writes_often, writes}, .check = check_four);

static CCBarrier barrier = CC_BARRIER_INIT(2);
static int round_of[2];
static void meets(int who) {
    for (int i = 1; i <= 2; i++) {
        round_of[who] = i;
        EX_CHECK(cc_barrier_wait(&barrier) >= 0);
        EX_CHECK(round_of[1 - who] >= i);
        EX_CHECK(cc_barrier_wait(&barrier) >= 0);
    }
}
static void meets_a(void) {
    meets(0);
}
static void meets_b(void) {
    meets(1);
}
SCENARIO(barrier_meeting, "BAR: two parties, two rounds", .threads = {meets_a, meets_b});

/* ---- oneshot ---- */

static CCOneshot oneshot;
static int oneshot_value, oneshot_got;
static void oneshot_sends(void) {
    int v = 5, rc = cc_oneshot_send(&oneshot, &oneshot_value, &v, sizeof v);
    EX_CHECK(rc == 0 || rc == EPIPE);
}
static void oneshot_closes(void) {
    int rc = cc_oneshot_close(&oneshot, ENOENT);
    EX_CHECK(rc == 0 || rc == EPIPE);
}
static void oneshot_receives(void) {
    int v = 0, rc = cc_oneshot_recv(&oneshot, &oneshot_value, &v, sizeof v);
    EX_CHECK((rc == 0 && v == 5) || rc == ENOENT);
    oneshot_got = rc == 0 ? 1 : 2;
}
static void oneshot_check(void) {
    EX_CHECK(oneshot_got != 0);
    EX_EQ(oneshot_got == 2, oneshot.error == ENOENT);
}
SCENARIO(oneshot_first, "ONESHOT-1: one sends, one closes, one receives what the first of them has given",
         .threads = {oneshot_sends, oneshot_closes, oneshot_receives}, .check = oneshot_check);
