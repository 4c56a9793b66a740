/* step.h - the transfer step: what a send or a receive does while it holds the guard of the channel.
 *
 * The guard is the channel's lock or, if the channel is biased, its worker's biased lock. One source is compiled twice
 * for each direction. The full step (transfer.c) handles every case. The fast step (fast.c) calls no function, so that
 * no register has to be saved: it passes `wakes` as NULL, moves values that are one load and one store, and claims a
 * waiter only where a plain store suffices.
 *
 * FAST-1  A fast step that returns SLOW_PATH has changed nothing and still holds the guard.
 * FAST-2  An arm whose `fiber` is set belongs to a wait that only channels end. A plain wait has one arm, and one
 *         claimant at a time; for a select, `sole` says whether that still holds (CHANBIAS-4).
 */
#ifndef CC_CHAN_STEP_H
#define CC_CHAN_STEP_H

#include "chan/chan.h"
#include "sched/record.h"

#include <errno.h>

CC_INLINE void cc__step_release(struct worker *w, CCChan *ch, enum guard guard) {
    if (guard == GUARD_BIAS)
        cc__bias_leave(&w->runq.bias);
    else
        cc__lock_release(&ch->lock);
}

/* ---- values ---- */

/* `size` is the channel's element size; in a fast step, that of a word or an int. */
CC_INLINE void cc__step_copy(void *to, const void *from, size_t size, bool fast) {
    if (likely(size == sizeof(uint64_t)))
        memcpy(to, from, sizeof(uint64_t));
    else if (fast)
        memcpy(to, from, sizeof(int));
    else if (size != 0)
        memcpy(to, from, size);
}

/* The ring is not full. */
CC_INLINE void cc__step_put(CCChan *ch, const void *value, size_t size, size_t count, bool fast) {
    size_t at = ch->head + count;
    if (at >= ch->capacity) at -= ch->capacity;
    cc__step_copy(ch->ring + at * size, value, size, fast);
    cc__set(&ch->count, count + 1);
}

/* The ring is not empty. */
CC_INLINE void cc__step_get(CCChan *ch, void *value, size_t size, size_t count, bool fast) {
    size_t head = ch->head;
    cc__step_copy(value, ch->ring + head * size, size, fast);
    ch->head = head + 1 == ch->capacity ? 0 : head + 1;
    cc__set(&ch->count, count - 1);
}

/* A sender waits, so there is no ring or it is full (CHAN-1). If full: dequeues the oldest value and enqueues the
 * sender's, into the same slot. */
CC_INLINE void cc__step_take_from_sender(CCChan *ch, void *value, const void *sent, size_t size, bool fast) {
    if (ch->capacity == 0) {
        cc__step_copy(value, sent, size, fast);
        return;
    }
    unsigned char *slot = ch->ring + ch->head * size;
    cc__step_copy(value, slot, size, fast);
    cc__step_copy(slot, sent, size, fast);
    if (++ch->head == ch->capacity) ch->head = 0;
}

/* ---- claims ---- */

/* Inside the biased lock. False: a store does not suffice, or another claim has won. */
CC_INLINE bool cc__step_claim_by_store(struct worker *w, struct arm *arm) {
    if (unlikely(arm->fiber == NULL || cc__island_apart(w, arm->fiber) ||
                 (arm->chosen != NULL && !cc__get(&arm->waiter->sole))))
        return false;                                                       /* FAST-2 */
    if (unlikely(cc__get_acquire(&cc__sched.contested) != 0)) return false; /* CLAIM-2 */
    if (unlikely(!cc__state_wake_sole(arm->fiber, WAKE_OBJECT))) return false;
    cc__sched_record_wake(w, arm->fiber, WAKE_OBJECT);
    return true;
}

/* A fiber that claims another fiber holds its worker's biased lock until cc__step_wake; any other waiter goes into
 * `wakes`. */
CC_INLINE bool cc__step_claim_waiter(struct worker *w, struct waiter *waiter, enum guard guard, struct wakes *wakes) {
    if (unlikely(w == NULL || waiter->fiber == NULL)) /* the waker or the waiter is an OS thread */
        return cc__wakes_claim_locked(wakes, waiter, WAKE_OBJECT);
    if (cc__island_apart(w, waiter->fiber)) return cc__wakes_claim_apart(wakes, waiter);
    return guard == GUARD_BIAS ? cc__local_wake_claim(w, waiter) : cc__local_wake_begin(w, waiter);
}

/* Unlinks and claims, with `error`, the first arm of a non-empty list whose waiter can be claimed. NULL: there was
 * none, and the list is now empty; or, in a fast step, a store does not suffice for the first one. */
