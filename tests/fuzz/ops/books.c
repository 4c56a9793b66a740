/* books.c - invariants of every schedule: every value that was sent is received once, or is still there, or was dropped
 * by a mode that drops; no value is received that was not sent; one producer's values reach each receiver in order; an
 * error has a reason.
 */
#include "ops.h"

#include <string.h>

enum { SENT = 1, RECEIVED = 2, CHANNEL_SHIFT = 4 };

static _Atomic uint8_t book[ACTORS * SEQUENCE];
static atomic_long sent[CHANNELS], received[CHANNELS], dropped[CHANNELS];

void books_open(void) {
    for (int i = 0; i < CHANNELS; i++) sent[i] = received[i] = dropped[i] = 0;
}

uint32_t books_value(struct actor *self) {
    REQUIRE(self->sequence < SEQUENCE - 1, "too many values");
    return self->id * SEQUENCE + ++self->sequence;
}

void books_write(void *to, size_t size, uint32_t value) {
    unsigned char *bytes = to;
    for (size_t i = 0; i < size; i++) bytes[i] = (unsigned char)(i < 4 ? value >> 8 * i : value * 31 + i);
}

void books_sent(unsigned channel, uint32_t value) {
    atomic_fetch_add(&sent[channel], 1);
    unsigned before = atomic_fetch_or(&book[value], (uint8_t)(SENT | channel << CHANNEL_SHIFT));
    REQUIRE((before & SENT) == 0, "value %#x was sent twice", value);
}

uint32_t books_received(struct actor *self, unsigned channel, const void *from) {
    size_t size = world.plan->channels[channel].size;
    atomic_fetch_add(&received[channel], 1);
    if (size == 0) return 0;
    unsigned char expected[VALUE_MAX];
    uint32_t value;
    memcpy(&value, from, sizeof value);
    books_write(expected, size, value);
    REQUIRE(memcmp(expected, from, size) == 0, "a torn value begins with %#x", value);
    REQUIRE(value < ACTORS * SEQUENCE && value % SEQUENCE <= world.actors[value / SEQUENCE].sequence,
            "value %#x was made up", value);
    unsigned before = atomic_fetch_or(&book[value], RECEIVED);
    REQUIRE((before & RECEIVED) == 0, "value %#x was received twice", value);
    if (self != NULL) {
        uint16_t *next = &self->seen[channel][value / SEQUENCE];
        REQUIRE(value % SEQUENCE >= *next, "value %#x came after a later one of the same producer", value);
        *next = (uint16_t)(value % SEQUENCE + 1);
    }
    return value;
}

void books_dropped(unsigned channel, uint64_t n) {
    atomic_fetch_add(&dropped[channel], (long)n);
}

void books_close(void) {
    long missing[CHANNELS] = {0};
    for (unsigned a = 0; a < world.actors_made; a++) {
        for (uint32_t i = a * SEQUENCE; i <= a * SEQUENCE + world.actors[a].sequence; i++) {
            unsigned entry = book[i];
            book[i] = 0; /* for the next run */
            if (entry == 0) continue;
            REQUIRE((entry & SENT) != 0, "value %#x was received, and its send failed", i);
            if ((entry & RECEIVED) == 0) missing[entry >> CHANNEL_SHIFT]++;
        }
    }
    for (unsigned i = 0; i < CHANNELS; i++) {
        REQUIRE(sent[i] == received[i] + dropped[i], "channel %u: %ld sent, %ld received, %ld dropped", i,
                (long)sent[i], (long)received[i], (long)dropped[i]);
        if (world.plan->channels[i].size > 0)
            REQUIRE(missing[i] == dropped[i], "channel %u: %ld values are lost, %ld were dropped", i, missing[i],
                    (long)dropped[i]);
    }
}

void books_answer(struct actor *self, int rc, uint64_t deadline, bool waits) {
    switch (rc) {
    case 0:
    case EPIPE:
    case ECONNRESET: /* what we close with */
    case EDEADLK:
    case ENOTRECOVERABLE:
        break;
    case EAGAIN: /* a try, or a channel that drops */
        break;
    case ETIMEDOUT:
        REQUIRE(waits && deadline != UINT64_MAX && cc_now_ns() >= deadline, "actor %u: ETIMEDOUT too early", self->id);
        break;
    case ECANCELED:
        REQUIRE(waits && cc_cancelled(), "actor %u: ECANCELED without a cancellation", self->id);
        break;
    default:
        wrong("actor %u: an error that there is not: %d", self->id, rc);
    }
}
