/* broadcast.c - broadcasts with their three ways to treat slow subscribers; the latest value; oneshots. */
#include "../../programs/where.h"
#include "../contexts.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

static CCBroadcast *new_broadcast(size_t capacity, CCSlowMode slow) {
    CCBroadcastConfig config = {.elem_size = sizeof(int), .capacity = capacity, .slow = slow, .name = "news"};
    CCBroadcast *b = cc_broadcast_create(&config);
    CHECK(b != NULL);
    return b;
}

static CCChan *subscribe(CCBroadcast *b) {
    CCChan *ch = cc_broadcast_subscribe(b);
    CHECK(ch != NULL);
    return ch;
}

static void expect(CCChan *ch, int value) {
    int v = -1;
    CHECK_EQ(cc_chan_recv_try(ch, &v, sizeof v), 0);
    CHECK_EQ(v, value);
}

static void expect_error(CCChan *ch, int error) {
    int v = -1;
    CHECK_EQ(cc_chan_recv_try(ch, &v, sizeof v), error);
}

static void send_all(CCBroadcast *b, int first, int last) {
    for (int v = first; v <= last; v++) CHECK_EQ(cc_broadcast_send(b, &v, sizeof v), 0);
}

static void every_subscriber_gets_all(void) {
    CCBroadcast *b = new_broadcast(4, CC_SLOW_BLOCK);
    int v = 0;
    send_all(b, 0, 0); /* nobody is there */
    CCChan *one = subscribe(b), *two = subscribe(b);
    CHECK_EQ(cc_broadcast_subscribers(b), 2);
    send_all(b, 1, 2);
    CCChan *three = subscribe(b);
    send_all(b, 3, 3);
    for (v = 1; v <= 3; v++) {
        expect(one, v);
        expect(two, v);
    }
    expect(three, 3);
    expect_error(three, EAGAIN);
    CHECK_EQ(cc_broadcast_unsubscribe(b, two), 0);
    CHECK_EQ(cc_broadcast_subscribers(b), 2);
    send_all(b, 4, 4);
    CHECK_EQ(cc_broadcast_close(b), 0);
    CHECK_EQ(cc_broadcast_send(b, &v, sizeof v), EPIPE);
    CHECK(cc_broadcast_subscribe(b) == NULL && errno == EPIPE);
    expect(one, 4);
    expect_error(one, EPIPE);
    cc_broadcast_free(b);
    expect(three, 4); /* outlives it */
    expect_error(three, EPIPE);
    cc_chan_free(one);
    cc_chan_free(three);
}

TEST_WORKERS(every_subscriber_gets_all) {
    in_both_contexts(every_subscriber_gets_all);
}

static int copy_nothing(void *value, void *context) {
    (void)value, (void)context;
    return 0;
}

TEST(arguments) {
    CCBroadcastConfig config = {.elem_size = 4};
    int v = 0;
    CHECK(cc_broadcast_create(NULL) == NULL && errno == EINVAL);
    CHECK(cc_broadcast_create(&config) == NULL && errno == EINVAL); /* no capacity */
    config.capacity = 1;
    config.slow = (CCSlowMode)7;
    CHECK(cc_broadcast_create(&config) == NULL && errno == EINVAL);
    config.slow = CC_SLOW_BLOCK;
    config.reserved[2] = 1;
    CHECK(cc_broadcast_create(&config) == NULL && errno == EINVAL);
    config = (CCBroadcastConfig){.elem_size = SIZE_MAX - 8, .capacity = 1, .on_copy = copy_nothing};
    CHECK(cc_broadcast_create(&config) == NULL && errno == ENOMEM);
    CHECK(cc_broadcast_subscribe(NULL) == NULL && errno == EINVAL);
    CHECK_EQ(cc_broadcast_send(NULL, &v, sizeof v), EINVAL);
    CHECK_EQ(cc_broadcast_close(NULL), EINVAL);
    CHECK_EQ(cc_broadcast_unsubscribe(NULL, NULL), EINVAL);
    CHECK_EQ(cc_broadcast_subscribers(NULL), 0);
    cc_broadcast_free(NULL);
    CCBroadcast *b = new_broadcast(1, CC_SLOW_BLOCK);
    CHECK_EQ(cc_broadcast_send(b, &v, 1), EINVAL);
    CHECK_EQ(cc_broadcast_send_try(b, NULL, sizeof v), EINVAL);
    cc_broadcast_free(b);
}

