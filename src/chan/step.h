/* step.h - one step of a send or a receive, the fast path where it is open, under either guard.
 *
 * A step that cannot be done says so and leaves the guard: to the caller's wait (ARM_WAIT), or to the slow path.
 */
#ifndef CC_CHAN_STEP_H
#define CC_CHAN_STEP_H

#include "chan/chan.h"

/* What guards the channel at the moment: its lock, or, biased, the worker's biased lock. A constant wherever it is
 * used: each of the functions below is compiled twice. */
enum guard { LOCKED, INSIDE };

CC_INLINE void cc__step_release(struct worker *w, CCChan *ch, enum guard guard) {
    if (guard == INSIDE)
        cc__bias_leave(&w->runq.bias);
    else
        cc__lock_release(&ch->lock);
}

/* The first arm of a list that can be claimed, off it and claimed, the caller inside its worker's biased lock; NULL:
 * there is none (the list is empty then), or it takes the slow path. */
CC_INLINE struct arm *cc__step_take_first(struct worker *w, CCChan *ch, struct link *list, enum guard guard) {
    do {
        struct arm *arm = cc__chan_arm(cc__get(&list->next));
        struct waiter *waiter = arm->waiter;
        if (unlikely(!cc__local_wake_possible(w, waiter))) return NULL;
        cc__list_remove(&arm->link);
        arm->linked = false;
        if (likely(guard == INSIDE ? cc__local_wake_claim(waiter) : cc__local_wake_begin(w, waiter))) return arm;
        arm->claim_lost = true;
        ch->lost_claims++;
    } while (!cc__list_empty(list));
    return NULL;
}

/* Consumes the guard. */
CC_INLINE int cc__step_finish(struct worker *w, CCChan *ch, struct arm *arm, enum guard guard,
                              const struct chan_label *label) {
    CCFiberId whom = label != NULL ? cc__pool_id(arm->waiter->fiber) : 0;
    arm->error = 0;
    if (unlikely(arm->chosen != NULL)) *arm->chosen = arm->index;
    cc__local_wake_end(w, arm->waiter->fiber); /* leaves the biased lock */
    if (guard == LOCKED) cc__lock_release(&ch->lock);
    cc__local_wake_tell(w);
    if (label != NULL) cc__chan_trace_wake(label, whom);
    return 0;
}

/* Consumes the guard, except when it says that the caller has to wait (ARM_WAIT) or to go the slow path (SLOW_PATH). */
enum { SLOW_PATH = -4 };

CC_INLINE int cc__step_send(struct worker *w, CCChan *ch, const void *value, enum guard guard,
                            const struct chan_label *label) {
    if (!cc__list_empty(&ch->receivers)) {
        struct arm *receiver = cc__step_take_first(w, ch, &ch->receivers, guard);
        if (likely(receiver != NULL)) {
            cc__chan_copy(ch, receiver->value, value);
            return cc__step_finish(w, ch, receiver, guard, label);
        }
        if (!cc__list_empty(&ch->receivers)) return SLOW_PATH;
    }
    if (unlikely(cc__get(&ch->closed))) return SLOW_PATH;
    if (cc__get(&ch->count) < ch->capacity) {
        cc__chan_put_locked(ch, value);
        cc__step_release(w, ch, guard);
        return 0;
    }
    return likely(ch->mode == CC_CHAN_MODE_BLOCK) ? ARM_WAIT : SLOW_PATH;
}

CC_INLINE int cc__step_recv(struct worker *w, CCChan *ch, void *value, enum guard guard,
                            const struct chan_label *label) {
    size_t count = cc__get(&ch->count);
    if (!cc__list_empty(&ch->senders)) {
        struct arm *sender = cc__step_take_first(w, ch, &ch->senders, guard);
        if (likely(sender != NULL)) {
            /* The oldest value is ours; the sender's goes behind the others. */
            if (count > 0) {
                cc__chan_get_locked(ch, value);
                cc__chan_put_locked(ch, sender->value);
            } else {
                cc__chan_copy(ch, value, sender->value);
            }
            return cc__step_finish(w, ch, sender, guard, label);
        }
        if (!cc__list_empty(&ch->senders)) return SLOW_PATH;
    }
    if (count > 0) {
        cc__chan_get_locked(ch, value);
        cc__step_release(w, ch, guard);
        return 0;
    }
    return likely(!ch->pool && !cc__get(&ch->closed)) ? ARM_WAIT : SLOW_PATH;
}

/* The arm's wait is over and was not ended by it: off the list, inside. The memory stays: a channel whose last reference
 * is gone has no bias. */
CC_INLINE void cc__step_unlink_inside(struct arm *arm) {
    CCChan *ch = arm->object;
    if (likely(arm->linked))
        cc__list_remove(&arm->link);
    else
        ch->lost_claims--;
}

#endif
