/* unwind.h - the frames of a stack, by call-frame information (cfi.h). README.md tells how.
 *
 * UNWIND-1  A frame that is not marked as doubtful is real.
 * UNWIND-2  Whatever the stack and the tables hold, a walk ends and touches no memory that is not there.
 */
#ifndef CC_INSPECT_UNWIND_H
#define CC_INSPECT_UNWIND_H

#include "arch/context.h"
#include "arch/registers.h"
#include "base/inspect.h"

/* A stack, and where in it something has stopped. */
struct picture {
    struct registers regs;
    uintptr_t low, top;     /* the stack is [low, top) */
    bool mapped;            /* all of that is there; else the kernel copies what is wanted (safe_copy.h) */
    uintptr_t back;         /* frames below the one that goes on at this address are left out; 0: none are */
    uintptr_t copied_at;    /* what was in the stack from this address on, when the picture was taken */
    const uintptr_t *words; /* so many */
    size_t count;
};

/* The instruction first, as pc + 1, then return addresses; one that was interrupted, by a signal, as pc + 1, too. At
 * most `max` and 64. Any thread, not for signal handlers; takes 6 kB of stack, allocates nothing. */
unsigned cc__unwind(const struct picture *p, const void **frames, unsigned max, struct doubt *doubt);

/* The picture of a mapped stack that was switched away from. */
struct picture cc__picture_parked(const struct place *place, uintptr_t low, uintptr_t top);

#endif
