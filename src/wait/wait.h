/* wait.h - the one way to block: fibers park, OS threads block, and exactly one reason ends the wait.
 *
 * Two forms. An object that is guarded by a lock links a waiter under its lock and calls cc__wait_locked: the
 * lock is released after the switch, so the waiter can be found only once it is parked. An object without a
 * lock goes through cc__fiber_wait and the latch in the state word. park_if is the thin form of the second.
 *
 * WAIT-1  The claim decides. Waker, timer and canceller race for it; the losers see a stale ticket or a taken word.
 * WAIT-2  A waiter is off every list before its frame returns.
 * WAIT-3  A waker does not touch a waiter after it has made it runnable.
 * WAIT-4  Wakers collect under the lock and wake after it (struct wakes). A local wake (local_wake.h) enters the own
 *         slot under the lock; other workers are told after it.
 */
#ifndef CC_WAIT_WAIT_H
#define CC_WAIT_WAIT_H

#include "sched/upcalls.h"
#include "timer/timer.h"

#define WAIT_FOREVER UINT64_MAX

/* A deadline as the user gives it: {0} is none. */
CC_INLINE uint64_t cc__wait_deadline(CCDeadline deadline) {
    return deadline.ns != 0 ? deadline.ns : WAIT_FOREVER;
}

/* One wait of one fiber or OS thread; on its stack. */
struct waiter {
    struct fiber *fiber; /* NULL: an OS thread */
    uint64_t ticket;
    /* A fiber's wait that nobody claims but wakers, one at a time, and a canceller who says so first: it has no
     * deadline, and one object, or several with one guard. Cleared when those come apart (CHANBIAS-4). */
    _Atomic bool sole;
    _Atomic uint32_t word; /* OS thread: futex; 0 waits, 1 claimed, else the wake_reason: free to go */
    uint64_t deadline;
    struct link link; /* OS thread: struct wakes */
};

/* Prepares a wait of the caller. ENOMEM: a deadline needs room for a timer and there is none. */
int cc__waiter_init(struct waiter *waiter, struct worker *w, uint64_t deadline);

/* What a wait is for, for diagnostics: the kind of object, and which. */
struct wait_what {
    enum park_reason reason;
    const void *object; /* a select's: its struct arms */
};

/* The caller holds `lock` (or n locks) and has put itself on the object's list. Returns the wake_reason, without the
 * locks. After WAKE_TIMER or WAKE_CANCEL the caller unlinks itself from the object, under its lock. */
enum wake_reason cc__wait_locked(struct waiter *waiter, struct lock *lock, struct wait_what what);
/* The same with several locks, for a fiber. */
enum wake_reason cc__wait_locked_all(struct waiter *waiter, struct lock **locks, uint32_t n, struct wait_what what);

/* The short way of a fiber without a deadline: cc__waiter_init_sole has prepared the waiter. The object is a channel,
 * and begins with its lock. */
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
    _Atomic uint32_t count;         /* relaxed, like `threads`: wakers that follow each other on one worker's stack */
    struct waiter *_Atomic threads; /* are not ordered for a race detector; by link.next */
};

CC_INLINE void cc__wakes_init(struct wakes *wakes) {
    cc__set(&wakes->count, 0);
    cc__set(&wakes->threads, NULL);
}
CC_INLINE bool cc__wakes_any(struct wakes *wakes) {
    return cc__get(&wakes->count) != 0 || cc__get(&wakes->threads) != NULL;
}

/* Under the object's lock; the waiter is off its list. False: another claim was first. */
bool cc__wakes_claim_locked(struct wakes *wakes, struct waiter *waiter, enum wake_reason reason);
/* The same for a fiber, by compare-and-swap in any case: the caller may be inside its worker's biased lock. */
bool cc__wakes_claim_apart(struct wakes *wakes, struct waiter *waiter);
/* A fiber that the caller has claimed by itself. */
void cc__wakes_add(struct wakes *wakes, struct fiber *f);
/* After the lock. */
void cc__wakes_flush(struct wakes *wakes);

/* ---- objects without a lock ---- */

struct waitable_ops {
    /* Makes the waiter findable; from here on a wake must reach it. Looks for what it waits for after that, and if it
     * is there, wakes the waiter itself. Not 0: the object takes no more waiters, and the wait ends with that error. */
    int (*publish)(void *object, struct waiter *waiter, void *io);
    /* Takes it back; idempotent. No waker touches the waiter afterwards. */
    void (*unpublish)(void *object, struct waiter *waiter);
};

/* Waits on `object`. 0: a waker claimed us, perhaps in vain; ETIMEDOUT, ECANCELED, ENOMEM, or publish's error. Any
 * context. */
int cc__fiber_wait(void *object, void *io, const struct waitable_ops *ops, uint64_t deadline, enum park_reason reason);

/* Wakes a waiter that was published. Idempotent; a stale one is harmless as long as its memory is there. True:
 * this call ended the wait. Any thread. */
bool cc__waiter_wake(struct waiter *waiter, enum wake_reason reason);
/* The same by fiber and ticket: safe for ever, records are never unmapped. */
bool cc__fiber_wake(struct fiber *f, uint64_t ticket, enum wake_reason reason);

/* park_if: the caller opens a wait, publishes (fiber, ticket) as it likes, then parks unless *flag has left
 * `expected`. A waker changes the flag and calls cc__fiber_wake. Fibers only. */
uint64_t cc__park_open(struct fiber *self, enum park_reason reason);
/* Returns the wake_reason, or 0 when the flag had changed before. */
unsigned cc__park_if(struct fiber *self, _Atomic uint32_t *flag, uint32_t expected);

#endif
