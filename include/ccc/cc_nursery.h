/* cc_nursery.h - structured concurrency: fibers that belong to a scope and do not outlive it, and cancellation that
 * reaches every wait below.
 *
 * A nursery owns the fibers started in it. The first failure cancels the others, and the wait returns its code. Scopes
 * form a tree: cancelling one, or its deadline, cancels everything below.
 *
 * Cancelled means: every wait of every fiber below (channel, select, sleep, join, lock, nursery), the current one and
 * all later ones, returns ECANCELED until the fiber leaves the scope. The operation has then not taken place: nothing
 * was sent, received, taken or joined. An operation that need not wait succeeds as usual: a loop that never waits must
 * check cc_cancelled. Some check by themselves: calls on descriptors, connections and files after 64 calls without a
 * wait or a yield (cc_fd.h), cc_ticker_wait always.
 */
#ifndef CCC_CC_NURSERY_H
#define CCC_CC_NURSERY_H

#include <ccc/cc_base.h>
#include <ccc/cc_channel.h>
#include <ccc/cc_panic.h>
#include <ccc/cc_sched.h>
#include <ccc/cc_task.h>
#include <ccc/cc_time.h>

CC_BEGIN_DECLS

typedef struct CCNursery CCNursery;

/* A child fails by returning one of these: an errno value from 1 to CC_ERROR_MAX, cast to a pointer. Any other
 * pointer, NULL included, is success. So a child must not return a small number as its result: (void *)3 is ESRCH.
 * A child that returns an int is a CC_CHILD, or is started by cc_nursery_spawn_status. */
#define CC_ERROR(code) ((void *)(intptr_t)(code))
#define CC_ERROR_MAX 4095

/* The same with a text for the caller that waits: return cc_fail(EIO, "cannot read %s", path). The nursery fails at
 * once, not only when the child returns. Outside a nursery's child it only makes the pointer. Any context; does not
 * switch. */
CC_API void *cc_fail(int code, const char *format, ...)
#if defined(__GNUC__)
    __attribute__((format(printf, 2, 3)))
#endif
    ;

typedef enum CCNurseryMode {
    CC_NURSERY_FIRST = 0,     /* the first failure cancels the others; the first few texts are kept */
    CC_NURSERY_COLLECT = 1,   /* keeps the text of every failure */
    CC_NURSERY_KEEP_GOING = 2 /* a failure does not cancel the others; may be or-ed with the above */
} CCNurseryMode;

#define CC_ERROR_TEXT_MAX 160

/* One failure, or the reason of a cancellation. */
typedef struct CCError {
    int code;                     /* 0: none */
    CCFiberId who;                /* the fiber that failed or cancelled; 0: an OS thread, or a deadline */
    char name[CC_FIBER_NAME_MAX]; /* its name */
    char text[CC_ERROR_TEXT_MAX];
    uint64_t reserved[4];
} CCError;

/* A field that is 0 or NULL means the default. C++ wants the names in this order. */
typedef struct CCNurseryConfig {
    /* CC_NURSERY: receives the result of the wait; NULL: a failure is propagated. */
    int *result CC__ZERO;
    CCNursery *parent CC__ZERO;   /* default: the innermost scope that the caller is in */
    bool root CC__ZERO;           /* no parent at all */
    int mode CC__ZERO;            /* CCNurseryMode */
    CCDeadline deadline CC__ZERO; /* default: none of its own */
    /* How long shields hold after a cancellation, counted from when a worker can set the timer; 0: forever. */
    uint64_t grace_ms CC__ZERO;
    const char *name CC__ZERO;     /* for messages; copied as by cc_fiber_set_name */
    uint64_t reserved[4] CC__ZERO; /* 0; see cc_base.h. The last field: CC_NURSERY ends its list with it */
} CCNurseryConfig;

/* Creates a nursery below `parent` (NULL: below the caller's innermost scope). Returns NULL and sets errno on error.
 * ENOMEM: no memory; EINVAL: invalid settings; with a deadline also the errors of cc_run. The parent must outlive this
 * one. Any context; does not switch. */
