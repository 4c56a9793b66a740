/* fiber_kin.c - other waits of fibers against OS threads: selects, tasks in channels, a mutex with fast unlock, a
 * reader-writer lock.
 */
#include "chan/chan.h"
#include "explore.h"
#include "lock/parking_lot.h"
#include "os/futex.h"

#include <ccc/ccc.h>
#include <errno.h>

static CCChan *ch, *second, *third;
static CCTask task, other, sender;
static CCEvent go;
static uint64_t got, got_too, got_last;
static int rc[4];

static void spawn(CCTask *t, CCTaskFn fn, void *arg) {
    EX_EQ(cc_spawn(t, fn, arg, NULL), 0);
}
static void join(CCTask *t) {
    EX_EQ(cc_task_join(t, NULL), 0);
}
static void cancels(void) {
    EX_EQ(cc_task_cancel(&other), 0);
    EX_EQ(cc_task_detach(&other), 0);
}

/* ---- select ---- */

static void *selects(void *arg) {
    (void)arg;
    size_t chosen;
    CCCase cases[] = {CC_RECV(ch, &got, NULL), CC_RECV(second, &got_too, NULL)};
    rc[3] = cc_select(cases, 2, CC_FOREVER, &chosen);
    return NULL;
}
static void select_parked(void) {
    ch = cc_chan_create(sizeof(uint64_t), 0);
    second = cc_chan_create(sizeof(uint64_t), 0);
    spawn(&task, selects, NULL);
    EX_EQ(cc_task_dup(&task, &other), 0);
    ex_settle();
}
static void tries_first(void) {
    uint64_t value = 1;
    rc[0] = cc_chan_send_try(ch, &value, sizeof value);
}
static void tries_second(void) {
    uint64_t value = 10;
    rc[1] = cc_chan_send_try(second, &value, sizeof value);
    join(&task);
}
static void one_arm(void) {
    EX_EQ(got, rc[0] == 0 ? 1 : 0);
    EX_EQ(got_too, rc[1] == 0 ? 10 : 0);
    EX_EQ((rc[0] == 0) + (rc[1] == 0), 1);
}
SCENARIO(fiber_select, "SELECT-2: two threads at the two arms of a parked fiber", .workers = 1, .setup = select_parked,
         .threads = {tries_first, tries_second}, .check = one_arm, .no_timer = true);
static void one_or_cancelled(void) {
    EX_EQ(rc[0] == 0, rc[3] == 0);
    EX_EQ(got, rc[0] == 0 ? 1 : 0);
}
static void tries_first_joins(void) {
    tries_first();
    join(&task);
}
SCENARIO(fiber_select_cancel, "an arm and a canceller", .workers = 1, .setup = select_parked,
         .threads = {tries_first_joins, cancels}, .check = one_or_cancelled, .no_timer = true);
/* Both channels are biased to the worker, and the select parks inside; then a fiber there serves one arm, and a thread,
 * which revokes the bias, the other. */
static void make_biased(CCChan *c) {
    uint64_t value = 100;
    for (int i = 0; i < 80; i++) rc[2] = cc_chan_send_try(c, &value, sizeof value);
    EX_EQ(cc_chan_recv(c, &value, sizeof value), 0);
    EX_CHECK(cc__get(&c->bias) != 0);
}
static void *selects_biased(void *arg) {
    make_biased(ch);
    make_biased(second);
    return selects(arg);
}
static void *sends_biased(void *arg) {
    uint64_t value = 10;
    (void)arg;
    EX_EQ(cc_event_wait(&go), 0);
    EX_EQ(cc_chan_send(second, &value, sizeof value), 0);
    return NULL;
}
static void select_parked_biased(void) {
    ch = cc_chan_create(sizeof(uint64_t), 1);
    second = cc_chan_create(sizeof(uint64_t), 1);
    spawn(&task, selects_biased, NULL);
    ex_settle();
    EX_CHECK(cc__get(&ch->bias) != 0 && cc__get(&second->bias) != 0);
    spawn(&sender, sends_biased, NULL);
    ex_settle();
}
static void calls_sender(void) {
    EX_EQ(cc_event_set(&go), 0);
    join(&sender);
    join(&task);
}
static void sends_first(void) {
    uint64_t value = 1;
    EX_EQ(cc_chan_send(ch, &value, sizeof value), 0);
}
static void one_arm_and_a_slot(void) {
    EX_EQ(rc[3], 0);
    EX_EQ((got == 1) + (got_too == 10), 1);
    EX_EQ(got + got_too, got == 1 ? 1 : 10);
    EX_EQ(cc_chan_len(ch), got == 1 ? 0 : 1);
    EX_EQ(cc_chan_len(second), got == 1 ? 1 : 0);
}
SCENARIO(chan_bias_select, "CHANBIAS-4: a biased select that parks, a fiber there and a thread that revokes",
         .workers = 1, .setup = select_parked_biased, .threads = {calls_sender, sends_first},
         .check = one_arm_and_a_slot, .no_timer = true);
/* Three arms: a fiber of the worker is about to serve one, a thread serves another, and a second thread only revokes
 * the bias of the third. The worker is blocked just before its send: few steps are left. */