/* ---- many subscribers ---- */

/* Unsubscribing is constant time: a search of the list would take minutes if the last ones leave first. The others get
 * every value. */
TEST(many_leave, .timeout = 30) {
    bool cheap = !(UNDER_ASAN || UNDER_TSAN || under_valgrind() || under_qemu());
    int count = cheap ? 100000 : 2000;
    CCChan **line = calloc((size_t)count, sizeof *line);
    CCBroadcast *b = new_broadcast(1, CC_SLOW_BLOCK);
    CHECK(line != NULL);
    for (int i = 0; i < count; i++) line[i] = subscribe(b);
    for (int i = count - 1; i >= 0; i--)
        if (i % 100 != 0) CHECK_EQ(cc_broadcast_unsubscribe(b, line[i]), 0);
    CHECK_EQ(cc_broadcast_subscribers(b), (size_t)count / 100);
    send_all(b, 7, 7);
    for (int i = 0; i < count; i += 100) {
        expect(line[i], 7);
        CHECK_EQ(cc_broadcast_unsubscribe(b, line[i]), 0);
    }
    CHECK_EQ(cc_broadcast_subscribers(b), 0);
    cc_broadcast_free(b);
    free(line);
}

/* ---- a subscriber's channel gets values from other senders, which is misuse ---- */

enum { MANY = 64 };
static CCChan *subscribers[MANY];
static atomic_bool over;

static void *interfere(void *arg) {
    int v = -1;
    while (!atomic_load(&over))
        for (int i = 0; i < MANY; i++) {
            (void)cc_chan_send_try(subscribers[i], &v, sizeof v);
            (void)cc_chan_recv_try(subscribers[i], &v, sizeof v);
        }
    return arg;
}

/* A channel that had space a moment ago has none: it misses the value, and nothing else happens. */
TEST(values_of_others) {
    CCBroadcast *b = new_broadcast(1, CC_SLOW_BLOCK);
    pthread_t thread;
    for (int i = 0; i < MANY; i++) subscribers[i] = subscribe(b);
    CHECK_EQ(pthread_create(&thread, NULL, interfere, NULL), 0);
    for (long i = test_rounds(2000, 20000); i > 0; i--) {
        int v = 1, rc = cc_broadcast_send_try(b, &v, sizeof v);
        CHECK(rc == 0 || rc == EAGAIN);
        for (int k = 0; k < MANY; k++) (void)cc_chan_recv_try(subscribers[k], &v, sizeof v);
    }
    atomic_store(&over, true);
    CHECK_EQ(pthread_join(thread, NULL), 0);
    CHECK_EQ(cc_broadcast_subscribers(b), MANY);
    for (int i = 0; i < MANY; i++) cc_chan_free(subscribers[i]);
    cc_broadcast_free(b);
}

/* ---- slow ones ---- */

static void slow_blocks(void) {
    CCBroadcast *b = new_broadcast(1, CC_SLOW_BLOCK);
    CCChan *fast = subscribe(b), *slow = subscribe(b);
    int v = 2;
    send_all(b, 1, 1);
    expect(fast, 1);
    CHECK_EQ(cc_broadcast_send_try(b, &v, sizeof v), EAGAIN);
    expect_error(fast, EAGAIN); /* nobody has got it */
    CHECK_EQ(cc_broadcast_send_until(b, &v, sizeof v, cc_after_ms(1)), ETIMEDOUT);
    expect(fast, 2); /* had room */
    expect(slow, 1);
    expect_error(slow, EAGAIN);
    CHECK_EQ(cc_broadcast_send_try(b, &v, sizeof v), 0);
    CHECK_EQ(cc_broadcast_unsubscribe(b, fast), 0);
    CHECK_EQ(cc_broadcast_unsubscribe(b, slow), 0);
    cc_broadcast_free(b);
}

