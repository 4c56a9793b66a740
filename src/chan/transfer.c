/* transfer.c - send and receive: one step under the lock, and the wait when the step cannot be taken.
 *
 * The value goes straight to a receiver that waits; else into the ring; else its sender waits with it. A
 * receive takes from the ring, and lets the first waiting sender's value in behind; else straight from a sender
 * that waits.
 */
#include "chan/chan.h"

#include <errno.h>

int cc__chan_send_locked(CCChan *ch, const void *value, struct wakes *wakes) {
    if (unlikely(ch->closed)) return ch->error;
    struct arm *receiver;
    if (!cc__list_empty(&ch->receivers) && (receiver = cc__chan_claim_locked(ch, &ch->receivers, wakes, 0)) != NULL) {
        cc__chan_copy(ch, receiver->value, value);
        return 0;
    }
    if (likely(ch->count < ch->capacity)) {
        cc__chan_put_locked(ch, value);
        return 0;
    }
    if (unlikely(ch->mode == CC_CHAN_MODE_DROP_NEW)) return EAGAIN;
    if (unlikely(ch->mode == CC_CHAN_MODE_DROP_OLD)) {
        if (++ch->head == ch->capacity) ch->head = 0;
        ch->count--;
        ch->dropped++;
        cc__chan_put_locked(ch, value);
        return 0;
    }
    return CHAN_WAIT;
}

int cc__chan_recv_locked(CCChan *ch, void *value, struct wakes *wakes) {
    struct arm *sender;
    if (likely(ch->count > 0)) {
        cc__chan_get_locked(ch, value);
        if (!cc__list_empty(&ch->senders) && (sender = cc__chan_claim_locked(ch, &ch->senders, wakes, 0)) != NULL)
            cc__chan_put_locked(ch, sender->value);
        return 0;
    }
    if (!cc__list_empty(&ch->senders) && (sender = cc__chan_claim_locked(ch, &ch->senders, wakes, 0)) != NULL) {
        cc__chan_copy(ch, value, sender->value);
        return 0;
    }
    if (unlikely(ch->closed)) return ch->error;
    if (unlikely(ch->pool && ch->config.on_create != NULL && ch->created < ch->capacity)) {
        ch->created++;
        return CHAN_CREATE;
    }
    return CHAN_WAIT;
}

void cc__chan_leave_locked(CCChan *ch, struct arm *arm) {
    if (arm->linked) {
        cc__list_remove(&arm->link);
        arm->linked = false;
    } else if (arm->late) {
        arm->late = false;
        ch->late--;
    }
    bool last = ch->abandoned && ch->late == 0;
    cc__lock_release(&ch->lock);
    if (unlikely(last)) cc__chan_destroy(ch);
}

int cc__chan_wait_locked(CCChan *ch, struct link *list, void *value, uint64_t deadline) {
    struct waiter waiter;
    int rc = cc__waiter_init(&waiter, cc__worker(), deadline);
    if (unlikely(rc != 0)) {
        cc__lock_release(&ch->lock);
        return rc;
    }
    struct arm arm = {.waiter = &waiter, .value = value, .linked = true};
    cc__list_push_back(list, &arm.link);
    enum wake_reason reason = cc__wait_locked(&waiter, &ch->lock, PARK_QUEUE);
    if (likely(reason == WAKE_OBJECT)) return arm.error;
    cc__lock_take(&ch->lock);
    cc__chan_leave_locked(ch, &arm);
    return reason == WAKE_TIMER ? ETIMEDOUT : ECANCELED;
}

static bool bad(const CCChan *ch, const void *value, size_t size) {
    return ch == NULL || size != ch->size || (value == NULL && size > 0);
}

/* A pool's item is cleaned before it goes back. */
static void reset(CCChan *ch, const void *value) {
    if (ch->config.on_reset != NULL) ch->config.on_reset((void *)(uintptr_t)value, ch->config.context);
}

/* The first arm of a list, off it and claimed by the short way; NULL: there is none, or it takes the long way. */
CC_INLINE struct arm *take_first_locked(struct worker *w, CCChan *ch, struct link *list) {
    while (!cc__list_empty(list)) {
        struct arm *arm = cc__chan_arm(cc__get(&list->next));
        if (unlikely(!cc__hand_possible(w, arm->waiter))) return NULL;
        cc__list_remove(&arm->link);
        arm->linked = false;
        if (likely(cc__hand_begin(w, arm->waiter))) return arm;
        arm->late = true;
        ch->late++;
    }
    return NULL;
}

CC_INLINE int finish_hand(struct worker *w, CCChan *ch, struct arm *arm) {
    arm->error = 0;
    cc__hand_end(w, arm->waiter);
    cc__lock_release(&ch->lock);
    cc__hand_tell(w);
    return 0;
}

/* A fiber waits without a deadline. */
static int wait_sole_locked(struct worker *w, CCChan *ch, struct link *list, void *value) {
    struct fiber *self = cc__sched_current(w);
    struct waiter waiter;
    struct arm arm;
    cc__waiter_init_sole(&waiter, self);
    arm.waiter = &waiter;
    arm.value = value;
    arm.chosen = NULL;
    arm.linked = true;
    arm.late = false;
    cc__list_push_back(list, &arm.link);
    if (likely(cc__wait_sole_locked(w, self, &ch->lock) == WAKE_OBJECT)) return arm.error;
    cc__lock_take(&ch->lock);
    cc__chan_leave_locked(ch, &arm);
    return ECANCELED;
}

