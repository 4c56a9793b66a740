/* arm.h - one thing that a wait waits for: a place on one object's list. A plain send, receive or join has one
 * arm; a select has several, with one waiter for all of them.
 *
 * ARM-1  `linked`, `claim_lost` and the list are guarded by the object's lock.
 * ARM-2  A waker that takes an arm off its list claims the waiter; if it wins, it alone writes `error`,
 *        `*chosen` and through `value`, before the waiter is enqueued. If it loses, the claim is lost: its owner
 *        will come by once more to unlink, and the object stays until then.
 */
#ifndef CC_WAIT_ARM_H
#define CC_WAIT_ARM_H

#include "wait/wait.h"

#include <ccc/cc_select.h>

struct arm;

/* What a step under the lock says when it is no errno value. */
enum {
    ARM_WAIT = -1,      /* it cannot be done now */
    ARM_SETTLE = -2,    /* it is ours, and the rest is done outside the lock */
    ARM_AGAIN = -3,     /* what we waited for has changed: look again */
    ARM_ELSEWHERE = -5, /* nothing was done: it has to be done another way */
};

/* What a select needs from an object; the rooms that own the objects implement it. */
struct arm_ops {
    /* Under the lock: does it at once if it can. True: done, arm->error says how, or ARM_SETTLE. */
    bool (*poll_locked)(struct arm *arm, struct wakes *wakes);
    /* Under the lock: on the list. */
    void (*link_locked)(struct arm *arm);
    /* When the wait is over, outside the lock: off the list. The object may go with it. */
    void (*unlink)(struct arm *arm);
    /* After ARM_SETTLE, outside the lock: the arm's error. NULL: never says so. */
    int (*settle)(struct arm *arm);
    /* Right after the lock was taken, before what is done under it. NULL: the lock is enough. */
    void (*seize_locked)(struct arm *arm);
};

struct arm {
    struct link link;
    struct fiber *
        fiber; /* who waits, if a claim under a biased lock is a store for all that this arm says (FAST-2); else NULL */
    void *value; /* a sender's value, a receiver's place, a joiner's result */
    struct waiter *waiter;
    uint32_t *chosen; /* select: where the winner leaves its index; NULL otherwise */
    uint32_t index;   /* select: which case */
    int error;
    bool linked;
    bool claim_lost;
    bool taken;   /* join: this arm has used a handle up */
    bool reap;    /* and it was the last one: the record goes when the select leaves */
    uint8_t kind; /* select: CCCaseKind */
    /* The waker of a plain send or receive touches nothing from here on. */
    uint64_t id; /* join: which tenant of the record */
    void *object;
    struct lock *lock; /* the object's */
    const struct arm_ops *ops;
};

_Static_assert(offsetof(struct arm, id) == CC_LINE, "a waker touches the size of a line");

/* All that one wait waits for, as a select notes it. */
struct arms {
    struct arm *first;
    uint32_t count;
};

/* Arms that fit into a select's frame. */
enum { ARM_FEW = 8 };

/* The end of a select: that case happened, with that error. Returns 0. */
CC_INLINE int cc__case_chosen(CCCase *cases, size_t index, int error, size_t *chosen) {
    cases[index].error = error;
    if (cases[index].status != NULL) *cases[index].status = error;
    *chosen = index;
    return 0;
}

/* Under the object's lock, the arm is off its list: claims its waiter. True: this arm ends the wait, with
 * `error`. */
CC_INLINE bool cc__arm_claim_locked(struct wakes *wakes, struct arm *arm, int error) {
    arm->linked = false;
    if (unlikely(!cc__wakes_claim_locked(wakes, arm->waiter, WAKE_OBJECT))) {
        arm->claim_lost = true;
        return false;
    }
    arm->error = error;
    if (arm->chosen != NULL) *arm->chosen = arm->index;
    return true;
}

/* Implemented by chan/ and task/, for select/. */

/* Without a lock: whether the case may be ready; EINVAL: it is malformed. */
enum { LOOK_NOT_READY = 0, LOOK_READY = -1 };
int cc__arm_look_send(const CCCase *c);
int cc__arm_look_recv(const CCCase *c);
int cc__arm_look_join(const CCCase *c);

/* Does it alone, if that can be done at once: 0 or the case's error; ARM_WAIT: it cannot. */
int cc__arm_do_send(const CCCase *c);
int cc__arm_do_recv(const CCCase *c);
int cc__arm_do_join(const CCCase *c);

/* Sets an arm up for a case that is well formed. */
void cc__arm_send(struct arm *arm, const CCCase *c);
void cc__arm_recv(struct arm *arm, const CCCase *c);
void cc__arm_join(struct arm *arm, const CCCase *c);

/* The whole select, of at most ARM_FEW cases, by a fiber on `w`: 0, EAGAIN, ECANCELED, as cc_select. ARM_ELSEWHERE: not
 * all of them are channels that are biased to it. */
int cc__select_biased(struct worker *w, CCCase *cases, size_t n, CCSelectOrder order, uint64_t deadline, bool wait,
                      size_t *chosen);
/* A fiber on `w` is about to wait for all these arms, which are channels', holds their locks and has no deadline:
 * perhaps they are biased to it from now on. */
void cc__chan_adopt_locked(struct worker *w, struct arm *arms, uint32_t count);

#endif
