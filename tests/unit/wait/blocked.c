/* blocked.c - an OS thread is on the list of blocked threads exactly while it is blocked. */
#include "harness.h"

#include "wait/blocked.h"

#include <ccc/ccc.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>

enum { SEEN = 8 };

static unsigned count(void) {
    struct blocked_seen seen[SEEN];
    return cc__blocked_list(seen, SEEN);
}

static CCChan *ch;

static void *receive(void *deadline) {
    uint64_t value;
    int rc = cc_chan_recv_until(ch, &value, sizeof value, *(CCDeadline *)deadline);
    CHECK_EQ(rc, ((CCDeadline *)deadline)->ns != CC_FOREVER.ns ? ETIMEDOUT : 0);
    return NULL;
}

static pthread_t start(CCDeadline *deadline) {
    pthread_t thread;
    CHECK_EQ(pthread_create(&thread, NULL, receive, deadline), 0);
    return thread;
}

TEST(one_that_is_served) {
    CCDeadline never = CC_FOREVER;
    uint64_t value = 1;
    struct blocked_seen seen[SEEN];
    ch = cc_chan_create(sizeof value, 0);
    pthread_t thread = start(&never);
    while (count() == 0) sched_yield();
    CHECK_EQ(cc__blocked_list(seen, SEEN), 1);
    CHECK(seen[0].waits && seen[0].what.reason == PARK_QUEUE && seen[0].what.object == ch);
    CHECK_EQ(seen[0].deadline, WAIT_FOREVER);
    CHECK_EQ(cc_chan_send(ch, &value, sizeof value), 0);
    CHECK_EQ(pthread_join(thread, NULL), 0);
    CHECK_EQ(count(), 0);
    cc_chan_free(ch);
}

static int publish(void *object, struct waiter *waiter, void *io) {
    (void)object, (void)waiter, (void)io;
    return 0;
}

static void unpublish(void *object, struct waiter *waiter) {
    (void)object, (void)waiter;
    CHECK_EQ(count(), 0);
}

static const struct waitable_ops ops = {publish, unpublish};

TEST(ones_whose_time_is_up) {
    ch = cc_chan_create(sizeof(uint64_t), 0);
    for (int i = 0; i < 3; i++) {
        CCDeadline soon = cc_after_ms(2);
        CHECK_EQ(pthread_join(start(&soon), NULL), 0);
        CHECK_EQ(count(), 0);
        CHECK_EQ(cc_sleep_ms(1), 0);
        CHECK_EQ(count(), 0);
        CHECK_EQ(cc__fiber_wait(ch, NULL, &ops, cc_after_ms(1).ns, PARK_FLAG), ETIMEDOUT);
        CHECK_EQ(count(), 0);
    }
    cc_chan_free(ch);
}
