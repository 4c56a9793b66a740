/* wait.h - how everything waits: fibers park, OS threads block, and exactly one reason ends the wait.
 *
 * Two forms. An object that is guarded by a lock links a waiter under its lock and calls cc__wait_locked: the
 * lock is released after the switch, so the waiter can be found only once it is parked. An object without a
 * lock goes through cc__fiber_wait and the latch in the state word. park_if is the minimal form of the latter.
 *
 * WAIT-1  The claim decides. Waker, timer and canceller race for it; the losers see a stale ticket or a taken word.
 * WAIT-2  A waiter is off every list before its frame returns.
 * WAIT-3  A waker does not touch a waiter after it has made it runnable.
 * WAIT-4  Wakers collect under the lock and wake after it (struct wakes). A local wake (local_wake.h) puts the fiber
 *         into the waker's own slot under the lock, and notifies other workers after it.
 */
#ifndef CC_WAIT_WAIT_H
#define CC_WAIT_WAIT_H

#include "sched/upcalls.h"
#include "timer/timer.h"

#define WAIT_FOREVER UINT64_MAX

/* Converts a deadline from the user: {0} is none. */
CC_INLINE uint64_t cc__wait_deadline(CCDeadline deadline) {
    return deadline.ns != 0 ? deadline.ns : WAIT_FOREVER;
}

/* One wait of one fiber or OS thread; on its stack. */
struct waiter {
    struct fiber *fiber; /* NULL: an OS thread */
    uint64_t ticket;
    /* A fiber's wait that is claimed only by wakers, one at a time, and by a canceller, which raises `contested` first:
     * it has no deadline, and one object, or several with one guard. Cleared when they no longer have one guard
     * (CHANBIAS-4). */
    _Atomic bool sole;
    _Atomic uint32_t word; /* OS thread: futex; 0: waiting, 1: claimed, else released, with the wake_reason */
    uint64_t deadline;
    struct link link; /* OS thread: struct wakes */
};

/* Prepares a wait of the caller. ENOMEM: no memory for the timer of the deadline. */
int cc__waiter_init(struct waiter *waiter, struct worker *w, uint64_t deadline);

/* What a wait waits for, for diagnostics: the kind of object, and which. */
struct wait_what {
    enum park_reason reason;
    const void *object; /* for a select: its struct arms */
};

/* The caller holds `lock` (or n locks) and has linked its waiter to the object's list. Returns the wake_reason, with
 * the locks released. After WAKE_TIMER or WAKE_CANCEL the caller unlinks itself from the object, under its lock. */
enum wake_reason cc__wait_locked(struct waiter *waiter, struct lock *lock, struct wait_what what);
/* The same with several locks, for a fiber. */
enum wake_reason cc__wait_locked_all(struct waiter *waiter, struct lock **locks, uint32_t n, struct wait_what what);

/* The fast path for a fiber without a deadline: cc__waiter_init_sole has prepared the waiter. The object is a channel,
 * whose first member is its lock. */
CC_INLINE void cc__waiter_init_sole(struct waiter *waiter, struct fiber *self) {
    waiter->fiber = self;
    waiter->ticket = cc__state_next_ticket(self);
    waiter->deadline = WAIT_FOREVER;
    cc__set(&waiter->sole, true);
}
enum wake_reason cc__wait_sole_locked(struct worker *w, struct fiber *self, struct lock *channel);

/* Sleeps until the waiter's deadline, or until cancelled. */
enum wake_reason cc__wait_sleep(struct waiter *waiter);

/* What a waker has claimed and not yet woken: fibers by their records, so that a waiter's frame is touched
 * once; OS threads by their waiters. */
struct wakes {
    struct link fibers;             /* of fiber.link; set up by the first claim */
    _Atomic uint32_t count;         /* relaxed, like `threads`: successive wakers on one worker's stack */
    struct waiter *_Atomic threads; /* are not ordered for a race detector; by link.next */
};

CC_INLINE void cc__wakes_init(struct wakes *wakes) {
    cc__set(&wakes->count, 0);
    cc__set(&wakes->threads, NULL);
}
CC_INLINE bool cc__wakes_any(struct wakes *wakes) {
    return cc__get(&wakes->count) != 0 || cc__get(&wakes->threads) != NULL;
}

/* Under the object's lock; the waiter is unlinked. False: another claim has won. */
bool cc__wakes_claim_locked(struct wakes *wakes, struct waiter *waiter, enum wake_reason reason);
/* The same for a fiber, always by compare-and-swap: the caller may be inside its worker's biased lock. */
bool cc__wakes_claim_apart(struct wakes *wakes, struct waiter *waiter);
/* Adds a fiber that the caller has claimed itself. */
void cc__wakes_add(struct wakes *wakes, struct fiber *f);
/* After the lock is released. */
void cc__wakes_flush(struct wakes *wakes);

/* ---- objects without a lock ---- */

struct waitable_ops {
    /* Publishes the waiter; from here on a wake must reach it. Then checks the condition, and if it holds, wakes the
     * waiter itself. Not 0: the object accepts no more waiters, and the wait ends with that error. */
    int (*publish)(void *object, struct waiter *waiter, void *io);
    /* Unpublishes it; idempotent. No waker touches the waiter afterwards. */
    void (*unpublish)(void *object, struct waiter *waiter);
};

/* Waits on `object`. 0: claimed by a waker, perhaps spuriously; ETIMEDOUT, ECANCELED, ENOMEM, or publish's error. Any
 * context. */
int cc__fiber_wait(void *object, void *io, const struct waitable_ops *ops, uint64_t deadline, enum park_reason reason);

/* Wakes a published waiter. Idempotent; a stale waiter is harmless while its memory is valid. True: this call ended the
 * wait. Any thread. */
bool cc__waiter_wake(struct waiter *waiter, enum wake_reason reason);
/* The same by fiber and ticket: always safe, because records are never unmapped. */
bool cc__fiber_wake(struct fiber *f, uint64_t ticket, enum wake_reason reason);

/* park_if: the caller opens a wait, publishes (fiber, ticket) as it likes, then parks unless *flag has left
 * `expected`. A waker changes the flag and calls cc__fiber_wake. Fibers only. */
uint64_t cc__park_open(struct fiber *self, enum park_reason reason);
/* Returns the wake_reason, or 0 if the flag had already changed. */
unsigned cc__park_if(struct fiber *self, _Atomic uint32_t *flag, uint32_t expected);

#endif
