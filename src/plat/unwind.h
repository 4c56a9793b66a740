/* unwind.h - frames from a picture of a stack.
 *
 * A thread that was looked at from outside is seldom in a function that keeps a frame pointer: it is in the C library,
 * in a system call. Then the chain of frames begins somewhere above the stack pointer, and the function that called the
 * C library has left its return address somewhere below that.
 */
#ifndef CC_PLAT_UNWIND_H
#define CC_PLAT_UNWIND_H

#include <stddef.h>
#include <stdint.h>

struct picture {
    uintptr_t pc, sp;
    uintptr_t fp;           /* 0: not known */
    uintptr_t link;         /* 0: not known; as in arch/interrupt.h */
    uintptr_t top;          /* of the stack */
    const uintptr_t *words; /* a copy of what was at sp; memory further up is looked at when it is needed */
    size_t count;
};

/* The instruction first, as pc + 1, then return addresses. At least one if max is not 0. What is found by search may be
 * wrong: an old return address that nobody has overwritten. Any thread, one at a time; allocates nothing. */
unsigned cc__unwind(const struct picture *p, const void **frames, unsigned max);

#endif
