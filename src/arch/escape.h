/* escape.h - call a function so that code deep inside it can return in its place.
 *
 *   result = cc__escape_call(e, fn, arg)   calls fn(arg); its result, or the value that an escape brings
 *   cc__escape_take(e, value)              leaves fn, and all that it has called, to there
 *   cc__guard(arg, NULL, fn)               only calls fn(arg)
 *
 * One inline assembly statement contains the call and the point where both paths join. To the compiler all caller-saved
 * registers are clobbered there, and so are the callee-saved ones: their values in the abandoned frames are lost, and
 * not needed. Unlike setjmp it returns once, so all variables of the caller are valid; and it costs three stores, where
 * setjmp is a call that stores eight words.
 *
 * Floating-point modes stay as they are. On x86-64 the function that contains the call must make ordinary
 * calls too: a leaf may keep variables below its stack pointer.
 *
 * ESCAPE-1  An escape is taken on the stack that it was created on, while the call is in progress, and once.
 */
#ifndef CC_ARCH_ESCAPE_H
#define CC_ARCH_ESCAPE_H

#include "arch/context.h"

typedef void *(*escape_fn)(void *arg);

/* Calls fn(arg) so that a C++ exception that leaves it goes to cc__guard_personality (panic/exception.c), which turns
 * it into a panic. Every escape_call goes through it. On other CPUs such an exception ends the program
 * (std::terminate). */
void *cc__guard(void *arg, void *unused, escape_fn fn);

/* The race detector keeps a call stack, which longjmp repairs; so it uses the portable version too. */
#if defined(CC_ARCH_UCONTEXT) || defined(CC_TSAN)
#include "arch/ucontext/escape.h"
#else
struct escape {
    void *sp;
    const void *pc;
    void *fp;
};
_Static_assert(offsetof(struct escape, sp) == 0 && offsetof(struct escape, pc) == 8 &&
                   offsetof(struct escape, fp) == 16,
               "the assembly knows these offsets");
#include CC_TARGET(escape.h)
#endif

#endif
