/* cc_panic.h - panic, defer and recover; and calls on a stack of their own.
 *
 * As in Go, with one difference that C dictates. A panic runs the deferred functions, latest first. In Go a
 * recover ends the function that deferred it; C cannot leave a function from below, so it ends the innermost
 * *scope*: a function that was called by cc_try or cc_hosted_call, or else the whole fiber.
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
 * A panic that is not recovered ends its fiber, and only that: it is written to stderr with a
 * backtrace, and joins of the fiber return ENOTRECOVERABLE. On an OS thread outside of every scope it aborts
 * the program.
 *
 * The functions that are left this way are abandoned where they are: they release resources by deferred
 * functions.
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
    char message[CC_PANIC_MESSAGE_MAX];      /* cut if longer */
    unsigned frame_count;                    /* as many as could be found, and have room */
    unsigned frames_guessed;                 /* bit n: frames[n] may be wrong, for want of unwind information */
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
 * return. A panic in a deferred function takes the place of the one before it, and the rest are run. fmt
 * NULL: no message. On an OS thread outside of every scope: says so and aborts, nothing deferred is run. Any
 * context; switches if a deferred function does. */
CC_API void cc_panic(const char *fmt, ...) CC_PANIC_CALL_;

/* For errors that must end the program: writes the message and a backtrace to stderr and aborts. No
 * deferred function is run, and cc_recover cannot stop it. Any context. */
CC_API void cc_panic_fatal(const char *fmt, ...) CC_PANIC_CALL_;

/* In a deferred function (or below one) that a panic runs: stops the panic, stores it in *info (may be NULL)
 * and returns true. The rest that was deferred in the scope still runs; then the scope ends normally: cc_try
 * returns 0, a fiber ends with the result NULL. False, and *info untouched: there is no panic to stop, or it
 * was stopped before. Any context; does not switch. */
CC_API bool cc_recover(CCPanic *info);

/* Calls fn(arg) as a scope of its own. 0: it returned, or a deferred function stopped its panic; what
 * cc_defer deferred in it has been run. ENOTRECOVERABLE: it panicked, and *info (may be NULL) says how;
 * nothing is printed. EINVAL: fn is NULL. To pass the panic on, panic again: cc_panic("%s",
 * info.message). The floating-point modes are left as the panic found them. Any context; switches if fn
 * does. */
CC_API int cc_try(CCDeferFn fn, void *arg, CCPanic *info);

/* Defers fn(arg) until the innermost scope ends, normally or by a panic; latest first. EINVAL: fn is NULL;
 * EPERM: an OS thread outside of every scope, where there is no such end; ENOMEM. Any context; does not
 * switch. */
CC_API int cc_defer(CCDeferFn fn, void *arg);

/* Defers fn(arg) until the enclosing block is left: by its end, return, break, goto, or a panic. A
 * declaration, so it stands where one can stand; fn and arg are evaluated here. Needs no memory and cannot
 * fail. Not to be jumped over by goto, switch or longjmp. Any context; does not switch itself. */
#define CC_DEFER(fn, arg) CC_DEFER_AT_(__COUNTER__, fn, arg)

/* Writes "ccc: panic ..." and the backtrace to stderr. info NULL: nothing. Any context; does not
 * switch. */
CC_API void cc_panic_print(const CCPanic *info);

/* The panic that ended the fiber with that id (the id of a CCTask, kept from before the join). Only the last
 * CC_PANICS_KEPT are remembered. ESRCH: not among them; EINVAL: id 0 or info NULL. Any context; does not
 * switch. */
CC_API int cc_panic_find(CCFiberId id, CCPanic *info);

#define CC_PANICS_KEPT 64

/* Calls fn(arg) as a scope of its own, on an OS thread with a fiber's stack: guarded, of the default size, an
 * overflow is named. It is a fiber by its id, which says "hosted", but the calling thread drives it: it is in
 * no run queue, cc_in_fiber() is false, and where a fiber would park the thread blocks. It may wait for
 * tasks, channels, locks and time, but not for input and output. In a fiber, or within another hosted call,
 * fn is called where it is. 0: *result (may be NULL) is what fn returned, NULL after a panic that was
 * stopped. ENOTRECOVERABLE: it panicked, as *info (may be NULL) says. EINVAL: fn is NULL; ENOMEM: no stack;
 * EAGAIN: the runtime could not start its threads. Any context; switches if fn does. */
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

#define CC_DEFER_AT_(number, fn, arg) CC_DEFER_IN_(number, fn, arg) /* so that it is a number below */
#define CC_DEFER_IN_(number, fn, arg)                                                               \
    CCDefer cc_defer_##number __attribute__((cleanup(cc_defer_leave))) = {NULL, (fn), (arg), NULL}, \
                              *cc_defer_in_##number __attribute__((unused)) = cc_defer_enter(&cc_defer_##number)

CC_END_DECLS

#endif
