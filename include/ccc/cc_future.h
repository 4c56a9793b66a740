/* cc_future.h - tasks with a typed result: start now, await later.
 *
 *   CC_ASYNC(Response, fetch, { int id; const char *host; }) {
 *       return ask(self->host, self->id);
 *   }
 *
 *   Response r = CC_CALL(fetch, .id = 3, .host = "gamma");      an ordinary call: no task
 *
 *   CC_FUTURE(fetch, a);
 *   CC_FUTURE(fetch, b);
 *   CC_START(&a, fetch, .id = 1, .host = "alpha");              both run
 *   CC_START(&b, fetch, .id = 2, .host = "beta");
 *   use(CC_AWAIT(&a), CC_AWAIT(&b));                            Response, not void *
 *
 * A future holds the arguments and the value of its task, of any size, and lives in the block that declares it. So a
 * task never outlives that block: however control leaves it (end of block, return, break, goto, a panic, a C++
 * exception), a task that was not awaited is joined first. If the caller is cancelled, or leaves by a panic or an
 * exception, the task is cancelled before it is joined. The value and the error of such a task are dropped. The task
 * does not inherit the scopes of the block: cc_value and cc_deadline (cc_nursery.h) do not find them there.
 *
 * For a task that outlives the block use CC_GO (cc_task.h).
 */
#ifndef CCC_CC_FUTURE_H
#define CCC_CC_FUTURE_H

#include <ccc/cc_base.h>
#include <ccc/cc_nursery.h>
#include <ccc/cc_panic.h>
#include <ccc/cc_task.h>
#include <ccc/cc_time.h>

CC_BEGIN_DECLS

typedef enum CCFutureState {
    CC_FUTURE_EMPTY,   /* not started */
    CC_FUTURE_RUNNING, /* started and not awaited */
    CC_FUTURE_AWAITED  /* the value is there */
} CCFutureState;

/* The common part of all futures. The fields are private, except `task`, which may be passed to cc_task_cancel: of a
 * CC_FUTURE(fetch, f) it is f.future.task. */
typedef struct CCFuture {
    CCDefer deferred;
    CCTask task;
    CCFiberId id;     /* of the task, also after its end */
    const char *name; /* of the function */
    void *value;
    size_t size; /* of *value */
    int error;   /* set by the function */
    int ended;   /* the result of the join */
    uint32_t state;
    int thrown; /* C++: uncaught exceptions when the block began */
    bool left;  /* control has left the block, other than by a panic or an exception */
    uint64_t reserved[2];
} CCFuture;

/* Defines a function that can be called, or started as a task; with or without arguments, as CC_TASK. It returns a T,
 * any type but void or an array; in C++ a trivially copyable one. `self` points to the arguments. */
