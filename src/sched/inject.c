/* inject.c - the global queue. */
#include "sched/inject.h"

#include "fiber/spec.h"
#include "sched/policy.h"

enum { BATCH = 64 }; /* slots that are claimed at a time */

static void overflow(struct fiber *f) { /* INJECT-1 */
    cc__lock_take(&cc__sched.overflow.lock);
    cc__list_push_back(&cc__sched.overflow.list, &f->link);
    /* seq_cst: a put is followed by a check for sleeping workers. */
    cc__add_seq(&cc__sched.overflow.count, 1);
    cc__lock_release(&cc__sched.overflow.lock);
    struct worker *w = cc__worker();
    if (w != NULL)
        cc__count(w, overflows);
    else
        cc__add_relaxed(&cc__sched.foreign_overflowed, 1);
}

/* The ring near the calling worker. OS threads are spread over the rings by the addresses of their stacks. */
static struct ring_mpmc *ring_near(struct worker *w) {
    if (likely(cc__sched.ring_count == 1)) return &cc__sched.rings[0];
    size_t place = w != NULL ? (w->core.owner - 1) / RING_WORKERS : (uintptr_t)&w >> 16;
    return &cc__sched.rings[place & (cc__sched.ring_count - 1)];
}

/* Claims slots for up to n fibers; none: they have to go to the list. */
static struct ring_claim claim_put(struct ring_mpmc *ring, uint32_t n) {
    if (unlikely(cc__get(&cc__sched.overflow.count) != 0)) return (struct ring_claim){0, 0}; /* INJECT-2 */
    return cc__ring_claim_put(ring, n < BATCH ? n : BATCH);
}

void cc__inject_put(struct fiber *f) {
    struct ring_mpmc *ring = ring_near(cc__worker());
    if (cc__spec_on()) cc__spec_enqueue(f);
    struct ring_claim c = claim_put(ring, 1);
    if (likely(c.n == 1))
        cc__ring_fill(ring, c.position, f);
    else
        overflow(f);
}

static struct fiber *first_of(struct link *list) {
    struct fiber *f = cc__fiber_of(cc__list_pop_front(list));
    if (cc__spec_on()) cc__spec_enqueue(f);
    return f;
}

void cc__inject_put_all(struct link *list, uint32_t n) {
    struct ring_mpmc *ring = ring_near(cc__worker());
    while (n > 0) {
        struct ring_claim c = claim_put(ring, n);
        if (unlikely(c.n == 0)) break;
        for (uint32_t i = 0; i < c.n; i++) cc__ring_fill(ring, c.position + i, first_of(list));
        n -= c.n;
    }
    for (; n > 0; n--) overflow(first_of(list));
}

static uint32_t ring_take(struct ring_mpmc *ring, uint32_t n, struct link *list) {
    uint32_t taken = 0;
    while (taken < n) {
        struct ring_claim c = cc__ring_claim_take(ring, n - taken < BATCH ? n - taken : BATCH);
        if (c.n == 0) break;
        for (uint32_t i = 0; i < c.n; i++) {
            struct fiber *f = cc__ring_empty(ring, c.position + i);
            cc__list_push_back(list, &f->link);
        }
        taken += c.n;
    }
    return taken;
}

uint32_t cc__inject_take(struct worker *w, uint32_t n, struct link *list) {
    unsigned count = cc__sched.ring_count, first = (unsigned)(ring_near(w) - cc__sched.rings);
    if (count > 1 && w != NULL && ++w->takes % OTHER_RINGS == 0) first += w->takes / OTHER_RINGS; /* INJECT-3 */
    uint32_t taken = 0;
    for (unsigned i = 0; i < count && taken == 0; i++) {
        /* In an order of each ring's own: the takers of an empty one do not all go to the same next one. */
        struct ring_mpmc *ring = &cc__sched.rings[(first ^ i) & (count - 1)];
        if (count == 1 || cc__ring_len(ring) != 0) taken = ring_take(ring, n, list);
    }
    if (taken < n && cc__get(&cc__sched.overflow.count) != 0) {
        cc__lock_take(&cc__sched.overflow.lock);
        uint32_t moved = 0;
        for (; taken < n && !cc__list_empty(&cc__sched.overflow.list); taken++, moved++)
            cc__list_push_back(list, cc__list_pop_front(&cc__sched.overflow.list));
        cc__sub(&cc__sched.overflow.count, moved);
        cc__lock_release(&cc__sched.overflow.lock);
    }
    return taken;
}
