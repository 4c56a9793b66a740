/* scope.h - the tree of scopes: members, scopes below, cancellation.
 *
 * A fiber is a member of one scope, its innermost; its record holds that address, beside the bits of wait/cancel.h. A
 * nursery is a scope with children; a deadline block is a scope and nothing else.
 *
 * SCOPE-1  Locks are taken down the tree: a scope's lock, then those of the scopes below it.
 * SCOPE-2  Cancellation is final and inherited: a scope created below a cancelled scope, and a fiber that enters one,
 *          are cancelled with it. Both check under its lock.
 * SCOPE-3  Only the fiber itself changes the scope address in its record, under the lock of the scope it enters.
 * SCOPE-4  A scope lives as long as it has members, children, scopes below, a deadline that fires, or a fiber that is
 *          to begin grace periods.
 * SCOPE-5  A cancellation of a scope affects the fiber that has entered it (its owner). One from above affects the
 *          owner only if its shield was down when it entered, and if it affects it above. Both affect children.
 */
#ifndef CC_NURSERY_SCOPE_H
#define CC_NURSERY_SCOPE_H

#include "timer/timed_spawn.h"
#include "wait/arm.h"
#include "wait/cancel.h"

#include <ccc/cc_nursery.h>

struct value {
    struct value *next;
    const void *key;
    void *value;
};

enum { SCOPE_ALIGN = 64 };

struct scope {
    _Alignas(SCOPE_ALIGN) struct lock lock;
    _Atomic uint32_t cancelled;
    struct scope *parent;
    struct scope *jump;  /* skip pointer: any scope above is O(log depth) steps away; a root: itself */
    uint32_t depth;      /* a root: 0 */
    struct link beside;  /* among the parent's `inner` */
    struct link inner;   /* scopes right below */
    struct link members; /* of fiber_cold.member */
    struct link waiters; /* of arm.link: for the end of the children, of a firing deadline, or of `sent` fibers */
    struct scope *outer; /* the owner's scope before it entered */
    struct scope *seen;  /* of a root in a shield (cc__cancel_nursery): for values and deadlines alone */
    uint32_t children;   /* started, and not yet ended */
    uint32_t sent;       /* fibers that will begin grace periods here and below */
    bool nursery;
    bool armed;   /* `expiry` is armed, or fires */
    bool pierced; /* the grace period is over: shields do not hold here */
    bool ending;  /* nothing is armed any more */
    bool origin;  /* `reason` was given here, not above */
    bool grace_armed;
    bool grace_late; /* cancelled while no runtime ran: grace periods here or above may not have begun */
    bool expired;    /* the deadline has passed */
    bool own;        /* cancelled itself, not only from above */
    bool shielded;   /* the owner had a shield up, inside of the parent, when it entered */
    _Atomic uint32_t owner_cancelled; /* cancelled, and this affects its owner (SCOPE-5) */
    void *_Atomic owner;              /* the fiber or outsider that has entered it and not left yet; NULL: none */
    struct outsider *inside;          /* the OS thread whose innermost scope it is; NULL: none */
    struct outsider outsider;         /* for an OS thread whose outermost scope it is */
    uintptr_t entry;                  /* the owner's shields when it entered: CANCEL_SHIELD, CANCEL_OUTER */
    _Atomic uint64_t deadline;        /* its own; UINT64_MAX: none */
    /* Cache: the earliest deadline here and above, valid in that epoch (0: never). Written under the lock. */
    _Atomic uint64_t earliest, earliest_epoch;
    uint64_t grace_ns; /* UINT64_MAX: shields hold for ever */
    struct timed_spawn expiry, grace;
    struct value *_Atomic values;
    void *block; /* the allocation that contains it */
    CCError reason;
};

_Static_assert(_Alignof(struct scope) > CANCEL_BITS, "the bits fit below the address");

CC_INLINE struct scope *cc__scope_of(uintptr_t word) {
    return (struct scope *)(word & ~(uintptr_t)CANCEL_BITS);
}

/* Zeroed memory of that size, which begins with a scope; NULL: out of memory. */
void *cc__scope_alloc(size_t size);
void cc__scope_free(struct scope *s);

void cc__scope_init(struct scope *s, struct scope *parent, uint64_t grace_ns);
/* It must have no members and no scopes below. */
void cc__scope_destroy(struct scope *s);

/* By the running fiber or the calling OS thread; leaving returns to the scope it came from. */
void cc__scope_enter(struct scope *s);
void cc__scope_leave(struct scope *s);

/* Cancels the scope and all below; the first reason that affects the owner stays. origin: the reason was given here;
 * else it came from above, or from the cancellation of a caller that waits for the scope. Any thread. */
void cc__scope_cancel(struct scope *s, const CCError *reason, bool origin);
/* The same because the runtime shuts down, and refuses the fiber that would arm a timer for it. */
void cc__scope_cancel_for_shutdown(struct scope *s);
/* The same because its deadline has passed; checked again under the lock. */
void cc__scope_expire(struct scope *s, uint64_t now);
/* By the clock: the timer may not have fired yet. Any thread. */
void cc__scope_expire_if_due(struct scope *s);
/* For a cancelled scope: from now on shields do not hold, here and below. Any thread. */
void cc__scope_pierce(struct scope *s);
/* Begins the grace period of a scope that was created below a cancelled one. Does not wait. */
void cc__scope_begin_grace(struct scope *s);
/* Begins the grace periods of s and all above that were cancelled while no runtime ran. On a worker. */
void cc__scope_begin_late_grace(struct scope *s);
/* An error that names the running fiber. text may be NULL. */
CCError cc__scope_reason(int code, const char *text);

/* A deadline that has passed cancels at once. 0, ENOMEM; ETIMEDOUT: the former one has passed. Any thread. */
int cc__scope_set_deadline(struct scope *s, uint64_t deadline);
/* The earliest deadline of the scope and all above. */
uint64_t cc__scope_deadline(struct scope *s);
/* False: that deadline has not passed. Takes no lock; true if the cached value is not valid. */
bool cc__scope_may_be_late(struct scope *s);
/* A deadline was changed in a scope that others may be below already: cached values are invalid. */
void cc__scope_deadline_changed(void);
/* Disarms deadline and grace period. Under the lock. False: one fires, or is about to begin; `waiters` are woken after
 * that. */
bool cc__scope_disarm_locked(struct scope *s);
/* Waits until neither deadline nor grace period can fire any more. Never cancelled. */
void cc__scope_settle(struct scope *s);
/* For the record of an alarm fiber (below) that could not get a stack. True: it was one. */
bool cc__scope_fired_unstarted(struct fiber *f);
/* Whether fn is the function of a fiber that serves a deadline or a grace period: such a fiber is not a child. */
bool cc__scope_is_alarm(CCTaskFn fn);

/* The innermost scope of the running fiber or the calling OS thread, NULL: none. */
struct scope *cc__scope_current(void);

/* The scope in which values and deadlines are looked up next; NULL: none. */
CC_INLINE struct scope *cc__scope_around(const struct scope *s) {
    return s->parent != NULL ? s->parent : s->seen;
}

/* Whether `s` is `above` or below it. */
bool cc__scope_below(const struct scope *s, const struct scope *above);

/* Waits on `waiters`: 0, ETIMEDOUT, ECANCELED, ENOMEM. The lock is released only while the caller waits. */
int cc__scope_wait_locked(struct scope *s, uint64_t deadline);
/* Claims all `waiters`. */
void cc__scope_wake_locked(struct scope *s, struct wakes *wakes);

#endif
