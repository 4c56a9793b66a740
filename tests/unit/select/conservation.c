/* conservation.c - with selects on both sides nothing is lost, duplicated or left behind, whatever the order of the
 * arms. */
#include "../ending.h"
#include "arms.h"

enum { CHANNELS = 4, SENDERS = 4, RECEIVERS = 4 };

struct market {
    CCChan *ch[CHANNELS];
    uint64_t each;
    atomic_uint *sent, *received;
    atomic_int senders_left;
    bool deadlines;
};

struct dealer {
    struct market *m;
    uint64_t index, rng;
};

/* A random rotation, forwards or backwards: different selects have the same channels in opposite orders. */
static size_t arms_of(struct dealer *d, CCCase *cases, CCCaseKind kind, uint64_t *value) {
    uint64_t r = test_random(&d->rng);
    size_t n = 1 + r % CHANNELS, start = (r >> 8) % CHANNELS;
    bool back = r >> 16 & 1;
    for (size_t i = 0; i < n; i++) {
        CCChan *ch = d->m->ch[(back ? start + CHANNELS - i : start + i) % CHANNELS];
        cases[i] = (CCCase){.kind = kind, .ch = ch, .value = value, .size = 8};
    }
    return n;
}

static CCDeadline some_deadline(struct dealer *d) {
    uint64_t r = test_random(&d->rng);
    return d->m->deadlines && r % 2 ? cc_after_ns((r >> 8) % 20000) : CC_FOREVER;
}

static void *deal_out(void *arg) {
    struct dealer *d = arg;
    for (uint64_t i = 0; i < d->m->each; i++) {
        uint64_t number = d->index * d->m->each + i;
        CCCase cases[CHANNELS];
        size_t chosen, n = arms_of(d, cases, CC_CASE_SEND, &number);
        int rc = cc_select(cases, n, some_deadline(d), &chosen);
        if (rc == 0) {
            CHECK_EQ(cases[chosen].error, 0);
            atomic_store(&d->m->sent[number], 1);
        }
        CHECK(rc == 0 || rc == ETIMEDOUT);
    }
    if (atomic_fetch_sub(&d->m->senders_left, 1) == 1)
        for (int i = 0; i < CHANNELS; i++) CHECK_EQ(cc_chan_close(d->m->ch[i]), 0);
    return NULL;
}

static void *deal_in(void *arg) {
    struct dealer *d = arg;
    for (int open = CHANNELS; open > 0;) {
        uint64_t number = UINT64_MAX;
        CCCase cases[CHANNELS];
        size_t chosen, n;
        do n = arms_of(d, cases, CC_CASE_RECV, &number);
        while (n < CHANNELS); /* all of them: a value may sit in any */
        int rc = cc_select(cases, n, some_deadline(d), &chosen);
        CHECK(rc == 0 || rc == ETIMEDOUT);
        if (rc == 0 && cases[chosen].error == 0) {
            CHECK(number < SENDERS * d->m->each);
            CHECK_EQ(atomic_fetch_add(&d->m->received[number], 1), 0);
            continue;
        }
        CHECK_EQ(number, UINT64_MAX);
        if (rc == 0) {
            CHECK_EQ(cases[chosen].error, EPIPE);
            /* All are closed by now, or will be at once; leave when each is, and empty. */
            open = 0;
            for (int i = 0; i < CHANNELS; i++) open += !cc_chan_is_closed(d->m->ch[i]) || cc_chan_len(d->m->ch[i]) > 0;
        }
    }
    return NULL;
}

static void market_with(enum parties kind, const size_t *capacities, bool deadlines) {
    struct market m = {.each = (uint64_t)test_rounds(400, 100000), .senders_left = SENDERS, .deadlines = deadlines};
    uint64_t all = SENDERS * m.each, rng = test_seed() + kind;
    m.sent = calloc(all, sizeof(atomic_uint));
    m.received = calloc(all, sizeof(atomic_uint));
    CHECK(m.sent != NULL && m.received != NULL);
    for (int i = 0; i < CHANNELS; i++) m.ch[i] = new_chan(8, capacities[i]);
    struct dealer dealers[SENDERS + RECEIVERS];
    struct party parties[SENDERS + RECEIVERS];
    for (int i = 0; i < SENDERS + RECEIVERS; i++) {
        dealers[i] = (struct dealer){&m, (uint64_t)i, test_random(&rng)};
        parties[i] = party_start(kind, i, i < SENDERS ? deal_out : deal_in, &dealers[i]);
    }
    parties_end(parties, SENDERS + RECEIVERS);
    uint64_t sum = 0;
    for (uint64_t i = 0; i < all; i++) {
        CHECK_EQ(m.sent[i], m.received[i]);
        sum += m.sent[i];
    }
    CHECK(deadlines ? sum <= all : sum == all);
    for (int i = 0; i < CHANNELS; i++) {
        check_clean(m.ch[i]);
        cc_chan_free(m.ch[i]);
    }
    free(m.sent);
    free(m.received);
}