TEST_WORKERS(slow_blocks) {
    in_both_contexts(slow_blocks);
}

CC_CHILD(send_one, {
    CCBroadcast *b;
    int v;
}) {
    return cc_broadcast_send(self->b, &self->v, sizeof self->v);
}

/* A send that waits for a subscriber continues when that one unsubscribes. */
static void slow_one_leaves(void) {
    CCBroadcast *b = new_broadcast(1, CC_SLOW_BLOCK);
    CCChan *slow = subscribe(b);
    int rc = -1;
    send_all(b, 1, 1);
    CC_NURSERY(n, .result = &rc) {
        CHECK_EQ(CC_GO_IN(n, send_one, .b = b, .v = 2), 0);
        cc_yield();
        CHECK_EQ(cc_broadcast_unsubscribe(b, slow), 0);
    }
    CHECK_EQ(rc, 0);
    cc_broadcast_free(b);
}

TEST_WORKERS(slow_one_leaves) {
    in_both_contexts(slow_one_leaves);
}

/* A child sends, and waits for the others when `fast` has the value. */
static void send_and_wait(CCNursery *n, CCBroadcast *b, CCChan *fast, int v) {
    expect(fast, 1);
    CHECK_EQ(CC_GO_IN(n, send_one, .b = b, .v = v), 0);
    while (cc_chan_len(fast) == 0) cc_yield();
}

/* Unsubscribing, subscribing and counting wait for no other subscriber: here all belong to the caller. */
static void two_slow_ones_leave(void) {
    CCBroadcast *b = new_broadcast(1, CC_SLOW_BLOCK);
    CCChan *fast = subscribe(b), *one = subscribe(b), *two = subscribe(b);
    int rc = -1;
    send_all(b, 1, 1);
    CC_NURSERY(n, .result = &rc) {
        send_and_wait(n, b, fast, 2);
        CCChan *late = subscribe(b);
        CHECK_EQ(cc_broadcast_subscribers(b), 4);
        CHECK_EQ(cc_broadcast_unsubscribe(b, one), 0);
        CHECK_EQ(cc_broadcast_unsubscribe(b, two), 0);
        CHECK_EQ(cc_broadcast_subscribers(b), 2);
        expect_error(late, EAGAIN);
        CHECK_EQ(cc_broadcast_unsubscribe(b, late), 0);
    }
    CHECK_EQ(rc, 0);
    expect(fast, 2);
    CHECK_EQ(cc_broadcast_unsubscribe(b, fast), 0);
    CHECK_EQ(cc_broadcast_subscribers(b), 0);
    cc_broadcast_free(b);
}

TEST_WORKERS(two_slow_ones_leave) {
    in_both_contexts(two_slow_ones_leave);
}

/* A send is cancelled while it waits for one subscriber; a later one has space by then. */
static void room_behind_a_slow_one(void) {
    CCBroadcast *b = new_broadcast(1, CC_SLOW_BLOCK);
    CCChan *fast = subscribe(b), *slow = subscribe(b), *behind = subscribe(b);
    int rc = -1;
    send_all(b, 1, 1);
    CC_NURSERY(n, .result = &rc) {
        send_and_wait(n, b, fast, 2);
        CHECK_EQ(cc_broadcast_subscribers(b), 3); /* under the lock: the send has found `slow` and `behind` full */
        expect(behind, 1);
        cc_nursery_cancel(n);
    }
    CHECK_EQ(rc, ECANCELED);
    expect(fast, 2);
    expect(behind, 2);
    expect(slow, 1);
    expect_error(slow, EAGAIN);
    cc_broadcast_free(b);
    cc_chan_free(fast);
    cc_chan_free(slow);
    cc_chan_free(behind);
}

