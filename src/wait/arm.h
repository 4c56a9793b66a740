/* arm.h - one thing that a wait waits for: a place on one object's list. A plain send, receive or join has one
 * arm; a select has several, with one waiter for all of them.
 *
 * ARM-1  `linked`, `claim_lost` and the list are guarded by the object's lock; a select sets `linked` before anybody
 *        can see the arm.
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
    LOOK_BIASED = -2, /* it is not ready; only the worker that asked, inside its biased lock, can make it so, or none */
    LOOK_OUTSIDE = -3, /* not inside the biased lock: a look calls the system; ask without a worker */
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
 * CCCaseKind, and a line in select/kinds.h; HACKING.md, "Twelve changes", has the rest. */
struct arm_ops {
    /* Without the object's lock that is a hint; with it, or inside the biased lock of `w` for LOOK_BIASED, it is exact.
     * NULL for `w`: LOOK_BIASED and LOOK_OUTSIDE are no answers. */
    int (*look)(struct worker *w, const CCCase *c);
    /* Does it, alone: 0 or the case's error; ARM_WAIT: it cannot be done now. */
    int (*try)(const CCCase *c);
    /* The case, which is well formed, is to be waited for. Returns the reason of the wake that ends the wait for it:
     * WAKE_OBJECT, and `object` and `lock` of the arm are set; WAKE_TIMER, at arm->moment; WAKE_CANCEL; 0:
     * there is none, ever. */
    unsigned (*prepare)(struct arm *arm, const CCCase *c);
    /* The rest is for WAKE_OBJECT. The object is guarded: on its list. It cannot fail. */
    void (*link)(struct arm *arm);
    /* The wait is over, and not by this arm; the object is not guarded: off the list. The object may go with it. */
    void (*unlink)(struct arm *arm);
    const struct arm_bias *bias; /* NULL: the lock is the only guard */
    bool enters;                 /* the objects are the runtime's: an OS thread that waits for one has to be inside */
    /* The object is guarded: 0, and the arm may be linked; ARM_AGAIN: look again; or the case ends with this error, the
     * select if it is ECANCELED. It may mark the object as waited for; if no link follows, nothing undoes the mark.
     * NULL: `look` is exact there. */
    int (*look_locked)(struct arm *arm);
    /* The arm of an OS thread was linked, and no lock is held. NULL: there is nothing to do. */
    void (*thread_waits)(struct arm *arm);
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
    uint8_t kind;   /* select: CCCaseKind; ARM_POLL; an operation on a descriptor: 0 */
    uint8_t events; /* io: which events of a descriptor, POLLER_* */
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
    /* A select's own, for reports: not every case has an arm. */
    uint16_t cases; /* it was called with */
    bool timed;     /* a deadline, or a case that is a moment, ends it */
    bool cancel;    /* a case is the cancellation */
};

/* The kind of arm of a cc_poll: no case of a select. */
enum { ARM_POLL = 255 };

/* Of a select's arm: its object is a descriptor's. */
CC_INLINE bool cc__arm_is_fd(const struct arm *arm) {
    return arm->kind == CC_CASE_READABLE || arm->kind == CC_CASE_WRITABLE;
}

/* Of a select's arm: something may end it that a search of memory for the object's address does not find. */
CC_INLINE bool cc__arm_is_outside(const struct arm *arm) {
    return cc__arm_is_fd(arm) || arm->kind == CC_CASE_EXITED || arm->kind == CC_CASE_KEY ||
           arm->kind == CC_CASE_EVENT || arm->kind == CC_CASE_ACQUIRE; /* code knows where a static object is */
}

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

/* The kinds: chan/arms.c, task/join.c, wait/sleep.c, wait/cancel.c, io/ready.c, process/process.c,
 * key/key.c, lock/event.c, lock/sem.c, nursery/end.c. */
int cc__arm_look_send(struct worker *w, const CCCase *c);
int cc__arm_look_recv(struct worker *w, const CCCase *c);
/* Before a send is waited for, while nothing is held: a pool cleans the item. That may wait, and panic. */
void cc__arm_reset_send(const CCCase *c);
/* Before a descriptor is waited for: panics in a hosted call. */
void cc__arm_may_wait_fd(void);
extern const struct arm_ops cc__arm_send, cc__arm_recv, cc__arm_join, cc__arm_at, cc__arm_cancel, cc__arm_fd,
    cc__arm_exited, cc__arm_key, cc__arm_event, cc__arm_acquire, cc__arm_nursery_end;

#endif
