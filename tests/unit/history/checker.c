/* checker.c - the linearizability checker tells good histories from bad ones: small ones that a reader can follow, and
 * large ones that are good by construction.
 */
#include "harness.h"
#include "history.h"

#define SEND(call_, ret_, v, rc_) \
    { .call = (call_), .ret = (ret_), .value = (v), .rc = (rc_), .op = HISTORY_SEND }
#define RECV(call_, ret_, v, rc_) \
    { .call = (call_), .ret = (ret_), .value = (v), .rc = (rc_), .op = HISTORY_RECV }
#define CLOSE(call_, ret_) \
    { .call = (call_), .ret = (ret_), .op = HISTORY_CLOSE }
#define LOCK(call_, ret_, rc_) \
    { .call = (call_), .ret = (ret_), .rc = (rc_), .op = HISTORY_ACQUIRE }
#define UNLOCK(call_, ret_, n) \
    { .call = (call_), .ret = (ret_), .value = (n), .op = HISTORY_RELEASE }

#define JUDGE(object, capacity, count, ...)                                                                       \
    history_check((struct history_event[]){__VA_ARGS__},                                                          \
                  sizeof((struct history_event[]){__VA_ARGS__}) / sizeof(struct history_event), object, capacity, \
                  count, 1000000)
#define CHANNEL(capacity, ...) JUDGE(HISTORY_CHANNEL, capacity, 0, __VA_ARGS__)

TEST(one_after_another) {
    CHECK_EQ(CHANNEL(2, SEND(0, 1, 7, 0), SEND(1, 2, 8, 0), RECV(2, 3, 7, 0), RECV(3, 4, 8, 0)), HISTORY_GOOD);
    CHECK_EQ(CHANNEL(2, SEND(0, 1, 7, 0), SEND(1, 2, 8, 0), RECV(2, 3, 8, 0), RECV(3, 4, 7, 0)), HISTORY_BAD);
    CHECK_EQ(CHANNEL(2, SEND(0, 1, 7, 0), RECV(1, 2, 7, 0), RECV(2, 3, 7, 0)), HISTORY_BAD);
    CHECK_EQ(CHANNEL(2, RECV(0, 1, 7, 0), SEND(1, 2, 7, 0)), HISTORY_BAD);
}

TEST(at_the_same_time) {
    /* The sends overlap: any order of them will do, but the receives agree on one. */
    CHECK_EQ(CHANNEL(2, SEND(0, 2, 7, 0), SEND(0, 1, 8, 0), RECV(2, 3, 8, 0), RECV(3, 4, 7, 0)), HISTORY_GOOD);
    CHECK_EQ(CHANNEL(2, SEND(0, 2, 7, 0), SEND(0, 1, 8, 0), RECV(2, 3, 7, 0), RECV(3, 4, 8, 0)), HISTORY_GOOD);
    CHECK_EQ(CHANNEL(2, SEND(0, 2, 7, 0), SEND(0, 1, 8, 0), RECV(2, 3, 8, 0), RECV(2, 4, 7, 0)), HISTORY_GOOD);
    /* 7 was sent before 9; the receive of 9 had returned before the receive of 7 was called. */
    CHECK_EQ(CHANNEL(3, SEND(0, 1, 7, 0), SEND(0, 3, 8, 0), SEND(1, 2, 9, 0), RECV(3, 4, 9, 0), RECV(4, 5, 7, 0),
                     RECV(5, 6, 8, 0)),
             HISTORY_BAD);
}

TEST(a_capacity_is_exact) {
    CHECK_EQ(CHANNEL(1, SEND(0, 1, 7, 0), SEND(1, 2, 8, 0), RECV(2, 3, 7, 0), RECV(3, 4, 8, 0)), HISTORY_BAD);
    CHECK_EQ(CHANNEL(1, SEND(0, 1, 7, 0), SEND(1, 3, 8, 0), RECV(1, 2, 7, 0), RECV(3, 4, 8, 0)), HISTORY_GOOD);
    CHECK_EQ(CHANNEL(1, SEND(0, 1, 7, 0), SEND(1, 2, 8, EAGAIN), RECV(2, 3, 7, 0)), HISTORY_GOOD);
    CHECK_EQ(CHANNEL(2, SEND(0, 1, 7, 0), SEND(1, 2, 8, EAGAIN), RECV(2, 3, 7, 0)), HISTORY_BAD);
    CHECK_EQ(CHANNEL(2, SEND(0, 1, 7, 0), RECV(1, 2, 0, EAGAIN), RECV(2, 3, 7, 0)), HISTORY_BAD);
    CHECK_EQ(CHANNEL(2, SEND(0, 2, 7, 0), RECV(0, 1, 0, ETIMEDOUT), RECV(2, 3, 7, 0)), HISTORY_GOOD);
}

