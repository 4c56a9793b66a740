/* atomic.h - the only file that spells a memory order.
 *
 * Every shared word is accessed through these names, so that a checker can replace them all. The name gives the order:
 *
 *   get / set            relaxed: the word is its own message, or another operation orders it
 *   get_acquire / set_release
 *   cas, swap, add ...   acquire-release
 *   ..._seq              sequentially consistent: for "publish A, then look at B" pairs
 *
 * Fields of the scheduler that several fibers of one worker access are relaxed atomics: they need no ordering (one OS
 * thread), but a race detector sees fibers as threads.
 */
#ifndef CC_SYNC_ATOMIC_H
#define CC_SYNC_ATOMIC_H

#include "base/attr.h"

#include <stdatomic.h>

#define cc__get(p) atomic_load_explicit((p), memory_order_relaxed)
#define cc__set(p, v) atomic_store_explicit((p), (v), memory_order_relaxed)

#define cc__get_acquire(p) atomic_load_explicit((p), memory_order_acquire)
#define cc__set_release(p, v) atomic_store_explicit((p), (v), memory_order_release)

#define cc__get_seq(p) atomic_load_explicit((p), memory_order_seq_cst)
/* An exchange, because some emulators let a later load overtake a sequentially consistent store. Words only: some CPUs
 * cannot exchange bytes. */
#define cc__set_seq(p, v) ((void)atomic_exchange_explicit((p), (v), memory_order_seq_cst))

#define cc__swap(p, v) atomic_exchange_explicit((p), (v), memory_order_acq_rel)
#define cc__swap_seq(p, v) atomic_exchange_explicit((p), (v), memory_order_seq_cst)

/* Compare-and-swap; on failure *expected is the current value (acquire). */
#if defined(CC_TSAN) && !defined(__clang__)
/* gcc shows `expected` to the race detector; at the end of a fiber it would lie on the worker's stack. Here it stays in
 * a register. */
#define cc__cas(p, expected, v)                                                                       \
    ({                                                                                                \
        __typeof__(*(expected)) was_ = *(expected);                                                   \
        *(expected) = __sync_val_compare_and_swap((__typeof__(*(expected)) *)(void *)(p), was_, (v)); \
        *(expected) == was_;                                                                          \
    })
#define cc__cas_weak(p, expected, v) cc__cas(p, expected, v)
#define cc__cas_seq(p, expected, v) cc__cas(p, expected, v)
#define cc__cas_relaxed(p, expected, v) cc__cas(p, expected, v)
#else
#define cc__cas(p, expected, v) \
    atomic_compare_exchange_strong_explicit((p), (expected), (v), memory_order_acq_rel, memory_order_acquire)
#define cc__cas_weak(p, expected, v) \
    atomic_compare_exchange_weak_explicit((p), (expected), (v), memory_order_acq_rel, memory_order_acquire)
#define cc__cas_seq(p, expected, v) \
    atomic_compare_exchange_strong_explicit((p), (expected), (v), memory_order_seq_cst, memory_order_seq_cst)
#define cc__cas_relaxed(p, expected, v) \
    atomic_compare_exchange_weak_explicit((p), (expected), (v), memory_order_relaxed, memory_order_relaxed)
#endif

#define cc__add(p, n) atomic_fetch_add_explicit((p), (n), memory_order_acq_rel)
#define cc__sub(p, n) atomic_fetch_sub_explicit((p), (n), memory_order_acq_rel)
#define cc__or(p, bits) atomic_fetch_or_explicit((p), (bits), memory_order_acq_rel)
#define cc__and(p, bits) atomic_fetch_and_explicit((p), (bits), memory_order_acq_rel)
#define cc__add_seq(p, n) atomic_fetch_add_explicit((p), (n), memory_order_seq_cst)
#define cc__sub_seq(p, n) atomic_fetch_sub_explicit((p), (n), memory_order_seq_cst)
#define cc__or_seq(p, bits) atomic_fetch_or_explicit((p), (bits), memory_order_seq_cst)
#define cc__and_seq(p, bits) atomic_fetch_and_explicit((p), (bits), memory_order_seq_cst)
#define cc__add_relaxed(p, n) atomic_fetch_add_explicit((p), (n), memory_order_relaxed)

/* A release on another fiber's behalf, after the switch away from it: the race detector, which sees fibers as threads,
 * must not attribute it to the current fiber. */
#ifdef CC_TSAN
void cc__set_release_hidden(_Atomic uint64_t *p, uint64_t v);
#else
#define cc__set_release_hidden(p, v) cc__set_release(p, v)
#endif

/* A counter that only its owner writes: no read-modify-write needed. */
CC_INLINE void cc__bump(_Atomic uint64_t *counter) {
    cc__set(counter, cc__get(counter) + 1);
}

/* Keeps the compiler, not the CPU, from moving accesses across: the cheap half of an asymmetric pair. */
#define cc__compiler_fence() atomic_signal_fence(memory_order_seq_cst)

/* A full fence of the CPU: the fallback of the cheap half where the system offers no asymmetric barrier. */
#define cc__full_fence() atomic_thread_fence(memory_order_seq_cst)

#endif
