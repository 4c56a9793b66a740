/* transfer.c - send and receive: one step under the lock, and the wait when the step cannot be taken.
 *
 * The value goes straight to a receiver that waits; else into the ring; else its sender waits with it. A
 * receive takes from the ring, and lets the first waiting sender's value in behind; else straight from a sender
 * that waits.
 */
#include "chan/chan.h"

#include "plat/clock.h"

#include <errno.h>

int cc__chan_send_locked(CCChan *ch, const void *value, struct wakes *wakes) {
    if (unlikely(cc__get(&ch->closed))) return ch->error;
    struct arm *receiver;
    if (!cc__list_empty(&ch->receivers) && (receiver = cc__chan_claim_locked(ch, &ch->receivers, wakes, 0)) != NULL) {
        cc__chan_copy(ch, receiver->value, value);
        return 0;
    }
    if (likely(cc__get(&ch->count) < ch->capacity)) {
        cc__chan_put_locked(ch, value);
        return 0;
    }
    if (unlikely(ch->mode == CC_CHAN_MODE_DROP_NEW)) return EAGAIN;
    if (unlikely(ch->mode == CC_CHAN_MODE_DROP_OLD)) {
        cc__chan_drop_locked(ch);
        ch->dropped++;
        cc__chan_put_locked(ch, value);
        return 0;
    }
    return ARM_WAIT;
}

