/* cases_close.h - close, and what all parties see of it. */

static void close_then_drain_with(enum parties kind, size_t size) {
    (void)kind;
    CCChan *ch = new_chan(size, CAPACITY);
    CHECK(!cc_chan_is_closed(ch));
    fill(ch, size);
    CHECK_EQ(cc_chan_close(ch), 0);
    CHECK(cc_chan_is_closed(ch));
    CHECK_EQ(cc_chan_close(ch), 0); /* again: nothing */
    CHECK_EQ(send_number(ch, size, 9), EPIPE);
    CHECK_EQ(send_number_try(ch, size, 9), EPIPE);
    CHECK_EQ(cc_chan_len(ch), CAPACITY);
    CHECK_EQ(cc_chan_cap(ch), CAPACITY);
    drain(ch, size, CAPACITY);
    uint64_t number = 4711;
    unsigned char value[VALUE_MAX];
    for (int i = 0; i < 3; i++) {
        CHECK_EQ(recv_number(ch, size, &number), EPIPE);
        CHECK_EQ(recv_number_try(ch, size, &number), EPIPE);
        CHECK_EQ(cc_chan_recv_until(ch, value, size, CC_FOREVER), EPIPE);
        CHECK_EQ(cc_chan_recv_until(ch, value, size, CC_PASSED), EPIPE);
        CHECK_EQ(cc_chan_send_until(ch, value, size, CC_PASSED), EPIPE);
    }
    CHECK_EQ(number, 4711);
    CHECK_EQ(cc_chan_len(ch), 0);
    check_clean(ch);
    cc_chan_free(ch);
}

static void *close_then_drain_body(void *arg) {
    close_then_drain_with(FIBERS, *(size_t *)arg);
    return NULL;
}

TEST_WORKERS(close_then_drain) {
    static size_t sizes[] = {8, 0, 1, 12, 4096};
    for (size_t i = 0; i < 5; i++) {
        close_then_drain_with(THREADS, sizes[i]);
        CHECK_EQ(cc_run(close_then_drain_body, &sizes[i], NULL), 0);
    }
}

enum { MANY = 5 };

/* `error` 0: a plain close. */
static void close_wakes_receivers(enum parties kind, size_t size, int error) {
    CCChan *ch = new_chan(size, CAPACITY);
    struct call calls[MANY];
    struct party parties[MANY];
    for (int i = 0; i < MANY; i++) {
        call_init(&calls[i], ch, size, 4711);
        calls[i].deadline = i % 2 ? CC_FOREVER : cc_after_ms(3600 * 1000);
        parties[i] = party_start(kind, i, i % 3 ? call_recv : call_recv_until, &calls[i]);
    }
    await_receivers(ch, MANY);
    CHECK_EQ(error ? cc_chan_close_err(ch, error) : cc_chan_close(ch), 0);
    parties_end(parties, MANY);
    for (int i = 0; i < MANY; i++) {
        CHECK_EQ(calls[i].returned, error ? error : EPIPE);
        CHECK_EQ(calls[i].number, 4711);
    }
    check_clean(ch);
    cc_chan_free(ch);
}

static void close_wakes_senders(enum parties kind, size_t size, int error) {
    CCChan *ch = new_chan(size, CAPACITY);
    struct call calls[MANY];
    struct party parties[MANY];
    fill(ch, size);
    for (int i = 0; i < MANY; i++) {
        call_init(&calls[i], ch, size, 1000 + (uint64_t)i);
        calls[i].deadline = i % 2 ? CC_FOREVER : cc_after_ms(3600 * 1000);
        parties[i] = party_start(kind, i, i % 3 ? call_send : call_send_until, &calls[i]);
    }
    await_senders(ch, MANY);
    CHECK_EQ(error ? cc_chan_close_err(ch, error) : cc_chan_close(ch), 0);
    parties_end(parties, MANY);
    for (int i = 0; i < MANY; i++) CHECK_EQ(calls[i].returned, error ? error : EPIPE);
    drain(ch, size, CAPACITY); /* what was buffered, */
    uint64_t number;
    CHECK_EQ(recv_number(ch, size, &number), error ? error : EPIPE); /* and none of theirs */
    check_clean(ch);
    cc_chan_free(ch);
}

static void close_receivers_with(enum parties kind, size_t size) {
    close_wakes_receivers(kind, size, 0);
}

TEST_WORKERS(close_wakes_all_receivers) {
    for_each_kind(close_receivers_with, 8);
}

static void close_senders_with(enum parties kind, size_t size) {
    close_wakes_senders(kind, size, 0);
}

TEST_WORKERS(close_wakes_all_senders) {
    for_each_kind(close_senders_with, 8);
}

