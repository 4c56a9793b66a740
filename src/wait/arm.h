/* arm.h - one thing that a wait waits for: a place on one object's list. A plain send, receive or join has one
 * arm; a select has several, with one waiter for all of them.
 *
 * ARM-1  `linked`, `late` and the list are guarded by the object's lock.
 * ARM-2  A waker that takes an arm off its list claims the waiter; if it wins, it alone writes `error`,
 *        `*chosen` and through `value`, before the waiter is enqueued. If it loses, the arm is late: its owner
 *        will come by once more to take its leave, and the object stays until then.
 */
#ifndef CC_WAIT_ARM_H
#define CC_WAIT_ARM_H

#include "wait/wait.h"

#include <ccc/cc_select.h>

struct arm;

/* What a select needs from an object; the rooms that own the objects implement it. */
struct arm_ops {
    /* Under the lock: does it at once if it can. True: done, arm->error says how. */
    bool (*poll_locked)(struct arm *arm, struct wakes *wakes);
    /* Under the lock: on the list. */
    void (*link_locked)(struct arm *arm);
    /* Under the lock, when the wait is over: off the list. Consumes the lock (the object may go with it). */
    void (*leave_locked)(struct arm *arm);
};

struct arm {
    struct link link;
    bool linked;
    bool late;
    bool taken; /* join: this arm has used a handle up */
    bool reap;  /* and it was the last one: the record goes when the select leaves */
    int error;
    struct waiter *waiter;
    void *value;      /* a sender's value, a receiver's place, a joiner's result */
    uint32_t index;   /* select: which case */
    uint32_t *chosen; /* select: where the winner leaves its index; NULL otherwise */
    uint64_t id;      /* join: which tenant of the record */
    void *object;
    struct lock *lock; /* the object's */
    const struct arm_ops *ops;
};

/* Under the object's lock, the arm is off its list: claims its waiter. True: this arm ends the wait, with
 * `error`. */
CC_INLINE bool cc__arm_claim_locked(struct wakes *wakes, struct arm *arm, int error) {
    arm->linked = false;
    if (unlikely(!cc__wakes_claim_locked(wakes, arm->waiter, WAKE_OBJECT))) {
        arm->late = true;
        return false;
    }
    arm->error = error;
    if (arm->chosen != NULL) *arm->chosen = arm->index;
    return true;
}

/* Implemented by chan/ and task/, for select/. 0, or an error: the case is malformed. */
int cc__arm_send(struct arm *arm, const CCCase *c);
int cc__arm_recv(struct arm *arm, const CCCase *c);
int cc__arm_join(struct arm *arm, const CCCase *c);

#endif
