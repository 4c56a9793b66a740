/* barrier.c - parties that wait for each other, round after round. Everything is under the lock.
 *
 * BAR-1  The one that completes the number takes everybody off the queue: the round is over for all of them.
 *        One whose claim is lost, to a deadline or a canceller, finds itself off the queue and has passed all
 *        the same.
 * BAR-2  One that finds itself in the queue when its wait is over leaves, and does not count any more.
 */
#include "lock/wait_queue.h"
#include "sim/sim.h"

#include <ccc/cc_sync.h>

#include <errno.h>

struct barrier {
    uint32_t parties;
    struct lock lock;
    struct wait_queue queue;
    uint32_t arrived; /* in the queue */
    uint32_t spare;
};

_Static_assert(sizeof(struct barrier) == sizeof(CCBarrier), "the public struct");

static void complete_locked(struct barrier *b, struct wakes *wakes) {
    b->arrived = 0;
    for (struct wait_node *node; (node = cc__wait_queue_first(&b->queue)) != NULL;) {
        cc__wait_queue_remove(&b->queue, node);
        node->mark = true;
        (void)cc__wakes_claim_locked(wakes, &node->waiter, WAKE_OBJECT);
    }
}

int cc_barrier_wait_until(CCBarrier *barrier, CCDeadline deadline) {
    if (unlikely(barrier == NULL || barrier->parties == 0)) return EINVAL;
    struct barrier *b = (struct barrier *)(void *)barrier;
    struct wait_node node = {.mark = false};
    struct wakes wakes;
    cc__wakes_init(&wakes);
    int rc = 0;
    cc__sim_point();
    cc__lock_take(&b->lock);
    if (b->arrived + 1 == b->parties) {
        complete_locked(b, &wakes);
    } else {
        b->arrived++;
        rc = cc__wait_queue_wait_locked(&b->queue, &b->lock, &node, cc__wait_deadline(deadline),
                                        (struct wait_what){PARK_BARRIER, b});
        if (likely(rc == 0)) return 0;
        if (node.mark)
            rc = 0;
        else
            b->arrived--;
    }
    cc__lock_release(&b->lock);
    cc__wakes_flush_any(&wakes);
    return rc;
}

int cc_barrier_wait(CCBarrier *b) {
    return cc_barrier_wait_until(b, CC_FOREVER);
}
