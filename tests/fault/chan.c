/* chan.c - sends, receives and selects with a deadline when there is no memory for the timer: ENOMEM, no value moves,
 * and the channel serves the next caller. Subscriptions to a broadcast without memory. */
#include "fail.h"
#include "harness.h"

#include <ccc/ccc.h>

enum { MANY = 12 }; /* more cases than fit into a frame */

static CCChan *full, *empty, *nobody;

static void fill(CCCase *cases, int *value) {
    for (int i = 0; i < MANY; i++)
        cases[i] = (CCCase){.kind = CC_CASE_RECV, .ch = i % 2 ? empty : nobody, .value = value, .size = sizeof *value};
}

/* No timer was ever armed on this runtime: the first needs memory. */
static void *wait_without_memory(void *unused) {
    CCDeadline later = cc_after_ms(3600 * 1000);
    CCCase cases[MANY];
    int value = 7;
    size_t chosen = MANY;
    fill(cases, &value);
    fail_arm(1, FAIL_MEMORY, true);
    CHECK_EQ(cc_chan_send_until(full, &value, sizeof value, later), ENOMEM);
    CHECK_EQ(cc_chan_recv_until(empty, &value, sizeof value, later), ENOMEM);
    CHECK_EQ(cc_chan_send_until(nobody, &value, sizeof value, later), ENOMEM);
    CHECK_EQ(cc_chan_recv_until(nobody, &value, sizeof value, later), ENOMEM);
    CHECK_EQ(cc_select(cases, 2, later, &chosen), ENOMEM);
    CHECK_EQ(cc_select(cases, MANY, later, &chosen), ENOMEM);
    CHECK_EQ(fail_disarm(), 6);
    fail_arm(2, FAIL_MEMORY, true); /* the arms of many cases are allocated first, and must be freed again */
    CHECK_EQ(cc_select(cases, MANY, later, &chosen), ENOMEM);
    CHECK_EQ(fail_disarm(), 1);
    CHECK(value == 7 && chosen == MANY);

    /* The locks are free, and no arm is left on a list: a value is delivered, and waits end in time. */
    CHECK_EQ(cc_chan_recv_try(full, &value, sizeof value), 0);
    CHECK_EQ(value, 1);
    CHECK_EQ(cc_chan_recv_try(full, &value, sizeof value), EAGAIN);
    CHECK_EQ(cc_chan_send_try(empty, &value, sizeof value), 0);
    CHECK_EQ(cc_chan_recv_try(empty, &value, sizeof value), 0);
    CHECK_EQ(cc_chan_send_try(nobody, &value, sizeof value), EAGAIN);
    CHECK_EQ(cc_chan_recv_try(nobody, &value, sizeof value), EAGAIN);
    CHECK_EQ(cc_select(cases, MANY, cc_after_ms(1), &chosen), ETIMEDOUT);
    return unused;
}

TEST_WORKERS(no_memory_for_a_timer) {
    fail_begin();
    int value = 1;
    full = cc_chan_create(sizeof value, 1);
    empty = cc_chan_create(sizeof value, 1);
    nobody = cc_chan_create(sizeof value, 0);
    CHECK_EQ(cc_chan_send(full, &value, sizeof value), 0);
    CHECK_EQ(cc_run(wait_without_memory, NULL, NULL), 0);
    cc_chan_free(full);
    cc_chan_free(empty);
    cc_chan_free(nobody);
    CHECK_EQ(cc_runtime_shutdown(10000), 0);
    CHECK_EQ(fail.blocks, 0);
}

/* Every allocation of a subscription fails in turn: the subscription fails, or does without it, and the existing ones
 * still work. */
TEST(no_memory_for_a_subscription) {
    enum { SUBSCRIBERS = 40 };
    CCBroadcastConfig config = {.elem_size = sizeof(int), .capacity = 1};
    CCChan *subscribers[SUBSCRIBERS];
    int n = 0, value = 3, refused = 0, did_without = 0;
    fail_begin();
    CCBroadcast *b = cc_broadcast_create(&config);
    CHECK(b != NULL);
    for (int k = 1; n < SUBSCRIBERS; k = k % 5 + 1) {
        fail_arm(k, FAIL_MEMORY, false);
        CCChan *ch = cc_broadcast_subscribe(b);
        long failed = fail_disarm();
        if (ch == NULL) {
            CHECK(failed == 1 && errno == ENOMEM);
            refused++;
            continue;
        }
        did_without += failed == 1;
        subscribers[n++] = ch;
    }
    CHECK(refused > 0 && did_without > 0);
    CHECK_EQ(cc_broadcast_subscribers(b), SUBSCRIBERS);
    CHECK_EQ(cc_broadcast_send_try(b, &value, sizeof value), 0);
    while (n-- > 0) {
        CHECK_EQ(cc_chan_recv_try(subscribers[n], &value, sizeof value), 0);
        CHECK_EQ(cc_broadcast_unsubscribe(b, subscribers[n]), 0);
    }
    CHECK_EQ(cc_broadcast_subscribers(b), 0);
    cc_broadcast_free(b);
    CHECK_EQ(fail.blocks, 0);
}
