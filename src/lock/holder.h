/* holder.h - who holds a lock, and whether the caller of an unlock is the holder.
 *
 * The holder is a fiber's id, which no later fiber has, or a number of an OS thread with the top bit set, which no
 * later thread has. It does not depend on the stack that the caller runs on, which may be the program's own. 0: no
 * holder, or a waiter that was handed the lock and has not run yet.
 *
 * A rwlock does not record its readers. Each caller keeps the number of read locks that it holds, and the sum of their
 * addresses.
 *
 * HOLDER-1  The holder is cleared before the lock is released, and written by the next holder: while the lock is held,
 *           the value is that of its holder.
 * HOLDER-2  Two callers never have the same value, also if one of them ended before the other began: a lock that was
 *           left behind belongs to nobody who comes later.
 * HOLDER-3  A read unlock by a caller without read locks is refused. A caller with one read lock can unlock only that
 *           one. A caller with several can unlock a lock that it does not hold; its last unlock is then refused.
 */
#ifndef CC_LOCK_HOLDER_H
#define CC_LOCK_HOLDER_H

#include "sched/sched.h"

/* The holder is an OS thread: its number in the system, which is reused, and how many threads got theirs before. */
#define HOLDER_THREAD (UINT64_C(1) << 63)
#define HOLDER_TID_BITS 24 /* Linux uses 22 */
#define HOLDER_TID(holder) ((int)((holder) & ((UINT64_C(1) << HOLDER_TID_BITS) - 1)))

/* In a forked child: the thread that has forked keeps its locks, but has another number in the system. */
void cc__holder_forked(void);
/* The number that the holder, a thread of this process, has in the system. */
int cc__holder_tid(uint64_t holder);

/* 0: the thread has never held a lock. */
extern _Thread_local uint64_t cc__holder_thread __attribute__((tls_model("initial-exec")));
CC_COLD uint64_t cc__holder_new_thread(void);

/* The caller, as a holder: f, the running fiber, or if that is NULL the OS thread. */
CC_INLINE uint64_t cc__holder_of(struct fiber *f) {
    if (likely(f != NULL)) return cc__pool_id_running(f);
    uint64_t thread = cc__holder_thread;
    return likely(thread != 0) ? thread : cc__holder_new_thread();
}
CC_INLINE uint64_t cc__holder_self(void) {
    return cc__holder_of(cc__sched_current(cc__worker()));
}

/* The caller has taken the lock. */
CC_INLINE void cc__holder_enter(_Atomic uint64_t *owner) {
    cc__set(owner, cc__holder_self());
}
/* Whether the caller holds the lock. */
CC_INLINE bool cc__holder_is_self(_Atomic uint64_t *owner) {
    return cc__get(owner) == cc__holder_self();
}

/* Whether it is a fiber or thread that has ended. */
bool cc__holder_has_ended(uint64_t holder);

/* Before a wait, in debug builds: aborts the program if the caller is the holder. */
#ifdef CC_DEBUG
void cc__holder_again(_Atomic uint64_t *owner, const char *what, const void *object);
#else
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

/* Aborts the program unless the caller holds the lock. held: whether it is held, according to its word. what:
 * "cc_mutex_unlock: mutex". */
void cc__holder_check(_Atomic uint64_t *owner, bool held, const char *what, const void *object);

/* An unlock of a free lock, or of one that is held in another way: "by a writer", "by readers". wanted: the lock that
 * the caller would need, "read" or "write". */
CC_NORETURN CC_COLD void cc__holder_free(const char *what, const void *object);
CC_NORETURN CC_COLD void cc__holder_otherwise(const char *what, const void *object, const char *how,
                                              const char *wanted);

#endif