static CC_NOINLINE int wait_locked(struct worker *w, CCChan *ch, struct link *list, void *value, uint64_t deadline) {
    if (likely(deadline == WAIT_FOREVER && w != NULL)) return wait_sole_locked(w, ch, list, value);
    return cc__chan_wait_locked(ch, list, value, deadline);
}

CC_INLINE int send(CCChan *ch, const void *value, size_t size, uint64_t deadline, bool wait) {
    if (unlikely(bad(ch, value, size))) return EINVAL;
    if (unlikely(ch->pool)) reset(ch, value);
    struct worker *w = cc__worker();
    cc__lock_take(&ch->lock);
    if (likely(!ch->closed)) {
        struct arm *receiver = take_first_locked(w, ch, &ch->receivers);
        if (receiver != NULL) {
            cc__chan_copy(ch, receiver->value, value);
            return finish_hand(w, ch, receiver);
        }
        if (likely(ch->count < ch->capacity && cc__list_empty(&ch->receivers))) {
            cc__chan_put_locked(ch, value);
            cc__lock_release(&ch->lock);
            return 0;
        }
        if (likely(wait && ch->mode == CC_CHAN_MODE_BLOCK && cc__list_empty(&ch->receivers)))
            return wait_locked(w, ch, &ch->senders, (void *)(uintptr_t)value, deadline);
    }
    struct wakes wakes;
    cc__wakes_init(&wakes);
    int rc = cc__chan_send_locked(ch, value, &wakes);
    if (rc == CHAN_WAIT && wait) return wait_locked(w, ch, &ch->senders, (void *)(uintptr_t)value, deadline);
    cc__lock_release(&ch->lock);
    cc__chan_wakes_flush(&wakes);
    return rc == CHAN_WAIT ? EAGAIN : rc;
}

/* What a receiver's arm says when it should look again: a pool has room for another item. */
enum { LOOK_AGAIN = -3 };

int cc__chan_create_item(CCChan *ch, void *value) {
    int rc = ch->config.on_create(value, ch->config.context);
    if (rc == 0) return 0;
    /* The room is free again: somebody who waits for an item may try. */
    struct wakes wakes;
    cc__wakes_init(&wakes);
    cc__lock_take(&ch->lock);
    ch->created--;
    (void)cc__chan_claim_locked(ch, &ch->receivers, &wakes, LOOK_AGAIN);
    cc__lock_release(&ch->lock);
    cc__chan_wakes_flush(&wakes);
    return rc > 0 ? rc : ENOMEM;
}

CC_INLINE int recv(CCChan *ch, void *value, size_t size, uint64_t deadline, bool wait) {
    if (unlikely(bad(ch, value, size))) return EINVAL;
    for (;;) {
        struct worker *w = cc__worker();
        cc__lock_take(&ch->lock);
        if (likely(ch->count > 0 && cc__list_empty(&ch->senders))) {
            cc__chan_get_locked(ch, value);
            cc__lock_release(&ch->lock);
            return 0;
        }
        struct arm *sender = take_first_locked(w, ch, &ch->senders);
        if (sender != NULL) {
            /* The oldest value is ours; the sender's goes behind the others. */
            if (ch->count > 0) {
                cc__chan_get_locked(ch, value);
                cc__chan_put_locked(ch, sender->value);
            } else {
                cc__chan_copy(ch, value, sender->value);
            }
            return finish_hand(w, ch, sender);
        }
        if (likely(wait && !ch->pool && !ch->closed && cc__list_empty(&ch->senders)))
            return wait_locked(w, ch, &ch->receivers, value, deadline);
        struct wakes wakes;
        cc__wakes_init(&wakes);
        int rc = cc__chan_recv_locked(ch, value, &wakes);
        if (rc == CHAN_WAIT && wait) {
            rc = wait_locked(w, ch, &ch->receivers, value, deadline);
            if (unlikely(rc == LOOK_AGAIN)) continue;
            return rc;
        }
        cc__lock_release(&ch->lock);
        cc__chan_wakes_flush(&wakes);
        if (unlikely(rc == CHAN_CREATE)) return cc__chan_create_item(ch, value);
        return rc == CHAN_WAIT ? EAGAIN : rc;
    }
}

int cc_chan_send(CCChan *ch, const void *value, size_t size) {
    return send(ch, value, size, WAIT_FOREVER, true);
}

int cc_chan_send_try(CCChan *ch, const void *value, size_t size) {
    return send(ch, value, size, 0, false);
}

int cc_chan_send_until(CCChan *ch, const void *value, size_t size, CCDeadline deadline) {
    return send(ch, value, size, deadline.ns, true);
}

int cc_chan_recv(CCChan *ch, void *value, size_t size) {
    return recv(ch, value, size, WAIT_FOREVER, true);
}

int cc_chan_recv_try(CCChan *ch, void *value, size_t size) {
    return recv(ch, value, size, 0, false);
}

int cc_chan_recv_until(CCChan *ch, void *value, size_t size, CCDeadline deadline) {
    return recv(ch, value, size, deadline.ns, true);
}
