/* chan_mix.c - random operations over several channels, their histories checked for lost, invented, duplicated and
 * reordered values.
 *
 * Every value contains its producer and its number. A producer records which of its sends returned 0; a consumer
 * records each value. In the end both records agree, and the values of one producer through one channel have reached
 * each consumer in order. */
#include "../battery/battery.h"
#include "done.h"

enum { CHANNELS = 5, PRODUCERS = 8, CONSUMERS = 8 };

struct mix {
    CCChan *ch[CHANNELS];
    uint64_t each;
    atomic_uint *sent, *received; /* by value */
    atomic_ulong operations;
    atomic_int producing;
};

struct actor {
    struct mix *mix;
    uint64_t index, rng;
};

static CCDeadline soon(uint64_t r) {
    return cc_after_ns(r % 30000);
}

/* Sends in one of five ways; returns the error, and which channel. */
static int send_somehow(struct actor *s, uint64_t *value) {
    uint64_t r = test_random(&s->rng);
    CCChan *ch = s->mix->ch[(r >> 8) % CHANNELS];
    switch (r % 6) {
    case 0:
    case 1:
        return cc_chan_send(ch, value, 8);
    case 2:
        return cc_chan_send_try(ch, value, 8);
    case 3:
        return cc_chan_send_until(ch, value, 8, soon(r >> 16));
    default:
        break;
    }
    CCCase cases[3 * CHANNELS];
    size_t chosen, n = 1 + (r >> 32) % (r % 6 == 4 ? 3 : 3 * CHANNELS);
    for (size_t i = 0; i < n; i++)
        cases[i] =
            (CCCase){.kind = CC_CASE_SEND, .ch = s->mix->ch[(i + (r >> 40)) % CHANNELS], .value = value, .size = 8};
    int rc = r >> 60 & 1 ? cc_select(cases, n, soon(r >> 16), &chosen) : cc_select(cases, n, CC_FOREVER, &chosen);
    return rc != 0 ? rc : cases[chosen].error;
}

static void *produce(void *arg) {
    struct actor *s = arg;
    uint64_t operations = 0;
    for (uint64_t i = 0; i < s->mix->each; i++, operations++) {
        uint64_t value = s->index * s->mix->each + i;
        int rc = send_somehow(s, &value);
        if (rc == 0)
            atomic_store_explicit(&s->mix->sent[value], 1, memory_order_relaxed);
        else if (rc != EAGAIN && rc != ETIMEDOUT)
            test_fail(__FILE__, __LINE__, "a send returned %d", rc);
    }
    atomic_fetch_add(&s->mix->operations, operations);
    if (atomic_fetch_sub(&s->mix->producing, 1) == 1)
        for (int i = 0; i < CHANNELS; i++) CHECK_EQ(cc_chan_close(s->mix->ch[i]), 0);
    return NULL;
}

/* What a consumer has seen: the next number it may get, by channel and producer. */
struct seen {
    uint64_t next[CHANNELS][PRODUCERS];
};

static int recv_somehow(struct actor *s, uint64_t *value, size_t *from) {
    uint64_t r = test_random(&s->rng);
    *from = (r >> 8) % CHANNELS;
    switch (r % 5) {
    case 0:
        return cc_chan_recv_try(s->mix->ch[*from], value, 8);
    case 1:
        return cc_chan_recv_until(s->mix->ch[*from], value, 8, soon(r >> 16));
    default:
        break;
    }
    CCCase cases[3 * CHANNELS];
    size_t chosen, n = CHANNELS + (r >> 32) % (2 * CHANNELS + 1); /* each at least once, or a value may wait for ever */
    for (size_t i = 0; i < n; i++)
        cases[i] = (CCCase){.kind = CC_CASE_RECV, .ch = s->mix->ch[(i + *from) % CHANNELS], .value = value, .size = 8};
    int rc = r >> 60 & 1 ? cc_select(cases, n, soon(r >> 16), &chosen) : cc_select(cases, n, CC_FOREVER, &chosen);
    if (rc != 0) return rc;
    *from = (chosen + *from) % CHANNELS;
    return cases[chosen].error;
}