static void close_err_with(enum parties kind, size_t size) {
    close_wakes_receivers(kind, size, EIO);
    close_wakes_senders(kind, size, EIO);
    CCChan *ch = new_chan(size, CAPACITY);
    fill(ch, size);
    CHECK_EQ(cc_chan_close_err(ch, -1), EINVAL);
    CHECK(!cc_chan_is_closed(ch));
    CHECK_EQ(cc_chan_close_err(ch, EDOM), 0);
    CHECK_EQ(cc_chan_close_err(ch, ERANGE), 0);
    CHECK_EQ(cc_chan_close(ch), 0);
    CHECK_EQ(send_number(ch, size, 9), EDOM);
    CHECK_EQ(send_number_try(ch, size, 9), EDOM);
    drain(ch, size, CAPACITY); /* buffered values come first */
    uint64_t number;
    CHECK_EQ(recv_number(ch, size, &number), EDOM);
    CHECK_EQ(recv_number_try(ch, size, &number), EDOM);
    cc_chan_free(ch);

    ch = new_chan(size, CAPACITY); /* a plain close first: it decides */
    CHECK_EQ(cc_chan_close_err(ch, 0), 0);
    CHECK_EQ(cc_chan_close_err(ch, EDOM), 0);
    CHECK_EQ(recv_number(ch, size, &number), EPIPE);
    cc_chan_free(ch);
}

TEST_WORKERS(the_first_error_wins) {
    for_each_kind(close_err_with, 8);
}

/* ---- closers at the same time ---- */

static void *close_with_number(void *arg) {
    struct call *c = arg;
    atomic_store(&c->returned, cc_chan_close_err(c->ch, (int)c->number));
    return NULL;
}

static void closers_with(enum parties kind, size_t size) {
    for (long round = 0; round < test_rounds(20, 2000); round++) {
        CCChan *ch = new_chan(size, CAPACITY);
        struct call receivers[3], closers[4];
        struct party parties[7];
        for (int i = 0; i < 3; i++) {
            call_init(&receivers[i], ch, size, 0);
            parties[i] = party_start(kind, i, call_recv, &receivers[i]);
        }
        for (int i = 0; i < 4; i++) {
            call_init(&closers[i], ch, size, 101 + (uint64_t)i);
            parties[3 + i] = party_start(kind, i, close_with_number, &closers[i]);
        }
        parties_end(parties, 7);
        uint64_t number;
        int error = recv_number(ch, size, &number);
        CHECK(error >= 101 && error <= 104);
        for (int i = 0; i < 3; i++) CHECK_EQ(receivers[i].returned, error); /* all get the same error */
        for (int i = 0; i < 4; i++) CHECK_EQ(closers[i].returned, 0);
        check_clean(ch);
        cc_chan_free(ch);
    }
}

TEST_WORKERS(concurrent_closers) {
    for_each_kind(closers_with, 8);
}

/* ---- close races with senders: returned 0 if and only if received ---- */

enum { RACERS = 3, RACE_MAX = 400 };

struct race {
    CCChan *ch;
    size_t size;
    uint64_t when; /* the closer closes after so many values were sent */
    atomic_ulong sent_so_far;
    atomic_uint sent[RACERS * RACE_MAX]; /* 1: returned 0 */
    atomic_uint received[RACERS * RACE_MAX];
};

struct racer {
    struct race *race;
    uint64_t index;
};

static void *race_send(void *arg) {
    struct racer *r = arg;
    for (uint64_t i = 0; i < RACE_MAX; i++) {
        uint64_t number = r->index * RACE_MAX + i;
        int rc = send_number(r->race->ch, r->race->size, number);
        if (rc != 0) {
            CHECK_EQ(rc, EPIPE);
            return NULL;
        }
        atomic_store(&r->race->sent[number], 1);
        atomic_fetch_add(&r->race->sent_so_far, 1);
    }
    return NULL;
}

static void *race_recv(void *arg) {
    struct race *race = ((struct racer *)arg)->race;
    uint64_t number;
    int rc;
    while ((rc = recv_number(race->ch, race->size, &number)) == 0)
        CHECK_EQ(atomic_fetch_add(&race->received[number], 1), 0);
    CHECK_EQ(rc, EPIPE);
    return NULL;
}

static void *race_close(void *arg) {
    struct race *race = ((struct racer *)arg)->race;
    while (atomic_load(&race->sent_so_far) < race->when) cc_yield();
    CHECK_EQ(cc_chan_close(race->ch), 0);
    return NULL;
}

static void close_race_with(enum parties kind, size_t size) {
    uint64_t rng = test_seed();
    struct race *race = malloc(sizeof *race);
    CHECK(race != NULL);
    for (long round = 0; round < test_rounds(15, 3000); round++) {
        memset(race, 0, sizeof *race);
        race->ch = new_chan(size, CAPACITY);
        race->size = size;
        race->when = test_random(&rng) % (RACERS * RACE_MAX / 4);
        struct racer racers[RACERS];
        struct party parties[2 * RACERS + 1];
        for (int i = 0; i < RACERS; i++) {
            racers[i] = (struct racer){race, (uint64_t)i};
            parties[2 * i] = party_start(kind, i, race_send, &racers[i]);
            parties[2 * i + 1] = party_start(kind, i + 1, race_recv, &racers[i]);
        }
        parties[2 * RACERS] = party_start(kind, (int)round, race_close, &racers[0]);
        parties_end(parties, 2 * RACERS + 1);
        for (int i = 0; i < RACERS * RACE_MAX; i++) CHECK_EQ(race->sent[i], race->received[i]);
        CHECK_EQ(cc_chan_len(race->ch), 0);
        check_clean(race->ch);
        cc_chan_free(race->ch);
    }
    free(race);
}

TEST_WORKERS(close_races_with_senders) {
    for_each_kind(close_race_with, 8);
}