TEST_WORKERS(room_behind_a_slow_one) {
    in_both_contexts(room_behind_a_slow_one);
}

/* A close ends a send that waits. */
static void slow_one_closes(void) {
    CCBroadcast *b = new_broadcast(1, CC_SLOW_BLOCK);
    CCChan *fast = subscribe(b), *slow = subscribe(b), *slower = subscribe(b);
    int rc = -1;
    send_all(b, 1, 1);
    CC_NURSERY(n, .result = &rc) {
        send_and_wait(n, b, fast, 2);
        CHECK_EQ(cc_broadcast_close(b), 0);
    }
    CHECK_EQ(rc, EPIPE);
    expect(fast, 2);
    expect_error(fast, EPIPE);
    expect(slow, 1);
    expect_error(slow, EPIPE);
    expect(slower, 1);
    expect_error(slower, EPIPE);
    CHECK_EQ(cc_broadcast_unsubscribe(b, slower), 0);
    CHECK_EQ(cc_broadcast_unsubscribe(b, fast), 0);
    cc_broadcast_free(b);
    cc_chan_free(slow);
}

TEST_WORKERS(slow_one_closes) {
    in_both_contexts(slow_one_closes);
}

static atomic_int dropped_sum;

static void note_drop(void *value, void *context) {
    CHECK(context == &dropped_sum);
    dropped_sum += *(int *)value;
}

static void slow_loses(void) {
    dropped_sum = 0;
    CCBroadcastConfig config = {.elem_size = sizeof(int),
                                .capacity = 2,
                                .slow = CC_SLOW_DROP_OLD,
                                .on_drop = note_drop,
                                .context = &dropped_sum};
    CCBroadcast *b = cc_broadcast_create(&config);
    CCChan *slow = subscribe(b);
    send_all(b, 1, 5);
    CHECK_EQ(cc_chan_dropped(slow), 3);
    CHECK_EQ(dropped_sum, 1 + 2 + 3);
    expect(slow, 4);
    CHECK_EQ(cc_broadcast_unsubscribe(b, slow), 0);
    CHECK_EQ(dropped_sum, 1 + 2 + 3 + 5);
    cc_broadcast_free(b);
}

TEST_WORKERS(slow_loses) {
    in_both_contexts(slow_loses);
}

static void slow_is_disconnected(void) {
    CCBroadcast *b = new_broadcast(2, CC_SLOW_DISCONNECT);
    CCChan *slow = subscribe(b), *fast = subscribe(b);
    for (int v = 1; v <= 5; v++) {
        send_all(b, v, v);
        expect(fast, v);
    }
    CHECK_EQ(cc_broadcast_subscribers(b), 1);
    expect(slow, 1);
    expect(slow, 2);
    expect_error(slow, ENOBUFS);
    CHECK_EQ(cc_broadcast_unsubscribe(b, slow), 0);
    CHECK_EQ(cc_broadcast_unsubscribe(b, fast), 0);
    cc_broadcast_free(b);
}

TEST_WORKERS(slow_is_disconnected) {
    in_both_contexts(slow_is_disconnected);
}

/* Several senders: every subscriber sees the same order. */
enum { SENDERS = 3, RECEIVERS = 3, EACH = 60 };

CC_CHILD(send_numbers, {
    CCBroadcast *b;
    int id;
}) {
    for (int i = 0; i < EACH; i++) {
        int v = self->id * EACH + i, rc = cc_broadcast_send(self->b, &v, sizeof v);
        if (rc != 0) return rc;
    }
    return 0;
}

