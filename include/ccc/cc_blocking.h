/* cc_blocking.h - run calls that block their OS thread on a pool thread while the fiber is parked.
 *
 * For calls that have no non-blocking form: a library that reads from its own socket, a name lookup, a file on a slow
 * disk. Meanwhile the worker runs other fibers.
 *
 *   static void *query(void *sql) { return run_query(db, sql); }
 *   void *rows;
 *   if (cc_blocking(query, "select ...", &rows) == 0) ...
 *
 * A pool starts without threads, starts one when a call finds none idle, up to its limit, and ends threads that were
 * idle for ten seconds (CC_BLOCKING_IDLE_MS). Calls that find all threads busy wait in FIFO order. Pools share nothing:
 * calls in one pool never delay calls in another.
 *
 * A call costs about 8 us on a busy machine, and up to 50 us when the CPUs are idle.
 *
 * fn runs on an OS thread, outside the caller's nurseries and scopes: cc_in_fiber() is false there, and waits block.
 * cc_blocking within fn calls its function directly. The thread blocks all signals except those of its own faults, and
 * a child that fn starts by fork(2) or popen(3) inherits that: SIGTERM does not end it. Children of cc_process.h have
 * an empty mask. A panic in fn, or a C++ exception that leaves it, is reported as in a fiber, and the caller gets
 * ENOTRECOVERABLE. errno is that of the pool thread: return it if the caller needs it.
 */
#ifndef CCC_CC_BLOCKING_H
#define CCC_CC_BLOCKING_H

#include <ccc/cc_base.h>
#include <ccc/cc_sched.h>
#include <ccc/cc_time.h>

CC_BEGIN_DECLS

/* ---- pools ---- */

typedef struct CCPool CCPool;

/* The predefined pools. Each has up to CC_BLOCKING_MAX threads, 64 by default; the pool for slow calls has a quarter of
 * that. NULL means CC_POOL_DEFAULT. */
#define CC_POOL_DEFAULT ((CCPool *)0)
#define CC_POOL_FILE ((CCPool *)1) /* files */
#define CC_POOL_SLOW ((CCPool *)2) /* calls that may take many seconds, and are few at a time: name lookups */

#define CC_POOL_THREADS_MAX 4096u

/* Creates a private pool of up to `threads` threads, 1 … CC_POOL_THREADS_MAX. With one thread, calls run one after the
 * other. EINVAL, ENOMEM: *pool is set to NULL. Any context; does not switch. */
CC_API CC_MUST_CHECK int cc_pool_create(CCPool **pool, unsigned threads);

/* Stops the pool's threads and frees it; NULL is allowed. EBUSY: calls are in progress, abandoned ones included.
 * EINVAL: a predefined pool. EDEADLK: called on a pool thread. Any context; does not switch, but blocks until its idle
 * threads have ended. */
CC_API int cc_pool_free(CCPool *pool);

/* ---- calls ---- */

/* Calls fn(arg) on a thread of the pool and waits until it has returned; *result (may be NULL) gets its return value.
 *
 * ECANCELED: the caller is cancelled, or the runtime shuts down; fn was not called. Once fn has started, the caller
 * always waits until it returns, because its arguments may be on the caller's stack. ENOTRECOVERABLE: fn panicked,
 * *result is NULL. EAGAIN: the pool has no thread and the system cannot create one; fn was not called. EINVAL: fn is
 * NULL. ENOMEM: _until could not allocate its timer; fn was not called.
 *
 * On an OS thread, and in a simulation, fn is called directly, unless a deadline has passed: in a simulated fiber it
 * is inside the caller's scopes. Any context; switches. */
CC_API CC_MUST_CHECK int cc_blocking(CCTaskFn fn, void *arg, void **result);

/* The same with a deadline for the start of the call. ETIMEDOUT: it has not started by then, and fn was not called. */
CC_API CC_MUST_CHECK int cc_blocking_until(CCTaskFn fn, void *arg, void **result, CCDeadline deadline);

/* A field that is 0 or NULL means the default. */
typedef struct CCBlockingOptions {
    CCPool *pool;
    /* The caller may return ECANCELED or ETIMEDOUT even after fn has started. fn continues, and its result is passed to
     * `cleanup`. arg must not point to the caller's stack then; see arg_size. */
    bool may_abandon;
    /* > 0: the number of bytes at arg to copy; fn gets the copy, aligned to 16 bytes. At most CC_BLOCKING_ARG_MAX. */
    size_t arg_size;
    /* With may_abandon: called once if the caller returns ECANCELED or ETIMEDOUT, to free what arg and result own. It
     * runs after fn, on its thread, with its result (NULL after a panic); or, if fn was not called, in the caller
     * before it returns, with a NULL result. May be NULL. */
    void (*cleanup)(void *arg, void *result);
    uint64_t reserved[4]; /* 0; see cc_base.h */
} CCBlockingOptions;

#define CC_BLOCKING_ARG_MAX ((size_t)64 * 1024)

/* The same with options (may be NULL). EINVAL: also arg_size above its limit, arg NULL with arg_size > 0, cleanup
 * without may_abandon, a nonzero reserved word. ENOMEM: also no memory for an abandonable call or for the copy; neither
 * fn nor cleanup was called. An OS thread with may_abandon uses the pool as a fiber does, except on a pool thread,
 * where fn is called directly. A shutdown of the runtime waits for abandoned calls as for tasks. */
CC_API CC_MUST_CHECK int cc_blocking_ex(CCTaskFn fn, void *arg, void **result, const CCBlockingOptions *options,
                                        CCDeadline deadline);

/* Defines a function with named arguments, and calls it:
 *
 *   CC_BLOCKING(load, { sqlite3 *db; int64_t key; }) {
 *       return load_row(self->db, self->key);
 *   }
 *   int rc = CC_BLOCKING_CALL(load, &row, .db = db, .key = 17);
 *
 * CC_BLOCKING_CALL is cc_blocking with the arguments on the caller's stack. Omitted arguments are 0; in C++ the members
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
