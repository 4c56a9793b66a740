/* fast.c - the calls; and the ways through a channel that call nothing, so that no register is saved.
 *
 * They are for values of a pointer's size, and of an int's: each way is compiled twice, with the size a constant. With
 * nobody waiting and room in the ring a value goes in or out, under the channel's lock or biased inside the worker's
 * biased lock. Biased a value is also handed to a fiber that waits for it, or taken from one, if claiming that fiber is
 * a store. Whoever has to wait biased stays inside. All the rest is for transfer.c.
 *
 * FAST-1  What leaves for the other file has done nothing yet.
 * FAST-2  An arm that names its fiber belongs to a wait that only channels end. A plain one has one, and one claimant at a
 *          time; of a select's, `sole` says whether that is still so (CHANBIAS-4).
 */
#include "chan/bias.h"
#include "chan/step.h"

/* ---- nobody waits ---- */

/* True: done. */
CC_INLINE bool put_fast(CCChan *ch, const void *value, size_t size) {
    size_t count = cc__get(&ch->count);
    if (unlikely(count >= ch->capacity || !cc__list_empty(&ch->receivers) || cc__get(&ch->closed))) return false;
    size_t at = ch->head + count;
    if (at >= ch->capacity) at -= ch->capacity;
    memcpy(ch->ring + at * size, value, size);
    cc__set(&ch->count, count + 1);
    return true;
}

CC_INLINE bool get_fast(CCChan *ch, void *value, size_t size) {
    size_t count = cc__get(&ch->count);
    if (unlikely(count == 0 || !cc__list_empty(&ch->senders))) return false;
    size_t head = ch->head;
    memcpy(value, ch->ring + head * size, size);
    ch->head = head + 1 == ch->capacity ? 0 : head + 1;
    cc__set(&ch->count, count - 1);
    return true;
}

/* ---- biased ---- */

/* The owner's entry without the wait for others. */
CC_INLINE bool enter_fast(struct worker *w, CCChan *ch) {
    cc__set(&w->runq.bias.owner, CC__BIAS_INSIDE);
    cc__barrier_light();
    return likely(cc__get_acquire(&w->runq.bias.revoked) == 0 && cc__chan_biased_to(w, ch));
}

/* The first of a list that is not empty, off it and claimed, if that is a store; else NULL. */
CC_INLINE struct arm *claim_fast(struct link *list) {
    struct arm *arm = cc__chan_arm(cc__get(&list->next));
    struct fiber *f = arm->fiber;
    if (unlikely(f == NULL || (arm->chosen != NULL && !cc__get(&arm->waiter->sole)))) return NULL; /* FAST-2 */
    if (unlikely(cc__get_acquire(&cc__sched.contested) != 0)) return NULL;                         /* CLAIM-2 */
    if (unlikely(!cc__state_wake_sole(f, WAKE_OBJECT))) return NULL;
    cc__list_remove(&arm->link);
    arm->linked = false;
    return arm;
}

static CC_NOINLINE int tell(struct worker *w, uint64_t want) {
    cc__runq_tell_slow(w, want, 1);
    return 0;
}

/* As cc__step_finish. */
CC_INLINE int finish_fast(struct worker *w, struct arm *arm) {
    arm->error = 0;
    if (arm->chosen != NULL) *arm->chosen = arm->index;
    cc__local_wake_end(w, arm->fiber); /* leaves */
    cc__held_check_flush();
    cc__barrier_light(); /* as cc__runq_tell */
    uint64_t want = cc__get(&cc__sched.want);
    return likely(want == 0) ? 0 : tell(w, want);
}

CC_INLINE int send_biased(struct worker *w, CCChan *ch, const void *value, size_t size, uint64_t deadline, bool wait) {
    if (likely(enter_fast(w, ch))) {
        if (put_fast(ch, value, size)) {
            cc__bias_leave(&w->runq.bias);
            return 0;
        }
        if (!cc__list_empty(&ch->receivers)) { /* so the ring is empty (CHAN-1) */
            struct arm *receiver = claim_fast(&ch->receivers);
            if (likely(receiver != NULL)) {
                memcpy(receiver->value, value, size);
                return finish_fast(w, receiver);
            }
        } else if (wait && deadline == WAIT_FOREVER && likely(!cc__get(&ch->closed))) {
            return cc__chan_wait_inside(w, ch, &ch->senders, (void *)(uintptr_t)value);
        }
    }
    cc__bias_leave(&w->runq.bias);
    return cc__chan_send_any(ch, value, size, deadline, wait);
}

