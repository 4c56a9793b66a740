/* self.h - one pointer a thread, read anew every time.
 *
 * A compiler takes the address of a thread-local variable for a constant; after a switch the thread may be another
 * one. Where we know the instructions, the read is two of them, inline and opaque; elsewhere it is a call of a
 * function that is never inlined.
 */
#ifndef CC_ARCH_SELF_H
#define CC_ARCH_SELF_H

#include "arch/target.h"
#include "base/attr.h"

#if defined(CC_TARGET_SELF) && !defined(CC_ARCH_UCONTEXT)
#include CC_TARGET(self.h)
#else
void *cc__self_get(void);
void cc__self_set(void *self);
#define CC_SELF_IN_C 1
#endif

#endif
