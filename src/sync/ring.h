/* ring.h - a bounded queue of pointers for any number of producers and consumers, without locks.
 *
 * Each slot has a sequence number that says who may use it: the start of a position's lap when it is free for the
 * producer of that position, one more when it is filled for its consumer (after Dmitry Vyukov's bounded MPMC queue). In
 * the first lap a free slot is 0: a ring takes no memory before it is used.
 *
 * RING-1  A slot is written only by the producer whose CAS moved `tail` past it, read only by the consumer
 *         whose CAS moved `head` past it.
 * RING-2  "Full" and "empty" may be returned while another thread is between its CAS and its store: callers treat them
 *         as hints.
 */
#ifndef CC_SYNC_RING_H
#define CC_SYNC_RING_H

#include "sync/atomic.h"

struct ring_slot {
    _Atomic uint64_t sequence;
    void *_Atomic item;
};

struct ring_mpmc {
    struct ring_slot *slots;
    uint64_t mask;
    _Alignas(CC_LINE) _Atomic uint64_t head;
    _Alignas(CC_LINE) _Atomic uint64_t tail;
};

/* slots: a power of two, at least 2. False: no memory. */
bool cc__ring_init(struct ring_mpmc *ring, size_t slots);
void cc__ring_destroy(struct ring_mpmc *ring);

enum ring_use { RING_FREE, RING_FILLED };

CC_INLINE uint64_t cc__ring_sequence(const struct ring_mpmc *ring, uint64_t position, enum ring_use use) {
    return (position & ~ring->mask) + use;
}

/* Consecutive slots from `position` on that only the caller may use. Passed by value: the fibers of a worker access
 * memory on its stack. */
struct ring_claim {
    uint64_t position;
    uint32_t n;
};

/* Claims up to n slots to fill; n is 0: it is full. The caller fills all of them at once: consumers of later slots
 * wait. */
struct ring_claim cc__ring_claim_put(struct ring_mpmc *ring, uint32_t n);
CC_INLINE void cc__ring_fill(struct ring_mpmc *ring, uint64_t position, void *item) {
    struct ring_slot *slot = &ring->slots[position & ring->mask];
    cc__set(&slot->item, item);
    /* pairs with the consumer's acquire */
    cc__set_release(&slot->sequence, cc__ring_sequence(ring, position, RING_FILLED));
}

/* Claims up to n slots to empty; n is 0: it is empty. */
struct ring_claim cc__ring_claim_take(struct ring_mpmc *ring, uint32_t n);
CC_INLINE void *cc__ring_empty(struct ring_mpmc *ring, uint64_t position) {
    struct ring_slot *slot = &ring->slots[position & ring->mask];
    void *item = cc__get(&slot->item);
    /* pairs with the producer of the next lap */
    cc__set_release(&slot->sequence, cc__ring_sequence(ring, position + ring->mask + 1, RING_FREE));
    return item;
}

/* The approximate number of elements. */
CC_INLINE uint64_t cc__ring_len(struct ring_mpmc *ring) {
    uint64_t head = cc__get_seq(&ring->head), tail = cc__get_seq(&ring->tail);
    return tail > head ? tail - head : 0;
}

#endif
