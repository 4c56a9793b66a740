/* transfer.c - send and receive: one step under the lock, and the wait when the step cannot be taken.
 *
 * The value goes straight to a receiver that waits; else into the ring; else its sender waits with it. A
 * receive takes from the ring, and lets the first waiting sender's value in behind; else straight from a sender
 * that waits.
 */
#include "chan/bias.h"
#include "chan/step.h"

#include "os/clock.h"
#include "sim/sim.h"
#include "wait/biased.h"

#include <ccc/cc_panic.h>
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

void cc__chan_unlink_locked(CCChan *ch, struct arm *arm) {
    if (arm->linked) {
        cc__list_remove(&arm->link);
        arm->linked = false;
    } else if (arm->claim_lost) {
        arm->claim_lost = false;
        ch->lost_claims--;
    }
    bool last = ch->abandoned && ch->lost_claims == 0;
    cc__lock_release(&ch->lock);
    if (unlikely(last)) cc__chan_destroy(ch);
}

/* ---- waiting ---- */

/* Puts the caller on a list and waits; consumes the lock. Returns the arm's error, ETIMEDOUT, ECANCELED or
 * ENOMEM. */
static CC_NOINLINE int wait_any_locked(CCChan *ch, struct link *list, void *value, uint64_t deadline) {
    struct waiter waiter;
    int rc = cc__waiter_init(&waiter, cc__worker(), deadline);
    if (unlikely(rc != 0)) {
        cc__lock_release(&ch->lock);
        return rc;
    }
    struct arm arm = {.waiter = &waiter, .value = value, .linked = true};
    cc__list_push_back(list, &arm.link);
    enum wake_reason reason = cc__wait_locked(&waiter, &ch->lock, (struct wait_what){PARK_QUEUE, ch});
    if (likely(reason == WAKE_OBJECT)) return arm.error;
    cc__chan_lock(ch);
    cc__chan_unlink_locked(ch, &arm);
    return reason == WAKE_TIMER ? ETIMEDOUT : ECANCELED;
}

static CC_NOINLINE int unlink_cancelled(struct arm *arm) {
    CCChan *ch = arm->object;
    cc__chan_lock(ch);
    cc__chan_unlink_locked(ch, arm);
    return ECANCELED;
}

/* A fiber waits without a deadline. Consumes the guard. */
CC_INLINE int wait_sole(struct worker *w, CCChan *ch, struct link *list, void *value, enum guard guard) {
    struct fiber *self = cc__get(&w->core.current);
    struct {
        struct arm arm;
        struct waiter waiter;
    } wait;
    cc__waiter_init_sole(&wait.waiter, self);
    wait.arm.fiber = self;
    wait.arm.waiter = &wait.waiter;
    wait.arm.value = value;
    wait.arm.object = ch;
    wait.arm.chosen = NULL;
    wait.arm.linked = true;
    wait.arm.claim_lost = false;
    cc__list_push_back(list, &wait.arm.link);
    enum wake_reason reason =
        guard == INSIDE ? cc__wait_sole_biased(w, self, ch) : cc__wait_sole_locked(w, self, &ch->lock);
    return likely(reason == WAKE_OBJECT) ? wait.arm.error : unlink_cancelled(&wait.arm);
}

/* ---- one step, the fast path where it is open ---- */

static CC_NOINLINE int send_slow_step(CCChan *ch, const void *value) {
    struct wakes wakes;
    cc__wakes_init(&wakes);
    int rc = cc__chan_send_locked(ch, value, &wakes);
    if (rc == ARM_WAIT) return rc;
    cc__lock_release(&ch->lock);
    cc__chan_wakes_flush(&wakes);
    return rc;
}

static CC_NOINLINE int recv_slow_step(CCChan *ch, void *value) {
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
    int rc = cc__step_send(w, ch, value, LOCKED, label);
    return likely(rc != SLOW_PATH) ? rc : send_slow_step(ch, value);
}

CC_INLINE int recv_step_locked(struct worker *w, CCChan *ch, void *value, const struct chan_label *label) {
    int rc = cc__step_recv(w, ch, value, LOCKED, label);
    return likely(rc != SLOW_PATH) ? rc : recv_slow_step(ch, value);
}

/* There is no item after all. The room is free again: somebody who waits for an item may try. */
static void uncreate(void *channel) {
    CCChan *ch = channel;
    struct wakes wakes;
    cc__wakes_init(&wakes);
    cc__chan_lock(ch);
    ch->created--;
    (void)cc__chan_claim_locked(ch, &ch->receivers, &wakes, ARM_AGAIN);
    cc__lock_release(&ch->lock);
    cc__chan_wakes_flush(&wakes);
}

