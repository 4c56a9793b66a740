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
    ARM_WAIT = -1,  /* it cannot be done now */
    ARM_AGAIN = -2, /* what we waited for has changed: look again */
};

/* What a look at a case says; or EINVAL: the case is malformed. */
enum {
    LOOK_READY = -1,
    LOOK_NOT_READY = 0,
    LOOK_BIASED = -2, /* it is not ready, and only the worker that asked, inside its biased lock, can make it so */
};

/* Of objects that can be biased to a worker: then that worker's biased lock guards them instead of their own. All of it
 * under the object's lock. */
struct arm_bias {
    /* If the object is biased: from now on its lock is all that guards it. */
    void (*revoke_locked)(struct arm *arm);
    /* A fiber of `w` is about to wait: counts that. True: it has been used so often by `w` alone that it may be
     * biased. */
    bool (*used_locked)(struct worker *w, struct arm *arm);
    /* From now on it is biased to `w`, the caller's worker. */
    void (*adopt_locked)(struct worker *w, struct arm *arm);
};

/* A kind of case, as a select needs it; the room that owns the objects implements it. A new kind is one such table, its
 * CCCaseKind, and a line in select/kinds.h. */
struct arm_ops {
    /* Without the object's lock that is a hint; with it, or inside the biased lock of `w` for LOOK_BIASED, it is exact.
     * NULL for `w`: LOOK_BIASED is no answer. */
    int (*look)(struct worker *w, const CCCase *c);
    /* Does it, alone: 0 or the case's error; ARM_WAIT: it cannot be done now. */
    int (*try)(const CCCase *c);
    /* The case, which is well formed, is to be waited for. Returns the reason of the wake that ends the wait for it:
     * WAKE_OBJECT, and `object` and `lock` of the arm are set; WAKE_TIMER, at arm->moment; WAKE_CANCEL; 0:
     * there is none, ever. */
    unsigned (*prepare)(struct arm *arm, const CCCase *c);
    /* The rest is for WAKE_OBJECT. The object is guarded: on its list. */
    void (*link)(struct arm *arm);
    /* The wait is over, and not by this arm; the object is not guarded: off the list. The object may go with it. */
    void (*unlink)(struct arm *arm);
    const struct arm_bias *bias; /* NULL: the lock is the only guard */
    bool enters;                 /* the objects are the runtime's: an OS thread that waits for one has to be inside */
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
    uint8_t kind; /* select: CCCaseKind */
    /* The waker of a plain send or receive touches nothing from here on. */
    void *object;
    CCTask *handle;    /* join by a select: used up by whoever ends the wait */
    uint64_t moment;   /* select: when the wait ends with this case */
    struct lock *lock; /* the object's */
    const struct arm_ops *ops;
};

_Static_assert(offsetof(struct arm, object) == CC_LINE, "a waker touches the size of a line");

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

/* The arm is off its list, and its waiter was claimed with `error`, or the claim was lost. */
CC_INLINE void cc__arm_claimed(struct arm *arm, bool won, int error) {
    arm->linked = false;
    if (unlikely(!won)) {
        arm->claim_lost = true;
        return;
    }
    arm->error = error;
    if (arm->chosen != NULL) *arm->chosen = arm->index;
}

/* Under the object's lock, the arm is off its list: claims its waiter. True: this arm ends the wait. */
CC_INLINE bool cc__arm_claim_locked(struct wakes *wakes, struct arm *arm, int error) { /* ARM-2 */
    bool won = cc__wakes_claim_locked(wakes, arm->waiter, WAKE_OBJECT);
    cc__arm_claimed(arm, won, error);
    return won;
}

/* The kinds: chan/arms.c, task/join.c, wait/sleep.c, wait/cancel.c. */
int cc__arm_look_send(struct worker *w, const CCCase *c);
int cc__arm_look_recv(struct worker *w, const CCCase *c);
extern const struct arm_ops cc__arm_send, cc__arm_recv, cc__arm_join, cc__arm_at, cc__arm_cancel;

#endif
