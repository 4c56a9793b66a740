/* cond.c - waiting for something that a mutex guards.
 *
 *   wait                                        signal
 *   lock; queue a node; unlock                  lock; remove the first node:
 *   unlock the mutex                              parked: claim its waiter
 *   lock; not in the queue any more: done         not yet: its waiter will see that
 *   else: park                                  unlock; wake
 *   lock the mutex
 *
 * COND-1  A waiter is queued before it unlocks the mutex: a signaller that changes the condition under the mutex and
 *         then signals finds the waiter.
 * COND-2  A signal goes to a waiter that is not parked yet (`flag` is not set), which finds its node unlinked and does
 *         not park, or to a parked waiter that it has claimed. Either returns 0. A wait that ends for another reason
 *         has consumed no signal.
 */
#include "lock/mutex.h"
#include "lock/wait_word.h"
#include "sim/sim.h"

#include <errno.h>

/* Under the lock: delivers one signal. False: there is no waiter. */
static bool signal_locked(struct wait_word *ww, struct wakes *wakes) {
    for (struct wait_node *node; (node = cc__wait_queue_first(&ww->queue)) != NULL;) {
        cc__wait_queue_remove(&ww->queue, node);
        if (!node->flag || cc__wakes_claim_locked(wakes, &node->waiter, WAKE_OBJECT)) return true;
    }
    return false;
}

static int signal(CCCond *c, bool all) {
    if (unlikely(c == NULL)) return EINVAL;
    struct wait_word *ww = cc__wait_word_of(c);
    cc__sim_point();
    /* By COND-1 a waiter for this signal is already queued, and the mutex makes that visible here. */
    if (cc__wait_queue_empty(&ww->queue)) return 0;
    struct wakes wakes;
    cc__wakes_init(&wakes);
    cc__lock_take(&ww->lock);
    while (signal_locked(ww, &wakes) && all) {
    }
    cc__lock_release(&ww->lock);
    cc__wakes_flush_any(&wakes);
    return 0;
}

int cc_cond_signal(CCCond *c) {
    return signal(c, false);
}

int cc_cond_broadcast(CCCond *c) {
    return signal(c, true);
}

/* In a simulation other fibers have run since cc__waiter_init, at the points of the unlock, and may have used up the
 * room in the timer heap that it reserved (TIMER-3). */
static bool has_timer(const struct waiter *waiter) {
    return waiter->fiber == NULL || waiter->deadline == WAIT_FOREVER || cc__timer_prepare(cc__worker());
}

/* Parks, unless a signal came first. The node is queued and the mutex unlocked. */
static int wait_in_queue(struct wait_word *ww, struct wait_node *node) {
    int rc = 0;
    cc__lock_take(&ww->lock);
    if (unlikely(node->linked && !has_timer(&node->waiter))) {
        cc__wait_queue_remove(&ww->queue, node);
        rc = ENOMEM;
    } else if (node->linked) {
        node->flag = true;
        rc = cc__wait_queue_park_locked(&ww->queue, &ww->lock, node, (struct wait_what){PARK_COND, ww});
        if (likely(rc == 0)) return 0;
    }
    cc__lock_release(&ww->lock);
    return rc;
}

int cc_cond_wait_until(CCCond *c, CCMutex *m, CCDeadline deadline) {
    if (unlikely(c == NULL || m == NULL)) return EINVAL;
    struct wait_word *ww = cc__wait_word_of(c);
    struct wait_node node = {.flag = false};
    int rc = cc__waiter_init(&node.waiter, cc__worker(), cc__wait_deadline(deadline));
    if (unlikely(rc != 0)) return rc;
    cc__lock_take(&ww->lock);
    cc__wait_queue_push(&ww->queue, &node);
    cc__lock_release(&ww->lock);
    cc__mutex_unlock_to_wait(cc__mutex_of(m));
    rc = wait_in_queue(ww, &node);
    cc__mutex_lock_again(cc__mutex_of(m));
    return rc;
}

int cc_cond_wait(CCCond *c, CCMutex *m) {
    return cc_cond_wait_until(c, m, CC_FOREVER);
}
