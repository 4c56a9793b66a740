/* ring.c - the bounded queue for any number of producers and consumers. */
#include "sync/ring.h"

#include "os/vm.h"
#include "sync/backoff.h"

bool cc__ring_init(struct ring_mpmc *ring, size_t slots) {
    ring->slots = cc__vm_reserve(slots * sizeof *ring->slots);
    if (ring->slots == NULL) return false;
    ring->mask = slots - 1;
    cc__set(&ring->head, 0);
    cc__set(&ring->tail, 0);
    return true;
}

void cc__ring_destroy(struct ring_mpmc *ring) {
    if (ring->slots != NULL) cc__vm_release(ring->slots, (ring->mask + 1) * sizeof *ring->slots);
    ring->slots = NULL;
}

static bool slot_is(struct ring_mpmc *ring, uint64_t position, enum ring_use use) {
    /* pairs with the release of the slot's previous user */
    return cc__get_acquire(&ring->slots[position & ring->mask].sequence) == cc__ring_sequence(ring, position, use);
}

/* How many consecutive slots from `position` on, up to n, are free or filled. */
static uint32_t run_of(struct ring_mpmc *ring, uint64_t position, enum ring_use use, uint32_t n) {
    uint32_t k = 0;
    while (k < n && slot_is(ring, position + k, use)) k++;
    return k;
}

struct ring_claim cc__ring_claim_put(struct ring_mpmc *ring, uint32_t n) {
    uint64_t tail = cc__get(&ring->tail);
    for (unsigned pauses = 1;;) {
        uint32_t k = run_of(ring, tail, RING_FREE, n);
        if (k == 0) { /* full, unless another thread has filled the slot meanwhile */
            uint64_t now = cc__get(&ring->tail);
            if (now == tail) return (struct ring_claim){tail, 0};
            tail = now;
            continue;
        }
        /* seq_cst: after a put the producer looks for sleeping workers (idle.c). */
        if (cc__cas_seq(&ring->tail, &tail, tail + k)) return (struct ring_claim){tail, k};
        cc__backoff_contended(&pauses);
        tail = cc__get(&ring->tail);
    }
}

struct ring_claim cc__ring_claim_take(struct ring_mpmc *ring, uint32_t n) { /* RING-2 */
    uint64_t head = cc__get(&ring->head);
    for (unsigned pauses = 1;;) {
        uint32_t k = run_of(ring, head, RING_FILLED, n);
        if (k == 0) { /* empty, unless another thread has taken it meanwhile */
            uint64_t now = cc__get(&ring->head);
            if (now == head) return (struct ring_claim){head, 0};
            head = now;
            continue;
        }
        if (cc__cas(&ring->head, &head, head + k)) return (struct ring_claim){head, k};
        cc__backoff_contended(&pauses);
        head = cc__get(&ring->head);
    }
}
