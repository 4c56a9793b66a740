/* view.h - one fiber, looked at from outside, while it does what it likes.
 *
 * VIEW-1  Nobody is asked and nothing is locked: a view works when every worker is stuck.
 * VIEW-2  What is copied is right if the state word, ticket included, is the same before and after; else the fiber is
 *         looked at again, and at last shown as one that moves, without what could not be read.
 * VIEW-3  Records and stacks stay mapped as long as the runtime runs; whatever else is followed goes through
 *         os/safe_copy.h.
 */
#ifndef CC_INSPECT_VIEW_H
#define CC_INSPECT_VIEW_H

#include "inspect/unwind.h"
#include "nursery/nursery.h"
#include "sched/sched.h"

enum { VIEW_FRAMES = 24 };

struct view {
    struct fiber *fiber;
    uint32_t slot, generation;
    uint64_t word;
    enum fiber_state state;
    bool moves;       /* it would not stand still: state and name only */
    bool started;     /* has a stack */
    bool timed;       /* a timer will start it */
    unsigned reason;  /* PARKED: why */
    int worker;       /* runs it, or ran it last; -1: none */
    uintptr_t object; /* PARKED: what it waits for */
    uint64_t from;    /* PARKED: not before, and not after this moment; 0, UINT64_MAX: not known */
    uint64_t to;
    const void *site;
    CCTaskFn fn;
    struct scope *scope; /* its innermost */
    uintptr_t low, high; /* its stack without the guard; 0: none */
    uintptr_t sp;        /* where it stopped; 0: it runs */
    char name[CC_FIBER_NAME_MAX];
    unsigned frames;
    const void *frame[VIEW_FRAMES];
    struct doubt doubt; /* which of them are not certain */
};

/* Drops what is the library's own at both ends: of a fiber that waits or asks, what its call does inside; of all, the
 * scheduler below. For naming what is left, and for telling whether two stand in the same place. Asks symbol.h, and
 * remembers the answers: one thread at a time. */
void cc__view_trim(struct view *view);

/* False: the slot has no tenant. frames: its frames are wanted, too; a fiber that runs is then asked where, by a signal
 * to its thread. Unwinding takes most of a view's time. */
bool cc__view_take(uint32_t slot, bool frames, struct view *view);

/* Its number, which does not change; whoever found the fiber by a race reads it as one. */
uint32_t cc__view_slot(const struct fiber *f);

/* Its name as far as it can be read from outside; "": it has none. At most CC_FIBER_NAME_MAX bytes. */
void cc__view_name(struct fiber *f, char *name);

/* How many tenants there are. */
uint64_t cc__view_count(void);

/* PARKED: what it waits for. */
CC_INLINE struct wait_what cc__view_what(const struct view *v) {
    return (struct wait_what){(enum park_reason)v->reason, (const void *)v->object};
}

/* Who holds a mutex (a CCMutex) or is the writer of a CCRWLock. */
enum holder { HOLDER_NOBODY, HOLDER_IS_FIBER, HOLDER_HAS_ENDED, HOLDER_IS_THREAD };
/* The fiber; NULL: it is none, or has ended. */
struct fiber *cc__wait_holder(struct wait_what what, enum holder *kind);
/* The holder as it was written down (lock/holder.h); 0: none, or readers. */
uint64_t cc__wait_held_by(struct wait_what what);

/* What a select or a wait for descriptors has noted, copied. False: it cannot be read, or is none. */
bool cc__wait_all(struct wait_what what, struct arms *all);
/* What it waits for, copied: how many arms there are; 0: none, or they cannot be read. */
uint32_t cc__wait_arms(struct wait_what what, struct arm *arms, uint32_t max);

#endif
