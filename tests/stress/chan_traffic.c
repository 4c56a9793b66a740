/* chan_traffic.c - millions of plain sends and receives keep the order of every producer and the count of every
 * value. */
#include "../battery/battery.h"
#include "done.h"

enum { MOST = 16 };

struct traffic {
    CCChan *ch;
    uint64_t each;
    int producers;
    atomic_ulong received;
    atomic_uint *marks;
};

struct actor {
    struct traffic *t;
    uint64_t index;
};

static void *produce(void *arg) {
    struct actor *s = arg;
    for (uint64_t i = 0; i < s->t->each; i++) {
        uint64_t value = s->index << 32 | i;
        CHECK_EQ(cc_chan_send(s->t->ch, &value, 8), 0);
    }
    return NULL;
}

static void *consume(void *arg) {
    struct traffic *t = ((struct actor *)arg)->t;
    uint64_t value, next[MOST] = {0}, received = 0;
    int rc;
    for (; (rc = cc_chan_recv(t->ch, &value, 8)) == 0; received++) {
        uint64_t producer = value >> 32, number = value & UINT32_MAX;
        CHECK(producer < (uint64_t)t->producers && number < t->each);
        CHECK(number >= next[producer]);
        next[producer] = number + 1;
        CHECK_EQ(atomic_fetch_add_explicit(&t->marks[producer * t->each + number], 1, memory_order_relaxed), 0);
    }
    CHECK_EQ(rc, EPIPE);
    atomic_fetch_add(&t->received, received);
    return NULL;
}

static void traffic_with(size_t capacity, unsigned workers, int producers, int consumers) {
    CHECK_EQ(cc_runtime_init(&(CCRuntimeConfig){.workers = workers}), 0);
    struct traffic t = {.ch = new_chan(8, capacity),
                        .each = (uint64_t)(test_rounds(800000, 100000000) / producers),
                        .producers = producers};
    uint64_t all = t.each * (uint64_t)producers;
    t.marks = calloc(all, sizeof(atomic_uint));
    CHECK(t.marks != NULL);
    struct actor actors[MOST];
    struct party out[MOST], in[MOST];
    for (int i = 0; i < producers; i++) {
        actors[i] = (struct actor){&t, (uint64_t)i};
        out[i] = party_start(FIBERS, i, produce, &actors[i]);
    }
    for (int i = 0; i < consumers; i++) in[i] = party_start(FIBERS, i, consume, &actors[0]);
    parties_end(out, producers);
    CHECK_EQ(cc_chan_close(t.ch), 0);
    parties_end(in, consumers);
    CHECK_EQ(t.received, all);
    for (uint64_t i = 0; i < all; i++) CHECK_EQ(t.marks[i], 1);
    check_clean(t.ch);
    cc_chan_free(t.ch);
    free(t.marks);
    test_count("channel operations", 2 * all);
    count_what_was_done();
    CHECK_EQ(cc_runtime_shutdown(10000), 0);
}

#define TRAFFIC(capacity, workers, producers, consumers)                                           \
    TEST(capacity_##capacity##_workers_##workers##_##producers##_to_##consumers, .timeout = 120) { \
        traffic_with(capacity, workers, producers, consumers);                                     \
    }

TRAFFIC(0, 1, 4, 4)
TRAFFIC(0, 2, 4, 4)
TRAFFIC(0, 8, 8, 8)
TRAFFIC(1, 2, 1, 1)
TRAFFIC(1, 2, 8, 8)
TRAFFIC(1, 8, 4, 4)
TRAFFIC(128, 2, 1, 8)
TRAFFIC(128, 2, 8, 1)
TRAFFIC(128, 2, 4, 4)
TRAFFIC(128, 8, 8, 8)
