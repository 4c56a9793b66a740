/* wait_queue.c - waiting in a queue. */
#include "lock/wait_queue.h"

#include <errno.h>

int cc__wait_queue_wait_locked(struct wait_queue *queue, struct lock *lock, struct wait_node *node, uint64_t deadline,
                               struct wait_what what) {
    int rc = cc__waiter_init(&node->waiter, cc__worker(), deadline);
    if (unlikely(rc != 0)) return rc;
    cc__wait_queue_push(queue, node);
    enum wake_reason reason = cc__wait_locked(&node->waiter, lock, what);
    if (likely(reason == WAKE_OBJECT)) return 0;
    cc__lock_take(lock);
    if (node->linked) cc__wait_queue_remove(queue, node);
    return reason == WAKE_TIMER ? ETIMEDOUT : ECANCELED;
}
