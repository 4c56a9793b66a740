/* cc_blocking.h - calls that block their OS thread, made on a thread of a pool while the fiber parks.
 *
 * For what cannot be waited for in any other way: a library that reads from its own socket, a name that is looked up, a
 * file on a slow disk. The worker of the fiber goes on with other fibers meanwhile.
 *
 *   static void *query(void *sql) { return run_query(db, sql); }
 *   void *rows;
 *   if (cc_blocking(query, "select ...", &rows) == 0) ...
 *
 * A pool has no thread to begin with, starts one when a call finds none idle, up to its limit, and ends those that were
 * idle for ten seconds (CC_BLOCKING_IDLE_MS). Calls that find all of them busy wait in order. Pools share nothing:
 * calls of one cannot keep those of another waiting.
 *
 * A call costs some 8 us when the machine is busy, and up to 50 us when its CPUs sleep.
 *
 * fn is called on an OS thread, outside of the caller's nurseries and scopes: there cc_in_fiber() is false, and waits
 * block. cc_blocking within fn calls its function directly. The thread gets no signals but those of its own faults. A
 * panic in fn, or a C++ exception that leaves it, is reported as that of a fiber, and the caller gets ENOTRECOVERABLE.
 * errno is the thread's own: return it.
 */
#ifndef CCC_CC_BLOCKING_H
#define CCC_CC_BLOCKING_H

#include <ccc/cc_base.h>
#include <ccc/cc_sched.h>
#include <ccc/cc_time.h>

CC_BEGIN_DECLS

/* ---- pools ---- */

typedef struct CCPool CCPool;

/* The pools that are always there. Each has up to CC_BLOCKING_MAX threads, 64 by default, the one for slow calls a
 * quarter of that. NULL stands for CC_POOL_DEFAULT. */
#define CC_POOL_DEFAULT ((CCPool *)0)
#define CC_POOL_FILE ((CCPool *)1) /* files */
#define CC_POOL_SLOW ((CCPool *)2) /* calls that may take many seconds, and need not be many at a time: names */

#define CC_POOL_THREADS_MAX 4096u

/* A pool of one's own: of up to `threads` threads, 1 … CC_POOL_THREADS_MAX. One thread calls one function after the
 * other. EINVAL, ENOMEM; *pool is NULL then. Any context; does not switch. */
CC_API CC_MUST_CHECK int cc_pool_create(CCPool **pool, unsigned threads);

/* Ends its threads and frees it; NULL: nothing. EBUSY: calls are under way, abandoned ones included. EINVAL: it is one
 * of the pools that are always there. EDEADLK: by a thread of a pool. Any context; does not switch, and waits for its
 * idle threads to end. */
CC_API int cc_pool_free(CCPool *pool);

/* ---- calls ---- */

/* Calls fn(arg) on a thread of the pool and waits until it has returned; *result (may be NULL) is what it returned.
 *
 * ECANCELED: the caller is cancelled, or the runtime shuts down; fn was not called. A call that has begun is waited
 * for, whatever happens meanwhile: its arguments may be on the caller's stack. ENOTRECOVERABLE: fn panicked, *result is
 * NULL. EAGAIN: the system gives no thread and the pool has none; fn was not called. EINVAL: fn is NULL. ENOMEM: _until
 * found no memory for its timer; fn was not called.
 *
 * On an OS thread, and in a simulation, fn is called directly. Any context; switches. */
CC_API CC_MUST_CHECK int cc_blocking(CCTaskFn fn, void *arg, void **result);

/* The same; ETIMEDOUT: the call has not begun by then, and fn was not called. */
CC_API CC_MUST_CHECK int cc_blocking_until(CCTaskFn fn, void *arg, void **result, CCDeadline deadline);

