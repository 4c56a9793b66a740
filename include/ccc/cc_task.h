/* cc_task.h - start a fiber, hold a handle to it, wait for its result.
 *
 * A handle is consumed by one successful join or by detach; cc_task_dup creates another one. Several callers may wait
 * on copies of one handle at the same time: all of them get the result. Use of a consumed handle is detected: ESRCH.
 */
#ifndef CCC_CC_TASK_H
#define CCC_CC_TASK_H

#include <ccc/cc_base.h>
#include <ccc/cc_sched.h>
#include <ccc/cc_time.h>

CC_BEGIN_DECLS

typedef struct CCTask {
    CCFiberId id; /* 0: no task */
} CCTask;

/* cc_island.h */
typedef struct CCIsland CCIsland;
#define CC_NO_ISLAND ((CCIsland *)(uintptr_t)1)

/* A field that is 0 or NULL means the default. */
typedef struct CCSpawnOptions {
    const char *name;     /* copied, truncated to CC_FIBER_NAME_MAX - 1 bytes */
    size_t stack_size;    /* CC_STACK_SIZE_MIN … CC_STACK_SIZE_MAX; as in CCRuntimeConfig */
    size_t arg_size;      /* > 0: arg points to that many bytes; they are copied, and fn gets the copy, aligned to
                          CC_SPAWN_ARG_ALIGN */
    CCIsland *island;     /* its island (cc_island.h); CC_NO_ISLAND: none; NULL: that of the caller */
    uint64_t reserved[3]; /* 0; see cc_base.h */
} CCSpawnOptions;

#define CC_SPAWN_ARG_MAX ((size_t)64 * 1024)
#define CC_SPAWN_ARG_ALIGN 16 /* enough for all types except over-aligned ones (alignas, vectors) */

/* Starts fn(arg) as a fiber. It belongs to no nursery and inherits no scope of the caller: no cancellation, deadline or
 * value. For those, start it in a nursery (cc_nursery.h). On failure (fn NULL, no memory, shutdown) the handle is {0},
 * for which every call below returns EINVAL. Any context; does not switch. */
CC_API CCTask cc_fiber_spawn_task(CCTaskFn fn, void *arg);

/* The same with options (may be NULL) and an error code. task NULL: starts it detached. On failure *task is {0}.
 * EINVAL: fn NULL, stack_size out of range, arg_size above CC_SPAWN_ARG_MAX, arg NULL with arg_size > 0, a nonzero
 * reserved word; ENOMEM: no fiber record; EAGAIN: the runtime could not start its threads; ECANCELED: it is shutting
 * down. Any context; does not switch. */
CC_API int cc_spawn(CCTask *task, CCTaskFn fn, void *arg, const CCSpawnOptions *options);

/* Waits for the task's end, stores its result (result may be NULL) and consumes the handle: *task becomes {0}. ENOMEM:
 * the task never ran, because no stack could be allocated, and the handle is consumed; or _until had no memory for its
 * timer, and *task is not {0}. ENOTRECOVERABLE: the task panicked (cc_panic.h), *result is NULL and the handle is
 * consumed. On every other error the handle stays valid. EINVAL: NULL or {0}; ESRCH: already consumed; EDEADLK: a fiber
 * joins itself; ECANCELED: the caller was cancelled (cc_nursery.h), or the runtime is shutting down; _try: EAGAIN while
 * the task is running; _until: ETIMEDOUT. Any context; switches, _try does not. */
CC_API int cc_task_join(CCTask *task, void **result);
CC_API int cc_task_join_try(CCTask *task, void **result);
CC_API int cc_task_join_until(CCTask *task, void **result, CCDeadline deadline);

/* Joins and returns the result; NULL if the join fails, also if the caller is cancelled: then the task continues. Any
 * context; switches. */
CC_API void *cc_block_on(CCTask task);

/* Releases the handle: the task continues, and its result is dropped. EINVAL, ESRCH as above; ECANCELED: the runtime is
 * shutting down. Any context; does not switch. */
