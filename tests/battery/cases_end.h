/* cases_end.h - the last reference, and the end of the runtime. */

static void free_wakes_with(enum parties kind, size_t size) {
    struct call calls[MANY];
    struct party parties[MANY];
    CCChan *ch = new_chan(size, CAPACITY);
    for (int i = 0; i < MANY; i++) {
        call_init(&calls[i], ch, size, 4711);
        calls[i].deadline = cc_after_ms(3600 * 1000);
        parties[i] = party_start(kind, i, i % 2 ? call_recv : call_recv_until, &calls[i]);
    }
    await_receivers(ch, MANY);
    cc_chan_free(ch);
    parties_end(parties, MANY);
    for (int i = 0; i < MANY; i++) CHECK_EQ(calls[i].returned, EPIPE);

    ch = new_chan(size, CAPACITY);
    fill(ch, size);
    for (int i = 0; i < MANY; i++) {
        call_init(&calls[i], ch, size, 4711);
        calls[i].deadline = cc_after_ms(3600 * 1000);
        parties[i] = party_start(kind, i, i % 2 ? call_send : call_send_until, &calls[i]);
    }
    await_senders(ch, MANY);
    cc_chan_free(ch);
    parties_end(parties, MANY);
    for (int i = 0; i < MANY; i++) CHECK_EQ(calls[i].returned, EPIPE);
}

TEST_WORKERS(free_wakes_all) {
    for_each_kind(free_wakes_with, 8);
}

/* The last reference is dropped while deadlines pass: the channel still exists for a waiter whose claim was lost. */
static void free_edge_with(enum parties kind, size_t size) {
    uint64_t rng = test_seed() + kind;
    for (long round = 0; round < test_rounds(60, 10000); round++) {
        struct call calls[4];
        struct party parties[4];
        CCChan *ch = new_chan(size, CAPACITY);
        uint64_t until = cc_now_ns() + test_random(&rng) % 100000;
        for (int i = 0; i < 4; i++) {
            call_init(&calls[i], ch, size, 4711);
            calls[i].deadline.ns = until + 500 * (uint64_t)i;
            CHECK(cc_chan_ref(ch) == ch); /* until it is in the call, the channel must not be freed */
            parties[i] = party_start(kind, i, call_recv_until, &calls[i]);
        }
        /* All wait, or have left already; only then are the references dropped. */
        for (int i = 0; i < 4;) {
            if (atomic_load(&calls[i].returned) != -1 || waiting_on(ch, &ch->receivers) == 4)
                i++;
            else
                cc_yield();
        }
        for (int i = 0; i < 4; i++) cc_chan_free(ch);
        while (cc_now_ns() < until) {
        }
        cc_chan_free(ch);
        parties_end(parties, 4);
        for (int i = 0; i < 4; i++) CHECK(calls[i].returned == EPIPE || calls[i].returned == ETIMEDOUT);
    }
}

TEST_WORKERS(free_at_the_edge_of_deadlines) {
    for_each_kind(free_edge_with, 8);
}

/* ---- references ---- */

struct holder {
    CCChan *ch;
    uint64_t number;
};

static void *hold(void *arg) {
    struct holder *h = arg;
    CHECK_EQ(send_number(h->ch, 8, h->number), 0);
    cc_chan_free(h->ch);
    return NULL;
}

/* Each party has its own reference; the last one to drop it frees the memory (checked by ASan). */
static void references_with(enum parties kind, size_t size) {
    for (long round = 0; round < test_rounds(20, 1000); round++) {
        CCChan *ch = new_chan(size, CAPACITY);
        struct holder holders[4];
        struct party parties[4];
        for (int i = 0; i < 4; i++) {
            holders[i] = (struct holder){cc_chan_ref(ch), (uint64_t)i};
            parties[i] = party_start(kind, i, hold, &holders[i]);
        }
        uint64_t number, sum = 0;
        for (int i = 0; i < 4; i++) {
            CHECK_EQ(recv_number(ch, size, &number), 0);
            CHECK(!cc_chan_is_closed(ch));
            sum += number;
        }
        CHECK_EQ(sum, 6);
        cc_chan_free(ch);
        parties_end(parties, 4);
    }
    CHECK(cc_chan_ref(NULL) == NULL);
    cc_chan_free(NULL);
}

TEST_WORKERS(references) {
    for_each_kind(references_with, 8);
}

/* The receiver of the last value may free the channel at once, while the sender has not returned from send yet. */
static void freed_by_the_receiver_with(enum parties kind, size_t size) {
    for (long round = 0; round < test_rounds(100, 20000); round++) {
        CCChan *ch = new_chan(size, CAPACITY);
        struct call c;
        call_init(&c, ch, size, (uint64_t)round);
        struct party p = party_start(kind, (int)round, call_send, &c);
        uint64_t number;
        CHECK_EQ(recv_number(ch, size, &number), 0);
        CHECK_EQ(number, round);
        cc_chan_free(ch);
        party_end(&p);
        CHECK_EQ(c.returned, 0);
    }
}

