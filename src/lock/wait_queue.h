/* wait_queue.h - the waiters of one object, first come, first served.
 *
 * A queue is one pointer, NULL without waiters: an all-zero object is ready to use, and an idle one holds no pointer to
 * itself. The wait nodes, each on the stack of its waiter, form a ring; for objects that a select can wait for it is a
 * ring of arms instead (wait_word.h).
 *
 * WAITQ-1  The object's lock guards the queue and `linked`.
 * WAITQ-2  Claim before give: an object gives a lock, a permit or a signal only to a waiter that it has claimed. A
 *          waiter whose claim is lost to a deadline or a canceller gets nothing, and the next one is tried, so no
 *          permit or signal is lost.
 * WAITQ-3  A claimed waiter runs after the flush, which comes after the object's lock is released: by then the giver no
 *          longer touches the object. So the receiver may free the object.
 */
#ifndef CC_LOCK_WAIT_QUEUE_H
#define CC_LOCK_WAIT_QUEUE_H

#include "wait/wait.h"

struct wait_node {
    struct link link;
    bool linked;
    bool flag; /* the object's own */
    struct waiter waiter;
};

CC_INLINE struct wait_node *cc__wait_queue_first(struct wait_queue *queue) {
    struct link *first = cc__get(&queue->first);
    return first != NULL ? container_of(first, struct wait_node, link) : NULL;
}

CC_INLINE void cc__wait_queue_push(struct wait_queue *queue, struct wait_node *node) { /* WAITQ-1 */
    node->linked = true;
    cc__wait_queue_link(queue, &node->link);
}

CC_INLINE void cc__wait_queue_remove(struct wait_queue *queue, struct wait_node *node) {
    node->linked = false;
    cc__wait_queue_unlink(queue, &node->link);
}

CC_INLINE void cc__wakes_flush_any(struct wakes *wakes) {
    if (cc__wakes_any(wakes)) cc__wakes_flush(wakes);
}

/* Under the lock: waits with a queued node. 0: claimed, and the lock is released. ETIMEDOUT, ECANCELED: the node is
 * unlinked, and the lock is held. */
int cc__wait_queue_park_locked(struct wait_queue *queue, struct lock *lock, struct wait_node *node,
                               struct wait_what what);
/* The same with a node that it prepares and queues; or ENOMEM, and the lock is held. */
int cc__wait_queue_wait_locked(struct wait_queue *queue, struct lock *lock, struct wait_node *node, uint64_t deadline,
                               struct wait_what what);

#endif
