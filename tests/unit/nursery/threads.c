/* threads.c - an OS thread in a block is cancelled like a fiber: by a child's failure, a deadline, from above. */
#include "scene.h"

#include "../crew.h"

static CCChan *ch;

static void *fail_on_signal(void *signalled) {
    UNTIL(atomic_load((atomic_int *)signalled));
    return cc_fail(EIO, "no");
}

static void check_cancelled(int code) {
    int value;
    size_t chosen;
    CCError why;
    CHECK(cc_cancelled());
    CHECK_EQ(cc_check_cancel(), ECANCELED);
    CHECK_EQ(cc_cancel_reason(&why), 0);
    CHECK_EQ(why.code, code);
    CHECK_EQ(cc_chan_recv(ch, &value, sizeof value), ECANCELED); /* and all that follow */
    CHECK_EQ(cc_sleep_until(CC_FOREVER), ECANCELED);
    CCCase cases[] = {CC_RECV(ch, &value, NULL), CC_CANCEL()};
    CHECK_EQ(cc_select(cases, 2, CC_FOREVER, &chosen), 0);
    CHECK_EQ(chosen, 1);
    CHECK_EQ(cc_select(cases, 1, CC_FOREVER, &chosen), ECANCELED);
    CC_SHIELD {
        CHECK(!cc_cancelled());
        CHECK_EQ(cc_chan_recv_until(ch, &value, sizeof value, cc_after_ms(1)), ETIMEDOUT);
        CC_WITH_DEADLINE(cc_after_ms(1)) CHECK_EQ(cc_chan_recv(ch, &value, sizeof value), ECANCELED);
        CHECK(!cc_cancelled());
    }
    CHECK_EQ(cc_chan_recv(ch, &value, sizeof value), ECANCELED);
}

/* It blocks on something other than the nursery, and would for ever. */
TEST_WORKERS(a_failure_ends_its_waits) {
    atomic_int signalled = 0;
    int rc = -1, value;
    ch = cc_chan_create(sizeof(int), 0);
    for (int i = 0; i < 20; i++) {
        CC_NURSERY(n, .result = &rc) {
            CHECK(cc__scope_current() == &n->scope);
            signalled = i % 2;
            CHECK_EQ(cc_nursery_spawn(n, fail_on_signal, &signalled), 0);
            signalled = 1;
            CHECK_EQ(cc_chan_recv(ch, &value, sizeof value), ECANCELED);
            check_cancelled(EIO);
        }
        CHECK_EQ(rc, EIO);
        CHECK(!cc_cancelled());
        CHECK(cc__scope_current() == NULL);
        CHECK_EQ(cc_sleep_ms(0), 0);
    }
    cc_chan_free(ch);
}

static CCMutex mutex;
static CCEvent locked, over;

static void *hold_the_mutex(void *arg) {
    CHECK_EQ(cc_mutex_lock(&mutex), 0);
    CHECK_EQ(cc_event_set(&locked), 0);
    CHECK_EQ(cc_event_wait(&over), 0);
    CHECK_EQ(cc_mutex_unlock(&mutex), 0);
    return arg;
}

TEST_WORKERS(a_deadline_ends_its_waits) {
    int rc = -1, value;
    CCSem sem = {0};
    CCEvent event = {0};
    CCTask holder;
    ch = cc_chan_create(sizeof(int), 0);
    CHECK_EQ(cc_spawn(&holder, hold_the_mutex, NULL, NULL), 0);
    CHECK_EQ(cc_event_wait(&locked), 0);
    CC_NURSERY(n, .result = &rc, .deadline = cc_after_ms(2)) {
        CHECK_EQ(cc_sem_acquire(&sem), ECANCELED);
        CHECK_EQ(cc_event_wait(&event), ECANCELED);
        CHECK_EQ(cc_mutex_lock(&mutex), ECANCELED);
        check_cancelled(ETIMEDOUT);
    }
    CHECK_EQ(rc, ETIMEDOUT);
    CC_WITH_DEADLINE(cc_after_ms(2)) {
        CHECK(cc_deadline().ns != CC_FOREVER.ns);
        CHECK_EQ(cc_chan_recv(ch, &value, sizeof value), ECANCELED);
        check_cancelled(ETIMEDOUT);
    }
    CHECK_EQ(cc_deadline().ns, CC_FOREVER.ns);
    CC_WITH_DEADLINE(cc_after_ms(2)) UNTIL(cc_cancelled()); /* it checks the clock */
    CHECK(!cc_cancelled());
    CHECK_EQ(cc_event_set(&over), 0);
    CHECK_EQ(cc_task_join(&holder, NULL), 0);
    cc_chan_free(ch);
}

/* From above, by another thread, with and without a runtime; a wait for children goes on to the end. */
static CCNursery *_Atomic top;
static atomic_int ready;

static void cancel_top(int index, void *arg) {
    (void)index, (void)arg;
    UNTIL(atomic_load(&ready));
    CHECK_EQ(cc_nursery_cancel_with(top, ENOSPC, "full"), 0);
}

static void cancelled_by_another(bool runtime) {
    static atomic_int ended;
    ended = ready = 0;
    ch = cc_chan_create(sizeof(int), 0);
    int value, rc = -1;
    CCNursery *n = new_nursery(NULL);
    top = n;
    struct crew crew;
    crew_start(&crew, 1, cancel_top, NULL);
    CC_NURSERY(outer, .parent = n, .result = &rc) {
        CC_NURSERY(inner) {
            CHECK(inner->scope.parent == &outer->scope); /* the innermost that the caller is in */
            if (runtime) CHECK_EQ(cc_nursery_spawn(inner, wait_for_cancel, &ended), 0);
            ready = 1;
            CHECK_EQ(cc_chan_recv(ch, &value, sizeof value), ECANCELED);
            CHECK(cc_cancelled());
        }
        CHECK_EQ(ended, runtime);
        CHECK(cc_cancelled());
    }
    CHECK_EQ(rc, ECANCELED);
    crew_join(&crew);
    CHECK_EQ(cc_nursery_free(n), 0);
    cc_chan_free(ch);
}

TEST_WORKERS(from_above) {
    cancelled_by_another(false);
    cancelled_by_another(true);
}

/* A failure inside is passed on to the block around it. */
TEST_WORKERS(passed_on_between_blocks) {
    int rc = -1;
    atomic_int signalled = 1;
    CC_NURSERY(outer, .result = &rc) {
        CC_NURSERY(inner) CHECK_EQ(cc_nursery_spawn(inner, fail_on_signal, &signalled), 0);
        CHECK(cc_cancelled());
    }
    CHECK_EQ(rc, EIO);
}
