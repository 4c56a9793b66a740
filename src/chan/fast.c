/* fast.c - the public calls and their fast paths: a fast step (step.h) under the channel's lock, or under its worker's
 * biased lock.
 *
 * All other cases are a tail call into transfer.c, so that the fast paths save no register.
 */
#include "chan/bias.h"
#include "chan/step.h"

/* As cc__bias_enter, but fails instead of waiting for a revoker; and, in a call that may switch, if the fiber should
 * yield. */
CC_INLINE bool enter_fast(struct worker *w, CCChan *ch, bool switches) {
    cc__set(&w->runq.bias.owner, CC__BIAS_INSIDE);
    cc__barrier_light();
    return likely(cc__get_acquire(&w->runq.bias.revoked) == 0 && cc__chan_biased_to(w, ch) &&
                  (!switches || cc__get(&w->runq.preempt) == 0));
}

CC_INLINE int step(struct worker *w, CCChan *ch, void *value, size_t size, enum guard guard, bool sends) {
    return sends ? cc__step_send(w, ch, value, size, guard, NULL, NULL)
                 : cc__step_recv(w, ch, value, size, guard, NULL, NULL);
}

CC_INLINE bool asks_slow_path(struct worker *w, bool switches) {
    return cc__contention_times(w) || (switches && cc__get(&w->runq.preempt) != 0);
}

CC_INLINE int transfer(CCChan *ch, void *value, size_t size, uint64_t deadline, bool sends) {
    if (unlikely(ch == NULL || value == NULL || size == 0 || ch->fast_size != size))
        return cc__chan_transfer(ch, value, size, deadline, sends);
    struct worker *w = cc__worker();
    bool switches = deadline != NO_WAIT; /* a mark can stay for ever if all other calls are tries */
    if (cc__chan_biased_to(w, ch)) {
        if (likely(enter_fast(w, ch, switches))) {
            int rc = step(w, ch, value, size, GUARD_BIAS, sends);
            if (likely(rc == 0)) return 0;
            if (rc == ARM_WAIT && deadline == WAIT_FOREVER)
                return cc__chan_wait_biased(w, ch, sends ? &ch->senders : &ch->receivers, value);
        }
        cc__bias_leave(&w->runq.bias);
        return cc__chan_transfer(ch, value, size, deadline, sends);
    }
    if (unlikely((w != NULL && asks_slow_path(w, switches)) || !cc__lock_try_now(&ch->lock)))
        return cc__chan_transfer(ch, value, size, deadline, sends);
    bool moved = w != NULL && ch->last_user != w->core.tag;
    if (likely(!moved && cc__get(&ch->bias) == 0 && step(w, ch, value, size, GUARD_LOCK, sends) == 0)) return 0;
    return cc__chan_transfer_locked(ch, value, deadline, sends);
}

/* For a select. */
int cc__chan_try(CCChan *ch, void *value, bool sends) {
    struct worker *w = cc__worker();
    if (likely(ch->fast_size != 0 && cc__chan_biased_to(w, ch))) {
        int rc = enter_fast(w, ch, false) ? step(w, ch, value, ch->fast_size, GUARD_BIAS, sends) : SLOW_PATH;
        if (likely(rc == 0)) return 0;
        cc__bias_leave(&w->runq.bias);
        if (rc == ARM_WAIT) return ARM_WAIT;
    }
    return cc__chan_try_slow(ch, value, sends);
}

CC_INLINE void *sent(const void *value) {
    return (void *)(uintptr_t)value;
}

int cc_chan_send(CCChan *ch, const void *value, size_t size) {
    return transfer(ch, sent(value), size, WAIT_FOREVER, true);
}

int cc_chan_send_try(CCChan *ch, const void *value, size_t size) {
    return transfer(ch, sent(value), size, NO_WAIT, true);
}

int cc_chan_send_until(CCChan *ch, const void *value, size_t size, CCDeadline deadline) {
    return transfer(ch, sent(value), size, cc__wait_deadline(deadline), true);
}

int cc_chan_recv(CCChan *ch, void *value, size_t size) {
    return transfer(ch, value, size, WAIT_FOREVER, false);
}

int cc_chan_recv_try(CCChan *ch, void *value, size_t size) {
    return transfer(ch, value, size, NO_WAIT, false);
}

int cc_chan_recv_until(CCChan *ch, void *value, size_t size, CCDeadline deadline) {
    return transfer(ch, value, size, cc__wait_deadline(deadline), false);
}