CC_INLINE int recv_biased(struct worker *w, CCChan *ch, void *value, size_t size, uint64_t deadline, bool wait) {
    if (likely(enter_fast(w, ch))) {
        if (get_fast(ch, value, size)) {
            cc__bias_leave(&w->runq.bias);
            return 0;
        }
        if (!cc__list_empty(&ch->senders)) { /* so the ring is full, or there is none (CHAN-1) */
            struct arm *sender = claim_fast(&ch->senders);
            if (likely(sender != NULL)) {
                if (ch->capacity == 0) {
                    memcpy(value, sender->value, size);
                } else { /* the oldest value is ours; the sender's goes behind the others, where that was */
                    unsigned char *slot = ch->ring + ch->head * size;
                    memcpy(value, slot, size);
                    memcpy(slot, sender->value, size);
                    if (++ch->head == ch->capacity) ch->head = 0;
                }
                return finish_fast(w, sender);
            }
        } else if (wait && deadline == WAIT_FOREVER && likely(!cc__get(&ch->closed))) {
            return cc__chan_wait_inside(w, ch, &ch->receivers, value);
        }
    }
    cc__bias_leave(&w->runq.bias);
    return cc__chan_recv_any(ch, value, size, deadline, wait);
}

/* ---- the calls ---- */

CC_INLINE int send_sized(CCChan *ch, const void *value, size_t size, uint64_t deadline, bool wait) {
    if (unlikely(ch == NULL || value == NULL || ch->fast_size != size))
        return cc__chan_send_any(ch, value, size, deadline, wait);
    struct worker *w = cc__worker();
    if (cc__chan_biased_to(w, ch)) return send_biased(w, ch, value, size, deadline, wait);
    if (unlikely(!cc__lock_try_now(&ch->lock))) return cc__chan_send_any(ch, value, size, deadline, wait);
    if (unlikely(cc__get(&ch->bias) != 0 || !put_fast(ch, value, size)))
        return cc__chan_send_from_locked(ch, value, deadline, wait);
    cc__lock_release(&ch->lock);
    return 0;
}

CC_INLINE int recv_sized(CCChan *ch, void *value, size_t size, uint64_t deadline, bool wait) {
    if (unlikely(ch == NULL || value == NULL || ch->fast_size != size))
        return cc__chan_recv_any(ch, value, size, deadline, wait);
    struct worker *w = cc__worker();
    if (cc__chan_biased_to(w, ch)) return recv_biased(w, ch, value, size, deadline, wait);
    if (unlikely(!cc__lock_try_now(&ch->lock))) return cc__chan_recv_any(ch, value, size, deadline, wait);
    if (unlikely(cc__get(&ch->bias) != 0 || !get_fast(ch, value, size)))
        return cc__chan_recv_from_locked(ch, value, deadline, wait);
    cc__lock_release(&ch->lock);
    return 0;
}

static CC_NOINLINE int send_other(CCChan *ch, const void *value, size_t size, uint64_t deadline, bool wait) {
    return size == sizeof(int) ? send_sized(ch, value, sizeof(int), deadline, wait)
                               : cc__chan_send_any(ch, value, size, deadline, wait);
}

static CC_NOINLINE int recv_other(CCChan *ch, void *value, size_t size, uint64_t deadline, bool wait) {
    return size == sizeof(int) ? recv_sized(ch, value, sizeof(int), deadline, wait)
                               : cc__chan_recv_any(ch, value, size, deadline, wait);
}

CC_INLINE int send(CCChan *ch, const void *value, size_t size, uint64_t deadline, bool wait) {
    return likely(size == sizeof(uint64_t)) ? send_sized(ch, value, sizeof(uint64_t), deadline, wait)
                                            : send_other(ch, value, size, deadline, wait);
}

CC_INLINE int recv(CCChan *ch, void *value, size_t size, uint64_t deadline, bool wait) {
    return likely(size == sizeof(uint64_t)) ? recv_sized(ch, value, sizeof(uint64_t), deadline, wait)
                                            : recv_other(ch, value, size, deadline, wait);
}

int cc_chan_send(CCChan *ch, const void *value, size_t size) {
    return send(ch, value, size, WAIT_FOREVER, true);
}

int cc_chan_send_try(CCChan *ch, const void *value, size_t size) {
    return send(ch, value, size, 0, false);
}

int cc_chan_send_until(CCChan *ch, const void *value, size_t size, CCDeadline deadline) {
    return send(ch, value, size, cc__wait_deadline(deadline), true);
}

int cc_chan_recv(CCChan *ch, void *value, size_t size) {
    return recv(ch, value, size, WAIT_FOREVER, true);
}

int cc_chan_recv_try(CCChan *ch, void *value, size_t size) {
    return recv(ch, value, size, 0, false);
}

int cc_chan_recv_until(CCChan *ch, void *value, size_t size, CCDeadline deadline) {
    return recv(ch, value, size, cc__wait_deadline(deadline), true);
}