CC_INLINE struct arm *cc__step_claim(struct worker *w, CCChan *ch, struct link *list, enum guard guard,
                                     struct wakes *wakes, int error) {
    do {
        struct arm *arm = cc__chan_arm(cc__get(&list->next));
        bool won = guard == GUARD_BIAS && cc__step_claim_by_store(w, arm);
        if (wakes == NULL && unlikely(!won)) return NULL;
        cc__list_remove(&arm->link);
        if (!won) won = cc__step_claim_waiter(w, arm->waiter, guard, wakes);
        cc__arm_claimed(arm, won, error);
        if (likely(won)) return arm;
        ch->lost_claims++;
    } while (!cc__list_empty(list));
    return NULL;
}

/* Makes the waiter of the claimed arm runnable; its transfer is complete. Consumes the guard. */
CC_INLINE int cc__step_wake(struct worker *w, CCChan *ch, struct arm *arm, enum guard guard, struct wakes *wakes,
                            const struct chan_label *label) {
    if (wakes != NULL && unlikely(cc__wakes_any(wakes))) {
        cc__step_release(w, ch, guard);
        cc__chan_wakes_flush(wakes);
        return 0;
    }
    struct fiber *f = wakes == NULL ? arm->fiber : arm->waiter->fiber;
    CCFiberId whom = label != NULL ? cc__pool_id(f) : 0;
    cc__local_wake_end(w, f); /* leaves the biased lock */
    if (guard == GUARD_LOCK) cc__lock_release(&ch->lock);
    cc__local_wake_tell(w);
    if (label != NULL) cc__event(chan_wake, label->channel, label->name, label->sends, whom);
    return 0;
}

/* ---- the step ---- */

/* A step returns 0 or an error when done; ARM_WAIT and SLOW_PATH leave the guard held. */
enum { SLOW_PATH = -4, ARM_CREATE = -5 };

/* No receiver and no room, or closed. */
CC_INLINE int cc__step_send_rest(struct worker *w, CCChan *ch, const void *value, enum guard guard) {
    int rc = 0;
    if (cc__get(&ch->closed)) {
        rc = ch->error;
    } else if (ch->mode == CC_CHAN_MODE_DROP_NEW) {
        rc = EAGAIN;
    } else if (unlikely(ch->config.on_drop != NULL)) {
        return cc__chan_replace_locked(ch, value); /* such a channel is not biased */
    } else {
        cc__chan_drop_locked(ch);
        ch->dropped++;
        cc__step_put(ch, value, ch->size, cc__get(&ch->count), false);
    }
    cc__step_release(w, ch, guard);
    return rc;
}

CC_INLINE int cc__step_send(struct worker *w, CCChan *ch, const void *value, size_t size, enum guard guard,
                            struct wakes *wakes, const struct chan_label *label) {
    bool fast = wakes == NULL;
    if (!cc__list_empty(&ch->receivers)) { /* so the ring is empty (CHAN-1) */
        struct arm *receiver = cc__step_claim(w, ch, &ch->receivers, guard, wakes, 0);
        if (likely(receiver != NULL)) {
            cc__step_copy(receiver->value, value, size, fast);
            return cc__step_wake(w, ch, receiver, guard, wakes, label);
        }
        if (fast) return SLOW_PATH;
    }
    bool closed = cc__get(&ch->closed);
    size_t count = cc__get(&ch->count);
    if (likely(count < ch->capacity && !closed)) {
        cc__step_put(ch, value, size, count, fast);
        cc__step_release(w, ch, guard);
        return 0;
    }
    if (likely(!closed && ch->mode == CC_CHAN_MODE_BLOCK)) return ARM_WAIT;
    return fast ? SLOW_PATH : cc__step_send_rest(w, ch, value, guard);
}

/* Also returns ARM_CREATE: the caller creates an item of the pool; the guard is released. */
CC_INLINE int cc__step_recv(struct worker *w, CCChan *ch, void *value, size_t size, enum guard guard,
                            struct wakes *wakes, const struct chan_label *label) {
    bool fast = wakes == NULL;
    if (!cc__list_empty(&ch->senders)) {
        struct arm *sender = cc__step_claim(w, ch, &ch->senders, guard, wakes, 0);
        if (likely(sender != NULL)) {
            cc__step_take_from_sender(ch, value, sender->value, size, fast);
            return cc__step_wake(w, ch, sender, guard, wakes, label);
        }
        if (fast) return SLOW_PATH;
    }
    size_t count = cc__get(&ch->count);
    if (likely(count > 0)) {
        cc__step_get(ch, value, size, count, fast);
        cc__step_release(w, ch, guard);
        return 0;
    }
    bool closed = cc__get(&ch->closed);
    if (likely(!closed && !ch->pool)) return ARM_WAIT;
    if (fast) return SLOW_PATH;
    if (!closed && !cc__chan_may_create(ch)) return ARM_WAIT;
    int rc = closed ? ch->error : ARM_CREATE;
    if (!closed) cc__set(&ch->created, cc__get(&ch->created) + 1);
    cc__step_release(w, ch, guard);
    return rc;
}

#endif
