/* none.c - a deadline of {0} is none: every call that takes one waits for ever. */
#include "harness.h"

#include "../nursery/scene.h"

static const CCDeadline none; /* as it is in a struct that was not filled in */

static CCMutex mutex;
static CCRWLock rw;
static CCCond cond;
static CCSem sem;
static CCWaitGroup group;
static CCEvent event;
static CCBarrier barrier;
static CCChan *ch;
static CCNursery *nursery;
static CCTask other;

static int sleeps(void) {
    return cc_sleep_until(none);
}
static int sends(void) {
    int value = 1;
    return cc_chan_send_until(ch, &value, sizeof value, none);
}
static int receives(void) {
    int value;
    return cc_chan_recv_until(ch, &value, sizeof value, none);
}
static int joins(void) {
    return cc_task_join_until(&other, NULL, none);
}
static int selects(void) {
    int value;
    size_t chosen;
    CCCase cases[] = {CC_RECV(ch, &value, NULL)};
    return cc_select(cases, 1, none, &chosen);
}
static int selects_ordered(void) {
    int value;
    size_t chosen;
    CCCase cases[] = {CC_RECV(ch, &value, NULL)};
    return cc_select_ordered(cases, 1, CC_SELECT_FIRST, none, &chosen);
}
static int selects_at(void) {
    int value;
    size_t chosen;
    CCCase cases[] = {CC_RECV(ch, &value, NULL), CC_AT(none)};
    return cc_select(cases, 2, CC_FOREVER, &chosen);
}
static int locks(void) {
    return cc_mutex_lock_until(&mutex, none);
}
static int reads(void) {
    return cc_rwlock_read_lock_until(&rw, none);
}
static int writes(void) {
    return cc_rwlock_write_lock_until(&rw, none);
}
static int waits_cond(void) {
    static CCMutex own;
    CHECK_EQ(cc_mutex_lock(&own), 0);
    int rc = cc_cond_wait_until(&cond, &own, none);
    CHECK_EQ(cc_mutex_unlock(&own), 0);
    return rc;
}
static int acquires(void) {
    return cc_sem_acquire_until(&sem, none);
}
static int waits_group(void) {
    return cc_wait_group_wait_until(&group, none);
}
static int waits_event(void) {
    return cc_event_wait_until(&event, none);
}
static int meets(void) {
    return cc_barrier_wait_until(&barrier, none);
}
static int waits_nursery(void) {
    return cc_nursery_wait_until(nursery, none);
}
static int in_block(void) {
    CC_WITH_DEADLINE(none) {
        CHECK_EQ(cc_deadline().ns, CC_FOREVER.ns);
        return cc_sleep_until(CC_FOREVER) == ECANCELED && !cc_cancelled() ? ETIMEDOUT : ECANCELED;
    }
    return -1;
}
static int in_nursery(void) {
    int rc = -1;
    CC_NURSERY(n, .result = &rc, .deadline = none) {
        CHECK_EQ(cc_nursery_set_deadline(n, cc_after_ms(3600 * 1000)), 0);
        CHECK_EQ(cc_nursery_set_deadline(n, none), 0);
        CHECK_EQ(cc_deadline().ns, CC_FOREVER.ns);
        CHECK_EQ(cc_sleep_until(CC_FOREVER), ECANCELED);
        CHECK_EQ(cc_cancel_reason(&(CCError){.code = 0}), 0);
    }
    return rc == 0 ? ECANCELED : rc;
}

static void *call(void *fn) {
    return (void *)(intptr_t)(*(int (**)(void))fn)();
}

static void *waits_for_ever(void *arg) {
    (void)arg;
    CHECK_EQ(cc_sleep_until(CC_FOREVER), ECANCELED);
    return NULL;
}

TEST_WORKERS(none_everywhere) {
    int (*calls[])(void) = {sleeps,      sends,       receives, joins,         selects,    selects_ordered,
                            selects_at,  locks,       reads,    writes,        waits_cond, acquires,
                            waits_group, waits_event, meets,    waits_nursery, in_block,   in_nursery};
    ch = cc_chan_create(sizeof(int), 0);
    nursery = cc_nursery_create(NULL);
    CHECK(ch != NULL && nursery != NULL);
    CHECK_EQ(cc_nursery_spawn_ex(nursery, &other, waits_for_ever, NULL, NULL), 0);
    CHECK_EQ(cc_mutex_lock(&mutex), 0);
    CHECK_EQ(cc_rwlock_write_lock(&rw), 0);
    CHECK_EQ(cc_wait_group_add(&group, 1), 0);
    barrier = (CCBarrier)CC_BARRIER_INIT(2);
    for (size_t i = 0; i < array_len(calls); i++) {
        CCTask task;
        void *result;
        CHECK_EQ(cc_spawn(&task, call, &calls[i], NULL), 0);
        UNTIL(is_parked(task.id));
        CHECK_EQ(cc_task_join_until(&task, &result, cc_after_ms(2)), ETIMEDOUT); /* it stays there */
        CHECK_EQ(cc_task_cancel(&task), 0);
        CHECK_EQ(cc_task_join(&task, &result), 0);
        CHECK_EQ((intptr_t)result, ECANCELED);
    }
    CHECK_EQ(cc_nursery_cancel(nursery), 0);
    CHECK_EQ(cc_task_join(&other, NULL), 0);
    CHECK_EQ(cc_nursery_free(nursery), 0);
    CHECK_EQ(cc_rwlock_write_unlock(&rw), 0);
    CHECK_EQ(cc_mutex_unlock(&mutex), 0);
    cc_chan_free(ch);
}

/* A deadline that has passed differs from none, even at time 0. */
TEST(passed_is_not_none) {
    CHECK_EQ(cc_sleep_until(CC_PASSED), 0);
    CHECK_EQ(cc_event_wait_until(&event, CC_PASSED), ETIMEDOUT);
    CHECK(cc_after_ns(0).ns != 0);
    CHECK(cc_after_ns(0).ns <= cc_now_ns());
}