CC_API CCNursery *cc_nursery_create(CCNursery *parent);
/* The same with all settings; config may be NULL. */
CC_API CCNursery *cc_nursery_create_ex(const CCNurseryConfig *config);

/* Cancels and waits for the remaining children, runs the exit hooks and closes the channels if no wait has done so, and
 * frees everything, the arena included. A child's failure that neither a wait nor cc_nursery_failures has returned
 * fails the enclosing nursery; without one it is reported on stderr. NULL is allowed. EDEADLK: the caller is a child or
 * an exit hook; nothing is done. A double free aborts the program where it is detected. Any context; switches. */
CC_API int cc_nursery_free(CCNursery *nursery);

/* Starts fn(arg) as a child, which need not be joined. In a cancelled nursery the child starts cancelled. Errors as
 * cc_spawn: EINVAL, ENOMEM, ECANCELED (the runtime is shutting down). Any context; does not switch. */
CC_API int cc_nursery_spawn(CCNursery *nursery, CCTaskFn fn, void *arg);
/* With options, and with a handle that may be joined or detached (task may be NULL). */
CC_API int cc_nursery_spawn_ex(CCNursery *nursery, CCTask *task, CCTaskFn fn, void *arg, const CCSpawnOptions *options);
/* Starts a child that returns a status: 0, or an errno value from 1 to CC_ERROR_MAX with which it fails. Anything else
 * fails with EINVAL and a text that says so. The rest as above. */
CC_API int cc_nursery_spawn_status(CCNursery *nursery, int (*fn)(void *arg), void *arg);

/* Defines a child with or without arguments (as CC_TASK) that returns such a status:
 *
 *   CC_CHILD(fetch, { const char *url; }) {
 *       return download(self->url);
 *   }
 *   CC_GO_IN(n, fetch, .url = "http://example.org");
 */
