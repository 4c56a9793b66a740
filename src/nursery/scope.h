/* scope.h - the tree of scopes: who is in one, who is below it, and whether it was cancelled.
 *
 * A fiber is a member of one scope, its innermost; the address of that is in its record, beside the bits of
 * wait/cancel.h. A nursery is a scope with children; a deadline block is a scope and nothing else.
 *
 * SCOPE-1  Locks go down the tree: a scope's lock, then those of the scopes below it.
 * SCOPE-2  Cancelled is for ever, and holds below: a scope that is made, and a fiber that enters, under the lock of a
 *          cancelled scope, is cancelled with it.
 * SCOPE-3  A fiber's address of its scope changes under that scope's lock, by the fiber itself.
 * SCOPE-4  A scope is there as long as it has members, children, scopes below, a deadline that fires, or a fiber on its
 *          way to begin grace periods.
 * SCOPE-5  The fiber that has entered a scope (its owner) feels what was cancelled in it; what was cancelled above,
 *          only if its shield was down when it entered, and if it feels it above. Children feel both.
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
    struct scope *jump;  /* one so far above that any one above is few steps away (logarithmic); a root: itself */
    uint32_t depth;      /* a root: 0 */
    struct link beside;  /* among the parent's `inner` */
    struct link inner;   /* scopes right below */
    struct link members; /* of fiber_cold.member */
    struct link waiters; /* of arm.link: for the end of the children, or of a deadline that fires */
    struct scope *outer; /* where the fiber that entered it came from */
    uint32_t children;   /* started, and not yet ended */
    uint32_t sent;       /* fibers that will begin grace periods here and below */
    bool nursery;
    bool armed;   /* `expiry` counts down, or fires */
    bool pierced; /* the grace period is over: shields do not hold here */
    bool ending;  /* nothing is armed any more */
    bool origin;  /* `reason` was given here, not above */
    bool grace_armed;
    bool grace_late;           /* cancelled while no runtime ran: grace periods here or above have perhaps not begun */
    bool expired;              /* the deadline has come */
    bool own;                  /* somebody has cancelled this one, not only one above */
    _Atomic uint32_t felt;     /* cancelled, and its owner feels it (SCOPE-5) */
    void *_Atomic owner;       /* the fiber or outsider that has entered it and not left yet; NULL: none */
    struct outsider *inside;   /* the OS thread whose innermost scope it is; NULL: none */
    struct outsider outsider;  /* for an OS thread whose outermost scope it is */
    uintptr_t entry;           /* the owner's shields when it entered: CANCEL_SHIELD, CANCEL_OUTER */
    _Atomic uint64_t deadline; /* its own; UINT64_MAX: none */
    /* The earliest here and above, as known in that epoch; 0: not yet. Written under the lock. */
    _Atomic uint64_t earliest, earliest_epoch;
    uint64_t grace_ns; /* UINT64_MAX: shields hold for ever */
    struct timed_spawn expiry, grace;
    struct value *_Atomic values;
    void *block; /* where its memory begins */
    CCError reason;
};

_Static_assert(_Alignof(struct scope) > CANCEL_BITS, "the bits fit below the address");

CC_INLINE struct scope *cc__scope_of(uintptr_t word) {
    return (struct scope *)(word & ~(uintptr_t)CANCEL_BITS);
}

/* Zeroed memory of that size, which begins with a scope; NULL: none. */
void *cc__scope_alloc(size_t size);
void cc__scope_free(struct scope *s);

void cc__scope_init(struct scope *s, struct scope *parent, uint64_t grace_ns);
/* Nobody is in it or below it any more. */
void cc__scope_destroy(struct scope *s);

/* The running fiber, or the calling OS thread, enters, and leaves for where it came from. */
void cc__scope_enter(struct scope *s);
void cc__scope_leave(struct scope *s);

/* Cancels it and all below; the first reason stays. origin: the reason is its own; else it came from above, or with the
 * cancellation of who waits for it. Any thread. */
void cc__scope_cancel(struct scope *s, const CCError *reason, bool origin);
/* The same because the runtime shuts down, and refuses the fiber that would arm a timer for it. */
void cc__scope_cancel_for_shutdown(struct scope *s);
/* The same because its deadline has come, if that is still so. */
void cc__scope_expire(struct scope *s, uint64_t now);
/* By the clock: the timer may not have had its turn. Any thread. */
void cc__scope_expire_if_due(struct scope *s);
/* It is cancelled, and from now on shields do not hold, here and below. Any thread. */
void cc__scope_pierce(struct scope *s);
/* It was made below a cancelled scope and has a grace period of its own, which begins now. Does not wait. */
void cc__scope_begin_grace(struct scope *s);
/* A fiber is in it whose runtime did not run when it was cancelled: grace periods here and above begin now. */
void cc__scope_begin_late_grace(struct scope *s);
/* A reason of the caller. */
CCError cc__scope_reason(int code, const char *text);

/* Deadline; one that has passed cancels at once. 0, ENOMEM; ETIMEDOUT: the former one has passed. Any thread. */
int cc__scope_set_deadline(struct scope *s, uint64_t deadline);
/* The earliest deadline of the scope and all above. */
uint64_t cc__scope_deadline(struct scope *s);
/* False: it has not come. Takes no lock: true where nobody has asked above yet. */
bool cc__scope_may_be_late(struct scope *s);
/* A deadline was changed in a scope that others may be below already: what they have remembered is void. */
void cc__scope_deadline_changed(void);
/* Calls deadline and grace period off. Under the lock; false: one fires, or is about to begin, and `waiters` will hear
 * when it has. */
bool cc__scope_disarm_locked(struct scope *s);
/* Waits until neither deadline nor grace period can fire any more. Never cancelled. */
void cc__scope_settle(struct scope *s);
/* For the record of such a fiber that could not be given a stack. True: it was one. */
bool cc__scope_fired_unstarted(struct fiber *f);
/* True for the function of a fiber that a deadline starts, or a grace period: it is nobody's child. */
bool cc__scope_is_alarm(CCTaskFn fn);

/* The innermost scope of the running fiber or the calling OS thread, NULL: none. */
struct scope *cc__scope_current(void);

/* Whether `s` is `above` or below it. */
bool cc__scope_below(const struct scope *s, const struct scope *above);

/* Waits on `waiters`: 0, ETIMEDOUT, ECANCELED, ENOMEM. Under the lock, which is free only while the caller waits. */
int cc__scope_wait_locked(struct scope *s, uint64_t deadline);
/* Claims everybody on `waiters`. */
void cc__scope_wake_locked(struct scope *s, struct wakes *wakes);

#endif