/* A field that is 0 or NULL means the default. */
typedef struct CCBlockingOptions {
    CCPool *pool;
    /* The caller leaves also when the call has begun: with ECANCELED or ETIMEDOUT. The call goes on, and what it
     * returns is for `cleanup`. arg must not be on the caller's stack then; see arg_size. */
    bool may_abandon;
    /* > 0: arg points to that many bytes; they are copied, and fn gets the copy, aligned to 16 bytes. At most
     * CC_BLOCKING_ARG_MAX. */
    size_t arg_size;
    /* With may_abandon: called once if the caller returns ECANCELED or ETIMEDOUT, to free what arg and result hold.
     * After fn, on its thread, with its result (NULL after a panic); or, if fn was not called, by the caller before it
     * returns, with the result NULL. May be NULL. */
    void (*cleanup)(void *arg, void *result);
    uint64_t reserved[4]; /* 0; see cc_base.h */
} CCBlockingOptions;

#define CC_BLOCKING_ARG_MAX ((size_t)64 * 1024)

/* The same with options (may be NULL). EINVAL: also arg_size above its limit, arg NULL with arg_size > 0, cleanup
 * without may_abandon, a reserved word not 0. ENOMEM: also no memory for a call that may be abandoned, or for the copy;
 * neither fn nor cleanup was called. An OS thread that may abandon the call waits for it like a fiber, except on a
 * thread of a pool, where fn is called directly. A shutdown of the runtime waits for abandoned calls as for tasks. */
CC_API CC_MUST_CHECK int cc_blocking_ex(CCTaskFn fn, void *arg, void **result, const CCBlockingOptions *options,
                                        CCDeadline deadline);

/* A function with arguments, and the call of it:
 *
 *   CC_BLOCKING(load, { sqlite3 *db; int64_t key; }) {
 *       return load_row(self->db, self->key);
 *   }
 *   int rc = CC_BLOCKING_CALL(load, &row, .db = db, .key = 17);
 *
 * CC_BLOCKING_CALL is cc_blocking: the arguments are on the caller's stack. What it leaves out is 0; in C++ the members
 * must be named in the order of the struct. */
#define CC_BLOCKING(...) CC__GLUE(CC__BLOCKING_, CC__ONE_OR_MANY(__VA_ARGS__))(__VA_ARGS__)
#define CC__BLOCKING_ONE(call_name) CC__BLOCKING_MANY(call_name, { char cc_none; })
#define CC__BLOCKING_MANY(call_name, ...)                            \
    struct call_name##_args __VA_ARGS__;                             \
    static void *call_name(struct call_name##_args *self);           \
    CC_UNUSED static inline void *call_name##_entry(void *cc_args) { \
        return call_name((struct call_name##_args *)cc_args);        \
    }                                                                \
    static void *call_name(CC_UNUSED struct call_name##_args *self)

#define CC_BLOCKING_CALL(call_name, ...) \
    CC__GLUE(CC__BLOCKING_CALL_, CC__ONE_OR_MANY(__VA_ARGS__))(call_name, __VA_ARGS__)
#ifndef __cplusplus
#define CC__BLOCKING_CALL_ONE(call_name, result) CC__BLOCKING_CALL_MANY(call_name, result, 0)
#define CC__BLOCKING_CALL_MANY(call_name, result, ...) \
    cc_blocking(call_name##_entry, &(struct call_name##_args){__VA_ARGS__}, result)
#else
#define CC__BLOCKING_CALL_ONE(call_name, result) CC__BLOCKING_CXX(call_name, CC__UNIQUE(cc_args_), result, )
#define CC__BLOCKING_CALL_MANY(call_name, result, ...) \
    CC__BLOCKING_CXX(call_name, CC__UNIQUE(cc_args_), result, __VA_ARGS__)
#define CC__BLOCKING_CXX(call_name, var, result, ...)                     \
    __extension__({                                                       \
        CC__SOME_FIELDS_BEGIN call_name##_args var{__VA_ARGS__};          \
        CC__SOME_FIELDS_END cc_blocking(call_name##_entry, &var, result); \
    })
#endif

CC_END_DECLS

#endif
