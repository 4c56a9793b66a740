/* cc_panic.h - panic, defer and recover; and hosted calls, on a fiber's stack.
 *
 * As in Go, with one difference imposed by C. A panic runs the deferred functions, latest first. In Go a recover
 * returns from the function that deferred it; C cannot return from an outer function, so here a recover ends the
 * innermost *scope*: a function called by cc_try or cc_hosted_call, or else the whole fiber.
 *
 *   static void parse(void *arg) {
 *       struct job *job = arg;
 *       job->file = open_file(job->name);           // panics when it cannot
 *       CC_DEFER(close_file, job->file);            // when this block is left, however that happens
 *       ...
 *   }
 *   CCPanic why;
 *   if (cc_try(parse, &job, &why) != 0) printf("%s: %s\n", job.name, why.message);
 *
 * An unrecovered panic ends only its fiber: it is written to stderr with a backtrace, and joins of the fiber return
 * ENOTRECOVERABLE. On an OS thread outside every scope it aborts the program.
 *
 * The functions that a panic leaves are not resumed: they must release their resources by deferred functions.
 *
 * A C++ exception that leaves the function of a scope, a fiber's included, becomes a panic there, after its destructors
 * have run: "uncaught exception", the type and what() (cc_cxx.h).
 */
#ifndef CCC_CC_PANIC_H
#define CCC_CC_PANIC_H

#include <ccc/cc_base.h>
#include <ccc/cc_sched.h>

CC_BEGIN_DECLS

#define CC_PANIC_MESSAGE_MAX 256
#define CC_PANIC_FRAMES_MAX 32

/* One panic: its message, its fiber and a backtrace. */
typedef struct CCPanic {
    uint64_t generation;                     /* counts the panics of the process, from 1 */
    CCFiberId fiber;                         /* cc_fiber_id() of the caller of cc_panic */
    char name[CC_FIBER_NAME_MAX];            /* cc_fiber_name() */
    char message[CC_PANIC_MESSAGE_MAX];      /* truncated if longer */
    unsigned frame_count;                    /* the number of entries in `frames` */
    unsigned frames_guessed;                 /* bit n: frames[n] may be wrong, for lack of unwind information */
    const void *frames[CC_PANIC_FRAMES_MAX]; /* return addresses, the caller of cc_panic first */
    uint64_t reserved[4];
} CCPanic;

typedef void (*CCDeferFn)(void *arg);

#if defined(__GNUC__)
#define CC_PANIC_CALL_ __attribute__((noreturn, format(printf, 1, 2)))
#else
#define CC_PANIC_CALL_
#endif

/* Panics: runs the deferred functions of the innermost scope, latest first, and ends the scope. Does not
 * return. A panic in a deferred function replaces the previous one, and the remaining functions still run. fmt NULL: no
 * message. On an OS thread outside every scope: aborts with a message, without running deferred functions. Any context;
 * switches if a deferred function does. */
CC_API void cc_panic(const char *fmt, ...) CC_PANIC_CALL_;

/* For errors that must end the program: writes the message and a backtrace to stderr and aborts. No
 * deferred function is run, and cc_recover cannot stop it. Any context. */
CC_API void cc_panic_fatal(const char *fmt, ...) CC_PANIC_CALL_;

/* Called in a deferred function (or below one) during a panic: stops the panic, stores it in *info (may be NULL) and
 * returns true. The remaining deferred functions of the scope still run; then the scope ends normally: cc_try returns
 * 0, a fiber ends with the result NULL. Returns false, with *info untouched, if there is no panic or it was already
 * stopped. Any context; does not switch. */
CC_API bool cc_recover(CCPanic *info);

/* Calls fn(arg) in a new scope. 0: it returned, or a deferred function stopped its panic; functions deferred by
 * cc_defer in it have run. ENOTRECOVERABLE: it panicked, and *info (may be NULL) describes the panic; nothing is
 * printed. EINVAL: fn is NULL. To propagate the panic, panic again: cc_panic("%s", info.message). The floating-point
 * modes are left as they were at the panic. Any context; switches if fn does. */
CC_API int cc_try(CCDeferFn fn, void *arg, CCPanic *info);

/* Defers fn(arg) until the innermost scope ends, normally or by a panic; latest first. EINVAL: fn is NULL;
 * EPERM: an OS thread outside every scope; ENOMEM. Any context; does not switch. */
CC_API int cc_defer(CCDeferFn fn, void *arg);

/* Defers fn(arg) until control leaves the enclosing block: at its end, by return, break, goto, or a panic. It is a
 * declaration; fn and arg are evaluated here. Allocates nothing and cannot fail. goto, switch and longjmp must not jump
 * over it. Any context; does not switch itself. */
#define CC_DEFER(fn, arg) CC_DEFER_AT_(__COUNTER__, fn, arg)

/* Writes "ccc: panic ..." and the backtrace to stderr. info NULL: nothing. Any context; does not
 * switch. */
CC_API void cc_panic_print(const CCPanic *info);

/* Finds the panic that ended the fiber with that id (the id of a CCTask, saved before the join). Only the last
 * CC_PANICS_KEPT are kept. ESRCH: not among them; EINVAL: id 0 or info NULL. Any context; does not switch. */
CC_API int cc_panic_find(CCFiberId id, CCPanic *info);

#define CC_PANICS_KEPT 64

/* Calls fn(arg) in a new scope, on the calling OS thread but on a fiber's stack: of the default size, guarded, with
 * overflows reported. It has a fiber id of the kind "hosted", but the calling thread drives it: it is in no run queue,
 * cc_in_fiber() is false, and where a fiber would park the thread blocks. It may wait for tasks, channels, locks and
 * time, but not for I/O. In a fiber, or within another hosted call, fn is called on the current stack. 0: *result (may
 * be NULL) is what fn returned, NULL after a recovered panic. ENOTRECOVERABLE: it panicked; *info (may be NULL)
 * describes the panic. EINVAL: fn is NULL; ENOMEM: no stack; EAGAIN: the runtime could not start its threads. Any
 * context; switches if fn does. */
CC_API int cc_hosted_call(CCTaskFn fn, void *arg, void **result, CCPanic *info);

/* ---- for CC_DEFER ---- */

/* A deferred call; lives in the block of its CC_DEFER. */
typedef struct CCDefer {
    struct CCDefer *next;
    CCDeferFn fn;
    void *arg;
    struct CCDefer **list;
} CCDefer;

CC_API CCDefer *cc_defer_enter(CCDefer *defer);
CC_API void cc_defer_leave(CCDefer *defer);

#define CC_DEFER_AT_(number, fn, arg) CC_DEFER_IN_(number, fn, arg) /* expands __COUNTER__ first */
#define CC_DEFER_IN_(number, fn, arg)                                                               \
    CCDefer cc_defer_##number __attribute__((cleanup(cc_defer_leave))) = {NULL, (fn), (arg), NULL}, \
                              *cc_defer_in_##number __attribute__((unused)) = cc_defer_enter(&cc_defer_##number)

CC_END_DECLS

#endif
