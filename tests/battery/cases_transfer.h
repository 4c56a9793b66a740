/* cases_transfer.h - order, exactly-once delivery, and when a party waits. */

/* ---- many producers, many consumers ---- */

enum { PRODUCERS = 3, CONSUMERS = 3 };

struct traffic {
    CCChan *ch;
    size_t size;
    uint64_t each; /* values of one producer */
    atomic_uint *marks;
    atomic_ulong received, sum;
};

struct actor {
    struct traffic *traffic;
    uint64_t index;
};

static void *produce(void *arg) {
    struct actor *s = arg;
    struct traffic *t = s->traffic;
    for (uint64_t i = 0; i < t->each; i++) CHECK_EQ(send_number(t->ch, t->size, s->index * t->each + i), 0);
    return NULL;
}

static void *consume(void *arg) {
    struct actor *s = arg;
    struct traffic *t = s->traffic;
    uint64_t next[PRODUCERS] = {0}, number;
    int rc;
    while ((rc = recv_number(t->ch, t->size, &number)) == 0) {
        CHECK(number < PRODUCERS * t->each);
        CHECK_EQ(atomic_fetch_add(&t->marks[number], 1), 0);
        /* One producer's values reach one consumer in their order. */
        uint64_t producer = number / t->each, place = number % t->each;
        CHECK(place >= next[producer]);
        next[producer] = place + 1;
        atomic_fetch_add(&t->received, 1);
        atomic_fetch_add(&t->sum, number);
    }
    CHECK_EQ(rc, EPIPE);
    return NULL;
}

static void exactly_once_with(enum parties kind, size_t size) {
    struct traffic t = {.ch = new_chan(size, CAPACITY), .size = size, .each = (uint64_t)test_rounds(500, 50000)};
    uint64_t all = PRODUCERS * t.each;
    t.marks = calloc(all, sizeof *t.marks);
    CHECK(t.marks != NULL);
    struct actor actors[PRODUCERS];
    struct party producers[PRODUCERS], consumers[CONSUMERS];
    for (int i = 0; i < PRODUCERS; i++) actors[i] = (struct actor){&t, (uint64_t)i};
    for (int i = 0; i < CONSUMERS; i++) consumers[i] = party_start(kind, i, consume, &actors[0]);
    for (int i = 0; i < PRODUCERS; i++) producers[i] = party_start(kind, i, produce, &actors[i]);
    parties_end(producers, PRODUCERS);
    CHECK_EQ(cc_chan_close(t.ch), 0);
    parties_end(consumers, CONSUMERS);
    CHECK_EQ(t.received, all);
    CHECK_EQ(t.sum, all * (all - 1) / 2);
    for (uint64_t i = 0; i < all; i++) CHECK_EQ(t.marks[i], 1);
    check_clean(t.ch);
    cc_chan_free(t.ch);
    free(t.marks);
}

TEST_WORKERS(exactly_once) {
    for_each_kind(exactly_once_with, 8);
}

TEST_WORKERS(exactly_once_12_bytes) {
    for_each_kind(exactly_once_with, 12);
}

TEST_WORKERS(large_values_are_not_torn) {
    for_each_kind(exactly_once_with, 4096);
}

/* ---- one producer, one consumer: the order is exact ---- */

struct stream {
    CCChan *ch;
    size_t size;
    uint64_t count;
};

static void *stream_out(void *arg) {
    struct stream *s = arg;
    for (uint64_t i = 0; i < s->count; i++) CHECK_EQ(send_number(s->ch, s->size, i), 0);
    CHECK_EQ(cc_chan_close(s->ch), 0);
    return NULL;
}

static void *stream_in(void *arg) {
    struct stream *s = arg;
    uint64_t number = 0, n = 0;
    int rc;
    for (; (rc = recv_number(s->ch, s->size, &number)) == 0; n++) CHECK_EQ(number, value_cut(n, s->size));
    CHECK_EQ(rc, EPIPE);
    CHECK_EQ(n, s->count);
    return NULL;
}

static void in_order_with(enum parties kind, size_t size) {
    struct stream s = {.ch = new_chan(size, CAPACITY), .size = size, .count = (uint64_t)test_rounds(1000, 100000)};
    struct party parties[] = {party_start(kind, 0, stream_in, &s), party_start(kind, 1, stream_out, &s)};
    parties_end(parties, 2);
    check_clean(s.ch);
    cc_chan_free(s.ch);
}