CC_CHILD(receive_numbers, {
    CCChan *ch;
    int *seen;
}) {
    int n = 0;
    CC_FOR_RECV(int, v, self->ch) self->seen[n++] = v;
    CHECK_EQ(n, SENDERS * EACH);
    cc_chan_free(self->ch);
    return 0;
}

static void same_order(void) {
    CCBroadcast *b = new_broadcast(3, CC_SLOW_BLOCK);
    int seen[RECEIVERS][SENDERS * EACH], rc = -1;
    CC_NURSERY(receivers, .result = &rc) {
        for (int i = 0; i < RECEIVERS; i++)
            CHECK_EQ(CC_GO_IN(receivers, receive_numbers, .ch = subscribe(b), .seen = seen[i]), 0);
        int sent = -1;
        CC_NURSERY(senders, .result = &sent) {
            for (int i = 0; i < SENDERS; i++) CHECK_EQ(CC_GO_IN(senders, send_numbers, .b = b, .id = i), 0);
        }
        CHECK_EQ(sent, 0);
        CHECK_EQ(cc_broadcast_close(b), 0);
    }
    CHECK_EQ(rc, 0);
    for (int i = 1; i < RECEIVERS; i++) CHECK(memcmp(seen[0], seen[i], sizeof seen[0]) == 0);
    cc_broadcast_free(b);
}

TEST_WORKERS(same_order) {
    in_both_contexts(same_order);
}

/* ---- values that own memory ---- */

static atomic_int live, fail_in; /* values that were not freed; which of the next copies fails, 0: none */
static atomic_bool by_panic;

static int *new_value(int v) {
    int *value = malloc(sizeof *value);
    CHECK(value != NULL);
    *value = v;
    live++;
    return value;
}

static void free_value(void *value, void *context) {
    CHECK(context == &live);
    free(*(int **)value);
    live--;
}

static int copy_value(void *value, void *context) {
    CHECK(context == &live);
    if (fail_in > 0 && --fail_in == 0) {
        if (by_panic) cc_panic("no copy");
        return -1;
    }
    *(int **)value = new_value(**(int **)value);
    return 0;
}

static CCBroadcast *new_owning(size_t capacity, CCSlowMode slow) {
    CCBroadcastConfig config = {.elem_size = sizeof(int *),
                                .capacity = capacity,
                                .slow = slow,
                                .on_drop = free_value,
                                .on_copy = copy_value,
                                .context = &live};
    CCBroadcast *b = cc_broadcast_create(&config);
    CHECK(b != NULL);
    return b;
}

/* What is sent stays the caller's, which frees it. */
static void send_owned(CCBroadcast *b, int v, int expected, size_t copies) {
    int *value = new_value(v);
    size_t delivered = 99;
    CHECK_EQ(cc_broadcast_send_count(b, &value, sizeof value, &delivered, cc_after_ms(1)), expected);
    CHECK_EQ(delivered, copies);
    CHECK_EQ(*value, v);
    free_value(&value, &live);
}

static void expect_owned(CCChan *ch, int v) {
    int *value;
    CHECK_EQ(cc_chan_recv_try(ch, &value, sizeof value), 0);
    CHECK_EQ(*value, v);
    free_value(&value, &live);
}

/* The last of these sends finds one subscriber with room, and one without. */
static void check_copies(CCSlowMode slow, int expected, size_t copies, int next) {
    CCBroadcast *b = new_owning(2, slow);
    send_owned(b, 1, 0, 0); /* nobody is there */
    CCChan *fast = subscribe(b), *behind = subscribe(b);
    for (int v = 2; v <= 3; v++) send_owned(b, v, 0, 2);
    expect_owned(fast, 2);
    send_owned(b, 4, expected, copies);
    expect_owned(fast, 3);
    expect_owned(fast, 4);
    expect_owned(behind, next);
    CHECK_EQ(live, 1);
    CHECK_EQ(cc_broadcast_unsubscribe(b, fast), 0);
    cc_broadcast_free(b);
    cc_chan_free(behind);
    CHECK_EQ(live, 0);
}