static _Atomic uint32_t gate;
static void *selects_three(void *arg) {
    (void)arg;
    size_t chosen;
    CCCase cases[] = {CC_RECV(ch, &got, NULL), CC_RECV(second, &got_too, NULL), CC_RECV(third, &got_last, NULL)};
    make_biased(ch);
    make_biased(second);
    make_biased(third);
    rc[3] = cc_select(cases, 3, CC_FOREVER, &chosen);
    return NULL;
}
static void *sends_third(void *arg) {
    uint64_t value = 100;
    (void)arg;
    cc__futex_wait(&gate, 0, CC_FUTEX_FOREVER);
    rc[2] = cc_chan_send_try(third, &value, sizeof value);
    return NULL;
}
static void three_parked_biased(void) {
    ch = cc_chan_create(sizeof(uint64_t), 1);
    second = cc_chan_create(sizeof(uint64_t), 1);
    third = cc_chan_create(sizeof(uint64_t), 1);
    spawn(&task, selects_three, NULL);
    ex_settle();
    EX_CHECK(cc__get(&ch->bias) != 0 && cc__get(&second->bias) != 0 && cc__get(&third->bias) != 0);
    spawn(&sender, sends_third, NULL);
    ex_settle();
}
static void lets_go_and_revokes(void) {
    cc__set(&gate, 1);
    cc__futex_wake(&gate, 1);
    cc__chan_lock(ch);
    cc__lock_release(&ch->lock);
}
static void one_of_two_arms(void) {
    EX_EQ(rc[3], 0);
    EX_EQ((got_too == 10) + (got_last == 100), 1);
    EX_EQ(cc_chan_len(second), got_too == 10 ? 0 : 1);
    EX_EQ(cc_chan_len(third), got_last == 100 ? 0 : 1);
}
SCENARIO(chan_bias_select_three,
         "CHANBIAS-4: a fiber of the worker and two threads that revoke, each at one of a select's arms", .workers = 1,
         .setup = three_parked_biased, .threads = {lets_go_and_revokes, tries_second}, .check = one_of_two_arms,
         .no_timer = true);

static void *selects_join(void *arg) {
    size_t chosen;
    CCCase cases[] = {CC_JOIN(arg, NULL, NULL), CC_RECV(second, &got_too, NULL)};
    EX_EQ(cc_select(cases, 2, CC_FOREVER, &chosen), 0);
    rc[3] = (int)chosen;
    if (chosen == 1) EX_EQ(cc_task_join(arg, NULL), 0);
    return NULL;
}
static void *ends_on_signal(void *arg) {
    EX_EQ(cc_event_wait(&go), 0);
    return arg;
}
static void select_join_parked(void) {
    second = cc_chan_create(sizeof(uint64_t), 0);
    spawn(&sender, ends_on_signal, NULL);
    spawn(&task, selects_join, &sender);
    ex_settle();
}
static void ends_it(void) {
    EX_EQ(cc_event_set(&go), 0);
}
static void join_or_value(void) {
    EX_EQ(rc[1] == 0, rc[3] == 1);
}
SCENARIO(fiber_select_join, "the end of a task and a value", .workers = 1, .setup = select_join_parked,
         .threads = {ends_it, tries_second}, .check = join_or_value, .no_timer = true);

/* ---- a mutex with fast unlock ---- */

static CCMutex mutex;
static int guarded;
static void *enables_fast_unlock(void *arg) {
    (void)arg;
    for (int i = 0; i < 4200; i++) {
        EX_EQ(cc_mutex_lock(&mutex), 0);
        EX_EQ(cc_mutex_unlock(&mutex), 0);
    }
    return NULL;
}
static void fast_bucket(void) {
    EX_EQ(cc_run(enables_fast_unlock, NULL, NULL), 0);
    ex_settle();
    EX_CHECK(cc__get(&cc__bucket_of(&mutex)->fast_unlock));
    cc__set(&cc__bucket_of(&mutex)->spin_failures, 8); /* nobody spins */
}
static void locks_and_adds(void) {
    EX_EQ(cc_mutex_lock(&mutex), 0);
    guarded++;
    EX_EQ(cc_mutex_unlock(&mutex), 0);
}
static void added(void) {
    EX_EQ(guarded, 2);
}
SCENARIO(mutex_fast_unlock, "a fast unlock and a waiter", .workers = 1, .setup = fast_bucket,
         .threads = {locks_and_adds, locks_and_adds}, .check = added, .no_timer = true, .membarrier = true);
static void enters(void) {
    struct bucket *bucket = cc__bucket_of(&mutex);
    cc__bucket_enter(bucket);
    cc__lock_release(&bucket->lock);
}
static void added_and_off(void) {
    added();
    EX_EQ(cc__bucket_of(&mutex)->disabling, 0);
}
SCENARIO(mutex_fast_unlock_stranger, "the same, and a waiter for another mutex in that bucket", .workers = 1,
         .setup = fast_bucket, .threads = {locks_and_adds, locks_and_adds, enters}, .check = added_and_off,
         .no_timer = true, .membarrier = true);

/* ---- tasks in a channel, and a pool ---- */