TEST_WORKERS(freed_by_the_receiver) {
    for_each_kind(freed_by_the_receiver_with, 8);
}

/* ---- the runtime ends ---- */

/* Parked senders, receivers and selects leave with ECANCELED, their values are not sent, and what is buffered stays. */
static void *call_select(void *arg) {
    struct call *c = arg;
    uint64_t in = 4711, out = 4712;
    CCCase cases[] = {CC_RECV(c->ch, &in, NULL), CC_SEND((CCChan *)(uintptr_t)c->number, &out, NULL)};
    size_t chosen = 99;
    atomic_store(&c->returned, cc_select(cases, 2, c->deadline, &chosen));
    CHECK_EQ(in, 4711);
    CHECK_EQ(chosen, 99);
    return NULL;
}

TEST_WORKERS(shutdown_cancels) {
    CCChan *empty = new_chan(8, CAPACITY), *full = new_chan(8, CAPACITY);
    fill(full, 8);
    struct call calls[10];
    for (int i = 0; i < 10; i++) {
        call_init(&calls[i], i < 4 ? empty : full, 8, 1000 + (uint64_t)i);
        if (i % 2) calls[i].deadline = cc_after_ms(3600 * 1000);
        if (i >= 8) {
            calls[i].ch = empty;
            calls[i].number = (uint64_t)(uintptr_t)full;
        }
        void *(*fn)(void *) = i < 4 ? (i % 2 ? call_recv_until : call_recv) : (i % 2 ? call_send_until : call_send);
        CHECK_EQ(cc_spawn(NULL, i < 8 ? fn : call_select, &calls[i], NULL), 0);
    }
    await_receivers(empty, 6);
    await_senders(full, 6);
    CHECK_EQ(cc_runtime_shutdown(0), 0);
    for (int i = 0; i < 10; i++) CHECK_EQ(calls[i].returned, ECANCELED);
    check_clean(empty);
    check_clean(full);
    CHECK_EQ(cc_chan_len(empty), 0);
    drain(full, 8, CAPACITY); /* a channel needs no runtime */
    CHECK_EQ(cc_chan_len(full), 0);
    uint64_t number;
    CHECK_EQ(recv_number_try(full, 8, &number), EAGAIN);

    /* And they work in the next runtime. */
    struct stream s = {.ch = full, .size = 8, .count = 100};
    struct party parties[] = {party_start(FIBERS, 0, stream_in, &s), party_start(FIBERS, 1, stream_out, &s)};
    parties_end(parties, 2);
    cc_chan_free(empty);
    cc_chan_free(full);
}

/* Shutdown under load, which continues for a while: what was sent was received, or is still in the channel. */
struct cut_traffic {
    CCChan *ch;
    atomic_bool ending;
    atomic_ulong sent, received, sent_sum, received_sum;
};

static void *cut_send(void *arg) {
    struct cut_traffic *t = arg;
    for (uint64_t i = 1, left = 20000; left > 0; i++) {
        if (atomic_load(&t->ending)) left--;
        int rc = send_number(t->ch, 8, i);
        if (rc != 0) {
            CHECK_EQ(rc, ECANCELED);
            return NULL;
        }
        atomic_fetch_add(&t->sent, 1);
        atomic_fetch_add(&t->sent_sum, i);
    }
    return NULL;
}

static void *cut_recv(void *arg) {
    struct cut_traffic *t = arg;
    for (uint64_t number;;) {
        int rc = recv_number(t->ch, 8, &number);
        if (rc != 0) {
            CHECK_EQ(rc, ECANCELED);
            return NULL;
        }
        atomic_fetch_add(&t->received, 1);
        atomic_fetch_add(&t->received_sum, number);
    }
}

TEST_WORKERS(shutdown_in_traffic_loses_nothing) {
    for (long round = 0; round < test_rounds(5, 500); round++) {
        struct cut_traffic t = {.ch = new_chan(8, CAPACITY)};
        for (int i = 0; i < 3; i++) CHECK_EQ(cc_spawn(NULL, cut_send, &t, NULL), 0);
        for (int i = 0; i < 2; i++) CHECK_EQ(cc_spawn(NULL, cut_recv, &t, NULL), 0);
        while (atomic_load(&t.received) < 100) cc_yield();
        atomic_store(&t.ending, true);
        int rc;
        while ((rc = cc_runtime_shutdown(0)) ==
               ETIMEDOUT) { /* traffic that does not wait cannot be cancelled: it ends by itself */
        }
        CHECK_EQ(rc, 0);
        uint64_t number;
        while (recv_number_try(t.ch, 8, &number) == 0) {
            t.received++;
            t.received_sum += number;
        }
        CHECK_EQ(t.sent, t.received);
        CHECK_EQ(t.sent_sum, t.received_sum);
        check_clean(t.ch);
        cc_chan_free(t.ch);
    }
}
