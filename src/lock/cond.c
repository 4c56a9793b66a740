/* cond.c - waiting for something that a mutex guards.
 *
 *   wait                                        signal
 *   lock; queue up; unlock                 lock; the first in the queue:
 *   unlock the mutex                              it is seated: claim it
 *   lock; signalled? then no wait                 it is on its way: say so
 *   seated: wait                                unlock; wake
 *   lock the mutex
 *
 * COND-1  A waiter is in the queue before it unlocks the mutex: whoever changes the condition under the mutex and
 *         signals after that finds it.
 * COND-2  A signal goes to one that is still on its way (`mark` is not set), who sees it before it would
 *         wait, or to one that is seated and was claimed. Either returns 0. One that ends for another reason
 *         has not been given any signal.
 */
#include "lock/mutex.h"
#include "lock/wait_word.h"
#include "sim/sim.h"

#include <errno.h>

struct cond_node {
    struct wait_node node; /* mark: seated, can be claimed */
    bool signalled;
};

static struct cond_node *of_node(struct wait_node *node) {
    return container_of(node, struct cond_node, node);
}

/* Under the lock: gives one signal away. False: nobody is in the queue. */
static bool signal_locked(struct wait_word *ww, struct wakes *wakes) {
    for (struct wait_node *node; (node = cc__wait_queue_first(&ww->queue)) != NULL;) {
        cc__wait_queue_remove(&ww->queue, node);
        if (!node->mark) {
            of_node(node)->signalled = true;
            return true;
        }
        if (cc__wakes_claim_locked(wakes, &node->waiter, WAKE_OBJECT)) return true;
    }
    return false;
}

static int signal(CCCond *c, bool all) {
    if (unlikely(c == NULL)) return EINVAL;
    struct wait_word *ww = cc__wait_word_of(c);
    cc__sim_point();
    /* COND-1, and the mutex orders the two: a waiter that this signal is for is in the queue. */
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

/* In line, the mutex unlocked: waits, unless a signal was quicker. */
static int wait_in_queue(struct wait_word *ww, struct cond_node *s) {
    cc__lock_take(&ww->lock);
    if (s->signalled) {
        cc__lock_release(&ww->lock);
        return 0;
    }
    s->node.mark = true;
    enum wake_reason reason = cc__wait_locked(&s->node.waiter, &ww->lock, (struct wait_what){PARK_COND, ww});
    if (likely(reason == WAKE_OBJECT)) return 0;
    cc__lock_take(&ww->lock);
    if (s->node.linked) cc__wait_queue_remove(&ww->queue, &s->node);
    cc__lock_release(&ww->lock);
    return reason == WAKE_TIMER ? ETIMEDOUT : ECANCELED;
}

int cc_cond_wait_until(CCCond *c, CCMutex *m, CCDeadline deadline) {
    if (unlikely(c == NULL || m == NULL)) return EINVAL;
    struct wait_word *ww = cc__wait_word_of(c);
    struct cond_node s = {.signalled = false};
    struct worker *w = cc__worker();
    uint64_t until = cc__wait_deadline(deadline);
    int rc = cc__waiter_init(&s.node.waiter, w, until); /* nothing until the wait itself switches ... */
    if (unlikely(rc != 0)) return rc;
    /* ... but the points of a simulation, in the unlock: the room for the timer has to outlast them (TIMER-3). */
    bool reserved = s.node.waiter.fiber != NULL && until != WAIT_FOREVER && cc__sim_on();
    if (unlikely(reserved && !cc__timer_reserve(w))) return ENOMEM;
    cc__lock_take(&ww->lock);
    cc__wait_queue_push(&ww->queue, &s.node);
    cc__lock_release(&ww->lock);
    uint64_t holder = cc__get(&cc__mutex_of(m)->owner);
    (void)cc_mutex_unlock(m);
    if (unlikely(reserved)) cc__timer_unreserve(w);
    rc = wait_in_queue(ww, &s);
    cc__mutex_lock_again(cc__mutex_of(m), holder);
    return rc;
}

int cc_cond_wait(CCCond *c, CCMutex *m) {
    return cc_cond_wait_until(c, m, CC_FOREVER);
}