TEST(a_rendezvous_meets) {
    CHECK_EQ(CHANNEL(0, SEND(0, 2, 7, 0), RECV(0, 1, 7, 0)), HISTORY_GOOD);
    CHECK_EQ(CHANNEL(0, SEND(0, 1, 7, 0), RECV(1, 2, 7, 0)),
             HISTORY_BAD); /* the send had returned before any receive */
    CHECK_EQ(CHANNEL(0, SEND(0, 2, 7, 0), SEND(0, 3, 8, 0), RECV(0, 1, 8, 0), RECV(1, 4, 7, 0)), HISTORY_GOOD);
}

TEST(closed_is_for_ever) {
    CHECK_EQ(CHANNEL(2, SEND(0, 1, 7, 0), CLOSE(1, 2), RECV(2, 3, 7, 0), RECV(3, 4, 0, EPIPE)), HISTORY_GOOD);
    CHECK_EQ(CHANNEL(2, SEND(0, 1, 7, 0), CLOSE(1, 2), RECV(2, 3, 0, EPIPE)), HISTORY_BAD); /* it is still in there */
    CHECK_EQ(CHANNEL(2, CLOSE(0, 1), SEND(1, 2, 7, 0)), HISTORY_BAD);
    CHECK_EQ(CHANNEL(2, CLOSE(0, 2), SEND(0, 1, 7, 0), RECV(0, 3, 0, EPIPE)),
             HISTORY_BAD); /* 7 came first, and stays */
    CHECK_EQ(CHANNEL(2, CLOSE(0, 2), SEND(0, 1, 7, EPIPE)), HISTORY_GOOD);
    CHECK_EQ(CHANNEL(2, CLOSE(0, 1), RECV(1, 2, 0, EAGAIN)), HISTORY_BAD);
}

TEST(locks) {
    CHECK_EQ(JUDGE(HISTORY_MUTEX, 0, 0, LOCK(0, 1, 0), LOCK(1, 2, EAGAIN), UNLOCK(2, 3, 0), LOCK(3, 4, 0)),
             HISTORY_GOOD);
    CHECK_EQ(JUDGE(HISTORY_MUTEX, 0, 0, LOCK(0, 1, 0), LOCK(0, 2, 0), UNLOCK(2, 3, 0)), HISTORY_BAD);
    CHECK_EQ(JUDGE(HISTORY_MUTEX, 0, 0, LOCK(0, 1, 0), UNLOCK(1, 2, 0), LOCK(2, 3, EAGAIN)), HISTORY_BAD);
    CHECK_EQ(JUDGE(HISTORY_SEMAPHORE, 0, 2, LOCK(0, 1, 0), LOCK(1, 2, 0), LOCK(2, 3, EAGAIN)), HISTORY_GOOD);
    CHECK_EQ(JUDGE(HISTORY_SEMAPHORE, 0, 1, LOCK(0, 1, 0), LOCK(0, 3, 0), UNLOCK(1, 2, 1)), HISTORY_GOOD);
    CHECK_EQ(JUDGE(HISTORY_SEMAPHORE, 0, 1, LOCK(0, 1, 0), LOCK(1, 2, 0), UNLOCK(2, 3, 1)), HISTORY_BAD);
}

/* A history that is good by construction: a real order, and intervals stretched around it so that up to `width`
 * overlap. */