static void *consume(void *arg) {
    struct actor *s = arg;
    struct mix *mix = s->mix;
    struct seen *seen = calloc(1, sizeof *seen);
    CHECK(seen != NULL);
    uint64_t operations = 0;
    for (bool over = false; !over; operations++) {
        uint64_t value = UINT64_MAX;
        size_t from;
        int rc = recv_somehow(s, &value, &from);
        if (rc == 0) {
            CHECK(value < PRODUCERS * mix->each);                    /* not invented, */
            CHECK_EQ(atomic_fetch_add(&mix->received[value], 1), 0); /* not duplicated, */
            uint64_t *next = &seen->next[from][value / mix->each];   /* and in order */
            CHECK(value % mix->each >= *next);
            *next = value % mix->each + 1;
            continue;
        }
        CHECK_EQ(value, UINT64_MAX);
        if (rc == EPIPE) {
            over = true;
            for (int i = 0; i < CHANNELS; i++)
                if (!cc_chan_is_closed(mix->ch[i]) || cc_chan_len(mix->ch[i]) > 0) over = false;
        } else {
            CHECK(rc == EAGAIN || rc == ETIMEDOUT);
        }
    }
    atomic_fetch_add(&mix->operations, operations);
    free(seen);
    return NULL;
}

/* Capacities around `capacity`, 0 among them; `workers` workers, `kind` of parties. */
static void mix_with(size_t capacity, unsigned workers, enum parties kind) {
    CHECK_EQ(cc_runtime_init(&(CCRuntimeConfig){.workers = workers}), 0);
    struct mix mix = {.each = (uint64_t)test_rounds(kind == FIBERS ? 15000 : 4000, 2000000), .producing = PRODUCERS};
    uint64_t all = PRODUCERS * mix.each, rng = test_seed();
    mix.sent = calloc(all, sizeof(atomic_uint));
    mix.received = calloc(all, sizeof(atomic_uint));
    CHECK(mix.sent != NULL && mix.received != NULL);
    for (int i = 0; i < CHANNELS; i++) mix.ch[i] = new_chan(8, i == 0 ? 0 : capacity);
    struct actor actors[PRODUCERS + CONSUMERS];
    struct party parties[PRODUCERS + CONSUMERS];
    for (int i = 0; i < PRODUCERS + CONSUMERS; i++) {
        actors[i] = (struct actor){&mix, (uint64_t)i, test_random(&rng)};
        parties[i] = party_start(kind, i / 2, i < PRODUCERS ? produce : consume, &actors[i]);
    }
    parties_end(parties, PRODUCERS + CONSUMERS);
    uint64_t sent = 0;
    for (uint64_t i = 0; i < all; i++) {
        CHECK_EQ(mix.sent[i], mix.received[i]);
        sent += mix.sent[i];
    }
    CHECK(sent > all / 4); /* the run was not trivial */
    CHECK(mix.operations >= all);
    for (int i = 0; i < CHANNELS; i++) {
        check_clean(mix.ch[i]);
        cc_chan_free(mix.ch[i]);
    }
    free(mix.sent);
    free(mix.received);
    test_count("channel operations", mix.operations);
    count_what_was_done();
    CHECK_EQ(cc_runtime_shutdown(10000), 0);
}

TEST(capacity_1_workers_1, .timeout = 120) {
    mix_with(1, 1, FIBERS);
}

TEST(capacity_1_workers_2, .timeout = 120) {
    mix_with(1, 2, FIBERS);
}

TEST(capacity_1_workers_8, .timeout = 120) {
    mix_with(1, 8, FIBERS);
}

TEST(capacity_128_workers_2, .timeout = 120) {
    mix_with(128, 2, FIBERS);
}

TEST(capacity_128_workers_8, .timeout = 120) {
    mix_with(128, 8, FIBERS);
}

TEST(capacity_1_mixed, .timeout = 120) {
    mix_with(1, 2, MIXED);
}

TEST(capacity_128_mixed, .timeout = 120) {
    mix_with(128, 2, MIXED);
}

TEST(capacity_1_threads, .timeout = 120) {
    mix_with(1, 2, THREADS);
}
