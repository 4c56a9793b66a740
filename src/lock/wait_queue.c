/* wait_queue.c - how all objects of this folder except the mutex wait. */
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

/* ---- wait words with arms ---- */

void cc__wait_word_link(struct arm *arm) {
    struct wait_word *ww = arm->object;
    arm->linked = true;
    cc__wait_queue_link(&ww->queue, &arm->link);
}

/* The wait was ended by something else. A waker that lost the claim has unlinked the arm and served the next one. */
static void leave_locked(struct wait_word *ww, struct arm *arm) {
    if (arm->linked) cc__wait_queue_unlink(&ww->queue, &arm->link);
    arm->linked = false;
    cc__wait_word_left_locked(ww);
}

void cc__wait_word_unlink(struct arm *arm) {
    cc__lock_take(arm->lock);
    leave_locked(arm->object, arm);
    cc__lock_release(arm->lock);
}

/* Fills in only what a waker reads. */
int cc__wait_word_wait_locked(struct wait_word *ww, uint64_t deadline, enum park_reason reason) {
    struct waiter waiter;
    struct arm arm;
    int rc = cc__waiter_init(&waiter, cc__worker(), deadline);
    if (likely(rc == 0)) {
        arm.waiter = &waiter;
        arm.chosen = NULL;
        arm.object = ww;
        cc__wait_word_link(&arm);
        enum wake_reason woken_by = cc__wait_locked(&waiter, &ww->lock, (struct wait_what){reason, ww});
        if (likely(woken_by == WAKE_OBJECT)) return 0;
        rc = woken_by == WAKE_TIMER ? ETIMEDOUT : ECANCELED;
        cc__lock_take(&ww->lock);
        leave_locked(ww, &arm);
    } else {
        cc__wait_word_left_locked(ww);
    }
    cc__lock_release(&ww->lock);
    return rc;
}
