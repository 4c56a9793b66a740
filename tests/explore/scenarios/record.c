/* record.c - the recorder's rings (src/trace/recorder.h): one thread writes, one copies. */
#include "explore.h"
#include "trace/recorder.h"

enum { RING_SIZE = 2 };

static union {
    struct record_ring ring;
    unsigned char room[sizeof(struct record_ring) + RING_SIZE * sizeof(struct record)];
} at;

static void ring_setup(void) {
    at.ring.size = RING_SIZE;
    at.ring.mask = (RING_SIZE - 1) * sizeof(struct record);
    cc__record_write(&at.ring, 0, 0);
    cc__record_write(&at.ring, 1, 1);
}

static void ring_write(void) {
    for (uint64_t n = 2; n < 5; n++) cc__record_write(&at.ring, n, n);
}

/* What is kept is whole, and in order. */
static void ring_copy(void) {
    struct record_copy copy[RING_SIZE];
    uint64_t lost, n = cc__record_copy(&at.ring, copy, RING_SIZE, &lost);
    EX_CHECK(n <= RING_SIZE);
    for (uint64_t i = 0; i < n; i++) {
        EX_EQ(copy[i].head, lost + i);
        EX_EQ(copy[i].body, lost + i);
    }
}
SCENARIO(record_ring, "RECORDER-1: a copy of a ring that is being written keeps no record that is torn",
         .setup = ring_setup, .threads = {ring_write, ring_copy});
