/* wait_queue.h - those who wait for one object, in the order of their coming.
 *
 * The queue is one pointer, NULL when nobody waits, so that an object that is all zero is ready and one that
 * is idle holds no address of its own. The nodes, one on the stack of each waiter, form a ring.
 *
 * WAITQ-1  The queue and `linked` are guarded by the object's lock.
 * WAITQ-2  Claim before give: what an object has to give (a lock, a permit, a signal) goes to a waiter that
 *         was claimed, and to no other. One that lost its claim to a deadline or a canceller gets nothing,
 *         and the next in the queue is tried: nothing is swallowed.
 * WAITQ-3  A claimed waiter does not run before the flush, which comes after the object's lock: whoever gives
 *         is through with the object's memory by then. So the one who is given something may free the object.
 */
#ifndef CC_LOCK_WAIT_QUEUE_H
#define CC_LOCK_WAIT_QUEUE_H

#include "wait/wait.h"

struct wait_node {
    struct link link;
    bool linked;
    bool mark; /* the object's own */
    struct waiter waiter;
};

struct wait_queue {
    struct link *_Atomic first;
};

CC_INLINE struct wait_node *cc__wait_queue_node(struct link *link) {
    return container_of(link, struct wait_node, link);
}

CC_INLINE bool cc__wait_queue_empty(struct wait_queue *queue) {
    return cc__get(&queue->first) == NULL;
}

CC_INLINE struct wait_node *cc__wait_queue_first(struct wait_queue *queue) {
    struct link *first = cc__get(&queue->first);
    return first != NULL ? cc__wait_queue_node(first) : NULL;
}

CC_INLINE void cc__wait_queue_push(struct wait_queue *queue, struct wait_node *node) {
    struct link *first = cc__get(&queue->first);
    node->linked = true;
    if (first != NULL) {
        cc__list_push_back(first, &node->link); /* before the first is behind the last */
    } else {
        cc__list_init(&node->link);
        cc__set(&queue->first, &node->link);
    }
}

CC_INLINE void cc__wait_queue_remove(struct wait_queue *queue, struct wait_node *node) {
    struct link *next = cc__get(&node->link.next);
    node->linked = false;
    if (cc__get(&queue->first) == &node->link) cc__set(&queue->first, next != &node->link ? next : NULL);
    cc__list_remove(&node->link);
}

/* Under the lock. The first in the queue who can be claimed, claimed and off the queue; NULL: nobody is left. */
CC_INLINE struct wait_node *cc__wait_queue_claim_locked(struct wait_queue *queue, struct wakes *wakes) {
    for (struct wait_node *node; (node = cc__wait_queue_first(queue)) != NULL;) {
        cc__wait_queue_remove(queue, node);
        if (cc__wakes_claim_locked(wakes, &node->waiter, WAKE_OBJECT)) return node;
    }
    return NULL;
}

/* Under the lock. Everybody. */
CC_INLINE void cc__wait_queue_claim_all_locked(struct wait_queue *queue, struct wakes *wakes) {
    do {
        struct link *first = cc__get(&queue->first);
        if (first != NULL) cc__list_foresee(first);
    } while (cc__wait_queue_claim_locked(queue, wakes) != NULL);
}

CC_INLINE void cc__wakes_flush_any(struct wakes *wakes) {
    if (cc__wakes_any(wakes)) cc__wakes_flush(wakes);
}

/* Under the lock: queues and waits. 0: claimed; the lock is free. ETIMEDOUT, ECANCELED, ENOMEM: off
 * the queue, and the lock is held. */
int cc__wait_queue_wait_locked(struct wait_queue *queue, struct lock *lock, struct wait_node *node, uint64_t deadline,
                               struct wait_what what);

#endif
