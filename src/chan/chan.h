/* chan.h - the structure of a channel, and what the files of this room share.
 *
 * One lock, a plain ring, two lists of waiting arms. Under the lock:
 *
 * CHAN-1  A receiver waits only while the ring is empty and no sender waits; a sender only while the ring is
 *         full (or there is none). So at most one of the lists is non-empty, and waiters are served in FIFO order.
 * CHAN-2  A value is in one place: with its sender, in the ring, or with its receiver. A send that fails leaves the
 *         value with the sender.
 * CHAN-3  A closed channel stays closed, and no arm is linked to its lists.
 * CHAN-4  Wakes are collected under the lock and flushed after it; for local ones see WAIT-4.
 * CHAN-5  While `bias` names a worker, that worker's biased lock guards the channel: the rules above apply to it
 *         instead of the lock (bias.c).
 * CHAN-6  The memory is freed with the last reference, or, after that, when the last arm whose claim was lost is
 *         unlinked, and the last receiver that was left the place of a pool's item (ARM_REST) has seen the end.
 */
#ifndef CC_CHAN_CHAN_H
#define CC_CHAN_CHAN_H

#include "chan/policy.h"
#include "trace/timing.h"
#include "trace/trace.h"
#include "wait/arm.h"
#include "wait/local_wake.h"

#include <ccc/cc_channel.h>

#include <string.h>

struct CCChan {
    /* The first line is all that a rendezvous touches. */
    struct lock lock;
    _Atomic bool closed;   /* this, `count` and whether a list is empty are also read without the lock */
    uint8_t fast_size;     /* the size of an element if the fast paths are open (fast.c), else 0 */
    uint8_t mode;          /* CCChanMode */
    bool biased_selects;   /* a select may wait here that holds the biased lock until it has parked (CHANBIAS-4) */
    _Atomic uint64_t bias; /* the tag of the worker whose biased lock guards it; 0: its own lock does */
    struct link receivers; /* of arm.link */
    struct link senders;
    size_t capacity;
    _Atomic size_t count;
    size_t size; /* of an element */
    size_t head; /* index of the oldest */
    unsigned char *ring;
    bool pool;                 /* has callbacks */
    bool ordered;              /* carries tasks */
    bool may_bias;             /* may be biased */
    bool traced;               /* channels were logged or simulated when it was created */
    uint8_t bias_by;           /* what set the bias: enum bias_by */
    uint32_t uses;             /* in a row by the same worker, under the lock */
    uint32_t threshold;        /* uses that set a bias */
    uint32_t select_threshold; /* the same for a select, whose channels become biased together */
    uint64_t last_user;        /* the tag of the worker that used it last */
    /* Rarely touched. */
    int error; /* of operations on a closed channel */
    _Atomic uint32_t refs;
    uint32_t lost_claims;   /* arms off the list whose owners have yet to lock the channel */
    bool abandoned;         /* no reference left */
    _Atomic size_t created; /* pool: items that exist; written under the lock, also read without it */
    uint64_t dropped;
    CCChanConfig config; /* callbacks and context */
    char name[CC_CHAN_NAME_MAX];
};

_Static_assert(offsetof(struct CCChan, size) == CC_LINE, "a rendezvous touches one line");
_Static_assert(offsetof(struct CCChan, lock) == 0, "a wait that is noted by its channel finds the lock there");

CC_INLINE struct arm *cc__chan_arm(struct link *link) {
    return container_of(link, struct arm, link);
}

CC_INLINE void *cc__chan_slot(CCChan *ch, size_t index) {
    return ch->ring + index * ch->size;
}

/* Whether a send may call a function of the program. */
CC_INLINE bool cc__chan_calls(const CCChan *ch) {
    return ch->config.on_drop != NULL;
}

/* Drops the oldest value. The ring is not empty. */
CC_INLINE void cc__chan_drop_locked(CCChan *ch) {
    if (++ch->head == ch->capacity) ch->head = 0;
    cc__set(&ch->count, cc__get(&ch->count) - 1);
}

