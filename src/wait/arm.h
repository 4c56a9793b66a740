/* arm.h - an arm: the node of a wait on one object's list. A plain send, receive or join has one arm; a select has
 * several, which share one waiter.
 *
 * ARM-1  `linked`, `claim_lost` and the list are guarded by the object's lock; a select sets `linked` before the arm is
 *        visible to others.
 * ARM-2  A waker that takes an arm off its list claims the waiter; if it wins, it alone writes `error`, `*chosen` and
 *        through `value`, before the waiter is enqueued. If it loses, the arm is marked `claim_lost`: its owner still
 *        has to unlink it, and the object stays allocated until then.
 */
#ifndef CC_WAIT_ARM_H
#define CC_WAIT_ARM_H

#include "wait/wait.h"

#include <ccc/cc_select.h>

struct arm;

/* Results of a step under the lock that are not errno values. */
enum {
    ARM_WAIT = -1,  /* it cannot be done now */
    ARM_AGAIN = -2, /* the object has changed: retry */
    ARM_REST = -3,  /* the wait is over, and the waiter has to complete the operation */
};

/* Results of looking at a case; or EINVAL: the case is malformed. */
enum {
    LOOK_READY = -1,
    LOOK_NOT_READY = 0,
    LOOK_BIASED = -2,  /* not ready; only the calling worker, inside its biased lock, can make it ready, or nothing
                       * can */
    LOOK_OUTSIDE = -3, /* looking needs a system call: look again outside the biased lock, with w == NULL */
};

/* For objects that can be biased to a worker, whose biased lock then guards them instead of their own lock. Called
 * under the object's lock. */
struct arm_bias {
    /* Revokes the bias, if any: from now on the lock alone guards the object. */
    void (*revoke_locked)(struct arm *arm);
    /* Counts a wait by a fiber of `w`. True: `w` alone has used the object often enough to bias it. */
    bool (*used_locked)(struct worker *w, struct arm *arm);
    /* Biases the object to `w`, the caller's worker. */
    void (*adopt_locked)(struct worker *w, struct arm *arm);
};

/* The operations of one kind of select case, implemented by the room that owns the objects. A new kind is one such
 * table, its CCCaseKind, and a line in select/kinds.h; HACKING.md, "Twelve changes", has the rest. */
struct arm_ops {
    /* The result is a hint without the object's lock; it is exact with it, or for LOOK_BIASED inside the biased lock of
     * `w`. With w == NULL it is never LOOK_BIASED or LOOK_OUTSIDE. */
    int (*look)(struct worker *w, const CCCase *c);
    /* Executes the case by itself: 0 or the case's error; ARM_WAIT: not possible now. */
    int (*try)(const CCCase *c);
    /* Prepares to wait for a well-formed case. Returns the wake reason that ends the wait for it: WAKE_OBJECT, and
     * `object` and `lock` of the arm are set; WAKE_TIMER, at arm->moment; WAKE_CANCEL; 0: never. */
    unsigned (*prepare)(struct arm *arm, const CCCase *c);
    /* The rest is for WAKE_OBJECT. Links the arm to the object's list, which is guarded. Cannot fail. */
    void (*link)(struct arm *arm);
    /* Unlinks the arm after a wait that another arm or reason ended; the object is not guarded. May free the object. */
    void (*unlink)(struct arm *arm);
    const struct arm_bias *bias; /* NULL: the lock is the only guard */
    bool freeable;               /* the last reference to the object may be released during the wait */
    bool enters;                 /* the objects belong to the runtime: an OS thread that waits for one has to be inside
                                  * it */
    /* While the object is guarded. 0: the arm may be linked; ARM_AGAIN: retry; ECANCELED: the select is cancelled; else
     * the error of the case. May mark the object as having waiters; if no link follows, the mark stays. NULL: use
     * `look`, which is exact here. */
    int (*look_locked)(struct arm *arm);
    /* Called when the arm of an OS thread was linked, without locks. NULL: nothing to do. */
    void (*thread_waits)(struct arm *arm);
    /* Completes a case whose arm was claimed with ARM_REST; no arm is linked. 0 or the case's error. NULL: there are no
     * such claims. */
    int (*rest)(const CCCase *c);
};