int cc__chan_create_item(CCChan *ch, void *value) {
    CCDefer undo = {.fn = uncreate, .arg = ch}; /* it may panic */
    (void)cc_defer_enter(&undo);
    int rc = ch->config.on_create(value, ch->config.context);
    if (rc == 0) undo.fn = NULL;
    cc_defer_leave(&undo);
    return rc > 0 ? rc : rc < 0 ? ENOMEM : 0;
}

int cc__chan_send_now(CCChan *ch, const void *value) {
    struct worker *w = cc__worker();
    if (cc__chan_bias_enter(w, ch)) {
        int rc = cc__step_send(w, ch, value, INSIDE, NULL);
        if (likely(rc >= 0)) return rc;
        cc__bias_leave(&w->runq.bias);
        if (rc == ARM_WAIT) return rc;
    }
    cc__chan_lock(ch);
    cc__chan_used_locked(w, ch);
    int rc = send_step_locked(w, ch, value, NULL);
    if (rc == ARM_WAIT) cc__lock_release(&ch->lock);
    return rc;
}

int cc__chan_recv_now(CCChan *ch, void *value) {
    struct worker *w = cc__worker();
    if (cc__chan_bias_enter(w, ch)) {
        int rc = cc__step_recv(w, ch, value, INSIDE, NULL);
        if (likely(rc >= 0)) return rc;
        cc__bias_leave(&w->runq.bias);
        if (rc == ARM_WAIT) return rc;
    }
    cc__chan_lock(ch);
    cc__chan_used_locked(w, ch);
    int rc = recv_step_locked(w, ch, value, NULL);
    if (rc == ARM_WAIT) cc__lock_release(&ch->lock);
    return rc;
}

/* ---- the calls ---- */

static bool bad(const CCChan *ch, const void *value, size_t size) {
    return ch == NULL || size != ch->size || (value == NULL && size > 0);
}

/* Without a label nothing of what is traced is compiled in. Consumes the lock. */
CC_INLINE int wait_locked(struct worker *w, CCChan *ch, struct link *list, void *value, uint64_t deadline,
                          const struct chan_label *label) {
    if (label != NULL) cc__chan_trace_park(label, ch);
    int rc = likely(deadline == WAIT_FOREVER && w != NULL) ? wait_sole(w, ch, list, value, LOCKED)
                                                           : wait_any_locked(ch, list, value, deadline);
    if (label != NULL) cc__chan_trace_woken(label, rc);
    return rc;
}

/* From the lock on. */
CC_INLINE int send_slow_locked(CCChan *ch, const void *value, uint64_t deadline, bool wait,
                               const struct chan_label *label) {
    struct worker *w = cc__worker();
    cc__chan_used_locked(w, ch);
    int rc = send_step_locked(w, ch, value, label);
    if (rc != ARM_WAIT) return rc;
    if (likely(wait)) return wait_locked(w, ch, &ch->senders, (void *)(uintptr_t)value, deadline, label);
    cc__lock_release(&ch->lock);
    return EAGAIN;
}

CC_INLINE int recv_slow_locked(CCChan *ch, void *value, uint64_t deadline, bool wait, const struct chan_label *label) {
    for (;;) {
        struct worker *w = cc__worker();
        cc__chan_used_locked(w, ch);
        int rc = recv_step_locked(w, ch, value, label);
        if (rc != ARM_WAIT) return rc;
        if (unlikely(!wait)) {
            cc__lock_release(&ch->lock);
            return EAGAIN;
        }
        rc = wait_locked(w, ch, &ch->receivers, value, deadline, label);
        if (likely(rc != ARM_AGAIN)) return rc;
        cc__chan_lock(ch);
    }
}

/* ---- biased: inside the worker's biased lock, which stands for the channel's ---- */

int cc__chan_wait_inside(struct worker *w, CCChan *ch, struct link *list, void *value) {
    return wait_sole(w, ch, list, value, INSIDE);
}

/* After a step: waits, gives up or, with SLOW_PATH, leaves for what takes the lock. */
CC_INLINE int wait_inside(struct worker *w, CCChan *ch, struct link *list, void *value, uint64_t deadline, bool wait) {
    if (likely(wait && deadline == WAIT_FOREVER)) return cc__chan_wait_inside(w, ch, list, value);
    cc__bias_leave(&w->runq.bias);
    return wait ? SLOW_PATH : EAGAIN;
}

/* Leaves; SLOW_PATH: nothing was done. */
CC_INLINE int send_inside(struct worker *w, CCChan *ch, const void *value, uint64_t deadline, bool wait) {
    int rc = cc__step_send(w, ch, value, INSIDE, NULL);
    if (rc == ARM_WAIT) return wait_inside(w, ch, &ch->senders, (void *)(uintptr_t)value, deadline, wait);
    if (unlikely(rc == SLOW_PATH)) cc__bias_leave(&w->runq.bias);
    return rc;
}

