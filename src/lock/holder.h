/* holder.h - who holds a lock, and whether the caller of an unlock is the holder.
 *
 * In debug builds the holder is a fiber's id, or an OS thread's handle with the top bit set. In other builds it is the
 * stack pointer at the call that took the lock, which costs one store: an unlock with the same stack pointer comes from
 * the same frame, and is accepted by one comparison. Any other unlock asks whose stack that pointer is in
 * (cc__holder_check). 0: nobody, or a waiter that was handed the lock and has not run yet.
 *
 * HOLDER-1  The holder is cleared before the lock is free, and written by the next holder: while the lock is held, its
 *           holder wrote what is there.
 * HOLDER-2  In a release build the check accepts what it cannot decide: a lock that was taken on a stack that is no
 *           fiber's, and is given back on another such stack, may belong to the same OS thread (a hosted call,
 *           coroutines of the program's own).
 */
#ifndef CC_LOCK_HOLDER_H
#define CC_LOCK_HOLDER_H

#include "arch/machine.h"
#include "sync/atomic.h"

#include <stdbool.h>

/* The stack pointer at the entry of the function that uses it, which need not have a frame. */
#define cc__holder_entry() ((uint64_t)(uintptr_t)__builtin_dwarf_cfa() - CC_RETURN_ON_STACK * sizeof(void *))

#ifdef CC_DEBUG
uint64_t cc__holder_self(void);

CC_INLINE void cc__holder_enter_at(_Atomic uint64_t *owner, uint64_t entry) {
    (void)entry;
    cc__set(owner, cc__holder_self());
}
CC_INLINE void cc__holder_enter(_Atomic uint64_t *owner) {
    cc__set(owner, cc__holder_self());
}
CC_INLINE bool cc__holder_here(_Atomic uint64_t *owner) {
    return cc__get(owner) == cc__holder_self();
}
CC_INLINE bool cc__holder_at(_Atomic uint64_t *owner, uint64_t entry) {
    (void)entry;
    return cc__holder_here(owner);
}
/* Before a wait: ends the program if the caller is the holder. */
void cc__holder_again(_Atomic uint64_t *owner, const char *what, const void *object);
#else
CC_INLINE void cc__holder_enter_at(_Atomic uint64_t *owner, uint64_t entry) {
    cc__set(owner, entry);
}
/* The holder was entered with this stack pointer. */
CC_INLINE bool cc__holder_at(_Atomic uint64_t *owner, uint64_t entry) {
    return cc__get(owner) == entry;
}
/* In a function that has no frame at this place. */
CC_INLINE void cc__holder_enter(_Atomic uint64_t *owner) {
#ifdef CC_WORDS_IN_ASM
    cc__word_set_sp(owner);
#else
    cc__set(owner, cc__machine_sp());
#endif
}
/* As above: the holder called from the frame that calls now. */
CC_INLINE bool cc__holder_here(_Atomic uint64_t *owner) {
#ifdef CC_WORDS_IN_ASM
    return cc__word_is_sp(owner);
#else
    return cc__get(owner) == cc__machine_sp();
#endif
}
CC_INLINE void cc__holder_again(_Atomic uint64_t *owner, const char *what, const void *object) {
    (void)owner, (void)what, (void)object;
}
#endif

/* Before the lock is given back (HOLDER-1). */
CC_INLINE void cc__holder_clear(_Atomic uint64_t *owner) {
    cc__set(owner, 0);
}

/* Ends the program unless the caller holds the lock. held: whether anybody does, as far as the lock knows.
 * what: "cc_mutex_unlock: mutex". */
void cc__holder_check(_Atomic uint64_t *owner, bool held, const char *what, const void *object);

/* Something that is free was given back; or that is held in another way: "by a writer", "by readers". */
CC_NORETURN CC_COLD void cc__holder_free(const char *what, const void *object);
CC_NORETURN CC_COLD void cc__holder_otherwise(const char *what, const void *object, const char *how);

#endif
