/* cancel.h - how a cancellation reaches a fiber: bits in the low bits of its scope's address, and a claim.
 *
 * Cancellation is level-triggered: a bit stays set, and meanwhile every wait of the fiber ends with WAKE_CANCEL. A
 * fiber publishes PARKED, then looks at its bits; a canceller publishes a bit, then looks at the word (README.md).
 *
 * CANCEL-1  By BARRIER-1 one of them sees the other: no wait outlives a cancellation. If both do, the claim decides, as
 *           between any two claimants.
 * CANCEL-2  A fiber does not change its shield while it is parked: a canceller that read PARKED, then the
 *           shield, and then wins the claim with that ticket has read the shield of that wait.
 * CANCEL-3  The object's waker may find the waiter of a cancelled wait until the waiter has unlinked itself; the waker
 *           then loses the claim.
 * CANCEL-4  A thread that sets a bit has set `cancels` first, after the start of the runtime: a scope may be older than
 *           the runtime.
 * CANCEL-5  An OS thread publishes its wait, then looks at its bits; a canceller sets the bit, then looks for a wait:
 *           both looks are under the lock of blocked.c.
 *
 * Until the first cancellation, parking costs one load of a word that does not change.
 */
#ifndef CC_WAIT_CANCEL_H
#define CC_WAIT_CANCEL_H

#include "wait/wait.h"

#include <ccc/cc_task.h>

/* In the low bits of fiber.scope. */
enum {
    CANCEL_SCOPE = 1,    /* the scope was cancelled, and no shield around it hides that */
    CANCEL_TASK = 2,     /* this task was cancelled */
    CANCEL_SHIELD = 4,   /* hides both; set and cleared by the fiber, also cleared when a grace period ends */
    CANCEL_REPORTED = 8, /* the fiber has reported its failure to its nursery */
    CANCEL_HELD = 16,    /* as CANCEL_SHIELD, for a wait that the runtime must complete; no grace period clears it */
    CANCEL_OUTER = 32,   /* there is a shield around the innermost scope: CANCEL_TASK is ignored */
    CANCEL_BITS = 63,
};

_Static_assert((CANCEL_SCOPE | CANCEL_TASK) == FIBER_CANCELLED, "the scheduler looks at both");
_Static_assert(CANCEL_BITS == FIBER_SCOPE_BITS, "the address is what is left");

CC_INLINE bool cc__cancel_holds(uintptr_t scope) {
    if ((scope & (CANCEL_SHIELD | CANCEL_HELD)) != 0) return false;
    return (scope & CANCEL_SCOPE) != 0 || (scope & (CANCEL_TASK | CANCEL_OUTER)) == CANCEL_TASK;
}

/* Whether a shield hides cancellations from above: of the caller, or of one that entered its innermost scope. */
CC_INLINE bool cc__cancel_hides(uintptr_t scope) {
    return (scope & (CANCEL_SHIELD | CANCEL_OUTER)) != 0;
}

/* After the switch, when the fiber is PARKED: whether to check it for cancellation. */
CC_INLINE bool cc__cancel_looks(void) {
    cc__barrier_light(); /* CANCEL-1 */
    return unlikely(cc__get(&cc__sched.cancels) != 0);
}

/* Checks. True: the fiber is cancelled, its wait was claimed here, and the caller makes it ready once it has released
 * its locks. */
CC_INLINE bool cc__cancel_parked(struct fiber *f, uint64_t ticket) {
    return cc__cancel_looks() && cc__upcall_cancelled(f, ticket);
}

/* A cancellation is, in this order: begin, mark each, barrier, claim each, end. No lock that a parking fiber holds may
 * be held across the barrier. */
void cc__cancel_begin(void);
void cc__cancel_barrier(void);
void cc__cancel_end(struct wakes *wakes);

CC_INLINE void cc__cancel_mark(struct fiber *f, uintptr_t bit) {
    cc__or(&f->scope, bit);
}

/* The running fiber enters a scope that is already cancelled and sets its own bit: no claim is needed. */
CC_INLINE void cc__cancel_adopt(void) {
    if (unlikely((cc__get(&cc__sched.cancels) & CANCELS_MADE) == 0)) cc__cancel_begin(); /* CANCEL-4 */
}

/* Claims the fiber's wait, if it waits and can be cancelled. The caller keeps the fiber alive. */
void cc__cancel_claim(struct fiber *f, struct wakes *wakes);

/* task/: joins a task that the caller owns, as a nursery joins its children: a cancelled caller cancels the task and
 * still waits for its end. Consumes the handle. As cc_task_join; ECANCELED: the caller was cancelled, the task has
 * ended. */
int cc__cancel_join_owned(CCTask *task, void **result);

/* nursery/: creates a nursery for a call that is one wait for its caller, and has children only to do its work. In a
 * shield it is a root, because children are not shielded. So the caller has to wait for it: that passes on a
 * cancellation that the shield does not hide. Values and deadlines of the scopes around the caller are seen as ever. 0,
 * or the errno value of cc_nursery_create_ex, which is not set. */
struct CCNursery;
struct CCNurseryConfig;
int cc__cancel_nursery(const struct CCNurseryConfig *config, struct CCNursery **n);

/* An OS thread that has entered a scope. It has the same word as a fiber. `blocked` is its current wait,
 * guarded by the lock of the list of blocked threads (blocked.h). */
struct outsider {
    _Atomic uintptr_t scope;
    struct blocked_thread *blocked; /* NULL: not waiting */
};

/* That of the calling OS thread; NULL: it is in no scope. Not for fibers, which change threads. */
struct outsider *cc__outsider(void);
void cc__outsider_become(struct outsider *outsider);

/* The word of the running fiber or the calling OS thread; NULL: a thread in no scope. */
CC_INLINE _Atomic uintptr_t *cc__cancel_word(void) {
    struct fiber *self = cc__sched_current(cc__worker());
    if (likely(self != NULL)) return &self->scope;
    struct outsider *outsider = cc__outsider();
    return outsider != NULL ? &outsider->scope : NULL;
}

/* Raises the caller's own shield. True: it was not up before, and the caller has to lower it again. */
CC_INLINE bool cc__cancel_shield(_Atomic uintptr_t *own) {
    return (cc__or(own, CANCEL_SHIELD) & CANCEL_SHIELD) == 0;
}
CC_INLINE void cc__cancel_unshield(_Atomic uintptr_t *own) {
    cc__and(own, ~(uintptr_t)CANCEL_SHIELD);
}
/* A grace period is over: clears the shield, and the one around the innermost scope. */
CC_INLINE void cc__cancel_pierce(_Atomic uintptr_t *word) {
    cc__and(word, ~(uintptr_t)(CANCEL_SHIELD | CANCEL_OUTER));
}

/* For a wait of the caller that the runtime must complete: neither a cancellation nor a grace period ends it. Returns
 * as above. */
CC_INLINE bool cc__cancel_hold(void) {
    _Atomic uintptr_t *own = cc__cancel_word();
    return own != NULL && (cc__or(own, CANCEL_HELD) & CANCEL_HELD) == 0;
}
CC_INLINE void cc__cancel_unhold(bool held) {
    if (held) cc__and(cc__cancel_word(), ~(uintptr_t)CANCEL_HELD);
}

#endif
