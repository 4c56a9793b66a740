/* transfer.c - send and receive, all cases: the full step, and the wait when it cannot complete.
 *
 * A send hands the value directly to a waiting receiver, else puts it into the ring, else waits with it. A receive
 * takes the oldest value from the ring and enqueues that of the first waiting sender, else takes directly from a
 * waiting sender.
 */
#include "chan/bias.h"
#include "chan/step.h"

#include "base/mem.h"
#include "os/clock.h"
#include "sched/park.h"
#include "sim/sim.h"
#include "wait/biased.h"

#include <ccc/cc_panic.h>

/* ---- the full step ---- */

static CC_NOINLINE int send_step(struct worker *w, CCChan *ch, const void *value, enum guard guard,
                                 const struct chan_label *label) {
    struct wakes wakes;
    cc__wakes_init(&wakes);
    return cc__step_send(w, ch, value, ch->size, guard, &wakes, label);
}

static CC_NOINLINE int recv_step(struct worker *w, CCChan *ch, void *value, enum guard guard,
                                 const struct chan_label *label) {
    struct wakes wakes;
    cc__wakes_init(&wakes);
    return cc__step_recv(w, ch, value, ch->size, guard, &wakes, label);
}

CC_INLINE int step(struct worker *w, CCChan *ch, void *value, bool sends, enum guard guard,
                   const struct chan_label *label) {
    return sends ? send_step(w, ch, value, guard, label) : recv_step(w, ch, value, guard, label);
}

struct arm *cc__chan_claim_locked(CCChan *ch, struct link *list, struct wakes *wakes, int error) {
    return cc__list_empty(list) ? NULL : cc__step_claim(NULL, ch, list, GUARD_LOCK, wakes, error);
}

/* ---- the guard ---- */

static void lock(struct worker *w, CCChan *ch) {
    cc__chan_lock(ch);
    cc__chan_used_locked(w, ch);
}

static enum guard hold(struct worker *w, CCChan *ch) {
    if (cc__chan_bias_enter(w, ch)) return GUARD_BIAS;
    lock(w, ch);
    return GUARD_LOCK;
}

/* Whether the operation is timed (sched/contention.h); not on a channel that is this worker's own, nor if it may call a
 * function of the program. */
CC_INLINE bool is_timed(struct worker *w, const CCChan *ch) {
    return w != NULL && cc__contention_times(w) && !cc__chan_biased_to(w, ch) && !cc__chan_calls(ch);
}

/* Takes the guard and makes one step, which is timed. */
static CC_NOINLINE CC_COLD int timed_step(struct worker *w, CCChan *ch, void *value, bool sends, enum guard *guard) {
    struct timed_move begun = cc__contention_begin(w);
    *guard = hold(w, ch);
    int rc = step(w, ch, value, sends, *guard, NULL);
    cc__contention_end(w, begun);
    return rc;
}

void cc__chan_unlink_locked(CCChan *ch, struct arm *arm) { /* ARM-1 */
    cc__chan_unlink_held(ch, arm);
    bool last = ch->abandoned && ch->lost_claims == 0;
    cc__lock_release(&ch->lock);
    if (unlikely(last)) cc__chan_destroy(ch);
}

/* ---- dropping ---- */

/* The callback runs without the lock and so gets a copy: another send may overwrite the slot. */
CC_NOINLINE int cc__chan_replace_locked(CCChan *ch, const void *value) {
    unsigned char few[128], *oldest = ch->size <= sizeof few ? few : cc__mem_alloc_stack(ch->size);
    if (oldest == NULL) {
        cc__lock_release(&ch->lock);
        return ENOMEM;
    }
    void (*on_drop)(void *, void *) = ch->config.on_drop;
    void *context = ch->config.context;
    cc__step_get(ch, oldest, ch->size, cc__get(&ch->count), false);
    cc__step_put(ch, value, ch->size, cc__get(&ch->count), false);
    ch->dropped++;
    cc__lock_release(&ch->lock);
    on_drop(oldest, context);
    if (oldest != few) cc__mem_free(oldest);
    return 0;
}

/* ---- waiting ---- */

