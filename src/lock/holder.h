/* holder.h - who holds a lock.
 *
 * In debug builds a holder is a fiber by its id, or an OS thread by its handle with the top bit set, and it is
 * checked. Elsewhere it is the stack pointer of whoever took the lock, which costs one store and says as much to
 * whoever looks for a deadlock: it lies in somebody's stack. 0: nobody; what is there while the lock is free means
 * nothing.
 */
#ifndef CC_LOCK_HOLDER_H
#define CC_LOCK_HOLDER_H

#include "arch/frame.h"
#include "sync/atomic.h"

#ifdef CC_DEBUG
void cc__holder_enter(_Atomic uint64_t *owner);
/* Ends the program unless the caller is the holder. what: "cc_mutex_unlock: the mutex" */
void cc__holder_leave(_Atomic uint64_t *owner, const char *what);
/* Before a wait: ends the program if the caller is the holder. */
void cc__holder_again(_Atomic uint64_t *owner, const char *what);
#else
CC_INLINE void cc__holder_enter(_Atomic uint64_t *owner) {
#ifdef __x86_64__
    __asm__("movq %%rsp, %0" : "=m"(*(uint64_t *)(void *)owner)); /* without a detour by a register */
#else
    cc__set(owner, cc__frame_here());
#endif
}
CC_INLINE void cc__holder_leave(_Atomic uint64_t *owner, const char *what) {
    (void)owner, (void)what;
}
CC_INLINE void cc__holder_again(_Atomic uint64_t *owner, const char *what) {
    (void)owner, (void)what;
}
#endif

/* In every build: something that is free was given back. */
CC_NORETURN CC_COLD void cc__holder_free(const char *what);

#endif
