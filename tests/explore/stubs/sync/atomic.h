/* atomic.h - the explorer's stub for src/sync/atomic.h: the same names, each a call of the explorer with the
 * order that the name promises.
 */
#ifndef CC_SYNC_ATOMIC_H
#define CC_SYNC_ATOMIC_H

#include "base/attr.h"
#include "explore.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define EX_TEXT_(x) #x
#define EX_TEXT(x) EX_TEXT_(x)
#define EX_AT(what) __FILE__ ":" EX_TEXT(__LINE__) " " what

/* The type of *p without _Atomic, as lvalue conversion leaves it. */
#define EX_TYPE(p) __typeof__((void)0, *(p))

#define EX_LOAD(p, order)                                                                    \
    __extension__({                                                                          \
        __auto_type ex_p = (p);                                                              \
        EX_TYPE(ex_p) ex_v;                                                                  \
        uint64_t ex_u = ex_load((const volatile void *)ex_p, sizeof ex_v, order, EX_AT(#p)); \
        __builtin_memcpy(&ex_v, &ex_u, sizeof ex_v);                                         \
        ex_v;                                                                                \
    })
#define EX_STORE(p, v, order)                                                 \
    __extension__({                                                           \
        __auto_type ex_p = (p);                                               \
        EX_TYPE(ex_p) ex_v = (v);                                             \
        uint64_t ex_u = 0;                                                    \
        __builtin_memcpy(&ex_u, &ex_v, sizeof ex_v);                          \
        ex_store((volatile void *)ex_p, sizeof ex_v, ex_u, order, EX_AT(#p)); \
    })
#define EX_RMW(p, v, op, order)                                                        \
    __extension__({                                                                    \
        __auto_type ex_p = (p);                                                        \
        EX_TYPE(ex_p) ex_v = (v);                                                      \
        uint64_t ex_u = 0;                                                             \
        __builtin_memcpy(&ex_u, &ex_v, sizeof ex_v);                                   \
        ex_u = ex_rmw((volatile void *)ex_p, sizeof ex_v, op, ex_u, order, EX_AT(#p)); \
        __builtin_memcpy(&ex_v, &ex_u, sizeof ex_v);                                   \
        ex_v;                                                                          \
    })
#define EX_CAS(p, expected, v, order, weak)                                                           \
    __extension__({                                                                                   \
        __auto_type ex_p = (p);                                                                       \
        EX_TYPE(ex_p) *ex_e = (expected), ex_v = (v);                                                 \
        uint64_t ex_u = 0, ex_x = 0;                                                                  \
        __builtin_memcpy(&ex_u, &ex_v, sizeof ex_v);                                                  \
        __builtin_memcpy(&ex_x, ex_e, sizeof ex_v);                                                   \
        bool ex_ok = ex_cas((volatile void *)ex_p, sizeof ex_v, &ex_x, ex_u, order, weak, EX_AT(#p)); \
        if (!ex_ok) __builtin_memcpy(ex_e, &ex_x, sizeof ex_v);                                       \
        ex_ok;                                                                                        \
    })

#define cc__get(p) EX_LOAD(p, EX_RELAXED)
#define cc__set(p, v) EX_STORE(p, v, EX_RELAXED)
#define cc__get_acquire(p) EX_LOAD(p, EX_ACQUIRE)
#define cc__set_release(p, v) EX_STORE(p, v, EX_RELEASE)
#define cc__get_seq(p) EX_LOAD(p, EX_SEQ)
#define cc__set_seq(p, v) ((void)EX_RMW(p, v, EX_SWAP, EX_SEQ))
#define cc__swap(p, v) EX_RMW(p, v, EX_SWAP, EX_ACQ_REL)
#define cc__swap_seq(p, v) EX_RMW(p, v, EX_SWAP, EX_SEQ)
#define cc__cas(p, expected, v) EX_CAS(p, expected, v, EX_ACQ_REL, false)
#define cc__cas_weak(p, expected, v) EX_CAS(p, expected, v, EX_ACQ_REL, true)
#define cc__cas_seq(p, expected, v) EX_CAS(p, expected, v, EX_SEQ, false)
#define cc__cas_relaxed(p, expected, v) EX_CAS(p, expected, v, EX_RELAXED, true)
#define cc__add(p, n) EX_RMW(p, n, EX_ADD, EX_ACQ_REL)
#define cc__sub(p, n) EX_RMW(p, n, EX_SUB, EX_ACQ_REL)
#define cc__or(p, bits) EX_RMW(p, bits, EX_OR, EX_ACQ_REL)
#define cc__and(p, bits) EX_RMW(p, bits, EX_AND, EX_ACQ_REL)
#define cc__add_seq(p, n) EX_RMW(p, n, EX_ADD, EX_SEQ)
#define cc__sub_seq(p, n) EX_RMW(p, n, EX_SUB, EX_SEQ)
#define cc__or_seq(p, bits) EX_RMW(p, bits, EX_OR, EX_SEQ)
#define cc__and_seq(p, bits) EX_RMW(p, bits, EX_AND, EX_SEQ)
#define cc__add_relaxed(p, n) EX_RMW(p, n, EX_ADD, EX_RELAXED)
#define cc__set_release_hidden(p, v) cc__set_release(p, v)
#define cc__bump(p) cc__set((p), cc__get(p) + 1)
#define cc__compiler_fence() __asm__ volatile("" ::: "memory")
#define cc__full_fence() ex_fence()

#endif