#define CC_ASYNC(T, ...) CC__GLUE(CC__ASYNC_, CC__ONE_OR_MANY(__VA_ARGS__))(T, __VA_ARGS__)
#define CC__ASYNC_ONE(T, async_name) CC__ASYNC_MANY(T, async_name, { char cc_none; })
#define CC__ASYNC_MANY(T, async_name, ...)                                                                      \
    CC__ASSERT_PLAIN(T, "what an async function returns is copied like memory");                                \
    struct async_name##_args __VA_ARGS__;                                                                       \
    typedef struct async_name##_future {                                                                        \
        CCFuture future;                                                                                        \
        T value;                                                                                                \
        struct async_name##_args async_name##_args;                                                             \
    } async_name##_future;                                                                                      \
    static T async_name(struct async_name##_args *self, int *cc_error);                                         \
    CC_UNUSED static inline T async_name##_call(struct async_name##_args cc_args) {                             \
        int cc_error = 0;                                                                                       \
        T cc_value = async_name(&cc_args, &cc_error);                                                           \
        if (cc_error != 0) cc_future_failed(#async_name, cc_error);                                             \
        return cc_value;                                                                                        \
    }                                                                                                           \
    /* Not _entry: CC_GO, whose tasks get the arguments alone, does not compile. */                             \
    CC_UNUSED static inline void *async_name##_task(void *cc_future) {                                          \
        async_name##_future *cc_f = (async_name##_future *)cc_future;                                           \
        cc_f->value = async_name(&cc_f->async_name##_args, &cc_f->future.error);                                \
        return NULL;                                                                                            \
    }                                                                                                           \
    CC_UNUSED static inline async_name##_future *async_name##_enter(async_name##_future *cc_f) {                \
        cc_future_enter_(&cc_f->future, #async_name, &cc_f->value, sizeof cc_f->value);                         \
        CC__FUTURE_THROWS(cc_f);                                                                                \
        return cc_f;                                                                                            \
    }                                                                                                           \
    CC_UNUSED static inline void async_name##_leave(async_name##_future *cc_f) {                                \
        cc_future_leave_(&cc_f->future, CC__FUTURE_THROWN(cc_f));                                               \
    }                                                                                                           \
    /* In line, so that the task's origin is the caller. */                                                     \
    CC_UNUSED static inline int async_name##_start(async_name##_future *cc_f, struct async_name##_args cc_args, \
                                                   size_t cc_size) {                                            \
        (void)cc_size;                                                                                          \
        if (cc_f->future.state == CC_FUTURE_RUNNING) cc_future_misused(&cc_f->future);                          \
        cc_f->async_name##_args = cc_args;                                                                      \
        cc_f->future.error = 0;                                                                                 \
        cc_f->future.ended = cc_spawn(&cc_f->future.task, async_name##_task, cc_f, NULL);                       \
        cc_f->future.id = cc_f->future.task.id;                                                                 \
        cc_f->future.state = CC_FUTURE_RUNNING;                                                                 \
        return cc_f->future.ended;                                                                              \
    }                                                                                                           \
    static T async_name(CC_UNUSED struct async_name##_args *self, CC_UNUSED int *cc_error)

/* In the function: sets the error that accompanies the value, an errno value; 0: none. Does not return from the
 * function. */
#define CC_SET_ERROR(code) ((void)(*cc_error = (code)))

/* Declares a future of that function. It is a declaration, and goto, switch and longjmp must not jump over it. */
#define CC_FUTURE(async_name, var) \
    async_name##_future var CC_CLEANUP(async_name##_leave), *cc_future_##var CC_UNUSED = async_name##_enter(&var)

/* Starts the function as a task. Omitted arguments are 0, as in CC_GO. Errors as cc_spawn: ENOMEM, EAGAIN, ECANCELED;
 * the await returns them too. An awaited future may be started again. Starting one that is still running panics with a
 * message; the future of another function does not compile. Any context; does not switch. */
#define CC_START(f, ...) CC__GLUE(CC__START_, CC__ONE_OR_MANY(__VA_ARGS__))(f, __VA_ARGS__)

/* Waits for the end of the task and evaluates to the value, an lvalue inside the future. A cancelled caller cancels the
 * task, still waits for its end, and gets what the function returned (zeros, if a shutdown of the runtime prevented it
 * from starting). Panics with a message if the task has panicked, could not start, or has set an error other than
 * ECANCELED; where that may happen, use cc_await. Also panics if the future was not started, or was already awaited. To
 * discard the value: (void)CC_AWAIT(f). Any context; switches. */
#define CC_AWAIT(f) (*(__typeof__((f)->value) *)cc_future_await_(&(f)->future))

/* The same with a deadline and with errors. 0: the value is in f->value. ETIMEDOUT; ECANCELED, ENOMEM with a deadline:
 * the task continues and may be awaited again; the end of the block cancels it if the caller is cancelled then.
 * Otherwise the future counts as awaited: the error of CC_START; ENOTRECOVERABLE: the task has panicked; ENOMEM: no
 * stack for it; or the error set by the function, with its return value in f->value. Misuse panics as above. Any
 * context; switches. */
#define cc_await(f, deadline) cc_future_await_until(&(f)->future, (deadline))

/* Calls the function. Panics with a message if it sets an error other than ECANCELED; to get the error, call
 * name(&args, &error). Switches if the function does. */
#define CC_CALL(...) CC__GLUE(CC__CALL_, CC__ONE_OR_MANY(__VA_ARGS__))(__VA_ARGS__)

#ifndef __cplusplus
#define CC__START_ONE(f, async_name) CC__START_MANY(f, async_name, 0)
#define CC__START_MANY(f, async_name, ...) \
    async_name##_start((f), (struct async_name##_args){__VA_ARGS__}, sizeof(f)->async_name##_args)
#define CC__CALL_ONE(async_name) CC__CALL_MANY(async_name, 0)
#define CC__CALL_MANY(async_name, ...) async_name##_call((struct async_name##_args){__VA_ARGS__})
#else
#define CC__START_ONE(f, async_name) async_name##_start((f), async_name##_args{}, 0)
#define CC__START_MANY(f, async_name, ...) CC__START_CXX(f, async_name, CC__UNIQUE(cc_args_), __VA_ARGS__)
#define CC__START_CXX(f, async_name, var, ...)                          \
    __extension__({                                                     \
        CC__SOME_FIELDS_BEGIN const async_name##_args var{__VA_ARGS__}; \
        CC__SOME_FIELDS_END async_name##_start((f), var, 0);            \
    })
#define CC__CALL_ONE(async_name) async_name##_call(async_name##_args{})
#define CC__CALL_MANY(async_name, ...) CC__CALL_CXX(async_name, CC__UNIQUE(cc_args_), __VA_ARGS__)
#define CC__CALL_CXX(async_name, var, ...)                              \
    __extension__({                                                     \
        CC__SOME_FIELDS_BEGIN const async_name##_args var{__VA_ARGS__}; \
        CC__SOME_FIELDS_END async_name##_call(var);                     \
    })
#endif

/* ---- for the macros ---- */

#ifndef __cplusplus
#define CC__FUTURE_THROWS(f) ((void)(f))
#define CC__FUTURE_THROWN(f) false
#else
#define CC__FUTURE_THROWS(f) ((f)->future.thrown = CC__THROWN())
#define CC__FUTURE_THROWN(f) (CC__THROWN() > (f)->future.thrown)
#endif

/* The block's deferred call: joins the task if it was not awaited. */
CC_API void cc_future_end(void *future);
/* joined: the result of the join, or -1 if none was needed. Returns the value, if there is one. */
CC_API void *cc_future_await(CCFuture *f, int joined);
CC_API int cc_future_await_until(CCFuture *f, CCDeadline deadline);
/* These panic with a message; the second does nothing for ECANCELED. */
CC_API void cc_future_misused(const CCFuture *f);
CC_API void cc_future_failed(const char *name, int error);

static inline void cc_future_enter_(CCFuture *f, const char *name, void *value, size_t size) {
    f->deferred.fn = cc_future_end;
    f->deferred.arg = f;
    f->task.id = 0;
    f->name = name;
    f->value = value;
    f->size = size;
    f->state = CC_FUTURE_EMPTY;
    f->left = false;
    (void)cc_defer_enter(&f->deferred);
}
static inline void cc_future_leave_(CCFuture *f, bool thrown) {
    f->left = !thrown;
    if (f->state != CC_FUTURE_RUNNING && *f->deferred.list == &f->deferred)
        *f->deferred.list = f->deferred.next; /* as cc_defer_leave, without a call */
    else
        cc_defer_leave(&f->deferred);
}

static inline void *cc_future_await_(CCFuture *f) {
    int joined = f->state == CC_FUTURE_RUNNING && f->task.id != 0 ? cc_task_join(&f->task, NULL) : -1;
    if (joined != 0 || f->error != 0) return cc_future_await(f, joined);
    f->state = CC_FUTURE_AWAITED;
    return f->value;
}

CC_END_DECLS

#endif
