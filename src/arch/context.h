/* context.h - switch from one stack to another.
 *
 * A context is where a stack stopped: stack pointer, resume address, frame pointer, floating-point modes. The switch is
 * inline assembly that declares every other register clobbered. So the compiler saves only live values around the
 * switch; and because the stack pointer does not move before the jump, the compiler's own unwind information is correct
 * at every instruction, on both sides. The resume is an indirect jump, not a return: the return predictor would miss
 * every time.
 *
 *   cc__context_native(c)            c stands for the calling thread's own stack
 *   cc__context_start(c, top, fn)    the first switch to c calls fn(value) on the stack that ends at `top`; fn does not
 *                                    return
 *   cc__context_inherit(c, top)      called on the stack that was started at `top`: from now on it stops into c
 *   value = cc__context_switch(from, to, value)
 *                                    stops here into `from`, goes on at `to`; returns the value that the switch back
 *                                    brings
 *   cc__context_jump(to, value)      goes on at `to`; here nothing will ever run again
 *   value = cc__context_call(from, top, fn, value)
 *                                    stops here into `from` and calls fn(value, from) on the stack that ends at `top`;
 *                                    fn never returns by itself. Comes back once: by cc__context_return, or by a switch
 *                                    or jump to `from`
 *   cc__context_return(from, value)  as cc__context_jump, from where fn runs: the end of that call
 *
 * A call is cheaper than a start and a jump back: call and return match for the return predictor. In between, fn may
 * switch away, and return on another thread.
 *
 * CTX-1  A context that is being left is complete only when the next stack runs: it must not be resumed before.
 */
#ifndef CC_ARCH_CONTEXT_H
#define CC_ARCH_CONTEXT_H

#include "arch/target.h"
#include "base/attr.h"

typedef void (*context_fn)(void *value);

struct context;
typedef void (*context_call_fn)(void *value, struct context *from);

#if defined(CC_ARCH_UCONTEXT)
#include "arch/ucontext/context.h"
#elif defined(CC_TARGET_UNKNOWN)
#error "No context switch for this CPU; define CC_ARCH_UCONTEXT to use the portable one."
#else
#include CC_TARGET(context.h)
#endif

_Static_assert(sizeof(struct context) == 32, "a context shares its place in the fiber record with arguments");

/* Where a stack that was switched away from will continue. False: unknown. */
struct place {
    const void *pc;
    uintptr_t sp, fp;
};

#ifdef CC_ARCH_UCONTEXT
bool cc__context_place(const struct context *c, struct place *place);
#else
_Static_assert(offsetof(struct context, sp) == 0 && offsetof(struct context, pc) == 8 &&
                   offsetof(struct context, fp) == 16,
               "the assembly knows these offsets");

/* The first instruction of a fresh stack, and the callee of cc__context_call (start.S). */
void cc__context_first(void);
void cc__context_call_on(void);

CC_INLINE void cc__context_native(struct context *c) {
    (void)c;
}
CC_INLINE void cc__context_inherit(struct context *c, void *top) {
    (void)c, (void)top;
}
CC_INLINE void cc__context_start(struct context *c, void *top, context_fn fn) {
    c->sp = (void *)((uintptr_t)top & ~(uintptr_t)15);
    c->pc = (const void *)cc__context_first;
    c->fp = (void *)fn;
    cc__context_keep_modes(c);
}

CC_INLINE bool cc__context_place(const struct context *c, struct place *place) {
    *place = (struct place){c->pc, (uintptr_t)c->sp, (uintptr_t)c->fp};
    return true;
}
#endif

#endif