#define CC_CHILD(...) CC__GLUE(CC__CHILD_, CC__ONE_OR_MANY(__VA_ARGS__))(__VA_ARGS__)
#define CC__CHILD_ONE(child_name) CC__CHILD_MANY(child_name, { char cc_none; })
#define CC__CHILD_MANY(child_name, ...)                                          \
    struct child_name##_args __VA_ARGS__;                                        \
    CC__TASK_ARGS(struct child_name##_args);                                     \
    static int child_name(struct child_name##_args *self);                       \
    CC_UNUSED static inline void *child_name##_entry(void *cc_args) {            \
        return cc_child_status(child_name((struct child_name##_args *)cc_args)); \
    }                                                                            \
    static int child_name(CC_UNUSED struct child_name##_args *self)
/* Converts a status to the return value of a CCTaskFn; by cc_fail. */
CC_API void *cc_child_status(int status);

/* For CC_GO_IN. On an error (ENOMEM; ECANCELED in a shutdown) no child runs, and the nursery does not fail. */
CC_API int cc_nursery_go(CCNursery *nursery, CCTaskFn entry, const void *args, size_t size);
#define CC_GO_IN(nursery, ...) CC__GLUE(CC__GO_IN_, CC__ONE_OR_MANY(__VA_ARGS__))(nursery, __VA_ARGS__)
#ifndef __cplusplus
#define CC__GO_IN_ONE(nursery, task_name) CC__GO_IN_MANY(nursery, task_name, 0)
#define CC__GO_IN_MANY(nursery, task_name, ...)                                          \
    cc_nursery_go((nursery), task_name##_entry, &(struct task_name##_args){__VA_ARGS__}, \
                  sizeof(struct task_name##_args))
#endif

/* Waits until all children have ended, then runs the exit hooks, latest first, and closes the channels in the order of
 * their registration; both once, and once more if a hook has started a child. If several callers wait, one of them does
 * this, and none returns before it is done. Returns the code of the first failure; else, if this nursery itself was
 * cancelled, the code of the reason (ETIMEDOUT for its deadline, also if that has passed when the wait starts); else,
 * if the cancellation came from outside, ECANCELED; else 0. Outside means a scope above, or the caller: a cancelled
 * caller cancels the nursery and still waits for its end. EDEADLK: the caller is a child of the nursery or of one below
 * it. EINVAL: NULL. More children may be started afterwards. Any context; switches. */
CC_API int cc_nursery_wait(CCNursery *nursery);
/* Returns ETIMEDOUT at the deadline, or ECANCELED when the caller is cancelled; the children continue. */
CC_API int cc_nursery_wait_until(CCNursery *nursery, CCDeadline deadline);

/* Cancels the nursery and everything below; the first reason is kept. code: a positive errno value, 0: ECANCELED; text
 * may be NULL. EINVAL. Any context; does not switch. */
CC_API int cc_nursery_cancel(CCNursery *nursery);
CC_API int cc_nursery_cancel_with(CCNursery *nursery, int code, const char *text);

/* Cancels the nursery with ETIMEDOUT at that time, at once if it has passed, whatever the deadlines above; CC_FOREVER
 * or {0} removes the deadline. ETIMEDOUT: the previous deadline has already passed. EINVAL, ENOMEM: the previous
 * deadline stays; ECANCELED: the runtime is shutting down. A pending deadline keeps the runtime up like a task. Any
 * context; does not switch in a fiber. */
CC_API int cc_nursery_set_deadline(CCNursery *nursery, CCDeadline deadline);

/* The number of children now; the number of failures so far; the index-th failure, counted from 0 (ESRCH: not kept, or
 * there is none). 0 for NULL. Any context; does not switch. */
CC_API size_t cc_nursery_children(CCNursery *nursery);
CC_API size_t cc_nursery_failures(CCNursery *nursery);
CC_API int cc_nursery_failure(CCNursery *nursery, size_t index, CCError *error);

/* Register a channel to be closed (it must exist until then), or fn(arg) to be called, at the nursery's exit. EINVAL,
 * ENOMEM. Any context; does not switch. */
CC_API int cc_nursery_autoclose(CCNursery *nursery, CCChan *ch);
CC_API int cc_nursery_at_exit(CCNursery *nursery, void (*fn)(void *arg), void *arg);

/* Zeroed memory, aligned for any type, that is freed with the nursery. NULL: no memory. Any context; does not
 * switch. */
CC_API void *cc_nursery_alloc(CCNursery *nursery, size_t size);

/* Sets a value under a key (any address of yours) for all fibers below; the innermost value wins. What it points to
 * must exist until the nursery is freed. EINVAL, ENOMEM. Any context; does not switch. */
CC_API int cc_nursery_set_value(CCNursery *nursery, const void *key, void *value);
/* The value for the calling fiber; NULL: none. Any context; does not switch. */
CC_API void *cc_value(const void *key);

/* ---- in a fiber ---- */

/* Return true, or ECANCELED, if the caller (a fiber, or an OS thread in a block) is cancelled and not shielded, or is a
 * fiber whose waits are being ended by a shutdown, shielded or not. For loops that do not wait: reads the clock if
 * there is a deadline. Any context; does not switch. */
CC_API bool cc_cancelled(void);
CC_API int cc_check_cancel(void);

/* The reason of the caller's cancellation. ESRCH: the caller is not cancelled (shields do not matter here). Any
 * context; does not switch. */
CC_API int cc_cancel_reason(CCError *reason);

/* The earliest deadline of the scopes around the caller, those outside of a shield included; CC_FOREVER: none. Any
 * context; does not switch. */
CC_API CCDeadline cc_deadline(void);

/* Cancels one task: its waits return ECANCELED from now on. A nursery of its own that it waits for is cancelled too.
 * Errors as cc_task_detach. The handle stays valid. Any context; does not switch. */
CC_API int cc_task_cancel(const CCTask *task);

/* Between the two calls no cancellation of the surrounding scopes ends a wait of the caller: for work that must be
 * finished. Scopes opened in between are not shielded (see CC_SHIELD). The calls nest, with each other and with blocks.
 * cc_shield_begin returns whether it has raised the shield; pass that to cc_shield_end. On an OS thread outside all
 * blocks they do nothing. Does not switch. */
CC_API bool cc_shield_begin(void);
CC_API void cc_shield_end(bool begun);

/* ---- scopes that read like blocks ----
 *
 *   CC_NURSERY(n) {
 *       for (int i = 0; i < 4; i++) CC_GO_IN(n, fetch, .url = urls[i]);
 *   }                                          all of them have ended here
 *
 *   int rc;
 *   CC_NURSERY(n, .result = &rc, .deadline = cc_after_ms(100), .name = "lookup") { … }
 *
 * The block is a loop that runs once: break and continue in it leave the block, not a loop around it.
 * However control leaves the block (its end, break, return, goto), the nursery is waited for and freed; a panic or a
 * C++ exception cancels it first. The block itself belongs to the scope, in a fiber and on an OS thread: when a child
 * fails, or the deadline passes, its waits are cancelled too. A fiber that ends inside (longjmp out of the block)
 * aborts the program with a message. If there is no memory for a nursery, or its settings are invalid, the block is
 * skipped and .result is ENOMEM or EINVAL; without .result the program aborts. With a deadline, on an OS thread while
 * the runtime is shutting down, the block is executed, and the nursery is cancelled from the start.
 *
 * Without .result a failure is not lost: the enclosing nursery (its parent; for .root the one that the caller is in)
 * fails with the same code and text, as if its own child had failed. Without an enclosing nursery the caller panics at
 * the end of the block: a fiber ends with ENOTRECOVERABLE, an OS thread outside cc_try aborts the program. The failure
 * is that of a child; else the reason with which the nursery itself was cancelled (ETIMEDOUT for its deadline), unless
 * that is ECANCELED. A cancellation from above is not a failure. If control leaves the block by a panic, no second
 * panic starts: the failure is written to stderr.
 */
#if defined(__GNUC__)
/* unused: clang does not count the clean-up as a use. */
#define CC_CLEANUP(function) __attribute__((cleanup(function), unused))
/* Tells the compiler that the block is always executed, so variables set in it are initialised afterwards. */
#define CC__ALWAYS __attribute__((returns_nonnull))
#else
#define CC__ALWAYS
#endif
#define CC_NURSERY(...) CC__NURSERY(__VA_ARGS__, .reserved = {0})
#ifndef __cplusplus
#define CC__NURSERY(var, ...)                                                                              \
    for (CCNursery * var CC_CLEANUP(cc_nursery_leave) = cc_nursery_enter(&(CCNurseryConfig){__VA_ARGS__}), \
                         *cc_once_##var = var;                                                             \
         cc_once_##var != NULL; cc_once_##var = NULL)
#else /* at the end of this file */
#define CC__NURSERY(var, ...)                                                                               \
    for (cc_nursery_block_ cc_block_##var(__extension__ CCNurseryConfig{__VA_ARGS__}); cc_block_##var.once; \
         cc_block_##var.once = false)                                                                       \
        for (CCNursery *var = cc_block_##var.nursery; var != NULL; var = NULL)
#endif
CC_API CCNursery *cc_nursery_enter(const CCNurseryConfig *config);
CC_API void cc_nursery_leave(CCNursery **nursery);

/* When the deadline passes, the waits in the block and everything below it are cancelled:
 *
 *   CC_WITH_DEADLINE(cc_after_ms(250)) { … }
 *
 * A second argument, a bool *, is set at the end of the block to whether that has happened:
 *
 *   bool late;
 *   CC_WITH_DEADLINE(cc_after_ms(250), &late) { … }
 *   if (late) …
 *
 * It works on OS threads too, where it starts the runtime if necessary. cc_cancel_reason returns ETIMEDOUT inside;
 * after the block the caller is no longer cancelled. On an OS thread while the runtime is shutting down the block is
 * cancelled from the start, with ECANCELED. Without memory the program aborts; where that matters use a nursery. */
typedef struct CCDeadlineScope {
    CCDefer deferred;
    void *scope;
    bool *fired;          /* NULL, or set to whether the deadline has passed */
    uint64_t reserved[1]; /* the library's */
} CCDeadlineScope;
#define CC_WITH_DEADLINE(...) CC__GLUE(CC__WITH_DEADLINE_, CC__ONE_OR_MANY(__VA_ARGS__))(__VA_ARGS__)
#define CC__WITH_DEADLINE_ONE(point) \
    CC__WITH_DEADLINE(cc_deadline_enter, CC__UNIQUE(cc_scope_), CC__UNIQUE(cc_once_), (point))
#define CC__WITH_DEADLINE_MANY(point, fired_pointer) \
    CC__WITH_DEADLINE(cc_deadline_enter_ex, CC__UNIQUE(cc_scope_), CC__UNIQUE(cc_once_), (point), (fired_pointer))
#define CC__WITH_DEADLINE(enter, var, once, ...) \
    for (CCDeadlineScope var CC_CLEANUP(cc_deadline_leave), *once = enter(&var, __VA_ARGS__); once != NULL; once = NULL)
CC_API CC__ALWAYS CCDeadlineScope *cc_deadline_enter(CCDeadlineScope *scope, CCDeadline deadline);
CC_API CC__ALWAYS CCDeadlineScope *cc_deadline_enter_ex(CCDeadlineScope *scope, CCDeadline deadline, bool *fired);
CC_API void cc_deadline_leave(CCDeadlineScope *scope);

/* No cancellation of the surrounding scopes ends a wait in the block:  CC_SHIELD { … }
 *
 * Scopes opened inside are not shielded: their own deadlines and failures end the waits in them. So clean-up that must
 * finish within a bound is
 *
 *   CC_SHIELD { CC_WITH_DEADLINE(cc_after_ms(500)) { … } }
 *
 * Children of nurseries opened inside are not shielded. Those that a call has only for its own work are: the pieces of
 * cc_parallel_for, the program of cc_process_run, the attempts of cc_dial. */
typedef struct CCShield {
    CCDefer deferred;
    bool begun;
    uint64_t reserved[2]; /* the library's */
} CCShield;
#define CC_SHIELD CC__SHIELD(CC__UNIQUE(cc_shield_), CC__UNIQUE(cc_once_))
#define CC__SHIELD(var, once) \
    for (CCShield var CC_CLEANUP(cc_shield_leave), *once = cc_shield_enter(&var); once != NULL; once = NULL)
CC_API CC__ALWAYS CCShield *cc_shield_enter(CCShield *shield);
CC_API void cc_shield_leave(CCShield *shield);

CC_END_DECLS

#ifdef __cplusplus
#if defined(__cpp_exceptions)
#include <exception>
#define CC__THROWN() std::uncaught_exceptions()
#else
#define CC__THROWN() 0
#endif

#define CC__GO_IN_ONE(nursery, task_name) cc_nursery_go_cxx_((nursery), task_name##_entry, task_name##_args{})
#define CC__GO_IN_MANY(nursery, task_name, ...) CC__GO_IN_CXX(nursery, task_name, CC__UNIQUE(cc_args_), __VA_ARGS__)
#define CC__GO_IN_CXX(nursery, task_name, var, ...)                                \
    __extension__({                                                                \
        CC__SOME_FIELDS_BEGIN const task_name##_args var{__VA_ARGS__};             \
        CC__SOME_FIELDS_END cc_nursery_go_cxx_((nursery), task_name##_entry, var); \
    })
template <typename Args> inline int cc_nursery_go_cxx_(CCNursery *nursery, CCTaskFn entry, const Args &args) {
    static_assert(__is_trivially_copyable(Args), "the arguments of a task are copied like memory");
    return cc_nursery_go(nursery, entry, &args, sizeof args);
}

/* CC_NURSERY in C++: an exception that leaves the block cancels the nursery, as a panic does. */
struct cc_nursery_block_ {
    CCNursery *nursery;
    bool once;
    int thrown;
    explicit cc_nursery_block_(const CCNurseryConfig &config)
        : nursery(cc_nursery_enter(&config)), once(nursery != NULL), thrown(CC__THROWN()) {}
    cc_nursery_block_(const cc_nursery_block_ &) = delete;
    cc_nursery_block_ &operator=(const cc_nursery_block_ &) = delete;
    ~cc_nursery_block_() {
        if (nursery != NULL && CC__THROWN() > thrown)
            (void)cc_nursery_cancel_with(nursery, 0, "an exception leaves the block");
        cc_nursery_leave(&nursery);
    }
};
#endif

#endif
