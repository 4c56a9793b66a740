/* unwind.h - the frames of a stack, by call-frame information (cfi.h); README.md describes the method.
 *
 * UNWIND-1  A frame that is not marked as doubtful is real.
 * UNWIND-2  Whatever the stack and the tables hold, unwinding ends and does not access unmapped memory.
 */
#ifndef CC_INSPECT_UNWIND_H
#define CC_INSPECT_UNWIND_H

#include "arch/context.h"
#include "arch/registers.h"
#include "base/inspect.h"

/* A stack, and the registers of its innermost frame. */
struct picture {
    struct registers regs;
    uintptr_t low, top;     /* the stack is [low, top) */
    bool mapped;            /* it stays mapped; else it is read by safe_copy.h */
    uintptr_t back;         /* frames below the one that resumes at this address are omitted; 0: none */
    uintptr_t copied_at;    /* `words` is a copy of the stack from this address on */
    const uintptr_t *words; /* `count` of them */
    size_t count;
};

/* First the instruction, as pc + 1, then return addresses; an instruction that was interrupted by a signal also as
 * pc + 1. At most `max` and 64. Any thread, not in signal handlers; takes 6 kB of stack, allocates nothing. */
unsigned cc__unwind(const struct picture *p, const void **frames, unsigned max, struct doubt *doubt);

/* The picture of a parked fiber's stack, which is mapped. */
struct picture cc__picture_parked(const struct place *place, uintptr_t low, uintptr_t top);

#endif
