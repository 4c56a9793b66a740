/* view.h - a snapshot of one fiber, taken from outside while the fiber may run.
 *
 * VIEW-1  A view needs no cooperation and no lock: it works when every worker is stuck.
 * VIEW-2  A copy is consistent if the state word, ticket included, is the same before and after; else it is retried. If
 *         no attempt succeeds the fiber is marked as moving, without the fields that could not be read.
 * VIEW-3  Records and stacks stay mapped as long as the runtime runs; all other pointers are followed by
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
    bool moves;       /* no consistent copy: state and name only */
    bool started;     /* has a stack */
    bool timed;       /* a timer will start it */
    unsigned reason;  /* PARKED: why */
    int worker;       /* runs it, or ran it last; -1: none */
    uintptr_t object; /* PARKED: what it waits for */
    uint64_t from;    /* PARKED since: lower and upper bound; 0, UINT64_MAX: unknown */
    uint64_t to;
    const void *site;
    CCTaskFn fn;
    struct scope *scope; /* its innermost */
    uintptr_t low, high; /* its stack without the guard; 0: none */
    uintptr_t sp;        /* saved stack pointer; 0: it runs */
    char name[CC_FIBER_NAME_MAX];
    unsigned frames;
    const void *frame[VIEW_FRAMES];
    struct doubt doubt; /* which of them are not certain */
};

/* Drops the library's own frames at both ends: the innermost ones, if the fiber waits or is the caller, and those of
 * the scheduler. For printing, and for comparing stacks. Caches results of symbol.h: one thread at a time. */
void cc__view_trim(struct view *view);

/* False: the slot is free. frames: also unwinds; the thread of a running fiber is then sampled by a signal. Unwinding
 * takes most of a view's time. */
bool cc__view_take(uint32_t slot, bool frames, struct view *view);

/* Its slot, which does not change; readable also for a fiber that was found by a data race. */
uint32_t cc__view_slot(const struct fiber *f);

/* Its name, as far as it is readable; "": it has none. At most CC_FIBER_NAME_MAX bytes. */
void cc__view_name(struct fiber *f, char *name);

/* How many fibers there are. */
uint64_t cc__view_count(void);

/* PARKED: what it waits for. */
CC_INLINE struct wait_what cc__view_what(const struct view *v) {
    return (struct wait_what){(enum park_reason)v->reason, (const void *)v->object};
}

/* The kind of holder of a CCMutex, or of the writer of a CCRWLock. */
enum holder { HOLDER_NOBODY, HOLDER_IS_FIBER, HOLDER_HAS_ENDED, HOLDER_IS_THREAD };
/* The fiber; NULL: the holder is none, or has ended. */
struct fiber *cc__wait_holder(struct wait_what what, enum holder *kind);
/* The holder's identity (lock/holder.h); 0: none, or readers. */
uint64_t cc__wait_held_by(struct wait_what what);

/* Copies the arms header of a select or a wait for descriptors. False: unreadable, or another kind of wait. */
bool cc__wait_all(struct wait_what what, struct arms *all);
/* Copies its arms and returns how many there are; 0: none, or unreadable. */
uint32_t cc__wait_arms(struct wait_what what, struct arm *arms, uint32_t max);

#endif
