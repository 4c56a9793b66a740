/* cancel.h - how a cancellation reaches a fiber: bits beside its scope's address, and the claim.
 *
 * Cancelling has levels, not edges: a bit stays, and every wait of the fiber ends with WAKE_CANCEL while it does. A
 * fiber publishes PARKED, then looks at its bits; a canceller publishes a bit, then looks at the word (README.md).
 *
 * CANCEL-1  By BARRIER-1 one of them sees the other: no wait outlives a cancellation. The claim decides between
 *           them, as between all others.
 * CANCEL-2  A fiber does not change its shield while it is parked: a canceller that read PARKED, then the
 *           shield, and then wins the claim with that ticket has read the shield of that wait.
 * CANCEL-3  The object's waker may find the waiter of a cancelled wait until the waiter has unlinked itself; its claim
 *           is lost.
 * CANCEL-4  A thread that sets a bit has set `cancels` before, since the runtime started: a scope may be older than
 *           that.
 * CANCEL-5  An OS thread publishes its wait, then looks at its bits; a canceller sets the bit, then looks for a wait:
 *           both looks are under the lock of blocked.c.
 *
 * Until something is cancelled for the first time, parking costs a look at one word that never changes.
 */
#ifndef CC_WAIT_CANCEL_H
#define CC_WAIT_CANCEL_H

#include "wait/wait.h"

#include <ccc/cc_task.h>

/* In the low bits of fiber.scope. */
enum {
    CANCEL_SCOPE = 1,    /* the scope was cancelled, and no shield around it hides that */
    CANCEL_TASK = 2,     /* this task was */
    CANCEL_SHIELD = 4,   /* neither counts now; set and cleared by the fiber, cleared by a grace period's end */
    CANCEL_REPORTED = 8, /* the fiber has reported its failure to its nursery */
    CANCEL_HELD = 16,    /* as CANCEL_SHIELD, for a wait that the runtime owes; no grace period clears it */
    CANCEL_OUTER = 32,   /* a shield is up around the innermost scope: CANCEL_TASK does not count */
    CANCEL_BITS = 63,
};

_Static_assert((CANCEL_SCOPE | CANCEL_TASK) == FIBER_CANCELLED, "the scheduler looks at both");
_Static_assert(CANCEL_BITS == FIBER_SCOPE_BITS, "the address is what is left");

CC_INLINE bool cc__cancel_holds(uintptr_t scope) {
    if ((scope & (CANCEL_SHIELD | CANCEL_HELD)) != 0) return false;
    return (scope & CANCEL_SCOPE) != 0 || (scope & (CANCEL_TASK | CANCEL_OUTER)) == CANCEL_TASK;
}

/* After the switch, the fiber is PARKED: whether it has to look if it is cancelled. */
CC_INLINE bool cc__cancel_looks(void) {
    cc__barrier_light(); /* CANCEL-1 */
    return unlikely(cc__get(&cc__sched.cancels) != 0);
}

/* It looks. True: it is cancelled, its wait was claimed here, and the caller makes it
 * ready once it has released what it holds. */
CC_INLINE bool cc__cancel_parked(struct fiber *f, uint64_t ticket) {
    return cc__cancel_looks() && cc__upcall_cancelled(f, ticket);
}

/* A round of cancelling, in this order; no lock that a parking fiber holds may be held over the barrier:
 * begin, mark each, barrier, claim each, end. */
void cc__cancel_begin(void);
void cc__cancel_barrier(void);
void cc__cancel_end(struct wakes *wakes);

CC_INLINE void cc__cancel_mark(struct fiber *f, uintptr_t bit) {
    cc__or(&f->scope, bit);
}

/* The running fiber takes over the mark of a scope that was cancelled before: by itself, so nobody has to claim. */
CC_INLINE void cc__cancel_adopt(void) {
    if (unlikely((cc__get(&cc__sched.cancels) & CANCELS_MADE) == 0)) cc__cancel_begin(); /* CANCEL-4 */
}

/* If it waits and can be cancelled: claims the wait. The fiber lives as long as the caller sees to it. */
void cc__cancel_claim(struct fiber *f, struct wakes *wakes);

/* task/: joins a task that the caller owns, like a nursery its children: a caller that is cancelled cancels it, and
 * still waits for its end. The handle is used up. As cc_task_join; ECANCELED: the caller was cancelled, the task has
 * ended. */
int cc__cancel_join_owned(CCTask *task, void **result);

/* An OS thread that has entered a block. It has the same word as a fiber. `blocked` is its present wait, under the
 * lock of the list of blocked threads (blocked.h). */
struct outsider {
    _Atomic uintptr_t scope;
    struct blocked_thread *blocked; /* NULL: it does not wait */
};

/* The calling OS thread's; NULL: it is in no block. Not for fibers, which change threads. */
struct outsider *cc__outsider(void);
void cc__outsider_become(struct outsider *outsider);

/* The word of the running fiber, or of the calling OS thread; NULL: a thread that is in no block. */
CC_INLINE _Atomic uintptr_t *cc__cancel_word(void) {
    struct fiber *self = cc__sched_current(cc__worker());
    if (likely(self != NULL)) return &self->scope;
    struct outsider *outsider = cc__outsider();
    return outsider != NULL ? &outsider->scope : NULL;
}

/* The caller's own shield. True: it was not up before, and the caller takes it down again. */
CC_INLINE bool cc__cancel_shield(_Atomic uintptr_t *own) {
    return (cc__or(own, CANCEL_SHIELD) & CANCEL_SHIELD) == 0;
}
CC_INLINE void cc__cancel_unshield(_Atomic uintptr_t *own) {
    cc__and(own, ~(uintptr_t)CANCEL_SHIELD);
}
/* A grace period is over: neither that nor one around the innermost scope. */
CC_INLINE void cc__cancel_pierce(_Atomic uintptr_t *word) {
    cc__and(word, ~(uintptr_t)(CANCEL_SHIELD | CANCEL_OUTER));
}

/* For a wait of the caller that the runtime owes: neither a cancellation nor a grace period ends it. As above. */
CC_INLINE bool cc__cancel_hold(void) {
    _Atomic uintptr_t *own = cc__cancel_word();
    return own != NULL && (cc__or(own, CANCEL_HELD) & CANCEL_HELD) == 0;
}
CC_INLINE void cc__cancel_unhold(bool held) {
    if (held) cc__and(cc__cancel_word(), ~(uintptr_t)CANCEL_HELD);
}

#endif