static uint32_t make_good(struct history_event *events, uint32_t n, uint32_t capacity, uint32_t width, uint64_t *rng) {
    uint32_t queue[HISTORY_QUEUE_MAX], count = 0;
    for (uint32_t i = 0; i < n; i++) {
        struct history_event *e = &events[i];
        bool send = test_random(rng) & 1;
        uint64_t at = (uint64_t)i * 4 + width * 4, back = test_random(rng) % (width * 2),
                 on = test_random(rng) % (width * 2);
        *e = (struct history_event){.call = at - back, .ret = at + 1 + on, .op = send ? HISTORY_SEND : HISTORY_RECV};
        if (send) {
            e->value = i + 1;
            if (count == capacity)
                e->rc = EAGAIN;
            else
                queue[count++] = e->value;
        } else if (count == 0) {
            e->rc = EAGAIN;
        } else {
            e->value = queue[0];
            count--;
            memmove(queue, queue + 1, count * sizeof *queue);
        }
    }
    return n;
}

/* Two that were received, and did not overlap, exchange their values: overtaken, or received before they were sent. */
static bool spoil(struct history_event *events, uint32_t n, uint64_t *rng) {
    for (uint32_t i = (uint32_t)(test_random(rng) % (n / 2)); i < n; i++) {
        if (events[i].op != HISTORY_RECV || events[i].rc != 0) continue;
        for (uint32_t k = i + 1; k < n; k++) {
            if (events[k].op != HISTORY_RECV || events[k].rc != 0 || events[i].ret > events[k].call) continue;
            /* Their sends did not overlap either. */
            uint32_t a = events[i].value - 1, b = events[k].value - 1;
            if (events[a].ret > events[b].call) continue;
            uint32_t value = events[i].value;
            events[i].value = events[k].value;
            events[k].value = value;
            return true;
        }
    }
    return false;
}

TEST(large_ones) {
    uint64_t rng = test_seed();
    uint32_t spoiled = 0;
    struct history_event *events = malloc(1000 * sizeof *events);
    CHECK(events != NULL);
    for (long round = test_scale(100); round > 0; round--) {
        uint32_t capacity = 1 + (uint32_t)(test_random(&rng) % 5);
        uint32_t n = make_good(events, 1000, capacity, 1 + (uint32_t)(test_random(&rng) % 8), &rng);
        CHECK_EQ(history_check(events, n, HISTORY_CHANNEL, capacity, 0, 10000000), HISTORY_GOOD);
        if (!spoil(events, n, &rng)) continue;
        spoiled++;
        CHECK_EQ(history_check(events, n, HISTORY_CHANNEL, capacity, 0, 10000000), HISTORY_BAD);
    }
    CHECK(spoiled > 0);
    free(events);
}

/* ---- patterns ---- */

TEST(patterns) {
    struct history_value good[] = {{0, 1, 4, 5}, {1, 2, 5, 6}, {2, 3, 6, 7}};
    CHECK(history_check_long(good, 3) == NULL);
    struct history_value lost[] = {{0, 1, 4, 5}, {1, 2, 0, 0}};
    CHECK(history_check_long(lost, 2) != NULL);
    struct history_value early[] = {{4, 5, 1, 2}};
    CHECK(history_check_long(early, 1) != NULL);
    struct history_value overtaken[] = {{0, 1, 6, 7}, {1, 2, 4, 5}};
    CHECK(history_check_long(overtaken, 2) != NULL);
    struct history_value beside[] = {{0, 2, 6, 7}, {1, 3, 4, 5}}; /* sent at the same time: either may be first */
    CHECK(history_check_long(beside, 2) == NULL);
}

TEST(a_million_values) {
    size_t n = (size_t)test_scale(1000000);
    struct history_value *values = malloc(n * sizeof *values);
    uint64_t rng = test_seed();
    CHECK(values != NULL);
    for (size_t i = 0; i < n; i++) {
        uint64_t at = i * 4 + 100, stretch = test_random(&rng) % 50;
        values[i] = (struct history_value){at - stretch, at + 1 + stretch, at + 1000 - stretch, at + 1001 + stretch};
    }
    CHECK(history_check_long(values, n) == NULL);
    for (size_t i = 0; i < n; i++) /* sorted by the calls of the sends now; spoil one of those in the middle */
        if (i == n / 2) values[i].recv_ret = values[i].recv_call = values[i].send_call + 1;
    CHECK(n < 1000 || history_check_long(values, n) != NULL);
    free(values);
}