struct arm {
    struct link link;
    struct fiber *fiber; /* the waiting fiber, if a store under a biased lock may claim it (FAST-2); else NULL */
    void *value;         /* the sender's value, the receiver's variable, the joiner's result */
    struct waiter *waiter;
    uint32_t *chosen; /* select: where the winner leaves its index; NULL otherwise */
    uint32_t index;   /* select: which case */
    int error;
    bool linked;
    bool claim_lost;
    uint8_t kind;   /* select: CCCaseKind; ARM_POLL; an operation on a descriptor: 0 */
    uint8_t events; /* io: which events of a descriptor, POLLER_* */
    /* The waker of a plain send or receive touches nothing from here on. */
    void *object;
    CCTask *handle;    /* join by a select: consumed by the claimant that ends the wait */
    uint64_t moment;   /* select: when the wait ends with this case */
    struct lock *lock; /* the object's */
    const struct arm_ops *ops;
};

_Static_assert(offsetof(struct arm, object) == CC_LINE, "a waker touches the size of a line");

/* All arms of one wait; what a select stores for diagnostics. */
struct arms {
    struct arm *first;
    uint32_t count;
    /* A select's own, for reports: not every case has an arm. */
    uint16_t cases; /* it was called with */
    bool timed;     /* a deadline, or a case that is a moment, ends it */
    bool cancel;    /* a case is the cancellation */
};

/* The kind of a cc_poll's arm, which is not a select case. */
enum { ARM_POLL = 255 };

/* For an arm of a select: whether its object belongs to a descriptor. */
CC_INLINE bool cc__arm_is_fd(const struct arm *arm) {
    return arm->kind == CC_CASE_READABLE || arm->kind == CC_CASE_WRITABLE;
}

/* For an arm of a select: whether its wake may come from something that a search of memory for the object's address
 * does not find. */
CC_INLINE bool cc__arm_is_outside(const struct arm *arm) {
    return cc__arm_is_fd(arm) || arm->kind == CC_CASE_EXITED || arm->kind == CC_CASE_KEY ||
           arm->kind == CC_CASE_EVENT || arm->kind == CC_CASE_ACQUIRE; /* code holds the address of a static object */
}

/* Arms that fit into a select's frame. */
enum { ARM_FEW = 8 };

/* Ends a select with that case and its error. Returns 0. */
CC_INLINE int cc__case_chosen(CCCase *cases, size_t index, int error, size_t *chosen) {
    cases[index].error = error;
    if (cases[index].status != NULL) *cases[index].status = error;
    *chosen = index;
    return 0;
}

/* Records the outcome of a claim on an unlinked arm: won, with `error`, or lost. */
CC_INLINE void cc__arm_claimed(struct arm *arm, bool won, int error) {
    arm->linked = false;
    if (unlikely(!won)) {
        arm->claim_lost = true;
        return;
    }
    arm->error = error;
    if (arm->chosen != NULL) *arm->chosen = arm->index;
}

/* Claims the waiter of an unlinked arm, under the object's lock. True: this arm ends the wait. */
CC_INLINE bool cc__arm_claim_locked(struct wakes *wakes, struct arm *arm, int error) { /* ARM-2 */
    bool won = cc__wakes_claim_locked(wakes, arm->waiter, WAKE_OBJECT);
    cc__arm_claimed(arm, won, error);
    return won;
}

/* The kinds: chan/arms.c, task/join.c, wait/sleep.c, nursery/cancel.c, io/ready.c, process/process.c,
 * key/key.c, lock/event.c, lock/sem.c, nursery/end.c. */
int cc__arm_look_send(struct worker *w, const CCCase *c);
int cc__arm_look_recv(struct worker *w, const CCCase *c);
/* Whether executing the case may call a pool's callback, which may wait or panic. */
bool cc__arm_calls_back(const CCCase *c);
/* Before a wait to send, without locks: a pool resets the item. The callback may wait or panic. */
void cc__arm_reset_send(const CCCase *c);
/* Before a wait for a descriptor: panics in a hosted call. */
void cc__arm_may_wait_fd(void);
extern const struct arm_ops cc__arm_send, cc__arm_recv, cc__arm_join, cc__arm_at, cc__arm_cancel, cc__arm_fd,
    cc__arm_exited, cc__arm_key, cc__arm_event, cc__arm_acquire, cc__arm_nursery_end;

#endif