CC_INLINE int recv_inside(struct worker *w, CCChan *ch, void *value, uint64_t deadline, bool wait) {
    int rc = cc__step_recv(w, ch, value, INSIDE, NULL);
    if (rc == ARM_WAIT) return wait_inside(w, ch, &ch->receivers, value, deadline, wait);
    if (unlikely(rc == SLOW_PATH)) cc__bias_leave(&w->runq.bias);
    return rc;
}

/* ---- traced, and simulated ---- */

static int send_logged(CCChan *ch, const void *value, uint64_t deadline, bool wait) {
    struct chan_label label = cc__chan_label(ch, true);
    uint64_t start = cc__clock_now();
    cc__chan_lock(ch);
    int rc = send_slow_locked(ch, value, deadline, wait, &label);
    cc__chan_trace_time(!wait ? TIMED_SEND_TRY : deadline == WAIT_FOREVER ? TIMED_SEND : TIMED_SEND_UNTIL, start);
    return rc;
}

static int recv_logged(CCChan *ch, void *value, uint64_t deadline, bool wait) {
    struct chan_label label = cc__chan_label(ch, false);
    uint64_t start = cc__clock_now();
    cc__chan_lock(ch);
    int rc = recv_slow_locked(ch, value, deadline, wait, &label);
    cc__chan_trace_time(!wait ? TIMED_RECV_TRY : deadline == WAIT_FOREVER ? TIMED_RECV : TIMED_RECV_UNTIL, start);
    return rc;
}

/* Nothing is logged at the moment: the operation is an ordinary one between two points of the simulator. */
static bool not_logged(void) {
    return !cc__trace_on(TRACE_CHAN | TRACE_CHAN_VERBOSE | TRACE_TIMING);
}

static CC_NOINLINE CC_COLD int send_traced(CCChan *ch, const void *value, uint64_t deadline, bool wait) {
    int rc;
    cc__sim_point();
    if (ch->pool) cc__chan_reset(ch, value);
    if (not_logged()) {
        cc__chan_lock(ch);
        rc = send_slow_locked(ch, value, deadline, wait, NULL);
    } else {
        rc = send_logged(ch, value, deadline, wait);
    }
    cc__sim_point();
    return rc;
}

static CC_NOINLINE CC_COLD int recv_traced(CCChan *ch, void *value, uint64_t deadline, bool wait) {
    int rc;
    cc__sim_point();
    if (not_logged()) {
        cc__chan_lock(ch);
        rc = recv_slow_locked(ch, value, deadline, wait, NULL);
    } else {
        rc = recv_logged(ch, value, deadline, wait);
    }
    cc__sim_point();
    return rc;
}

/* ---- the ways in ---- */

int cc__chan_send_any(CCChan *ch, const void *value, size_t size, uint64_t deadline, bool wait) {
    if (unlikely(bad(ch, value, size))) return EINVAL;
    if (unlikely(ch->traced)) return send_traced(ch, value, deadline, wait);
    struct worker *w = cc__worker();
    if (cc__chan_bias_enter(w, ch)) {
        int rc = send_inside(w, ch, value, deadline, wait);
        if (likely(rc != SLOW_PATH)) return rc;
    } else if (unlikely(ch->pool)) {
        cc__chan_reset(ch, value);
    }
    cc__chan_lock(ch);
    return send_slow_locked(ch, value, deadline, wait, NULL);
}

int cc__chan_recv_any(CCChan *ch, void *value, size_t size, uint64_t deadline, bool wait) {
    if (unlikely(bad(ch, value, size))) return EINVAL;
    if (unlikely(ch->traced)) return recv_traced(ch, value, deadline, wait);
    struct worker *w = cc__worker();
    if (cc__chan_bias_enter(w, ch)) {
        int rc = recv_inside(w, ch, value, deadline, wait);
        if (likely(rc != SLOW_PATH)) return rc;
    }
    cc__chan_lock(ch);
    return recv_slow_locked(ch, value, deadline, wait, NULL);
}

int cc__chan_send_from_locked(CCChan *ch, const void *value, uint64_t deadline, bool wait) {
    if (cc__get(&ch->bias) != 0) cc__chan_revoke_locked(ch);
    return send_slow_locked(ch, value, deadline, wait, NULL);
}

int cc__chan_recv_from_locked(CCChan *ch, void *value, uint64_t deadline, bool wait) {
    if (cc__get(&ch->bias) != 0) cc__chan_revoke_locked(ch);
    return recv_slow_locked(ch, value, deadline, wait, NULL);
}