static void copies_are_the_subscribers(void) {
    check_copies(CC_SLOW_BLOCK, ETIMEDOUT, 1, 2);
    check_copies(CC_SLOW_DROP_OLD, 0, 2, 3);
    check_copies(CC_SLOW_DISCONNECT, 0, 1, 2);
}

TEST_WORKERS(copies_are_the_subscribers) {
    in_both_contexts(copies_are_the_subscribers);
}

/* The subscriber for which no copy can be made misses the value. A send_try makes none if one of them has no room. */
static void copies_fail(void) {
    CCBroadcast *b = new_owning(1, CC_SLOW_BLOCK);
    CCChan *one = subscribe(b), *two = subscribe(b), *three = subscribe(b);
    int *value = new_value(2);
    fail_in = 2;
    send_owned(b, 1, ENOMEM, 2);
    expect_owned(one, 1);
    expect_owned(three, 1);
    CHECK_EQ(cc_chan_len(two), 0);
    CHECK_EQ(cc_broadcast_send_try(b, &value, sizeof value), 0);
    expect_owned(one, 2);
    CHECK_EQ(cc_broadcast_send_try(b, &value, sizeof value), EAGAIN);
    CHECK_EQ(cc_chan_len(one), 0);
    fail_in = 2; /* the one for `two`, which has no room */
    send_owned(b, 3, ENOMEM, 1);
    expect_owned(one, 3);
    free_value(&value, &live);
    CHECK_EQ(live, 2);
    cc_broadcast_free(b);
    cc_chan_free(one);
    cc_chan_free(two);
    cc_chan_free(three);
    CHECK_EQ(live, 0);
}

TEST_WORKERS(copies_fail) {
    in_both_contexts(copies_fail);
}

static void free_own(void *value) {
    free_value(&value, &live);
}

static void sends_to_panic(void *b) {
    int *value = new_value(2);
    CC_DEFER(free_own, value);
    MAY_FAIL(cc_broadcast_send(b, &value, sizeof value));
}

/* In the first copy, for a subscriber with room; in the second, for the first of two that the send would wait for. */
static void copies_panic(void) {
    CCBroadcast *b = new_owning(1, CC_SLOW_BLOCK);
    CCChan *one = subscribe(b), *full = subscribe(b), *fuller = subscribe(b);
    int *none = NULL;
    send_owned(b, 1, 0, 3);
    expect_owned(one, 1);
    by_panic = true;
    for (int which = 1; which <= 2; which++) {
        fail_in = which;
        CHECK_EQ(cc_try(sends_to_panic, b, NULL), ENOTRECOVERABLE);
        CHECK_EQ(cc_chan_len(one), which == 2);
        CHECK_EQ(cc_broadcast_subscribers(b), 3);
    }
    by_panic = false;
    expect_owned(one, 2);
    expect_owned(full, 1);
    CHECK_EQ(cc_broadcast_send_try(b, &none, sizeof none), EAGAIN); /* the last one is not forgotten */
    expect_owned(fuller, 1);
    CCChan *late = subscribe(b);
    send_owned(b, 3, 0, 4);
    expect_owned(one, 3);
    expect_owned(full, 3);
    expect_owned(late, 3);
    CHECK_EQ(cc_broadcast_unsubscribe(b, late), 0);
    CHECK_EQ(cc_broadcast_unsubscribe(b, fuller), 0);
    cc_broadcast_free(b);
    cc_chan_free(one);
    cc_chan_free(full);
    CHECK_EQ(live, 0);
}

TEST_WORKERS(copies_panic) {
    in_both_contexts(copies_panic);
}

CC_CHILD(send_owned_one, {
    CCBroadcast *b;
    size_t *delivered;
}) {
    int *value = new_value(2);
    int rc = cc_broadcast_send_count(self->b, &value, sizeof value, self->delivered, CC_FOREVER);
    free_value(&value, &live);
    return rc;
}

