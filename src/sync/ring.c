/* ring.c - the bounded queue for any number of producers and consumers. */
#include "sync/ring.h"

#include "base/mem.h"

bool cc__ring_init(struct ring_mpmc *ring, size_t slots) {
    ring->slots = cc__mem_alloc(slots * sizeof *ring->slots);
    if (ring->slots == NULL) return false;
    ring->mask = slots - 1;
    for (size_t i = 0; i < slots; i++) cc__set(&ring->slots[i].sequence, i);
    cc__set(&ring->head, 0);
    cc__set(&ring->tail, 0);
    return true;
}

void cc__ring_destroy(struct ring_mpmc *ring) {
    cc__mem_free(ring->slots);
    ring->slots = NULL;
}

bool cc__ring_put(struct ring_mpmc *ring, void *item) {
    uint64_t tail = cc__get(&ring->tail);
    for (;;) {
        struct ring_slot *slot = &ring->slots[tail & ring->mask];
        uint64_t seq = cc__get_acquire(&slot->sequence); /* pairs with the consumer's release: the slot is free */
        if (seq == tail) {
            /* seq_cst: a put is followed by a look for sleeping workers (idle.c). */
            if (cc__cas_seq(&ring->tail, &tail, tail + 1)) {
                cc__set(&slot->item, item);
                cc__set_release(&slot->sequence, tail + 1); /* pairs with the consumer's acquire */
                return true;
            }
        } else if (seq < tail) {
            return false;
        } else {
            tail = cc__get(&ring->tail);
        }
    }
}

void *cc__ring_take(struct ring_mpmc *ring) { /* RING-2 */
    uint64_t head = cc__get(&ring->head);
    for (;;) {
        struct ring_slot *slot = &ring->slots[head & ring->mask];
        uint64_t seq = cc__get_acquire(&slot->sequence); /* pairs with the producer's release: the slot is filled */
        if (seq == head + 1) {
            if (cc__cas(&ring->head, &head, head + 1)) {
                void *item = cc__get(&slot->item);
                cc__set_release(&slot->sequence, head + ring->mask + 1); /* pairs with the producer of the next lap */
                return item;
            }
        } else if (seq < head + 1) {
            return NULL;
        } else {
            head = cc__get(&ring->head);
        }
    }
}
