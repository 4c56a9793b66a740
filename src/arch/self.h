/* self.h - one pointer per thread, re-read every time.
 *
 * A compiler treats the address of a thread-local variable as constant, but a fiber may resume on another thread. On
 * supported CPUs the read is two opaque inline instructions; elsewhere it is a call of a function that is never
 * inlined.
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