/* Puts the caller on a list and waits; consumes the lock. Returns the arm's error, ETIMEDOUT, ECANCELED or ENOMEM. */
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
        guard == GUARD_BIAS ? cc__wait_biased(w, self, PARK_QUEUE, ch) : cc__wait_sole_locked(w, self, &ch->lock);
    return likely(reason == WAKE_OBJECT) ? wait.arm.error : unlink_cancelled(&wait.arm);
}

int cc__chan_wait_biased(struct worker *w, CCChan *ch, struct link *list, void *value) {
    return wait_sole(w, ch, list, value, GUARD_BIAS);
}

CC_INLINE int wait_held(struct worker *w, CCChan *ch, struct link *list, void *value, uint64_t deadline,
                        enum guard guard) {
    if (guard == GUARD_BIAS) return cc__chan_wait_biased(w, ch, list, value);
    return likely(deadline == WAIT_FOREVER && w != NULL) ? wait_sole(w, ch, list, value, GUARD_LOCK)
                                                         : wait_any_locked(ch, list, value, deadline);
}

/* ---- pools ---- */

/* Creation failed. The place of the item passes to the first waiting receiver, which completes its operation
 * (cc__chan_recv_rest); the channel stays allocated until then (CHAN-6). */
static void uncreate(void *channel) {
    CCChan *ch = channel;
    struct wakes wakes;
    cc__wakes_init(&wakes);
    cc__chan_lock(ch);
    if (cc__chan_claim_locked(ch, &ch->receivers, &wakes, ARM_REST) != NULL)
        ch->lost_claims++;
    else
        cc__set(&ch->created, cc__get(&ch->created) - 1);
    cc__lock_release(&ch->lock);
    cc__chan_wakes_flush(&wakes);
}

struct creation {
    CCChan *ch;
    bool done;
};

static void end_creation(void *creation) {
    struct creation *c = creation;
    if (!c->done) uncreate(c->ch);
}

/* Outside the lock. 0 or the callback's error. A panic or a C++ exception may leave the callback. */
static CC_NOINLINE int create_item(CCChan *ch, void *value) {
    struct creation creation = {ch, false};
    CC_DEFER(end_creation, &creation);
    int rc = ch->config.on_create(value, ch->config.context);
    creation.done = rc == 0;
    return rc > 0 ? rc : rc < 0 ? ENOMEM : 0;
}

/* As if it had just been called; it need not wait, because there is a place for an item. */
CC_NOINLINE int cc__chan_recv_rest(CCChan *ch, void *value) {
    cc__chan_lock(ch);
    ch->lost_claims--;
    cc__set(&ch->created, cc__get(&ch->created) - 1);
    if (unlikely(ch->abandoned)) {
        int error = ch->error;
        bool last = ch->lost_claims == 0;
        cc__lock_release(&ch->lock);
        if (last) cc__chan_destroy(ch);
        return error;
    }
    int rc = recv_step(cc__worker(), ch, value, GUARD_LOCK, NULL);
    return rc == ARM_CREATE ? create_item(ch, value) : rc;
}

/* ---- the operation ---- */

/* Without a label nothing is logged. Consumes the guard. */
CC_INLINE int transfer_held(struct worker *w, CCChan *ch, void *value, uint64_t deadline, bool sends, enum guard guard,
                            const struct chan_label *label) {
    for (;;) {
        int rc = step(w, ch, value, sends, guard, label);
        if (likely(rc != ARM_WAIT)) return unlikely(rc == ARM_CREATE) ? create_item(ch, value) : rc;
        if (deadline == NO_WAIT) {
            cc__step_release(w, ch, guard);
            return EAGAIN;
        }
        if (unlikely(guard == GUARD_BIAS && deadline != WAIT_FOREVER)) {
            cc__bias_leave(&w->runq.bias); /* a wait with a timer needs the lock */
        } else {
            if (label != NULL)
                cc__event(chan_wait, label->channel, label->name, sends, cc__get(&ch->count), ch->capacity);
            rc = wait_held(w, ch, sends ? &ch->senders : &ch->receivers, value, deadline, guard);
            if (label != NULL) cc__event(chan_woken, label->channel, label->name, sends, rc);
            return unlikely(rc == ARM_REST) ? cc__chan_recv_rest(ch, value) : rc;
        }
        lock(w, ch);
        guard = GUARD_LOCK;
    }
}