/* The send holds a copy for a subscriber that leaves. */
static void copies_of_one_that_leaves(void) {
    CCBroadcast *b = new_owning(1, CC_SLOW_BLOCK);
    CCChan *fast = subscribe(b), *slow = subscribe(b);
    size_t delivered = 99;
    int rc = -1;
    send_owned(b, 1, 0, 2);
    expect_owned(fast, 1);
    CC_NURSERY(n, .result = &rc) {
        CHECK_EQ(CC_GO_IN(n, send_owned_one, .b = b, .delivered = &delivered), 0);
        while (cc_chan_len(fast) == 0) cc_yield();
        CHECK_EQ(cc_broadcast_unsubscribe(b, slow), 0);
    }
    CHECK_EQ(rc, 0);
    CHECK_EQ(delivered, 1);
    expect_owned(fast, 2);
    CHECK_EQ(live, 0);
    cc_broadcast_free(b);
    cc_chan_free(fast);
}

TEST_WORKERS(copies_of_one_that_leaves) {
    in_both_contexts(copies_of_one_that_leaves);
}

/* Also where nothing is owned. */
TEST(a_send_counts) {
    CCBroadcast *b = new_broadcast(1, CC_SLOW_BLOCK);
    CCChan *one = subscribe(b);
    size_t delivered = 99;
    int v = 1;
    CHECK_EQ(cc_broadcast_send_count(NULL, &v, sizeof v, &delivered, CC_FOREVER), EINVAL);
    CHECK_EQ(delivered, 0);
    CHECK_EQ(cc_broadcast_send_count(b, &v, sizeof v, &delivered, CC_FOREVER), 0);
    CHECK_EQ(delivered, 1);
    CCChan *two = subscribe(b);
    CHECK_EQ(cc_broadcast_send_count(b, &v, sizeof v, &delivered, CC_PASSED), ETIMEDOUT);
    CHECK_EQ(delivered, 1);
    CHECK_EQ(cc_broadcast_send_count(b, &v, sizeof v, NULL, CC_PASSED), ETIMEDOUT);
    CHECK_EQ(cc_broadcast_close(b), 0);
    delivered = 99;
    CHECK_EQ(cc_broadcast_send_count(b, &v, sizeof v, &delivered, CC_FOREVER), EPIPE);
    CHECK_EQ(delivered, 0);
    cc_broadcast_free(b);
    cc_chan_free(one);
    cc_chan_free(two);
}

/* ---- the latest value ---- */

CC_CHILD(set_until_ten, { CCLatest *w; }) {
    for (int v = 1; v <= 10; v++) {
        CHECK_EQ(cc_latest_set(self->w, &v, sizeof v), 0);
        cc_yield();
    }
    return cc_latest_close(self->w);
}

static void latest(void) {
    int v = 0, last = -1, rc = -1;
    uint64_t seen = 0;
    CHECK(cc_latest_create(NULL, 1) == NULL && errno == EINVAL);
    CCLatest *w = cc_latest_create(&v, sizeof v);
    CHECK_EQ(cc_latest_wait(w, &seen, &last, 1), EINVAL);
    CHECK_EQ(cc_latest_wait(NULL, &seen, &last, sizeof last), EINVAL);
    CHECK_EQ(cc_latest_wait(w, NULL, &last, sizeof last), EINVAL);
    CHECK_EQ(cc_latest_wait(w, &seen, &last, sizeof last), 0); /* the present value, at once */
    CHECK(seen == 1 && last == 0);
    CHECK_EQ(cc_latest_wait_try(w, &seen, &last, sizeof last), EAGAIN);
    CHECK_EQ(cc_latest_wait_until(w, &seen, &last, sizeof last, cc_after_ms(1)), ETIMEDOUT);
    CC_NURSERY(n, .result = &rc) {
        CHECK_EQ(CC_GO_IN(n, set_until_ten, .w = w), 0);
        while ((rc = cc_latest_wait(w, &seen, &v, sizeof v)) == 0) {
            CHECK(v > last && (int)seen == v + 1); /* some may be left out, none comes twice */
            last = v;
        }
        CHECK_EQ(rc, EPIPE);
        CHECK_EQ(last, 10); /* the latest is not lost */
    }
    CHECK_EQ(rc, 0);
    CHECK_EQ(cc_latest_set(w, &v, sizeof v), EPIPE);
    cc_latest_free(w);
}