TEST_WORKERS(in_order) {
    for_each_kind(in_order_with, 8);
}

TEST_WORKERS(in_order_1_byte) {
    for_each_kind(in_order_with, 1);
}

/* Tokens carry nothing but their number. */
TEST_WORKERS(tokens_are_counted) {
    for_each_kind(in_order_with, 0);
}

/* ---- waiting ---- */

static void empty_blocks_with(enum parties kind, size_t size) {
    CCChan *ch = new_chan(size, CAPACITY);
    for (int first = 0; first < 2; first++) { /* the first party is a fiber, the second an OS thread, if mixed */
        struct call c;
        call_init(&c, ch, size, 0);
        struct party p = party_start(kind, first, call_recv, &c);
        await_receivers(ch, 1);
        CHECK_EQ(atomic_load(&c.returned), -1);
        CHECK_EQ(send_number_try(ch, size, 77), 0); /* somebody waits: even a rendezvous takes it */
        party_end(&p);
        CHECK_EQ(c.returned, 0);
        CHECK_EQ(c.number, 77);
        CHECK_EQ(cc_chan_len(ch), 0);
    }
    check_clean(ch);
    cc_chan_free(ch);
}

TEST_WORKERS(receive_waits_when_empty) {
    for_each_kind(empty_blocks_with, 8);
}

static void full_blocks_with(enum parties kind, size_t size) {
    CCChan *ch = new_chan(size, CAPACITY);
    for (int first = 0; first < 2; first++) {
        fill(ch, size);
        struct call c;
        call_init(&c, ch, size, CAPACITY);
        struct party p = party_start(kind, first, call_send, &c);
        await_senders(ch, 1);
        CHECK_EQ(atomic_load(&c.returned), -1);
        CHECK_EQ(cc_chan_len(ch), CAPACITY); /* its value is not counted: it is still the sender's */
        drain(ch, size, CAPACITY + 1);       /* in order, the waiting one last */
        party_end(&p);
        CHECK_EQ(c.returned, 0);
        CHECK_EQ(cc_chan_len(ch), 0);
    }
    check_clean(ch);
    cc_chan_free(ch);
}

TEST_WORKERS(send_waits_when_full) {
    for_each_kind(full_blocks_with, 8);
}

enum { QUEUE = 6 };

/* Whoever came first is served first: receivers, then senders. */
static void first_come_with(enum parties kind, size_t size) {
    CCChan *ch = new_chan(size, CAPACITY);
    struct call calls[QUEUE];
    struct party parties[QUEUE];
    for (int i = 0; i < QUEUE; i++) {
        call_init(&calls[i], ch, size, 0);
        parties[i] = party_start(kind, i, call_recv, &calls[i]);
        await_receivers(ch, i + 1);
    }
    for (int i = 0; i < QUEUE; i++) CHECK_EQ(send_number_try(ch, size, 100 + (uint64_t)i), 0);
    parties_end(parties, QUEUE);
    for (int i = 0; i < QUEUE; i++) {
        CHECK_EQ(calls[i].returned, 0);
        CHECK_EQ(calls[i].number, 100 + i);
    }

    fill(ch, size);
    for (int i = 0; i < QUEUE; i++) {
        call_init(&calls[i], ch, size, CAPACITY + (uint64_t)i);
        parties[i] = party_start(kind, i, call_send, &calls[i]);
        await_senders(ch, i + 1);
    }
    drain(ch, size, CAPACITY + QUEUE);
    parties_end(parties, QUEUE);
    for (int i = 0; i < QUEUE; i++) CHECK_EQ(calls[i].returned, 0);
    check_clean(ch);
    cc_chan_free(ch);
}

TEST_WORKERS(first_come_first_served) {
    for_each_kind(first_come_with, 8);
}

/* One value ends one wait, not two. */
static void one_value_with(enum parties kind, size_t size) {
    CCChan *ch = new_chan(size, CAPACITY);
    struct call calls[3];
    struct party parties[3];
    for (int i = 0; i < 3; i++) {
        call_init(&calls[i], ch, size, 0);
        parties[i] = party_start(kind, i, call_recv, &calls[i]);
        await_receivers(ch, i + 1);
    }
    CHECK_EQ(send_number(ch, size, 5), 0);
    CHECK_EQ(waiting_on(ch, &ch->receivers), 2);
    party_end(&parties[0]);
    CHECK_EQ(waiting_on(ch, &ch->receivers), 2);
    CHECK_EQ(atomic_load(&calls[1].returned), -1);
    CHECK_EQ(atomic_load(&calls[2].returned), -1);
    CHECK_EQ(send_number(ch, size, 6), 0);
    CHECK_EQ(send_number(ch, size, 7), 0);
    parties_end(parties + 1, 2);
    CHECK_EQ(calls[0].number + calls[1].number + calls[2].number, 18);
    cc_chan_free(ch);
}