static void *ends_with(void *arg) {
    EX_EQ(cc_event_wait(&go), 0);
    return arg;
}
static void ordered(void) {
    CCChanConfig config = {.capacity = 2, .ordered = true};
    ch = cc_chan_create_ex(&config);
    spawn(&task, ends_with, &got);
    spawn(&other, ends_with, &got_too);
    ex_settle();
}
static void sends_tasks(void) {
    EX_EQ(cc_chan_send_task(ch, &task), 0);
    EX_EQ(cc_chan_send_task(ch, &other), 0);
    EX_EQ(cc_chan_close(ch), 0);
}
static void receives_tasks(void) {
    void *result = NULL;
    EX_EQ(cc_chan_recv_task(ch, &result), 0);
    EX_CHECK(result == &got);
    EX_EQ(cc_chan_recv_task(ch, &result), 0);
    EX_CHECK(result == &got_too);
    EX_EQ(cc_chan_recv_task(ch, &result), EPIPE);
}
SCENARIO(chan_ordered, "results in the order of sending", .workers = 1, .setup = ordered,
         .threads = {sends_tasks, receives_tasks, ends_it}, .no_timer = true);

static int created;
static int create_or_not(void *item, void *context) {
    (void)context;
    if (++created == 1) return EIO;
    *(uint64_t *)item = 7;
    return 0;
}
static void pool_of_one(void) {
    CCChanConfig config = {.elem_size = sizeof(uint64_t), .capacity = 1, .on_create = create_or_not};
    ch = cc_chan_create_ex(&config);
}
static void takes_and_gives(int who) {
    uint64_t item = 0;
    rc[who] = cc_chan_recv(ch, &item, sizeof item);
    EX_CHECK(rc[who] == 0 || rc[who] == EIO);
    if (rc[who] != 0) return;
    EX_EQ(item, 7);
    EX_EQ(cc_chan_send(ch, &item, sizeof item), 0);
}
static void pool_a(void) {
    takes_and_gives(0);
}
static void pool_b(void) {
    takes_and_gives(1);
}
static void one_failed(void) {
    EX_EQ((rc[0] == 0) + (rc[1] == 0), 1);
}
SCENARIO(chan_pool, "a pool whose first item cannot be created: a waiter tries again", .setup = pool_of_one,
         .threads = {pool_a, pool_b}, .check = one_failed);

/* ---- a reader and a writer, fibers on two workers ---- */

static CCRWLock rw;
static void *reads(void *arg) {
    EX_EQ(cc_event_wait(&go), 0);
    EX_EQ(cc_rwlock_read_lock(&rw), 0);
    EX_CHECK(guarded == 0 || guarded == 1);
    EX_EQ(cc_rwlock_read_unlock(&rw), 0);
    return arg;
}
static void *writes(void *arg) {
    EX_EQ(cc_event_wait(&go), 0);
    EX_EQ(cc_rwlock_write_lock(&rw), 0);
    guarded++;
    EX_EQ(cc_rwlock_write_unlock(&rw), 0);
    return arg;
}
static void reader_and_writer(void) {
    spawn(&task, reads, NULL);
    spawn(&other, writes, NULL);
    ex_settle();
}
static void lets_both(void) {
    EX_EQ(cc_event_set(&go), 0);
    join(&task);
    join(&other);
    EX_EQ(guarded, 1);
}
SCENARIO(fiber_rwlock, "a reader and a writer on two workers", .workers = 2, .setup = reader_and_writer,
         .threads = {lets_both}, .no_timer = true);

/* ---- the last reference goes while fibers wait: CHAN-6 ---- */

static void *receives_soon(void *arg) {
    rc[3] = cc_chan_recv_until(ch, arg, sizeof(uint64_t), cc_after_ms(1));
    return NULL;
}
static void *receives(void *arg) {
    rc[2] = cc_chan_recv(ch, arg, sizeof(uint64_t));
    return NULL;
}
static void two_receive(void) {
    ch = cc_chan_create(sizeof(uint64_t), 0);
    spawn(&task, receives_soon, &got);
    spawn(&other, receives, &got_too);
    ex_settle();
}
static void frees(void) {
    cc_chan_free(ch);
    join(&task);
    join(&other);
    EX_CHECK(rc[3] == EPIPE || rc[3] == ETIMEDOUT);
    EX_EQ(rc[2], EPIPE);
}
SCENARIO(chan_free_parked, "CHAN-6: freed while two fibers wait, one of them with a deadline", .workers = 1,
         .setup = two_receive, .threads = {frees});
SCENARIO(chan_free_parked_2, "the same, two workers", .workers = 2, .setup = two_receive, .threads = {frees});

static void frees_first(void) {
    cc_chan_free(ch);
}
static void frees_second(void) {
    cc_chan_free(second);
    join(&task);
    EX_EQ(rc[3], 0);
}
static void select_alone(void) {
    select_parked();
    EX_EQ(cc_task_detach(&other), 0);
}
SCENARIO(chan_free_select, "both channels of a select are freed", .workers = 1, .setup = select_alone,
         .threads = {frees_first, frees_second}, .no_timer = true);
