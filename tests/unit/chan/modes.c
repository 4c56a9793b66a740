/* modes.c - channels that drop: the new value or the oldest, counted; a sender never waits. */
#include "harness.h"

#include "../../battery/battery.h"

static CCChan *dropping(size_t size, size_t capacity, CCChanMode mode) {
    CCChan *ch = cc_chan_create_ex(&(CCChanConfig){.elem_size = size, .capacity = capacity, .mode = mode});
    CHECK(ch != NULL);
    return ch;
}

static const size_t capacities[] = {1, 3, 64};

static void *drop_new_body(void *unused) {
    (void)unused;
    for (int k = 0; k < 3; k++) {
        size_t n = capacities[k];
        CCChan *ch = dropping(8, n, CC_CHAN_MODE_DROP_NEW);
        fill(ch, 8);
        for (int i = 0; i < 5; i++) {
            CHECK_EQ(send_number(ch, 8, 900), EAGAIN);
            CHECK_EQ(send_number_try(ch, 8, 900), EAGAIN);
            uint64_t value = 900;
            CHECK_EQ(cc_chan_send_until(ch, &value, 8, CC_FOREVER), EAGAIN);
        }
        CHECK_EQ(cc_chan_len(ch), n);
        CHECK_EQ(cc_chan_dropped(ch), 0); /* the send reports that the value was not taken */
        drain(ch, 8, n);
        CHECK_EQ(send_number(ch, 8, 0), 0); /* room again */
        drain(ch, 8, 1);
        CHECK_EQ(cc_chan_close(ch), 0);
        CHECK_EQ(send_number(ch, 8, 1), EPIPE);
        cc_chan_free(ch);
    }
    return NULL;
}

TEST(drop_new) {
    drop_new_body(NULL);
    CHECK_EQ(cc_run(drop_new_body, NULL, NULL), 0);
}

static void *drop_old_body(void *unused) {
    (void)unused;
    static const size_t sizes[] = {8, 12, 4096};
    for (int k = 0; k < 9; k++) {
        size_t n = capacities[k % 3], size = sizes[k / 3];
        CCChan *ch = dropping(size, n, CC_CHAN_MODE_DROP_OLD);
        uint64_t total = 3 * n + 1, number = 0;
        for (uint64_t i = 0; i < total; i++) {
            CHECK_EQ(i % 2 ? send_number(ch, size, i) : send_number_try(ch, size, i), 0);
            CHECK_EQ(cc_chan_len(ch), i + 1 < n ? i + 1 : n);
            CHECK_EQ(cc_chan_dropped(ch), i + 1 < n ? 0 : i + 1 - n);
        }
        for (uint64_t i = total - n; i < total; i++) { /* the newest, in order */
            CHECK_EQ(recv_number_try(ch, size, &number), 0);
            CHECK_EQ(number, i);
        }
        CHECK_EQ(recv_number_try(ch, size, &number), EAGAIN);
        CHECK_EQ(cc_chan_dropped(ch), total - n);
        CHECK_EQ(cc_chan_close(ch), 0);
        CHECK_EQ(send_number(ch, size, 1), EPIPE);
        CHECK_EQ(cc_chan_dropped(ch), total - n);
        cc_chan_free(ch);
    }
    return NULL;
}

TEST(drop_old) {
    drop_old_body(NULL);
    CHECK_EQ(cc_run(drop_old_body, NULL, NULL), 0);
}

TEST(drop_old_tokens) {
    CCChan *ch = dropping(0, 3, CC_CHAN_MODE_DROP_OLD);
    for (int i = 0; i < 10; i++) CHECK_EQ(cc_chan_send(ch, NULL, 0), 0);
    CHECK_EQ(cc_chan_len(ch), 3);
    CHECK_EQ(cc_chan_dropped(ch), 7);
    cc_chan_free(ch);
}

/* ---- under load: no value is invented or duplicated, and the counts add up ---- */

struct news {
    CCChan *ch;
    uint64_t each;
    uint64_t index;
    atomic_ulong *sent, *refused, *received;
};

static void *publish(void *arg) {
    struct news *n = arg;
    for (uint64_t i = 0; i < n->each; i++) {
        int rc = send_number(n->ch, 8, n->index * n->each + i);
        CHECK(rc == 0 || rc == EAGAIN);
        atomic_fetch_add(rc == 0 ? n->sent : n->refused, 1);
        if (i % 7 == 0) cc_yield();
    }
    return NULL;
}

static void *read_news(void *arg) {
    struct news *n = arg;
    uint64_t number, next[2] = {0, 0};
    int rc;
    while ((rc = recv_number(n->ch, 8, &number)) == 0) {
        CHECK(number < 2 * n->each);
        CHECK(number % n->each >= next[number / n->each]); /* in order, also across dropped values */
        next[number / n->each] = number % n->each + 1;
        atomic_fetch_add(n->received, 1);
    }
    CHECK_EQ(rc, EPIPE);
    return NULL;
}

static void traffic_in_mode(CCChanMode mode, size_t capacity, enum parties kind) {
    atomic_ulong sent = 0, refused = 0, received = 0;
    CCChan *ch = dropping(8, capacity, mode);
    struct news news[2];
    struct party parties[4];
    for (int i = 0; i < 2; i++) {
        news[i] = (struct news){ch, (uint64_t)test_rounds(2000, 200000), (uint64_t)i, &sent, &refused, &received};
        parties[2 + i] = party_start(kind, i + 1, read_news, &news[0]);
        parties[i] = party_start(kind, i, publish, &news[i]);
    }
    parties_end(parties, 2);
    CHECK_EQ(cc_chan_close(ch), 0);
    parties_end(parties + 2, 2);
    CHECK_EQ(sent + refused, 2 * news[0].each);
    CHECK_EQ(sent, received + cc_chan_dropped(ch));
    if (mode == CC_CHAN_MODE_DROP_NEW)
        CHECK_EQ(cc_chan_dropped(ch), 0);
    else
        CHECK_EQ(refused, 0);
    check_clean(ch);
    cc_chan_free(ch);
}

TEST_WORKERS(traffic) {
    for (int kind = FIBERS; kind < KINDS; kind++)
        for (int k = 0; k < 3; k++) {
            traffic_in_mode(CC_CHAN_MODE_DROP_NEW, capacities[k], (enum parties)kind);
            traffic_in_mode(CC_CHAN_MODE_DROP_OLD, capacities[k], (enum parties)kind);
        }
}

/* A receiver that waits gets the value at once: nothing is dropped for it. */
TEST_WORKERS(a_waiting_receiver_comes_first) {
    for (int mode = CC_CHAN_MODE_DROP_NEW; mode <= CC_CHAN_MODE_DROP_OLD; mode++)
        for (int kind = FIBERS; kind <= THREADS; kind++) {
            CCChan *ch = dropping(8, 1, (CCChanMode)mode);
            struct call c;
            call_init(&c, ch, 8, 0);
            struct party p = party_start((enum parties)kind, 0, call_recv, &c);
            await_receivers(ch, 1);
            CHECK_EQ(send_number(ch, 8, 5), 0);
            CHECK_EQ(send_number(ch, 8, 6), 0);
            party_end(&p);
            CHECK_EQ(c.number, 5);
            CHECK_EQ(cc_chan_len(ch), 1);
            CHECK_EQ(cc_chan_dropped(ch), 0);
            cc_chan_free(ch);
        }
}