int cc__chan_recv_locked(CCChan *ch, void *value, struct wakes *wakes) {
    struct arm *sender;
    if (likely(cc__get(&ch->count) > 0)) {
        cc__chan_get_locked(ch, value);
        if (!cc__list_empty(&ch->senders) && (sender = cc__chan_claim_locked(ch, &ch->senders, wakes, 0)) != NULL)
            cc__chan_put_locked(ch, sender->value);
        return 0;
    }
    if (!cc__list_empty(&ch->senders) && (sender = cc__chan_claim_locked(ch, &ch->senders, wakes, 0)) != NULL) {
        cc__chan_copy(ch, value, sender->value);
        return 0;
    }
    if (unlikely(cc__get(&ch->closed))) return ch->error;
    if (unlikely(ch->pool && ch->config.on_create != NULL && ch->created < ch->capacity)) {
        ch->created++;
        return ARM_SETTLE;
    }
    return ARM_WAIT;
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

/* ---- waiting ---- */

/* Puts the caller on a list and waits; consumes the lock. Returns the arm's error, ETIMEDOUT, ECANCELED or
 * ENOMEM. */
static int wait_any_locked(CCChan *ch, struct link *list, void *value, uint64_t deadline) {
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
    return wait_any_locked(ch, list, value, deadline);
}

/* The same, with a line before and after; no label: without. */
CC_INLINE int wait_said_locked(struct worker *w, CCChan *ch, struct link *list, void *value, uint64_t deadline,
                               const struct chan_label *label) {
    if (label == NULL) return wait_locked(w, ch, list, value, deadline);
    cc__chan_trace_park(label, ch);
    int rc = wait_locked(w, ch, list, value, deadline);
    cc__chan_trace_woken(label, rc);
    return rc;
}

/* ---- one step, the short way where it is open ---- */

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

CC_INLINE void finish_hand(struct worker *w, CCChan *ch, struct arm *arm, const struct chan_label *label) {
    CCFiberId whom = label != NULL ? cc__pool_id(arm->waiter->fiber) : 0;
    arm->error = 0;
    if (arm->chosen != NULL) *arm->chosen = arm->index;
    cc__hand_end(w, arm->waiter);
    cc__lock_release(&ch->lock);
    cc__hand_tell(w);
    if (label != NULL) cc__chan_trace_wake(label, whom);
}

static CC_NOINLINE int send_the_long_way(CCChan *ch, const void *value) {
    struct wakes wakes;
    cc__wakes_init(&wakes);
    int rc = cc__chan_send_locked(ch, value, &wakes);
    if (rc == ARM_WAIT) return rc;
    cc__lock_release(&ch->lock);
    cc__chan_wakes_flush(&wakes);
    return rc;
}

static CC_NOINLINE int recv_the_long_way(CCChan *ch, void *value) {
    struct wakes wakes;
    cc__wakes_init(&wakes);
    int rc = cc__chan_recv_locked(ch, value, &wakes);
    if (rc == ARM_WAIT) return rc;
    cc__lock_release(&ch->lock);
    cc__chan_wakes_flush(&wakes);
    return rc == ARM_SETTLE ? cc__chan_create_item(ch, value) : rc;
}

/* Consumes the lock, except that ARM_WAIT leaves it held. */
CC_INLINE int send_step_locked(struct worker *w, CCChan *ch, const void *value, const struct chan_label *label) {
    if (likely(!cc__get(&ch->closed))) {
        struct arm *receiver = take_first_locked(w, ch, &ch->receivers);
        if (receiver != NULL) {
            cc__chan_copy(ch, receiver->value, value);
            finish_hand(w, ch, receiver, label);
            return 0;
        }
        if (likely(cc__list_empty(&ch->receivers))) {
            if (likely(cc__get(&ch->count) < ch->capacity)) {
                cc__chan_put_locked(ch, value);
                cc__lock_release(&ch->lock);
                return 0;
            }
            if (likely(ch->mode == CC_CHAN_MODE_BLOCK)) return ARM_WAIT;
        }
    }
    return send_the_long_way(ch, value);
}

CC_INLINE int recv_step_locked(struct worker *w, CCChan *ch, void *value, const struct chan_label *label) {
    size_t count = cc__get(&ch->count);
    if (likely(cc__list_empty(&ch->senders))) {
        if (likely(count > 0)) {
            cc__chan_get_locked(ch, value);
            cc__lock_release(&ch->lock);
            return 0;
        }
        if (likely(!ch->pool && !cc__get(&ch->closed))) return ARM_WAIT;
        return recv_the_long_way(ch, value);
    }
    struct arm *sender = take_first_locked(w, ch, &ch->senders);
    if (unlikely(sender == NULL)) return recv_the_long_way(ch, value);
    /* The oldest value is ours; the sender's goes behind the others. */
    if (count > 0) {
        cc__chan_get_locked(ch, value);
        cc__chan_put_locked(ch, sender->value);
    } else {
        cc__chan_copy(ch, value, sender->value);
    }
    finish_hand(w, ch, sender, label);
    return 0;
}

int cc__chan_create_item(CCChan *ch, void *value) {
    int rc = ch->config.on_create(value, ch->config.context);
    if (rc == 0) return 0;
    /* The room is free again: somebody who waits for an item may try. */
    struct wakes wakes;
    cc__wakes_init(&wakes);
    cc__lock_take(&ch->lock);
    ch->created--;
    (void)cc__chan_claim_locked(ch, &ch->receivers, &wakes, ARM_AGAIN);
    cc__lock_release(&ch->lock);
    cc__chan_wakes_flush(&wakes);
    return rc > 0 ? rc : ENOMEM;
}

int cc__chan_send_now(CCChan *ch, const void *value) {
    cc__lock_take(&ch->lock);
    int rc = send_step_locked(cc__worker(), ch, value, NULL);
    if (rc == ARM_WAIT) cc__lock_release(&ch->lock);
    return rc;
}

int cc__chan_recv_now(CCChan *ch, void *value) {
    cc__lock_take(&ch->lock);
    int rc = recv_step_locked(cc__worker(), ch, value, NULL);
    if (rc == ARM_WAIT) cc__lock_release(&ch->lock);
    return rc;
}

/* ---- the calls ---- */

static bool bad(const CCChan *ch, const void *value, size_t size) {
    return ch == NULL || size != ch->size || (value == NULL && size > 0);
}

static int send_traced(CCChan *ch, const void *value, size_t size, uint64_t deadline, bool wait);
static int recv_traced(CCChan *ch, void *value, size_t size, uint64_t deadline, bool wait);

/* Without a label nothing of what is traced is compiled in, but for one look. */
CC_INLINE int send(CCChan *ch, const void *value, size_t size, uint64_t deadline, bool wait,
                   const struct chan_label *label) {
    if (unlikely(bad(ch, value, size))) return EINVAL;
    if (unlikely(ch->traced) && label == NULL) return send_traced(ch, value, size, deadline, wait);
    if (unlikely(ch->pool)) cc__chan_reset(ch, value);
    struct worker *w = cc__worker();
    cc__lock_take(&ch->lock);
    int rc = send_step_locked(w, ch, value, label);
    if (likely(rc != ARM_WAIT)) return rc;
    if (wait) return wait_said_locked(w, ch, &ch->senders, (void *)(uintptr_t)value, deadline, label);
    cc__lock_release(&ch->lock);
    return EAGAIN;
}

CC_INLINE int recv(CCChan *ch, void *value, size_t size, uint64_t deadline, bool wait, const struct chan_label *label) {
    if (unlikely(bad(ch, value, size))) return EINVAL;
    if (unlikely(ch->traced) && label == NULL) return recv_traced(ch, value, size, deadline, wait);
    for (;;) {
        struct worker *w = cc__worker();
        cc__lock_take(&ch->lock);
        int rc = recv_step_locked(w, ch, value, label);
        if (likely(rc != ARM_WAIT)) return rc;
        if (!wait) {
            cc__lock_release(&ch->lock);
            return EAGAIN;
        }
        rc = wait_said_locked(w, ch, &ch->receivers, value, deadline, label);
        if (likely(rc != ARM_AGAIN)) return rc;
    }
}

/* ---- the same, traced: with a label ---- */

static CC_NOINLINE CC_COLD int send_traced(CCChan *ch, const void *value, size_t size, uint64_t deadline, bool wait) {
    struct chan_label label = cc__chan_label(ch, true);
    uint64_t start = cc__clock_now();
    int rc = send(ch, value, size, deadline, wait, &label);
    cc__chan_trace_time(!wait ? TIMED_SEND_TRY : deadline == WAIT_FOREVER ? TIMED_SEND : TIMED_SEND_UNTIL, start);
    return rc;
}

static CC_NOINLINE CC_COLD int recv_traced(CCChan *ch, void *value, size_t size, uint64_t deadline, bool wait) {
    struct chan_label label = cc__chan_label(ch, false);
    uint64_t start = cc__clock_now();
    int rc = recv(ch, value, size, deadline, wait, &label);
    cc__chan_trace_time(!wait ? TIMED_RECV_TRY : deadline == WAIT_FOREVER ? TIMED_RECV : TIMED_RECV_UNTIL, start);
    return rc;
}

int cc_chan_send(CCChan *ch, const void *value, size_t size) {
    return send(ch, value, size, WAIT_FOREVER, true, NULL);
}

int cc_chan_send_try(CCChan *ch, const void *value, size_t size) {
    return send(ch, value, size, 0, false, NULL);
}

int cc_chan_send_until(CCChan *ch, const void *value, size_t size, CCDeadline deadline) {
    return send(ch, value, size, deadline.ns, true, NULL);
}

int cc_chan_recv(CCChan *ch, void *value, size_t size) {
    return recv(ch, value, size, WAIT_FOREVER, true, NULL);
}

int cc_chan_recv_try(CCChan *ch, void *value, size_t size) {
    return recv(ch, value, size, 0, false, NULL);
}

int cc_chan_recv_until(CCChan *ch, void *value, size_t size, CCDeadline deadline) {
    return recv(ch, value, size, deadline.ns, true, NULL);
}
