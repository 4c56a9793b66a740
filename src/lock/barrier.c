/* barrier.c - parties that wait for each other, round after round. The lock guards everything.
 *
 * BAR-1  The party that completes a round removes every node from the queue, so all of them have passed. A party that
 *        was claimed by a deadline or a canceller instead finds its node unlinked, and has passed too.
 * BAR-2  A party whose wait ends while its node is still in the queue unlinks it and no longer counts as arrived.
 */
#include "lock/wait_word.h"
#include "sim/sim.h"

#include <errno.h>

struct barrier {
    struct wait_word ww; /* the word: how many parties */
    uint32_t arrived;    /* in the queue */
    uint32_t spare;
};

_Static_assert(sizeof(struct barrier) == sizeof(CCBarrier), "the public struct");

static void complete_locked(struct barrier *b, struct wakes *wakes) {
    b->arrived = 0;
    for (struct wait_node *node; (node = cc__wait_queue_first(&b->ww.queue)) != NULL;) {
        cc__wait_queue_remove(&b->ww.queue, node);
        node->flag = true; /* passed */
        (void)cc__wakes_claim_locked(wakes, &node->waiter, WAKE_OBJECT);
    }
}

int cc_barrier_wait_until(CCBarrier *barrier, CCDeadline deadline) { /* BAR-2 */
    if (unlikely(barrier == NULL || barrier->parties == 0)) return EINVAL;
    struct barrier *b = (struct barrier *)(void *)barrier;
    struct wait_node node = {.flag = false};
    struct wakes wakes;
    cc__wakes_init(&wakes);
    int rc = 0;
    cc__sim_point();
    cc__lock_take(&b->ww.lock);
    if (b->arrived + 1 == barrier->parties) {
        complete_locked(b, &wakes);
    } else {
        b->arrived++;
        rc = cc__wait_queue_wait_locked(&b->ww.queue, &b->ww.lock, &node, cc__wait_deadline(deadline),
                                        (struct wait_what){PARK_BARRIER, b});
        if (likely(rc == 0)) return 0;
        if (node.flag)
            rc = 0;
        else
            b->arrived--;
    }
    cc__lock_release(&b->ww.lock);
    cc__wakes_flush_any(&wakes);
    return rc;
}

int cc_barrier_wait(CCBarrier *b) {
    return cc_barrier_wait_until(b, CC_FOREVER);
}
