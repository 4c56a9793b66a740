/* wait_queue.c - the wait of everything in this folder but the mutex. */
#include "lock/wait_word.h"

#include <errno.h>

int cc__wait_queue_park_locked(struct wait_queue *queue, struct lock *lock, struct wait_node *node,
                               struct wait_what what) {
    enum wake_reason reason = cc__wait_locked(&node->waiter, lock, what);
    if (likely(reason == WAKE_OBJECT)) return 0;
    cc__lock_take(lock);
    if (node->linked) cc__wait_queue_remove(queue, node);
    return reason == WAKE_TIMER ? ETIMEDOUT : ECANCELED;
}

int cc__wait_queue_wait_locked(struct wait_queue *queue, struct lock *lock, struct wait_node *node, uint64_t deadline,
                               struct wait_what what) {
    int rc = cc__waiter_init(&node->waiter, cc__worker(), deadline);
    if (unlikely(rc != 0)) return rc;
    cc__wait_queue_push(queue, node);
    return cc__wait_queue_park_locked(queue, lock, node, what);
}

int cc__wait_word_wait_locked(struct wait_word *ww, uint64_t deadline, enum park_reason reason) {
    struct wait_node node;
    int rc = cc__wait_queue_wait_locked(&ww->queue, &ww->lock, &node, deadline, (struct wait_what){reason, ww});
    if (likely(rc == 0)) return 0;
    cc__wait_word_left_locked(ww);
    cc__lock_release(&ww->lock);
    return rc;
}
