/* chan.h - the structure of a channel, and what the files of this room share.
 *
 * One lock, a plain ring, two lists of waiting arms. Under the lock:
 *
 * CHAN-1  A receiver waits only while the ring is empty and no sender waits; a sender only while the ring is
 *         full (or there is none). So at most one of the lists is non-empty, and order is kept: whoever is
 *         served first came first.
 * CHAN-2  A value is in one place: with its sender, in the ring, or with its receiver. A sender whose
 *         operation fails still has its value.
 * CHAN-3  A closed channel stays closed, and nobody is put on its lists.
 * CHAN-4  Wakes are collected under the lock and flushed after it; for local ones see WAIT-4.
 * CHAN-5  While `bias` names a worker, that worker's biased lock guards the channel: what is said of
 *         the lock above holds for it (bias.c).
 * CHAN-6  The memory goes with the last reference, or when the last arm whose claim was lost is unlinked after that.
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
    _Atomic bool closed;   /* this, `count` and whether a list is empty are looked at without the lock too */
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
    uint8_t bias_by;           /* what made the bias: enum bias_by */
    uint32_t uses;             /* in a row by the same worker, under the lock */
    uint32_t threshold;        /* uses that make a bias */
    uint32_t select_threshold; /* the same for a select, whose channels get theirs together */
    uint64_t last_user;        /* the tag of the worker that used it last */
    /* Rarely touched. */
    int error; /* of operations on a closed channel */
    _Atomic uint32_t refs;
    uint32_t lost_claims;   /* arms off the list whose owners have yet to unlink */
    bool abandoned;         /* no reference left */
    _Atomic size_t created; /* pool: items that exist; written under the lock, looked at without it too */
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

/* The ring is not empty: its oldest value is forgotten. */
CC_INLINE void cc__chan_drop_locked(CCChan *ch) {
    if (++ch->head == ch->capacity) ch->head = 0;
    cc__set(&ch->count, cc__get(&ch->count) - 1);
}

/* The first arm of a list whose waiter can still be claimed, off the list and claimed with `error`; NULL: none. */
struct arm *cc__chan_claim_locked(CCChan *ch, struct link *list, struct wakes *wakes, int error);

/* Another than the worker that has the bias wants it. Under the lock; then the lock is all that counts. */
void cc__chan_revoke_locked(CCChan *ch);

/* The lock, and no bias. */
CC_INLINE void cc__chan_lock(CCChan *ch) {
    cc__lock_take(&ch->lock);
    if (unlikely(cc__get(&ch->bias) != 0)) cc__chan_revoke_locked(ch);
}

/* Verbose tracing: says whom the claims of one step will wake. */
CC_COLD void cc__chan_trace_wakes(struct wakes *wakes);

CC_INLINE void cc__chan_wakes_flush(struct wakes *wakes) {
    if (!cc__wakes_any(wakes)) return;
    if (cc__trace_on(TRACE_CHAN_VERBOSE)) cc__chan_trace_wakes(wakes);
    cc__wakes_flush(wakes);
}

/* What guards the channel while one uses it: its lock or, if it is biased, its worker's biased lock. */
enum guard { GUARD_LOCK, GUARD_BIAS };

/* A deadline: try, and do not wait. */
#define NO_WAIT 0

/* The whole operation, in every case; the arguments are the user's. */
int cc__chan_transfer(CCChan *ch, void *value, size_t size, uint64_t deadline, bool sends);
/* The same, of good arguments, by one who has the lock; the channel may still be biased. */
int cc__chan_transfer_locked(CCChan *ch, void *value, uint64_t deadline, bool sends);
/* The operation cannot be done now, and the caller, a fiber, holds the biased lock: waits on that list. Leaves the
 * lock. */
int cc__chan_wait_biased(struct worker *w, CCChan *ch, struct link *list, void *value);
/* The whole operation, if it can be done without waiting; else ARM_WAIT. The arguments are good. */
int cc__chan_try(CCChan *ch, void *value, bool sends);
int cc__chan_try_slow(CCChan *ch, void *value, bool sends);

/* A pool that has fewer items than it may have. */
CC_INLINE bool cc__chan_may_create(CCChan *ch) {
    return ch->config.on_create != NULL && cc__get(&ch->created) < ch->capacity;
}

/* A pool's item is cleaned before it goes back. */
CC_INLINE void cc__chan_reset(CCChan *ch, const void *value) {
    if (unlikely(ch->config.on_reset != NULL)) ch->config.on_reset((void *)(uintptr_t)value, ch->config.context);
}

/* The wait of an arm is over, ended by something else: off the list, under either guard. */
CC_INLINE void cc__chan_unlink_held(CCChan *ch, struct arm *arm) {
    if (likely(arm->linked))
        cc__list_remove(&arm->link);
    else if (arm->claim_lost)
        ch->lost_claims--;
    arm->linked = arm->claim_lost = false;
}
/* The same under the lock, which it releases. The channel goes with it if that was the last thing that held it. */
void cc__chan_unlink_locked(CCChan *ch, struct arm *arm);

/* Drop-old with on_drop: the oldest value goes, with a call, and that one comes in. Consumes the lock. 0, ENOMEM. */
int cc__chan_replace_locked(CCChan *ch, const void *value);

/* Frees it; nobody uses it any more. */
void cc__chan_destroy(CCChan *ch);

/* Close under the lock. */
void cc__chan_close_locked(CCChan *ch, int error, struct wakes *wakes);

/* ---- what is traced (trace.c) ---- */

/* What events say about a channel, copied: the channel may be gone by then (TRACE-1). */
struct chan_label {
    const void *channel;
    char name[CC_CHAN_NAME_MAX];
    bool sends;
};
CC_COLD struct chan_label cc__chan_label(const CCChan *ch, bool sends);

#endif
