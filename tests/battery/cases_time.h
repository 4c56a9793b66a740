/* cases_time.h - deadlines: never early, either a transfer or a timeout, nothing lost when both race. */

static void expired_with(enum parties kind, size_t size) {
    CCChan *ch = new_chan(size, CAPACITY);
    /* A deadline that has passed: a call that need not wait still succeeds. */
    unsigned char value[VALUE_MAX] = {0}, untouched[VALUE_MAX] = {0};
    CCDeadline past = {cc_now_ns() - 1};
    CHECK_EQ(cc_chan_recv_until(ch, value, size, past), ETIMEDOUT);
    CHECK_EQ(cc_chan_recv_until(ch, value, size, CC_PASSED), ETIMEDOUT);
    CHECK(memcmp(value, untouched, sizeof value) == 0);
    for (size_t i = 0; i < capacity; i++) {
        value_write(value, size, i);
        CHECK_EQ(cc_chan_send_until(ch, value, size, past), 0);
    }
    CHECK_EQ(cc_chan_send_until(ch, value, size, past), ETIMEDOUT);
    CHECK_EQ(cc_chan_len(ch), CAPACITY);
    for (size_t i = 0; i < capacity; i++) {
        CHECK_EQ(cc_chan_recv_until(ch, value, size, past), 0);
        CHECK_EQ(value_read(value, size), i);
    }

    /* A deadline passes: not early, and the waiter is unlinked. */
    struct call c;
    for (int first = 0; first < 2; first++) {
        call_init(&c, ch, size, 4711);
        c.deadline = cc_after_ms(2);
        struct party p = party_start(kind, first, call_recv_until, &c);
        party_end(&p);
        CHECK(cc_now_ns() >= c.deadline.ns);
        CHECK_EQ(c.returned, ETIMEDOUT);
        CHECK_EQ(c.number, 4711);
        check_clean(ch);
        fill(ch, size);
        call_init(&c, ch, size, 9);
        c.deadline = cc_after_ms(2);
        p = party_start(kind, first, call_send_until, &c);
        party_end(&p);
        CHECK(cc_now_ns() >= c.deadline.ns);
        CHECK_EQ(c.returned, ETIMEDOUT);
        check_clean(ch);
        drain(ch, size, CAPACITY); /* without the value of the sender that left */
        CHECK_EQ(cc_chan_len(ch), 0);
    }
    cc_chan_free(ch);
}

TEST_WORKERS(deadlines) {
    for_each_kind(expired_with, 8);
}

/* A deadline far away changes nothing. */
static void patient_with(enum parties kind, size_t size) {
    CCChan *ch = new_chan(size, CAPACITY);
    struct call calls[4];
    struct party parties[4];
    for (int i = 0; i < 4; i++) {
        call_init(&calls[i], ch, size, 0);
        calls[i].deadline = cc_after_ms(3600 * 1000);
        parties[i] = party_start(kind, i, call_recv_until, &calls[i]);
        await_receivers(ch, i + 1);
    }
    for (int i = 0; i < 4; i++) CHECK_EQ(send_number(ch, size, (uint64_t)i), 0);
    parties_end(parties, 4);
    for (int i = 0; i < 4; i++) {
        CHECK_EQ(calls[i].returned, 0);
        CHECK_EQ(calls[i].number, i);
    }
    cc_chan_free(ch);
}

TEST_WORKERS(far_deadlines) {
    for_each_kind(patient_with, 8);
}

/* A waiter in the middle of the queue leaves: the others are served in their order. */
static void leaver_with(enum parties kind, size_t size) {
    CCChan *ch = new_chan(size, CAPACITY);
    struct call calls[3];
    struct party parties[3];
    for (int i = 0; i < 3; i++) call_init(&calls[i], ch, size, 0);
    for (int i = 0; i < 3; i++) {
        /* The one in the middle has 3 ms, and may leave before the third arrives: the order is the same. */
        if (i == 1) calls[i].deadline = cc_after_ms(3);
        parties[i] = party_start(kind, i, call_recv_until, &calls[i]);
        while (waiting_on(ch, &ch->receivers) < i + 1 && atomic_load(&calls[1].returned) == -1) cc_yield();
    }
    party_end(&parties[1]);
    CHECK_EQ(calls[1].returned, ETIMEDOUT);
    await_receivers(ch, 2);
    CHECK_EQ(send_number(ch, size, 10), 0);
    CHECK_EQ(send_number(ch, size, 12), 0);
    party_end(&parties[0]);
    party_end(&parties[2]);
    CHECK_EQ(calls[0].number, 10);
    CHECK_EQ(calls[2].number, 12);
    check_clean(ch);
    cc_chan_free(ch);
}