TEST_WORKERS(latest) {
    in_both_contexts(latest);
}

static void *notes_its_turn(void *ran) {
    *(atomic_bool *)ran = true;
    return NULL;
}

/* Longer than it takes until the turn is too long (NEXT-3). Nobody else uses the mutex inside. */
static void *try_for_long(void *arg) {
    atomic_bool others_ran = false;
    CCTask other = cc_fiber_spawn_task(notes_its_turn, &others_ran);
    int v = 1;
    CCLatest *w = cc_latest_create(&v, sizeof v);
    for (CCDeadline end = cc_after_ms(100); !cc_deadline_has_passed(end);) {
        uint64_t seen = 0;
        CHECK_EQ(cc_latest_wait_try(w, &seen, &v, sizeof v), 0);
        CHECK_EQ(cc_latest_wait_try(w, &seen, &v, sizeof v), EAGAIN);
    }
    CHECK(!others_ran);
    CHECK_EQ(cc_task_join(&other, NULL), 0);
    cc_latest_free(w);
    return arg;
}

TEST(latest_tries_do_not_switch) {
    CHECK_EQ(setenv("CC_PREEMPT", "1", 1), 0);
    CCRuntimeConfig config = {.workers = 1, .max_workers = 1};
    CHECK_EQ(cc_runtime_init(&config), 0);
    CHECK_EQ(cc_run(try_for_long, NULL, NULL), 0);
}

/* ---- oneshots ---- */

struct pair {
    int a;
    char text[40];
};
CC_ONESHOT_OF(PairOnce, struct pair);

CC_TASK(answer, {
    PairOnce *to;
    int a;
}) {
    struct pair p = {self->a, "answered"};
    cc_yield();
    if (self->a < 0)
        CHECK_EQ(PairOnce_close(self->to, -self->a), 0);
    else
        CHECK_EQ(PairOnce_send(self->to, p), 0);
    return NULL;
}

static void oneshot(void) {
    for (int a = 0; a < 3; a++) {
        PairOnce once = {0};
        struct pair p = {0, ""};
        CHECK_EQ(PairOnce_recv_try(&once, &p), EAGAIN);
        CHECK_EQ(PairOnce_recv_until(&once, &p, CC_PASSED), ETIMEDOUT);
        CCTask task = CC_GO(answer, .to = &once, .a = a);
        CHECK_EQ(PairOnce_recv(&once, &p), 0);
        CHECK(p.a == a && strcmp(p.text, "answered") == 0);
        CHECK_EQ(cc_task_join(&task, NULL), 0);
        CHECK_EQ(PairOnce_send(&once, p), EPIPE); /* once */
        CHECK_EQ(PairOnce_close(&once, 0), EPIPE);
        CHECK_EQ(PairOnce_recv_try(&once, &p), 0); /* any number of receivers */
    }
    PairOnce once = {0};
    struct pair p;
    CCTask task = CC_GO(answer, .to = &once, .a = -ENOENT);
    CHECK_EQ(PairOnce_recv(&once, &p), ENOENT);
    CHECK_EQ(cc_task_join(&task, NULL), 0);
    CHECK_EQ(cc_oneshot_send(NULL, &p, &p, sizeof p), EINVAL);
    CHECK_EQ(cc_oneshot_recv(&once.oneshot, NULL, &p, sizeof p), EINVAL);
}

TEST_WORKERS(oneshot) {
    in_both_contexts(oneshot);
}
