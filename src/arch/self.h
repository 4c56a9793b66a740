/* self.h - one pointer a thread, read anew every time.
 *
 * A compiler takes the address of a thread-local variable for a constant; after a switch the thread may be another
 * one. Where we know the instructions, the read is two of them, inline and opaque; elsewhere it is a call of a
 * function that is never inlined.
 */
#ifndef CC_ARCH_SELF_H
#define CC_ARCH_SELF_H

#include "base/attr.h"

#if defined(__x86_64__) && defined(__ELF__) && !defined(CC_ARCH_UCONTEXT)

CC_INLINE void *cc__self_get(void) {
    void *self;
    __asm__ volatile("movq cc__self@gottpoff(%%rip), %0\n\tmovq %%fs:(%0), %0" : "=r"(self));
    return self;
}
CC_INLINE void cc__self_set(void *self) {
    void *offset;
    __asm__ volatile("movq cc__self@gottpoff(%%rip), %0\n\tmovq %1, %%fs:(%0)" : "=&r"(offset) : "r"(self) : "memory");
}

#else

void *cc__self_get(void);
void cc__self_set(void *self);
#define CC_SELF_IN_C 1

#endif

#endif