TEST_WORKERS(one_value_ends_one_wait) {
    for_each_kind(one_value_with, 8);
}

/* ---- without waiting ---- */

static void *exact_capacity_body(void *arg) {
    size_t size = *(size_t *)arg;
    CCChan *ch = new_chan(size, CAPACITY);
    CHECK_EQ(cc_chan_cap(ch), CAPACITY);
    CHECK_EQ(cc_chan_len(ch), 0);
    uint64_t number = 4711;
    for (size_t turn = 0; turn < 3; turn++) { /* the ring's head moves on */
        CHECK_EQ(recv_number_try(ch, size, &number), EAGAIN);
        for (size_t i = 0; i < capacity; i++) {
            CHECK_EQ(send_number_try(ch, size, i), 0);
            CHECK_EQ(cc_chan_len(ch), i + 1);
        }
        CHECK_EQ(send_number_try(ch, size, 99), EAGAIN);
        CHECK_EQ(send_number_try(ch, size, 99), EAGAIN);
        CHECK_EQ(cc_chan_len(ch), CAPACITY);
        drain(ch, size, CAPACITY);
        CHECK_EQ(recv_number_try(ch, size, &number), EAGAIN);
        CHECK_EQ(cc_chan_len(ch), 0);
        if (CAPACITY > 1) { /* an odd start for the next turn */
            CHECK_EQ(send_number_try(ch, size, 0), 0);
            drain(ch, size, 1);
        }
    }
    CHECK_EQ(number, 4711); /* an error leaves the value alone */
    check_clean(ch);
    cc_chan_free(ch);
    return NULL;
}

TEST_WORKERS(capacity_is_exact) {
    static size_t sizes[] = {8, 0, 1, 12, 4096};
    for (size_t i = 0; i < 5; i++) {
        exact_capacity_body(&sizes[i]);
        CHECK_EQ(cc_run(exact_capacity_body, &sizes[i], NULL), 0);
    }
}

/* Try-senders and try-receivers that never wait lose nothing either. */
static void *try_out(void *arg) {
    struct stream *s = arg;
    for (uint64_t i = 0; i < s->count;) {
        int rc = send_number_try(s->ch, s->size, i);
        if (rc == 0)
            i++;
        else
            cc_yield();
        CHECK(rc == 0 || rc == EAGAIN);
    }
    CHECK_EQ(cc_chan_close(s->ch), 0);
    return NULL;
}

static void *try_in(void *arg) {
    struct stream *s = arg;
    uint64_t number = 0, n = 0;
    for (;;) {
        int rc = recv_number_try(s->ch, s->size, &number);
        if (rc == 0) {
            CHECK_EQ(number, n);
            n++;
        } else if (rc == EPIPE) {
            break;
        } else {
            CHECK_EQ(rc, EAGAIN);
            cc_yield();
        }
    }
    CHECK_EQ(n, s->count);
    return NULL;
}

static void tries_with(enum parties kind, size_t size) {
    /* Few among OS threads: where CPUs are scarce, each value costs a time slice. */
    uint64_t count = (uint64_t)(kind == FIBERS ? test_rounds(500, 50000) : test_rounds(10, 1000));
    struct stream s = {.ch = new_chan(size, CAPACITY), .size = size, .count = count};
    /* Two that never wait can never meet on a rendezvous channel: there one of them waits. */
    struct party parties[] = {party_start(kind, 0, CAPACITY > 0 ? try_in : stream_in, &s),
                              party_start(kind, 1, try_out, &s)};
    parties_end(parties, 2);
    s.ch = (cc_chan_free(s.ch), new_chan(size, CAPACITY));
    struct party others[] = {party_start(kind, 0, try_in, &s),
                             party_start(kind, 1, CAPACITY > 0 ? try_out : stream_out, &s)};
    parties_end(others, 2);
    check_clean(s.ch);
    cc_chan_free(s.ch);
}

TEST_WORKERS(tries_lose_nothing) {
    for_each_kind(tries_with, 8);
}