static enum timed timed_as(uint64_t deadline, bool sends) {
    if (sends) return deadline == NO_WAIT ? TIMED_SEND_TRY : deadline == WAIT_FOREVER ? TIMED_SEND : TIMED_SEND_UNTIL;
    return deadline == NO_WAIT ? TIMED_RECV_TRY : deadline == WAIT_FOREVER ? TIMED_RECV : TIMED_RECV_UNTIL;
}

/* After the operation, which may have waited, for all but tries (NEXT-3). A call that has to wait does so at once: when
 * it waits the channel may be freed. */
static void may_preempt(uint64_t deadline) {
    struct worker *w = cc__worker();
    if (w != NULL && deadline != NO_WAIT) (void)cc__sched_may_preempt(w);
}

/* For a channel that is traced or simulated. It is never biased. */
static CC_NOINLINE CC_COLD int transfer_traced(CCChan *ch, void *value, uint64_t deadline, bool sends) {
    bool logged = cc__trace_on(TRACE_CHAN | TRACE_CHAN_VERBOSE | TRACE_TIMING);
    struct chan_label label;
    uint64_t start = 0;
    cc__sim_point();
    if (sends && ch->pool) cc__chan_reset(ch, value);
    if (logged) {
        label = cc__chan_label(ch, sends);
        start = cc__clock_now();
    }
    cc__chan_lock(ch);
    int rc = transfer_held(cc__worker(), ch, value, deadline, sends, GUARD_LOCK, logged ? &label : NULL);
    cc__timing_since(timed_as(deadline, sends), start);
    cc__sim_point();
    may_preempt(deadline);
    return rc;
}

/* Apart, and the next one: other calls need no frame while they wait. */
static CC_NOINLINE CC_COLD int transfer_timed(struct worker *w, CCChan *ch, void *value, uint64_t deadline,
                                              bool sends) {
    enum guard guard;
    int rc = timed_step(w, ch, value, sends, &guard);
    if (rc != ARM_WAIT) return unlikely(rc == ARM_CREATE) ? create_item(ch, value) : rc;
    return transfer_held(w, ch, value, deadline, sends, guard, NULL);
}

static CC_NOINLINE CC_COLD int transfer_and_yield(CCChan *ch, void *value, uint64_t deadline, bool sends) {
    struct worker *w = cc__worker();
    int rc = transfer_held(w, ch, value, deadline, sends, hold(w, ch), NULL);
    may_preempt(deadline);
    return rc;
}

int cc__chan_transfer(CCChan *ch, void *value, size_t size, uint64_t deadline, bool sends) {
    if (unlikely(ch == NULL || size != ch->size || (value == NULL && size > 0))) return EINVAL;
    if (unlikely(ch->traced)) return transfer_traced(ch, value, deadline, sends);
    if (unlikely(sends && ch->pool)) cc__chan_reset(ch, value);
    struct worker *w = cc__worker();
    if (unlikely(w != NULL && cc__get(&w->runq.preempt) != 0)) return transfer_and_yield(ch, value, deadline, sends);
    if (unlikely(is_timed(w, ch))) return transfer_timed(w, ch, value, deadline, sends);
    return transfer_held(w, ch, value, deadline, sends, hold(w, ch), NULL);
}

int cc__chan_transfer_locked(CCChan *ch, void *value, uint64_t deadline, bool sends) {
    struct worker *w = cc__worker();
    if (cc__get(&ch->bias) != 0) cc__chan_revoke_locked(ch);
    cc__chan_used_locked(w, ch);
    return transfer_held(w, ch, value, deadline, sends, GUARD_LOCK, NULL);
}

int cc__chan_try_slow(CCChan *ch, void *value, bool sends) {
    if (unlikely(sends && ch->pool)) cc__chan_reset(ch, value);
    struct worker *w = cc__worker();
    enum guard guard;
    int rc;
    if (unlikely(is_timed(w, ch))) {
        rc = timed_step(w, ch, value, sends, &guard);
    } else {
        guard = hold(w, ch);
        rc = step(w, ch, value, sends, guard, NULL);
    }
    if (rc == ARM_WAIT) cc__step_release(w, ch, guard);
    return unlikely(rc == ARM_CREATE) ? create_item(ch, value) : rc;
}