CC_API int cc_task_detach(CCTask *task);

/* Creates another handle to the same task, to be joined or detached separately. EINVAL (also for copy == task), ESRCH,
 * ECANCELED as above; EOVERFLOW: UINT32_MAX - 1 handles exist. Any context; does not switch. */
CC_API int cc_task_dup(const CCTask *task, CCTask *copy);

/* For CC_GO: starts entry with a copy of `size` bytes at args. */
CC_API CCTask cc_task_go(CCTaskFn entry, const void *args, size_t size);

/* Defines a task with arguments, which are copied into the fiber: no malloc, nothing to free.
 *
 *   CC_TASK(resize, { Image *img; int width, height; }) {
 *       scale(self->img, self->width, self->height);
 *       return NULL;
 *   }
 *   CCTask t = CC_GO(resize, .img = photo, .width = 640, .height = 480);
 *
 * Arguments omitted in CC_GO are 0; CC_GO(resize) omits all. In C++ the members must be named in the order of the
 * struct, which must be trivially copyable. A task without arguments is CC_TASK(tick) { … }, started by CC_GO(tick).
 * Arguments that need a larger alignment than CC_SPAWN_ARG_ALIGN, or take more than CC_SPAWN_ARG_MAX bytes, do not
 * compile: pass a pointer to them.
 */
#define CC__TASK_ARGS(type)                                                                                 \
    CC__ASSERT(CC__ALIGNOF(type) <= CC_SPAWN_ARG_ALIGN, "the copy of a task's arguments is aligned to 16"); \
    CC__ASSERT(sizeof(type) <= CC_SPAWN_ARG_MAX, "a task's arguments take at most 64 KiB: pass a pointer to them")
#define CC_TASK(...) CC__GLUE(CC__TASK_, CC__ONE_OR_MANY(__VA_ARGS__))(__VA_ARGS__)
#define CC__TASK_ONE(task_name) CC__TASK_MANY(task_name, { char cc_none; })
#define CC__TASK_MANY(task_name, ...)                                \
    struct task_name##_args __VA_ARGS__;                             \
    CC__TASK_ARGS(struct task_name##_args);                          \
    static void *task_name(struct task_name##_args *self);           \
    CC_UNUSED static inline void *task_name##_entry(void *cc_args) { \
        return task_name((struct task_name##_args *)cc_args);        \
    }                                                                \
    static void *task_name(CC_UNUSED struct task_name##_args *self)

#define CC_GO(...) CC__GLUE(CC__GO_, CC__ONE_OR_MANY(__VA_ARGS__))(__VA_ARGS__)
#ifndef __cplusplus
#define CC__GO_ONE(task_name) CC__GO_MANY(task_name, 0)
#define CC__GO_MANY(task_name, ...) \
    cc_task_go(task_name##_entry, &(struct task_name##_args){__VA_ARGS__}, sizeof(struct task_name##_args))
#endif

CC_END_DECLS

#ifdef __cplusplus
/* C++17 has no designated initialisers, but compilers support them. */
#define CC__GO_ONE(task_name) cc_task_go_cxx_(task_name##_entry, task_name##_args{})
#define CC__GO_MANY(task_name, ...) CC__GO_CXX(task_name, CC__UNIQUE(cc_args_), __VA_ARGS__)
#define CC__GO_CXX(task_name, var, ...)                                \
    __extension__({                                                    \
        CC__SOME_FIELDS_BEGIN const task_name##_args var{__VA_ARGS__}; \
        CC__SOME_FIELDS_END cc_task_go_cxx_(task_name##_entry, var);   \
    })
template <typename Args> inline CCTask cc_task_go_cxx_(CCTaskFn entry, const Args &args) {
    static_assert(__is_trivially_copyable(Args), "the arguments of a task are copied like memory");
    return cc_task_go(entry, &args, sizeof args);
}
#endif

#endif