/* Unlinks and claims, with `error`, the first arm of a list whose waiter can still be claimed; NULL: none. */
struct arm *cc__chan_claim_locked(CCChan *ch, struct link *list, struct wakes *wakes, int error);

/* Revokes the bias for a thread other than the biased worker. Under the lock; afterwards the lock alone guards the
 * channel. */
void cc__chan_revoke_locked(CCChan *ch);

/* Takes the lock and revokes any bias. */
CC_INLINE void cc__chan_lock(CCChan *ch) {
    cc__lock_take(&ch->lock);
    if (unlikely(cc__get(&ch->bias) != 0)) cc__chan_revoke_locked(ch);
}

/* Verbose tracing: logs the waiters that the claims of one step will wake. */
CC_COLD void cc__chan_trace_wakes(struct wakes *wakes);

CC_INLINE void cc__chan_wakes_flush(struct wakes *wakes) {
    if (!cc__wakes_any(wakes)) return;
    if (cc__trace_on(TRACE_CHAN_VERBOSE)) cc__chan_trace_wakes(wakes);
    cc__wakes_flush(wakes);
}

/* What guards the channel during an operation: its lock or, if it is biased, its worker's biased lock. */
enum guard { GUARD_LOCK, GUARD_BIAS };

/* As a deadline: try, do not wait. */
#define NO_WAIT 0

/* The complete operation, all cases; the arguments come from the user. */
int cc__chan_transfer(CCChan *ch, void *value, size_t size, uint64_t deadline, bool sends);
/* The same with checked arguments, for a caller that holds the lock; the channel may still be biased. */
int cc__chan_transfer_locked(CCChan *ch, void *value, uint64_t deadline, bool sends);
/* Waits on that list, after a step that returned ARM_WAIT. The caller is a fiber and holds the biased lock, which is
 * released. */
int cc__chan_wait_biased(struct worker *w, CCChan *ch, struct link *list, void *value);
/* The complete operation if it need not wait, else ARM_WAIT. The arguments are checked. */
int cc__chan_try(CCChan *ch, void *value, bool sends);
int cc__chan_try_slow(CCChan *ch, void *value, bool sends);
/* Completes a receive from a pool whose wait ended with ARM_REST. 0 or an error. */
int cc__chan_recv_rest(CCChan *ch, void *value);

/* True for a pool with fewer items than its capacity. */
CC_INLINE bool cc__chan_may_create(CCChan *ch) {
    return ch->config.on_create != NULL && cc__get(&ch->created) < ch->capacity;
}

/* Resets an item before it returns to its pool. */
CC_INLINE void cc__chan_reset(CCChan *ch, const void *value) {
    if (unlikely(ch->config.on_reset != NULL)) ch->config.on_reset((void *)(uintptr_t)value, ch->config.context);
}

/* Unlinks an arm whose wait was ended by something else. Under either guard. */
CC_INLINE void cc__chan_unlink_held(CCChan *ch, struct arm *arm) {
    if (likely(arm->linked))
        cc__list_remove(&arm->link);
    else if (arm->claim_lost)
        ch->lost_claims--;
    arm->linked = arm->claim_lost = false;
}
/* The same under the lock, which it releases. Frees the channel if this was its last user. */
void cc__chan_unlink_locked(CCChan *ch, struct arm *arm);

/* Drop-old with on_drop: passes the oldest value to the callback and enqueues *value. Consumes the lock. 0, ENOMEM. */
int cc__chan_replace_locked(CCChan *ch, const void *value);

/* Frees it; no other user is left. */
void cc__chan_destroy(CCChan *ch);

/* Closes it, under the lock. */
void cc__chan_close_locked(CCChan *ch, int error, struct wakes *wakes);

/* ---- what is traced (trace.c) ---- */

/* What events say about a channel, copied because the channel may be freed by then (TRACE-1). */
struct chan_label {
    const void *channel;
    char name[CC_CHAN_NAME_MAX];
    bool sends;
};
CC_COLD struct chan_label cc__chan_label(const CCChan *ch, bool sends);

#endif
