/* holder.h - who holds a lock, and whether the caller of an unlock is the holder.
 *
 * In debug builds the holder is a fiber's id, or an OS thread's number with the top bit set. In other builds it is the
 * stack pointer at the call that took the lock, which costs one store: an unlock with the same stack pointer comes from
 * the same frame, and is accepted by one comparison. Any other unlock looks up which stack that pointer is in
 * (cc__holder_check). 0: no holder, or a waiter that was handed the lock and has not run yet.
 *
 * Stacks that belong to no fiber do not identify an OS thread: one thread may have several (a hosted call, coroutines
 * of the program). So the thread is recorded too: a mutex stores it beside the holder, because its fast path does not
 * check what the caller is; on slower paths an OS thread stores it in place of the stack pointer, with the top bit set.
 *
 * A rwlock does not record its readers. Each caller keeps the number of read locks that it holds, and the sum of their
 * addresses.
 *
 * HOLDER-1  The holder is cleared before the lock is released, and written by the next holder: while the lock is held,
 *           the value is that of its holder.
 * HOLDER-2  In a release build the check accepts what it cannot decide: a fiber that runs on a stack of the program's
 *           own, and OS threads on a CPU that does not tell them apart (cc__machine_thread).
 * HOLDER-3  A read unlock by a caller without read locks is refused. A caller with one read lock can unlock only that
 *           one. A caller with several can unlock a lock that it does not hold; its last unlock is then refused.
 */
#ifndef CC_LOCK_HOLDER_H
#define CC_LOCK_HOLDER_H

#include "arch/machine.h"
#include "sched/sched.h"

/* The stack pointer at the entry of the function that uses it, which need not have a frame. */
#define cc__holder_entry() ((uint64_t)(uintptr_t)__builtin_dwarf_cfa() - CC_RETURN_ON_STACK * sizeof(void *))

#define HOLDER_THREAD (UINT64_C(1) << 63) /* the other bits identify an OS thread, not a fiber */

#ifdef CC_DEBUG
uint64_t cc__holder_self(void);

CC_INLINE void cc__holder_enter_at(_Atomic uint64_t *owner, uint64_t entry) {
    (void)entry;
    cc__set(owner, cc__holder_self());
}
CC_INLINE void cc__holder_enter(_Atomic uint64_t *owner, _Atomic uint32_t *thread) {
    (void)thread;
    cc__set(owner, cc__holder_self());
}
CC_INLINE bool cc__holder_here(_Atomic uint64_t *owner) {
    return cc__get(owner) == cc__holder_self();
}
CC_INLINE bool cc__holder_at(_Atomic uint64_t *owner, uint64_t entry) {
    (void)entry;
    return cc__holder_here(owner);
}
/* Before a wait: aborts the program if the caller is the holder. */
void cc__holder_again(_Atomic uint64_t *owner, const char *what, const void *object);
#else
CC_INLINE void cc__holder_enter_at(_Atomic uint64_t *owner, uint64_t entry) {
    cc__set(owner, likely(cc__worker() != NULL) ? entry : HOLDER_THREAD | cc__machine_thread());
}
/* The lock was taken with this stack pointer. */
CC_INLINE bool cc__holder_at(_Atomic uint64_t *owner, uint64_t entry) {
    return cc__get(owner) == entry;
}
/* In a function that has no frame at this place. */
CC_INLINE void cc__holder_enter(_Atomic uint64_t *owner, _Atomic uint32_t *thread) {
    cc__set(thread, cc__machine_thread());
    cc__set(owner, cc__machine_sp());
}
/* As above: the holder called from the frame that calls now. */
CC_INLINE bool cc__holder_here(_Atomic uint64_t *owner) {
    return cc__get(owner) == cc__machine_sp();
}
CC_INLINE void cc__holder_again(_Atomic uint64_t *owner, const char *what, const void *object) {
    (void)owner, (void)what, (void)object;
}
#endif

/* What a caller keeps about its read locks: their number, in the low bits, and the sum of their addresses. */
#define READS_ONE UINT64_C(1)
#define READS_COUNT ((UINT64_C(1) << 20) - 1)
CC_INLINE uint64_t cc__holder_as_read(const void *object) {
    return (uint64_t)(uintptr_t)object << 17 | READS_ONE; /* it is aligned to 8 */
}

extern _Thread_local uint64_t cc__holder_thread_reads __attribute__((tls_model("initial-exec")));

CC_INLINE uint64_t *cc__holder_reads(void) {
    struct fiber *f = cc__sched_current(cc__worker());
    if (unlikely(f == NULL)) return &cc__holder_thread_reads;
    struct fiber_cold *cold = cc__get(&cc__get(&f->stack)->cold);
    if (unlikely(cold->reader != cc__pool_id(f))) {
        cold->reader = cc__pool_id(f);
        cold->reads = 0;
    }
    return &cold->reads;
}

/* The caller has taken a read lock. */
CC_INLINE void cc__holder_read_entered(const void *object) {
    *cc__holder_reads() += cc__holder_as_read(object);
}

CC_NORETURN CC_COLD void cc__holder_not_reader(bool of_another, const char *what, const void *object);

/* The caller releases a read lock; aborts the program if it does not hold it. */
CC_INLINE void cc__holder_read_left(const char *what, const void *object) { /* HOLDER-3 */
    uint64_t *reads = cc__holder_reads(), one = cc__holder_as_read(object);
    if (unlikely(*reads != one && (*reads & READS_COUNT) <= READS_ONE))
        cc__holder_not_reader((*reads & READS_COUNT) != 0, what, object);
    *reads -= one;
}

/* Before the lock is released (HOLDER-1). */
CC_INLINE void cc__holder_clear(_Atomic uint64_t *owner) {
    cc__set(owner, 0);
}

/* Aborts the program unless the caller holds the lock. thread: as cc__holder_enter has left it; 0: it was not called.
 * held: whether the lock is held, according to its word. what: "cc_mutex_unlock: mutex". */
void cc__holder_check(_Atomic uint64_t *owner, uint32_t thread, bool held, const char *what, const void *object);

/* An unlock of a free lock, or of one that is held in another way: "by a writer", "by readers". */
CC_NORETURN CC_COLD void cc__holder_free(const char *what, const void *object);
CC_NORETURN CC_COLD void cc__holder_otherwise(const char *what, const void *object, const char *how);

#endif
