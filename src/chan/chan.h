/* chan.h - what a channel is, and the steps that every operation is made of.
 *
 * One lock, a plain ring, two lists of waiting arms. Under the lock:
 *
 * CHAN-1  A receiver waits only while the ring is empty and no sender waits; a sender only while the ring is
 *         full (or there is none). So at most one of the lists is non-empty, and order is kept: whoever is
 *         served first came first.
 * CHAN-2  A value is in one place: with its sender, in the ring, or with its receiver. A sender that has left
 *         with an error has its value still.
 * CHAN-3  Closed is for ever. After it nobody is put on a list.
 * CHAN-4  Wakes are collected under the lock and flushed after it.
 * CHAN-5  While `bias` names a worker, that worker's biased lock takes the place of the channel's: what is said of
 *         the lock above holds for it (bias.c).
 * CHAN-6  The memory goes with the last reference, or when the last arm whose claim was lost is unlinked after that.
 */
#ifndef CC_CHAN_CHAN_H
#define CC_CHAN_CHAN_H

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
    bool biased_selects;   /* a select may wait here that parked inside (CHANBIAS-4) */
    _Atomic uint64_t bias; /* the tag of the worker that has it to itself; 0: the lock decides */
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
    bool traced;               /* its like was traced, or simulated, when it was created */
    uint8_t bias_by;           /* what made the bias: enum bias_by */
    uint32_t uses;             /* in a row by the same worker, under the lock */
    uint32_t threshold;        /* uses that make a bias */
    uint32_t select_threshold; /* the same for a select, whose channels get theirs together */
    uint64_t last_user;        /* the tag of the last user */
    /* Rarely touched. */
    int error; /* what a closed channel says */
    _Atomic uint32_t refs;
    uint32_t lost_claims; /* arms off the list whose owners have yet to unlink */
    bool abandoned;       /* no reference left */
    size_t created;       /* pool: items that exist */
    uint64_t dropped;
    CCChanConfig config; /* callbacks and context */
    char name[CC_CHAN_NAME_MAX];
};

_Static_assert(offsetof(struct CCChan, size) == CC_LINE, "a rendezvous touches one line");
_Static_assert(offsetof(struct CCChan, lock) == 0, "a wait that is noted by its channel finds the lock there");

CC_INLINE struct arm *cc__chan_arm(struct link *link) {
    return container_of(link, struct arm, link);
}

/* Pointer-sized values are a load and a store. */
CC_INLINE void cc__chan_copy(const CCChan *ch, void *to, const void *from) {
    if (likely(ch->size == sizeof(uint64_t)))
        memcpy(to, from, sizeof(uint64_t));
    else if (ch->size != 0)
        memcpy(to, from, ch->size);
}

CC_INLINE void *cc__chan_slot(CCChan *ch, size_t index) {
    return ch->ring + index * ch->size;
}

/* The ring is not full. */
CC_INLINE void cc__chan_put_locked(CCChan *ch, const void *value) {
    size_t count = cc__get(&ch->count);
    size_t at = ch->head + count;
    if (at >= ch->capacity) at -= ch->capacity;
    cc__chan_copy(ch, cc__chan_slot(ch, at), value);
    cc__set(&ch->count, count + 1);
}

/* The ring is not empty: its oldest value is forgotten. */
CC_INLINE void cc__chan_drop_locked(CCChan *ch) {
    if (++ch->head == ch->capacity) ch->head = 0;
    cc__set(&ch->count, cc__get(&ch->count) - 1);
}

/* The ring is not empty. */
CC_INLINE void cc__chan_get_locked(CCChan *ch, void *value) {
    cc__chan_copy(ch, value, cc__chan_slot(ch, ch->head));
    cc__chan_drop_locked(ch);
}

/* The first arm of a list whose waiter can still be claimed, claimed; NULL: none. The others have lost their claim. */
CC_INLINE struct arm *cc__chan_claim_locked(CCChan *ch, struct link *list, struct wakes *wakes, int error) {
    while (!cc__list_empty(list)) {
        struct arm *arm = cc__chan_arm(cc__list_pop_front(list));
        if (likely(cc__arm_claim_locked(wakes, arm, error))) return arm;
        ch->lost_claims++;
    }
    return NULL;
}

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

/* One step under the lock: does it, or says ARM_WAIT, or ARM_SETTLE: a pool's item is to be created. */
int cc__chan_send_locked(CCChan *ch, const void *value, struct wakes *wakes);
int cc__chan_recv_locked(CCChan *ch, void *value, struct wakes *wakes);

/* The whole operation, in every case; the arguments are the user's. */
int cc__chan_send_any(CCChan *ch, const void *value, size_t size, uint64_t deadline, bool wait);
int cc__chan_recv_any(CCChan *ch, void *value, size_t size, uint64_t deadline, bool wait);
/* The same, of good arguments, by one who has the lock; the bias, if any, is still there. */
int cc__chan_send_from_locked(CCChan *ch, const void *value, uint64_t deadline, bool wait);
int cc__chan_recv_from_locked(CCChan *ch, void *value, uint64_t deadline, bool wait);
/* It cannot be done now, and the caller, a fiber, is inside, biased: waits on that list. Leaves. */
int cc__chan_wait_inside(struct worker *w, CCChan *ch, struct link *list, void *value);

/* The whole operation, if it can be done without waiting; else ARM_WAIT. The arguments are good. */
int cc__chan_send_now(CCChan *ch, const void *value);
int cc__chan_recv_now(CCChan *ch, void *value);

/* A pool's item is cleaned before it goes back. */
CC_INLINE void cc__chan_reset(CCChan *ch, const void *value) {
    if (unlikely(ch->config.on_reset != NULL)) ch->config.on_reset((void *)(uintptr_t)value, ch->config.context);
}

/* The wait of an arm is over, ended by something else: off the list. Consumes the lock, and the channel if it
 * was the last thing that held it. */
void cc__chan_unlink_locked(CCChan *ch, struct arm *arm);

/* Frees it; nobody uses it any more. */
void cc__chan_destroy(CCChan *ch);

/* Close under the lock. */
void cc__chan_close_locked(CCChan *ch, int error, struct wakes *wakes);

/* Pools: a receive that found nothing may create; outside the lock. 0 or the callback's error. */
int cc__chan_create_item(CCChan *ch, void *value);

/* ---- what is traced (trace.c) ---- */

/* What events say about a channel, copied: the channel may be gone by then (TRACE-1). */
struct chan_label {
    const void *channel;
    char name[CC_CHAN_NAME_MAX];
    bool sends;
};
CC_COLD struct chan_label cc__chan_label(const CCChan *ch, bool sends);

CC_COLD void cc__chan_trace_created(const CCChan *ch);
/* A reference was given up; or, gone == true, the channel goes. */
CC_COLD void cc__chan_trace_free(CCChan *ch, bool gone);
/* The time, for cc__chan_trace_time. */
CC_COLD uint64_t cc__chan_trace_close(CCChan *ch, int error);
CC_COLD void cc__chan_trace_time(enum timed kind, uint64_t start);
/* A call is about to wait, under the lock, or has waited. */
CC_COLD void cc__chan_trace_park(const struct chan_label *label, CCChan *ch);
CC_COLD void cc__chan_trace_woken(const struct chan_label *label, int rc);
CC_COLD void cc__chan_trace_wake(const struct chan_label *label, CCFiberId whom);

#endif