static const size_t mixed[] = {0, 1, 3, 64}, meeting[] = {0, 0, 0, 0};

TEST_WORKERS(rendezvous) {
    for (int kind = FIBERS; kind < KINDS; kind++) market_with((enum parties)kind, meeting, false);
}

TEST_WORKERS(buffers) {
    for (int kind = FIBERS; kind < KINDS; kind++) market_with((enum parties)kind, mixed, false);
}

TEST_WORKERS(rendezvous_with_deadlines) {
    for (int kind = FIBERS; kind < KINDS; kind++) market_with((enum parties)kind, meeting, true);
}

TEST_WORKERS(buffers_with_deadlines) {
    for (int kind = FIBERS; kind < KINDS; kind++) market_with((enum parties)kind, mixed, true);
}

/* ---- exchangers: everybody sends and receives in one select, on channels in opposite orders ---- */

struct exchanger {
    CCChan *a, *b;
    uint64_t index;
    long trades;
    atomic_long *balance;
    atomic_int *left;
};

static void *exchange(void *arg) {
    struct exchanger *e = arg;
    for (long i = 0; i < e->trades; i++) {
        uint64_t out = e->index, in = 0;
        CCCase cases[] = {send_arm(e->a, &out), recv_arm(e->b, &in), send_arm(e->b, &out), recv_arm(e->a, &in)};
        size_t chosen;
        int rc = cc_select(cases, 4, cc_after_ms(20), &chosen); /* the last one may find no partner */
        if (rc == ETIMEDOUT) break;
        CHECK_EQ(rc, 0);
        CHECK_EQ(cases[chosen].error, 0);
        CHECK(chosen % 2 == 0 ? in == 0 : in != 0 && in != e->index); /* never with itself */
        atomic_fetch_add(e->balance, chosen % 2 == 0 ? (long)e->index : -(long)in);
    }
    return NULL;
}

static void exchange_with(enum parties kind, size_t n) {
    CCChan *a = new_chan(8, 0), *b = new_chan(8, 0);
    atomic_long balance = 0;
    struct exchanger e[8];
    struct party parties[8];
    for (size_t i = 0; i < n; i++) {
        e[i] = (struct exchanger){i % 2 ? a : b, i % 2 ? b : a, i + 1, test_rounds(300, 30000), &balance, NULL};
        parties[i] = party_start(kind, (int)i, exchange, &e[i]);
    }
    parties_end(parties, (int)n);
    CHECK_EQ(balance, 0); /* what was given was taken */
    check_clean(a);
    check_clean(b);
    cc_chan_free(a);
    cc_chan_free(b);
}

TEST_WORKERS(exchangers_in_opposite_orders) {
    for_each_kind(exchange_with, 2);
    for_each_kind(exchange_with, 5);
}

/* ---- the runtime ends ---- */

static void *never_chosen(void *arg) {
    CCChan **ch = arg;
    uint64_t in = 4711, out = 1;
    CCCase cases[12];
    for (int i = 0; i < 12; i++) cases[i] = i % 2 ? send_arm(ch[i % 3], &out) : recv_arm(ch[i % 3], &in);
    size_t chosen = 99;
    CHECK_EQ(cc_select(cases, 12, CC_FOREVER, &chosen), ECANCELED);
    CHECK_EQ(in, 4711);
    CHECK_EQ(chosen, 99);
    CHECK_EQ(cc_match(cases, 12, false), CC_MATCH_NONE);
    return NULL;
}

TEST_WORKERS(shutdown_cancels) {
    CCChan *ch[3] = {new_chan(8, 0), new_chan(8, 0), new_chan(8, 0)};
    CHECK_EQ(cc_spawn(NULL, never_chosen, ch, NULL), 0); /* one: two of them would trade */
    for (int i = 0; i < 3; i++) {
        await_receivers(ch[i], 2);
        await_senders(ch[i], 2);
    }
    end_by_cancelling();
    for (int i = 0; i < 3; i++) {
        check_clean(ch[i]);
        cc_chan_free(ch[i]);
    }
}