TEST_WORKERS(one_leaves_the_queue) {
    for_each_kind(leaver_with, 8);
}

/* ---- the edge: deadlines of a few microseconds on both sides ---- */

enum { EDGE_SIDES = 2 };

struct edge {
    CCChan *ch;
    size_t size;
    uint64_t each;
    uint64_t patience_ns;
    atomic_uint *sent, *received;
    atomic_ulong timeouts;
    atomic_bool over;
};

struct edger {
    struct edge *edge;
    uint64_t index, seed;
};

static void *edge_send(void *arg) {
    struct edger *e = arg;
    struct edge *edge = e->edge;
    unsigned char value[VALUE_MAX];
    for (uint64_t i = 0; i < edge->each; i++) {
        uint64_t number = e->index * edge->each + i;
        value_write(value, edge->size, number);
        int rc =
            cc_chan_send_until(edge->ch, value, edge->size, cc_after_ns(test_random(&e->seed) % edge->patience_ns));
        if (rc == 0)
            atomic_store(&edge->sent[number], 1);
        else
            atomic_fetch_add(&edge->timeouts, 1);
        CHECK(rc == 0 || rc == ETIMEDOUT);
    }
    return NULL;
}

static void *edge_recv(void *arg) {
    struct edger *e = arg;
    struct edge *edge = e->edge;
    unsigned char value[VALUE_MAX];
    while (!atomic_load(&edge->over)) {
        value_write(value, edge->size, UINT64_MAX);
        int rc =
            cc_chan_recv_until(edge->ch, value, edge->size, cc_after_ns(test_random(&e->seed) % edge->patience_ns));
        uint64_t number = value_read(value, edge->size);
        if (rc == 0) {
            CHECK_EQ(atomic_fetch_add(&edge->received[number], 1), 0);
        } else {
            CHECK_EQ(rc, ETIMEDOUT);
            CHECK(number == UINT64_MAX); /* untouched */
            atomic_fetch_add(&edge->timeouts, 1);
        }
    }
    return NULL;
}

static void edge_with(enum parties kind, size_t size) {
    struct edge edge = {.ch = new_chan(size, CAPACITY), .size = size, .each = (uint64_t)test_rounds(700, 100000)};
    /* OS threads need longer to be released. */
    edge.patience_ns = kind == FIBERS ? 3000 : 60000;
    uint64_t all = EDGE_SIDES * edge.each, rng = test_seed() + kind, sent = 0;
    edge.sent = calloc(all, sizeof(atomic_uint));
    edge.received = calloc(all, sizeof(atomic_uint));
    CHECK(edge.sent != NULL && edge.received != NULL);
    struct edger edgers[2 * EDGE_SIDES];
    struct party parties[2 * EDGE_SIDES];
    for (int i = 0; i < 2 * EDGE_SIDES; i++) {
        edgers[i] = (struct edger){&edge, (uint64_t)i % EDGE_SIDES, test_random(&rng)};
        parties[i] = party_start(kind, i, i < EDGE_SIDES ? edge_send : edge_recv, &edgers[i]);
    }
    parties_end(parties, EDGE_SIDES);
    atomic_store(&edge.over, true);
    parties_end(parties + EDGE_SIDES, EDGE_SIDES);
    uint64_t number;
    while (recv_number_try(edge.ch, size, &number) == 0) CHECK_EQ(atomic_fetch_add(&edge.received[number], 1), 0);
    for (uint64_t i = 0; i < all; i++) {
        CHECK_EQ(edge.sent[i], edge.received[i]);
        sent += edge.sent[i];
    }
    CHECK(sent + edge.timeouts >= all);
    check_clean(edge.ch);
    cc_chan_free(edge.ch);
    free(edge.sent);
    free(edge.received);
}

TEST_WORKERS(the_edge_of_success) {
    for_each_kind(edge_with, 8);
}

TEST_WORKERS(the_edge_of_success_12_bytes) {
    for_each_kind(edge_with, 12);
}
