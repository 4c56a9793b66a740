/* cc_sched.h - the runtime as a whole, and the running fiber.
 *
 * The runtime starts at its first use, with the defaults and the settings of the environment: CC_WORKERS,
 * CC_MAX_WORKERS, CC_STACK_SIZE and others, all of which ccc(7) lists.
 */
#ifndef CCC_CC_SCHED_H
#define CCC_CC_SCHED_H

#include <ccc/cc_base.h>

CC_BEGIN_DECLS

/* What a task runs: takes one pointer, returns one. */
typedef void *(*CCTaskFn)(void *arg);

/* A field that is 0 takes its value from the environment, else the default. */
typedef struct CCRuntimeConfig {
    /* OS threads that run fibers; 1 … CC_WORKERS_MAX. Default: the number of usable CPUs. Workers in excess of the
     * usable CPUs are started only when others are blocked. */
    unsigned workers;
    /* Bytes per fiber stack; CC_STACK_SIZE_MIN … CC_STACK_SIZE_MAX, rounded up to a power of two. Default: 256 KiB.
     * Seven eighths of it, less the part of the guard inside it (16 KiB; 4 KiB for the smallest stacks), are available
     * to the fiber's frames. */
    size_t stack_size;
    /* Slots of the global run queue's ring; a power of two, 2 … 2^24. Default: 4096. */
    size_t queue_slots;
    /* The maximum number of workers while some are stuck in a system call or a long computation and fibers wait;
     * workers … CC_WORKERS_MAX. Equal to workers: the number is fixed. Default: twice the workers; if CC_WORKERS has
     * set their number, that number. */
    unsigned max_workers;
    /* true: the runtime never calls membarrier(2), as with CC_MEMBARRIER=0. For a program that later installs a seccomp
     * filter that does not allow the call: otherwise a membarrier that worked at the start and fails later aborts the
     * program. Costs a memory fence in most fiber operations. */
    bool no_membarrier;
    /* The exit status of a program that ends because of a deadlock; 1 … 255. Default: 124, as timeout(1) returns on a
     * timeout. */
    unsigned deadlock_status;
    /* The maximum number of OS threads of each pool for blocking calls (cc_blocking.h); 1 … CC_POOL_THREADS_MAX.
     * Default: CC_BLOCKING_MAX, or 64. */
    uint64_t blocking_max;
    uint64_t reserved[3]; /* 0; see cc_base.h */
} CCRuntimeConfig;

#define CC_WORKERS_MAX 512u
#define CC_STACK_SIZE_MIN ((size_t)16 * 1024)
#define CC_STACK_SIZE_MAX ((size_t)1024 * 1024 * 1024)

/* Replaces malloc and free for the library's memory; both functions, or neither. They are called on any thread, in
 * fibers, concurrently, and must not call this library. Stacks and tables are mapped, not allocated; the C library,
 * OpenSSL and C++ use their own allocators. */
typedef struct CCAllocator {
    /* Returns at least `size` bytes, aligned to `align`, a power of two up to 64; NULL: out of memory. */
    void *(*alloc)(size_t size, size_t align, void *context);
    void (*free)(void *p, void *context); /* a result of alloc, perhaps on another thread; never NULL */
    void *context;
    uint64_t reserved[4]; /* 0; see cc_base.h */
} CCAllocator;

/* Sets the functions for the process, before any other call of the library; NULL: malloc and free. EBUSY: the library
 * has already allocated memory; nothing is changed; EINVAL: one function without the other, or a nonzero reserved word.
 * OS threads; does not switch. */
CC_API int cc_allocator_set(const CCAllocator *allocator);

/* Starts the runtime. config may be NULL. EINVAL: a value out of range, or a nonzero reserved word; EALREADY: already
 * running; ENOMEM, EAGAIN: no memory or no threads; EDEADLK: called from a fiber, or by a thread_local destructor of a
 * worker. A server with many descriptors should raise RLIMIT_NOFILE and call it before it starts other threads: only
 * then is the descriptor table grown in advance. OS threads; does not switch. */
CC_API int cc_runtime_init(const CCRuntimeConfig *config);

/* Stops the runtime. Waits up to timeout_ms for all tasks to end; then refuses new ones, makes cc_cancelled true in
 * fibers, and for the same time again, at least 100 ms, ends the waits of every fiber with ECANCELED, shielded or not.
 * It looks for them every 1 to 8 ms: a later wait lasts until then, and is not cancelled if it can end before, by its
 * deadline for example. Waits of OS threads are not ended. Returns 0 when all tasks and workers have ended, or if the
 * runtime was not running. ETIMEDOUT: some tasks are still running; they are named on stderr, and the runtime
 * continues. EDEADLK: called from a fiber, on a thread of a pool for blocking calls, by on_start or on_end of an
 * island, or by a thread_local destructor of a worker, whose waits without a deadline return ECANCELED. The runtime may
 * be started again afterwards. Task handles and islands of before are void (ESRCH); channels and nurseries stay valid.
 * OS threads; blocks. */
CC_API int cc_runtime_shutdown(uint64_t timeout_ms);

/* Runs fn(arg) as a fiber and waits for its end; *result (may be NULL) gets its result. A cancelled caller cancels the
 * fiber, as by cc_task_cancel, still waits for its end, and gets ECANCELED. EINVAL: fn is NULL; ENOMEM; EAGAIN: no
 * threads; ECANCELED: see above, or the runtime is shutting down; ENOTRECOVERABLE: fn panicked. Any context;
 * switches. */
CC_API int cc_run(CCTaskFn fn, void *arg, void **result);

/* Lets every other fiber that is ready on this worker run first. On an OS thread: sched_yield. Any context;
 * switches. */
CC_API void cc_yield(void);

/* True in a fiber; false in a hosted call (cc_panic.h), whose waits block its thread. Any context; does not switch. */
CC_API bool cc_in_fiber(void);

/* The id of the running fiber or hosted call; 0 otherwise. Any context; does not switch. */
CC_API CCFiberId cc_fiber_id(void);

/* Names the running fiber, for messages and dumps; copied, truncated to CC_FIBER_NAME_MAX - 1 bytes, and before
 * the first control character or byte that is not UTF-8. NULL removes the name. EPERM outside a fiber. Fibers; does not
 * switch. */
CC_API int cc_fiber_set_name(const char *name);

/* The running fiber's name, "" without one or outside a fiber; valid until the fiber ends or is
 * renamed. Any context; does not switch. */
CC_API const char *cc_fiber_name(void);

/* Returns the unused part of the running fiber's stack to the system, in whole pages: after a deep call, before a long
 * wait. The pages are mapped again, zeroed, on their next use. Costs about a microsecond. EPERM outside a fiber.
 * Fibers; does not switch. */
CC_API int cc_fiber_trim_stack(void);

#define CC_FIBER_NAME_MAX 32

/* The number of workers: CCRuntimeConfig.workers, or more, up to max_workers, while some are stuck; 0 while the runtime
 * is not running. Workers in excess of the usable CPUs have threads only while they are needed. Any context; does not
 * switch. */
CC_API unsigned cc_worker_count(void);

CC_END_DECLS

#endif
